/* Origins and peers. Each peer has a name of its own that libcurl connects to instead of the host (CONNECT_TO),
 * resolved to the host's addresses (RESOLVE): libcurl keeps connections by that name, so peers never share one, at a
 * fifth of the memory of a multi each (measured.md 3). The Host header and TLS still see the real host. */
#include "net/httpc_peer.h"
#include "net/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

/* ---- origins ---- */

/* The zone of a link-local address is set on the socket; libcurl's RESOLVE cannot carry it. */
static void add_addr(struct origin *o, const struct sockaddr *sa)
{
    char text[INET6_ADDRSTRLEN], *dst = o->addrs[o->n_addrs];
    size_t n = sizeof o->addrs[0];
    if (sa->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, dst, (socklen_t)n);
    else {
        const struct sockaddr_in6 *v6 = (const void *)sa;
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
        snprintf(dst, n, "[%s]", text);
        if (v6->sin6_scope_id != 0)
            o->scope_id = v6->sin6_scope_id;
    }
    for (unsigned i = 0; i < o->n_addrs; i++)
        if (strcmp(o->addrs[i], dst) == 0)
            return;
    o->n_addrs++;
}

static enum err resolve(struct origin *o, struct errinfo *ei)
{
    enum err err = guard_judge(o->url.host, ei);
    if (err != ERR_OK)
        return err;
    struct buf host = BUF_INIT(512);
    struct sv bare = sv_of(o->url.host);
    if (bare.n >= 2 && bare.p[0] == '[')
        bare = (struct sv){bare.p + 1, bare.n - 2};
    err = buf_append(&host, bare.p, bare.n);
    if (err == ERR_OK && o->url.zone != NULL)
        err = buf_appendf(&host, "%%%s", o->url.zone);
    if (err != ERR_OK)
        err = err_set(ei, ERR_USAGE, "the host name is too long");
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = err == ERR_OK ? getaddrinfo(buf_cstr(&host), NULL, &hints, &list) : 0;
    if (rc != 0)
        err = err_set(ei, ERR_RESOLVE, "no address for the host %s: %s", o->url.host, gai_strerror(rc));
    for (struct addrinfo *a = list; a != NULL && o->n_addrs < ADDRS_MAX; a = a->ai_next)
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6)
            add_addr(o, a->ai_addr);
    if (list != NULL)
        freeaddrinfo(list);
    if (err == ERR_OK && o->n_addrs == 0)
        err = err_set(ei, ERR_RESOLVE, "no address for the host %s", o->url.host);
    buf_done(&host);
    return err;
}

static const struct origin *same_host(const struct httpc *h, const struct http_url *u)
{
    for (const struct origin *o = h->origins; o != NULL; o = o->next)
        if (strcmp(o->url.host, u->host) == 0 && sv_eq(sv_of(o->url.zone), sv_of(u->zone)))
            return o;
    return NULL;
}

/* Scheme, host and port; the path travels as the request target. */
static CURLU *url_of(const struct http_url *u)
{
    char port[16];
    snprintf(port, sizeof port, "%d", u->port);
    CURLU *c = curl_url();
    bool ok = curl_url_set(c, CURLUPART_SCHEME, u->scheme, 0) == CURLUE_OK &&
              curl_url_set(c, CURLUPART_HOST, u->host, 0) == CURLUE_OK &&
              curl_url_set(c, CURLUPART_PORT, port, 0) == CURLUE_OK &&
              curl_url_set(c, CURLUPART_PATH, "/", 0) == CURLUE_OK;
    if (!ok) {
        curl_url_cleanup(c);
        return NULL;
    }
    return c;
}

void httpc_origin_free(struct origin **op)
{
    struct origin *o = *op;
    mem_free(o->base);
    http_url_done(&o->url);
    curl_url_cleanup(o->parsed);
    mem_free(o);
    *op = NULL;
}

static enum err origin_get(struct origin **out, struct httpc *h, const char *base, struct errinfo *ei)
{
    for (struct origin *o = h->origins; o != NULL; o = o->next)
        if (strcmp(o->base, base) == 0) {
            *out = o;
            return ERR_OK;
        }
    struct origin *o = mem_zalloc(sizeof *o);
    o->base = mem_strdup(base);
    enum err err = http_url_parse(base, &o->url, ei);
    if (err == ERR_OK) {
        o->parsed = url_of(&o->url);
        if (o->parsed == NULL || !httpc_target_ok(o->url.path))
            err = err_set(ei, ERR_USAGE, "%s://%s:%d: its path holds characters that are not percent-encoded",
                          o->url.scheme, o->url.host, o->url.port);
    }
    const struct origin *known = err == ERR_OK ? same_host(h, &o->url) : NULL;
    if (known != NULL) {
        memcpy(o->addrs, known->addrs, sizeof o->addrs);
        o->n_addrs = known->n_addrs;
        o->scope_id = known->scope_id;
    } else if (err == ERR_OK) {
        err = resolve(o, ei);
    }
    if (err != ERR_OK) {
        httpc_origin_free(&o);
        return err;
    }
    for (unsigned i = 0; i < o->n_addrs; i++)
        httpc_alias_init(&o->stream_aliases[i], 's', ++h->next_alias_id, o->url.port);
    o->next = h->origins;
    h->origins = o;
    *out = o;
    return ERR_OK;
}

char *httpc_target(const struct origin *o, const char *path)
{
    size_t prefix = strlen(o->url.path), n = strlen(path);
    char *target = mem_alloc(prefix + n + 1);
    memcpy(target, o->url.path, prefix);
    memcpy(target + prefix, path, n + 1);
    return target;
}

/* A request target goes on the wire as it is: anything that could end it there is refused. */
bool httpc_target_ok(const char *path)
{
    for (const unsigned char *p = (const unsigned char *)path; *p != '\0'; p++)
        if (*p <= ' ' || *p == 0x7f)
            return false;
    return true;
}

/* ---- names ---- */

/* Short: libcurl formats the name anew for each request. It is never looked up, being known to the multi for good. */
void httpc_alias_init(struct alias *a, char kind, unsigned id, int port)
{
    snprintf(a->text, sizeof a->text, "::%c%u:%d", kind, id, port);
    a->list.data = a->text;
    a->resolved = false;
}

/* "p17:3200:127.0.0.1,[::1]": kept for good in the name cache of the multi that first uses it. */
struct curl_slist *httpc_alias_resolve(const struct alias *a, const struct origin *o, unsigned first)
{
    struct buf line = BUF_INIT(2048);
    enum err err = buf_appendf(&line, "%s:", a->text + 2);
    for (unsigned i = 0; i < o->n_addrs && err == ERR_OK; i++)
        err = buf_appendf(&line, "%s%s", i > 0 ? "," : "", o->addrs[(first + i) % o->n_addrs]);
    struct curl_slist *list = err == ERR_OK ? curl_slist_append(NULL, buf_cstr(&line)) : NULL;
    buf_done(&line);
    return list;
}

static enum err source_parse(struct httpc_peer *p, const char *text, struct errinfo *ei)
{
    if (text == NULL)
        return ERR_OK;
    p->has_source = true;
    if (inet_pton(AF_INET, text, &p->source.v4.sin_addr) == 1)
        p->source.any.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &p->source.v6.sin6_addr) == 1)
        p->source.any.sa_family = AF_INET6;
    else
        return err_set(ei, ERR_USAGE, "the source address %.60s is not an IP address", text);
    return ERR_OK;
}

/* ---- the shard ---- */

static void free_if_deserted(struct task *t)
{
    struct multi *m = container_of(t, struct multi, leave);
    if (m->peers > 0)
        return;
    struct multi **at = &m->h->multis;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    httpc_multi_free(&m);
}

static struct multi *multi_with_room(struct httpc *h, struct errinfo *ei)
{
    struct multi *m = h->multis;
    while (m != NULL && (m->peers >= h->peers_per_multi || m->names >= 4 * h->peers_per_multi))
        m = m->next;
    if (m == NULL && (m = httpc_multi_new(h, ei)) != NULL) {
        m->leave.fn = free_if_deserted;
        m->next = h->multis;
        h->multis = m;
    }
    return m;
}

/* ---- headers ---- */

/* The name of "Name: value" or "Name;". */
static struct sv header_name(const char *line)
{
    return (struct sv){line, strcspn(line, ":;")};
}

void httpc_headers_release(struct header_set **sp)
{
    struct header_set *s = *sp;
    *sp = NULL;
    if (s == NULL || --s->refs > 0)
        return;
    for (unsigned i = 0; i < s->n; i++)
        mem_free(s->nodes[i].data);
    mem_free(s);
}

/* An empty value needs libcurl's "Name;": "Name:" would remove the header. A line end would start another header. */
static char *header_line(const char *name, const char *value)
{
    struct buf line = BUF_INIT(64 * 1024);
    int n = (int)strcspn(value, "\r\n");
    enum err err = n > 0 ? buf_appendf(&line, "%s: %.*s", name, n, value) : buf_appendf(&line, "%s;", name);
    if (err != ERR_OK)
        LOGE("httpc", "the header %s is too long and is left out", name);
    return buf_take(&line, NULL);
}

void httpc_headers_set(struct header_set **sp, const char *name, const char *value)
{
    struct header_set *old = *sp;
    unsigned old_n = old != NULL ? old->n : 0;
    struct header_set *s = mem_zalloc(sizeof *s + (old_n + 1) * sizeof s->nodes[0]);
    s->refs = 1;
    for (unsigned i = 0; i < old_n; i++)
        if (!sv_ieq(header_name(old->nodes[i].data), sv_of(name)))
            s->nodes[s->n++].data = mem_strdup(old->nodes[i].data);
    char *line = value != NULL ? header_line(name, value) : NULL;
    if (line != NULL && *line != '\0')
        s->nodes[s->n++].data = line;
    else
        mem_free(line);
    for (unsigned i = 1; i < s->n; i++)
        s->nodes[i - 1].next = &s->nodes[i];
    httpc_headers_release(sp);
    *sp = s;
}

void httpc_peer_count(struct httpc_peer *p, struct httpc_counters c)
{
    p->count = c;
}

void httpc_peer_header(struct httpc_peer *p, const char *name, const char *value)
{
    httpc_headers_set(&p->headers, name, value);
}

bool httpc_headers_have(const struct header_set *s, const char *line)
{
    for (unsigned i = 0; i < s->n; i++)
        if (sv_ieq(header_name(line), header_name(s->nodes[i].data)))
            return true;
    return false;
}

void httpc_peer_keep(struct httpc_peer *p, unsigned n)
{
    p->keep = n;
}

static bool replaced(const char *line, const char *const *own, size_t n_own)
{
    for (size_t i = 0; i < n_own; i++)
        if (sv_ieq(header_name(line), header_name(own[i])))
            return true;
    return false;
}

struct curl_slist *httpc_header_list(const struct httpc_peer *p, const char *const *own, size_t n_own,
                                     struct curl_slist *nodes)
{
    struct header_set *s = p->headers;
    if (n_own == 0)
        return s->n > 0 ? s->nodes : NULL;
    size_t n = 0;
    for (size_t i = 0; i < n_own; i++) /* libcurl reads them only */
        nodes[n++].data = (char *)(uintptr_t)own[i];
    for (unsigned i = 0; i < s->n; i++)
        if (!replaced(s->nodes[i].data, own, n_own))
            nodes[n++].data = s->nodes[i].data;
    for (size_t i = 0; i < n; i++)
        nodes[i].next = i + 1 < n ? &nodes[i + 1] : NULL;
    return nodes;
}

/* ---- life ---- */

enum err httpc_peer_new(struct httpc_peer **out, struct httpc *h, const char *base_url, const char *source_addr,
                        struct errinfo *ei)
{
    struct httpc_peer *p = mem_zalloc(sizeof *p);
    p->h = h;
    enum err err = source_parse(p, source_addr, ei);
    if (err == ERR_OK)
        err = origin_get(&p->origin, h, base_url, ei);
    if (err == ERR_OK && (p->multi = multi_with_room(h, ei)) == NULL)
        err = ERR_ENV;
    if (err != ERR_OK) {
        mem_free(p);
        return err;
    }
    struct origin *o = p->origin;
    p->first_addr = o->next_addr++ % o->n_addrs;
    httpc_alias_init(&p->alias, 'p', ++h->next_alias_id, o->url.port);
    p->headers = h->default_headers;
    p->headers->refs++;
    p->multi->peers++;
    p->multi->names++;
    p->at = &h->peers;
    p->next = h->peers;
    if (p->next != NULL)
        p->next->at = &p->next;
    h->peers = p;
    *out = p;
    return ERR_OK;
}

/* libcurl cannot be told to close one idle connection. Shut down, it is dead to both sides; libcurl drops it when the
 * multi works next, or with the multi. */
static void hang_up(struct httpc_peer *p)
{
    for (struct sock *s = p->socks, *next; s != NULL; s = next) {
        next = s->next;
        if (httpc_sock_alive(s))
            shutdown(s->io.fd, SHUT_RDWR);
        s->peer = NULL;
        s->next = NULL;
        s->at = NULL;
    }
}

void httpc_peer_free(struct httpc_peer **pp)
{
    struct httpc_peer *p = *pp;
    if (p == NULL)
        return;
    *pp = NULL;
    struct httpc *h = p->h;
    httpc_stream_close_all(h, p);
    hang_up(p);
    if (--p->multi->peers == 0)
        httpc_task(h, &p->multi->leave);
    *p->at = p->next;
    if (p->next != NULL)
        p->next->at = p->at;
    httpc_headers_release(&p->headers);
    mem_free(p);
}
