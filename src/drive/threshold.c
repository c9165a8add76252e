#include "drive/threshold.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/percentiles.h"
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

/* A figure, and where it stands. */
struct figure {
    const struct json *value, *holder; /* the object that it is a member of; NULL: nothing is there */
    const char *unit;                  /* the last key on the way that names one, for "total_ms" may hold "p99" */
};

/* "full pass" and "full-pass" are full_pass. */
static char flat(char c)
{
    return c == ' ' || c == '-' ? '_' : c;
}

/* A row may be named as its table shows it: "stream_connect", or the sentence that says what is read. */
static const struct json *shown_row(const struct json *v, const char *name)
{
    enum drive_op op;
    const struct json *found = drive_op_parse(name, &op) ? json_get(v, drive_op_key(op)) : NULL;

    for (const struct json *row = json_first(v); row && !found; row = json_next(row)) {
        const char *what = json_is_object(row) ? json_str(json_get(row, "what")) : NULL, *n = name;
        while (what && *what && flat(*what) == *n)
            what++, n++;
        found = what && !*what && !*n ? row : NULL;
    }
    return found;
}

/* One step down. Left out may be a unit, and the levels "outcomes" and "alone". */
static const struct json *child(const struct json *v, const char *name, const struct json **holder)
{
    static const char *const units[] = {"", "_ms", "_seconds", "_bytes"}, *const levels[] = {"outcomes", "alone"};
    const char *also = strcmp(name, "slowest") == 0 ? "max" : name;
    const struct json *found = NULL;
    char key[80];

    *holder = v;
    if (json_is_array(v))
        return named_item(v, name);
    for (size_t i = 0; i < 2 * ARRAY_LEN(units) && v && !found; i++) {
        str_format(key, sizeof key, "%s%s", i % 2 ? also : name, units[i / 2]);
        found = json_get(v, key);
    }
    for (size_t i = 0; i < ARRAY_LEN(levels) && v && !found; i++)
        found = child(json_get(v, levels[i]), name, holder);
    if (!found && json_is_object(v) && (found = shown_row(v, name)))
        *holder = v;
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

static struct figure descend(const struct json *v, const char *path)
{
    struct figure f = {.value = v};
    struct sv rest = sv_of(path), word;
    char name[64];

    while (f.value && sv_split(&rest, '.', &word)) {
        if (word.n >= sizeof name)
            return (struct figure){0};
        memcpy(name, word.p, word.n);
        name[word.n] = '\0';
        f.value = child(f.value, name, &f.holder);
        struct sv key = sv_of(f.value ? json_key(f.value) : NULL);
        if (is_ms(key) || is_seconds(key) || is_bytes(key))
            f.unit = key.p;
    }
    return f;
}

static bool is_figure(const struct json *v)
{
    return json_is_number(v) || json_is_bool(v) || (v && json_is_null(v));
}

/* From the top, else within each section: "save.p99" is operations.save.p99_ms, "lag_p99" generator.lag_p99_ms. */
static struct figure lookup(const struct json *doc, const char *path)
{
    struct figure f = descend(doc, path);

    for (const struct json *section = json_first(doc); section && !is_figure(f.value); section = json_next(section))
        f = json_is_object(section) || json_is_array(section) ? descend(section, path) : (struct figure){0};
    return is_figure(f.value) ? f : (struct figure){0};
}

/* Of the sample, in which each operation came up once: so many samples the figure needs. Beside percentiles stand the
 * slowest and the mean, which need one. 0: it is no figure of samples. */
static uint64_t needs_of(const struct figure *f)
{
    const char *key = json_key(f->value);
    uint64_t samples, needs;

    if (few_read(f->holder, key, &samples, &needs))
        return needs;
    return json_get(f->holder, PERCENTILES_FEW) && is_ms(sv_of(key)) ? 1 : 0;
}

static enum err copy_path(struct threshold *t, struct sv path)
{
    if (!path.n || path.n >= sizeof t->path)
        return ERR_USAGE;
    for (size_t i = 0; i < path.n; i++)
        t->path[i] = flat(path.p[i]);
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

/* Every figure by its whole path, and without its section as lookup has it. */
static void guess_figures(const struct json *v, const char *path, struct opt_guess *g)
{
    char below[128];

    for (const struct json *m = json_first(v); m; m = json_next(m)) {
        const char *key = json_key(m) ? json_key(m) : json_str(json_get(m, "name"));
        if (!key || strcmp(key, PERCENTILES_FEW) == 0)
            continue;
        str_format(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
        if (!is_figure(m)) {
            guess_figures(m, below, g);
            continue;
        }
        struct sv unitless = sv_of(below);
        if (is_ms(unitless))
            below[unitless.n - 3] = '\0';
        opt_guess_try(g, below);
        if (strchr(below, '.'))
            opt_guess_try(g, strchr(below, '.') + 1);
    }
}

static enum err no_such_figure(const char *expr, const char *path, const struct json *sample, struct errinfo *ei)
{
    struct opt_guess g;

    opt_guess_init(&g, sv_of(path));
    guess_figures(sample, "", &g);
    for (int op = 0; op < OP_COUNT; op++) { /* of an operation alone, whichever its figure */
        char row[64];
        const char *dot = strchr(path, '.'), *const names[] = {drive_op_key(op), drive_op_text(op)};
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            str_format(row, sizeof row, "%s%s", names[i], dot ? dot : "");
            for (char *c = row; *c; c++)
                *c = flat(*c);
            if (lookup(sample, row).value)
                opt_guess_try(&g, row);
        }
    }
    if (g.name[0])
        return err_set(ei, ERR_USAGE, "--fail-on '%s': there is no such figure%s", SHOWN(sv_of(expr)),
                       opt_guess_text(&g));
    return refuse(
        expr,
        "there is no such figure; those of --json can be named, such as save.p99, failed, apps.streams_up, and "
        "those that the command's --help lists",
        ei);
}

/* The generator's own figures are about itself, and stand; a knee is a rate that no longer grows. */
static void note_kind(struct threshold *t, const struct figure *f, const struct json *sample)
{
    static const char *const rates[] = {"knee", "recommended"};
    const char *key = json_key(f->value);
    if (f->holder == json_get(sample, "generator"))
        return;
    t->time = f->unit && (is_ms(sv_of(f->unit)) || is_seconds(sv_of(f->unit)));
    t->rate = strstr(key, "per_s") || strstr(key, "rate");
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        t->rate |= strstr(t->path, rates[i]) != NULL;
}

/* What was measured is partly the generator itself. */
static bool is_its_own(struct threshold *t, const struct json *doc)
{
    const struct json *g = json_get(doc, "generator");
    bool limited = json_bool(json_get(g, "limited"), false), late = json_bool(json_get(g, "late"), false);
    const char *why = json_str(json_get(g, "why"));
    if (!(limited && (t->time || t->rate)) && !(late && t->time))
        return false;
    t->state = THRESHOLD_NOT_JUDGED;
    str_format(t->why, sizeof t->why, "the generator was %s: %s", limited ? "the limit" : "late", why ? why : "");
    return true;
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
    const struct figure f = lookup(sample, t->path);
    if (!f.value)
        return no_such_figure(expr, t->path, sample, ei);
    if (!value.n || value.n >= sizeof text)
        return refuse(expr, "needs a number behind the comparison", ei);
    copy_value(text, value);
    if (parse_value(text, f.unit, &t->want))
        return refuse(expr, wanted_value(f.unit), ei);
    t->about_failures = strcmp(json_key(f.value), "failed") == 0;
    t->count = is_count(json_key(f.value));
    t->needs = needs_of(&f);
    note_kind(t, &f, sample);
    t->text = mem_strdup(expr);
    return ERR_OK;
}

static void not_carried(struct threshold *t, uint64_t samples, uint64_t needs)
{
    t->state = THRESHOLD_NOT_JUDGED;
    str_format(t->why, sizeof t->why, "%s, it needs %llu", COUNTED(samples, "sample"), (unsigned long long)needs);
}

void threshold_judge(struct threshold *t, const struct json *doc)
{
    const struct figure f = lookup(doc, t->path);
    uint64_t samples, needs;
    bool known = true;

    t->found = 0;
    if (json_is_bool(f.value))
        t->found = json_bool(f.value, false);
    else
        known = json_f64(f.value, &t->found);
    if (f.value && few_read(f.holder, json_key(f.value), &samples, &needs))
        not_carried(t, samples, needs);
    else if (!known && t->needs)
        not_carried(t, 0, t->needs);
    else if (is_its_own(t, doc))
        return;
    else if (!known && !t->count)
        t->state = THRESHOLD_NO_SAMPLES;
    else
        t->state = compare_holds(t->compare, t->found, t->want) ? THRESHOLD_MET : THRESHOLD_MISSED;
}

const char *threshold_key(enum threshold_state state)
{
    static const char *const keys[] = {[THRESHOLD_MET] = "met",
                                       [THRESHOLD_MISSED] = "missed",
                                       [THRESHOLD_NO_SAMPLES] = "missed",
                                       [THRESHOLD_NOT_JUDGED] = "not_judged"};
    return keys[state];
}

char *threshold_found(const struct threshold *t, char *dst, size_t n)
{
    if (t->state == THRESHOLD_NOT_JUDGED)
        str_format(dst, n, "could not be judged: %s", t->why);
    else if (t->state == THRESHOLD_NO_SAMPLES)
        str_format(dst, n, "no samples");
    else
        str_format(dst, n, "%.10g", t->found);
    return dst;
}
