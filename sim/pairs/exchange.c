/* Delivery counts from the moment the sender's request goes out until the event is at the receiver, message until the
 * receiver has read the same bytes: both ends are this program, so one clock measures it. An event may come before the
 * sender's own answer does; that is no error. */
#include "base/mem.h"
#include "sim/app/call.h"
#include "sim/pairs/impl.h"

#include <stdio.h>
#include <string.h>

/* ---- the receiver's stream ---- */

static void on_open(void *arg)
{
    (void)arg;
}

static void on_event(void *arg, const struct api_event *ev)
{
    struct post *post = arg;
    if (ev->connected)
        post->open = true;
    else if (strcmp(ev->name, post->name) == 0 || (post->id[0] && ev->file_id && strcmp(ev->file_id, post->id) == 0)) {
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
        bool ours = c->post.closed && c->post.end.outcome == OUT_LOCAL;
        record(p, OP_DELIVERY, p->delivery, l,
               ours             ? OUT_LOCAL
               : c->post.closed ? OUT_TRANSPORT
                                : OUT_TIMEOUT,
               mono_now(), why);
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
    call_because(&c->receiver, CAUSE_ACTION);
    enum err e = api_stream_open(stream, c->receiver.api, NULL, &stream_ops, &c->post, &ei);
    bool open = e == ERR_OK && await_event(c, 0, deadline);
    struct api_result r = {.outcome = OUT_OK, .sent = sent, .done = mono_now()};
    if (e != ERR_OK) {
        r.outcome = e == ERR_LOCAL ? OUT_LOCAL : OUT_TRANSPORT;
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

void pairs_exchange(struct couple *c, const struct due_pair *pair)
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
    api_stream_close(&stream);
    sem_give(places, 1);
    p->succeeded += ok;
    p->failed += !ok;
    p->last = mono_now();
}
