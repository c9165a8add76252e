/* URLs by libcurl's parser, so that what we print and what we connect to are one reading of the text. */
#include "net/httpc_int.h"

#include <string.h>

#define PORT_NOT_SAID (-1)

static char *part(CURLU *u, CURLUPart which, unsigned flags)
{
    char *text = NULL;
    if (curl_url_get(u, which, &text, flags) != CURLUE_OK)
        return NULL;
    char *copy = mem_strdup(text);
    curl_free(text);
    return copy;
}

/* "::1:3200": where the address ends and the port begins is anybody's guess. */
static bool bare_ipv6(const char *authority)
{
    size_t n = strcspn(authority, "/?#");
    const char *at = memchr(authority, '@', n);
    struct sv host = at != NULL ? (struct sv){at + 1, n - (size_t)(at + 1 - authority)} : (struct sv){authority, n};
    const char *colon = memchr(host.p, ':', host.n);
    size_t behind = colon != NULL ? host.n - (size_t)(colon + 1 - host.p) : 0;
    return host.n > 0 && host.p[0] != '[' && behind > 0 && memchr(colon + 1, ':', behind) != NULL;
}

/* What holds credentials is not repeated in a message. */
static enum err refuse(struct errinfo *ei, const char *text, const char *why)
{
    bool secret = strchr(text, '@') != NULL;
    return err_set(ei, ERR_USAGE, "%s: %s", secret || !text[0] ? "this URL" : SHOWN(sv_of(text)), why);
}

static const struct http_url_scheme web[] = {{"http", 80}, {"https", 443}, {NULL, 0}};

static int port_of(const struct http_url_scheme *schemes, const char *scheme)
{
    for (; schemes->name; schemes++)
        if (scheme && strcmp(schemes->name, scheme) == 0)
            return schemes->port;
    return 0;
}

/* "it needs http:// or https:// in front" */
static enum err no_scheme(const struct http_url_scheme *schemes, const char *text, struct errinfo *ei)
{
    struct buf why = BUF_INIT(300);
    enum err err = buf_append_str(&why, "it needs ");
    for (const struct http_url_scheme *s = schemes; s->name && !err; s++)
        err = buf_appendf(&why, "%s%s://", s == schemes ? "" : s[1].name ? ", " : " or ", s->name);
    if (!err)
        err = buf_append_str(&why, " in front");
    err = refuse(ei, text, buf_cstr(&why));
    buf_done(&why);
    return err;
}

static const char *reason(CURLUcode rc)
{
    switch (rc) {
    case CURLUE_BAD_PORT_NUMBER:
        return "the port is not a number from 1 to 65535";
    case CURLUE_NO_HOST:
        return "it names no host";
    default:
        return "it is not a URL such as http://127.0.0.1:3200";
    }
}

static const char *missing_or_extra(const struct http_url *u, CURLU *parsed)
{
    char *query = part(parsed, CURLUPART_QUERY, 0), *fragment = part(parsed, CURLUPART_FRAGMENT, 0);
    const char *why = NULL;
    if (u->host == NULL || *u->host == '\0')
        why = "it names no host";
    else if (u->port == 0)
        why = "the port is not a number from 1 to 65535";
    else if (query != NULL || fragment != NULL)
        why = "it must not have a ?query or #fragment";
    mem_free(query);
    mem_free(fragment);
    return why;
}

static void fill(struct http_url *out, CURLU *u)
{
    out->scheme = part(u, CURLUPART_SCHEME, 0);
    out->host = part(u, CURLUPART_HOST, 0);
    out->zone = part(u, CURLUPART_ZONEID, 0);
    out->user = part(u, CURLUPART_USER, CURLU_URLDECODE);
    out->password = part(u, CURLUPART_PASSWORD, CURLU_URLDECODE);
    out->path = part(u, CURLUPART_PATH, 0);
    char *port = part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    int64_t n = 0;
    out->port = port == NULL ? PORT_NOT_SAID : sv_to_i64(sv_of(port), &n) ? (int)n : 0;
    mem_free(port);
    size_t len = out->path != NULL ? strlen(out->path) : 0;
    while (len > 0 && out->path[len - 1] == '/')
        out->path[--len] = '\0';
}

/* libcurl knows a scheme's port only when it was built for it. */
static void settle_port(struct http_url *u, const struct http_url_scheme *schemes)
{
    int port = port_of(schemes, u->scheme);
    if (u->port == PORT_NOT_SAID)
        u->port = port;
}

enum err http_url_parse(const char *text, struct http_url *out, struct errinfo *ei)
{
    return http_url_parse_of(text, web, out, ei);
}

enum err http_url_parse_of(const char *text, const struct http_url_scheme *schemes, struct http_url *out,
                           struct errinfo *ei)
{
    if (*text == '\0')
        return refuse(ei, text, "it is empty");
    const char *slashes = strstr(text, "://");
    if (slashes == NULL) /* libcurl would take "http:/host" and "http:///host" too */
        return no_scheme(schemes, text, ei);
    if (slashes[3] == '/')
        return refuse(ei, text, "it names no host");
    if (bare_ipv6(slashes + 3))
        return refuse(ei, text, "an IPv6 address stands in brackets: http://[::1]:3200");
    CURLU *u = curl_url();
    CURLUcode rc = curl_url_set(u, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
    struct http_url got = {0};
    const char *why = reason(rc);
    bool foreign = rc == CURLUE_BAD_SCHEME || rc == CURLUE_UNSUPPORTED_SCHEME;
    if (rc == CURLUE_OK) {
        fill(&got, u);
        foreign = port_of(schemes, got.scheme) == 0;
        settle_port(&got, schemes);
        why = missing_or_extra(&got, u);
    }
    curl_url_cleanup(u);
    if (foreign || why != NULL) {
        http_url_done(&got);
        return foreign ? no_scheme(schemes, text, ei) : refuse(ei, text, why);
    }
    *out = got;
    return ERR_OK;
}

void http_url_done(struct http_url *u)
{
    MEM_FREE(u->scheme);
    MEM_FREE(u->host);
    MEM_FREE(u->path);
    MEM_FREE(u->user);
    MEM_FREE(u->password);
    MEM_FREE(u->zone);
    u->port = 0;
}
