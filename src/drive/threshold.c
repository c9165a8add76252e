#include "drive/threshold.h"
#include "base/mem.h"
#include "base/opt.h"
#include "drive/model.h"
#include <ctype.h>
#include <string.h>

static const struct json *named_item(const struct json *array, const char *name)
{
    for (const struct json *item = json_first(array); item; item = json_next(item)) {
        const char *own = json_str(json_get(item, "name"));
        if (own && strcmp(own, name) == 0)
            return item;
    }
    return NULL;
}

/* One step down. Left out may be a unit, and the levels "outcomes" and "alone". */
static const struct json *child(const struct json *v, const char *name)
{
    static const char *const units[] = {"", "_ms", "_seconds", "_bytes"}, *const levels[] = {"outcomes", "alone"};
    const char *also = strcmp(name, "slowest") == 0 ? "max" : name;
    const struct json *found = NULL;
    char key[80];

    if (json_is_array(v))
        return named_item(v, name);
    for (size_t i = 0; i < 2 * ARRAY_LEN(units) && v && !found; i++) {
        str_format(key, sizeof key, "%s%s", i % 2 ? also : name, units[i / 2]);
        found = json_get(v, key);
    }
    for (size_t i = 0; i < ARRAY_LEN(levels) && v && !found; i++)
        found = child(json_get(v, levels[i]), name);
    return found;
}

static bool is_ms(struct sv key)
{
    return sv_ends(key, SV("_ms"));
}

static bool is_seconds(struct sv key)
{
    return sv_ends(key, SV("seconds"));
}

static bool is_bytes(struct sv key)
{
    return sv_starts(key, SV("bytes")) || memmem(key.p, key.n, "_bytes", 6);
}

/* *unit: the last key on the way that names one, for "total_ms" may hold "p99"; NULL: none. */
static const struct json *descend(const struct json *v, const char *path, const char **unit)
{
    struct sv rest = sv_of(path), word;
    char name[64];

    *unit = NULL;
    while (v && sv_split(&rest, '.', &word)) {
        if (word.n >= sizeof name)
            return NULL;
        memcpy(name, word.p, word.n);
        name[word.n] = '\0';
        v = child(v, name);
        struct sv key = sv_of(v ? json_key(v) : NULL);
        if (is_ms(key) || is_seconds(key) || is_bytes(key))
            *unit = key.p;
    }
    return v;
}

static bool is_figure(const struct json *v)
{
    return json_is_number(v) || json_is_bool(v) || (v && json_is_null(v));
}

/* From the top, else within each section: "save.p99" is operations.save.p99_ms, "lag_p99" generator.lag_p99_ms. */
static const struct json *lookup(const struct json *doc, const char *path, const char **unit)
{
    const struct json *v = descend(doc, path, unit);

    for (const struct json *section = json_first(doc); section && !is_figure(v); section = json_next(section))
        v = json_is_object(section) || json_is_array(section) ? descend(section, path, unit) : NULL;
    return is_figure(v) ? v : NULL;
}

/* "full pass" and "full-pass" are full_pass. */
static enum err copy_path(struct threshold *t, struct sv path)
{
    if (!path.n || path.n >= sizeof t->path)
        return ERR_USAGE;
    for (size_t i = 0; i < path.n; i++)
        t->path[i] = path.p[i] == ' ' || path.p[i] == '-' ? '_' : path.p[i];
    t->path[path.n] = '\0';
    return ERR_OK;
}

/* The value in the unit that a key names; NULL: it is a plain number. */
static enum err parse_value(const char *text, const char *unit, double *out)
{
    struct sv k = sv_of(unit);
    int64_t scaled;

    if (sv_to_f64(sv_of(text), out))
        return ERR_OK;
    if (is_ms(k) || is_seconds(k)) {
        enum err err = opt_parse_duration(sv_of(text), &scaled);
        *out = (double)scaled / (is_ms(k) ? 1e3 : 1e6);
        return err;
    }
    if (is_bytes(k)) {
        enum err err = opt_parse_size(sv_of(text), &scaled);
        *out = (double)scaled;
        return err;
    }
    return ERR_USAGE;
}

static enum err refuse(const char *expr, const char *why, struct errinfo *ei)
{
    return err_set(ei, ERR_USAGE, "--fail-on '%s': %s", SHOWN(sv_of(expr)), why);
}

/* "200 ms" is 200ms; "1 2" stays wrong. dst has room for all of it. */
static void copy_value(char *dst, struct sv value)
{
    size_t digits = 0, unit;

    while (digits < value.n && value.p[digits] != ' ')
        digits++;
    for (unit = digits; unit < value.n && value.p[unit] == ' ';)
        unit++;
    if (unit < value.n && !isalpha((unsigned char)value.p[unit]))
        unit = digits;
    memcpy(dst, value.p, digits);
    memcpy(dst + digits, value.p + unit, value.n - unit);
    dst[digits + value.n - unit] = '\0';
}

static const char *wanted_value(const char *unit)
{
    struct sv k = sv_of(unit);

    if (is_ms(k) || is_seconds(k))
        return "needs a time behind the comparison, such as 200ms or 1.5s";
    return is_bytes(k) ? "needs a size behind the comparison, such as 64MiB"
                       : "needs a plain number behind the comparison: this figure has no unit";
}

/* An operation that never came up has counts, all 0, but no latencies. */
static bool is_count(const char *key)
{
    for (unsigned i = 0; i < OUT_COUNT; i++)
        if (strcmp(key, outcome_key((enum outcome)i)) == 0)
            return true;
    return strcmp(key, "failed") == 0;
}

enum err threshold_parse(struct threshold *t, const char *expr, const struct json *sample, struct errinfo *ei)
{
    size_t at = strcspn(expr, "<>=!");
    const char *sign = expr + at;
    struct sv value;
    char text[48];

    *t = (struct threshold){.state = THRESHOLD_NO_SAMPLES};
    size_t sign_n = compare_parse(sign, &t->compare);
    if (!sign_n)
        return refuse(expr, "needs a comparison (< <= > >= == !=), such as save.p99<200ms", ei);
    value = sv_trim(sv_of(sign + sign_n));
    if (copy_path(t, sv_trim((struct sv){expr, at})))
        return refuse(expr, "needs the name of a figure in front, such as save.p99<200ms", ei);
    const char *unit;
    const struct json *figure = lookup(sample, t->path, &unit);
    if (!figure)
        return refuse(
            expr,
            "there is no such figure; those of --json can be named, such as save.p99, failed, apps.streams_up, and "
            "those that the command's --help lists",
            ei);
    if (!value.n || value.n >= sizeof text)
        return refuse(expr, "needs a number behind the comparison", ei);
    copy_value(text, value);
    if (parse_value(text, unit, &t->want))
        return refuse(expr, wanted_value(unit), ei);
    t->about_failures = strcmp(json_key(figure), "failed") == 0;
    t->count = is_count(json_key(figure));
    t->text = mem_strdup(expr);
    return ERR_OK;
}

void threshold_judge(struct threshold *t, const struct json *doc)
{
    const char *unit;
    const struct json *v = lookup(doc, t->path, &unit);

    t->found = 0;
    if (json_is_bool(v))
        t->found = json_bool(v, false);
    else if (!json_f64(v, &t->found) && !t->count) {
        t->state = THRESHOLD_NO_SAMPLES;
        return;
    }
    t->state = compare_holds(t->compare, t->found, t->want) ? THRESHOLD_MET : THRESHOLD_MISSED;
}
