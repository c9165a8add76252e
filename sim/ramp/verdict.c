/* What a ramp comes to. Predictions are put down before the first session, so that the test can prove them wrong; the
 * verdict says where the knee is and what set it, the limit that follows, what ended the ramp, and which predictions
 * held. Of a ramp that was repeated every figure is a range. */
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include "sim/ramp/cause.h"
#include "sim/ramp/impl.h"
#include "sim/ramp/knee.h"
#include "sim/ramp/report.h"

#include <math.h>
#include <string.h>

struct span {
    bool known;
    double least, most;
};

static void take(struct span *s, double v)
{
    s->least = s->known && s->least < v ? s->least : v;
    s->most = s->known && s->most > v ? s->most : v;
    s->known = true;
}

struct verdict {
    struct ramp *r;
    struct knee knees[RAMP_REPEAT_MAX];
    char causes[RAMP_REPEAT_MAX][300];
    unsigned passes;
    struct span knee, recommended, limit; /* over the passes that found one */
    unsigned limit_at;                    /* the step at which it showed */
};

static unsigned steps_of_pass(const struct ramp *r, unsigned pass, const struct ramp_step **first)
{
    unsigned from = pass * r->conf->steps.n;
    *first = &r->steps[from];
    return r->n - from < r->conf->steps.n ? r->n - from : r->conf->steps.n;
}

static double link_of(const struct ramp *r)
{
    return r->conf->work.kind == RAMP_UPLOAD ? r->conf->link_bytes_per_s : 0;
}

static double drawn(const struct ramp *r, const struct ramp_step *s)
{
    bool random = r->conf->work.kind == RAMP_APPS && s->measured.rate > 0;
    return random ? s->measured.rate * (double)s->measured_us / 1e6 : 0;
}

/* An upload that was slow by itself is no knee. */
static double carried_p95_s(const struct ramp_step *s)
{
    return hist_carries(s->stats.op[OP_UPLOAD].from_send, 95) ? s->measured.p95_s : -1;
}

/* An interruption says nothing of the server; a condition does: the step that met one is off track. */
static void find_knee(struct verdict *v, unsigned pass)
{
    struct ramp *r = v->r;
    const struct ramp_step *s;
    struct knee_step rows[RAMP_STEPS_MAX];
    unsigned n = steps_of_pass(r, pass, &s);
    size_t used = 0;
    bool known;
    for (unsigned i = 0; i < n; i++)
        if (s[i].held || r->tripped.step == &s[i])
            rows[used++] = (struct knee_step){.sessions = s[i].asked,
                                              .rate = s[i].held ? s[i].measured.rate : -1,
                                              .drawn = drawn(r, &s[i]),
                                              .p95 = carried_p95_s(&s[i]),
                                              .p95_bound = link_of(r) > 0 ? s[i].expected.p95_s : -1};
    struct knee *k = &v->knees[pass];
    *k = knee_find(rows, used, link_of(r));
    if (k->state != KNEE_FOUND && k->state != KNEE_BELOW)
        return;
    take(&v->knee, k->at);
    if (k->recommended)
        take(&v->recommended, k->recommended);
    ramp_cause(k->on ? &s[k->on_row].server : NULL, &s[k->off_row].server, link_of(r) / 1e6, &known, v->causes[pass],
               sizeof(v->causes[pass]));
}

/* As many as were in at once when others were refused, the set-up's own logins with them. A server that refuses before
 * it asks who somebody is limits how many may sign in at once, not how many may be in. */
static void find_limit(struct verdict *v)
{
    const struct ramp *r = v->r;
    for (unsigned i = 0; i < r->n; i++)
        if (r->steps[i].refused > 0 && r->conf->work.kind != RAMP_APPS &&
            strcmp(r->steps[i].refused_why, API_CODE_BEFORE_SIGN_IN) != 0) {
            take(&v->limit, r->steps[i].peak + r->w->roster.n_logins);
            v->limit_at = r->steps[i].asked;
        }
}

static const char *span_text(const struct span *s, char *dst, size_t n)
{
    if (!s->known)
        snprintf(dst, n, "-");
    else if (s->least == s->most)
        str_format(dst, n, "%.0f", s->least);
    else
        str_format(dst, n, "%.0f to %.0f", s->least, s->most);
    return dst;
}

/* ---- predictions ---- */

enum score { SCORE_HIT, SCORE_MISSED, SCORE_NOT_HELD, SCORE_TOO_FEW };

/* A knee is known to lie between two steps: "=" is a hit when the prediction does. */
static enum score score_knee(const struct verdict *v, const struct ramp_line *l, struct span *found)
{
    bool hit = true;
    for (unsigned i = 0; i < v->passes; i++) {
        const struct knee *k = &v->knees[i];
        if (k->state != KNEE_FOUND && k->state != KNEE_BELOW)
            return SCORE_NOT_HELD;
        take(found, k->at);
        hit = hit && (l->compare == CMP_EQ ? l->want >= k->on && l->want <= k->off
                                           : compare_holds(l->compare, k->at, l->want));
    }
    return !found->known ? SCORE_NOT_HELD : hit ? SCORE_HIT : SCORE_MISSED;
}

static enum score score_steps(const struct verdict *v, const struct ramp_line *l, struct span *found)
{
    const struct ramp *r = v->r;
    bool hit = true, few = false;
    for (unsigned i = 0; i < r->n; i++) {
        const struct ramp_step *s = &r->steps[i];
        double value;
        uint64_t samples, needs;
        if ((l->at && l->at != s->asked) || !s->held)
            continue;
        few = few || ramp_too_few(s, l, &samples, &needs);
        if (!ramp_figure(s, l, &s->server, 1, &value))
            continue;
        take(found, value);
        hit = hit && ramp_line_holds(l, value);
    }
    if (few)
        return SCORE_TOO_FEW;
    return !found->known ? SCORE_NOT_HELD : hit ? SCORE_HIT : SCORE_MISSED;
}

static enum score score(const struct verdict *v, const struct ramp_line *l, struct span *found)
{
    *found = (struct span){.known = false};
    if (l->kind == RAMP_LINE_KNEE)
        return score_knee(v, l, found);
    if (l->kind != RAMP_LINE_LIMIT)
        return score_steps(v, l, found);
    *found = v->limit;
    if (!found->known)
        return SCORE_NOT_HELD;
    return compare_holds(l->compare, found->least, l->want) && compare_holds(l->compare, found->most, l->want)
               ? SCORE_HIT
               : SCORE_MISSED;
}

static const char *const score_words[] = {"hit", "missed", "not measured", "too few samples"};

static void found_text(const struct ramp_line *l, const struct span *found, char *dst, size_t n)
{
    char a[40], b[40];
    dst[0] = '\0';
    if (!found->known)
        return;
    ramp_line_value(l, found->least, a, sizeof(a));
    ramp_line_value(l, found->most, b, sizeof(b));
    snprintf(dst, n, strcmp(a, b) == 0 ? ": %s" : ": %s to %s", a, b);
}

static enum err open_predictions(const struct ramp *r, const char *mode, FILE **out, struct errinfo *ei)
{
    char file[300];
    snprintf(file, sizeof(file), "%s/predictions.txt", r->run_dir);
    *out = secret_fopen(file, mode);
    return *out ? ERR_OK : err_sys(ei, ERR_IO, "cannot write %s", file);
}

static enum err close_predictions(const struct ramp *r, FILE **f, struct errinfo *ei)
{
    char file[300];
    snprintf(file, sizeof(file), "%s/predictions.txt", r->run_dir);
    return file_close(f, file, ei);
}

enum err ramp_predict(const struct ramp *r, struct errinfo *ei)
{
    char now[40];
    FILE *f;
    if (r->conf->n_expect == 0)
        return ERR_OK;
    enum err e = open_predictions(r, "w", &f, ei);
    if (e != ERR_OK)
        return e;
    fprintf(f, "predicted %s\n", wall_format(now, sizeof(now), wall_now()));
    for (size_t i = 0; i < r->conf->n_expect; i++) {
        fprintf(f, "%s\n", r->conf->expect[i].text);
        ramp_say(r, "predicted: %s", r->conf->expect[i].text);
    }
    return close_predictions(r, &f, ei);
}

static void write_span(struct jsonw *w, const char *least, const char *most, const struct span *s)
{
    if (!s->known) {
        jsonw_null(w, least);
        jsonw_null(w, most);
        return;
    }
    jsonw_f64(w, least, s->least, 3);
    jsonw_f64(w, most, s->most, 3);
}

static enum err score_all(const struct verdict *v, struct result *out, struct errinfo *ei)
{
    const struct ramp *r = v->r;
    struct buf json = BUF_INIT(64 << 10);
    struct jsonw w;
    struct span found;
    char text[100], now[40];
    FILE *f;
    if (r->conf->n_expect == 0)
        return ERR_OK;
    enum err e = open_predictions(r, "a", &f, ei);
    if (e != ERR_OK)
        return e;
    fprintf(f, "\nscored %s\n", wall_format(now, sizeof(now), wall_now()));
    jsonw_init(&w, &json);
    jsonw_array(&w, NULL);
    for (size_t i = 0; i < r->conf->n_expect; i++) {
        const struct ramp_line *l = &r->conf->expect[i];
        enum score s = score(v, l, &found);
        found_text(l, &found, text, sizeof(text));
        fprintf(f, "%s: %s%s\n", l->text, score_words[s], text);
        ramp_say(r, "prediction   %s: %s%s", l->text, score_words[s], text);
        jsonw_object(&w, NULL);
        jsonw_str(&w, "text", l->text);
        jsonw_str(&w, "score", score_words[s]);
        write_span(&w, "least", "most", &found);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    result_part(out, "predictions", &w);
    return close_predictions(r, &f, ei);
}

/* ---- telling ---- */

static const char method[] = "by the bounds of a closed system (Denning & Buzen 1978): N* = X_max / X of one session, "
                             "within the last step on track (90 % of expected) and the first off it";

/* A machine that the server under test fills, too, makes the generator late but is no limit of it: the knee is the
 * machine's, and stands; its times do not. */
static void tell_generator(const struct ramp *r, struct result *out)
{
    struct generator_summary *g = &out->generator;
    const struct ramp_step *late = NULL, *limited = NULL;
    for (unsigned i = r->n; i-- > 0;)
        if (r->steps[i].limited[0])
            *(r->steps[i].crowded ? &late : &limited) = &r->steps[i];
    const struct ramp_step *s = limited ? limited : late;
    g->limited = limited != NULL; /* the last step's apps have said so of themselves (run/report.c) */
    g->late = s && !limited;
    g->cause = s ? s->cause : NULL;
    g->why[0] = '\0';
    if (!s)
        return;
    str_format(g->why, sizeof(g->why), "from the step of %u sessions on %s", s->asked, s->limited);
    if (limited)
        ramp_say(r, "no result    the generator itself was the limit: %s", g->why);
    else
        ramp_say(r, "times        hold delays of the generator: %s", g->why);
}

static void tell_stop(const struct ramp *r)
{
    const struct ramp_tripped *t = &r->tripped;
    char value[40], into[32], at[40];
    if (!t->line)
        return;
    ramp_say(r, "stopped      %s, by %s: %s, at the step of %u sessions, %s after its start",
             wall_format(at, sizeof(at), t->at), t->line->text,
             ramp_line_value(t->line, t->value, value, sizeof(value)), t->step->asked,
             str_duration(into, sizeof(into), t->into_us));
}

static void tell_knee(const struct verdict *v)
{
    char text[200], span[60];
    for (unsigned i = 0; i < v->passes; i++) {
        const struct knee *k = &v->knees[i];
        if (v->passes > 1)
            ramp_say(v->r, "knee %u       %s", i + 1, knee_text(k, text, sizeof(text)));
        else
            ramp_say(v->r, "knee         %s", knee_text(k, text, sizeof(text)));
        if (v->causes[i][0])
            ramp_say(v->r, "  set by     %s", v->causes[i]);
    }
    if (v->passes > 1 && v->knee.known)
        ramp_say(v->r, "knee         %s sessions", span_text(&v->knee, span, sizeof(span)));
    if (v->knee.known)
        ramp_say(v->r,
                 "  method     N* = X_max / X of one session, the bounds of a closed system: docs/ramp.md, The knee");
    if (v->recommended.known)
        ramp_say(v->r, "recommended  a limit of %s: 70 %% of the %sknee",
                 COUNTED((unsigned)v->recommended.least, "session"),
                 v->recommended.least < v->recommended.most ? "lowest " : "");
    if (v->limit.known)
        ramp_say(v->r, "limit found  %s sessions at once, %u of them of the set-up: more were refused",
                 span_text(&v->limit, span, sizeof(span)), v->r->w->roster.n_logins);
}

static const char *const state_words[] = {
    [KNEE_UNKNOWN] = "unknown", [KNEE_NONE] = "none", [KNEE_BELOW] = "below", [KNEE_FOUND] = "found"};

static void write_knees(const struct verdict *v, struct result *out)
{
    struct buf json = BUF_INIT(64 << 10);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "method", method);
    jsonw_array(&w, "passes");
    for (unsigned i = 0; i < v->passes; i++) {
        const struct knee *k = &v->knees[i];
        bool found = k->state == KNEE_FOUND || k->state == KNEE_BELOW;
        jsonw_object(&w, NULL);
        jsonw_str(&w, "state", state_words[k->state]);
        jsonw_measured(&w, "sessions", found ? k->at : -1, 1);
        jsonw_i64(&w, "on_track", k->on);
        jsonw_i64(&w, "off_track", k->off);
        jsonw_i64(&w, "highest_held", k->highest);
        jsonw_str(&w, "set_by", v->causes[i][0] ? v->causes[i] : NULL);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    result_part(out, "knee", &w);
}

static void write_stop(const struct ramp *r, struct result *out)
{
    const struct ramp_tripped *t = &r->tripped;
    struct buf json = BUF_INIT(4096);
    struct jsonw w;
    char at[40];
    if (!t->line)
        return;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "condition", t->line->text);
    jsonw_f64(&w, "value", t->value, 3);
    jsonw_i64(&w, "sessions", t->step->asked);
    jsonw_str(&w, "at", wall_format(at, sizeof(at), t->at));
    jsonw_f64(&w, "seconds_into_step", (double)t->into_us / 1e6, 2);
    jsonw_end_object(&w);
    result_part(out, "stopped", &w);
}

/* A repeated ramp has no single knee. */
static void add_figures(const struct verdict *v, struct result *out)
{
    unsigned highest = 0;
    for (unsigned i = 0; i < v->passes; i++)
        highest = v->knees[i].highest > highest ? v->knees[i].highest : highest;
    result_figure(out, "ramp", "highest_held", highest, 0);
    if (v->knee.known && v->passes == 1)
        result_figure(out, "ramp", "knee", v->knee.least, 1);
    if (v->knee.known) {
        result_figure(out, "ramp", "knee_least", v->knee.least, 1);
        result_figure(out, "ramp", "knee_most", v->knee.most, 1);
    }
    if (v->recommended.known)
        result_figure(out, "ramp", "recommended_limit", v->recommended.least, 0);
    if (v->limit.known)
        result_figure(out, "ramp", "limit_found", v->limit.least, 0);
}

void ramp_sample(struct result *out)
{
    static const char *const keys[] = {"highest_held",      "knee",       "knee_least", "knee_most",
                                       "recommended_limit", "limit_found"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        result_figure(out, "ramp", keys[i], 1, 1);
}

enum err ramp_verdict(struct ramp *r, struct result *out, struct errinfo *ei)
{
    struct verdict *v = mem_zalloc(sizeof(*v));
    v->r = r;
    v->passes = (r->n + r->conf->steps.n - 1) / r->conf->steps.n;
    for (unsigned i = 0; i < v->passes; i++)
        find_knee(v, i);
    find_limit(v);
    tell_generator(r, out);
    tell_stop(r);
    tell_knee(v);
    write_knees(v, out);
    write_stop(r, out);
    add_figures(v, out);
    enum err e = score_all(v, out, ei);
    mem_free(v);
    return e;
}
