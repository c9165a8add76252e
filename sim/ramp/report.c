/* A ramp's figures, written three times: a table for people, JSON, CSV. One table of columns serves the two files. */
#include "sim/ramp/report.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/percentiles.h"
#include "base/secret.h"
#include "sim/ramp/impl.h"

#include <stdio.h>
#include <string.h>

static const struct hist *times(const struct ramp_step *s, enum drive_op op)
{
    return s->stats.op[op].from_send;
}

static double refused_after(const struct ramp_step *s, double pct)
{
    return hist_percentile_ms(s->refusals, pct);
}

static double requests_per_s(const struct ramp_step *s)
{
    return s->measured_us > 0 ? (double)s->requests * 1e6 / (double)s->measured_us : -1;
}

static double done_of(const struct ramp_step *s, double per_s)
{
    return per_s < 0 ? -1 : per_s * (double)s->measured_us / 1e6;
}

static double sign_in_s(const struct ramp_step *s)
{
    double per_s = ramp_sign_ins_per_s(s);
    return per_s > 0 ? (double)stats_ok(&s->stats, OP_SIGN_IN) / per_s : -1;
}

/* Only uploads have a time that is expected. */
static double mb(const struct ramp_measure *m)
{
    return m->p95_s < 0 || m->rate < 0 ? -1 : m->rate / 1e6;
}

static double expected_rate(const struct ramp_step *s)
{
    return s->expected.p95_s < 0 ? s->expected.rate : -1;
}

/* clang-format off */
#define COLUMNS(X, P) /* key, decimals, value; below 0: nothing was measured. P: key, times, percentile */ \
    X("sessions", 0, s->asked) \
    X("up", 0, s->peak) \
    X("ok", 0, s->ok) \
    X("refused", 0, s->refused) \
    X("timed_out", 0, s->timed_out) \
    X("failed", 0, s->failed) \
    X("unfinished", 0, s->unfinished) \
    P("sign_in_p50_ms", times(s, OP_SIGN_IN), 50) \
    P("sign_in_p95_ms", times(s, OP_SIGN_IN), 95) \
    P("sign_in_p99_ms", times(s, OP_SIGN_IN), 99) \
    X("uploads", 0, (double)stats_ok(&s->stats, OP_UPLOAD)) \
    P("upload_p50_ms", times(s, OP_UPLOAD), 50) \
    P("upload_p95_ms", times(s, OP_UPLOAD), 95) \
    P("upload_p99_ms", times(s, OP_UPLOAD), 99) \
    X("operations_per_s", 2, ramp_operations_per_s(s)) \
    X("mb_per_s", 2, mb(&s->measured)) \
    X("expected_mb_per_s", 2, mb(&s->expected)) \
    X("expected_upload_p95_ms", 1, s->expected.p95_s < 0 ? -1 : s->expected.p95_s * 1e3) \
    X("expected", 2, expected_rate(s)) /* actions/s of apps; of sign-ins, sessions let in */ \
    X("requests_per_s", 2, requests_per_s(s)) \
    X("actions_per_s", 2, ramp_actions_per_s(s)) \
    X("sign_ins_per_s", 2, ramp_sign_ins_per_s(s)) \
    P("refused_p50_ms", s->refusals, 50) \
    P("refused_max_ms", s->refusals, 100) \
    X("pass", 0, s->pass) \
    X("held", 0, s->held) \
    X("measured_seconds", 2, (double)s->measured_us / 1e6) \
    X("seconds", 2, (double)s->took_us / 1e6) \
    X("drained_seconds", 2, (double)s->drained_us / 1e6) \
    X("requests", 0, s->requests) /* these are what the rates above are of, in measured_seconds */ \
    X("operations_done", 2, done_of(s, ramp_operations_per_s(s))) \
    X("actions_done", 0, done_of(s, ramp_actions_per_s(s))) \
    X("sign_ins_done", 0, (double)stats_ok(&s->stats, OP_SIGN_IN)) \
    X("sign_in_seconds", 3, sign_in_s(s))
/* clang-format on */

struct column {
    const char *key;
    int decimals;
};
static const struct column columns[] = {
#define X(key, decimals, value) {key, decimals},
#define P(key, times, pct)      {key, 1},
    COLUMNS(X, P)
#undef X
#undef P
};

static void values_of(const struct ramp_step *s, double out[ARRAY_LEN(columns)])
{
    const double values[] = {
#define X(key, decimals, value) value,
#define P(key, times, pct)      hist_percentile_ms(times, pct),
        COLUMNS(X, P)
#undef X
#undef P
    };
    memcpy(out, values, sizeof(values));
}

/* Which of the columns are percentiles of fewer samples than they need. */
static void few_of_step(const struct ramp_step *s, struct few out[ARRAY_LEN(columns)])
{
    const struct few few[] = {
#define X(key, decimals, value) {0},
#define P(key, times, pct)      few_of(key, times, pct),
        COLUMNS(X, P)
#undef X
#undef P
    };
    memcpy(out, few, sizeof(few));
}

/* ---- for people ---- */

static const char *figure(char *dst, size_t n, double v)
{
    if (v < 0)
        snprintf(dst, n, "-");
    else
        str_format(dst, n, "%.*f", v < 10 ? 2 : v < 1000 ? 1 : 0, v);
    return dst;
}

static void print_head(const struct ramp *r)
{
    FILE *out = r->conf->out;
    fprintf(out, "%8s %5s %5s %7s %9s %6s %25s", "sessions", "up", "ok", "refused", "timed out", "failed",
            "sign in p50/p95/p99 ms");
    if (r->conf->work.kind == RAMP_UPLOAD)
        fprintf(out, " %25s %8s  %20s", "upload p50/p95/p99 s", "MB/s", "expected p95 s, MB/s");
    if (r->conf->work.kind == RAMP_APPS)
        fprintf(out, " %25s %25s %9s %9s %12s %10s", "download p50/p95/p99 ms", "save p50/p95/p99 ms", "actions/s",
                "expected", "operations/s", "requests/s");
    if (r->conf->work.kind == RAMP_SIGN_IN)
        fprintf(out, "  %11s", "sign-ins/s");
    fputc('\n', out);
}

static void print_three(FILE *out, const struct hist *h, double scale, int width)
{
    static const double at[] = {50, 95, 99};
    char text[80] = "", one[32];
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        double v = hist_percentile_ms(h, at[i]);
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s%s%s", i ? " / " : "", v < 0 || hist_carries(h, at[i]) ? "" : "~",
                 figure(one, sizeof(one), v < 0 ? v : v * scale));
    }
    fprintf(out, " %*s", width, text);
}

static void print_kind(const struct ramp *r, const struct ramp_step *s)
{
    FILE *out = r->conf->out;
    char a[32], b[32], c[32], d[32];
    switch (r->conf->work.kind) {
    case RAMP_UPLOAD:
        print_three(out, times(s, OP_UPLOAD), 1e-3, 25);
        fprintf(out, " %8s", figure(a, sizeof(a), mb(&s->measured)));
        fprintf(out, "  %12s, %6s", figure(a, sizeof(a), s->expected.p95_s), figure(b, sizeof(b), mb(&s->expected)));
        break;
    case RAMP_APPS:
        print_three(out, times(s, OP_DOWNLOAD), 1, 25);
        print_three(out, times(s, OP_SAVE), 1, 25);
        fprintf(out, " %9s %9s %12s %10s", figure(a, sizeof(a), s->measured.rate),
                figure(b, sizeof(b), s->expected.rate), figure(c, sizeof(c), ramp_operations_per_s(s)),
                figure(d, sizeof(d), requests_per_s(s)));
        break;
    case RAMP_SIGN_IN:
        fprintf(out, "  %11s", figure(a, sizeof(a), ramp_sign_ins_per_s(s)));
        break;
    }
}

void ramp_print_step(const struct ramp *r, const struct ramp_step *s)
{
    FILE *out = r->conf->out;
    char a[32], b[32], server[600];
    if (!out)
        return;
    if (s->number == 1)
        print_head(r);
    fprintf(out, "%8u %5u %5u %7u %9u %6u", s->asked, s->peak, s->ok, s->refused, s->timed_out, s->failed);
    print_three(out, times(s, OP_SIGN_IN), 1, 25);
    print_kind(r, s);
    if (s->unfinished)
        fprintf(out, "  %u unfinished", s->unfinished);
    fputc('\n', out);
    if (s->refusals)
        fprintf(out, "         refused after %s ms at the median, %s ms at most: %s\n",
                figure(a, sizeof(a), refused_after(s, 50)), figure(b, sizeof(b), refused_after(s, 100)),
                s->refused_why);
    if (watch_line(&s->server, "\n                 ", server, sizeof(server))[0])
        fprintf(out, "         server  %s\n", server);
    if (s->limited[0])
        fprintf(out, "         the generator is %s: %s\n", s->crowded ? "late" : "the limit", s->limited);
    fflush(out);
}

/* ---- for programs ---- */

static void write_operations(const struct ramp_step *s, struct jsonw *w)
{
    static const struct percentile rows[] = {{"p50_ms", 50}, {"p95_ms", 95}, {"p99_ms", 99}, {"max_ms", 100}};
    jsonw_object(w, "operations");
    for (int op = 0; op < OP_COUNT; op++) {
        if (stats_calls(&s->stats, (enum drive_op)op) == 0)
            continue;
        jsonw_object(w, drive_op_key((enum drive_op)op));
        jsonw_i64(w, "ok", (int64_t)stats_ok(&s->stats, (enum drive_op)op));
        jsonw_i64(w, "failed", (int64_t)stats_failed(&s->stats, (enum drive_op)op));
        percentiles_write(w, times(s, (enum drive_op)op), rows, ARRAY_LEN(rows));
        if (s->stats.op[op].scheduled) {
            jsonw_object(w, "from_due");
            percentiles_write(w, s->stats.op[op].from_due, rows, ARRAY_LEN(rows));
            jsonw_end_object(w);
        }
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}

static void write_step(const struct ramp_step *s, struct jsonw *w)
{
    double values[ARRAY_LEN(columns)];
    struct few few[ARRAY_LEN(columns)];
    values_of(s, values);
    few_of_step(s, few);
    jsonw_object(w, NULL);
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        jsonw_measured(w, columns[i].key, values[i], columns[i].decimals);
    few_write(w, few, ARRAY_LEN(few));
    write_operations(s, w);
    watch_json(&s->server, "server", w);
    jsonw_end_object(w);
}

/* ---- ranges ---- */

struct range {
    double least, most; /* < 0: never measured */
    bool few;           /* a percentile, and of too few samples in one of the passes */
};

/* Of one column over the passes that held the step. */
static struct range range_of(const struct ramp *r, unsigned step, size_t column)
{
    struct range x = {-1, -1, false};
    double values[ARRAY_LEN(columns)];
    struct few few[ARRAY_LEN(columns)];
    for (unsigned i = step; i < r->n; i += r->conf->steps.n) {
        values_of(&r->steps[i], values);
        double v = values[column];
        if (!r->steps[i].held || v < 0)
            continue;
        few_of_step(&r->steps[i], few);
        x.few = x.few || few[column].needs > 0;
        x.least = x.least < 0 || v < x.least ? v : x.least;
        x.most = v > x.most ? v : x.most;
    }
    return x;
}

static void print_range(const struct ramp *r, unsigned step, const char *key)
{
    char a[32], b[32], text[70];
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if (strcmp(columns[i].key, key) == 0) {
            struct range x = range_of(r, step, i);
            snprintf(text, sizeof(text), "%s%s to %s", x.few ? "~" : "", figure(a, sizeof(a), x.least),
                     figure(b, sizeof(b), x.most));
            fprintf(r->conf->out, "  %20s", text);
        }
}

static unsigned steps_begun(const struct ramp *r)
{
    return r->n < r->conf->steps.n ? r->n : r->conf->steps.n;
}

void ramp_print_few(const struct ramp *r)
{
    struct few few[ARRAY_LEN(columns)];
    bool any = false;
    for (unsigned i = 0; i < r->n; i++) {
        few_of_step(&r->steps[i], few);
        for (size_t k = 0; k < ARRAY_LEN(few); k++)
            any = any || (few[k].needs && few[k].samples);
    }
    if (any)
        ramp_say(r, "%s", HIST_FEW);
}

void ramp_print_ranges(const struct ramp *r)
{
    static const char *const keys[][4] = {
        [RAMP_UPLOAD] = {"sign_in_p95_ms", "upload_p95_ms", "mb_per_s", "ok"},
        [RAMP_APPS] = {"sign_in_p95_ms", "operations_per_s", "actions_per_s", "failed"},
        [RAMP_SIGN_IN] = {"sign_in_p95_ms", "sign_ins_per_s", "ok", "refused"},
    };
    const char *const *use = keys[r->conf->work.kind];
    if (!r->conf->out || r->conf->repeat < 2)
        return;
    fprintf(r->conf->out, "ranges over %u ramps\n%8s", (r->n + r->conf->steps.n - 1) / r->conf->steps.n, "sessions");
    for (size_t k = 0; k < ARRAY_LEN(keys[0]); k++)
        fprintf(r->conf->out, "  %20s", use[k]);
    fputc('\n', r->conf->out);
    for (unsigned i = 0; i < steps_begun(r); i++) {
        fprintf(r->conf->out, "%8u", r->steps[i].asked);
        for (size_t k = 0; k < ARRAY_LEN(keys[0]); k++)
            print_range(r, i, use[k]);
        fputc('\n', r->conf->out);
    }
}

static void write_ranges(const struct ramp *r, struct jsonw *w)
{
    jsonw_array(w, NULL);
    for (unsigned i = 0; i < steps_begun(r); i++) {
        jsonw_object(w, NULL);
        for (size_t k = 0; k < ARRAY_LEN(columns); k++) {
            struct range x = range_of(r, i, k);
            if (x.least < 0)
                continue;
            jsonw_object(w, columns[k].key);
            jsonw_f64(w, "least", x.least, columns[k].decimals);
            jsonw_f64(w, "most", x.most, columns[k].decimals);
            if (x.few)
                jsonw_bool(w, PERCENTILES_FEW, true);
            jsonw_end_object(w);
        }
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_steps(const struct ramp *r, struct jsonw *w)
{
    jsonw_array(w, NULL);
    for (unsigned i = 0; i < r->n; i++)
        write_step(&r->steps[i], w);
    jsonw_end_array(w);
}

static void add_part(const struct ramp *r, struct result *out, const char *key,
                     void (*write)(const struct ramp *, struct jsonw *))
{
    struct buf json = BUF_INIT(8u << 20);
    struct jsonw w;
    jsonw_init(&w, &json);
    write(r, &w);
    result_part(out, key, &w);
}

void ramp_write_json(const struct ramp *r, struct result *out)
{
    add_part(r, out, "steps", write_steps);
    if (r->conf->repeat > 1)
        add_part(r, out, "ranges", write_ranges);
}

enum err ramp_write_csv(const struct ramp *r, struct errinfo *ei)
{
    char file[300], text[40];
    double values[ARRAY_LEN(columns)];
    struct few few[ARRAY_LEN(columns)];
    snprintf(file, sizeof(file), "%s/steps.csv", r->run_dir);
    FILE *f = secret_fopen(file, "wp");
    if (!f)
        return err_sys(ei, ERR_IO, "cannot write %s", file);
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        fprintf(f, "%s,", columns[i].key);
    fputs(PERCENTILES_FEW "\n", f);
    for (unsigned k = 0; k < r->n; k++) {
        values_of(&r->steps[k], values);
        for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
            str_format(text, sizeof(text), "%.*f", columns[i].decimals, values[i]);
            fprintf(f, "%s,", values[i] < 0 ? "" : text);
        }
        few_of_step(&r->steps[k], few);
        for (size_t i = 0, n = 0; i < ARRAY_LEN(few); i++)
            if (few[i].needs && few[i].samples)
                fprintf(f, "%s%s", n++ ? " " : "", few[i].key);
        fputc('\n', f);
    }
    return file_close(&f, file, ei);
}
