/* One line while something takes its time, brought up to date each second: a call may last minutes. */
#include "base/mem.h"
#include "sim/clean/clean.h"

#include <stdio.h>

static void tick(struct timer *t)
{
    struct clean *c = container_of(t, struct clean, tick);
    progress_set(c->progress, (uint64_t)(mono_diff(mono_now(), c->began) / US_PER_S), NULL);
    loop_timer_set(c->ctx->loop, t, mono_add(mono_now(), US_PER_S));
}

void clean_doing(struct clean *c, const char *fmt, ...)
{
    va_list ap;
    clean_done(c);
    va_start(ap, fmt);
    vsnprintf(c->doing, sizeof(c->doing), fmt, ap);
    va_end(ap);
    c->began = mono_now();
    c->tick.fn = tick;
    c->progress = progress_new_seconds(c->ctx->common->quiet ? NULL : c->ctx->out, c->ctx->tty, c->doing, 0);
    tick(&c->tick);
}

void clean_done(struct clean *c)
{
    loop_timer_stop(&c->tick);
    progress_drop(&c->progress);
}
