#ifndef SERVER_EVENTS_PUSH_H
#define SERVER_EVENTS_PUSH_H
/* Event streams: an answer that stays open and is written to from the loop, not from a coroutine. A silent stream holds
 * its connection's few hundred bytes and nothing else; sending to one costs the same whatever the number of others.
 * Layer 3; the loop's thread. */
#include "server/http/http.h"

struct push;
struct push_ops {
    void (*on_close)(void *arg); /* the last call: the client left, was too slow, or push_close was called */
};
/* Sends the headers and first (a comment, so that nothing on the way holds them back); the handler then returns and the
 * connection belongs to the stream. NULL when the client has left or asked by HEAD: on_close is not called then. */
MAY_YIELD struct push *reply_stream(struct request *r, struct sv first, const struct push_ops *ops, void *arg);
/* Waits until the client took the bytes, however many: only in the handler that opened the stream, before it returns.
 */
MAY_YIELD enum err reply_stream_write(struct request *r, struct sv bytes) WARN_UNUSED;
/* Queues bytes. False when --stream-backlog is already waiting or the client is gone: the caller closes it. Never
 * blocks. */
bool push_send(struct push *p, struct sv bytes);
/* Ends the stream. on_close follows, from the loop, not from within this call. */
void push_close(struct push *p);
#endif
