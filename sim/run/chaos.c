/* Each order is a `sim stack` of its own, as a user would call it: starting a database, or looking for the processes of
 * a part, takes longer than a generator may be away from its apps. */
#include "sim/run/chaos.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "drive/proc.h"
#include "drive/stack/stack.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TOOL_LIMIT_US (180 * US_PER_S)

static const char *const part_names[CHAOS_PARTS] = {"server", "redis", "postgres", "store"};
enum { SERVER = 1, REDIS = 2, POSTGRES = 4, STORE = 8, ALL = 15 };
static const struct verb {
    const char *name, *undo; /* of sim stack; undo NULL: it ends by itself, after --for */
    unsigned parts;
    int64_t for_us; /* unless said */
} verbs[] = {
    {"kill", "start", ALL, 3 * US_PER_S},
    {"stop", "start", ALL, 3 * US_PER_S},
    {"pause", "resume", ALL, 10 * US_PER_S},
    {"fill", NULL, POSTGRES | STORE, 10 * US_PER_S},
};

struct chaos_step {
    struct chaos *owner;
    const struct verb *verb;
    unsigned part; /* index of part_names */
    int64_t at_us, for_us;
    struct timer timer;
    struct done stop;
    struct proc tool; /* running */
};

/* ---- what was ordered ---- */

static enum err malformed(struct sv text, struct errinfo *ei)
{
    return err_set(
        ei, ERR_USAGE,
        "--chaos takes VERB:PART@SECOND[+SECONDS],… such as kill:server@20,pause:redis@40+10, not \"%s\"; verbs: "
        "kill stop pause, and fill for store and postgres; parts: server redis postgres store",
        SHOWN(text));
}

static bool parse_verb(struct sv text, struct chaos_step *s)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (sv_eq_cstr(text, verbs[i].name))
            s->verb = &verbs[i];
    return s->verb != NULL;
}

static bool parse_part(struct sv text, struct chaos_step *s)
{
    for (s->part = 0; s->part < ARRAY_LEN(part_names); s->part++)
        if (sv_eq_cstr(text, part_names[s->part]))
            return s->verb->parts & (1u << s->part);
    return false;
}

static bool parse_step(struct sv text, struct chaos_step *s)
{
    struct sv rest = text, verb, part, at;
    if (!sv_split(&rest, ':', &verb) || !parse_verb(verb, s) || !sv_split(&rest, '@', &part) || !parse_part(part, s) ||
        !sv_split(&rest, '+', &at) || opt_parse_duration(at, &s->at_us) != ERR_OK)
        return false;
    s->for_us = s->verb->for_us;
    return rest.n == 0 || opt_parse_duration(rest, &s->for_us) == ERR_OK;
}

static char *step_text(const struct chaos_step *s, char *dst, size_t n)
{
    str_format(dst, n, "%s %s", s->verb->name, part_names[s->part]);
    return dst;
}

/* Within the window, and a part is never taken away twice at a time. */
static enum err judge_step(const struct chaos *c, const struct chaos_step *s, int64_t window_us, struct errinfo *ei)
{
    char what[32], at[32], end[32];
    step_text(s, what, sizeof(what));
    if (s->at_us >= window_us)
        return err_set(ei, ERR_USAGE, "--chaos: %s at %s: the run ends after %s", what,
                       str_duration(at, sizeof(at), s->at_us), str_duration(end, sizeof(end), window_us));
    for (const struct chaos_step *o = c->steps; o < s; o++)
        if (o->part == s->part && s->at_us < o->at_us + o->for_us && o->at_us < s->at_us + s->for_us)
            return err_set(ei, ERR_USAGE, "--chaos: %s at %s: %s is away already at that time", what,
                           str_duration(at, sizeof(at), s->at_us), part_names[s->part]);
    return ERR_OK;
}

static enum err judge_target(const struct chaos *c, struct errinfo *ei)
{
    struct cmd_ctx *ctx = c->w->ctx;
    struct errinfo why;
    bool native = false;
    if (stack_owns(ctx->loop, ctx->http, ctx->target->url, &native, &why) != ERR_OK)
        return err_set(ei, ERR_ENV, "--chaos takes away parts of a stack of drivesim's own only: %s",
                       err_message(&why));
    for (size_t i = 0; i < c->n && !native; i++)
        if (!c->steps[i].verb->undo)
            return err_set(ei, ERR_ENV, "--chaos: containers cannot be filled: start the stack with --native");
    return ERR_OK;
}

/* ---- doing it ---- */

/* `sim stack VERB PART`, by this very program. */
static MAY_YIELD enum err tool(struct chaos_step *s, const char *verb, bool hold, struct errinfo *ei)
{
    struct chaos *c = s->owner;
    char self[PATH_MAX], hold_text[32];
    struct proc us = {.pid = getpid()};
    int status = 0;
    if (!proc_exe(&us, self, sizeof(self)))
        return err_sys(ei, ERR_ENV, "cannot find this program");
    snprintf(hold_text, sizeof(hold_text), "%lldms", (long long)(s->for_us / US_PER_MS));
    const char *argv[] = {self, "stack", verb, part_names[s->part], hold ? "--for" : NULL, hold_text, NULL};
    struct proc_spec spec = {.argv = argv, .cwd = ".", .log = c->log, .dies_with_us = true};
    struct mono limit = mono_add(mono_now(), TOOL_LIMIT_US + (hold ? s->for_us : 0));
    enum err e = proc_run(c->w->loop, &spec, limit, &s->tool, &status, ei);
    bool cut = hold && c->stopping; /* it was asked to end early */
    if (e == ERR_OK && status != 0 && !cut)
        e = err_set(ei, ERR_ENV, "sim stack %s %s failed with status %d: see %s", verb, part_names[s->part], status,
                    c->log);
    return e;
}

static void failed(struct chaos *c, const struct errinfo *ei)
{
    LOGE("chaos", "%s", err_message(ei));
    if (c->err != ERR_OK)
        return;
    c->err = ei->code;
    c->ei = *ei;
}

/* Brought back also when it is not known to be away. */
static MAY_YIELD enum err take_away(struct chaos_step *s, struct errinfo *ei)
{
    struct chaos *c = s->owner;
    struct mono back = mono_add(mono_now(), s->for_us);
    enum err e = tool(s, s->verb->name, !s->verb->undo, ei);
    struct errinfo not_back;
    if (!s->verb->undo)
        return e;
    if (e == ERR_OK && !c->stopping)
        done_wait_until(c->w->loop, &s->stop, back);
    enum err undone = tool(s, s->verb->undo, false, e == ERR_OK ? ei : &not_back);
    return e == ERR_OK ? undone : e;
}

static void step_in_coroutine(void *arg)
{
    struct chaos_step *s = arg;
    struct chaos *c = s->owner;
    struct errinfo ei = {0};
    char what[32];
    sem_take(c->w->loop, &c->parts[s->part], 1);
    if (!c->stopping) {
        unsigned order = meter_order(&c->w->meter, step_text(s, what, sizeof(what)));
        if (take_away(s, &ei) != ERR_OK)
            failed(c, &ei);
        meter_order_over(&c->w->meter, order);
    }
    sem_give(&c->parts[s->part], 1);
    c->running--;
    done_set(&c->w->schedule.wake);
}

static void on_timer(struct timer *t)
{
    struct chaos_step *s = container_of(t, struct chaos_step, timer);
    struct chaos *c = s->owner;
    if (c->stopping)
        return;
    c->running++;
    group_spawn(c->w->loop, &c->group, step_in_coroutine, s);
}

/* ---- life ---- */

static enum err read_orders(struct chaos *c, const char *text, int64_t window_us, struct errinfo *ei)
{
    struct sv rest = sv_of(text), one;
    enum err e = ERR_OK;
    c->steps = mem_zalloc(METER_ORDERED * sizeof(*c->steps));
    while (e == ERR_OK && sv_split(&rest, ',', &one)) {
        if (c->n == METER_ORDERED)
            return err_set(ei, ERR_USAGE, "--chaos takes at most %d orders", METER_ORDERED);
        struct chaos_step *s = &c->steps[c->n];
        s->owner = c;
        s->timer.fn = on_timer;
        e = parse_step(sv_trim(one), s) ? judge_step(c, s, window_us, ei) : malformed(one, ei);
        c->n += e == ERR_OK;
    }
    return e == ERR_OK && c->n == 0 ? malformed(sv_of(text), ei) : e;
}

enum err chaos_judge(const char *text, int64_t window_us, struct errinfo *ei)
{
    struct chaos c = {.n = 0};
    enum err e = text ? read_orders(&c, text, window_us, ei) : ERR_OK;
    chaos_done(&c);
    return e;
}

enum err chaos_init(struct chaos *c, struct worker *w, const char *text, struct errinfo *ei)
{
    *c = (struct chaos){.w = w};
    if (!text)
        return ERR_OK;
    for (size_t i = 0; i < CHAOS_PARTS; i++)
        sem_init_coro(&c->parts[i], 1);
    enum err e = read_orders(c, text, w->conf.window_us, ei);
    return e == ERR_OK ? judge_target(c, ei) : e;
}

void chaos_begin(struct chaos *c, const char *log)
{
    c->log = log;
    for (size_t i = 0; i < c->n; i++)
        loop_timer_set(c->w->loop, &c->steps[i].timer, mono_add(c->w->schedule.window, c->steps[i].at_us));
}

void chaos_stop(struct chaos *c)
{
    c->stopping = true;
    for (size_t i = 0; i < c->n; i++) {
        struct chaos_step *s = &c->steps[i];
        loop_timer_stop(&s->timer);
        done_set(&s->stop);
        if (s->tool.pid && !s->verb->undo) /* holds on until it is told */
            kill(s->tool.pid, SIGTERM);
    }
}

enum err chaos_end(struct chaos *c, struct errinfo *ei)
{
    chaos_stop(c);
    group_wait(c->w->loop, &c->group);
    if (c->err != ERR_OK)
        *ei = c->ei;
    return c->err;
}

void chaos_done(struct chaos *c)
{
    MEM_FREE(c->steps);
    c->n = 0;
}

char *chaos_text(const struct chaos *c, char *dst, size_t n)
{
    size_t used = 0;
    dst[0] = '\0';
    for (size_t i = 0; i < c->n && used < n; i++) {
        const struct chaos_step *s = &c->steps[i];
        char what[32], at[32], hold[32];
        int k = snprintf(dst + used, n - used, "%s%s at %s for %s", i ? ", " : "", step_text(s, what, sizeof(what)),
                         str_duration(at, sizeof(at), s->at_us), str_duration(hold, sizeof(hold), s->for_us));
        used += k > 0 ? (size_t)k : 0;
    }
    return dst;
}
