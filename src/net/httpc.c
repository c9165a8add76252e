/* libcurl's multis on the loop. What a reader would doubt: CURL_POLL_REMOVE does not touch epoll. An idle connection
 * stays registered for reading, so a request on it costs no epoll_ctl; when the server closes it meanwhile, the event
 * finds nobody waiting and only then is the descriptor taken out. */
#include "net/httpc_xfer.h"

#include "base/recycle.h"
#include "base/version.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 100000, PEERS_PER_MULTI = 256 };

/* ---- tasks ---- */

/* Only what is queued now: what a task queues waits for the next deferred call, so that descriptors get their turn. */
static void run_tasks(void *arg)
{
    struct httpc *h = arg;
    h->tasks_now = h->tasks;
    h->tasks = NULL;
    h->tasks_tail = &h->tasks;
    h->tasks_deferred = false;
    for (struct task *t; (t = h->tasks_now) != NULL;) {
        h->tasks_now = t->next;
        t->queued = false;
        t->fn(t);
    }
}

void httpc_task(struct httpc *h, struct task *t)
{
    if (t->queued)
        return;
    t->queued = true;
    t->next = NULL;
    *h->tasks_tail = t;
    h->tasks_tail = &t->next;
    if (!h->tasks_deferred) {
        h->tasks_deferred = true;
        loop_defer(h->loop, run_tasks, h);
    }
}

static bool untask_from(struct task **at, struct task *t)
{
    while (*at != NULL && *at != t)
        at = &(*at)->next;
    bool found = *at == t;
    if (found)
        *at = t->next;
    return found;
}

void httpc_untask(struct httpc *h, struct task *t)
{
    if (!t->queued)
        return;
    t->queued = false;
    if (untask_from(&h->tasks_now, t) || !untask_from(&h->tasks, t))
        return;
    for (h->tasks_tail = &h->tasks; *h->tasks_tail != NULL;)
        h->tasks_tail = &(*h->tasks_tail)->next;
}

/* ---- multis ---- */

static void multi_run(struct multi *m, curl_socket_t fd, int flags)
{
    int running, left;
    curl_multi_socket_action(m->curl, fd, flags, &running);
    for (CURLMsg *msg; (msg = curl_multi_info_read(m->curl, &left)) != NULL;) {
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode rc = msg->data.result;
        struct transfer *t;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        if (t->stream != NULL)
            httpc_stream_finished(t, rc);
        else
            httpc_request_finished(t, rc);
    }
}

static void run_without_event(struct task *task)
{
    multi_run(container_of(task, struct multi, run), CURL_SOCKET_TIMEOUT, 0);
}

static void on_multi_timer(struct timer *t)
{
    multi_run(container_of(t, struct multi, timer), CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl must not be entered from here: "now" becomes a task. */
static int on_timer_wish(CURLM *curl, long ms, void *arg)
{
    struct multi *m = arg;
    (void)curl;
    if (ms > 0)
        loop_timer_set(m->h->loop, &m->timer, mono_add(loop_now(m->h->loop), ms * US_PER_MS));
    else
        loop_timer_stop(&m->timer);
    if (ms == 0)
        httpc_task(m->h, &m->run);
    return 0;
}

/* ---- sockets ----
 * libcurl 7.88 closes a socket that did not get connected without the close callback. Such a struct sock is stale: its
 * descriptor is closed, or another's already. It is found out when the number comes back, when libcurl drops its
 * interest, or by the inode. */

/* NULL when it is not ours. */
static struct sock *sock_at(const struct httpc *h, int fd)
{
    return fd >= 0 && (size_t)fd < h->socks_n ? h->socks[fd] : NULL;
}

static uint64_t inode_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

bool httpc_sock_alive(const struct sock *s)
{
    return inode_of(s->io.fd) == s->inode;
}

static void sock_free(struct httpc *h, struct sock *s)
{
    loop_io_remove(&s->io);
    if (s->at != NULL) /* a peer that was freed has let go of its sockets */
        *s->at = s->next;
    if (s->next != NULL)
        s->next->at = s->at;
    h->socks[s->io.fd] = NULL;
    mem_free(s);
}

/* Stale: epoll let go of it when it was closed. */
static void sock_forget(struct httpc *h, struct sock *s)
{
    s->io.events = 0;
    sock_free(h, s);
}

void httpc_forget_stale(struct httpc_peer *p)
{
    for (struct sock *s = p->socks, *next; s != NULL; s = next) {
        next = s->next;
        if (!httpc_sock_alive(s))
            sock_forget(p->h, s);
    }
}

static void on_event(struct io *io, uint32_t events);

static void sock_register(struct transfer *t, int fd)
{
    struct httpc *h = t->h;
    if ((size_t)fd >= h->socks_n) {
        size_t n = ((size_t)fd + 1) * 2;
        h->socks = mem_realloc_array(h->socks, n, sizeof(struct sock *));
        memset(h->socks + h->socks_n, 0, (n - h->socks_n) * sizeof(struct sock *));
        h->socks_n = n;
    }
    struct sock *stale = h->socks[fd];
    uint32_t want = stale != NULL ? stale->want : 0;
    if (stale != NULL)
        sock_forget(h, stale);
    struct sock *s = mem_zalloc(sizeof *s);
    s->io = (struct io){.fd = fd, .fn = on_event};
    s->inode = inode_of(fd);
    s->multi = t->multi;
    s->peer = t->peer;
    s->at = &t->peer->socks;
    s->next = *s->at;
    if (s->next != NULL)
        s->next->at = &s->next;
    *s->at = s;
    h->socks[fd] = s;
    /* Seen with the same wish under the same number, libcurl does not repeat the wish. */
    s->want = want;
    (void)!loop_io_add(h->loop, &s->io, 0, NULL); /* without interest nothing can fail */
    loop_io_set(&s->io, want);
}

static void on_event(struct io *io, uint32_t events)
{
    struct sock *s = container_of(io, struct sock, io);
    if (s->want == 0) { /* an idle connection that the server closed: libcurl notices when it would reuse it */
        loop_io_set(io, 0);
        return;
    }
    int flags = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0);
    if (events & (EPOLLERR | EPOLLHUP))
        flags |= s->want & EPOLLIN ? CURL_CSELECT_IN : CURL_CSELECT_OUT;
    /* An answer that comes while the body is being sent is read before anything more is sent: sending could fail, and
     * the failure would hide the answer. */
    if (s->upload != NULL && (s->want & EPOLLIN) && (flags & CURL_CSELECT_IN))
        flags = CURL_CSELECT_IN;
    multi_run(s->multi, io->fd, flags);
}

static int on_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
    struct multi *m = arg;
    (void)easy, (void)unused;
    struct sock *s = sock_at(m->h, fd);
    if (s == NULL)
        return 0;
    if (what == CURL_POLL_REMOVE && (s->want & EPOLLOUT) != 0 && !httpc_sock_alive(s)) {
        sock_forget(m->h, s);
        return 0;
    }
    s->want =
        what == CURL_POLL_REMOVE ? 0 : (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    uint32_t have = s->io.events;
    if ((s->want & ~have) != 0 || (have & ~s->want & EPOLLOUT) != 0)
        loop_io_set(&s->io, s->want != 0 ? s->want : EPOLLIN);
    return 0;
}

struct multi *httpc_multi_new(struct httpc *h, struct errinfo *ei)
{
    CURLM *curl = curl_multi_init();
    if (curl == NULL) {
        (void)err_set(ei, ERR_ENV, "libcurl cannot start: are open files (ulimit -n) used up?");
        return NULL;
    }
    struct multi *m = mem_zalloc(sizeof *m);
    m->h = h;
    m->curl = curl;
    m->timer.fn = on_multi_timer;
    m->run.fn = run_without_event;
    curl_multi_setopt(curl, CURLMOPT_SOCKETFUNCTION, on_interest);
    curl_multi_setopt(curl, CURLMOPT_SOCKETDATA, m);
    curl_multi_setopt(curl, CURLMOPT_TIMERFUNCTION, on_timer_wish);
    curl_multi_setopt(curl, CURLMOPT_TIMERDATA, m);
    curl_multi_setopt(curl, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
    curl_multi_setopt(curl, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    return m;
}

void httpc_multi_free(struct multi **mp)
{
    struct multi *m = *mp;
    if (m == NULL)
        return;
    curl_multi_cleanup(m->curl);
    loop_timer_stop(&m->timer);
    httpc_untask(m->h, &m->run);
    httpc_untask(m->h, &m->leave);
    mem_free(m);
    *mp = NULL;
}

/* ---- opening and closing ---- */

static bool bind_source(int fd, const struct httpc_peer *p, struct curl_sockaddr *addr)
{
    if (addr->family == AF_INET6 && p->origin->scope_id != 0)
        ((struct sockaddr_in6 *)(void *)&addr->addr)->sin6_scope_id = p->origin->scope_id;
    if (!p->has_source)
        return true;
    if (p->source.any.sa_family != addr->family) {
        errno = EAFNOSUPPORT;
        return false;
    }
    int on = 1; /* the port is chosen at connect, so that one source address can use each port once a destination */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return bind(fd, &p->source.any, addr->family == AF_INET ? sizeof p->source.v4 : sizeof p->source.v6) == 0;
}

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *addr)
{
    struct transfer *t = arg;
    if (purpose != CURLSOCKTYPE_IPCXN || t->peer == NULL || (t->x != NULL && !httpc_request_may_connect(t->x)))
        return CURL_SOCKET_BAD;
    int fd = socket(addr->family, addr->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, addr->protocol);
    if (t->stream != NULL)
        httpc_stream_connects(t->stream, fd);
    if (fd >= 0 && bind_source(fd, t->peer, addr)) {
        sock_register(t, fd);
        return fd;
    }
    t->os_errno = errno;
    if (fd >= 0)
        close(fd);
    return CURL_SOCKET_BAD;
}

static int on_close(void *arg, curl_socket_t fd)
{
    struct httpc *h = arg;
    struct sock *s = sock_at(h, fd);
    if (s != NULL) {
        if (s->upload != NULL)
            httpc_request_last_words(s);
        sock_free(h, s);
    }
    return close(fd);
}

/* ---- easy handles ---- */

/* Neither a proxy of the environment's nor a redirect leads to a host that the guard did not see. */
static void go_straight(CURL *e)
{
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
}

/* libs3 has handles of its own, and lets them follow; the linker sends that call here (--wrap=curl_easy_perform). */
CURLcode __wrap_curl_easy_perform(CURL *e);
CURLcode __real_curl_easy_perform(CURL *e);
CURLcode __wrap_curl_easy_perform(CURL *e)
{
    go_straight(e);
    return __real_curl_easy_perform(e);
}

CURL *httpc_easy_new(struct transfer *t)
{
    CURL *e = curl_easy_init();
    if (e == NULL)
        return NULL;
    struct httpc *h = t->h;
    curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    go_straight(e);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_DNS_CACHE_TIMEOUT, -1L); /* libcurl would walk its cache after each transfer */
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS, 1000L);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, t);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, h);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, h->insecure ? 0L : 1L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, h->insecure ? 0L : 2L);
    if (h->cafile != NULL)
        curl_easy_setopt(e, CURLOPT_CAINFO, h->cafile);
    return e;
}

/* ---- errors ---- */

enum explain { PLAIN, WITH_ERRNO, WITH_TEXT };
static const struct {
    CURLcode rc;
    enum err err;
    const char *what; /* followed by the server's address */
    enum explain add;
} causes[] = {
    {CURLE_COULDNT_CONNECT, ERR_CONNECT, "cannot connect to", WITH_ERRNO},
    {CURLE_OPERATION_TIMEDOUT, ERR_CONNECT, "no connection within 5 s to", PLAIN},
    {CURLE_COULDNT_RESOLVE_HOST, ERR_RESOLVE, "no address for", PLAIN},
    {CURLE_SSL_CONNECT_ERROR, ERR_TLS, "no TLS with", WITH_TEXT},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_TLS,
     "the certificate is not trusted (name its authority with --cafile, or skip the check with --insecure) of",
     WITH_TEXT},
    {CURLE_SSL_CACERT_BADFILE, ERR_TLS, "the --cafile cannot be used for", WITH_TEXT},
    {CURLE_GOT_NOTHING, ERR_CLOSED, "closed without an answer by", PLAIN},
    {CURLE_PARTIAL_FILE, ERR_CLOSED, "closed in mid-answer by", PLAIN},
    {CURLE_RECV_ERROR, ERR_RESET, "connection reset by", WITH_ERRNO},
    {CURLE_SEND_ERROR, ERR_RESET, "connection reset while sending to", WITH_ERRNO},
    {CURLE_BAD_CONTENT_ENCODING, ERR_PROTO, "a content coding that cannot be undone, from", PLAIN},
    {CURLE_BAD_FUNCTION_ARGUMENT, ERR_PROTO, "a first header line that continues none, from", PLAIN}, /* likewise */
    {CURLE_OUT_OF_MEMORY, ERR_LIMIT, "a header line of more than 100 KiB from", PLAIN}, /* its own limit, so told */
};

static enum err explain_errno(struct errinfo *ei, enum err err, const char *what, const char *server, int os_errno)
{
    if (os_errno == EMFILE || os_errno == ENFILE)
        what = "no more open files (raise ulimit -n) for a connection to";
    if (os_errno == EADDRNOTAVAIL)
        what = "no more local ports or no such source address for a connection to";
    if (os_errno == 0)
        return err_set(ei, err, "%s %s", what, server);
    errno = os_errno;
    return err_sys(ei, err, "%s %s", what, server);
}

enum err httpc_explain(const struct transfer *t, CURLcode rc, const char *curl_text, struct errinfo *ei)
{
    const struct http_url *u = &t->peer->origin->url;
    char server[300];
    snprintf(server, sizeof server, "%s:%d", u->host, u->port);
    long os_errno = 0;
    curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (t->os_errno != 0)
        os_errno = t->os_errno;
    if (curl_text == NULL || *curl_text == '\0')
        curl_text = curl_easy_strerror(rc);
    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        if (causes[i].rc != rc)
            continue;
        if (causes[i].add == WITH_ERRNO)
            return explain_errno(ei, causes[i].err, causes[i].what, server, (int)os_errno);
        if (rc == CURLE_SSL_CONNECT_ERROR && strstr(curl_text, "wrong version number"))
            return err_set(ei, ERR_TLS, "%s does not speak TLS: is it http://, not https://?", server);
        if (causes[i].add == WITH_TEXT)
            return err_set(ei, causes[i].err, "%s %s: %s", causes[i].what, server, curl_text);
        return err_set(ei, causes[i].err, "%s %s", causes[i].what, server);
    }
    return err_set(ei, ERR_PROTO, "no usable answer from %s: %s", server, curl_text);
}

/* ---- life ---- */

/* libcurl allocates and frees its receive buffer for each transfer. With glibc's default threshold the top of the heap
 * goes back to the system and is faulted in again every few requests: 4 % of the CPU of small requests. Setting one
 * threshold ends the adaption of the other, so both are set. */
static void start_libcurl(void)
{
    curl_global_init_mem(CURL_GLOBAL_ALL, recycle_alloc, recycle_free, recycle_realloc, recycle_strdup, recycle_zalloc);
#ifdef M_TRIM_THRESHOLD
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

enum err httpc_new(struct httpc **out, struct loop *l, const struct httpc_conf *conf, struct errinfo *ei)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_libcurl);

    struct httpc *h = mem_zalloc(sizeof *h);
    h->loop = l;
    h->tasks_tail = &h->tasks;
    h->peers_per_multi = conf != NULL && conf->peers_per_multi > 0 ? conf->peers_per_multi : PEERS_PER_MULTI;
    h->trace_first_header = httpc_first_header_is_unsafe();
    h->insecure = conf != NULL && conf->insecure;
    h->cafile = conf != NULL ? mem_strdup(conf->cafile) : NULL;
    struct buf agent = BUF_INIT(1024);
    enum err err = conf != NULL && conf->user_agent != NULL ? buf_append_str(&agent, conf->user_agent)
                                                            : buf_appendf(&agent, "drivesim/%s", drivesim_version);
    /* As CURLOPT_USERAGENT, libcurl would format it twice a request. */
    httpc_headers_set(&h->default_headers, "User-Agent", agent.len > 0 ? buf_cstr(&agent) : NULL);
    buf_done(&agent);
    if (err != ERR_OK)
        err = err_set(ei, err, "the user agent is too long");
    else if ((h->streams_multi = httpc_multi_new(h, ei)) == NULL)
        err = ERR_ENV;
    if (err != ERR_OK) {
        httpc_free(&h);
        return err;
    }
    *out = h;
    return ERR_OK;
}

void httpc_free(struct httpc **hp)
{
    struct httpc *h = *hp;
    if (h == NULL)
        return;
    httpc_stream_free_all(h);
    httpc_pool_free(h);
    httpc_multi_free(&h->streams_multi);
    for (struct multi *m; (m = h->multis) != NULL;) {
        h->multis = m->next;
        httpc_multi_free(&m);
    }
    for (struct origin *o; (o = h->origins) != NULL;) {
        h->origins = o->next;
        httpc_origin_free(&o);
    }
    loop_undefer(h->loop, run_tasks, h);
    for (size_t fd = 0; fd < h->socks_n; fd++)
        if (h->socks[fd] != NULL)
            sock_forget(h, h->socks[fd]);
    mem_free(h->socks);
    mem_free(h->cafile);
    httpc_headers_release(&h->default_headers);
    mem_free(h);
    *hp = NULL;
}

void httpc_stats(const struct httpc *h, struct httpc_stats *out)
{
    *out = h->stats;
}
