#ifndef STORE_KV_H
#define STORE_KV_H
/* Redis by hiredis' asynchronous interface on the loop: calls suspend the coroutine, commands are pipelined on one connection, pub/sub has
 * a second one. Reconnects by itself with backoff; while it is down calls fail at once with ERR_KV. The owner of hiredis headers. Layer 1. */
#include "base/str.h"
#include "net/coro.h"
struct kv;
struct kv_reply {                /* copied out of hiredis; kv_reply_done frees */
    enum { KV_NIL, KV_STR, KV_INT, KV_STATUS, KV_ARRAY, KV_ERROR } type;
    int64_t i; char *s; size_t n; struct kv_reply *items; size_t n_items;
};
void kv_reply_done(struct kv_reply *r);
/* url: redis://[:password@]host:port/db. Connects in the background; kv_ready waits for the first connection. */
enum err kv_new(struct kv **out, struct loop *l, const char *url, struct errinfo *ei) WARN_UNUSED;
void kv_free(struct kv **k);
MAY_YIELD enum err kv_ready(struct kv *k, struct mono deadline, struct errinfo *ei) WARN_UNUSED;
bool kv_up(const struct kv *k);
/* argv by value (binary-safe). out may be NULL. A Redis error reply is ERR_KV with its text. */
MAY_YIELD enum err kv_command(struct kv *k, size_t argc, const struct sv *argv, struct kv_reply *out, struct errinfo *ei) WARN_UNUSED;
/* Fire and forget, in order with all other commands of this kv; false when down. */
bool kv_send(struct kv *k, size_t argc, const struct sv *argv);
/* Pattern subscription. on_up(false/true) tells when messages may have been missed. */
enum err kv_subscribe(struct kv *k, const char *pattern, void (*on_message)(void *arg, struct sv channel, struct sv payload),
                      void (*on_up)(void *arg, bool up), void *arg, struct errinfo *ei) WARN_UNUSED;
#endif
