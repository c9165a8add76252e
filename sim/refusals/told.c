/* What people and programs read of `sim refusals`. */
#include "base/mem.h"
#include "base/percentiles.h"
#include "sim/refusals/command.h"

#include <inttypes.h>

static const char *const verdict_words[] = {"ok", "FAILED", "not tried", "allowed"};
static const char *const verdict_keys[] = {"ok", "failed", "not_tried", "allowed"};

void refusals_print_list(FILE *out)
{
    for (size_t i = 0; i < n_refusals; i++)
        fprintf(out, "%-28s %d  %s\n", refusals[i].key, refusals[i].status, refusals[i].asked);
}

void refusals_print_head(FILE *out)
{
    fprintf(out, "%-9s %7s  %6s  %10s  asked (status expected): the reason that came\n", "verdict", "tries", "status",
            "slowest ms");
}

void refusals_print_row(const struct command_refusals *c, const struct refusal *f, const struct verdict_row *v)
{
    static const char *const paint[] = {"\033[32m", "\033[31m", "\033[33m", "\033[33m"};
    char count[32] = "-", status[16] = "-", slowest[32] = "-", line[700], shown[164];
    if (v->tries) {
        str_format(count, sizeof(count), "%u/%u", v->ok, v->tries);
        str_format(slowest, sizeof(slowest), "%.1f", hist_count(v->took) ? (double)hist_max(v->took) / 1e3 : 0.0);
    }
    if (v->status)
        str_format(status, sizeof(status), "%d", v->status);
    str_format(line, sizeof(line), "%7s  %6s  %10s  %s (%d): %s", count, status, slowest, f->asked, f->status,
               str_shown(shown, sizeof(shown), sv_of(v->why[0] ? v->why : v->came)));
    fprintf(c->ctx->out, "%s%-9s%s %s\n", c->ctx->color ? paint[v->verdict] : "", verdict_words[v->verdict],
            c->ctx->color ? "\033[0m" : "", line);
}

static void write_row(struct jsonw *w, const struct refusal *f, const struct verdict_row *v)
{
    jsonw_object(w, f->key);
    jsonw_str(w, "asked", f->asked);
    jsonw_i64(w, "expected_status", f->status);
    jsonw_str(w, "expected_code", f->code);
    jsonw_str(w, "verdict", verdict_keys[v->verdict]);
    jsonw_i64(w, "tries", v->tries);
    jsonw_i64(w, "ok", v->ok);
    jsonw_i64(w, "status", v->status);
    jsonw_str(w, "reason", v->came);
    jsonw_str(w, "why", v->why);
    static const struct percentile times[] = {{"p50_ms", 50}, {"p95_ms", 95}, {"max_ms", 100}};
    percentiles_write(w, v->took, times, ARRAY_LEN(times));
    jsonw_end_object(w);
}

/* all: those that were not asked for too. */
static void write_rows(struct result *r, const struct verdict_row *rows, bool all)
{
    struct buf json = BUF_INIT(16 << 20);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    for (size_t i = 0; i < n_refusals; i++)
        if (all || rows[i].took)
            write_row(&w, &refusals[i], &rows[i]);
    jsonw_end_object(&w);
    result_part(r, "refusals", &w);
}

static void add_p95(struct result *r, const char *key, const struct background_window *w)
{
    if (w->ok == 0)
        return;
    result_figure(r, "background", key, (double)w->p95_us / 1e3, 3);
    r->figures[r->n_figures - 1].few = few_of_count(key, w->ok, 95);
}

static const char *p95_text(char *dst, size_t n, const struct background_window *w)
{
    if (w->ok == 0)
        return "-";
    return str_format(dst, n, "%s%.1f ms", few_of_count("", w->ok, 95).needs ? "~" : "", (double)w->p95_us / 1e3), dst;
}

static void add_background(struct result *r, const struct background_window *b, const struct background_window *d)
{
    add_p95(r, "before_p95_ms", b);
    add_p95(r, "during_p95_ms", d);
    result_figure(r, "background", "before_operations", (double)b->ok, 0);
    result_figure(r, "background", "during_operations", (double)d->ok, 0);
    result_figure(r, "background", "failed", (double)(b->failed + d->failed), 0);
}

static void judge_background(struct command_refusals *c, struct check_result *r)
{
    static const char *const words[] = {[BACKGROUND_HELD] = "within 20 %",
                                        [BACKGROUND_WORSE] = "MORE than 20 % above",
                                        [BACKGROUND_UNSETTLED] = "too few to judge",
                                        [BACKGROUND_CROWDED] = "above, but the machine had no processor time left"};
    const struct background_window *b = &c->before, *d = &c->during;
    char line[300];
    if (c->conf->background == 0 || b->us == 0)
        return;
    char before[32], during[32];
    str_format(line, sizeof(line), "p95 %s of %" PRIu64 " operations before, %s of %" PRIu64 " during refusals",
               p95_text(before, sizeof(before), b), b->ok, p95_text(during, sizeof(during), d), d->ok);
    fprintf(c->ctx->out, "background: %s: %s\n", line, words[c->held]);
    if (c->held == BACKGROUND_WORSE)
        result_check_add(r, "the background was held up: %s", line);
    add_background(c->ctx->result, b, d);
}

void refusals_report(struct command_refusals *c)
{
    struct check_result *r = result_check(c->ctx->result, "refusals");
    uint64_t counts[4] = {0};
    for (size_t i = 0; i < n_refusals; i++) {
        const struct verdict_row *v = &c->rows[i];
        if (!v->took)
            continue;
        counts[v->verdict]++;
        r->examined += v->tries;
        if (v->verdict == VERDICT_FAILED)
            result_check_add(r, "%s: %s: %u of %u held; %s", refusals[i].key, refusals[i].asked, v->ok, v->tries,
                             v->why);
    }
    write_rows(c->ctx->result, c->rows, false);
    judge_background(c, r);
    str_format(r->summary, sizeof(r->summary),
               "%s held in every try, %" PRIu64 " failed, %" PRIu64 " not tried, %" PRIu64 " that this server allows",
               COUNTED(counts[VERDICT_HELD], "refusal"), counts[VERDICT_FAILED], counts[VERDICT_NOT_TRIED],
               counts[VERDICT_ALLOWED]);
}

void refusals_sample(struct result *r)
{
    const struct background_window none = {0};
    struct verdict_row *rows = mem_zalloc(n_refusals * sizeof(*rows));
    add_background(r, &none, &none);
    write_rows(r, rows, true);
    mem_free(rows);
}
