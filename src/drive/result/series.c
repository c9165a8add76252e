/* Values of a histogram are pairs, microseconds and count: [1250,3,1261,1]. Latencies from due are left out where they
 * are those from the send, which is so for every operation without a schedule. */
#include "drive/result/series.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/version.h"
#include <stdio.h>
#include <string.h>

#define LINE_MAX   (16u << 20)
#define MEMORY_MAX (256u << 20)
#define VALUE_MOST INT64_C(1000000000000000) /* 31 years, and as many samples as nobody has */

struct series {
    FILE *file; /* NULL: in memory */
    char path[320];
    struct buf kept, line;
    struct jsonw w;
    struct mono zero;
    struct wall zero_wall;
    size_t lines;
    bool failed;
};

/* ---- writing ---- */

static void write_value(void *arg, int64_t us, uint64_t n)
{
    jsonw_i64(arg, NULL, us);
    jsonw_i64(arg, NULL, (int64_t)n);
}

static void write_values(struct jsonw *w, const char *key, const struct hist *h)
{
    jsonw_array(w, key);
    hist_each(h, write_value, w);
    jsonw_end_array(w);
}

/* By what is told of them: that is what a reader sees. */
static bool same_values(const struct hist *a, const struct hist *b)
{
    static const double pcts[] = {0, 50, 90, 95, 99, 100};
    if (hist_count(a) != hist_count(b) || hist_mean(a) != hist_mean(b))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(pcts); i++)
        if (hist_percentile(a, pcts[i]) != hist_percentile(b, pcts[i]))
            return false;
    return true;
}

static void write_operation(const struct stats *s, enum drive_op op, struct jsonw *w)
{
    const struct stats_op *o = &s->op[op];
    jsonw_object(w, drive_op_key(op));
    for (unsigned i = 0; i < OUT_COUNT; i++)
        if (o->by_outcome[i])
            jsonw_i64(w, outcome_key((enum outcome)i), (int64_t)o->by_outcome[i]);
    if (o->scheduled) {
        jsonw_i64(w, "scheduled", (int64_t)o->scheduled);
        jsonw_i64(w, "late_us", o->late_us);
    }
    if (o->from_send && hist_count(o->from_send)) {
        write_values(w, "from_send_us", o->from_send);
        if (o->from_due && !same_values(o->from_send, o->from_due))
            write_values(w, "from_due_us", o->from_due);
    }
    jsonw_end_object(w);
}

static const struct {
    const char *key;
    size_t offset;
} counters[] = {
    {"throttled", offsetof(struct stats, throttled)},         {"reconnects", offsetof(struct stats, reconnects)},
    {"bytes_up", offsetof(struct stats, bytes_up)},           {"bytes_down", offsetof(struct stats, bytes_down)},
    {"other_reasons", offsetof(struct stats, other_reasons)},
};

static void write_stats(const struct stats *s, struct jsonw *w)
{
    jsonw_i64(w, "requests", (int64_t)stats_requests(s));
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        uint64_t n;
        memcpy(&n, (const char *)s + counters[i].offset, sizeof(n));
        if (n)
            jsonw_i64(w, counters[i].key, (int64_t)n);
    }
    if (s->waited_us)
        jsonw_i64(w, "waited_us", s->waited_us);
    jsonw_object(w, "causes");
    for (unsigned c = 0; c < CAUSE_COUNT; c++)
        if (s->by_cause[c])
            jsonw_i64(w, cause_key((enum cause)c), (int64_t)s->by_cause[c]);
    jsonw_end_object(w);
    jsonw_object(w, "operations");
    for (unsigned op = 0; op < OP_COUNT; op++)
        if (stats_calls(s, (enum drive_op)op))
            write_operation(s, (enum drive_op)op, w);
    jsonw_end_object(w);
    if (s->n_reasons)
        jsonw_object(w, "failures");
    for (size_t i = 0; i < s->n_reasons; i++)
        jsonw_i64(w, s->reasons[i].text, (int64_t)s->reasons[i].count);
    if (s->n_reasons)
        jsonw_end_object(w);
}

/* Nobody reads what stands behind a line that is broken off, so the first one that fails is the last. */
static void put_line(struct series *s)
{
    enum err e = s->w.err ? s->w.err : buf_append_char(&s->line, '\n');
    if (e == ERR_OK && s->file)
        e = fwrite(s->line.data, 1, s->line.len, s->file) == s->line.len && fflush(s->file) == 0 ? ERR_OK : ERR_IO;
    else if (e == ERR_OK)
        e = buf_append(&s->kept, s->line.data, s->line.len);
    if (e != ERR_OK && !s->failed)
        LOGE("series", "%s: %s: no more intervals are kept", s->path, s->file ? "cannot be written" : err_text(e));
    s->failed = s->failed || e != ERR_OK;
    s->lines += e == ERR_OK;
    buf_reset(&s->line);
}

static void write_owner(struct series *s, const struct series_owner *owner)
{
    char now[40];
    jsonw_object(&s->w, NULL);
    jsonw_str(&s->w, "drivesim", drivesim_version);
    jsonw_str(&s->w, "command", owner->command);
    jsonw_str(&s->w, "target", owner->target);
    jsonw_str(&s->w, "arguments", owner->arguments);
    jsonw_i64(&s->w, "seed", owner->seed);
    jsonw_str(&s->w, "began", wall_format(now, sizeof(now), s->zero_wall));
    jsonw_end_object(&s->w);
}

enum err series_new(struct series **out, const char *dir, const struct series_owner *owner, struct mono zero,
                    struct errinfo *ei)
{
    struct series *s = mem_zalloc(sizeof(*s));
    s->zero = zero;
    s->zero_wall = (struct wall){wall_now().us - mono_diff(mono_now(), zero)};
    buf_init(&s->line, LINE_MAX);
    buf_init(&s->kept, MEMORY_MAX);
    str_format(s->path, sizeof(s->path), "%s%s" SERIES_FILE, dir ? dir : "", dir ? "/" : "");
    if (dir && !(s->file = secret_fopen(s->path, "wp"))) {
        enum err e = err_sys(ei, ERR_IO, "cannot write %s", s->path);
        series_free(&s);
        return e;
    }
    jsonw_init(&s->w, &s->line);
    write_owner(s, owner);
    put_line(s);
    *out = s;
    return ERR_OK;
}

void series_free(struct series **s)
{
    if (!*s)
        return;
    if ((*s)->file)
        fclose((*s)->file);
    buf_done(&(*s)->line);
    buf_done(&(*s)->kept);
    MEM_FREE(*s);
}

struct jsonw *series_begin(struct series *s, const struct series_span *span, const struct stats *stats)
{
    char at[40];
    int64_t since_us = mono_diff(span->from, s->zero);
    buf_reset(&s->line);
    jsonw_init(&s->w, &s->line);
    jsonw_object(&s->w, NULL);
    jsonw_f64(&s->w, "at_seconds", (double)since_us / 1e6, 3);
    jsonw_f64(&s->w, "seconds", (double)mono_diff(span->to, span->from) / 1e6, 3);
    jsonw_str(&s->w, "from", wall_format(at, sizeof(at), (struct wall){s->zero_wall.us + since_us}));
    jsonw_str(&s->w, "phase", span->phase);
    write_stats(stats, &s->w);
    return &s->w;
}

void series_end(struct series *s)
{
    jsonw_end_object(&s->w);
    if (!s->failed)
        put_line(s);
}

struct mono series_zero(const struct series *s)
{
    return s->zero;
}

enum err series_text(const struct series *s, struct buf *out, struct errinfo *ei)
{
    if (s->file)
        return file_read(s->path, out, ERR_IO, ei);
    return buf_append(out, buf_cstr(&s->kept), s->kept.len);
}

bool series_empty(const struct series *s)
{
    return !s || s->lines < 2;
}

/* ---- reading ---- */

static uint64_t count_of(const struct json *object, const char *key)
{
    int64_t n = 0;
    return json_i64(json_get(object, key), &n) && n > 0 ? (uint64_t)n : 0;
}

static void read_values(const struct json *pairs, struct hist **into)
{
    int64_t us, n;
    for (const struct json *v = json_first(pairs); v; v = json_next(v)) {
        bool known = json_i64(v, &us);
        v = json_next(v);
        if (!v)
            return;
        if (!known || !json_i64(v, &n) || n < 1 || n > VALUE_MOST || us > VALUE_MOST)
            continue;
        if (!*into)
            *into = hist_new();
        hist_record_n(*into, us, (uint64_t)n);
    }
}

static void read_operation(const struct json *from, struct stats_op *into)
{
    const struct json *sent = json_get(from, "from_send_us"), *due = json_get(from, "from_due_us");
    for (unsigned i = 0; i < OUT_COUNT; i++)
        into->by_outcome[i] += count_of(from, outcome_key((enum outcome)i));
    into->scheduled += count_of(from, "scheduled");
    int64_t late_us = (int64_t)count_of(from, "late_us");
    into->late_us = late_us > into->late_us ? late_us : into->late_us;
    read_values(sent, &into->from_send);
    read_values(due ? due : sent, &into->from_due);
}

void series_read(const struct json *line, struct stats *into)
{
    const struct json *operations = json_get(line, "operations"), *causes = json_get(line, "causes");
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        uint64_t n;
        memcpy(&n, (const char *)into + counters[i].offset, sizeof(n));
        n += count_of(line, counters[i].key);
        memcpy((char *)into + counters[i].offset, &n, sizeof(n));
    }
    into->waited_us += (int64_t)count_of(line, "waited_us");
    for (unsigned c = 0; c < CAUSE_COUNT; c++)
        into->by_cause[c] += count_of(causes, cause_key((enum cause)c));
    for (unsigned op = 0; op < OP_COUNT; op++)
        read_operation(json_get(operations, drive_op_key((enum drive_op)op)), &into->op[op]);
    for (const struct json *f = json_first(json_get(line, "failures")); f; f = json_next(f)) {
        int64_t n = 0;
        if (json_key(f) && json_i64(f, &n) && n > 0)
            stats_reason_count(into, json_key(f), (uint64_t)n);
    }
}
