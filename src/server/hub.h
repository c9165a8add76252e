#ifndef SERVER_HUB_H
#define SERVER_HUB_H
/* The inside of the hub of streams, shared by events.c (delivery) and h_events.c (joining and catching up). Layer 3. */
#include "net/loop.h"
#include "server/events.h"
#include "server/push.h"

#define WHEEL_SLOTS 300
#define HELD_MAX    1000
#define REPLAY_MAX  1000

struct stream;
struct circle { /* an account, or a login, that has streams */
    struct stream *first;
    size_t n;
    char id[DRIVE_ID_MAX + 1];
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
    unsigned losses; /* of the publishing connection, as far as they were made up for */
};

size_t hub_user_streams(struct hub *h, const char *user_id);
struct stream *hub_join(struct hub *h, const struct login *who);
void hub_leave(struct stream *st); /* frees it */
bool stream_send(struct stream *st, struct sv frame);
/* Sends what was held and is newer than `seen`; from now on frames go out as they come. */
void stream_go_live(struct stream *st);
enum err frame_event(struct server *s, struct buf *out, int64_t seq, const char *type, const char *at,
                     struct sv data) WARN_UNUSED;
void frame_resync(struct server *s, struct buf *out, const char *cursor); /* replaces out */
#endif
