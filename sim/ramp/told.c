/* A step of five minutes must not look as if it hung. */
#include "sim/ramp/told.h"
#include "sim/ramp/impl.h"

#include <stdio.h>

/* How long a step takes at least: 0 for the one whose sessions do their work once. */
static double step_seconds(const struct ramp_conf *c, unsigned sessions)
{
    double arrive_s = c->arrive_per_s > 0 ? sessions / c->arrive_per_s : 0;
    return c->hold_us ? arrive_s + (double)c->hold_us / US_PER_S : 0;
}

static const char *hold_text(const struct ramp_conf *c, char *dst, size_t n)
{
    char hold[32], settle[32];
    if (c->hold_us == 0)
        str_format(dst, n, "each session works once");
    else
        str_format(dst, n, "held %s, measured after %s of it", str_duration(hold, sizeof(hold), c->hold_us),
                   str_duration(settle, sizeof(settle), c->settle_us));
    return dst;
}

void ramp_tell_plan(const struct ramp *r)
{
    const struct ramp_conf *c = r->conf;
    char rate[40] = "all at once", hold[100], least[32], passes[40] = "", takes[80] = "";
    double seconds = 0;
    if (!c->out)
        return;
    for (unsigned i = 0; i < c->steps.n; i++)
        seconds += step_seconds(c, c->steps.sessions[i]) * c->repeat;
    if (c->arrive_per_s > 0)
        str_format(rate, sizeof(rate), "let in at %.4g/s", c->arrive_per_s);
    if (c->repeat > 1)
        str_format(passes, sizeof(passes), ", %u times over", c->repeat);
    if (seconds > 0)
        str_format(takes, sizeof(takes), "; %s at least, plus the waits between steps",
                   str_duration(least, sizeof(least), (int64_t)(seconds * US_PER_S)));
    ramp_say(r, "ramp: %s%s, each %s, %s%s", COUNTED(c->steps.n, "step"), passes, rate,
             hold_text(c, hold, sizeof(hold)), takes);
    if (r->shares_sign_ins)
        ramp_say(r,
                 "      sessions share the sign-ins of %s: their own would spend the logins' budgets "
                 "(--own-sign-in: all the same)",
                 COUNTED(r->w->roster.n_logins, "login"));
    ramp_say(r, "      run folder %s", r->run_dir);
}

void ramp_progress_start(struct ramp *r, const struct ramp_step *s)
{
    str_format(r->progress_of, sizeof(r->progress_of), "step %u of %u, %s", r->n, r->conf->steps.n * r->conf->repeat,
               COUNTED(s->asked, "session"));
    r->progress = progress_new_seconds(r->conf->out, r->w->ctx->tty, r->progress_of,
                                       (uint64_t)(step_seconds(r->conf, s->asked) + 0.5));
}

void ramp_progress(struct ramp *r, const struct ramp_step *s, const char *doing)
{
    char in[80];
    if (!r->progress)
        return;
    str_format(in, sizeof(in), "%u of %u in", s->peak, s->asked);
    progress_set(r->progress, (uint64_t)(mono_diff(mono_now(), s->began) / US_PER_S), doing ? doing : in);
}

void ramp_progress_end(struct ramp *r)
{
    progress_drop(&r->progress);
}
