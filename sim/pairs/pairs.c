/* Delivery counts from the moment the sender's request goes out until the event is at the receiver, message until the
 * receiver has read the same bytes: both ends are this program, so one clock measures it. An event may come before the
 * sender's own answer does; that is no error. */
#include "sim/pairs/pairs.h"
#include "base/log.h"
#include "base/mem.h"
#include "sim/app/call.h"
#include "sim/app/run_folders.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TICK_US (100 * US_PER_MS)

struct due_pair {
    uint64_t number;
    struct mono due;
};
struct post { /* the receiver's letter box */
    const char *name;
    char id[DRIVE_ID_MAX + 1]; /* "": the sender has no answer yet */
    uint64_t events;           /* of the pair's file, since the stream was opened */
    struct mono last;          /* when the newest came */
    bool open, closed;
    struct api_result end; /* of the stream, once closed */
    struct done wake;
};
struct pairs;
struct couple { /* one worker: the connections of two apps */
    struct pairs *p;
    struct app sender, receiver;
    struct post post;
    struct mono sent; /* the message that is under way */
};
struct pairs {
    const struct pairs_conf *conf;
    struct worker *w;
    struct couple *couples;
    unsigned n; /* of couples that are initialised */
    struct run_folders folders;
    struct sem *streams;    /* of each login: the server's limit */
    struct due_pair *queue; /* a ring */
    unsigned head, held;
    struct sem ready, room; /* pairs in it, and places */
    uint64_t sent, succeeded, failed, messages, errors, saturated;
    struct hist *delivery, *message;
    struct mono began, last_begun, last;
};

/* ---- arithmetic ---- */

unsigned pairs_workers(const struct pairs_conf *c)
{
    double want = ceil(2 * c->per_s + c->per_s * (double)c->exchange_us / 1e6);
    return want < 1 ? 1 : want > (double)c->total ? (unsigned)c->total : (unsigned)want;
}

unsigned pairs_queue(const struct pairs_conf *c)
{
    double want = ceil(4 * c->per_s);
    return want < 1 ? 1 : (unsigned)want;
}

int64_t pairs_due_us(const struct pairs_conf *c, uint64_t i)
{
    double ramp = (double)c->ramp_us / 1e6, in_ramp = c->per_s * ramp / 2;
    double s = (double)i < in_ramp ? sqrt(2 * ramp * (double)i / c->per_s) : ramp + ((double)i - in_ramp) / c->per_s;
    return (int64_t)(s * 1e6);
}

/* ---- the receiver's stream ---- */

static void on_open(void *arg, int status)
{
    (void)arg, (void)status;
}

static void on_event(void *arg, const struct api_event *ev)
{
    struct post *post = arg;
    if (ev->connected)
        post->open = true;
    else if (strcmp(ev->name, post->name) == 0 || (post->id[0] && strcmp(ev->file_id, post->id) == 0)) {
        post->events++;
        post->last = mono_now();
    } else
        return;
    done_set(&post->wake);
}

static void on_close(void *arg, const struct api_result *r)
{
    struct post *post = arg;
    post->closed = true;
    post->end = *r;
    done_set(&post->wake);
}

static const struct api_stream_ops stream_ops = {on_open, on_event, on_close};

static bool has_come(const struct post *post, uint64_t k)
{
    return post->open && post->events >= k;
}

/* Until the stream is open and has brought k events of the pair's file: the k-th one is that of the k-th message, since
 * each is sent once the one before is answered. False: it ended, or not by the deadline. */
static MAY_YIELD bool await_event(struct couple *c, uint64_t k, struct mono deadline)
{
    while (!has_come(&c->post, k) && !c->post.closed && c->p->w->schedule.phase < PHASE_CUT)
        if (!done_wait_until(c->p->w->loop, &c->post.wake, deadline))
            break;
    return has_come(&c->post, k);
}

/* ---- one message ---- */

struct letter {
    struct couple *couple;
    struct content content;
    uint64_t k; /* from 1 */
    struct mono due;
    char version[DRIVE_ID_MAX + 1]; /* that the file had after the message before */
};

static MAY_YIELD bool send_letter(struct letter *l, const char *folder)
{
    struct couple *c = l->couple;
    struct arena *mem = arena_new(4096);
    struct drive_file made = {0};
    struct api_result r;
    const struct api_upload u = {
        .parent_id = folder, .name = c->post.name, .content = &l->content, .modified = wall_now()};
    struct call call = CALL(&c->sender, CAUSE_ACTION);
    app_take_session(&c->sender);
    do {
        c->sent = mono_now();
        if (l->k == 1)
            api_upload(c->sender.api, &u, mem, &made, &r);
        else
            api_replace(c->sender.api, c->post.id, c->post.name, l->version[0] ? l->version : NULL, NULL, &l->content,
                        mem, &made, &r);
    } while (call_again(&call, &r));
    call_record(&call, l->k == 1 ? OP_UPLOAD : OP_SAVE, &r, l->due);
    if (r.outcome == OUT_OK) {
        c->sender.login->account->writes++;
        str_fit(c->post.id, sizeof(c->post.id), made.id);
        str_fit(l->version, sizeof(l->version), made.version ? made.version : "");
    }
    arena_free(&mem);
    return r.outcome == OUT_OK;
}

static int on_body(void *arg, const char *p, size_t n)
{
    return content_check_feed(arg, p, n) ? 0 : 1;
}

static MAY_YIELD bool read_letter(struct letter *l)
{
    struct couple *c = l->couple;
    struct content_check check;
    struct api_result r;
    struct call call = CALL(&c->receiver, CAUSE_ACTION);
    app_take_session(&c->receiver);
    do {
        content_check_init(&check, &l->content, 0);
        api_download(c->receiver.api, c->post.id, 0, 0, on_body, &check, NULL, 0, &r);
    } while (call_again(&call, &r));
    if (check.wrong || (r.outcome == OUT_OK && !content_check_complete(&check)))
        call_wrong(&r, "the receiver read other bytes than the sender wrote");
    call_record(&call, OP_DOWNLOAD, &r, (struct mono){0});
    return r.outcome == OUT_OK;
}

static void record(struct pairs *p, enum drive_op op, struct hist *h, const struct letter *l, enum outcome outcome,
                   struct mono done, const char *reason)
{
    struct api_result r = {.outcome = outcome, .sent = l->couple->sent, .done = done};
    str_fit(r.reason, sizeof(r.reason), reason);
    if (outcome == OUT_OK)
        hist_record(h, mono_diff(done, r.sent));
    meter_record(&p->w->meter, op, &r, l->due);
}

static MAY_YIELD bool exchange_one(struct letter *l, const char *folder)
{
    struct couple *c = l->couple;
    struct pairs *p = c->p;
    char why[160];
    if (!send_letter(l, folder))
        return false;
    if (!await_event(c, l->k, mono_add(c->sent, p->conf->timeout_us))) {
        char limit[32];
        if (c->post.closed)
            str_format(why, sizeof(why), "the receiver's event stream ended: %s", c->post.end.reason);
        else
            str_format(why, sizeof(why), "no event at the receiver within %s",
                       str_duration(limit, sizeof(limit), p->conf->timeout_us));
        record(p, OP_DELIVERY, p->delivery, l, c->post.closed ? OUT_TRANSPORT : OUT_TIMEOUT, mono_now(), why);
        return false;
    }
    record(p, OP_DELIVERY, p->delivery, l, OUT_OK, c->post.last, "");
    if (!read_letter(l))
        return false;
    record(p, OP_MESSAGE, p->message, l, OUT_OK, mono_now(), "");
    return true;
}

/* ---- one pair ---- */

static MAY_YIELD bool open_stream(struct couple *c, struct api_stream **stream, struct mono due)
{
    struct worker *w = c->p->w;
    struct errinfo ei = {0};
    struct mono sent = mono_now(), deadline = mono_add(sent, c->p->conf->timeout_us);
    app_take_session(&c->receiver);
    enum err e = api_stream_open(stream, c->receiver.api, NULL, &stream_ops, &c->post, &ei);
    meter_requests(&w->meter, CAUSE_ACTION, 1);
    bool open = e == ERR_OK && await_event(c, 0, deadline);
    struct api_result r = {.outcome = OUT_OK, .sent = sent, .done = mono_now()};
    if (e != ERR_OK) {
        r.outcome = OUT_TRANSPORT;
        str_fit(r.reason, sizeof(r.reason), err_message(&ei));
    } else if (c->post.closed) {
        r = c->post.end;
        r.outcome = r.outcome == OUT_OK ? OUT_TRANSPORT : r.outcome;
    } else if (!open) {
        r.outcome = OUT_TIMEOUT;
        str_fit(r.reason, sizeof(r.reason), "nothing came on the event stream");
    }
    meter_record(&w->meter, OP_STREAM, &r, due);
    return open;
}

static MAY_YIELD bool exchange_all(struct couple *c, const struct due_pair *pair)
{
    struct pairs *p = c->p;
    const struct pairs_conf *conf = p->conf;
    const char *folder = run_folders_id(&p->folders, &c->sender);
    struct mono from = mono_now();
    struct letter l = {.couple = c, .due = pair->due};
    bool ok = true;
    do {
        l.k++;
        l.content = (struct content){.key = rng_mix64(p->w->run_key ^ pair->number),
                                     .revision = l.k,
                                     .parent_revision = l.k - 1,
                                     .size = conf->bytes,
                                     .ext = "bin",
                                     .literal = conf->payload};
        bool good = exchange_one(&l, folder);
        p->messages += good;
        p->errors += !good;
        ok = ok && good;
        l.due = mono_add(from, (int64_t)l.k * conf->interval_us);
        if (!good || mono_diff(l.due, from) >= conf->exchange_us)
            break;
    } while (worker_sleep(p->w, mono_diff(l.due, mono_now()), PHASE_DRAIN));
    return ok;
}

static MAY_YIELD void run_pair(struct couple *c, const struct due_pair *pair)
{
    struct pairs *p = c->p;
    struct api_stream *stream = NULL;
    struct sem *places = &p->streams[c->receiver.login->index];
    char name[60];
    snprintf(name, sizeof(name), "pair-%llu.bin", (unsigned long long)pair->number + 1);
    c->post = (struct post){.name = name};
    p->sent++;
    sem_take(p->w->loop, places, 1);
    p->last_begun = mono_now();
    bool ok = open_stream(c, &stream, pair->due) && exchange_all(c, pair);
    if (stream && !c->post.closed)
        api_stream_close(&stream);
    sem_give(places, 1);
    p->succeeded += ok;
    p->failed += !ok;
    p->last = mono_now();
}

/* ---- queue and workers ---- */

/* False: there are no more. */
static MAY_YIELD bool take_pair(struct pairs *p, struct due_pair *out)
{
    sem_take(p->w->loop, &p->ready, 1);
    if (!p->held || worker_draining(p->w))
        return false;
    *out = p->queue[p->head];
    p->head = (p->head + 1) % p->conf->queue;
    p->held--;
    sem_give(&p->room, 1);
    return true;
}

static void couple_lane(void *arg)
{
    struct couple *c = arg;
    struct due_pair pair;
    while (take_pair(c->p, &pair))
        run_pair(c, &pair);
}

/* A full queue holds the pairs up: they are then late, which their time from due shows, and the report says why. */
static MAY_YIELD void wait_for_room(struct pairs *p)
{
    if (sem_take_until(p->w->loop, &p->room, 1, mono_now()))
        return;
    if (!p->saturated++)
        LOGW("pairs", "worker pool saturated: all %s are at work and %s wait: more --workers, or fewer pairs a second",
             COUNTED(p->conf->workers, "worker"), COUNTED(p->conf->queue, "pair"));
    while (!worker_draining(p->w) && !sem_take_until(p->w->loop, &p->room, 1, mono_add(mono_now(), TICK_US)))
        continue;
}

static void dispatch(void *arg)
{
    struct pairs *p = arg;
    for (uint64_t i = 0; i < p->conf->total && !worker_draining(p->w); i++) {
        struct mono due = mono_add(p->began, pairs_due_us(p->conf, i));
        if (!worker_sleep(p->w, mono_diff(due, mono_now()), PHASE_DRAIN))
            break;
        wait_for_room(p);
        p->queue[(p->head + p->held++) % p->conf->queue] = (struct due_pair){i, due};
        sem_give(&p->ready, 1);
    }
    sem_give(&p->ready, p->conf->workers);
}

static MAY_YIELD void run_all(struct pairs *p)
{
    struct worker *w = p->w;
    struct group group = {0};
    struct progress *progress = progress_new(p->conf->out, p->conf->tty, "pairs", p->conf->total);
    p->began = p->last = mono_now();
    for (unsigned i = 0; i < p->n; i++)
        group_spawn(w->loop, &group, couple_lane, &p->couples[i]);
    group_spawn(w->loop, &group, dispatch, p);
    while (group.running > 0 && worker_sleep(w, TICK_US, PHASE_DRAIN)) {
        progress_set(progress, p->succeeded + p->failed, NULL);
        if (p->conf->duration_us && mono_diff(mono_now(), p->began) >= p->conf->duration_us)
            worker_set_phase(w, PHASE_DRAIN);
    }
    group_wait(w->loop, &group);
    progress_set(progress, p->succeeded + p->failed, NULL);
    progress_free(&progress);
}

/* ---- before and after ---- */

/* Pairs that go on at the same time hold a stream each, and a login has so many. */
static enum err enough_logins(const struct pairs *p, struct errinfo *ei)
{
    const struct pairs_conf *c = p->conf;
    double at_once = c->per_s * (double)c->exchange_us / 1e6;
    if (at_once > (double)c->total)
        at_once = (double)c->total;
    unsigned needed = (unsigned)ceil(at_once / DRIVE_STREAMS_PER_LOGIN);
    if (!(p->w->server.caps & API_CAP_EVENTS))
        return err_set(ei, ERR_ENV, "this server has no event stream: pairs cannot tell each other anything");
    if (needed <= p->w->roster.n_logins)
        return ERR_OK;
    return err_set(
        ei, ERR_ENV,
        "%.0f pairs go on at once, and the %s there are may hold %d event streams each: %u sub-users would do: "
        "sim seed %u SCALE adds them",
        ceil(at_once), COUNTED(p->w->roster.n_logins, "login"), DRIVE_STREAMS_PER_LOGIN, needed - 1, needed - 1);
}

/* The receiver is another login of the sender's account where there is one. */
static struct login *partner_of(const struct worker *w, const struct login *l)
{
    for (uint32_t i = 1; i < w->roster.n_logins; i++) {
        struct login *other = &w->roster.logins[(l->index + i) % w->roster.n_logins];
        if (other->account == l->account)
            return other;
    }
    return &w->roster.logins[l->index];
}

static enum err make_couples(struct pairs *p, struct errinfo *ei)
{
    struct worker *w = p->w;
    p->couples = mem_zalloc(p->conf->workers * sizeof(*p->couples));
    for (; p->n < p->conf->workers; p->n++) {
        struct couple *c = &p->couples[p->n];
        enum err e = app_init_bare(&c->sender, w, p->n, p->conf->timeout_us, ei);
        if (e == ERR_OK &&
            (e = app_init_bare(&c->receiver, w, p->conf->workers + p->n, p->conf->timeout_us, ei)) != ERR_OK)
            app_done(&c->sender);
        if (e != ERR_OK)
            return e;
        c->receiver.login = partner_of(w, c->sender.login);
        c->p = p;
    }
    return ERR_OK;
}

static MAY_YIELD enum err prepare(struct pairs *p, struct errinfo *ei)
{
    struct worker *w = p->w;
    run_folders_init(&p->folders, w, "Pairs");
    p->streams = mem_zalloc(w->roster.n_logins * sizeof(*p->streams));
    p->queue = mem_zalloc(p->conf->queue * sizeof(*p->queue));
    p->delivery = hist_new();
    p->message = hist_new();
    sem_init_coro(&p->ready, 0);
    sem_init_coro(&p->room, p->conf->queue);
    for (uint32_t i = 0; i < w->roster.n_logins; i++)
        sem_init_coro(&p->streams[i], DRIVE_STREAMS_PER_LOGIN);
    enum err e = enough_logins(p, ei);
    if (e == ERR_OK)
        e = make_couples(p, ei);
    for (unsigned i = 0; i < p->n && e == ERR_OK; i++)
        e = run_folders_make(&p->folders, &p->couples[i].sender, ei);
    return e;
}

static void release(struct pairs *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        app_done(&p->couples[i].sender);
        app_done(&p->couples[i].receiver);
    }
    hist_free(&p->delivery);
    hist_free(&p->message);
    mem_free(p->couples);
    run_folders_done(&p->folders);
    mem_free(p->streams);
    mem_free(p->queue);
}

/* ---- what came of it ---- */

static const struct {
    const char *key, *text;
    double pct; /* -1: the mean */
} times[] = {{"min_ms", "min", 0},  {"p50_ms", "p50", 50},  {"p95_ms", "p95", 95},
             {"p99_ms", "p99", 99}, {"max_ms", "max", 100}, {"mean_ms", "mean", -1}};

static double time_ms(const struct hist *h, double pct)
{
    return pct < 0 ? hist_mean(h) / 1e3 : hist_percentile_ms(h, pct);
}

/* From the first pair's due time to the last one's end: what the server kept up with. Pairs that go on for a while are
 * counted as they begin, the last one's share of time included. */
static double rate_reached(const struct pairs *p)
{
    bool goes_on = p->conf->exchange_us > 0;
    double us = goes_on ? (double)mono_diff(p->last_begun, p->began) + 1e6 / p->conf->per_s
                        : (double)mono_diff(p->last, p->began);
    return us > 0 ? (double)(goes_on ? p->sent : p->succeeded + p->failed) * 1e6 / us : 0;
}

static void add_figures(struct result *r, const struct pairs *p)
{
    const struct {
        const char *key;
        double value;
        int decimals;
    } rows[] = {
        {"asked_per_second", p->conf->per_s, 2},
        {"per_second", rate_reached(p), 2},
        {"sent", (double)p->sent, 0},
        {"succeeded", (double)p->succeeded, 0},
        {"failed", (double)p->failed, 0},
        {"messages", (double)p->messages, 0},
        {"errors", (double)p->errors, 0},
        {"saturated", (double)p->saturated, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        result_figure(r, "pairs", rows[i].key, rows[i].value, rows[i].decimals);
    for (size_t i = 0; i < ARRAY_LEN(times) && hist_count(p->delivery); i++)
        result_figure(r, "pairs", times[i].key, time_ms(p->delivery, times[i].pct), 3);
}

void pairs_sample(struct result *r)
{
    const struct pairs_conf conf = {0};
    struct pairs p = {.conf = &conf, .delivery = hist_new()};
    hist_record(p.delivery, 1);
    add_figures(r, &p);
    hist_free(&p.delivery);
}

static void print_times(FILE *out, const char *what, const struct hist *h)
{
    char cell[32];
    fprintf(out, "%-34s", what);
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        str_format(cell, sizeof(cell), "%.3f", time_ms(h, times[i].pct));
        fprintf(out, " %9s", hist_count(h) ? cell : "-");
    }
    fputc('\n', out);
}

static void print_report(const struct pairs *p)
{
    FILE *out = p->conf->out;
    char line[200];
    if (!out)
        return;
    str_format(line, sizeof(line), "pairs: %.2f pairs/s of %.2f asked; %llu sent, %llu succeeded, %llu failed",
               rate_reached(p), p->conf->per_s, (unsigned long long)p->sent, (unsigned long long)p->succeeded,
               (unsigned long long)p->failed);
    fprintf(out, "%s\npairs: %s, %s%s\n", line, COUNTED(p->messages, "message"), COUNTED(p->errors, "error"),
            p->saturated ? "; the worker pool was saturated: pairs began late" : "");
    fprintf(out, "%-34s", "ms");
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        fprintf(out, " %9s", times[i].text);
    fputc('\n', out);
    print_times(out, "delivery: sent to event", p->delivery);
    print_times(out, "message: sent to same bytes read", p->message);
    fflush(out);
}

enum err pairs_run(struct worker *w, const struct pairs_conf *conf, struct errinfo *ei)
{
    struct pairs p = {.conf = conf, .w = w};
    enum err e = prepare(&p, ei);
    if (e == ERR_OK) {
        run_all(&p);
        print_report(&p);
        add_figures(w->ctx->result, &p);
    }
    run_folders_remove(&p.folders, "pairs");
    release(&p);
    return e;
}
