/* Prometheus text exposition format 0.0.4: of one command that is over, so for the textfile collector or a push. A
 * family stands in one block, HELP and TYPE first; units are base units, counters end in _total. */
#include "base/clock.h"
#include "base/mem.h"
#include "drive/result/impl.h"
#include <string.h>

struct text {
    struct buf *out;
    enum err err;
};

struct label {
    const char *name, *value;
};

static void family(struct text *t, const char *name, const char *type, const char *help)
{
    if (!t->err)
        t->err = buf_appendf(t->out, "# HELP drivesim_%s %s\n# TYPE drivesim_%s %s\n", name, help, name, type);
}

/* Within quotes a backslash, a quote and a line feed are escaped. */
static void put_label_value(struct text *t, const char *value)
{
    for (; *value && !t->err; value++) {
        if (*value == '\\' || *value == '"')
            t->err = buf_append_char(t->out, '\\');
        if (!t->err)
            t->err = *value == '\n' ? buf_append_str(t->out, "\\n") : buf_append_char(t->out, *value);
    }
}

static void sample(struct text *t, const char *name, const struct label *labels, size_t n, double value)
{
    if (!t->err)
        t->err = buf_appendf(t->out, "drivesim_%s", name);
    for (size_t i = 0; i < n && !t->err; i++) {
        t->err = buf_appendf(t->out, "%c%s=\"", i ? ',' : '{', labels[i].name);
        put_label_value(t, labels[i].value);
        if (!t->err)
            t->err = buf_append_char(t->out, '"');
    }
    if (n && !t->err)
        t->err = buf_append_char(t->out, '}');
    if (!t->err)
        t->err = buf_appendf(t->out, " %.15g\n", value);
}

static const char *text_of(const struct json *o, const char *key)
{
    const char *s = json_str(json_get(o, key));
    return s ? s : "";
}

static void put_info(struct text *t, const struct doc *d)
{
    const struct label labels[] = {{"command", doc_string(d, "command")},
                                   {"target", doc_string(d, "target")},
                                   {"arguments", doc_string(d, "arguments")},
                                   {"version", doc_string(d, "drivesim")}};
    struct wall began = {0};
    family(t, "command_info", "gauge", "The command that these figures are of.");
    sample(t, "command_info", labels, ARRAY_LEN(labels), 1);
    family(t, "exit_status", "gauge", "Exit status: 0 is healthy.");
    sample(t, "exit_status", NULL, 0, doc_number(d, "exit", 0));
    family(t, "duration_seconds", "gauge", "How long the measured part took.");
    sample(t, "duration_seconds", NULL, 0, doc_number(d, "seconds", 0));
    if (!wall_parse(doc_string(d, "began"), &began))
        return;
    family(t, "start_time_seconds", "gauge", "When it began, in seconds since 1970.");
    sample(t, "start_time_seconds", NULL, 0, (double)began.us / 1e6);
}

/* A counter or gauge for each member of an object that is a number. */
static void put_members(struct text *t, const char *name, const char *type, const char *help, const struct json *object,
                        const char *label)
{
    double v;
    if (!json_count(object))
        return;
    family(t, name, type, help);
    for (const struct json *m = json_first(object); m; m = json_next(m))
        if (json_f64(m, &v))
            sample(t, name, &(struct label){label, json_key(m)}, 1, v);
}

static void put_outcomes(struct text *t, const struct json *operations)
{
    double v;
    if (!json_count(operations))
        return;
    family(t, "operations_total", "counter", "Operations by how they ended.");
    for (const struct json *op = json_first(operations); op; op = json_next(op))
        for (const struct json *o = json_first(json_get(op, "outcomes")); o; o = json_next(o)) {
            const struct label labels[] = {{"operation", json_key(op)}, {"outcome", json_key(o)}};
            if (json_f64(o, &v))
                sample(t, "operations_total", labels, 2, v);
        }
}

static const struct {
    const char *key, *quantile;
} quantiles[] = {{"min_ms", "0"}, {"p50_ms", "0.5"}, {"p95_ms", "0.95"}, {"p99_ms", "0.99"}, {"max_ms", "1"}};

static void put_quantiles(struct text *t, const char *operation, const char *from, const struct json *times, double n)
{
    struct label labels[] = {{"operation", operation}, {"since", from}, {"quantile", ""}};
    double v;
    if (!json_f64(json_get(times, "mean_ms"), &v))
        return;
    double mean = v;
    for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
        labels[2].value = quantiles[i].quantile;
        if (json_f64(json_get(times, quantiles[i].key), &v))
            sample(t, "operation_duration_seconds", labels, 3, v / 1e3);
    }
    sample(t, "operation_duration_seconds_sum", labels, 2, mean * n / 1e3);
    sample(t, "operation_duration_seconds_count", labels, 2, n);
}

/* Which of those there are more samples needed for. */
static void put_few(struct text *t, const char *operation, const char *from, const struct json *times, double n)
{
    struct label labels[] = {{"operation", operation}, {"since", from}, {"quantile", ""}};
    uint64_t samples, needs;
    (void)n;
    for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
        labels[2].value = quantiles[i].quantile;
        if (few_read(times, quantiles[i].key, &samples, &needs))
            sample(t, "operation_duration_needs_samples", labels, 3, (double)needs);
    }
}

static void each_latency(struct text *t, const struct json *operations,
                         void (*put)(struct text *, const char *, const char *, const struct json *, double))
{
    for (const struct json *op = json_first(operations); op; op = json_next(op)) {
        double n;
        n = json_f64(json_get(op, "ok"), &n) ? n : 0;
        put(t, json_key(op), "sent", op, n);
        put(t, json_key(op), "due", json_get(op, "from_due"), n);
    }
}

static void put_latencies(struct text *t, const struct json *operations)
{
    if (!json_count(operations))
        return;
    family(t, "operation_duration_seconds", "summary",
           "Of those that ended well, since they were due and since they were sent.");
    each_latency(t, operations, put_quantiles);
    family(t, "operation_duration_needs_samples", "gauge",
           "Of a quantile that has fewer samples than it needs: how many it needs.");
    each_latency(t, operations, put_few);
}

static void put_phases(struct text *t, const struct json *phases)
{
    static const struct {
        const char *key, *name, *help;
    } rows[] = {{"seconds", "phase_seconds", "How long each part of the command took."},
                {"requests", "phase_requests_total", "Requests sent in it."}};
    double v;
    for (size_t i = 0; i < ARRAY_LEN(rows) && json_count(phases); i++) {
        family(t, rows[i].name, i ? "counter" : "gauge", rows[i].help);
        for (const struct json *p = json_first(phases); p; p = json_next(p))
            if (json_f64(json_get(p, rows[i].key), &v))
                sample(t, rows[i].name, &(struct label){"phase", text_of(p, "name")}, 1, v);
    }
}

static void put_checks(struct text *t, const struct json *checks)
{
    static const char *const states[] = {"ok", "violated", "not_run"};
    static const struct {
        const char *key, *name, *help;
    } counts[] = {{"examined", "check_examined", "What the check looked at."},
                  {"wrong", "check_wrong", "What of it was wrong."}};
    double v;
    if (!json_count(checks))
        return;
    family(t, "check_status", "gauge", "1 for the state in which the check ended.");
    for (const struct json *c = json_first(checks); c; c = json_next(c))
        for (size_t i = 0; i < ARRAY_LEN(states); i++) {
            const struct label labels[] = {{"check", text_of(c, "name")}, {"status", states[i]}};
            sample(t, "check_status", labels, 2, strcmp(text_of(c, "status"), states[i]) == 0);
        }
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        family(t, counts[i].name, "gauge", counts[i].help);
        for (const struct json *c = json_first(checks); c; c = json_next(c))
            if (json_f64(json_get(c, counts[i].key), &v))
                sample(t, counts[i].name, &(struct label){"check", text_of(c, "name")}, 1, v);
    }
}

static void put_thresholds(struct text *t, const struct json *thresholds)
{
    if (!json_count(thresholds))
        return;
    family(t, "threshold_met", "gauge", "Whether the condition of --fail-on holds; of those that could be judged.");
    for (const struct json *c = json_first(thresholds); c; c = json_next(c))
        if (!json_is_null(json_get(c, "met")))
            sample(t, "threshold_met", &(struct label){"condition", text_of(c, "expression")}, 1,
                   json_bool(json_get(c, "met"), false));
    family(t, "threshold_judged", "gauge", "0 for a condition of --fail-on that could not be judged.");
    for (const struct json *c = json_first(thresholds); c; c = json_next(c))
        sample(t, "threshold_judged", &(struct label){"condition", text_of(c, "expression")}, 1,
               !json_is_null(json_get(c, "met")));
}

static void put_failures(struct text *t, const struct json *failures)
{
    double v;
    if (!json_count(failures))
        return;
    family(t, "failure_reasons_total", "counter", "The most common reasons of failures.");
    for (const struct json *f = json_first(failures); f; f = json_next(f))
        if (json_f64(json_get(f, "count"), &v))
            sample(t, "failure_reasons_total", &(struct label){"reason", text_of(f, "reason")}, 1, v);
}

static const struct {
    const char *path, *name, *type, *help;
    double scale;
} singles[] = {
    {"throttled", "throttled_total", "counter", "Answers 429.", 1},
    {"reconnects", "reconnects_total", "counter", "Event streams that were opened again.", 1},
    {"waited_seconds", "waited_seconds_total", "counter", "Spent waiting for budgets.", 1},
    {"bytes_up", "sent_bytes_total", "counter", "Content sent.", 1},
    {"bytes_down", "received_bytes_total", "counter", "Content received.", 1},
    {"apps.planned", "apps", "gauge", "Apps that were to run.", 1},
    {"apps.streams_up", "streams", "gauge", "Event streams that were up at the end.", 1},
    {"apps.streams_peak", "streams_peak", "gauge", "Event streams that were up at once, at most.", 1},
    {"generator.cpu_seconds", "generator_cpu_seconds_total", "counter", "Processor time of the generator.", 1},
    {"generator.lag_p99_ms", "generator_lag_seconds", "gauge", "How late its timers were answered, 99th percentile.",
     1e-3},
    {"generator.peak_rss_bytes", "generator_peak_resident_bytes", "gauge", "The most memory that it held.", 1},
    {"server.peak_rss_bytes", "server_peak_resident_bytes", "gauge", "The most memory that the server held.", 1},
    {"verdict.failed", "failed_operations", "gauge", "Failed operations that count against the server.", 1},
    {"events.lost", "events_lost", "gauge", "Events that were due and did not come.", 1},
};

static void put_singles(struct text *t, const struct doc *d)
{
    for (size_t i = 0; i < ARRAY_LEN(singles); i++) {
        double v = doc_number(d, singles[i].path, -1);
        if (v < 0)
            continue;
        family(t, singles[i].name, singles[i].type, singles[i].help);
        sample(t, singles[i].name, NULL, 0, v * singles[i].scale);
    }
    const struct json *limited = json_get(json_get(d->root, "generator"), "limited");
    if (!limited)
        return;
    family(t, "generator_limited", "gauge",
           "1: the generator was the limit, so no time or rate is the server's alone.");
    sample(t, "generator_limited", NULL, 0, json_bool(limited, false));
}

/* Every number of the command's own sections, by its path. */
static void put_figures(struct text *t, const struct doc *d)
{
    static const char *const told[] = {"causes", "operations", "apps", "generator", "verdict", "error", "capabilities"};
    char path[160];
    double v;
    family(t, "figure", "gauge", "A number of the result as JSON, by its path there and in the unit of its name.");
    for (const struct json *s = json_first(d->root); s; s = json_next(s)) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(told); i++)
            known = known || strcmp(json_key(s), told[i]) == 0;
        for (const struct json *m = known || !json_is_object(s) ? NULL : json_first(s); m; m = json_next(m)) {
            str_format(path, sizeof(path), "%s.%s", json_key(s), json_key(m));
            if (json_f64(m, &v))
                sample(t, "figure", &(struct label){"path", path}, 1, v);
        }
    }
}

enum err rendering_prometheus(const struct doc *d, struct buf *out)
{
    struct text t = {out, ERR_OK};
    const struct json *operations = json_get(d->root, "operations");
    put_info(&t, d);
    put_members(&t, "requests_total", "counter", "Requests by their cause.", json_get(d->root, "causes"), "cause");
    put_phases(&t, json_get(d->root, "phases"));
    put_outcomes(&t, operations);
    put_latencies(&t, operations);
    put_failures(&t, json_get(d->root, "failures"));
    put_checks(&t, json_get(d->root, "checks"));
    put_thresholds(&t, json_get(d->root, "thresholds"));
    put_singles(&t, d);
    put_figures(&t, d);
    return t.err;
}
