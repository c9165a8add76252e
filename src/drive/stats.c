#include "drive/stats.h"
#include "base/mem.h"
#include <stdio.h>
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

    for (unsigned k = 0; k < CAUSE_COUNT; k++)
        n += s->by_cause[k];
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
