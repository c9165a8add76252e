#include "drive/result/doc.h"
#include "base/file.h"
#include "base/mem.h"
#include "drive/result/series.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX      (256u << 20)
#define COURSE_MAX    (1u << 30)
#define SECONDS_MOST  1e10
#define FIELD(t, key) (json_str(json_get(t, key)) ? json_str(json_get(t, key)) : "")

static struct doc *new_doc(void)
{
    struct doc *d = mem_zalloc(sizeof(*d));
    buf_init(&d->text, TEXT_MAX);
    buf_init(&d->summary, TEXT_MAX);
    return d;
}

void doc_free(struct doc **dp)
{
    struct doc *d = *dp;
    if (!d)
        return;
    buf_done(&d->text);
    buf_done(&d->summary);
    json_free(&d->root);
    for (size_t i = 0; i < d->n_lines; i++)
        json_free(&d->lines[i]);
    mem_free(d->lines);
    mem_free(d->spans);
    MEM_FREE(*dp);
}

/* ---- the course ---- */

static double number_of(const struct json *object, const char *key)
{
    double v = 0;
    return json_f64(json_get(object, key), &v) ? v : 0;
}

/* A file may hold anything; what is no stretch of time is left out. */
static bool is_span(const struct json *line)
{
    double at, seconds;
    return json_is_object(json_get(line, "operations")) && json_f64(json_get(line, "at_seconds"), &at) &&
           json_f64(json_get(line, "seconds"), &seconds) && fabs(at) < SECONDS_MOST && seconds >= 0 &&
           seconds < SECONDS_MOST;
}

static void add_span(struct doc *d, const struct json *line)
{
    d->spans = mem_realloc_array(d->spans, d->n_spans + 1, sizeof(*d->spans));
    d->spans[d->n_spans++] = (struct doc_span){.at = number_of(line, "at_seconds"),
                                               .seconds = number_of(line, "seconds"),
                                               .phase = FIELD(line, "phase"),
                                               .line = line};
}

/* Seconds count from the window's begin on, as those of the timeline do. */
static void shift_spans(struct doc *d)
{
    double zero = 0;
    for (size_t i = 0; i < d->n_spans; i++)
        if (strcmp(d->spans[i].phase, "window") == 0) {
            zero = d->spans[i].at;
            break;
        }
    for (size_t i = 0; i < d->n_spans; i++)
        d->spans[i].at -= zero;
}

/* The last line of a program that was killed may be broken off. */
static void read_course(struct doc *d, struct sv text)
{
    struct sv line;
    while (sv_split(&text, '\n', &line)) {
        struct json *read = NULL;
        if (!line.n || json_parse(line.p, line.n, &read, NULL) != ERR_OK)
            continue;
        d->lines = mem_realloc_array(d->lines, d->n_lines + 1, sizeof(*d->lines));
        d->lines[d->n_lines++] = read;
        if (is_span(read))
            add_span(d, read);
    }
    shift_spans(d);
}

void doc_stats(const struct doc *d, struct stats *into)
{
    for (size_t i = 0; i < d->n_spans; i++)
        series_read(d->spans[i].line, into);
}

/* ---- of a result ---- */

static enum err whole_as_one(const struct result *r, struct buf *out, struct errinfo *ei)
{
    const struct series_owner owner = {
        .command = r->command, .target = r->target, .arguments = r->arguments, .seed = r->seed};
    struct mono now = mono_now();
    struct series_span span = {.from = mono_add(now, -r->seconds_us), .to = now, .phase = "window"};
    struct series *s = NULL;
    enum err e = series_new(&s, NULL, &owner, span.from, ei);
    if (e != ERR_OK)
        return e;
    series_begin(s, &span, &r->stats);
    series_end(s);
    e = series_text(s, out, ei);
    series_free(&s);
    return e;
}

enum err doc_of_result(const struct result *r, struct doc **out, struct errinfo *ei)
{
    struct doc *d = new_doc();
    struct buf course = BUF_INIT(COURSE_MAX);
    enum err e = result_json(r, &d->text);
    if (e != ERR_OK)
        err_set(ei, e, "the result is too large");
    else
        e = json_parse(d->text.data, d->text.len, &d->root, ei);
    if (e == ERR_OK)
        e = series_empty(r->series) ? whole_as_one(r, &course, ei) : series_text(r->series, &course, ei);
    if (e == ERR_OK) {
        read_course(d, (struct sv){buf_cstr(&course), course.len});
        *out = d;
    } else {
        doc_free(&d);
    }
    buf_done(&course);
    return e;
}

/* ---- of a folder ---- */

static enum err read_file(const char *dir, const char *name, struct buf *out, struct errinfo *ei)
{
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
        return err_set(ei, ERR_USAGE, "%.60s… is too long a path", dir);
    return file_read(path, out, ERR_USAGE, ei);
}

static bool is_object_if_there(const struct json *object, const char *key)
{
    const struct json *v = json_get(object, key);
    return !v || json_is_object(v);
}

/* What the forms go through by its names must have names. */
static bool is_shaped(const struct json *root)
{
    bool fine = is_object_if_there(root, "operations") && is_object_if_there(root, "causes");
    for (const struct json *op = fine ? json_first(json_get(root, "operations")) : NULL; op; op = json_next(op))
        fine = fine && json_is_object(op) && is_object_if_there(op, "outcomes");
    return fine;
}

static enum err read_result(struct doc *d, const char *path, struct errinfo *ei)
{
    struct errinfo why = {0};
    if (json_parse(buf_cstr(&d->text), d->text.len, &d->root, &why) != ERR_OK)
        return err_set(ei, ERR_USAGE, "%s holds no result: %s", path, err_message(&why));
    if (!doc_string(d, "command")[0] || !is_shaped(d->root))
        return err_set(ei, ERR_USAGE, "%s is JSON, but not a result of this program", path);
    return ERR_OK;
}

/* An outage is told in each stretch that it lasts in; its end is the last of them. */
static void add_timeline(const struct doc *d, struct result *r)
{
    struct buf json = BUF_INIT(8u << 20);
    struct jsonw w;
    double zero = d->n_spans ? number_of(d->spans[0].line, "at_seconds") - d->spans[0].at : 0;
    jsonw_init(&w, &json);
    jsonw_array(&w, NULL);
    for (size_t i = 0; i < d->n_spans; i++)
        for (const struct json *o = json_first(json_get(d->spans[i].line, "outages")); o; o = json_next(o)) {
            bool over = json_bool(json_get(o, "over"), false);
            if (!over && i + 1 < d->n_spans)
                continue;
            jsonw_object(&w, NULL);
            jsonw_f64(&w, "at_seconds", number_of(o, "at_seconds") - zero, 3);
            jsonw_f64(&w, "seconds", number_of(o, "seconds"), 3);
            jsonw_str(&w, "what", FIELD(o, "what"));
            jsonw_bool(&w, "ordered", json_bool(json_get(o, "ordered"), false));
            jsonw_i64(&w, "failures", (int64_t)number_of(o, "failures"));
            jsonw_end_object(&w);
        }
    jsonw_end_array(&w);
    result_part(r, "timeline", &w);
}

static bool is_measured(const struct doc_span *s)
{
    return strcmp(s->phase, "window") == 0 || strcmp(s->phase, "step") == 0;
}

static void fill(const struct doc *d, const char *dir, struct result *r)
{
    const struct json *owner = d->lines[0], *last = d->n_spans ? d->spans[d->n_spans - 1].line : NULL;
    double seconds = 0;
    r->interrupted = true;
    r->failures_matter = true;
    r->seed = (int64_t)number_of(owner, "seed");
    str_format(r->run_dir, sizeof(r->run_dir), "%s", dir);
    str_format(r->target, sizeof(r->target), "%s", FIELD(owner, "target"));
    str_format(r->arguments, sizeof(r->arguments), "%s", FIELD(owner, "arguments"));
    (void)wall_parse(FIELD(owner, "began"), &r->began);
    str_format(r->note, sizeof(r->note), "%s",
               "it did not come to its end (it was killed, or is still running): what it had written is shown, no "
               "check was made");
    doc_stats(d, &r->stats);
    for (size_t i = 0; i < d->n_spans; i++)
        seconds += is_measured(&d->spans[i]) ? d->spans[i].seconds : 0;
    r->seconds_us = (int64_t)(seconds * 1e6);
    if (json_get(last, "apps"))
        r->apps = (struct app_summary){.known = true,
                                       .planned = (uint64_t)number_of(last, "apps"),
                                       .streams_up = (uint64_t)number_of(last, "streams_up"),
                                       .streams_peak = (uint64_t)number_of(last, "streams_up")};
    add_timeline(d, r);
}

/* What a command that left no result had written until then, as a result that says so. */
static enum err rebuild(struct doc *d, const char *dir, struct errinfo *ei)
{
    struct result *r;
    char *text = NULL;
    size_t n = 0;
    if (!d->n_lines || !json_str(json_get(d->lines[0], "command")))
        return err_set(ei, ERR_USAGE, "%s/" SERIES_FILE " does not begin as one does", dir);
    r = mem_alloc(sizeof(*r));
    result_init(r, json_str(json_get(d->lines[0], "command")));
    fill(d, dir, r);
    enum err e = result_json(r, &d->text);
    FILE *f = open_memstream(&text, &n);
    if (f) {
        result_print(r, f, false);
        fclose(f);
        if (e == ERR_OK)
            e = buf_append(&d->summary, text, n);
        free(text);
    }
    result_done(r);
    mem_free(r);
    return e ? err_set(ei, e, "what %s holds is too large", dir) : ERR_OK;
}

static enum err load_folder(struct doc *d, const char *dir, struct errinfo *ei)
{
    struct buf course = BUF_INIT(COURSE_MAX);
    struct errinfo why = {0};
    enum err e = read_file(dir, SERIES_FILE, &course, &why);
    bool kept = e == ERR_OK;
    if (kept)
        read_course(d, (struct sv){buf_cstr(&course), course.len});
    buf_done(&course);
    e = read_file(dir, DOC_RESULT_FILE, &d->text, ei);
    if (e == ERR_OK)
        (void)!read_file(dir, DOC_SUMMARY_FILE, &d->summary, &why);
    else if (ei->os_errno == ENOENT && kept)
        e = rebuild(d, dir, ei);
    else if (ei->os_errno == ENOENT)
        return err_set(ei, ERR_USAGE,
                       "%s holds neither " DOC_RESULT_FILE " nor " SERIES_FILE ": it is no folder of a run", dir);
    return e == ERR_OK ? read_result(d, dir, ei) : e;
}

enum err doc_load(const char *path, struct doc **out, struct errinfo *ei)
{
    struct doc *d = new_doc();
    struct stat st;
    enum err e;
    if (stat(path, &st) != 0)
        e = err_sys(ei, ERR_USAGE, "cannot read %s", path);
    else if (S_ISDIR(st.st_mode))
        e = load_folder(d, path, ei);
    else if ((e = file_read(path, &d->text, ERR_USAGE, ei)) == ERR_OK)
        e = read_result(d, path, ei);
    if (e == ERR_OK)
        *out = d;
    else
        doc_free(&d);
    return e;
}

/* ---- looking up ---- */

double doc_number(const struct doc *d, const char *path, double missing)
{
    const struct json *at = d->root;
    struct sv rest = sv_of(path), name;
    char key[64];
    double v;
    while (sv_split(&rest, '.', &name)) {
        str_format(key, sizeof(key), SV_FMT, SV_ARG(name));
        at = json_get(at, key);
    }
    return json_f64(at, &v) ? v : missing;
}

const char *doc_string(const struct doc *d, const char *key)
{
    return FIELD(d->root, key);
}
