#include "drive/api/scheme.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include <string.h>

#define URL_MAX (16 * 1024)

extern const struct api_dialect api_dialect_tma, api_dialect_webdav, api_dialect_sftp;
extern const struct api_dialect api_dialect_portal, api_dialect_portal_post, api_dialect_portal_form;

static const struct scheme rows[] = {
    {"http", "tma", "http", 80, false, &api_dialect_tma},
    {"https", "tma", "https", 443, false, &api_dialect_tma},
    {"webdav", "webdav", "http", 80, true, &api_dialect_webdav},
    {"webdavs", "webdav", "https", 443, true, &api_dialect_webdav},
    {"sftp", "sftp", NULL, 22, true, &api_dialect_sftp},
    {"http", "portal", "http", 80, true, &api_dialect_portal},
    {"https", "portal", "https", 443, true, &api_dialect_portal},
    {"http", "portal-post", "http", 80, true, &api_dialect_portal_post},
    {"https", "portal-post", "https", 443, true, &api_dialect_portal_post},
    {"http", "portal-form", "http", 80, true, &api_dialect_portal_form},
    {"https", "portal-form", "https", 443, true, &api_dialect_portal_form},
};

static enum err unknown_dialect(const char *name, struct errinfo *ei)
{
    struct buf names = BUF_INIT(200);
    const char *last = "";
    enum err err = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(rows) && !err; i++) {
        if (strcmp(rows[i].dialect, last) != 0)
            err = buf_appendf(&names, "%s%s", names.len ? ", " : "", rows[i].dialect);
        last = rows[i].dialect;
    }
    err = err_set(ei, ERR_USAGE, "--dialect takes one of %s, not \"%s\"", buf_cstr(&names), name);
    buf_done(&names);
    return err;
}

/* The row of that scheme; with a dialect named, the one of its own that is carried by it. */
static const struct scheme *find(const char *scheme, const char *dialect)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool by_scheme = strcmp(rows[i].scheme, scheme) == 0;
        bool by_carrier = rows[i].carrier && strcmp(rows[i].carrier, scheme) == 0;
        if (dialect ? strcmp(rows[i].dialect, dialect) == 0 && (by_scheme || by_carrier) : by_scheme)
            return &rows[i];
    }
    return NULL;
}

static bool known(const char *dialect)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].dialect, dialect) == 0)
            return true;
    }
    return false;
}

/* Each once, as the sentence about a URL that has none of them names them. */
static void list_schemes(struct http_url_scheme *out)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool first = true;
        for (size_t k = 0; k < n; k++)
            first = first && strcmp(out[k].name, rows[i].scheme) != 0;
        if (first)
            out[n++] = (struct http_url_scheme){rows[i].scheme, rows[i].port};
    }
}

enum err scheme_judge_dialect(const char *dialect, struct errinfo *ei)
{
    return !dialect || known(dialect) ? ERR_OK : unknown_dialect(dialect, ei);
}

enum err scheme_of(const char *url, const char *dialect, const struct scheme **row, struct http_url *out,
                   struct errinfo *ei)
{
    struct http_url_scheme schemes[ARRAY_LEN(rows) + 1] = {{NULL, 0}};
    struct http_url u;
    list_schemes(schemes);
    enum err err = scheme_judge_dialect(dialect, ei);
    if (!err)
        err = http_url_parse_of(url, schemes, &u, ei);
    if (err)
        return err;
    const struct scheme *found = find(u.scheme, dialect);
    if (!found) {
        err = err_set(ei, ERR_USAGE, "%s:// is no URL of the dialect %s", u.scheme, dialect ? dialect : "?");
        http_url_done(&u);
        return err;
    }
    if (found->carrier) {
        mem_free(u.scheme);
        u.scheme = mem_strdup(found->carrier);
    }
    *row = found;
    *out = u;
    return ERR_OK;
}

char *scheme_url(const struct http_url *u)
{
    struct buf text = BUF_INIT(URL_MAX);
    size_t n = strlen(u->host);
    bool zone = u->zone && n && u->host[n - 1] == ']';
    enum err err = buf_appendf(&text, "%s://%.*s", u->scheme, (int)(zone ? n - 1 : n), u->host);
    if (!err && zone)
        err = buf_appendf(&text, "%%25%s]", u->zone);
    if (!err)
        err = buf_appendf(&text, ":%d%s", u->port, u->path);
    (void)err; /* it came out of a URL: it is no longer than that */
    return buf_take(&text, NULL);
}
