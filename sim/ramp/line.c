#include "sim/ramp/line.h"
#include "base/mem.h"
#include "base/opt.h"
#include "sim/ramp/plan.h"

#include <math.h>
#include <string.h>

#define ABOUT     0.1  /* "=" of what is measured */
#define WANT_MOST 1e12 /* milliseconds, or whatever the figure counts: 31 years */

static const char *const figures[] = {
#define X(sym, key) key,
    RAMP_FIGURES(X)
#undef X
};

static enum err refuse(const char *option, const char *text, const char *why, struct errinfo *ei)
{
    return err_set(ei, ERR_USAGE, "%s '%s': %s", option, SHOWN(sv_of(text)), why);
}

static const struct {
    const char *word;
    double pct;
} rows[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}, {"max", 100}};

/* "p95_upload" or "upload_p95"; "p95" alone: of what a session does. */
static bool read_time(struct sv name, struct ramp_line *out)
{
    char key[64];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sv word = sv_of(rows[i].word), op = {NULL, 0};
        out->kind = RAMP_LINE_TIME;
        out->pct = rows[i].pct;
        out->op = OP_COUNT;
        if (sv_eq(name, word))
            return true;
        if (name.n > word.n + 1 && sv_starts(name, word) && name.p[word.n] == '_')
            op = (struct sv){name.p + word.n + 1, name.n - word.n - 1};
        else if (name.n > word.n + 1 && sv_ends(name, word) && name.p[name.n - word.n - 1] == '_')
            op = (struct sv){name.p, name.n - word.n - 1};
        if (!op.p || op.n >= sizeof(key))
            continue;
        memcpy(key, op.p, op.n);
        key[op.n] = '\0';
        out->op = OP_SIGN_IN;
        return strcmp(key, "login") == 0 || drive_op_parse(key, &out->op);
    }
    return false;
}

/* What people call figures whose names carry a unit here. */
static struct sv by_its_name(struct sv word)
{
    static const struct {
        const char *word, *name;
    } by_name[] = {{"cpu", "cpu_pct"},
                   {"swap", "swap_mib"},
                   {"disk_write", "disk_write_ms"},
                   {"write_latency", "disk_write_ms"},
                   {"timeouts", "timed_out"},
                   {"failure_rate", "failed_pct"},
                   {"error_rate", "failed_pct"},
                   {"throughput", "mb_per_s"}};
    for (size_t i = 0; i < ARRAY_LEN(by_name); i++)
        if (sv_eq_cstr(word, by_name[i].word))
            return sv_of(by_name[i].name);
    return word;
}

static bool read_name(struct sv word, bool of_whole, struct ramp_line *out)
{
    struct sv name = by_its_name(word);
    if (read_time(name, out))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        if (sv_eq_cstr(name, figures[i])) {
            out->kind = RAMP_LINE_STEP;
            out->figure = (enum ramp_figure)i;
            return true;
        }
    if (watch_find(name, &out->watch)) {
        out->kind = RAMP_LINE_WATCH;
        return true;
    }
    out->kind = sv_eq_cstr(name, "knee") ? RAMP_LINE_KNEE : RAMP_LINE_LIMIT;
    return of_whole && !out->at && (sv_eq_cstr(name, "knee") || sv_eq_cstr(name, "limit"));
}

static bool is_share(const struct ramp_line *l)
{
    if (l->kind == RAMP_LINE_STEP)
        return l->figure >= RAMP_FIGURE_REFUSED_PCT && l->figure <= RAMP_FIGURE_FAILED_PCT;
    return l->kind == RAMP_LINE_WATCH && sv_ends(sv_of(watch_key(l->watch)), SV("_pct"));
}

static bool read_value(struct sv text, struct ramp_line *out)
{
    int64_t us;
    bool share = sv_ends(text, SV("%"));
    if (share && !is_share(out))
        return false;
    text.n -= share;
    if (sv_to_f64(text, &out->want))
        return fabs(out->want) <= WANT_MOST;
    if (out->kind == RAMP_LINE_STEP && out->figure == RAMP_FIGURE_MB_PER_S) {
        enum err e = ramp_parse_link(text.p, &out->want, NULL);
        out->want /= 1e6;
        return e == ERR_OK;
    }
    bool time = out->kind == RAMP_LINE_TIME ||
                (out->kind == RAMP_LINE_WATCH && sv_ends(sv_of(watch_key(out->watch)), SV("_ms")));
    if (!time || opt_parse_duration(text, &us) != ERR_OK)
        return false;
    out->want = (double)us / 1e3;
    return out->want <= WANT_MOST;
}

static enum err no_such_figure(const char *option, const char *text, struct sv name, bool of_whole, struct errinfo *ei)
{
    struct opt_guess near;
    char figure[64];
    opt_guess_init(&near, name);
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        opt_guess_try(&near, figures[i]);
    for (unsigned i = 0; i < WATCH_COUNT; i++)
        opt_guess_try(&near, watch_key((enum watch_figure)i));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int op = 0; op < OP_COUNT; op++) {
            str_format(figure, sizeof(figure), "%s_%s", rows[i].word, drive_op_key(op));
            opt_guess_try(&near, figure);
        }
    if (near.name[0])
        return err_set(ei, ERR_USAGE, "%s '%s': there is no such figure%s", option, SHOWN(sv_of(text)),
                       opt_guess_text(&near));
    return refuse(option, text,
                  of_whole ? "there is no such figure; there are p95_OPERATION, failed, refused, timed_out, "
                             "failed_pct, mb_per_s, those of --watch, knee, limit, …"
                           : "there is no such figure; there are p95_OPERATION, failed, refused, timed_out, "
                             "failed_pct, mb_per_s, those of --watch, …",
                  ei);
}

enum err ramp_line_parse(const char *option, const char *text, bool of_whole, struct ramp_line *out, struct errinfo *ei)
{
    size_t at = strcspn(text, "<>=!");
    struct sv left = sv_trim((struct sv){text, at}), name, step;
    char key[64];
    int64_t sessions = 0;

    *out = (struct ramp_line){.text = text};
    size_t sign = compare_parse(text + at, &out->compare);
    if (!sign)
        return refuse(option, text, "needs a comparison (< <= > >= = !=), such as p95_upload@300<2s", ei);
    bool named = sv_split(&left, '@', &name) && name.n < sizeof(key);
    if (named && sv_split(&left, '@', &step) &&
        (!sv_to_i64(step, &sessions) || sessions < 1 || sessions > RAMP_SESSIONS_MAX || left.n > 0))
        return refuse(option, text, "after @ comes a step, by its number of sessions", ei);
    out->at = (unsigned)sessions;
    for (size_t i = 0; named && i < name.n; i++)
        key[i] = name.p[i] == '.' || name.p[i] == '-' ? '_' : name.p[i];
    if (!named || !read_name((struct sv){key, name.n}, of_whole, out))
        return no_such_figure(option, text, named ? (struct sv){key, name.n} : SV(""), of_whole, ei);
    if (!read_value(sv_trim(sv_of(text + at + sign)), out))
        return refuse(option, text, "needs a number, in a unit of the figure if in any", ei);
    return ERR_OK;
}

static bool is_count(const struct ramp_line *l)
{
    return l->kind == RAMP_LINE_STEP && l->figure <= RAMP_FIGURE_UNFINISHED;
}

bool ramp_line_holds(const struct ramp_line *l, double value)
{
    if (is_count(l) || (l->compare != CMP_EQ && l->compare != CMP_NE))
        return compare_holds(l->compare, value, l->want);
    return (fabs(value - l->want) <= ABOUT * fabs(l->want)) == (l->compare == CMP_EQ);
}

char *ramp_line_value(const struct ramp_line *l, double value, char *dst, size_t n)
{
    if (l->kind == RAMP_LINE_TIME)
        return str_duration(dst, n, (int64_t)(value * 1e3));
    bool pct = l->kind == RAMP_LINE_STEP && is_share(l);
    str_format(dst, n, value == floor(value) ? "%.0f%s" : "%.1f%s", value, pct ? " %" : "");
    return dst;
}
