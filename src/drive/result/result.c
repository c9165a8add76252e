#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "drive/result/doc.h"
#include "drive/result/impl.h"
#include "drive/result/series.h"
#include "drive/threshold.h"
#include <stdio.h>
#include <string.h>

#define JSON_MAX     (64u << 20)
#define DETAILS_KEPT 50

void result_init(struct result *r, const char *command)
{
    *r = (struct result){.command = command, .server_peak_rss = -1, .generator = {.lag_p99_us = -1}};
    stats_init(&r->stats);
}

void result_done(struct result *r)
{
    stats_done(&r->stats);
    series_free(&r->series);
    doc_free(&r->shown);
    for (size_t i = 0; i < r->n_checks; i++) {
        for (size_t k = 0; k < r->checks[i].n_detail; k++)
            mem_free(r->checks[i].detail[k]);
        mem_free(r->checks[i].detail);
        for (size_t k = 0; k < r->checks[i].n_note; k++)
            mem_free(r->checks[i].note[k]);
        mem_free(r->checks[i].note);
    }
    for (size_t i = 0; i < r->n_thresholds; i++)
        mem_free(r->thresholds[i].text);
    for (size_t i = 0; i < r->n_parts; i++)
        mem_free(r->parts[i].json);
    MEM_FREE(r->parts);
    MEM_FREE(r->checks);
    MEM_FREE(r->thresholds);
    MEM_FREE(r->figures);
    r->n_checks = r->n_thresholds = r->n_figures = r->n_parts = 0;
}

void result_figure(struct result *r, const char *section, const char *key, double value, int decimals)
{
    r->figures = mem_realloc_array(r->figures, r->n_figures + 1, sizeof *r->figures);
    r->figures[r->n_figures++] = (struct result_figure){section, key, value, decimals, {0}};
}

void result_percentile(struct result *r, const char *section, const char *key, const struct hist *h, double pct,
                       int64_t unit_us, int decimals)
{
    int64_t us = h ? hist_percentile(h, pct) : -1;

    if (us < 0)
        return;
    result_figure(r, section, key, (double)us / (double)unit_us, decimals);
    r->figures[r->n_figures - 1].few = few_of(key, h, pct);
}

void result_part(struct result *r, const char *key, struct jsonw *w)
{
    if (w->err) {
        LOGE("result", "the part \"%s\" is larger than %zu bytes and left out", key, w->out->max);
        buf_done(w->out);
        return;
    }
    r->parts = mem_realloc_array(r->parts, r->n_parts + 1, sizeof *r->parts);
    r->parts[r->n_parts++] = (struct result_part){key, buf_take(w->out, NULL)};
}

struct check_result *result_check(struct result *r, const char *name)
{
    r->checks = mem_realloc_array(r->checks, r->n_checks + 1, sizeof *r->checks);
    r->checks[r->n_checks] = (struct check_result){.name = name, .status = CHECK_OK};
    return &r->checks[r->n_checks++];
}

void result_check_detail(struct check_result *c, const char *fmt, va_list ap)
{
    char text[600], shown[504];

    c->status = CHECK_VIOLATED;
    c->wrong++;
    if (c->n_detail == DETAILS_KEPT)
        return;
    vsnprintf(text, sizeof text, fmt, ap);
    c->detail = mem_realloc_array(c->detail, c->n_detail + 1, sizeof *c->detail);
    c->detail[c->n_detail++] = mem_strdup(str_shown(shown, sizeof shown, sv_of(text)));
}

void result_check_add(struct check_result *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    result_check_detail(c, fmt, ap);
    va_end(ap);
}

void result_check_note(struct check_result *c, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->note = mem_realloc_array(c->note, c->n_note + 1, sizeof *c->note);
    c->note[c->n_note++] = mem_strdup(text);
}

static bool speaks_of_failures(const struct result *r)
{
    for (size_t i = 0; i < r->n_thresholds; i++)
        if (r->thresholds[i].about_failures)
            return true;
    return false;
}

struct result_verdict result_verdict(const struct result *r)
{
    struct result_verdict v = {0};

    if (r->failures_matter && !speaks_of_failures(r))
        v.failed = stats_failed_all(&r->stats);
    for (size_t i = 0; i < r->n_checks; i++) {
        v.violated += r->checks[i].status == CHECK_VIOLATED;
        v.not_run += r->checks[i].status == CHECK_NOT_RUN;
    }
    for (size_t i = 0; i < r->n_thresholds; i++)
        if (r->thresholds[i].state == THRESHOLD_NOT_JUDGED)
            v.not_judged++;
        else
            v.missed += r->thresholds[i].state != THRESHOLD_MET;
    v.known = !r->interrupted && !r->err && (r->judged || r->n_checks || r->n_thresholds);
    return v;
}

bool result_is_bad(const struct result_verdict *v)
{
    return v->failed || v->violated || v->missed;
}

/* The names of what is bad, in brackets; those that do not fit are counted. */
struct names {
    char text[160];
    size_t n, left_out;
};

static void add_name(struct names *l, const char *name)
{
    size_t room = sizeof l->text - strlen(l->text);

    if (strlen(name) + 2 < room && l->n < 6)
        str_format(l->text + strlen(l->text), room, "%s%s", l->n++ ? ", " : "", name);
    else
        l->left_out++;
}

static size_t put_part(char *dst, size_t room, const char *sep, const char *count, const char *did,
                       const struct names *l)
{
    char more[32] = "";

    if (l->left_out)
        str_format(more, sizeof more, "%s%zu more", l->n ? " and " : "", l->left_out);
    str_format(dst, room, "%s%s %s (%s%s)", sep, count, did, l->text, more);
    return strlen(dst);
}

static void put_generator(const struct generator_summary *g, bool healthy, char *dst, size_t room)
{
    const char *joint = healthy ? "but" : "and";
    if (g->limited)
        str_format(dst, room, ", %s the generator was the limit: no figures; %s", joint, g->why);
    else if (g->late)
        str_format(dst, room, ", %s its times hold the generator's own delays; %s", joint, g->why);
}

char *result_verdict_text(const struct result *r, char *dst)
{
    struct result_verdict v = result_verdict(r);
    struct names failed = {0}, violated = {0}, missed = {0}, not_judged = {0};

    for (unsigned op = 0; op < OP_COUNT && v.failed; op++)
        if (stats_failed(&r->stats, (enum drive_op)op))
            add_name(&failed, drive_op_text((enum drive_op)op));
    for (size_t i = 0; i < r->n_checks; i++)
        if (r->checks[i].status == CHECK_VIOLATED)
            add_name(&violated, r->checks[i].name);
    for (size_t i = 0; i < r->n_thresholds; i++)
        if (r->thresholds[i].state != THRESHOLD_MET)
            add_name(r->thresholds[i].state == THRESHOLD_NOT_JUDGED ? &not_judged : &missed, r->thresholds[i].text);
    const struct {
        uint64_t n;
        const char *what, *did;
        const struct names *names;
    } parts[] = {{v.failed, "operation", "failed", &failed},
                 {v.violated, "check", "violated", &violated},
                 {v.missed, "threshold", "missed", &missed},
                 {v.not_judged, "threshold", "could not be judged", &not_judged}};
    const char *head = result_is_bad(&v) ? "not healthy: " : "not judged: ";
    size_t at = 0;
    dst[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(parts) && v.known; i++)
        if (parts[i].n)
            at += put_part(dst + at, VERDICT_TEXT_MAX - at, at ? ", " : head, COUNTED(parts[i].n, parts[i].what),
                           parts[i].did, parts[i].names);
    if (v.known && !at && v.not_run)
        at = (size_t)str_format(dst, VERDICT_TEXT_MAX, "healthy, %s not run", COUNTED(v.not_run, "check"));
    else if (v.known && !at)
        at = (size_t)str_format(dst, VERDICT_TEXT_MAX, "healthy");
    if (v.known)
        put_generator(&r->generator, !result_is_bad(&v) && !v.not_judged, dst + at, VERDICT_TEXT_MAX - at);
    return dst;
}

int result_exit_status(const struct result *r)
{
    struct result_verdict v = result_verdict(r);

    if (r->reader_gone)
        return RESULT_READER_GONE;
    if (r->interrupted)
        return err_exit_status(ERR_INTERRUPTED);
    if (r->err)
        return err_exit_status(r->err);
    return result_is_bad(&v) ? err_exit_status(ERR_CHECK) : v.not_judged ? err_exit_status(ERR_ENV) : 0;
}

enum err result_json(const struct result *r, struct buf *out)
{
    return result_render_json(r, result_exit_status(r), out);
}

static enum err parse_own_json(const struct result *r, struct json **out, struct errinfo *ei)
{
    struct buf text = BUF_INIT(JSON_MAX);
    enum err err = result_render_json(r, 0, &text);

    if (err)
        err_set(ei, err, "the result does not fit %u bytes", JSON_MAX);
    else
        err = json_parse(text.data, text.len, out, ei);
    buf_done(&text);
    return err;
}

/* A result in which everything is present: what can be named in a threshold is read off it. name: of a check. */
static enum err make_sample(const struct result *of, const char *check_name, struct json **out, struct errinfo *ei)
{
    struct result *r = mem_alloc(sizeof(*r)); /* too large for a coroutine's stack */
    struct api_result one = {.outcome = OUT_OK};
    struct check_result check = {.name = check_name};

    result_init(r, "sample");
    for (unsigned i = 0; i < OP_COUNT; i++)
        stats_record(&r->stats, (enum drive_op)i, &one, (struct mono){0});
    r->tree.known = r->apps.known = r->generator.known = r->events.known = true;
    r->server_peak_rss = 0;
    if (of->sample)
        of->sample(r);
    if (of->sample_after)
        of->sample_after(r);
    r->checks = &check;
    r->n_checks = 1;
    enum err err = parse_own_json(r, out, ei);
    r->checks = NULL;
    r->n_checks = 0;
    result_done(r);
    mem_free(r);
    return err;
}

/* "checks.storage.wrong<1" speaks of the check "storage". */
static void check_named(const char *expr, char *name, size_t n)
{
    static const char prefix[] = "checks.";
    size_t skip = sizeof prefix - 1, len;

    expr += strspn(expr, " ");
    name[0] = '\0';
    if (strncmp(expr, prefix, skip) != 0)
        return;
    len = strcspn(expr + skip, ".<>=! ");
    if (len < n)
        snprintf(name, n, "%.*s", (int)len, expr + skip);
}

enum err result_threshold(struct result *r, const char *expr, struct errinfo *ei)
{
    struct json *sample = NULL;
    struct threshold t;
    char check[64];

    check_named(expr, check, sizeof check);
    enum err err = make_sample(r, check, &sample, ei);
    if (!err)
        err = threshold_parse(&t, expr, sample, ei);
    json_free(&sample);
    if (err)
        return err;
    r->thresholds = mem_realloc_array(r->thresholds, r->n_thresholds + 1, sizeof *r->thresholds);
    r->thresholds[r->n_thresholds++] = t;
    return ERR_OK;
}

void result_judge(struct result *r)
{
    struct json *doc = NULL;

    if (!r->n_thresholds || (!r->shown && parse_own_json(r, &doc, NULL)))
        return; /* unjudged thresholds stand as "no samples", that is missed */
    for (size_t i = 0; i < r->n_thresholds; i++)
        threshold_judge(&r->thresholds[i], r->shown ? r->shown->root : doc);
    json_free(&doc);
}
