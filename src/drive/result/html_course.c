/* The plots along time, all on one axis: seconds from the begin of the measured window, outages shaded behind each. And
 * the percentiles of the whole. */
#include "base/mem.h"
#include "drive/result/course.h"
#include "drive/result/html.h"
#include "drive/result/plot.h"
#include <string.h>

#define POINTS         150
#define LATENCY_POINTS 45 /* fewer: a percentile wants samples */
#define CHOSEN         4
#define LINES          5
#define BANDS          64

struct time_plots {
    struct markup *m;
    const struct course *fine, *coarse;
    struct plot_band bands[BANDS];
    size_t n_bands;
};

static const char *const colours[LINES] = {"c1", "c2", "c3", "c4", "c5"};

/* ---- one plot ---- */

struct lines {
    struct plot_line of[LINES];
    double *y[LINES]; /* owned */
    size_t n;
};

static double *column(struct lines *l, const struct course *c, const char *name, const char *class)
{
    double *y = mem_zalloc((c->n + 1) * sizeof(*y));
    l->y[l->n] = y;
    l->of[l->n++] = (struct plot_line){.name = name, .x = c->x, .y = y, .n = c->n, .class = class};
    return y;
}

static void drop_last(struct lines *l)
{
    mem_free(l->y[--l->n]);
}

static bool has_points(const struct lines *l)
{
    for (size_t k = 0; k < l->n; k++)
        for (size_t i = 0; i < l->of[k].n; i++)
            if (isfinite(l->of[k].y[i]))
                return true;
    return false;
}

/* Takes the columns. */
static void put_plot(const struct time_plots *t, const char *title, const char *unit, enum plot_scale scale,
                     struct lines *l)
{
    const struct plot p = {.title = title,
                           .unit = unit,
                           .x_unit = "seconds of the window",
                           .x_from = t->fine->from,
                           .x_to = t->fine->to,
                           .scale = scale,
                           .lines = l->of,
                           .n_lines = l->n,
                           .bands = t->bands,
                           .n_bands = t->n_bands};
    if (has_points(l)) {
        markup_put(t->m, "<figure>");
        plot_write(t->m, &p);
        markup_put(t->m, "</figure>\n");
    }
    while (l->n)
        drop_last(l);
}

/* ---- work ---- */

static double count_ok(const struct stats *s)
{
    double n = 0;
    for (unsigned op = 0; op < OP_COUNT; op++)
        if (op != OP_EVENT && op != OP_EVENT_VISIBLE && op != OP_FULL_PASS) /* no requests of their own */
            n += (double)stats_ok(s, (enum drive_op)op);
    return n;
}

static double count_failed(const struct stats *s)
{
    return (double)stats_failed_all(s);
}

static double count_refused(const struct stats *s)
{
    double n = 0;
    for (unsigned op = 0; op < OP_COUNT; op++)
        n += (double)(s->op[op].by_outcome[OUT_CONFLICT] + s->op[op].by_outcome[OUT_THROTTLED]);
    return n;
}

static double count_outage(const struct stats *s)
{
    double n = 0;
    for (unsigned op = 0; op < OP_COUNT; op++)
        n += (double)s->op[op].by_outcome[OUT_OUTAGE];
    return n;
}

static bool any_above_zero(const double *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (y[i] > 0)
            return true;
    return false;
}

static void put_throughput(const struct time_plots *t)
{
    static const struct {
        const char *name, *class;
        double (*count)(const struct stats *s);
        bool always;
    } rows[] = {{"ended well", "c1", count_ok, true},
                {"failed", "c2", count_failed, true},
                {"conflicts and 429", "c4", count_refused, false},
                {"failed in an outage", "c5", count_outage, false}};
    struct lines l = {.n = 0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double *y = column(&l, t->fine, rows[i].name, rows[i].class);
        course_rates(t->fine, y, rows[i].count);
        if (!rows[i].always && !any_above_zero(y, t->fine->n))
            drop_last(&l);
    }
    put_plot(t, "Operations", "a second", PLOT_LINEAR, &l);
}

static bool differs(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(a[i]) && fabs(b[i] - a[i]) > a[i] * 0.02)
            return true;
    return false;
}

static bool carried_anywhere(const struct course *c, enum drive_op op, double pct)
{
    for (size_t i = 0; i < c->n; i++)
        if (hist_carries(c->points[i].stats.op[op].from_send, pct))
            return true;
    return false;
}

static void put_latency(const struct time_plots *t, enum drive_op op)
{
    struct lines l = {.n = 0};
    char title[80];
    course_percentiles(t->coarse, column(&l, t->coarse, "p50", "c1"), op, false, 50);
    course_percentiles(t->coarse, column(&l, t->coarse, "p95", "c4"), op, false, 95);
    bool many = carried_anywhere(t->coarse, op, 99);
    double *sent = column(&l, t->coarse, many ? "p99" : "slowest", "c2");
    double *due = column(&l, t->coarse, many ? "p99 from due" : "slowest from due", "c2 dashed");
    course_percentiles(t->coarse, sent, op, false, many ? 99 : 100);
    course_percentiles(t->coarse, due, op, true, many ? 99 : 100);
    if (!differs(sent, due, t->coarse->n))
        drop_last(&l);
    str_format(title, sizeof(title), "Latency of %s", drive_op_text(op));
    put_plot(t, title, "ms, log scale", PLOT_LOG, &l);
}

/* Those of one command alone come first. */
static const enum drive_op telling[] = {OP_DELIVERY,  OP_MESSAGE,    OP_REQUEST,       OP_DOWNLOAD,  OP_SAVE,
                                        OP_UPLOAD,    OP_LIST,       OP_EVENT_VISIBLE, OP_SIGN_IN,   OP_BULK_UPLOAD,
                                        OP_FULL_PASS, OP_BIG_UPLOAD, OP_BIG_DOWNLOAD,  OP_BULK_COPY, OP_SEARCH};

size_t html_chosen(const struct stats *s, enum drive_op *out, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(telling) && n < most; i++) {
        const struct hist *h = s->op[telling[i]].from_send; /* a file may count what it has no latency of */
        if (h && hist_count(h) > 0)
            out[n++] = telling[i];
    }
    return n;
}

/* ---- who worked for it ---- */

struct watched {
    const char *title, *unit;
    struct {
        const char *path, *name, *class;
    } rows[LINES];
};
static const struct watched health[] = {
    {"Event streams up", "streams", {{"apps", "apps", "c5 dashed"}, {"streams_up", "up", "c1"}}},
    {"Generator: how late it answered its own timers", "ms, p99", {{"generator.lag_p99_ms", "loop lag", "c1"}}},
};
static const struct watched server[] = {
    {"Processor",
     "%",
     {{"watch.cpu_pct", "machine", "c1"},
      {"watch.process_cpu_pct", "server", "c2"},
      {"watch.store_cpu_pct", "store", "c3"},
      {"generator.cpu_pct", "generator", "c4"}}},
    {"Memory",
     "MiB",
     {{"watch.process_pss_mib", "server", "c1"},
      {"watch.store_pss_mib", "store", "c2"},
      {"watch.redis_memory_mib", "Redis", "c3"}}},
    {"Memory of the machine", "MiB in use", {{"watch.memory_mib", "memory", "c1"}, {"watch.swap_mib", "swap", "c2"}}},
    {"Disk: time of a request", "ms", {{"watch.disk_await_ms", "all", "c1"}, {"watch.disk_write_ms", "writes", "c2"}}},
    {"Queues",
     "waiting",
     {{"watch.disk_queue", "disk", "c1"},
      {"watch.run_queue", "processor", "c2"},
      {"watch.pg_locks_waited", "Postgres locks", "c3"}}},
    {"Disk and network", "MB/s", {{"watch.disk_mb_per_s", "disk", "c1"}, {"watch.net_mb_per_s", "network", "c2"}}},
    {"Postgres", "commits a second", {{"watch.pg_commits_per_s", "commits", "c1"}}},
    {"Redis", "operations a second", {{"watch.redis_ops_per_s", "operations", "c1"}}},
    {"Connections",
     "open",
     {{"watch.pg_connections", "Postgres", "c1"},
      {"watch.redis_clients", "Redis", "c2"},
      {"watch.connections", "machine", "c3"}}},
};

static void put_watched(const struct time_plots *t, const struct watched *w)
{
    struct lines l = {.n = 0};
    for (size_t i = 0; i < LINES && w->rows[i].path; i++) {
        double *y = column(&l, t->fine, w->rows[i].name, w->rows[i].class);
        course_numbers(t->fine, y, w->rows[i].path);
    }
    put_plot(t, w->title, w->unit, PLOT_LINEAR, &l);
}

static bool watched_at_all(const struct doc *d)
{
    for (size_t i = 0; i < d->n_spans; i++)
        if (json_count(json_get(d->spans[i].line, "watch")))
            return true;
    return false;
}

/* ---- what happened when ---- */

static double number_of(const struct json *o, const char *key)
{
    double v = 0;
    return json_f64(json_get(o, key), &v) ? v : 0;
}

enum kind { INJECTED, ORDERED, SEEN };
static const struct {
    const char *class, *text;
} kinds[] = {[INJECTED] = {"injected", "work that was injected"},
             [ORDERED] = {"ordered", "outages that were ordered"},
             [SEEN] = {"seen", "outages that were seen"}};

static enum kind kind_of(const struct json *o)
{
    return !json_get(o, "ordered") ? INJECTED : json_bool(json_get(o, "ordered"), false) ? ORDERED : SEEN;
}

static void read_bands(struct time_plots *t, const struct json *list)
{
    for (const struct json *o = json_first(list); o && t->n_bands < BANDS; o = json_next(o)) {
        double at = number_of(o, "at_seconds");
        t->bands[t->n_bands++] = (struct plot_band){.from = at,
                                                    .to = at + number_of(o, "seconds"),
                                                    .name = html_text_of(o, "what"),
                                                    .class = kinds[kind_of(o)].class};
    }
}

static void put_rows(struct markup *m, const struct json *list)
{
    for (const struct json *o = json_first(list); o; o = json_next(o)) {
        enum kind k = kind_of(o);
        markup_putf(m, "<tr><td class=\"key\"><i class=\"%s\"></i>%s</td>", kinds[k].class, kinds[k].text);
        html_cell(m, html_text_of(o, "what"));
        html_number(m, json_get(o, "at_seconds"), 1);
        html_number(m, json_get(o, "seconds"), 1);
        html_number(m, json_get(o, "failures"), 0);
        markup_put(m, "</tr>\n");
    }
}

static void put_bands(const struct time_plots *t, const struct doc *d)
{
    static const char *const names[] = {"shaded", "what", "from s", "for s", "requests without an answer"};
    if (!t->n_bands)
        return;
    html_table(t->m, "What happened when, by the second of the window", names, ARRAY_LEN(names), 2);
    put_rows(t->m, json_get(d->root, "injected"));
    put_rows(t->m, json_get(d->root, "timeline"));
    html_table_end(t->m);
}

/* ---- the whole ---- */

void html_course(struct markup *m, const struct doc *d)
{
    if (d->n_spans < 3)
        return;
    struct course *fine = course_new(d, POINTS), *coarse = course_new(d, LATENCY_POINTS);
    struct time_plots *t = mem_zalloc(sizeof(*t));
    struct stats *all = mem_zalloc(sizeof(*all));
    enum drive_op chosen[CHOSEN];
    *t = (struct time_plots){.m = m, .fine = fine, .coarse = coarse};
    read_bands(t, json_get(d->root, "injected"));
    read_bands(t, json_get(d->root, "timeline"));
    doc_stats(d, all);
    markup_put(m, "<section><h2>Over time</h2>\n");
    put_bands(t, d);
    put_throughput(t);
    for (size_t i = 0, n = html_chosen(all, chosen, CHOSEN); i < n; i++)
        put_latency(t, chosen[i]);
    for (size_t i = 0; i < ARRAY_LEN(health); i++)
        put_watched(t, &health[i]);
    markup_put(m, "</section>\n");
    if (watched_at_all(d)) {
        markup_put(m, "<section><h2>The server's machine and services</h2>\n");
        for (size_t i = 0; i < ARRAY_LEN(server); i++)
            put_watched(t, &server[i]);
        markup_put(m, "</section>\n");
    }
    stats_done(all);
    mem_free(all);
    mem_free(t);
    course_free(&fine);
    course_free(&coarse);
}

/* ---- percentiles ---- */

#define CURVE_POINTS 101
#define CURVE_STEP   0.05 /* of a decade */

/* x: how many nines. A percentile beyond the samples there are would be a guess; the curve ends with the slowest. */
static size_t curve(const struct hist *h, double *x, double *y)
{
    double most = log10((double)hist_count(h));
    size_t n = 0;
    for (; n < CURVE_POINTS - 1 && (double)n * CURVE_STEP < most; n++) {
        x[n] = (double)n * CURVE_STEP;
        y[n] = (double)hist_percentile(h, n ? 100 - 100 * pow(10, -x[n]) : 0) / 1e3;
    }
    x[n] = fmin(most, (CURVE_POINTS - 1) * CURVE_STEP);
    y[n] = (double)hist_max(h) / 1e3;
    return n + 1;
}

void html_percentiles(struct markup *m, const struct doc *d)
{
    static const struct plot_tick ticks[] = {{0, "fastest"}, {0.30103, "50 %"}, {1, "90 %"},    {1.30103, "95 %"},
                                             {2, "99 %"},    {3, "99.9 %"},     {4, "99.99 %"}, {5, "99.999 %"}};
    struct stats *all = mem_zalloc(sizeof(*all));
    enum drive_op chosen[LINES];
    struct plot_line lines[LINES];
    double *xy = mem_zalloc(sizeof(*xy) * LINES * 2 * CURVE_POINTS), to = 1;
    doc_stats(d, all);
    size_t n = html_chosen(all, chosen, LINES);
    for (size_t i = 0; i < n; i++) {
        double *x = xy + i * 2 * CURVE_POINTS, *y = x + CURVE_POINTS;
        size_t points = curve(all->op[chosen[i]].from_send, x, y);
        lines[i] =
            (struct plot_line){.name = drive_op_text(chosen[i]), .x = x, .y = y, .n = points, .class = colours[i]};
        to = fmax(to, ceil(x[points - 1]));
    }
    size_t n_ticks = 0;
    while (n_ticks < ARRAY_LEN(ticks) && ticks[n_ticks].x <= to)
        n_ticks++;
    const struct plot p = {.title = "Latency by percentile",
                           .unit = "ms, log scale",
                           .x_unit = "share of the operations that were as fast",
                           .x_to = to,
                           .scale = PLOT_LOG,
                           .lines = lines,
                           .n_lines = n,
                           .ticks = ticks,
                           .n_ticks = n_ticks};
    if (n) {
        markup_put(m, "<figure>");
        plot_write(m, &p);
        markup_put(m, "</figure>\n");
    }
    stats_done(all);
    mem_free(all);
    mem_free(xy);
}
