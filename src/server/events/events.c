/* A frame is made once an event and sent to each of the account's streams. Keepalives go round a wheel of 300 slots in
 * 30 s, so that thousands of streams never speak all at once. */
#include "server/events/events.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/coro.h"
#include "server/events/hub.h"
#include "server/objects/storage.h"
#include "store/kv.h"
#include <stdio.h>
#include <string.h>

#define CHANNELS  "drive:*"
#define EVENTS    "drive:events:"
#define CONTROL   "drive:control"
#define FRAME_MAX (1024 * 1024)

static struct stream **slot_of(struct hub *h, unsigned slot)
{
    return &h->wheel[slot % WHEEL_SLOTS];
}

static void unlink_from_wheel(struct stream *st)
{
    *st->wheel_at = st->wheel_next;
    if (st->wheel_next)
        st->wheel_next->wheel_at = st->wheel_at;
}

static void link_to_wheel(struct hub *h, struct stream *st)
{
    struct stream **at = slot_of(h, h->next_slot++);
    st->wheel_next = *at;
    st->wheel_at = at;
    if (*at)
        (*at)->wheel_at = &st->wheel_next;
    *at = st;
}

static struct circle *circle_of(struct map *m, const char *id)
{
    struct circle *c = map_get(m, sv_of(id));
    if (!c) {
        c = mem_zalloc(sizeof *c);
        c->sent = -1;
        snprintf(c->id, sizeof c->id, "%s", id);
        map_put(m, sv_of(id), c);
    }
    return c;
}

static void leave_circle(struct map *m, struct circle *c)
{
    if (--c->n > 0)
        return;
    map_take(m, sv_of(c->id));
    order_done(c);
    mem_free(c);
}

size_t hub_user_streams(struct hub *h, const char *user_id)
{
    struct circle *c = map_get(h->users, sv_of(user_id));
    return c ? c->n : 0;
}

struct stream *hub_join(struct hub *h, const struct login *who)
{
    struct stream *st = mem_zalloc(sizeof *st);
    st->hub = h;
    st->account = circle_of(h->accounts, who->account_id);
    st->user = circle_of(h->users, who->user_id);
    st->user->n++;
    snprintf(st->session_id, sizeof st->session_id, "%s", who->session_id);
    st->next = st->account->first;
    if (st->next)
        st->next->prev = st;
    st->account->first = st;
    st->account->n++;
    link_to_wheel(h, st);
    return st;
}

void hub_leave(struct stream *st)
{
    struct hub *h = st->hub;
    if (st->prev)
        st->prev->next = st->next;
    else
        st->account->first = st->next;
    if (st->next)
        st->next->prev = st->prev;
    unlink_from_wheel(st);
    leave_circle(h->accounts, st->account);
    leave_circle(h->users, st->user);
    while (st->held) {
        struct held *held = st->held;
        st->held = held->next;
        mem_free(held);
    }
    mem_free(st);
}

/* A reader that is too slow is let go: it comes back with the id of what it saw last. */
bool stream_send(struct stream *st, struct sv frame)
{
    if (st->push && push_send(st->push, frame))
        return true;
    if (st->push)
        push_close(st->push);
    return false;
}

/* While a stream still catches up from the database, live frames wait their turn. */
static void hold(struct stream *st, int64_t seq, struct sv frame)
{
    if (st->n_held == HELD_MAX) {
        st->lost = true;
        return;
    }
    struct held *held = mem_alloc(sizeof *held + frame.n);
    *held = (struct held){NULL, seq, frame.n};
    memcpy(held->text, frame.p, frame.n);
    *(st->held ? &st->held_last->next : &st->held) = held;
    st->held_last = held;
    st->n_held++;
}

static void deliver(struct stream *st, int64_t seq, struct sv frame)
{
    if (seq >= 0 && seq <= st->seen)
        return;
    if (!st->live)
        hold(st, seq, frame);
    else if (stream_send(st, frame))
        st->hub->server->metrics.events_sent++;
}

void circle_deliver(const struct circle *c, int64_t seq, struct sv frame)
{
    for (struct stream *st = c->first; st; st = st->next)
        deliver(st, seq, frame);
}

void circle_resync(struct server *s, const struct circle *c)
{
    struct buf frame = BUF_INIT(1024);
    for (struct stream *st = c->first; st; st = st->next) {
        frame_resync(s, &frame, NULL);
        deliver(st, -1, (struct sv){buf_cstr(&frame), frame.len});
    }
    buf_done(&frame);
}

void stream_drop_held(struct stream *st, int64_t beyond)
{
    struct held **at = &st->held;
    st->held_last = NULL;
    st->n_held = 0;
    while (*at) {
        struct held *held = *at;
        if (held->seq > beyond) {
            *at = held->next;
            mem_free(held);
            continue;
        }
        st->held_last = held;
        st->n_held++;
        at = &held->next;
    }
}

void stream_go_live(struct stream *st)
{
    st->live = true;
    while (st->held) {
        struct held *held = st->held;
        st->held = held->next;
        deliver(st, held->seq, (struct sv){held->text, held->n});
        mem_free(held);
    }
    st->n_held = 0;
}

void frame_resync(struct server *s, struct buf *out, const char *cursor)
{
    char at[32];
    buf_reset(out);
    if (buf_appendf(out, "data: {\"type\":\"resync\",\"timestamp\":\"%s\"%s%s%s,\"data\":{}}\n\n",
                    wall_format(at, sizeof at, wall_now()), cursor ? ",\"cursor\":\"" : "", cursor ? cursor : "",
                    cursor ? "\"" : "") == ERR_OK)
        s->metrics.resyncs++;
}

static bool resync_one(void *arg, struct sv key, void *value)
{
    (void)key;
    circle_resync(arg, value);
    return true;
}

static void resync_here(struct server *s, const char *account_id)
{
    struct hub *h = s->hub;
    if (!account_id || !*account_id) {
        map_filter(h->accounts, resync_one, s);
        return;
    }
    const struct circle *c = map_get(h->accounts, sv_of(account_id));
    if (c)
        circle_resync(s, c);
}

static bool drop_of_session(void *arg, struct sv key, void *value)
{
    const struct sv *session_id = arg;
    (void)key;
    for (struct stream *st = ((struct circle *)value)->first; st; st = st->next)
        if (sv_eq_cstr(*session_id, st->session_id) && st->push)
            push_close(st->push);
    return true;
}

void events_drop_session(struct server *s, const char *session_id)
{
    struct sv id = sv_of(session_id);
    map_filter(s->hub->accounts, drop_of_session, &id);
}

static bool drop_of_user(void *arg, struct sv key, void *value)
{
    const struct circle *user = arg;
    (void)key;
    for (struct stream *st = ((struct circle *)value)->first; st; st = st->next)
        if (st->user == user && st->push)
            push_close(st->push);
    return true;
}

void events_drop_user(struct server *s, const char *user_id)
{
    struct circle *user = map_get(s->hub->users, sv_of(user_id));
    if (user)
        map_filter(s->hub->accounts, drop_of_user, user);
}

bool cursor_parse(const struct server *s, struct sv text, int64_t *seq)
{
    struct sv epoch;
    return text.p && sv_split(&text, '-', &epoch) && sv_eq_cstr(epoch, s->epoch) && sv_to_i64(text, seq) && *seq >= 0;
}

char *cursor_format(const struct server *s, char dst[CURSOR_MAX], int64_t seq)
{
    snprintf(dst, CURSOR_MAX, "%s-%lld", s->epoch, (long long)seq);
    return dst;
}

enum err frame_event(struct server *s, struct buf *out, int64_t seq, const char *type, const char *at, struct sv data)
{
    char cursor[CURSOR_MAX];
    struct jsonw w;
    cursor_format(s, cursor, seq);
    enum err err = buf_appendf(out, "id: %s\ndata: ", cursor);
    jsonw_init(&w, out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "type", type);
    jsonw_str(&w, "timestamp", at);
    jsonw_str(&w, "cursor", cursor);
    jsonw_raw(&w, "data", data);
    jsonw_end_object(&w);
    if (!err)
        err = w.err;
    return err ? err : buf_append_str(out, "\n\n");
}

/* "<seq> <frame>": a receiver passes the frame on as it is. */
void events_publish(struct server *s, const char *account_id, int64_t seq, const char *type, const struct buf *data)
{
    struct buf message = BUF_INIT(FRAME_MAX);
    char at[32], channel[sizeof EVENTS + DRIVE_ID_MAX + 1];

    snprintf(channel, sizeof channel, EVENTS "%s", account_id);
    enum err err = buf_appendf(&message, "%lld ", (long long)seq);
    if (!err)
        err = frame_event(s, &message, seq, type, wall_format(at, sizeof at, wall_now()),
                          (struct sv){buf_cstr(data), data->len});
    struct sv argv[] = {SV("PUBLISH"), sv_of(channel), {buf_cstr(&message), message.len}};
    if (err || !kv_send(s->kv, 3, argv))
        events_resync(s, account_id);
    buf_done(&message);
}

void events_control(struct server *s, const char *what, const char *id)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s", what, id);
    struct sv argv[] = {SV("PUBLISH"), SV(CONTROL), sv_of(text)};
    if (!kv_send(s->kv, 3, argv))
        LOGD("events", "Redis is away: other processes were not told of %s", text);
}

/* By Redis, so that every process hears it; what can't be said now is said to all when Redis is back. */
void events_resync(struct server *s, const char *account_id)
{
    char text[128];
    snprintf(text, sizeof text, "resync %s", account_id ? account_id : "");
    struct sv argv[] = {SV("PUBLISH"), SV(CONTROL), sv_of(text)};
    if (!kv_send(s->kv, 3, argv))
        s->hub->owes_resync = true;
}

static void on_control(struct server *s, struct sv text)
{
    char what[32], id[DRIVE_ID_MAX + 1];
    struct sv head;
    if (!sv_split(&text, ' ', &head) || head.n >= sizeof what || text.n >= sizeof id)
        return;
    snprintf(what, sizeof what, SV_FMT, SV_ARG(head));
    snprintf(id, sizeof id, SV_FMT, SV_ARG(text));
    if (strcmp(what, "resync") == 0)
        resync_here(s, id);
    else if (strcmp(what, "storage") == 0)
        storage_look(s);
    else
        session_on_control(s, what, id);
}

static void on_message(void *arg, struct sv channel, struct sv payload)
{
    struct server *s = arg;
    struct sv seq_text;
    int64_t seq;
    if (!s->hub)
        return;

    if (sv_eq_cstr(channel, CONTROL)) {
        on_control(s, payload);
        return;
    }
    if (!sv_starts(channel, SV(EVENTS)) || !sv_split(&payload, ' ', &seq_text) || !sv_to_i64(seq_text, &seq))
        return;
    struct sv account = {channel.p + strlen(EVENTS), channel.n - strlen(EVENTS)};
    struct circle *c = map_get(s->hub->accounts, account);
    if (c)
        order_message(s, c, seq, payload);
}

static void on_up(void *arg, bool up)
{
    struct server *s = arg;
    struct hub *h = s->hub;
    if (!h)
        return;
    if (!up) {
        LOGW("events", "the subscription on Redis is lost: events are missed until it is back");
        h->was_down = true;
    } else if (h->was_down) {
        LOGW("events", "the subscription on Redis is back: all streams are told to list again");
        h->was_down = false;
        resync_here(s, NULL);
        storage_look(s);
    }
}

static int64_t tick_us(const struct server *s)
{
    return s->conf->keepalive_us / WHEEL_SLOTS;
}

static void on_tick(struct timer *t)
{
    struct hub *h = container_of(t, struct hub, tick);
    loop_timer_set(h->server->loop, t, mono_add(t->at, tick_us(h->server)));
    for (struct stream *st = *slot_of(h, h->now_slot), *next; st; st = next) {
        next = st->wheel_next;
        if (st->live && st->push)
            stream_send(st, SV(": keepalive\n\n"));
    }
    h->now_slot++;
    if (h->now_slot % WHEEL_SLOTS == 0)
        coro_pool_trim(); /* what a burst of requests left behind */
    if (h->losses != kv_losses(h->server->kv)) {
        h->losses = kv_losses(h->server->kv);
        h->owes_resync = true;
    }
    if (h->owes_resync && kv_up(h->server->kv)) {
        h->owes_resync = false;
        events_resync(h->server, NULL);
    }
}

static MAY_YIELD void stop(struct server *s)
{
    struct hub *h = s->hub;
    loop_timer_stop(&h->tick);
    s->hub = NULL;
    while (h->catching_up > 0)
        done_wait(s->loop, &h->caught_up);
    if (map_count(h->users) > 0)
        return; /* a stream outlived the grace time and still points here: the process is about to end */
    map_free(&h->accounts);
    map_free(&h->users);
    mem_free(h);
}

static MAY_YIELD enum err start(struct server *s, struct errinfo *ei)
{
    struct hub *h = mem_zalloc(sizeof *h);
    h->server = s;
    h->accounts = map_new();
    h->users = map_new();
    h->tick.fn = on_tick;
    s->hub = h;
    loop_timer_set(s->loop, &h->tick, mono_add(mono_now(), tick_us(s)));
    enum err err = kv_subscribe(s->kv, CHANNELS, on_message, on_up, s, ei);
    if (err)
        stop(s);
    return err;
}

const struct server_part events_part = {"events", start, stop};
