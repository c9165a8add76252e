#include "sim/stack/with.h"

static void on_interrupt(void *arg)
{
    stack_cancel(arg);
}

enum err stack_with(struct cmd_ctx *ctx, const struct stack_conf *conf, bool change,
                    MAY_YIELD enum err (*fn)(struct stack *s, void *arg, struct errinfo *ei), void *arg,
                    struct errinfo *ei)
{
    struct stack *s = NULL;
    enum err err = stack_open(&s, ctx->loop, ctx->http, conf, change, ei);
    if (err)
        return err;
    ctx->on_interrupt_arg = s;
    ctx->on_interrupt = on_interrupt;
    err = fn(s, arg, ei);
    ctx->on_interrupt = NULL;
    stack_close(&s);
    return err;
}
