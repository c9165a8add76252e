#ifndef SIM_WATCH_SERVICES_H
#define SIM_WATCH_SERVICES_H
/* What Postgres and Redis count themselves, asked once a second, each by a coroutine of its own: a service that hangs
 * holds up nothing else, its figures only become unknown. Layer 3. */
#include "sim/watch/watch.h"

struct watch_services;
/* Of the target's DATABASE_URL and REDIS_URL; values are set as they come. */
struct watch_services *watch_services_new(struct cmd_ctx *ctx, struct watch_values *values);
MAY_YIELD void watch_services_free(struct watch_services **s);
#endif
