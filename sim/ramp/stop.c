/* Conditions that end a ramp. They are looked at four times a second, and what is cut is cut at once: "one more step"
 * is how tests become outages. A figure of the machine must stay over its line for 3 s, since one slow write is no sign
 * of anything; shares and percentiles wait for 20 samples, or for the end of the step. */
#include "base/mem.h"
#include "sim/ramp/impl.h"
#include "sim/ramp/told.h"

#define LOOK_US     (250 * US_PER_MS)
#define IN_ROW      12 /* 3 s */
#define SAMPLES_MIN 20

/* A refusal is the server at work as designed; a timeout is a session that was let in and then starved. */
const char *const ramp_stop_defaults[] = {"timed_out>0", "swap_mib>16", "disk_write_ms>100", NULL};

struct ramp_guard {
    struct ramp *r;
    struct ramp_step *step;
    struct timer timer;
    unsigned in_row[RAMP_LINES_MAX];
};

static void trip(struct ramp_guard *g, const struct ramp_line *l, double value)
{
    struct ramp *r = g->r;
    r->tripped = (struct ramp_tripped){
        .line = l, .step = g->step, .value = value, .at = wall_now(), .into_us = mono_diff(mono_now(), g->step->began)};
    worker_set_phase(r->w, PHASE_DRAIN);
    if (g->step->halt)
        g->step->halt(g->step->arg);
}

static void look(struct ramp_guard *g, uint64_t least)
{
    struct ramp *r = g->r;
    if (worker_draining(r->w))
        return;
    if (g->step->refresh)
        g->step->refresh(g->step->arg);
    for (size_t i = 0; i < r->conf->n_stop && !r->tripped.line; i++) {
        const struct ramp_line *l = &r->conf->stop[i];
        double value;
        bool over = (!l->at || l->at == g->step->asked) &&
                    ramp_figure(g->step, l, watch_latest(r->w->watch), least, &value) && ramp_line_holds(l, value);
        g->in_row[i] = over ? g->in_row[i] + 1 : 0;
        if (over && (l->kind != RAMP_LINE_WATCH || g->in_row[i] >= IN_ROW))
            trip(g, l, value);
    }
}

static void on_look(struct timer *t)
{
    struct ramp_guard *g = container_of(t, struct ramp_guard, timer);
    loop_timer_set(t->loop, t, mono_add(mono_now(), LOOK_US));
    look(g, SAMPLES_MIN);
    ramp_progress(g->r, g->step, NULL);
}

void ramp_guard_start(struct ramp *r, struct ramp_step *s)
{
    struct ramp_guard *g = mem_zalloc(sizeof(*g));
    g->r = r;
    g->step = s;
    g->timer.fn = on_look;
    r->guard = g;
    loop_timer_set(r->w->loop, &g->timer, mono_add(mono_now(), LOOK_US));
}

/* A condition that nothing could trip must not look like one that held. */
static void tell_unjudged(const struct ramp_guard *g)
{
    const struct ramp *r = g->r;
    for (size_t i = 0; i < r->conf->n_stop && !r->tripped.line; i++) {
        const struct ramp_line *l = &r->conf->stop[i];
        uint64_t samples, needs;
        if ((!l->at || l->at == g->step->asked) && ramp_too_few(g->step, l, &samples, &needs))
            ramp_say(r, "         %s could not be judged: %s, it needs %llu", l->text, COUNTED(samples, "sample"),
                     (unsigned long long)needs);
    }
}

void ramp_guard_end(struct ramp *r)
{
    if (!r->guard)
        return;
    look(r->guard, 1);
    tell_unjudged(r->guard);
    loop_timer_stop(&r->guard->timer);
    MEM_FREE(r->guard);
}
