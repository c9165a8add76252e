/* JUnit XML as Jenkins and GitLab read it: a suite of one command, a case each for its own end, its operations, each
 * check, each threshold, a ramp's stop conditions and each of its predictions. */
#include "base/mem.h"
#include "drive/result/impl.h"
#include "drive/result/markup.h"
#include <string.h>

enum verdict { PASSED, FAILED, BROKEN, SKIPPED };

struct junit {
    struct markup m; /* of the cases */
    const char *command;
    unsigned n[4]; /* by verdict */
};

static const char *text_of(const struct json *o, const char *key)
{
    const char *s = json_str(json_get(o, key));
    return s ? s : "";
}

/* A line: of a check, or a reason of failures with its count. */
static void put_detail(struct markup *m, const struct json *d)
{
    double n;
    if (json_f64(json_get(d, "count"), &n))
        markup_putf(m, "%.0f x ", n);
    markup_text(m, json_is_string(d) ? json_str(d) : text_of(d, "reason"));
    markup_put(m, "\n");
}

/* One case; `details` (an array, or NULL) is the body of a failure. */
static void put_case(struct junit *j, const char *group, const char *name, enum verdict v, const char *message,
                     const struct json *details)
{
    static const char *const tags[] = {[FAILED] = "failure", [BROKEN] = "error", [SKIPPED] = "skipped"};
    struct markup *m = &j->m;
    char class[96];
    str_format(class, sizeof(class), "drivesim.%s.%s", j->command, group);
    j->n[v]++;
    markup_put(m, "    <testcase");
    markup_attribute(m, "classname", class);
    markup_attribute(m, "name", name);
    markup_put(m, " time=\"0\"");
    if (v == PASSED) {
        markup_put(m, "/>\n");
        return;
    }
    markup_putf(m, ">\n      <%s", tags[v]);
    markup_attribute(m, "message", message);
    if (v != SKIPPED)
        markup_attribute(m, "type", group);
    markup_put(m, ">");
    for (const struct json *d = json_first(details); d; d = json_next(d))
        put_detail(m, d);
    markup_putf(m, "</%s>\n    </testcase>\n", tags[v]);
}

static void put_end(struct junit *j, const struct doc *d)
{
    const struct json *error = json_get(d->root, "error");
    bool stopped = strcmp(text_of(error, "code"), "STOPPED") == 0;
    const char *note = doc_string(d, "note");
    if (json_bool(json_get(d->root, "interrupted"), false))
        put_case(j, "command", "came to its end", BROKEN, note[0] ? note : "interrupted", NULL);
    else if (error && !stopped)
        put_case(j, "command", "came to its end", BROKEN, text_of(error, "message"), NULL);
    else
        put_case(j, "command", "came to its end", PASSED, "", NULL);
    if (json_get(d->root, "steps"))
        put_case(j, "stop", "stop conditions", stopped ? FAILED : PASSED, text_of(error, "message"), NULL);
}

/* What the checks found stands, so this is no failure: the times and rates are what is left out. */
static void put_generator(struct junit *j, const struct doc *d)
{
    const struct json *g = json_get(d->root, "generator");
    bool limited = json_bool(json_get(g, "limited"), false), late = json_bool(json_get(g, "late"), false);
    char message[480];
    if (!g)
        return;
    str_format(message, sizeof(message), "%s: %s",
               limited ? "the generator was the limit: no figures" : "its times hold the generator's own delays",
               text_of(g, "why"));
    put_case(j, "generator", "was not the limit", limited || late ? SKIPPED : PASSED, message, NULL);
}

static void put_operations(struct junit *j, const struct doc *d)
{
    const struct json *verdict = json_get(d->root, "verdict");
    double failed = doc_number(d, "verdict.failed", 0);
    char message[60];
    if (!json_bool(json_get(verdict, "failures_matter"), false))
        return;
    str_format(message, sizeof(message), "%.0f failed", failed);
    put_case(j, "operations", "none failed", failed > 0 ? FAILED : PASSED, message, json_get(d->root, "failures"));
}

static void put_checks(struct junit *j, const struct doc *d)
{
    for (const struct json *c = json_first(json_get(d->root, "checks")); c; c = json_next(c)) {
        const char *status = text_of(c, "status"), *summary = text_of(c, "summary");
        enum verdict v = strcmp(status, "ok") == 0 ? PASSED : strcmp(status, "violated") == 0 ? FAILED : SKIPPED;
        char wrong[60];
        double n = 0;
        (void)json_f64(json_get(c, "wrong"), &n);
        str_format(wrong, sizeof(wrong), "%.0f wrong", n);
        put_case(j, "checks", text_of(c, "name"), v, summary[0] ? summary : wrong, json_get(c, "detail"));
    }
}

static void put_thresholds(struct junit *j, const struct doc *d)
{
    for (const struct json *t = json_first(json_get(d->root, "thresholds")); t; t = json_next(t)) {
        char found[200] = "no samples";
        double n;
        bool judged = strcmp(text_of(t, "status"), "not_judged") != 0;
        if (!judged)
            str_format(found, sizeof(found), "could not be judged: %.150s", text_of(t, "why"));
        else if (json_f64(json_get(t, "value"), &n))
            str_format(found, sizeof(found), "it is %.10g", n);
        put_case(j, "thresholds", text_of(t, "expression"),
                 !judged                                ? BROKEN
                 : json_bool(json_get(t, "met"), false) ? PASSED
                                                        : FAILED,
                 found, NULL);
    }
}

static void put_predictions(struct junit *j, const struct doc *d)
{
    for (const struct json *p = json_first(json_get(d->root, "predictions")); p; p = json_next(p)) {
        const char *score = text_of(p, "score");
        char message[80];
        double least;
        str_format(message, sizeof(message), "%s", score);
        if (json_f64(json_get(p, "least"), &least))
            str_format(message, sizeof(message), "%s: it is %.10g", score, least);
        put_case(j, "predictions", text_of(p, "text"),
                 strcmp(score, "hit") == 0      ? PASSED
                 : strcmp(score, "missed") == 0 ? FAILED
                                                : SKIPPED,
                 message, NULL);
    }
}

static void put_property(struct markup *m, const char *name, const char *value)
{
    if (!value[0])
        return;
    markup_put(m, "      <property");
    markup_attribute(m, "name", name);
    markup_attribute(m, "value", value);
    markup_put(m, "/>\n");
}

static void put_suite(const struct junit *j, const struct doc *d, struct markup *m)
{
    static const char *const properties[] = {"drivesim", "target", "arguments", "run_dir", "note"};
    char counts[160];
    str_format(counts, sizeof(counts), " tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\" time=\"%.3f\"",
               j->n[PASSED] + j->n[FAILED] + j->n[BROKEN] + j->n[SKIPPED], j->n[FAILED], j->n[BROKEN], j->n[SKIPPED],
               doc_number(d, "seconds", 0));
    markup_put(m, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"drivesim\"");
    markup_put(m, counts);
    markup_put(m, ">\n  <testsuite");
    char name[80];
    str_format(name, sizeof(name), "sim %s", j->command);
    markup_attribute(m, "name", name);
    markup_put(m, counts);
    if (doc_string(d, "began")[0]) {
        str_format(name, sizeof(name), "%.19s", doc_string(d, "began"));
        markup_attribute(m, "timestamp", name);
    }
    markup_put(m, ">\n    <properties>\n");
    for (size_t i = 0; i < ARRAY_LEN(properties); i++)
        put_property(m, properties[i], doc_string(d, properties[i]));
    markup_put(m, "    </properties>\n");
}

enum err rendering_junit(const struct doc *d, struct buf *out)
{
    struct buf cases = BUF_INIT(out->max);
    struct junit j = {.command = doc_string(d, "command")};
    struct markup m;
    markup_init(&j.m, &cases);
    put_end(&j, d);
    put_generator(&j, d);
    put_operations(&j, d);
    put_checks(&j, d);
    put_thresholds(&j, d);
    put_predictions(&j, d);
    markup_init(&m, out);
    put_suite(&j, d, &m);
    markup_put(&m, buf_cstr(&cases));
    markup_put(&m, "  </testsuite>\n</testsuites>\n");
    buf_done(&cases);
    return j.m.err ? j.m.err : m.err;
}
