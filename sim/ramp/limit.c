/* Past the limit: a limit that was never exercised is a guess. As many sessions as the server is told to allow are in
 * and at work; then others come. They must be refused, each within a second, and those inside must not feel it. */
#include "base/mem.h"
#include "base/percentiles.h"
#include "sim/ramp/crowd.h"
#include "sim/ramp/impl.h"

#define EXTRA_LEAST 10
#define EXTRA_SHARE 4    /* a quarter more */
#define REFUSED_MS  1000 /* the longest that a refusal may take */
#define SLOWER      1.5  /* times their p95 is still their speed */
#define SLOWER_MS   20   /* and what any machine adds by chance */
#define PUSH_MIN_US US_PER_S

static int64_t half_us(const struct ramp_conf *conf)
{
    int64_t half = (conf->hold_us - conf->settle_us) / 2;
    return half > PUSH_MIN_US ? half : PUSH_MIN_US;
}

/* Their speed alone, then a second set of figures for while the others push. */
static MAY_YIELD void measure_alone(struct crowd *in, int64_t us)
{
    struct ramp_past *p = &in->r->past;
    crowd_gather(in);
    crowd_stay(in, in->r->conf->settle_us);
    in->s->measure_from = mono_now();
    crowd_stay(in, us);
    p->before_ms = ramp_p95_ms(&p->in, OP_UPLOAD);
    p->before = stats_ok(&p->in.stats, OP_UPLOAD);
    stats_reset(&p->in.stats);
    p->in.measure_from = mono_now();
}

static MAY_YIELD void push(struct ramp *r)
{
    struct ramp_past *p = &r->past;
    struct crowd in, more;
    int64_t us = half_us(r->conf);
    crowd_start(&in, r, &p->in);
    measure_alone(&in, us);
    p->more.arrive_per_s = p->extra * 1e6 / (double)us;
    p->more.measure_from = mono_now();
    if (crowd_at_work(&in)) {
        crowd_start(&more, r, &p->more);
        crowd_stay(&in, us);
        crowd_gather(&more); /* a slow machine takes longer to answer the last of them */
        p->during_ms = ramp_p95_ms(&p->in, OP_UPLOAD);
        p->during = stats_ok(&p->in.stats, OP_UPLOAD);
        crowd_end(&more);
    }
    crowd_end(&in);
}

static void judge(struct ramp *r)
{
    const struct ramp_past *p = &r->past;
    const struct ramp_step *in = &p->in, *more = &p->more;
    struct check_result *c = result_check(r->w->ctx->result, "limit");
    unsigned let_in = more->admitted;
    bool enough = p->before >= hist_needs(95) && p->during >= hist_needs(95);
    double slowest = hist_percentile_ms(more->refusals, 100);
    c->examined = p->inside + p->extra;
    if (in->admitted < p->inside)
        result_check_add(c, "only %u sessions were let in, with %u of the set-up; %u were refused: %s", in->admitted,
                         p->own, in->refused, in->refused_why);
    if (let_in > 0)
        result_check_add(c, "%s beyond the limit of %u were let in", COUNTED(let_in, "session"), r->conf->limit);
    if (more->timed_out + more->failed > 0)
        result_check_add(c, "%u of those beyond the limit timed out and %u failed instead of being refused",
                         more->timed_out, more->failed);
    if (slowest > REFUSED_MS)
        result_check_add(c, "a refusal took %.0f ms", slowest);
    if (enough && p->during_ms > SLOWER * p->before_ms + SLOWER_MS)
        result_check_add(c, "uploads of those inside became slower: p95 %.1f ms before, %.1f ms meanwhile",
                         p->before_ms, p->during_ms);
    if (in->failed + in->timed_out > 0)
        result_check_add(c, "of those inside %u timed out and %u failed", in->timed_out, in->failed);
    str_format(c->summary, sizeof(c->summary),
               "%u sessions in (%u of the set-up), %u more: %u refused, the slowest after %.1f ms",
               in->admitted + p->own, p->own, p->extra, more->refused, slowest < 0 ? 0 : slowest);
    if (p->before_ms >= 0 && p->during_ms >= 0)
        result_check_note(c, "uploads of those inside: p95 %s%.1f ms before, %s%.1f ms while the others came%s",
                          p->before < hist_needs(95) ? "~" : "", p->before_ms, p->during < hist_needs(95) ? "~" : "",
                          p->during_ms, enough ? "" : ": too few to judge whether they were held up");
    if (more->refused)
        result_check_note(c, "refused with %s; after %.1f ms at the median", more->refused_why,
                          hist_percentile_ms(more->refusals, 50));
}

static void write_json(const struct ramp *r)
{
    const struct ramp_past *p = &r->past;
    struct buf json = BUF_INIT(4096);
    struct jsonw w;
    const struct {
        const char *key;
        double v;
    } rows[] = {{"limit", r->conf->limit},
                {"inside", p->in.admitted},
                {"own", p->own},
                {"extra", p->extra},
                {"let_in", p->more.admitted},
                {"refused", p->more.refused},
                {"timed_out", p->more.timed_out},
                {"failed", p->more.failed},
                {"refusal_p50_ms", hist_percentile_ms(p->more.refusals, 50)},
                {"refusal_p95_ms", hist_percentile_ms(p->more.refusals, 95)},
                {"refusal_max_ms", hist_percentile_ms(p->more.refusals, 100)},
                {"upload_p95_before_ms", p->before_ms},
                {"upload_p95_during_ms", p->during_ms}};
    const struct few few[] = {
        few_of("refusal_p50_ms", p->more.refusals, 50), few_of("refusal_p95_ms", p->more.refusals, 95),
        few_of_count("upload_p95_before_ms", p->before, 95), few_of_count("upload_p95_during_ms", p->during, 95)};
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        jsonw_measured(&w, rows[i].key, rows[i].v, 3);
    few_write(&w, few, ARRAY_LEN(few));
    jsonw_end_object(&w);
    result_part(r->w->ctx->result, "past_limit", &w);
}

enum err ramp_push_past(struct ramp *r, struct errinfo *ei)
{
    struct ramp_past *p = &r->past;
    unsigned limit = r->conf->limit;
    if (limit <= r->w->roster.n_logins)
        return err_set(ei, ERR_USAGE, "--limit %u: the set-up alone signed in %u logins", limit, r->w->roster.n_logins);
    *p = (struct ramp_past){.known = true,
                            .own = r->w->roster.n_logins,
                            .inside = limit - r->w->roster.n_logins,
                            .before_ms = -1,
                            .during_ms = -1};
    p->extra = limit / EXTRA_SHARE > EXTRA_LEAST ? limit / EXTRA_SHARE : EXTRA_LEAST;
    ramp_step_init(&p->in, r, p->inside);
    ramp_step_init(&p->more, r, p->extra);
    p->in.once = p->more.once = false;
    p->in.number = 1;
    p->more.number = 2;
    ramp_say(r, "past the limit: %u sessions are in, with %u of the set-up, then %u more come", p->inside, p->own,
             p->extra);
    ramp_guard_start(r, &p->in);
    push(r);
    ramp_guard_end(r);
    if (!worker_draining(r->w)) {
        judge(r);
        write_json(r);
    }
    return ERR_OK;
}
