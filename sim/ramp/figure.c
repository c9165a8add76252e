/* The figures of a step by name, for conditions and predictions. */
#include "sim/ramp/impl.h"

/* Not asked for, but heard: it grows with the square of the apps. */
static bool is_heard(int op)
{
    return op == OP_EVENT || op == OP_EVENT_VISIBLE;
}

double ramp_actions_per_s(const struct ramp_step *s)
{
    uint64_t n = 0;
    for (int op = 0; op < OP_COUNT; op++)
        n += drive_op_weight((enum drive_op)op) > 0 ? stats_ok(&s->stats, (enum drive_op)op) : 0;
    return s->desktop && s->measured_us > 0 ? (double)n * 1e6 / (double)s->measured_us : -1;
}

double ramp_operations_per_s(const struct ramp_step *s)
{
    double n = 0;
    if (s->measured_us <= 0)
        return -1;
    for (int op = 0; op < OP_COUNT; op++)
        n += op == OP_SIGN_IN || op == OP_UPLOAD || is_heard(op) ? 0 : (double)stats_ok(&s->stats, (enum drive_op)op);
    n += s->done > 0 ? s->done : (double)stats_ok(&s->stats, OP_UPLOAD);
    return n * 1e6 / (double)s->measured_us;
}

double ramp_sign_ins_per_s(const struct ramp_step *s)
{
    uint64_t n = stats_ok(&s->stats, OP_SIGN_IN);
    int64_t us = s->last_in.us ? mono_diff(s->last_in, s->began) : 0;
    return n > 0 && us > 0 ? (double)n * 1e6 / (double)us : -1;
}

static bool time_of(const struct ramp_step *s, const struct ramp_line *l, uint64_t least, double *out)
{
    const struct hist *h = s->stats.op[l->op].from_send;
    if (!hist_carries(h, l->pct) || (l->pct < 100 && hist_count(h) < least))
        return false;
    *out = hist_percentile_ms(h, l->pct);
    return true;
}

bool ramp_too_few(const struct ramp_step *s, const struct ramp_line *l, uint64_t *samples, uint64_t *needs)
{
    if (l->kind != RAMP_LINE_TIME || hist_carries(s->stats.op[l->op].from_send, l->pct))
        return false;
    *samples = stats_ok(&s->stats, l->op);
    *needs = hist_needs(l->pct);
    return true;
}

/* Of all operations, those that went neither well nor as designed. */
static bool failed_share(const struct ramp_step *s, uint64_t least, double *out)
{
    uint64_t calls = 0, failed = stats_failed_all(&s->stats);
    for (int op = 0; op < OP_COUNT; op++) {
        calls += stats_calls(&s->stats, (enum drive_op)op);
        failed -= s->stats.op[op].by_outcome[OUT_REFUSED];
    }
    *out = calls ? 100.0 * (double)failed / (double)calls : 0;
    return calls >= least;
}

static bool share(unsigned n, unsigned of, double *out)
{
    *out = of ? 100.0 * n / of : 0;
    return of > 0;
}

static bool count(double v, double *out)
{
    *out = v;
    return v >= 0;
}

static bool figure_of(const struct ramp_step *s, enum ramp_figure f, uint64_t least, double *out)
{
    switch (f) {
    case RAMP_FIGURE_UP:
        return count(s->peak, out);
    case RAMP_FIGURE_OK:
        return count(s->ok, out);
    case RAMP_FIGURE_REFUSED:
        return count(s->refused, out);
    case RAMP_FIGURE_TIMED_OUT:
        return count(s->timed_out, out);
    case RAMP_FIGURE_FAILED:
        return count(s->failed, out);
    case RAMP_FIGURE_UNFINISHED:
        return count(s->unfinished, out);
    case RAMP_FIGURE_REFUSED_PCT:
        return share(s->refused, s->asked, out);
    case RAMP_FIGURE_TIMED_OUT_PCT:
        return share(s->timed_out, s->asked, out);
    case RAMP_FIGURE_FAILED_PCT:
        return failed_share(s, least, out);
    case RAMP_FIGURE_MB_PER_S:
        return count(s->measured.rate < 0 || s->measured.p95_s < 0 ? -1 : s->measured.rate / 1e6, out);
    case RAMP_FIGURE_OPERATIONS_PER_S:
        return count(ramp_operations_per_s(s), out);
    case RAMP_FIGURE_SIGN_INS_PER_S:
        return count(ramp_sign_ins_per_s(s), out);
    case RAMP_FIGURE_COUNT:
        break;
    }
    return false;
}

bool ramp_figure(const struct ramp_step *s, const struct ramp_line *l, const struct watch_values *server,
                 uint64_t least, double *out)
{
    switch (l->kind) {
    case RAMP_LINE_TIME:
        return time_of(s, l, least, out);
    case RAMP_LINE_STEP:
        return figure_of(s, l->figure, least, out);
    case RAMP_LINE_WATCH:
        return count(server->v[l->watch], out);
    case RAMP_LINE_KNEE:
    case RAMP_LINE_LIMIT:
        break;
    }
    return false;
}
