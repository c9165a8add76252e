/* A result as JSON: the keys are those of design.md, "Figures people read". */
#include "base/mem.h"
#include "base/version.h"
#include "drive/api/types.h"
#include "drive/result/impl.h"
#include "drive/stats_told.h"
#include "drive/threshold.h"
#include <string.h>

static void write_events(const struct event_summary *e, struct jsonw *w)
{
    if (!e->known)
        return;
    jsonw_object(w, "events");
    jsonw_i64(w, "expected", (int64_t)e->expected);
    jsonw_i64(w, "seen", (int64_t)e->seen);
    jsonw_i64(w, "lost", (int64_t)e->lost);
    jsonw_i64(w, "duplicate", (int64_t)e->duplicate);
    jsonw_i64(w, "out_of_order", (int64_t)e->out_of_order);
    jsonw_i64(w, "late", (int64_t)e->late);
    jsonw_i64(w, "covered_by_resync", (int64_t)e->resynced);
    jsonw_end_object(w);
}

static void write_sessions(const struct session_summary *s, struct jsonw *w)
{
    if (s->kept + s->signed_in == 0)
        return;
    jsonw_object(w, "sessions");
    jsonw_i64(w, "kept", s->kept);
    jsonw_i64(w, "signed_in", s->signed_in);
    jsonw_end_object(w);
}

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
    jsonw_measured(w, "lag_p99_ms", (double)g->lag_p99_us / 1e3, 3);
    jsonw_measured(w, "peak_rss_bytes", g->peak_rss_bytes > 0 ? (double)g->peak_rss_bytes : -1, 0);
    jsonw_bool(w, "limited", g->limited);
    jsonw_bool(w, "late", g->late);
    if (g->cause)
        jsonw_str(w, "cause", g->cause);
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
        if (c->n_note > 0) {
            jsonw_array(w, "notes");
            for (size_t k = 0; k < c->n_note; k++)
                jsonw_str(w, NULL, c->note[k]);
            jsonw_end_array(w);
        }
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
        jsonw_str(w, "status", threshold_key(t->state));
        if (t->state == THRESHOLD_NOT_JUDGED)
            jsonw_null(w, "met");
        else
            jsonw_bool(w, "met", t->state == THRESHOLD_MET);
        if (t->state == THRESHOLD_NO_SAMPLES || t->state == THRESHOLD_NOT_JUDGED)
            jsonw_null(w, "value");
        else
            jsonw_f64(w, "value", t->found, 3);
        if (t->state == THRESHOLD_NOT_JUDGED)
            jsonw_str(w, "why", t->why);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

/* In two lists, by name. */
static void write_capabilities(const struct result *r, struct jsonw *w)
{
    if (!r->caps_known)
        return;
    jsonw_object(w, "capabilities");
    for (int has = 1; has >= 0; has--) {
        jsonw_array(w, has ? "has" : "lacks");
        for (unsigned cap = 1; cap < API_CAP_ALL; cap <<= 1)
            if (!!(r->caps & cap) == has)
                jsonw_str(w, NULL, api_cap_text((enum api_cap)cap));
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
}

static bool same_section(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The figures of one section, whatever the order of their coming. */
static void write_section_figures(const struct result *r, const char *section, struct jsonw *w)
{
    struct few *few = mem_zalloc((r->n_figures + 1) * sizeof *few);
    size_t n = 0;

    for (size_t i = 0; i < r->n_figures; i++)
        if (same_section(r->figures[i].section, section)) {
            jsonw_f64(w, r->figures[i].key, r->figures[i].value, r->figures[i].decimals);
            few[n++] = r->figures[i].few;
        }
    few_write(w, few, n);
    mem_free(few);
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
    jsonw_measured(w, "peak_rss_bytes", (double)r->server_peak_rss, 0);
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

static void write_verdict(const struct result *r, struct jsonw *w)
{
    struct result_verdict v = result_verdict(r);
    char text[VERDICT_TEXT_MAX];

    jsonw_object(w, "verdict");
    if (v.known && (result_is_bad(&v) || !v.not_judged))
        jsonw_bool(w, "healthy", !result_is_bad(&v));
    else
        jsonw_null(w, "healthy");
    jsonw_str(w, "text", result_verdict_text(r, text));
    jsonw_bool(w, "failures_matter", r->failures_matter);
    jsonw_i64(w, "failed", (int64_t)v.failed);
    jsonw_i64(w, "violated", (int64_t)v.violated);
    jsonw_i64(w, "missed", (int64_t)v.missed);
    jsonw_i64(w, "not_judged", (int64_t)v.not_judged);
    jsonw_i64(w, "not_run", (int64_t)v.not_run);
    jsonw_end_object(w);
}

static void write_phases(const struct result *r, struct jsonw *w)
{
    jsonw_array(w, "phases");
    for (size_t i = 0; i < r->phases.n; i++) {
        const struct phase_told *p = &r->phases.of[i];
        jsonw_object(w, NULL);
        jsonw_str(w, "name", p->name);
        jsonw_f64(w, "seconds", (double)p->us / 1e6, 3);
        jsonw_i64(w, "requests", (int64_t)p->requests);
        jsonw_measured(w, "requests_per_s", p->us > 0 ? (double)p->requests * 1e6 / (double)p->us : -1, 2);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_origin(const struct result *r, struct jsonw *w)
{
    char began[40];

    jsonw_str(w, "drivesim", drivesim_version);
    if (r->target[0])
        jsonw_str(w, "target", r->target);
    if (r->arguments[0])
        jsonw_str(w, "arguments", r->arguments);
    if (r->began.us)
        jsonw_str(w, "began", wall_format(began, sizeof began, r->began));
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

enum err result_render_json(const struct result *r, int exit_status, struct buf *out)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "command", r->command);
    jsonw_i64(&w, "exit", exit_status);
    write_error(r, &w);
    write_verdict(r, &w);
    write_origin(r, &w);
    jsonw_bool(&w, "interrupted", r->interrupted);
    jsonw_f64(&w, "seconds", (double)r->seconds_us / 1e6, 3);
    jsonw_i64(&w, "seed", r->seed);
    if (r->run_dir[0])
        jsonw_str(&w, "run_dir", r->run_dir);
    if (r->note[0])
        jsonw_str(&w, "note", r->note);
    write_capabilities(r, &w);
    write_phases(r, &w);
    stats_write_json(&r->stats, &w);
    write_apps(&r->apps, &w);
    write_sessions(&r->sessions, &w);
    write_generator(&r->generator, &w);
    write_tree(&r->tree, &w);
    write_events(&r->events, &w);
    write_server(r, &w);
    write_figures(r, &w);
    for (size_t i = 0; i < r->n_parts; i++)
        jsonw_raw(&w, r->parts[i].key, sv_of(r->parts[i].json));
    write_checks(r, &w);
    write_thresholds(r, &w);
    jsonw_end_object(&w);
    return w.err ? w.err : buf_append_char(out, '\n');
}
