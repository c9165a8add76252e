#ifndef STORE_KV_H
#define STORE_KV_H
/* Redis by hiredis' asynchronous interface on the loop: calls suspend the coroutine, commands are pipelined on one
 * connection, pub/sub has a second one. Reconnects by itself with growing, jittered pauses; while it is down calls fail
 * at once with ERR_KV; a server that accepts and never answers is given up after 5 s. The owner of the hiredis headers.
 * Layer 1; one loop's thread. */
#include "base/str.h"
#include "net/coro.h"

struct kv;
enum kv_type { KV_NIL, KV_STR, KV_INT, KV_STATUS, KV_ARRAY, KV_ERROR };
struct kv_reply { /* a copy of its own; kv_reply_done frees what it holds */
    enum kv_type type;
    int64_t i;
    char *s; /* NUL-terminated; NULL for KV_NIL, KV_INT and KV_ARRAY */
    size_t n;
    struct kv_reply *items;
    size_t n_items;
};
void kv_reply_done(struct kv_reply *r);

/* url: redis://[[user]:password@]host[:port][/db] or unix://[[user]:password@]/path[?db=N]. Connects in the background;
 * kv_ready waits for the first connection. ERR_USAGE when it is no such URL, ERR_SAFETY when the guard forbids its
 * host, ERR_ENV for rediss://, which is not spoken. */
enum err kv_new(struct kv **out, struct loop *l, const char *url, struct errinfo *ei) WARN_UNUSED;
#define KV_CLIENT_NAME "drivesim-client"
/* What Redis calls the connections of this process from now on, so that clients can be told from servers; static. */
void kv_set_name(const char *name);
enum err kv_url_judge(const char *url, struct errinfo *ei) WARN_UNUSED; /* the same, without connecting */
/* Running commands end with ERR_KV. */
void kv_free(struct kv **k);
/* ERR_KV with the last failure when it is still down at the deadline. */
MAY_YIELD enum err kv_ready(struct kv *k, struct mono deadline, struct errinfo *ei) WARN_UNUSED;
bool kv_up(const struct kv *k);
/* How often the commands' connection was lost so far: what kv_send took shortly before may not have arrived. */
unsigned kv_losses(const struct kv *k);

/* argv by value (binary-safe). out may be NULL. A Redis error reply is ERR_KV with its text. */
MAY_YIELD enum err kv_command(struct kv *k, size_t argc, const struct sv *argv, struct kv_reply *out,
                              struct errinfo *ei) WARN_UNUSED;
/* Fire and forget, in order with all other commands of this kv; false when down. */
bool kv_send(struct kv *k, size_t argc, const struct sv *argv);
/* Pattern subscription, one a kv. on_up(true) when it holds (again), on_up(false) when it was lost: messages may have
 * been missed between the two. */
enum err kv_subscribe(struct kv *k, const char *pattern,
                      void (*on_message)(void *arg, struct sv channel, struct sv payload),
                      void (*on_up)(void *arg, bool up), void *arg, struct errinfo *ei) WARN_UNUSED;
#endif
