#include "drive/stats_told.h"
#include "base/mem.h"
#include "base/percentiles.h"
#include <string.h>

/* What is neither ok nor failed stands behind the line. */
static void print_rest(const struct stats_op *o, FILE *out)
{
    static const struct {
        enum outcome outcome;
        const char *one, *text;
    } rows[] = {{OUT_CONFLICT, "conflict", "conflicts"},
                {OUT_THROTTLED, "throttled", "throttled"},
                {OUT_OUTAGE, "during an outage", "during an outage"},
                {OUT_LOCAL, "not sent: this machine ran short", "not sent: this machine ran short"}};
    const char *sep = "      ";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned long long n = o->by_outcome[rows[i].outcome];
        if (!n)
            continue;
        fprintf(out, "%s%llu %s", sep, n, n == 1 ? rows[i].one : rows[i].text);
        sep = ", ";
    }
    fputc('\n', out);
}

/* ---- the table ---- */

#define TIME_WIDTH 9
static const double table_pcts[] = {50, 95, 99, 100};
struct times_row {
    char cells[ARRAY_LEN(table_pcts)][24];
    bool few;
};

static struct times_row times_of(const struct hist *h)
{
    struct times_row row = {.few = false};
    for (size_t p = 0; p < ARRAY_LEN(table_pcts); p++) {
        hist_cell(h, table_pcts[p], US_PER_MS, 1, row.cells[p], sizeof row.cells[p]);
        row.few |= row.cells[p][0] == '~';
    }
    return row;
}

static bool same_times(const struct times_row *a, const struct times_row *b)
{
    for (size_t p = 0; p < ARRAY_LEN(table_pcts); p++)
        if (strcmp(a->cells[p], b->cells[p]) != 0)
            return false;
    return true;
}

static void print_times(const struct times_row *row, FILE *out)
{
    for (size_t p = 0; p < ARRAY_LEN(table_pcts); p++)
        fprintf(out, " %*s", TIME_WIDTH, row->cells[p]);
}

/* True when a percentile of it is of too few samples. */
static bool print_op(const struct stats *s, enum drive_op op, FILE *out, bool color)
{
    const struct stats_op *o = &s->op[op];
    const struct times_row sent = times_of(o->from_send), due = times_of(o->from_due);
    uint64_t failed = stats_failed(s, op);
    bool red = color && failed;
    fprintf(out, "%-16s %9llu %s%7llu%s", drive_op_text(op), (unsigned long long)stats_ok(s, op), red ? "\033[31m" : "",
            (unsigned long long)failed, red ? "\033[0m" : "");
    print_times(&sent, out);
    print_rest(o, out);
    if (!same_times(&sent, &due)) {
        fprintf(out, "%-34s", "  since due");
        print_times(&due, out);
        fputc('\n', out);
    }
    return sent.few || due.few;
}

/* Nothing when none had a time of its own. */
static void print_lateness(const struct stats *s, FILE *out)
{
    char text[32];
    int worst = -1;

    for (int i = 0; i < OP_COUNT; i++)
        if (s->op[i].scheduled && (worst < 0 || s->op[i].late_us > s->op[worst].late_us))
            worst = i;
    if (worst >= 0)
        fprintf(out, "late      at most %s after it was due (%s)\n",
                str_duration(text, sizeof text, s->op[worst].late_us), drive_op_text((enum drive_op)worst));
}

void stats_print_table(const struct stats *s, FILE *out, bool color)
{
    bool few = false;

    fprintf(out, "%-16s %9s %7s %9s %9s %9s %9s  ms since sent\n", "operation", "ok", "failed", "p50", "p95", "p99",
            "slowest");
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (stats_calls(s, (enum drive_op)i))
            few |= print_op(s, (enum drive_op)i, out, color);
    if (few)
        fprintf(out, "%s\n", HIST_FEW);
    print_lateness(s, out);
}

/* Indices of the reasons, most common first; ties in the order of their coming. */
static void rank_reasons(const struct stats *s, size_t order[STATS_REASONS])
{
    for (size_t i = 0; i < s->n_reasons; i++) {
        size_t at = i;
        for (; at && s->reasons[order[at - 1]].count < s->reasons[i].count; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

void stats_print_reasons(const struct stats *s, FILE *out, size_t most)
{
    size_t order[STATS_REASONS];
    uint64_t beyond = s->other_reasons;

    if (!s->n_reasons && !beyond)
        return;
    rank_reasons(s, order);
    fprintf(out, "most common failure reasons\n");
    for (size_t i = 0; i < s->n_reasons; i++) {
        const struct stats_reason *r = &s->reasons[order[i]];
        if (i < most)
            fprintf(out, "%9llu  %s\n", (unsigned long long)r->count, r->text);
        else
            beyond += r->count;
    }
    if (beyond)
        fprintf(out, "%9llu  other reasons\n", (unsigned long long)beyond);
}

static void write_latency(struct jsonw *w, const struct hist *h)
{
    static const struct percentile rows[] = {
        {"p50_ms", 50}, {"p95_ms", 95}, {"p99_ms", 99}, {"max_ms", 100}, {"min_ms", 0}};
    percentiles_write(w, h, rows, ARRAY_LEN(rows));
    jsonw_measured(w, "mean_ms", h && hist_count(h) ? hist_mean(h) / 1e3 : -1, 3);
}

static void write_op(const struct stats *s, enum drive_op op, struct jsonw *w)
{
    const struct stats_op *o = &s->op[op];

    jsonw_object(w, drive_op_key(op));
    jsonw_i64(w, "ok", (int64_t)stats_ok(s, op));
    jsonw_i64(w, "failed", (int64_t)stats_failed(s, op));
    jsonw_object(w, "outcomes");
    for (unsigned i = 0; i < OUT_COUNT; i++)
        jsonw_i64(w, outcome_key((enum outcome)i), (int64_t)o->by_outcome[i]);
    jsonw_end_object(w);
    write_latency(w, o->from_send);
    jsonw_object(w, "from_due");
    jsonw_i64(w, "scheduled", (int64_t)o->scheduled);
    jsonw_measured(w, "late_max_ms", o->scheduled ? (double)o->late_us / 1e3 : -1, 3);
    write_latency(w, o->from_due);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

static void write_failures(const struct stats *s, struct jsonw *w)
{
    size_t order[STATS_REASONS];

    rank_reasons(s, order);
    jsonw_array(w, "failures");
    for (size_t i = 0; i <= s->n_reasons; i++) {
        bool last = i == s->n_reasons;
        if (last && !s->other_reasons)
            break;
        jsonw_object(w, NULL);
        jsonw_str(w, "reason", last ? "other reasons" : s->reasons[order[i]].text);
        jsonw_i64(w, "count", (int64_t)(last ? s->other_reasons : s->reasons[order[i]].count));
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

void stats_write_json(const struct stats *s, struct jsonw *w)
{
    jsonw_i64(w, "requests", (int64_t)stats_requests(s));
    jsonw_i64(w, "failed", (int64_t)stats_failed_all(s));
    jsonw_i64(w, "throttled", (int64_t)s->throttled);
    jsonw_i64(w, "reconnects", (int64_t)s->reconnects);
    jsonw_f64(w, "waited_seconds", (double)s->waited_us / 1e6, 3);
    jsonw_i64(w, "bytes_up", (int64_t)s->bytes_up);
    jsonw_i64(w, "bytes_down", (int64_t)s->bytes_down);
    jsonw_object(w, "causes");
    for (unsigned c = 0; c < CAUSE_COUNT; c++)
        jsonw_i64(w, cause_key((enum cause)c), (int64_t)s->by_cause[c]);
    jsonw_end_object(w);
    jsonw_object(w, "operations");
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (stats_calls(s, (enum drive_op)i))
            write_op(s, (enum drive_op)i, w);
    jsonw_end_object(w);
    write_failures(s, w);
}
