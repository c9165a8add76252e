#ifndef DRIVE_STACK_PART_H
#define DRIVE_STACK_PART_H
/* One part of a stack by name: postgres redis store server. ERR_USAGE for another name, ERR_ENV when it cannot be done.
 * The stack was opened to be changed, but for filling. Layer 2; one loop's thread. */
#include "drive/stack/stack.h"

/* kill: without warning, as a crash; stop: in order. Both return when it is gone. start: with its old port and data,
 * returns when it answers. */
MAY_YIELD enum err stack_part_kill(struct stack *s, const char *part, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_part_stop(struct stack *s, const char *part, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_part_start(struct stack *s, const char *part, struct errinfo *ei) WARN_UNUSED;
/* Stops all its processes where they stand, as a hung machine does, and returns when they do; or lets them go on.
 * Letting go also gives a store its disk back that a fill which was killed has left full. */
MAY_YIELD enum err stack_part_pause(struct stack *s, const char *part, bool pause, struct errinfo *ei) WARN_UNUSED;
/* For so long there is no more of what it gives: the store's disk is full, all connections of Postgres are taken. Then,
 * or when cancelled, it is as before. ERR_USAGE for other parts, and for containers. */
MAY_YIELD enum err stack_part_fill(struct stack *s, const char *part, int64_t hold_us, struct errinfo *ei) WARN_UNUSED;
#endif
