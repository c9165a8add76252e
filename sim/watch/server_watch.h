#ifndef SIM_WATCH_SERVER_WATCH_H
#define SIM_WATCH_SERVER_WATCH_H
/* The server's memory while a command is at it: sampled 20 times a second from its process where that is known (named
 * by the user, or the stack's own), twice a second from its /metrics otherwise. A peak between two samples is not
 * missed, since the kernel keeps the highest figure itself: what rose while we watched was ours. A server that is
 * killed and started again is found again. One loop's thread. Layer 3. */
#include "drive/cmd.h"

struct server_watch;
/* pid 0: found by itself. ERR_ENV when a process that was named is not there. Starts to watch. */
enum err server_watch_new(struct server_watch **out, struct cmd_ctx *ctx, int64_t pid, struct errinfo *ei) WARN_UNUSED;
/* Ends it; ctx->result has the peak of the whole. */
MAY_YIELD void server_watch_free(struct server_watch **w);
/* Bytes at most since the last call, -1: not known. Begins anew. */
int64_t server_watch_lap(struct server_watch *w);
/* "process 4711", "its /metrics"; "" as long as nothing is known. */
const char *server_watch_source(const struct server_watch *w);
#endif
