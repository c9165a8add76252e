/* The page: verdict first, then what supports it. Complete in itself: no script, no font, no picture from elsewhere. */
#include "drive/result/html.h"
#include "base/mem.h"
#include "drive/result/impl.h"
#include <math.h>
#include <string.h>

#define FIGURES_MOST 400
#define WHOLE_MOST   1e15 /* what is shown as a whole number */

/* ---- tables ---- */

const char *html_text_of(const struct json *object, const char *key)
{
    const char *s = json_str(json_get(object, key));
    return s ? s : "";
}

void html_cell(struct markup *m, const char *text)
{
    markup_element(m, "td", text);
}

static void put_number(struct markup *m, const char *before, const struct json *v, int decimals)
{
    char whole[32];
    double n;
    if (!json_f64(v, &n))
        markup_put(m, "<td class=\"n\">–</td>");
    else if (decimals == 0 && n >= 0 && n < WHOLE_MOST)
        markup_putf(m, "<td class=\"n\">%s%s</td>", before, str_thousands(whole, sizeof(whole), (uint64_t)n));
    else
        markup_putf(m, "<td class=\"n\">%s%.*f</td>", before, decimals, n);
}

void html_number(struct markup *m, const struct json *v, int decimals)
{
    put_number(m, "", v, decimals);
}

void html_percentile(struct markup *m, const struct json *object, const char *key, int decimals)
{
    uint64_t samples, needs;
    put_number(m, few_read(object, key, &samples, &needs) ? "~" : "", json_get(object, key), decimals);
}

void html_table(struct markup *m, const char *caption, const char *const *names, size_t n, size_t texts)
{
    markup_put(m, "<div class=\"wide\"><table>");
    markup_element(m, "caption", caption);
    markup_put(m, "<thead><tr>");
    for (size_t i = 0; i < n; i++) {
        markup_put(m, i < texts ? "<th scope=\"col\">" : "<th scope=\"col\" class=\"n\">");
        markup_text(m, names[i]);
        markup_put(m, "</th>");
    }
    markup_put(m, "</tr></thead><tbody>\n");
}

void html_table_end(struct markup *m)
{
    markup_put(m, "</tbody></table></div>\n");
}

/* ---- the verdict ---- */

enum mood { GOOD, BAD, OPEN };
static const char *const moods[] = {"good", "bad", "open"};

static bool limited(const struct doc *d)
{
    return json_bool(json_get(json_get(d->root, "generator"), "limited"), false);
}

static enum mood mood_of(const struct doc *d)
{
    const struct json *healthy = json_get(json_get(d->root, "verdict"), "healthy");
    if (limited(d))
        return OPEN;
    if (json_is_bool(healthy))
        return json_bool(healthy, false) ? GOOD : BAD;
    if (doc_number(d, "verdict.not_judged", 0) > 0)
        return OPEN;
    return doc_number(d, "exit", 0) == 0 ? GOOD : BAD;
}

static const char *verdict_words(const struct doc *d)
{
    const char *text = html_text_of(json_get(d->root, "verdict"), "text");
    if (text[0])
        return text;
    if (json_bool(json_get(d->root, "interrupted"), false))
        return "interrupted";
    if (json_get(d->root, "error"))
        return "ended by an error";
    return "done";
}

static void put_reason(struct markup *m, const char *head, const char *what)
{
    markup_put(m, "<li>");
    markup_text(m, head);
    markup_element(m, "b", what);
    markup_put(m, "</li>\n");
}

static void put_reasons(struct markup *m, const struct doc *d)
{
    const struct json *error = json_get(d->root, "error");
    const char *limit = html_text_of(json_get(d->root, "generator"), "why"), *note = doc_string(d, "note");
    markup_put(m, "<ul>\n");
    if (limit[0])
        put_reason(m,
                   limited(d) ? "the generator was the limit, so times and rates say nothing about the server: "
                              : "the times hold the generator's own delays: ",
                   limit);
    if (error)
        put_reason(m, "", html_text_of(error, "message"));
    if (note[0])
        put_reason(m, "note: ", note);
    const struct json *most = json_first(json_get(d->root, "failures"));
    if (most)
        put_reason(m, "most common failure: ", html_text_of(most, "reason"));
    markup_put(m, "</ul>\n");
}

static void put_origin(struct markup *m, const struct doc *d)
{
    static const struct {
        const char *name, *key;
    } rows[] = {{"server", "target"}, {"began", "began"}, {"run folder", "run_dir"}, {"drivesim", "drivesim"}};
    markup_put(m, "<dl class=\"of\"><dt>command</dt><dd><code>sim ");
    markup_text(m, doc_string(d, "command"));
    markup_put(m, " ");
    markup_text(m, doc_string(d, "arguments"));
    markup_put(m, "</code></dd>");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!doc_string(d, rows[i].key)[0])
            continue;
        markup_element(m, "dt", rows[i].name);
        markup_element(m, "dd", doc_string(d, rows[i].key));
    }
    markup_putf(m, "<dt>seed</dt><dd>%.0f</dd></dl>\n", doc_number(d, "seed", 0));
}

static void put_fact(struct markup *m, const char *name, const char *value)
{
    markup_put(m, "<div>");
    markup_element(m, "dt", name);
    markup_element(m, "dd", value);
    markup_put(m, "</div>");
}

static void put_count(struct markup *m, const struct doc *d, const char *name, const char *path)
{
    char text[40];
    double v = doc_number(d, path, -1);
    if (v >= 0)
        put_fact(m, name, str_thousands(text, sizeof(text), (uint64_t)fmin(v, WHOLE_MOST)));
}

static void put_facts(struct markup *m, const struct doc *d)
{
    char text[40];
    bool window = doc_number(d, "window.seconds", -1) >= 0; /* what stands side by side is of one stretch of time */
    double rate = doc_number(d, "window.requests_per_s", -1), server = doc_number(d, "server.peak_rss_bytes", -1);
    markup_put(m, "<dl class=\"facts\">");
    put_fact(m, "measured",
             str_duration(
                 text, sizeof(text),
                 (int64_t)fmax(0, fmin(doc_number(d, window ? "window.seconds" : "seconds", 0) * 1e6, WHOLE_MOST))));
    put_count(m, d, window ? "requests in it" : "requests", window ? "window.requests" : "requests");
    if (rate >= 0) {
        str_format(text, sizeof(text), "%.1f", rate);
        put_fact(m, "requests/s", text);
    }
    put_count(m, d, "apps", "apps.planned");
    put_count(m, d, "failed operations", "failed");
    put_count(m, d, "events lost", "events.lost");
    if (server >= 0)
        put_fact(m, "server memory at most", str_bytes(text, sizeof(text), (uint64_t)fmin(server, WHOLE_MOST)));
    markup_put(m, "</dl>\n");
}

static void put_verdict(struct markup *m, const struct doc *d)
{
    markup_putf(m, "<header class=\"verdict %s\"><h1>sim ", moods[mood_of(d)]);
    markup_text(m, doc_string(d, "command"));
    markup_put(m, ": <b>");
    markup_text(m, verdict_words(d));
    markup_put(m, "</b></h1>\n");
    put_reasons(m, d);
    put_facts(m, d);
    markup_put(m, "</header>\n");
    put_origin(m, d);
}

/* ---- its course, part by part ---- */

static void put_phases(struct markup *m, const struct doc *d)
{
    static const char *const names[] = {"part", "seconds", "requests", "requests/s"};
    const struct json *phases = json_get(d->root, "phases");
    if (json_count(phases) < 2)
        return;
    markup_put(m, "<section><h2>Parts</h2>\n");
    html_table(m, "Of the whole command, one after another; operations and causes below are of all of them", names,
               ARRAY_LEN(names), 1);
    for (const struct json *p = json_first(phases); p; p = json_next(p)) {
        markup_put(m, "<tr>");
        html_cell(m, html_text_of(p, "name"));
        html_number(m, json_get(p, "seconds"), 2);
        html_number(m, json_get(p, "requests"), 0);
        html_number(m, json_get(p, "requests_per_s"), 1);
        markup_put(m, "</tr>\n");
    }
    html_table_end(m);
    markup_put(m, "</section>\n");
}

/* ---- checks and thresholds ---- */

static void put_list(struct markup *m, const struct json *texts, const char *class)
{
    if (!json_count(texts))
        return;
    markup_putf(m, "<ul class=\"%s\">", class);
    for (const struct json *t = json_first(texts); t; t = json_next(t))
        markup_element(m, "li", json_str(t));
    markup_put(m, "</ul>");
}

/* Not run, with nothing to say but why: those of one reason share a row. */
static bool same_reason(const struct json *a, const struct json *b)
{
    return strcmp(html_text_of(a, "status"), "not_run") == 0 && strcmp(html_text_of(b, "status"), "not_run") == 0 &&
           html_text_of(a, "summary")[0] && strcmp(html_text_of(a, "summary"), html_text_of(b, "summary")) == 0 &&
           !json_count(json_get(a, "notes")) && !json_count(json_get(b, "notes"));
}

static bool told_before(const struct json *checks, const struct json *c)
{
    const struct json *before = json_first(checks);
    while (before != c && !same_reason(before, c))
        before = json_next(before);
    return before != c;
}

static void put_likewise(struct markup *m, const struct json *c)
{
    const char *before = "<ul class=\"note\"><li>likewise ";
    for (const struct json *next = json_next(c); next; next = json_next(next))
        if (same_reason(c, next)) {
            markup_put(m, before);
            markup_text(m, html_text_of(next, "name"));
            before = ", ";
        }
    if (before[0] == ',')
        markup_put(m, "</li></ul>");
}

static void put_check(struct markup *m, const struct json *c)
{
    const char *status = html_text_of(c, "status");
    enum mood mood = strcmp(status, "ok") == 0 ? GOOD : strcmp(status, "violated") == 0 ? BAD : OPEN;
    double wrong = 0;
    (void)json_f64(json_get(c, "wrong"), &wrong);
    markup_put(m, "<tr>");
    html_cell(m, html_text_of(c, "name"));
    markup_putf(m, "<td><b class=\"%s\">%s</b></td><td>", moods[mood],
                mood == GOOD  ? "ok"
                : mood == BAD ? "violated"
                              : "not run");
    markup_text(m, html_text_of(c, "summary"));
    put_likewise(m, c);
    put_list(m, json_get(c, "notes"), "note");
    put_list(m, json_get(c, "detail"), "wrong");
    if (wrong > (double)json_count(json_get(c, "detail")) && json_count(json_get(c, "detail")))
        markup_putf(m, "and %.0f more", wrong - (double)json_count(json_get(c, "detail")));
    markup_put(m, "</td>");
    html_number(m, json_get(c, "examined"), 0);
    html_number(m, json_get(c, "wrong"), 0);
    markup_put(m, "</tr>\n");
}

static void put_checks(struct markup *m, const struct doc *d)
{
    static const char *const names[] = {"check", "status", "what it found", "examined", "wrong"};
    static const char *const of_thresholds[] = {"condition", "status", "found"};
    const struct json *checks = json_get(d->root, "checks"), *thresholds = json_get(d->root, "thresholds");
    if (json_count(checks)) {
        markup_put(m, "<section><h2>Checks</h2>\n");
        html_table(m, "Did the server keep its word? A violation names what is wrong and how to look it up.", names,
                   ARRAY_LEN(names), 3);
        for (const struct json *c = json_first(checks); c; c = json_next(c))
            if (!told_before(checks, c))
                put_check(m, c);
        html_table_end(m);
        markup_put(m, "</section>\n");
    }
    if (!json_count(thresholds))
        return;
    markup_put(m, "<section><h2>Thresholds</h2>\n");
    html_table(m, "Conditions of --fail-on", of_thresholds, ARRAY_LEN(of_thresholds), 2);
    for (const struct json *t = json_first(thresholds); t; t = json_next(t)) {
        bool judged = !json_is_null(json_get(t, "met"));
        enum mood mood = !judged ? OPEN : json_bool(json_get(t, "met"), false) ? GOOD : BAD;
        markup_put(m, "<tr>");
        html_cell(m, html_text_of(t, "expression"));
        markup_putf(m, "<td><b class=\"%s\">%s</b></td>", moods[mood],
                    mood == GOOD  ? "met"
                    : mood == BAD ? "missed"
                                  : "could not be judged");
        if (judged)
            html_number(m, json_get(t, "value"), 3);
        else
            html_cell(m, html_text_of(t, "why"));
        markup_put(m, "</tr>\n");
    }
    html_table_end(m);
    markup_put(m, "</section>\n");
}

/* ---- latencies, failures, causes ---- */

static void put_operation(struct markup *m, const struct json *op)
{
    static const char *const keys[] = {"p50_ms", "p95_ms", "p99_ms", "max_ms"};
    const struct json *due = json_get(op, "from_due");
    enum drive_op known;
    double scheduled = 1; /* of a result from before it was told */
    (void)json_f64(json_get(due, "scheduled"), &scheduled);
    markup_put(m, "<tr>");
    html_cell(m, drive_op_parse(json_key(op), &known) ? drive_op_text(known) : json_key(op));
    html_number(m, json_get(op, "ok"), 0);
    html_number(m, json_get(op, "failed"), 0);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        html_percentile(m, op, keys[i], 1);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        html_percentile(m, scheduled > 0 ? due : NULL, keys[i], 1);
    html_number(m, json_get(due, "late_max_ms"), 1);
    markup_put(m, "</tr>\n");
}

static void put_latencies(struct markup *m, const struct doc *d)
{
    static const char *const names[] = {"operation", "ok",      "failed",  "p50",     "p95",         "p99",
                                        "slowest",   "due p50", "due p95", "due p99", "due slowest", "latest start"};
    const struct json *operations = json_get(d->root, "operations");
    if (!json_count(operations))
        return;
    markup_put(m, "<section><h2>Latency</h2>\n");
    html_percentiles(m, d);
    html_table(m,
               "In ms, of operations that ended well: since they were sent, and since they were due, of those that had "
               "a time of "
               "their own; how late the latest was sent",
               names, ARRAY_LEN(names), 1);
    for (const struct json *op = json_first(operations); op; op = json_next(op))
        put_operation(m, op);
    html_table_end(m);
    markup_put(m, HTML_FEW);
    markup_put(m, "</section>\n");
}

/* Of an operation's outcomes one that came to pass and is not "ok". */
static bool otherwise(const struct json *o)
{
    double n;
    return strcmp(json_key(o), "ok") != 0 && json_f64(o, &n) && n > 0;
}

static void put_outcomes(struct markup *m, const struct json *op)
{
    enum drive_op known;
    for (const struct json *o = json_first(json_get(op, "outcomes")); o; o = json_next(o)) {
        if (!otherwise(o))
            continue;
        markup_put(m, "<tr>");
        html_cell(m, drive_op_parse(json_key(op), &known) ? drive_op_text(known) : json_key(op));
        html_cell(m, json_key(o));
        html_number(m, o, 0);
        markup_put(m, "</tr>\n");
    }
}

static void put_failures(struct markup *m, const struct doc *d)
{
    static const char *const names[] = {"reason", "times"}, *const of_outcomes[] = {"operation", "outcome", "times"};
    const struct json *failures = json_get(d->root, "failures"), *operations = json_get(d->root, "operations");
    bool other = false;
    for (const struct json *op = json_first(operations); op; op = json_next(op))
        for (const struct json *o = json_first(json_get(op, "outcomes")); o; o = json_next(o))
            other = other || otherwise(o);
    if (!json_count(failures) && !other)
        return;
    markup_put(m, "<section><h2>What failed or was refused</h2>\n");
    if (json_count(failures)) {
        html_table(m, "Failures by their reason; ids and numbers are folded to #", names, ARRAY_LEN(names), 1);
        for (const struct json *f = json_first(failures); f; f = json_next(f)) {
            markup_put(m, "<tr>");
            html_cell(m, html_text_of(f, "reason"));
            html_number(m, json_get(f, "count"), 0);
            markup_put(m, "</tr>\n");
        }
        html_table_end(m);
    }
    if (other) {
        html_table(m, "By outcome: conflicts and 429 are the server at work, not failures", of_outcomes,
                   ARRAY_LEN(of_outcomes), 2);
        for (const struct json *op = json_first(operations); op; op = json_next(op))
            put_outcomes(m, op);
        html_table_end(m);
    }
    markup_put(m, "</section>\n");
}

/* ---- all other numbers ---- */

static bool told_elsewhere(const char *key)
{
    static const char *const told[] = {"operations", "failures",    "checks",   "thresholds",   "steps",
                                       "ranges",     "predictions", "timeline", "injected",     "knee",
                                       "stopped",    "verdict",     "error",    "capabilities", "phases"};
    for (size_t i = 0; i < ARRAY_LEN(told); i++)
        if (strcmp(key, told[i]) == 0)
            return true;
    return false;
}

/* A row each, named by its path in the JSON, whatever the depth. */
static void put_numbers(struct markup *m, const struct json *v, const char *path, unsigned *left)
{
    char below[200];
    double n;
    for (const struct json *c = json_first(v); c && *left; c = json_next(c)) {
        const char *key = json_key(c) ? json_key(c) : "";
        if (!path[0] && told_elsewhere(key))
            continue;
        str_format(below, sizeof(below), "%s%s%s", path, path[0] ? "." : "", key);
        if (strcmp(key, PERCENTILES_FEW) == 0)
            continue;
        if (json_is_object(c)) {
            put_numbers(m, c, below, left);
        } else if (json_f64(c, &n)) {
            markup_put(m, "<tr>");
            html_cell(m, below);
            markup_putf(m, "<td class=\"n\">%.10g</td></tr>\n", n);
            --*left;
        }
    }
}

static void put_figures(struct markup *m, const struct doc *d)
{
    static const char *const names[] = {"figure", "value"};
    unsigned left = FIGURES_MOST;
    markup_put(m, "<section><h2>All figures</h2>\n<details><summary>By their names in the JSON, as --fail-on takes "
                  "them</summary>\n");
    html_table(m, "Times and sizes in the unit that the name ends with", names, ARRAY_LEN(names), 1);
    put_numbers(m, d->root, "", &left);
    html_table_end(m);
    markup_put(m, "</details></section>\n");
}

/* ---- the page ---- */

enum err rendering_html(const struct doc *d, struct buf *out)
{
    struct markup m;
    markup_init(&m, out);
    markup_put(&m,
               "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
               "<title>sim ");
    markup_text(&m, doc_string(d, "command"));
    markup_put(&m, ": ");
    markup_text(&m, verdict_words(d));
    markup_put(&m, "</title>\n<style>\n");
    markup_put(&m, html_style);
    markup_put(&m, "</style></head>\n<body>\n");
    put_verdict(&m, d);
    put_checks(&m, d);
    html_ramp(&m, d);
    html_rows(&m, d);
    put_phases(&m, d);
    put_latencies(&m, d);
    html_course(&m, d);
    put_failures(&m, d);
    put_figures(&m, d);
    markup_put(&m, "<footer>Made by drivesim ");
    markup_text(&m, doc_string(d, "drivesim"));
    markup_put(&m, ". Percentiles by nearest rank, within 0.4 %; of merged samples, never of averages.</footer>\n"
                   "</body></html>\n");
    return m.err;
}
