/* `sim http`: one request, over and over, against any URL: the classic stress report. The one command that needs no
 * drive server; it still goes to this machine alone unless another host is named. */
#include "base/digest.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/version.h"
#include "drive/cmd.h"
#include "drive/health.h"
#include "net/guard.h"
#include "net/http_url.h"
#include "sim/app/open_files.h"
#include "sim/app/recorder.h"
#include "sim/http/report.h"
#include "sim/stop/kill_switch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BODY_MAX (1u << 30) /* it stays in memory, so that sending it costs nothing but the sending */

struct http_options {
    const char *url, *method, *file, *content_type;
    int64_t requests, connections, limit_us, timeout_us;
    double rate;
    bool keep_alive;
    struct opt_list headers;
};
static const struct opt_pos pos[] = {
    {"url", OPT_STR, offsetof(struct http_options, url), 0, 0, false,
     "http:// or https://; user:password@ is sent as Basic sign-in"},
    {0},
};
static const struct opt opts[] = {
    {"requests", 'n', "N", OPT_INT, offsetof(struct http_options, requests), 1, 1e12,
     "how many (default 1, or as many as -t allows)"},
    {"connections", 'c', "N", OPT_INT, offsetof(struct http_options, connections), 1, 100000,
     "how many at a time (default 1)"},
    {"time", 't', "TIME", OPT_DURATION, offsetof(struct http_options, limit_us), 1e4, 8.64e10,
     "no new request after it; those running then get 5 s"},
    {"upload", 'T', "FILE", OPT_STR, offsetof(struct http_options, file), 0, 0, "send FILE with PUT"},
    {"keep-alive", 'k', NULL, OPT_FLAG, offsetof(struct http_options, keep_alive), 0, 0,
     "reuse connections; otherwise each request opens its own"},
    {"rate", 'r', "N", OPT_NUM, offsetof(struct http_options, rate), 1e-3, 1e7,
     "open loop: N requests are due each second, whatever the\nserver does (default: the next one follows the answer)"},
    {"method", 'm', "METHOD", OPT_STR, offsetof(struct http_options, method), 0, 0,
     "instead of GET, or of PUT with -T"},
    {"header", 'H', "LINE", OPT_LIST, offsetof(struct http_options, headers), 0, 0, "'Name: value'; may be repeated"},
    {"content-type", 0, "TYPE", OPT_STR, offsetof(struct http_options, content_type), 0, 0,
     "of FILE (default application/octet-stream)"},
    {"timeout", 0, "TIME", OPT_DURATION, offsetof(struct http_options, timeout_us), 1e3, 8.64e10,
     "of one request (default 30 s)"},
    {0},
};
static const struct http_options defaults = {.connections = 1, .timeout_us = 30 * US_PER_S};

struct http_run {
    const struct http_options *o;
    struct cmd_ctx *ctx;
    struct http_url url;
    const char *path; /* from the first / or ? after the host */
    struct buf origin, head;
    char *body;
    size_t body_n;
    struct http_report *report;
    struct progress *progress;
    struct stats interval;
    struct recorder recorder;
    struct stress *stress;
    struct health began; /* with the load */
};

/* ---- the request ---- */

static enum err read_body(struct http_run *h, struct errinfo *ei)
{
    struct buf all = BUF_INIT(BODY_MAX);
    enum err err = h->o->file ? file_read(h->o->file, &all, ERR_USAGE, ei) : ERR_OK;
    if (!err)
        h->body = buf_take(&all, &h->body_n);
    buf_done(&all);
    return err;
}

static bool header_is(const char *line, const char *name)
{
    struct sv rest = sv_of(line), head;
    return sv_split(&rest, ':', &head) && sv_ieq(sv_trim(head), sv_of(name));
}

static bool overridden(const struct http_run *h, const char *name)
{
    for (size_t i = 0; i < h->o->headers.n; i++)
        if (header_is(h->o->headers.items[i], name))
            return true;
    return false;
}

static enum err add_header(struct http_run *h, const char *name, const char *value)
{
    return overridden(h, name) ? ERR_OK : buf_appendf(&h->head, "%s: %s\r\n", name, value);
}

static enum err add_sign_in(struct http_run *h)
{
    struct buf pair = BUF_INIT(2048), coded = BUF_INIT(4096);
    enum err err = ERR_OK;
    if (h->url.user && !(err = buf_appendf(&pair, "%s:%s", h->url.user, h->url.password ? h->url.password : "")) &&
        !(err = buf_append_str(&coded, "Basic ")) && !(err = digest_base64(&coded, pair.data, pair.len)))
        err = add_header(h, "Authorization", buf_cstr(&coded));
    buf_done(&pair);
    buf_done(&coded);
    return err;
}

static const char *method_of(const struct http_options *o)
{
    return o->method ? o->method : o->file ? "PUT" : "GET";
}

static bool is_token(const char *s)
{
    return *s && s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_")] == '\0';
}

static enum err write_head(struct http_run *h, struct errinfo *ei)
{
    const struct http_options *o = h->o;
    char host[300], text[64] = "";
    bool usual = h->url.port == (strcmp(h->url.scheme, "https") == 0 ? 443 : 80);
    if (!usual)
        str_format(text, sizeof text, ":%d", h->url.port);
    str_format(host, sizeof host, "%s%s", h->url.host, text);
    enum err err = buf_appendf(&h->head, "%s %s%s HTTP/1.1\r\n", method_of(o), *h->path == '/' ? "" : "/", h->path);
    if (!err)
        err = add_header(h, "Host", host);
    str_format(text, sizeof text, "drivesim/%s", drivesim_version);
    if (!err)
        err = add_header(h, "User-Agent", text);
    if (!err)
        err = add_header(h, "Accept", "*/*");
    if (!err)
        err = buf_appendf(&h->head, "Connection: %s\r\n", o->keep_alive ? "keep-alive" : "close");
    if (!err)
        err = add_sign_in(h);
    if (!err && o->file)
        err = add_header(h, "Content-Type", o->content_type ? o->content_type : "application/octet-stream");
    if (!err && (o->file || strcmp(method_of(o), "POST") == 0))
        err = buf_appendf(&h->head, "Content-Length: %zu\r\n", h->body_n);
    for (size_t i = 0; i < o->headers.n && !err; i++)
        err = buf_appendf(&h->head, "%s\r\n", o->headers.items[i]);
    if (!err)
        err = buf_append_str(&h->head, "\r\n");
    return err ? err_set(ei, ERR_USAGE, "the request's head is longer than 64 KiB") : ERR_OK;
}

/* RFC 9110, section 5.6.2: a token. */
static bool is_header_name(struct sv name)
{
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] <= ' ' || name.p[i] >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", name.p[i]))
            return false;
    return name.n > 0;
}

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct http_options *o = arg;
    if (o->method && !is_token(o->method))
        return err_set(ei, ERR_USAGE, "--method takes a word such as POST");
    if (o->content_type && strpbrk(o->content_type, "\r\n"))
        return err_set(ei, ERR_USAGE, "--content-type takes one line");
    for (size_t i = 0; i < o->headers.n; i++) {
        const char *line = o->headers.items[i], *colon = strchr(line, ':');
        if (!colon || !is_header_name((struct sv){line, (size_t)(colon - line)}) || strpbrk(line, "\r\n"))
            return err_set(ei, ERR_USAGE, "--header takes 'Name: value' on one line");
        if (header_is(line, "Connection") || header_is(line, "Content-Length") || header_is(line, "Transfer-Encoding"))
            return err_set(ei, ERR_USAGE, "Connection is set by --keep-alive, the length by --upload");
    }
    return ERR_OK;
}

/* The path goes out as it was given: whoever stresses a page knows how its name is encoded. */
static enum err split_url(struct http_run *h, struct errinfo *ei)
{
    const char *text = h->o->url, *slashes = strstr(text, "://");
    size_t authority = slashes ? (size_t)(slashes + 3 - text) : 0;
    authority += strcspn(text + authority, "/?#");
    h->path = text + authority;
    for (const unsigned char *c = (const unsigned char *)h->path; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '#')
            return err_set(ei, ERR_USAGE,
                           "the path contains a blank, a # or bytes that a URL cannot hold: percent-encode them");
    enum err err = buf_append(&h->origin, text, authority);
    if (!err)
        err = http_url_parse(buf_cstr(&h->origin), &h->url, ei);
    if (err == ERR_USAGE && strchr(h->path, '@') && !strchr(buf_cstr(&h->origin), '@'))
        err = err_set(ei, ERR_USAGE, "this URL: a '/', '?' or '#' in its password has to be percent-encoded");
    if (!err && h->url.user)
        secret_add_basic(sv_of(h->url.user), sv_of(h->url.password));
    return err;
}

/* ---- the run ---- */

static enum outcome outcome_of(const struct stress_sample *s)
{
    static const enum outcome without[STRESS_FAILURES] = {
        [STRESS_CONNECT] = OUT_TRANSPORT, [STRESS_SEND] = OUT_TRANSPORT,     [STRESS_RECEIVE] = OUT_TRANSPORT,
        [STRESS_TIMEOUT] = OUT_TIMEOUT,   [STRESS_PROTOCOL] = OUT_TRANSPORT, [STRESS_UNFINISHED] = OUT_UNFINISHED,
        [STRESS_LOCAL] = OUT_LOCAL,
    };
    return s->failure == STRESS_ANSWERED ? outcome_of_status(s->status) : without[s->failure];
}

static void on_sample(void *arg, const struct stress_sample *s)
{
    struct http_run *h = arg;
    struct stats *stats = &h->interval;
    struct api_result r;
    r.outcome = outcome_of(s);
    r.status = s->status;
    r.done = s->done;
    r.sent = mono_add(s->done, -s->total_us);
    r.bytes_up = s->bytes_sent;
    r.bytes_down = s->bytes_received;
    if (r.outcome != OUT_OK)
        str_fit(r.reason, sizeof r.reason, s->failure == STRESS_ANSWERED ? "from the server" : s->reason);
    /* in a closed loop one is sent when another has ended: it has no time of its own */
    stats_record(stats, OP_REQUEST, &r, h->o->rate > 0 ? mono_add(s->done, -s->from_due_us) : (struct mono){0});
    stats->by_cause[CAUSE_ACTION]++;
    stats->reconnects += s->retried;
    http_report_add(h->report, s);
    if (h->progress && (http_report_ended(h->report) & 63) == 0)
        progress_set(h->progress, http_report_ended(h->report), NULL);
}

static void on_interrupt(void *arg)
{
    struct http_run *h = arg;
    stress_stop(h->stress, *h->ctx->interrupts > 1);
    recorder_add(&h->recorder);
}

static struct stress_conf conf_of(struct http_run *h)
{
    const struct http_options *o = h->o;
    const char *method = method_of(o);
    bool endless = !o->requests && o->limit_us;
    return (struct stress_conf){
        .url = buf_cstr(&h->origin),
        .cafile = h->ctx->common->cafile,
        .insecure = h->ctx->common->insecure,
        .head = {h->head.data, h->head.len},
        .body = {h->body, h->body_n},
        .is_head = strcmp(method, "HEAD") == 0,
        .idempotent = strcmp(method, "POST") != 0 && strcmp(method, "PATCH") != 0,
        .keep_alive = o->keep_alive,
        .connections = (unsigned)o->connections,
        .requests = o->requests ? (uint64_t)o->requests
                    : endless   ? 0
                                : 1,
        .limit_us = o->limit_us,
        .timeout_us = o->timeout_us,
        .rate = o->rate,
        .on_sample = on_sample,
        .arg = h,
    };
}

/* What was measured, for people and in the result. */
static void tell(struct http_run *h, int64_t took_us)
{
    const struct http_report_head head = {h->url.host, *h->path ? h->path : "/", h->url.port};
    const struct stress_info *info = stress_info(h->stress);
    h->ctx->result->seconds_us = took_us;
    http_report_print(h->report, &head, info, took_us, h->ctx->out);
    http_report_fill(h->report, info, took_us, h->ctx->result);
    const struct health_span span = health_since(&h->began);
    struct health_verdict v = {0};
    (void)health_judge(&v, &span, hist_percentile(loop_lag(h->ctx->loop), 99));
    h->ctx->result->generator = health_summary(loop_lag(h->ctx->loop), &v);
}

static MAY_YIELD enum err stress(struct http_run *h, struct errinfo *ei)
{
    const struct stress_conf conf = conf_of(h);
    enum err err = stress_new(&h->stress, h->ctx->loop, &conf, ei);
    if (err)
        return err;
    h->report = http_report_new(conf.connections, conf.rate);
    if (!h->ctx->common->quiet)
        h->progress = progress_new(h->ctx->out, h->ctx->tty, "requests", conf.requests);
    h->ctx->on_interrupt_arg = h;
    h->ctx->on_interrupt = on_interrupt;
    health_begin(&h->began);
    hist_reset(loop_lag(h->ctx->loop));
    struct mono from = mono_now();
    recorder_start(&h->recorder, h->ctx, &h->interval, from);
    stress_run(h->stress);
    int64_t took = mono_diff(mono_now(), from);
    recorder_stop(&h->recorder);
    h->ctx->on_interrupt = NULL;
    if (h->progress)
        progress_set(h->progress, http_report_ended(h->report), NULL);
    progress_free(&h->progress);
    tell(h, took);
    return ERR_OK;
}

/* `sim stop` finds it by the drive that the page is of: a query is no part of that. */
static void name_target(const struct http_run *h)
{
    struct buf url = BUF_INIT(64 << 10);
    if (buf_appendf(&url, "%s%.*s", buf_cstr(&h->origin), (int)strcspn(h->path, "?"), h->path) == ERR_OK)
        kill_switch_target(h->ctx->kill_switch, buf_cstr(&url));
    buf_done(&url);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    struct http_run *h = mem_alloc(sizeof(*h));
    *h = (struct http_run){.o = arg, .ctx = ctx, .origin = BUF_INIT(4096), .head = BUF_INIT(65536)};
    stats_init(&h->interval);
    enum err err = split_url(h, ei);
    if (!err)
        err = guard_judge(h->url.host, ei);
    if (!err)
        name_target(h);
    if (!err)
        err = open_files_for_connections((unsigned)h->o->connections, ei);
    if (!err)
        err = read_body(h, ei);
    if (!err)
        err = write_head(h, ei);
    if (!err)
        err = stress(h, ei);
    stress_free(&h->stress);
    http_report_free(&h->report);
    stats_done(&h->interval);
    http_url_done(&h->url);
    mem_free(h->body);
    buf_done(&h->origin);
    buf_done(&h->head);
    mem_free(h);
    return err;
}

static void sample(struct result *r)
{
    const struct stress_info none = {0};
    struct http_report *empty = http_report_new(1, 0);
    http_report_fill(empty, &none, 0, r);
    http_report_free(&empty);
}

const struct command cmd_http = {
    .name = "http",
    .summary = "plain HTTP stress of any URL, for a page or an upload with PUT",
    .usage = "sim http <url> [-n N] [-c N] [-t TIME] [-T FILE] [-k] [options]",
    .examples = "sim http http://127.0.0.1:8080/ -n 10000 -c 500\n"
                "sim http http://127.0.0.1:8080/ -t 30s -c 50 -k --fail-on 'http.requests_per_s>1000' --fail-on "
                "'http.total.p99<200ms'\n"
                "sim http http://127.0.0.1:8080/ --rate 100 -t 1min -c 200 -k\n"
                "sim http http://127.0.0.1:8080/upload/x -T payload.bin -n 100 -c 10",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct http_options),
    .defaults = &defaults,
    .flags = CMD_LOADS | CMD_FAILURES_MATTER,
    .verify = verify,
    .run = run,
    .sample = sample,
};
