/* A ramp: what each step gave, with the knee marked, and what was predicted. */
#include "base/mem.h"
#include "drive/result/html.h"
#include "drive/result/plot.h"
#include <string.h>

#define STEPS_MOST    200
#define SESSIONS_MOST 1e9
#define LINES         5

struct steps {
    double sessions[STEPS_MOST], y[LINES][STEPS_MOST];
    size_t n;
    double most;
    const struct json *array;
    struct plot_mark marks[3];
    size_t n_marks;
};
struct row {
    const char *key, *name, *class;
};

static double number_of(const struct json *o, const char *key, double missing)
{
    double v;
    return json_f64(json_get(o, key), &v) ? v : missing;
}

static void put_plot(struct markup *m, struct steps *s, const char *title, const char *unit, enum plot_scale scale,
                     const struct row *rows, size_t n)
{
    struct plot_line lines[LINES];
    for (size_t k = 0; k < n; k++) {
        size_t i = 0;
        for (const struct json *step = json_first(s->array); step && i < s->n; step = json_next(step)) {
            while (i < s->n && isnan(s->sessions[i]))
                s->y[k][i++] = NAN;
            if (i < s->n)
                s->y[k][i++] = number_of(step, rows[k].key, NAN);
        }
        lines[k] = (struct plot_line){rows[k].name, s->sessions, s->y[k], s->n, rows[k].class, true};
    }
    const struct plot p = {.title = title,
                           .unit = unit,
                           .x_unit = "sessions at once",
                           .x_from = 0,
                           .x_to = s->most * 1.02,
                           .scale = scale,
                           .lines = lines,
                           .n_lines = n,
                           .marks = s->marks,
                           .n_marks = s->n_marks};
    markup_put(m, "<figure>");
    plot_write(m, &p);
    markup_put(m, "</figure>\n");
}

static void put_plots(struct markup *m, struct steps *s)
{
    static const struct row work[] = {{"operations_per_s", "operations", "c1"},
                                      {"actions_per_s", "actions", "c3"},
                                      {"expected", "expected", "c5 dashed"},
                                      {"sign_ins_per_s", "sign-ins", "c4"}};
    static const struct row bytes[] = {{"mb_per_s", "measured", "c1"}, {"expected_mb_per_s", "expected", "c5 dashed"}};
    static const struct row times[] = {{"upload_p50_ms", "upload p50", "c1"},
                                       {"upload_p95_ms", "upload p95", "c2"},
                                       {"expected_upload_p95_ms", "expected p95", "c5 dashed"},
                                       {"sign_in_p95_ms", "sign-in p95", "c4"}};
    static const struct row ends[] = {{"ok", "well", "c3"},
                                      {"refused", "refused", "c4"},
                                      {"timed_out", "timed out", "c2"},
                                      {"failed", "failed", "c5"}};
    put_plot(m, s, "Throughput by step", "a second", PLOT_LINEAR, work, ARRAY_LEN(work));
    put_plot(m, s, "Bytes moved by step", "MB/s", PLOT_LINEAR, bytes, ARRAY_LEN(bytes));
    put_plot(m, s, "Latency by step", "ms, log scale", PLOT_LOG, times, ARRAY_LEN(times));
    put_plot(m, s, "How sessions ended, by step", "sessions", PLOT_LINEAR, ends, ARRAY_LEN(ends));
}

static void add_mark(struct steps *s, double x, const char *name)
{
    if (isfinite(x) && s->n_marks < ARRAY_LEN(s->marks))
        s->marks[s->n_marks++] = (struct plot_mark){x, name};
}

static void put_verdict(struct markup *m, const struct doc *d)
{
    const struct json *stopped = json_get(d->root, "stopped");
    size_t pass = 0;
    char text[40];
    markup_put(m, "<ul>\n");
    for (const struct json *k = json_first(json_get(json_get(d->root, "knee"), "passes")); k; k = json_next(k)) {
        double at = number_of(k, "sessions", NAN);
        markup_putf(m, "<li>Ramp %zu: knee ", ++pass);
        markup_element(m, "b", html_text_of(k, "state"));
        if (isfinite(at))
            markup_putf(m, ", at %s sessions", plot_number(text, sizeof(text), at));
        if (html_text_of(k, "set_by")[0])
            markup_put(m, "; set by ");
        markup_text(m, html_text_of(k, "set_by"));
        markup_put(m, "</li>\n");
    }
    double recommended = doc_number(d, "ramp.recommended_limit", NAN);
    if (recommended >= 0 && recommended < 1e9)
        markup_putf(m, "<li>Recommended limit: <b>%s</b>, 70 %% of the knee</li>\n",
                    COUNTED((uint64_t)recommended, "session"));
    if (stopped) {
        markup_put(m, "<li>Stopped by ");
        markup_element(m, "b", html_text_of(stopped, "condition"));
        markup_putf(m, ": %.10g at the step of %.0f sessions, %.1f s after its start</li>\n",
                    number_of(stopped, "value", 0), number_of(stopped, "sessions", 0),
                    number_of(stopped, "seconds_into_step", 0));
    }
    markup_put(m, "</ul>\n");
}

static void put_steps(struct markup *m, const struct steps *s)
{
    static const char *const names[] = {"sessions",    "up",         "ok",           "refused",   "timed out", "failed",
                                        "sign-in p95", "upload p95", "operations/s", "actions/s", "MB/s"};
    static const char *const keys[] = {"sessions",
                                       "up",
                                       "ok",
                                       "refused",
                                       "timed_out",
                                       "failed",
                                       "sign_in_p95_ms",
                                       "upload_p95_ms",
                                       "operations_per_s",
                                       "actions_per_s",
                                       "mb_per_s"};
    html_table(m, "Steps; latencies in ms", names, ARRAY_LEN(names), 0);
    for (const struct json *step = json_first(s->array); step; step = json_next(step)) {
        markup_put(m, "<tr>");
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            html_percentile(m, step, keys[i], i < 6 ? 0 : 1);
        markup_put(m, "</tr>\n");
    }
    html_table_end(m);
    markup_put(m, HTML_FEW);
}

static void put_predictions(struct markup *m, const struct doc *d)
{
    static const char *const names[] = {"predicted", "score", "least", "most"};
    const struct json *predictions = json_get(d->root, "predictions");
    if (!json_count(predictions))
        return;
    html_table(m, "What was predicted, and what was found", names, ARRAY_LEN(names), 2);
    for (const struct json *p = json_first(predictions); p; p = json_next(p)) {
        markup_put(m, "<tr>");
        html_cell(m, html_text_of(p, "text"));
        html_cell(m, html_text_of(p, "score"));
        html_number(m, json_get(p, "least"), 2);
        html_number(m, json_get(p, "most"), 2);
        markup_put(m, "</tr>\n");
    }
    html_table_end(m);
}

/* A repeated ramp begins anew: its line must not run back across the plot. */
static void read_steps(struct steps *s)
{
    double before = 0;
    for (const struct json *step = json_first(s->array); step && s->n < STEPS_MOST; step = json_next(step)) {
        double sessions = fmin(number_of(step, "sessions", 0), SESSIONS_MOST);
        for (int gap = 0; sessions <= before && gap <= PLOT_GAP_MOST && s->n < STEPS_MOST - 1; gap++)
            s->sessions[s->n++] = NAN;
        s->sessions[s->n++] = before = sessions;
        s->most = fmax(s->most, sessions);
    }
}

void html_ramp(struct markup *m, const struct doc *d)
{
    struct steps *s = mem_zalloc(sizeof(*s));
    s->array = json_get(d->root, "steps");
    read_steps(s);
    if (json_is_array(s->array) && s->n) {
        add_mark(s, doc_number(d, "ramp.knee", NAN), "knee");
        add_mark(s, doc_number(d, "ramp.recommended_limit", NAN), "recommended limit");
        add_mark(s, doc_number(d, "ramp.limit_found", NAN), "limit found");
        markup_put(m, "<section><h2>The ramp</h2>\n");
        put_verdict(m, d);
        put_plots(m, s);
        put_steps(m, s);
        put_predictions(m, d);
        markup_put(m, "</section>\n");
    }
    mem_free(s);
}
