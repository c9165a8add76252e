#include "drive/stats.h"
#include "base/mem.h"
#include "base/percentiles.h"
#include <string.h>

void stats_init(struct stats *s)
{
    memset(s, 0, sizeof *s);
}

void stats_done(struct stats *s)
{
    for (unsigned i = 0; i < OP_COUNT; i++) {
        hist_free(&s->op[i].from_send);
        hist_free(&s->op[i].from_due);
    }
    stats_init(s);
}

void stats_reset(struct stats *s)
{
    struct stats_op kept[OP_COUNT];

    memcpy(kept, s->op, sizeof kept);
    stats_init(s);
    for (unsigned i = 0; i < OP_COUNT; i++) {
        struct stats_op *op = &s->op[i];
        op->from_send = kept[i].from_send;
        op->from_due = kept[i].from_due;
        if (op->from_send)
            hist_reset(op->from_send);
        if (op->from_due)
            hist_reset(op->from_due);
    }
}

static void hist_add(struct hist **into, const struct hist *from)
{
    if (!from || !hist_count(from))
        return;
    if (!*into)
        *into = hist_new();
    hist_merge(*into, from);
}

void stats_reason_count(struct stats *s, const char *text, uint64_t n)
{
    for (size_t i = 0; i < s->n_reasons; i++)
        if (strcmp(s->reasons[i].text, text) == 0) {
            s->reasons[i].count += n;
            return;
        }
    if (s->n_reasons == STATS_REASONS) {
        s->other_reasons += n;
        return;
    }
    struct stats_reason *r = &s->reasons[s->n_reasons++];
    snprintf(r->text, sizeof r->text, "%s", text);
    r->count = n;
}

void stats_merge(struct stats *into, const struct stats *from)
{
    for (unsigned i = 0; i < OP_COUNT; i++) {
        for (unsigned o = 0; o < OUT_COUNT; o++)
            into->op[i].by_outcome[o] += from->op[i].by_outcome[o];
        hist_add(&into->op[i].from_send, from->op[i].from_send);
        hist_add(&into->op[i].from_due, from->op[i].from_due);
        into->op[i].scheduled += from->op[i].scheduled;
        if (from->op[i].late_us > into->op[i].late_us)
            into->op[i].late_us = from->op[i].late_us;
    }
    for (unsigned c = 0; c < CAUSE_COUNT; c++)
        into->by_cause[c] += from->by_cause[c];
    for (size_t i = 0; i < from->n_reasons; i++)
        stats_reason_count(into, from->reasons[i].text, from->reasons[i].count);
    into->other_reasons += from->other_reasons;
    into->waited_us += from->waited_us;
    into->throttled += from->throttled;
    into->reconnects += from->reconnects;
    into->bytes_up += from->bytes_up;
    into->bytes_down += from->bytes_down;
}

uint64_t stats_requests(const struct stats *s)
{
    uint64_t n = 0;

    for (unsigned c = 0; c < CAUSE_COUNT; c++)
        n += s->by_cause[c];
    return n;
}

static void record_latency(struct hist **h, struct mono from, struct mono to)
{
    if (!*h)
        *h = hist_new();
    hist_record(*h, mono_diff(to, from));
}

void stats_record(struct stats *s, enum drive_op op, const struct api_result *r, struct mono due)
{
    struct stats_op *o = &s->op[op];

    o->by_outcome[r->outcome]++;
    s->throttled += r->outcome == OUT_THROTTLED;
    s->bytes_up += r->bytes_up;
    s->bytes_down += r->bytes_down;
    o->scheduled += due.us != 0;
    if (due.us && r->sent.us && mono_diff(r->sent, due) > o->late_us)
        o->late_us = mono_diff(r->sent, due);
    if (r->outcome == OUT_OK) {
        record_latency(&o->from_send, r->sent, r->done);
        record_latency(&o->from_due, due.us ? due : r->sent, r->done);
    }
    if (outcome_is_failure(r->outcome)) {
        char text[sizeof r->reason + 16];
        const char *why = r->reason[0] ? r->reason : outcome_key(r->outcome);
        if (r->status)
            snprintf(text, sizeof text, "%d %s", r->status, why);
        else
            snprintf(text, sizeof text, "%s", why);
        stats_reason_add(s, op, text);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* An id: eight or more letters and digits mixed, or a word whose case changes too often for one that people write. */
static bool is_id(struct sv word)
{
    unsigned digits = 0, rises = 0;

    for (size_t i = 0; i < word.n; i++) {
        digits += is_digit(word.p[i]);
        rises += i && word.p[i] >= 'A' && word.p[i] <= 'Z' && word.p[i - 1] >= 'a' && word.p[i - 1] <= 'z';
    }
    return word.n >= 8 && (digits || (word.n >= 12 && rises * 5 >= word.n));
}

/* One word with each run of digits as '#', or '#' alone for an id. The HTTP status in front stays. */
static enum err fold_word(struct buf *out, struct sv word, bool keep)
{
    enum err err = ERR_OK;

    if (keep)
        return buf_append(out, word.p, word.n);
    if (is_id(word))
        return buf_append_char(out, '#');
    for (size_t i = 0; i < word.n && !err; i++) {
        if (!is_digit(word.p[i]))
            err = buf_append_char(out, word.p[i]);
        else if (!i || !is_digit(word.p[i - 1]))
            err = buf_append_char(out, '#');
    }
    return err;
}

/* "3,168 years", "28 h": so long a time is no measurement that differs each time, and a reader has to see it. Returns
 * the bytes of the number; 0: it is none of these. */
static size_t long_time(struct sv text)
{
    static const char *const units[] = {"h", "day", "days", "year", "years"};
    size_t n = 0, word = 0;

    while (n < text.n && (is_digit(text.p[n]) || (n && text.p[n] == ',' && n + 1 < text.n && is_digit(text.p[n + 1]))))
        n++;
    if (!n || n == text.n || text.p[n] != ' ')
        return 0;
    struct sv unit = {text.p + n + 1, text.n - n - 1};
    while (word < unit.n && is_word(unit.p[word]))
        word++;
    unit.n = word;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (sv_eq_cstr(unit, units[i]))
            return n;
    return 0;
}

static enum err fold(struct buf *out, struct sv text)
{
    enum err err = ERR_OK;
    bool first = true;

    while (text.n && !err) {
        size_t n = 0, shown = long_time(text);
        while (n < text.n && is_word(text.p[n]))
            n++;
        /* "\x1b" is an escaped byte, not a number. */
        bool escape = text.n > 3 && text.p[0] == '\\' && text.p[1] == 'x';
        if (escape)
            err = buf_append(out, text.p, n = 4);
        else if (shown)
            err = buf_append(out, text.p, n = shown);
        else if (n)
            err = fold_word(out, (struct sv){text.p, n}, first && n == 3);
        else
            err = buf_append(out, text.p, n = 1);
        text = (struct sv){text.p + n, text.n - n};
        first = false;
    }
    return err;
}

void stats_reason_add(struct stats *s, enum drive_op op, const char *reason)
{
    struct buf folded = BUF_INIT(8192), shown = BUF_INIT(1024);
    struct sv text = {reason, strnlen(reason, 4096)};

    if (buf_appendf(&shown, "%s: ", drive_op_text(op)) || fold(&folded, text) ||
        str_escape(&shown, (struct sv){buf_cstr(&folded), folded.len}, sizeof s->reasons[0].text - 48))
        goto out; /* cannot be: both limits are above what goes in */
    stats_reason_count(s, buf_cstr(&shown), 1);
out:
    buf_done(&folded);
    buf_done(&shown);
}

uint64_t stats_ok(const struct stats *s, enum drive_op op)
{
    return s->op[op].by_outcome[OUT_OK];
}

uint64_t stats_failed(const struct stats *s, enum drive_op op)
{
    uint64_t n = 0;

    for (unsigned o = 0; o < OUT_COUNT; o++)
        if (outcome_is_failure((enum outcome)o))
            n += s->op[op].by_outcome[o];
    return n;
}

uint64_t stats_calls(const struct stats *s, enum drive_op op)
{
    uint64_t n = 0;

    for (unsigned o = 0; o < OUT_COUNT; o++)
        n += s->op[op].by_outcome[o];
    return n;
}

uint64_t stats_broken(const struct stats *s)
{
    static const enum drive_op ops[] = {OP_SAVE,  OP_UPLOAD,    OP_BULK_UPLOAD, OP_BIG_UPLOAD, OP_COPY,
                                        OP_PURGE, OP_BULK_COPY, OP_BULK_PURGE,  OP_JOB};
    static const enum outcome broken[] = {OUT_TIMEOUT, OUT_TRANSPORT, OUT_SERVER, OUT_UNKNOWN, OUT_OUTAGE};
    uint64_t n = 0;
    for (size_t k = 0; k < ARRAY_LEN(ops); k++)
        for (size_t i = 0; i < ARRAY_LEN(broken); i++)
            n += s->op[ops[k]].by_outcome[broken[i]];
    return n;
}

uint64_t stats_failed_all(const struct stats *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < OP_COUNT; i++)
        n += stats_failed(s, (enum drive_op)i);
    return n;
}

/* What is neither ok nor failed stands behind the line. */
static void print_rest(const struct stats_op *o, FILE *out)
{
    static const struct {
        enum outcome outcome;
        const char *one, *text;
    } rows[] = {{OUT_CONFLICT, "conflict", "conflicts"},
                {OUT_THROTTLED, "throttled", "throttled"},
                {OUT_OUTAGE, "during an outage", "during an outage"}};
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
