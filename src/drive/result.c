#include "drive/result.h"
#include "base/mem.h"
#include "drive/threshold.h"
#include <string.h>

#define JSON_MAX    (64u << 20)
#define STATUS_PIPE 141 /* what a program killed by SIGPIPE shows: 128 + 13 */

void result_init(struct result *r, const char *command)
{
    *r = (struct result){.command = command, .server_peak_rss = -1, .generator = {.lag_p99_us = -1}};
    stats_init(&r->stats);
}

void result_done(struct result *r)
{
    stats_done(&r->stats);
    for (size_t i = 0; i < r->n_checks; i++) {
        for (size_t k = 0; k < r->checks[i].n_detail; k++)
            mem_free(r->checks[i].detail[k]);
        mem_free(r->checks[i].detail);
    }
    for (size_t i = 0; i < r->n_thresholds; i++)
        mem_free(r->thresholds[i].text);
    MEM_FREE(r->checks);
    MEM_FREE(r->thresholds);
    MEM_FREE(r->figures);
    r->n_checks = r->n_thresholds = r->n_figures = 0;
}

void result_figure(struct result *r, const char *section, const char *key, double value, int decimals)
{
    r->figures = mem_realloc_array(r->figures, r->n_figures + 1, sizeof *r->figures);
    r->figures[r->n_figures++] = (struct result_figure){section, key, value, decimals};
}

static bool speaks_of_failures(const struct result *r)
{
    for (size_t i = 0; i < r->n_thresholds; i++)
        if (r->thresholds[i].about_failures)
            return true;
    return false;
}

/* What makes a run unhealthy although it came to its end. */
struct verdict {
    uint64_t failed, violated, missed;
};

static struct verdict verdict_of(const struct result *r)
{
    struct verdict v = {0};

    if (r->failures_matter && !speaks_of_failures(r))
        v.failed = stats_failed_all(&r->stats);
    for (size_t i = 0; i < r->n_checks; i++)
        v.violated += r->checks[i].status == CHECK_VIOLATED;
    for (size_t i = 0; i < r->n_thresholds; i++)
        v.missed += r->thresholds[i].state != THRESHOLD_MET;
    return v;
}

int result_exit_status(const struct result *r)
{
    struct verdict v = verdict_of(r);

    if (r->reader_gone)
        return STATUS_PIPE;
    if (r->interrupted)
        return err_exit_status(ERR_INTERRUPTED);
    if (r->err)
        return err_exit_status(r->err);
    return v.failed || v.violated || v.missed ? err_exit_status(ERR_CHECK) : 0;
}

/* ---- JSON ---- */

static void write_tree(const struct tree_summary *t, struct jsonw *w)
{
    if (!t->known)
        return;
    jsonw_object(w, "tree");
    jsonw_i64(w, "folders", (int64_t)t->folders);
    jsonw_i64(w, "files", (int64_t)t->files);
    jsonw_i64(w, "depth", (int64_t)t->depth);
    jsonw_i64(w, "hot_folders", (int64_t)t->hot_folders);
    jsonw_i64(w, "hot_files", (int64_t)t->hot_files);
    jsonw_i64(w, "bytes", (int64_t)t->bytes);
    jsonw_str(w, "manifest_sha256", t->manifest_sha256[0] ? t->manifest_sha256 : NULL);
    jsonw_end_object(w);
}

static void write_apps(const struct app_summary *a, struct jsonw *w)
{
    if (!a->known)
        return;
    jsonw_object(w, "apps");
    jsonw_i64(w, "planned", (int64_t)a->planned);
    jsonw_i64(w, "streams_up", (int64_t)a->streams_up);
    jsonw_i64(w, "streams_peak", (int64_t)a->streams_peak);
    jsonw_i64(w, "rss_bytes_per_app", a->rss_bytes_per_app);
    jsonw_end_object(w);
}

static void write_generator(const struct generator_summary *g, struct jsonw *w)
{
    if (!g->known)
        return;
    jsonw_object(w, "generator");
    jsonw_f64(w, "cpu_seconds", (double)g->cpu_us / 1e6, 3);
    if (g->lag_p99_us < 0)
        jsonw_null(w, "lag_p99_ms");
    else
        jsonw_f64(w, "lag_p99_ms", (double)g->lag_p99_us / 1e3, 3);
    jsonw_bool(w, "limited", g->limited);
    if (g->why[0])
        jsonw_str(w, "why", g->why);
    jsonw_end_object(w);
}

static const char *const check_words[] = {
    [CHECK_OK] = "ok", [CHECK_VIOLATED] = "violated", [CHECK_NOT_RUN] = "not_run"};

static void write_checks(const struct result *r, struct jsonw *w)
{
    jsonw_array(w, "checks");
    for (size_t i = 0; i < r->n_checks; i++) {
        const struct check_result *c = &r->checks[i];
        jsonw_object(w, NULL);
        jsonw_str(w, "name", c->name);
        jsonw_str(w, "status", check_words[c->status]);
        jsonw_i64(w, "examined", (int64_t)c->examined);
        jsonw_i64(w, "wrong", (int64_t)c->wrong);
        if (c->summary[0])
            jsonw_str(w, "summary", c->summary);
        jsonw_array(w, "detail");
        for (size_t k = 0; k < c->n_detail; k++)
            jsonw_str(w, NULL, c->detail[k]);
        jsonw_end_array(w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_thresholds(const struct result *r, struct jsonw *w)
{
    jsonw_array(w, "thresholds");
    for (size_t i = 0; i < r->n_thresholds; i++) {
        const struct threshold *t = &r->thresholds[i];
        jsonw_object(w, NULL);
        jsonw_str(w, "expression", t->text);
        jsonw_bool(w, "met", t->state == THRESHOLD_MET);
        if (t->state == THRESHOLD_NO_SAMPLES)
            jsonw_null(w, "value");
        else
            jsonw_f64(w, "value", t->found, 3);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static bool same_section(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The figures of one section, whatever the order of their coming. */
static void write_section_figures(const struct result *r, const char *section, struct jsonw *w)
{
    for (size_t i = 0; i < r->n_figures; i++)
        if (same_section(r->figures[i].section, section))
            jsonw_f64(w, r->figures[i].key, r->figures[i].value, r->figures[i].decimals);
}

static bool section_seen(const struct result *r, size_t before, const char *section)
{
    for (size_t i = 0; i < before; i++)
        if (same_section(r->figures[i].section, section))
            return true;
    return false;
}

static void write_server(const struct result *r, struct jsonw *w)
{
    if (r->server_peak_rss < 0 && !section_seen(r, r->n_figures, "server"))
        return;
    jsonw_object(w, "server");
    if (r->server_peak_rss < 0)
        jsonw_null(w, "peak_rss_bytes");
    else
        jsonw_i64(w, "peak_rss_bytes", r->server_peak_rss);
    write_section_figures(r, "server", w);
    jsonw_end_object(w);
}

static void write_figures(const struct result *r, struct jsonw *w)
{
    write_section_figures(r, NULL, w);
    for (size_t i = 0; i < r->n_figures; i++) {
        const char *section = r->figures[i].section;
        if (!section || strcmp(section, "server") == 0 || section_seen(r, i, section))
            continue;
        jsonw_object(w, section);
        write_section_figures(r, section, w);
        jsonw_end_object(w);
    }
}

static void write_error(const struct result *r, struct jsonw *w)
{
    if (!r->err)
        return;
    jsonw_object(w, "error");
    jsonw_str(w, "code", err_symbol(r->err));
    jsonw_str(w, "message", r->why.code == r->err && r->why.msg[0] ? r->why.msg : err_text(r->err));
    jsonw_end_object(w);
}

static enum err render_json(const struct result *r, int exit_status, struct buf *out)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "command", r->command);
    jsonw_i64(&w, "exit", exit_status);
    write_error(r, &w);
    jsonw_bool(&w, "interrupted", r->interrupted);
    jsonw_f64(&w, "seconds", (double)r->seconds_us / 1e6, 3);
    jsonw_i64(&w, "seed", r->seed);
    if (r->run_dir[0])
        jsonw_str(&w, "run_dir", r->run_dir);
    if (r->note[0])
        jsonw_str(&w, "note", r->note);
    stats_write_json(&r->stats, &w);
    write_apps(&r->apps, &w);
    write_generator(&r->generator, &w);
    write_tree(&r->tree, &w);
    write_server(r, &w);
    write_figures(r, &w);
    write_checks(r, &w);
    write_thresholds(r, &w);
    jsonw_end_object(&w);
    return w.err ? w.err : buf_append_char(out, '\n');
}

enum err result_json(const struct result *r, struct buf *out)
{
    return render_json(r, result_exit_status(r), out);
}

enum err result_csv(const struct result *r, struct buf *out)
{
    return stats_write_csv(&r->stats, out);
}

/* ---- thresholds ---- */

static enum err parse_own_json(const struct result *r, struct json **out, struct errinfo *ei)
{
    struct buf text = BUF_INIT(JSON_MAX);
    enum err err = render_json(r, 0, &text);

    if (err)
        err_set(ei, err, "the result does not fit %u bytes", JSON_MAX);
    else
        err = json_parse(text.data, text.len, out, ei);
    buf_done(&text);
    return err;
}

/* A result in which everything is present: what can be named in a threshold is read off it. name: of a check. */
static enum err make_sample(const char *check_name, struct json **out, struct errinfo *ei)
{
    struct result r;
    struct api_result one = {.outcome = OUT_OK};
    struct check_result check = {.name = check_name};

    result_init(&r, "sample");
    for (unsigned i = 0; i < OP_COUNT; i++)
        stats_record(&r.stats, (enum drive_op)i, &one, (struct mono){0});
    r.tree.known = r.apps.known = r.generator.known = true;
    r.server_peak_rss = 0;
    r.checks = &check;
    r.n_checks = 1;
    enum err err = parse_own_json(&r, out, ei);
    r.checks = NULL;
    r.n_checks = 0;
    result_done(&r);
    return err;
}

/* "checks.storage.wrong<1" speaks of the check "storage". */
static void check_named(const char *expr, char *name, size_t n)
{
    static const char prefix[] = "checks.";
    size_t skip = sizeof prefix - 1, len;

    expr += strspn(expr, " ");
    name[0] = '\0';
    if (strncmp(expr, prefix, skip) != 0)
        return;
    len = strcspn(expr + skip, ".<>=! ");
    if (len < n)
        snprintf(name, n, "%.*s", (int)len, expr + skip);
}

enum err result_threshold(struct result *r, const char *expr, struct errinfo *ei)
{
    struct json *sample = NULL;
    struct threshold t;
    char check[64];

    check_named(expr, check, sizeof check);
    enum err err = make_sample(check, &sample, ei);
    if (!err)
        err = threshold_parse(&t, expr, sample, ei);
    json_free(&sample);
    if (err)
        return err;
    r->thresholds = mem_realloc_array(r->thresholds, r->n_thresholds + 1, sizeof *r->thresholds);
    r->thresholds[r->n_thresholds++] = t;
    return ERR_OK;
}

void result_judge(struct result *r)
{
    struct json *doc = NULL;

    if (!r->n_thresholds || parse_own_json(r, &doc, NULL))
        return; /* unjudged thresholds stand as "no samples", that is missed */
    for (size_t i = 0; i < r->n_thresholds; i++)
        threshold_judge(&r->thresholds[i], doc);
    json_free(&doc);
}

/* ---- text ---- */

struct painter {
    FILE *out;
    bool color;
};

static void word(const struct painter *p, bool good, bool bad, const char *text)
{
    const char *paint = !p->color ? "" : good ? "\033[32m" : bad ? "\033[31m" : "\033[33m";

    fprintf(p->out, "  %s%-8s%s ", paint, text, p->color ? "\033[0m" : "");
}

static void print_head(const struct result *r, FILE *out)
{
    char took[32];

    fprintf(out, "\nsummary of %s", r->command);
    str_duration(took, sizeof took, r->seconds_us);
    if (r->interrupted)
        fprintf(out, ": interrupted after %s\n", took);
    else
        fprintf(out, ", %s\n", took);
}

static void print_requests(const struct stats *s, FILE *out)
{
    char n[32], wait[32];
    const char *sep = " (";

    if (!s->requests)
        return;
    fprintf(out, "requests  %s", str_thousands(n, sizeof n, s->requests));
    for (unsigned c = 0; c < CAUSE_COUNT; c++)
        if (s->by_cause[c]) {
            fprintf(out, "%s%s %s", sep, cause_key((enum cause)c), str_thousands(n, sizeof n, s->by_cause[c]));
            sep = ", ";
        }
    fprintf(out, "%s, failed operations %s\n", *sep == ',' ? ")" : "", str_thousands(n, sizeof n, stats_failed_all(s)));
    if (s->throttled || s->waited_us)
        fprintf(out, "budgets   %s answers 429, %s waited\n", str_thousands(n, sizeof n, s->throttled),
                str_duration(wait, sizeof wait, s->waited_us));
    if (s->reconnects)
        fprintf(out, "streams   %s reconnects\n", str_thousands(n, sizeof n, s->reconnects));
}

static void print_summaries(const struct result *r, FILE *out)
{
    char a[32], b[32], c[32];

    if (r->apps.known) {
        fprintf(out, "apps      %s planned, streams up %s, at most %s at once",
                str_thousands(a, sizeof a, r->apps.planned), str_thousands(b, sizeof b, r->apps.streams_up),
                str_thousands(c, sizeof c, r->apps.streams_peak));
        if (r->apps.rss_bytes_per_app > 0)
            fprintf(out, "; %s of memory an app", str_bytes(a, sizeof a, (uint64_t)r->apps.rss_bytes_per_app));
        fputc('\n', out);
    }
    if (r->generator.known) {
        fprintf(out, "generator %s of CPU, loop lag p99 %s", str_duration(a, sizeof a, r->generator.cpu_us),
                r->generator.lag_p99_us < 0 ? "-" : str_duration(b, sizeof b, r->generator.lag_p99_us));
        fprintf(out, r->generator.limited ? "; LIMITED by the generator: %s\n" : "\n", r->generator.why);
    }
    if (r->tree.known) {
        fprintf(out, "tree      %s folders, %s files, %s,", str_thousands(a, sizeof a, r->tree.folders),
                str_thousands(b, sizeof b, r->tree.files), str_bytes(c, sizeof c, r->tree.bytes));
        fprintf(out, " depth %llu; %s files in %s hot folders\n", (unsigned long long)r->tree.depth,
                str_thousands(a, sizeof a, r->tree.hot_files), str_thousands(b, sizeof b, r->tree.hot_folders));
        if (r->tree.manifest_sha256[0])
            fprintf(out, "manifest  %s\n", r->tree.manifest_sha256);
    }
    if (r->server_peak_rss >= 0)
        fprintf(out, "server    %s of memory at most\n", str_bytes(a, sizeof a, (uint64_t)r->server_peak_rss));
    for (size_t i = 0; i < r->n_figures; i++) {
        const struct result_figure *f = &r->figures[i];
        str_format(a, sizeof a, "%.*f", f->decimals, f->value);
        fprintf(out, "%-9s %s %s\n", f->section ? f->section : r->command, f->key, a);
    }
    if (r->run_dir[0])
        fprintf(out, "ledger    %s\n", r->run_dir);
    if (r->note[0])
        fprintf(out, "note      %s\n", r->note);
}

static void print_checks(const struct result *r, const struct painter *p)
{
    static const char *const words[] = {[CHECK_OK] = "ok", [CHECK_VIOLATED] = "VIOLATED", [CHECK_NOT_RUN] = "not run"};
    char n[32], wrong[32];

    if (r->n_checks)
        fprintf(p->out, "checks\n");
    for (size_t i = 0; i < r->n_checks; i++) {
        const struct check_result *c = &r->checks[i];
        word(p, c->status == CHECK_OK, c->status == CHECK_VIOLATED, words[c->status]);
        fprintf(p->out, "%-12s", c->name);
        if (c->status != CHECK_NOT_RUN)
            fprintf(p->out, " %s examined", str_thousands(n, sizeof n, c->examined));
        if (c->wrong)
            fprintf(p->out, ", %s wrong", str_thousands(wrong, sizeof wrong, c->wrong));
        if (c->summary[0])
            fprintf(p->out, "%s%s", c->status == CHECK_NOT_RUN ? " " : "; ", c->summary);
        fputc('\n', p->out);
        for (size_t k = 0; k < c->n_detail; k++)
            fprintf(p->out, "             %s\n", c->detail[k]);
        if (c->wrong > c->n_detail && c->n_detail)
            fprintf(p->out, "             and %s more\n", str_thousands(n, sizeof n, c->wrong - c->n_detail));
    }
}

static void print_thresholds(const struct result *r, const struct painter *p)
{
    char found[40];

    if (r->n_thresholds)
        fprintf(p->out, "thresholds\n");
    for (size_t i = 0; i < r->n_thresholds; i++) {
        const struct threshold *t = &r->thresholds[i];
        bool met = t->state == THRESHOLD_MET;
        word(p, met, !met, met ? "ok" : "MISSED");
        str_format(found, sizeof found, "%.10g", t->found);
        fprintf(p->out, "%s (%s)\n", t->text, t->state == THRESHOLD_NO_SAMPLES ? "no samples" : found);
    }
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_verdict(const struct result *r, const struct painter *p)
{
    struct verdict v = verdict_of(r);
    const char *sep = "";

    if (r->interrupted || r->err || !(r->failures_matter || r->n_checks || r->n_thresholds))
        return;
    if (!v.failed && !v.violated && !v.missed) {
        fprintf(p->out, "%shealthy%s\n", p->color ? "\033[32m" : "", p->color ? "\033[0m" : "");
        return;
    }
    fprintf(p->out, "%snot healthy%s: ", p->color ? "\033[31m" : "", p->color ? "\033[0m" : "");
    const struct {
        uint64_t n;
        const char *what, *did;
    } parts[] = {
        {v.failed, "operation", "failed"}, {v.violated, "check", "violated"}, {v.missed, "threshold", "missed"}};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i].n) {
            fprintf(p->out, "%s%llu %s%s %s", sep, (unsigned long long)parts[i].n, parts[i].what, plural(parts[i].n),
                    parts[i].did);
            sep = ", ";
        }
    fputc('\n', p->out);
}

static bool any_calls(const struct stats *s)
{
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (stats_calls(s, (enum drive_op)i))
            return true;
    return false;
}

/* A command that only sets something up has nothing to sum up. */
static bool anything_to_tell(const struct result *r)
{
    return any_calls(&r->stats) || r->tree.known || r->n_checks || r->n_figures || r->n_thresholds;
}

void result_print(const struct result *r, FILE *out, bool color)
{
    struct painter p = {out, color};

    if (!anything_to_tell(r))
        return;
    print_head(r, out);
    if (any_calls(&r->stats))
        stats_print_table(&r->stats, out, color);
    print_requests(&r->stats, out);
    print_summaries(r, out);
    print_checks(r, &p);
    print_thresholds(r, &p);
    stats_print_reasons(&r->stats, out, 10);
    print_verdict(r, &p);
}
