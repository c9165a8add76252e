#ifndef SIM_STACK_WITH_H
#define SIM_STACK_WITH_H
/* A command that works on a stack: opened, Ctrl-C passed on to it, closed. Layer 3. */
#include "drive/cmd.h"
#include "drive/stack/stack.h"

MAY_YIELD enum err stack_with(struct cmd_ctx *ctx, const struct stack_conf *conf, bool change,
                              MAY_YIELD enum err (*fn)(struct stack *s, void *arg, struct errinfo *ei), void *arg,
                              struct errinfo *ei) WARN_UNUSED;
#endif
