#include "sim/ramp/crowd.h"
#include "base/mem.h"

#define TICK_US (200 * US_PER_MS)
#define LOOK_US (20 * US_PER_MS)
#define CUT_US  (2 * US_PER_S)

void crowd_start(struct crowd *c, struct ramp *r, struct ramp_step *s)
{
    *c = (struct crowd){.r = r, .s = s, .all = mem_zalloc(s->asked * sizeof(*c->all))};
    s->began = mono_now();
    s->measure_from = s->once ? s->began : MONO_NEVER;
    s->measure_to = MONO_NEVER;
    for (unsigned i = 0; i < s->asked; i++) {
        c->all[i] = (struct session){.r = r, .s = s, .index = i, .worst = OUT_OK};
        group_spawn(r->w->loop, &c->group, session_run, &c->all[i]);
    }
}

bool crowd_at_work(const struct crowd *c)
{
    return c->group.running > 0 && !worker_draining(c->r->w);
}

void crowd_gather(struct crowd *c)
{
    while (crowd_at_work(c) && c->s->entered < c->s->asked)
        worker_sleep(c->r->w, TICK_US, PHASE_DRAIN);
}

/* In ticks, so that an end that comes early is seen. */
void crowd_stay(struct crowd *c, int64_t us)
{
    struct mono until = mono_add(mono_now(), us);
    while (crowd_at_work(c) && !mono_passed(until)) {
        int64_t left = mono_diff(until, mono_now());
        worker_sleep(c->r->w, left < TICK_US ? left : TICK_US, PHASE_DRAIN);
    }
}

void crowd_end(struct crowd *c)
{
    c->s->over = true;
    while (crowd_at_work(c))
        worker_sleep(c->r->w, TICK_US, PHASE_DRAIN);
    while (c->group.running > 0) {
        struct mono again = mono_add(mono_now(), CUT_US);
        for (unsigned i = 0; i < c->s->asked; i++)
            session_cancel(&c->all[i]);
        while (c->group.running > 0 && !mono_passed(again))
            coro_sleep_until(c->r->w->loop, mono_add(mono_now(), LOOK_US));
    }
    group_wait(c->r->w->loop, &c->group);
    c->s->took_us = mono_diff(mono_now(), c->s->began);
    MEM_FREE(c->all);
}
