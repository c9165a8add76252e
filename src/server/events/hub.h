#ifndef SERVER_EVENTS_HUB_H
#define SERVER_EVENTS_HUB_H
/* The inside of the hub of streams, shared by events.c (delivery), hub_order.c (the order of an account's changes) and
 * handlers/events.c (joining and catching up). Layer 3. */
#include "net/coro.h"
#include "server/events/events.h"
#include "server/events/push.h"

#define WHEEL_SLOTS 300
#define HELD_MAX    1000
#define REPLAY_MAX  1000

struct stream;
struct catch_up;
struct pg_result;
struct circle { /* an account, or a login, that has streams */
    struct stream *first;
    size_t n;
    char id[DRIVE_ID_MAX + 1];
    /* hub_order.c, of accounts alone. Change numbers: */
    int64_t sent;              /* up to this one all were given to the streams; -1: where to begin is not known yet */
    int64_t base;              /* where that began */
    int64_t told;              /* the highest that a message has named */
    bool blind;                /* the database did not tell where to begin: the next message does */
    struct catch_up *catch_up; /* reads what is missing; NULL: nothing is */
};
struct held { /* a live frame that waits until its stream has caught up */
    struct held *next;
    int64_t seq;
    size_t n;
    char text[];
};
struct stream {
    struct hub *hub;
    struct push *push; /* NULL until the headers are out */
    struct circle *account, *user;
    struct stream *prev, *next; /* in the account */
    struct stream *wheel_next, **wheel_at;
    int64_t seen;    /* change numbers up to this one were sent, or lie before the stream */
    bool live, lost; /* lost: more was held than fits */
    unsigned n_held;
    struct held *held, *held_last;
    char session_id[DRIVE_ID_MAX + 1];
};
struct hub {
    struct server *server;
    struct map *accounts, *users; /* id -> struct circle */
    struct stream *wheel[WHEEL_SLOTS];
    unsigned now_slot, next_slot;
    struct timer tick;
    bool was_down, owes_resync;
    unsigned catching_up; /* coroutines that read changes */
    struct done caught_up;
    unsigned losses; /* of the publishing connection, as far as they were made up for */
};

size_t hub_user_streams(struct hub *h, const char *user_id);
struct stream *hub_join(struct hub *h, const struct login *who);
void hub_leave(struct stream *st); /* frees it */
bool stream_send(struct stream *st, struct sv frame);
/* Forgets the held frames of numbers beyond this one. */
void stream_drop_held(struct stream *st, int64_t beyond);
/* Sends what was held and is newer than `seen`; from now on frames go out as they come. */
void stream_go_live(struct stream *st);
enum err frame_event(struct server *s, struct buf *out, int64_t seq, const char *type, const char *at,
                     struct sv data) WARN_UNUSED;
void frame_resync(struct server *s, struct buf *out, const char *cursor); /* replaces out */
void circle_deliver(const struct circle *c, int64_t seq, struct sv frame);
void circle_resync(struct server *s, const struct circle *c);

/* A message of Redis about a change: its frame goes to the account's streams, after all those before it. */
void order_message(struct server *s, struct circle *c, int64_t seq, struct sv frame);
/* What a stream that joins has read as the account's last number; -1: not to be had. */
void order_base(struct server *s, struct circle *c, int64_t last);
void order_done(struct circle *c);
/* Up to REPLAY_MAX + 1 changes after a number, oldest first: number, type, time, data. */
MAY_YIELD enum err order_read(struct server *s, const char *account_id, int64_t after, struct pg_result **out,
                              struct errinfo *ei) WARN_UNUSED;
enum err order_frame(struct server *s, struct buf *out, const struct pg_result *rows, int row) WARN_UNUSED;
#endif
