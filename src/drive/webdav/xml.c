#include "drive/webdav/xml.h"
#include "base/mem.h"
#include "drive/wire.h"
#include "net/http_date.h"
#include "net/xml.h"
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 32
#define TEXT_MAX  (16 * 1024)
#define DAV       "DAV:"
#define OWNCLOUD  "http://owncloud.org/ns"
#define NEXTCLOUD "http://nextcloud.org/ns"
#define SABRE     "http://sabredav.org/ns"

/* Properties count when their propstat's status, which comes after them, says so. */
struct props {
    char *etag, *own_id, *checksum, *trashed_from;
    char *lock_owner, *lock_token, *lock_timeout;
    int64_t size, total, used, available;
    struct wall modified;
    bool folder, any;
};
struct dav_multistatus {
    struct xml *xml;
    bool (*item)(void *arg, const struct dav_item *item);
    void *arg;
    const char *names[DEPTH_MAX]; /* of the open elements; static, "" for those that mean nothing here */
    unsigned depth;
    struct buf text;
    bool is_one;
    char *href;
    int status, propstat_status;
    struct props pending, props;
};

static void props_reset(struct props *p)
{
    mem_free(p->etag);
    mem_free(p->own_id);
    mem_free(p->checksum);
    mem_free(p->trashed_from);
    mem_free(p->lock_owner);
    mem_free(p->lock_token);
    mem_free(p->lock_timeout);
    *p = (struct props){.size = -1, .total = -1, .used = -1, .available = -1};
}

/* ---- what an element means ---- */

static const char *known(const char *ns, const char *name)
{
    static const struct {
        const char *ns, *name, *as;
    } rows[] = {
        {DAV, "multistatus", "multistatus"},
        {DAV, "response", "response"},
        {DAV, "href", "href"},
        {DAV, "status", "status"},
        {DAV, "propstat", "propstat"},
        {DAV, "prop", "prop"},
        {DAV, "resourcetype", "resourcetype"},
        {DAV, "collection", "collection"},
        {DAV, "getcontentlength", "size"},
        {DAV, "getetag", "etag"},
        {DAV, "getlastmodified", "modified"},
        {DAV, "quota-used-bytes", "used"},
        {DAV, "quota-available-bytes", "available"},
        {DAV, "activelock", "activelock"},
        {DAV, "owner", "lock_owner"},
        {DAV, "locktoken", "lock_token"},
        {DAV, "timeout", "lock_timeout"},
        {OWNCLOUD, "fileid", "own_id"},
        {OWNCLOUD, "size", "total"},
        {OWNCLOUD, "checksums", "checksums"},
        {OWNCLOUD, "checksum", "checksum"},
        {OWNCLOUD, "trashbin-original-location", "trashed_from"},
        {NEXTCLOUD, "trashbin-original-location", "trashed_from"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].name, name) == 0 && strcmp(rows[i].ns, ns) == 0)
            return rows[i].as;
    }
    return "";
}

static void take_text(char **to, struct sv text)
{
    mem_free(*to);
    *to = text.n ? mem_strndup(text.p, text.n) : NULL;
}

static void take_number(int64_t *to, struct sv text)
{
    int64_t v;
    /* Unlimited is -3 to some, the largest number that they have to others; two numbers that are told must add up. */
    *to = sv_to_i64(text, &v) && v >= 0 && v <= INT64_MAX / 2 ? v : -1;
}

/* RFC 4918 has HTTP's form here; some servers send that of creationdate. */
static void take_date(struct wall *to, struct sv text)
{
    char iso[40];
    if (http_date_parse(text, wall_now(), to))
        return;
    str_format(iso, sizeof iso, SV_FMT, SV_ARG(text));
    if (!wall_parse(iso, to))
        to->us = 0;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void take_property(struct props *p, const char *name, struct sv text)
{
    const struct {
        const char *name;
        char **to;
    } texts[] = {
        {"etag", &p->etag},
        {"own_id", &p->own_id},
        {"checksum", &p->checksum},
        {"trashed_from", &p->trashed_from},
        {"lock_owner", &p->lock_owner},
        {"lock_timeout", &p->lock_timeout},
    };
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {{"size", &p->size}, {"total", &p->total}, {"used", &p->used}, {"available", &p->available}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (is(name, texts[i].name))
            take_text(texts[i].to, text);
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (is(name, numbers[i].name))
            take_number(numbers[i].to, text);
    }
    if (is(name, "modified"))
        take_date(&p->modified, text);
    p->any = true;
}

/* "HTTP/1.1 423 Locked"; 0: no status line. */
static int status_of(struct sv line)
{
    struct sv version, code;
    int64_t v;
    bool fine = sv_split(&line, ' ', &version) && sv_split(&line, ' ', &code) && sv_starts(version, SV("HTTP/")) &&
                sv_to_i64(code, &v) && v >= 100 && v < 600;
    return fine ? (int)v : 0;
}

/* ---- the walk ---- */

static void end_propstat(struct dav_multistatus *m)
{
    if (m->propstat_status / 100 == 2 || m->propstat_status == 0) {
        props_reset(&m->props);
        m->props = m->pending;
        m->pending = (struct props){0};
    }
    props_reset(&m->pending);
    m->propstat_status = 0;
}

static bool end_response(struct dav_multistatus *m)
{
    struct props *p = &m->props;
    const struct dav_item item = {.href = m->href,
                                  .status = m->status,
                                  .folder = p->folder,
                                  .has_props = p->any,
                                  .etag = p->etag,
                                  .own_id = p->own_id,
                                  .checksum = p->checksum,
                                  .trashed_from = p->trashed_from,
                                  .lock_owner = p->lock_owner,
                                  .lock_token = p->lock_token,
                                  .lock_timeout = p->lock_timeout,
                                  .size = p->size,
                                  .total = p->total,
                                  .used = p->used,
                                  .available = p->available,
                                  .modified = p->modified};
    bool fine = m->href && m->item(m->arg, &item);
    MEM_FREE(m->href);
    m->status = m->propstat_status = 0;
    props_reset(p);
    props_reset(&m->pending);
    return fine;
}

static const char *above(const struct dav_multistatus *m, unsigned levels)
{
    return m->depth >= levels ? m->names[m->depth - levels] : "";
}

static bool on_start(void *arg, const char *ns, const char *name)
{
    struct dav_multistatus *m = arg;
    if (m->depth == DEPTH_MAX)
        return false;
    const char *as = known(ns, name);
    if (m->depth == 0 && !is(as, "multistatus"))
        return false;
    m->is_one = true;
    if (is(as, "collection") && is(above(m, 1), "resourcetype"))
        m->pending.folder = true;
    m->names[m->depth++] = as;
    buf_reset(&m->text);
    return true;
}

static bool on_text(void *arg, struct sv text)
{
    struct dav_multistatus *m = arg;
    return buf_append(&m->text, text.p, text.n) == ERR_OK;
}

/* One element is over; above(1) is what it stands in. */
static bool on_end(void *arg, const char *ns, const char *full_name)
{
    struct dav_multistatus *m = arg;
    struct sv text = sv_trim((struct sv){buf_cstr(&m->text), m->text.len});
    const char *name = m->names[--m->depth], *in = above(m, 1);
    (void)ns, (void)full_name;
    if ((is(in, "prop") || is(in, "checksums") || is(in, "activelock")) && name[0])
        take_property(&m->pending, name, text);
    else if (is(name, "href") && is(in, "lock_token"))
        take_text(&m->pending.lock_token, text);
    else if (is(name, "href") && is(in, "response"))
        take_text(&m->href, text);
    else if (is(name, "status") && is(in, "response"))
        m->status = status_of(text);
    else if (is(name, "status") && is(in, "propstat"))
        m->propstat_status = status_of(text);
    else if (is(name, "propstat") && is(in, "response"))
        end_propstat(m);
    else if (is(name, "response") && is(in, "multistatus"))
        return end_response(m);
    buf_reset(&m->text);
    return true;
}

struct dav_multistatus *dav_multistatus_new(bool (*item)(void *arg, const struct dav_item *item), void *arg)
{
    static const struct xml_ops ops = {on_start, on_text, on_end};
    struct dav_multistatus *m = mem_zalloc(sizeof *m);
    m->item = item;
    m->arg = arg;
    buf_init(&m->text, TEXT_MAX);
    props_reset(&m->props);
    props_reset(&m->pending);
    m->xml = xml_new(&ops, m);
    return m;
}

void dav_multistatus_free(struct dav_multistatus **m)
{
    if (!*m)
        return;
    xml_free(&(*m)->xml);
    buf_done(&(*m)->text);
    mem_free((*m)->href);
    props_reset(&(*m)->props);
    props_reset(&(*m)->pending);
    MEM_FREE(*m);
}

enum err dav_multistatus_feed(struct dav_multistatus *m, const char *p, size_t n)
{
    return xml_feed(m->xml, p, n);
}

enum err dav_multistatus_end(struct dav_multistatus *m)
{
    enum err err = xml_end(m->xml);
    return !err && m->is_one ? ERR_OK : ERR_PARSE;
}

/* ---- errors ---- */

struct error_walk {
    bool in_message, found;
    struct buf text;
};

static bool error_start(void *arg, const char *ns, const char *name)
{
    struct error_walk *w = arg;
    w->in_message = !w->found && is(ns, SABRE) && is(name, "message");
    return true;
}

static bool error_text(void *arg, struct sv text)
{
    struct error_walk *w = arg;
    return !w->in_message || buf_append(&w->text, text.p, text.n) == ERR_OK;
}

static bool error_end(void *arg, const char *ns, const char *name)
{
    struct error_walk *w = arg;
    (void)ns, (void)name;
    w->found = w->found || w->in_message;
    w->in_message = false;
    return true;
}

static bool html_title(struct sv body, char *dst, size_t n)
{
    static const struct sv open = {"<title>", 7};
    for (size_t i = 0; i + open.n < body.n; i++) {
        if (!sv_ieq((struct sv){body.p + i, open.n}, open))
            continue;
        struct sv rest = {body.p + i + open.n, body.n - i - open.n}, title;
        if (sv_split(&rest, '<', &title) && title.n)
            snprintf(dst, n, SV_FMT, SV_ARG(sv_trim(title)));
        return dst[0] != '\0';
    }
    return false;
}

bool dav_error_text(struct sv body, char *dst, size_t n)
{
    static const struct xml_ops ops = {error_start, error_text, error_end};
    struct error_walk w = {.text = BUF_INIT(4096)};
    struct xml *x = xml_new(&ops, &w);
    dst[0] = '\0';
    enum err err = body.n ? xml_feed(x, body.p, body.n) : ERR_PARSE;
    (void)err; /* what was found before a fault is a sentence all the same */
    if (w.found)
        snprintf(dst, n, "%s", buf_cstr(&w.text));
    xml_free(&x);
    buf_done(&w.text);
    return dst[0] || html_title(body, dst, n);
}
