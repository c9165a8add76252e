#include "sim/ramp/plan.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/str.h"
#include "sim/ramp/knee.h"

#include <math.h>
#include <string.h>

/* ---- steps ---- */

static enum err bad_steps(struct errinfo *ei, const char *text)
{
    return err_set(ei, ERR_USAGE,
                   "steps are written 25,50,100 or 25:400:x2 or 25:400:50, each of 1 to %d sessions, at most %d steps; "
                   "not \"%s\"",
                   RAMP_SESSIONS_MAX, RAMP_STEPS_MAX, text);
}

static bool add_step(struct ramp_steps *s, int64_t n)
{
    if (n < 1 || n > RAMP_SESSIONS_MAX || s->n == RAMP_STEPS_MAX)
        return false;
    s->sessions[s->n++] = (unsigned)n;
    return true;
}

static bool read_list(struct sv text, struct ramp_steps *out)
{
    struct sv one;
    int64_t n;
    while (sv_split(&text, ',', &one))
        if (!sv_to_i64(sv_trim(one), &n) || !add_step(out, n))
            return false;
    return out->n > 0;
}

/* from:to:xK multiplies, from:to:K and from:to:+K add. */
static bool read_range(struct sv text, struct ramp_steps *out)
{
    struct sv from_text, to_text;
    int64_t from, to;
    double by = 0;
    if (!sv_split(&text, ':', &from_text) || !sv_split(&text, ':', &to_text) || text.n < 1 ||
        !sv_to_i64(from_text, &from) || !sv_to_i64(to_text, &to) || from < 1 || to < from)
        return false;
    bool times = text.p[0] == 'x' || text.p[0] == '*', sign = times || text.p[0] == '+';
    if (!sv_to_f64((struct sv){text.p + sign, text.n - sign}, &by) || by < (times ? 1.01 : 1.0))
        return false;
    double at = (double)from;
    for (unsigned last = 0; at < (double)to;) {
        unsigned n = (unsigned)(at + 0.5);
        if (n > last && n < to && !add_step(out, n))
            return false;
        last = n;
        at = times ? at * by : at + by;
    }
    return add_step(out, to);
}

enum err ramp_parse_steps(const char *text, struct ramp_steps *out, struct errinfo *ei)
{
    struct sv t = sv_of(text);
    bool ok = false;
    out->n = 0;
    if (strchr(text, ':'))
        ok = read_range(t, out);
    else
        ok = read_list(t, out);
    return ok ? ERR_OK : bad_steps(ei, text);
}

/* ---- rates ---- */

#define UPLOAD_BYTES        1048576      /* of a file, where no size is told */
#define FASTEST_BYTES_PER_S 1e15         /* of a link: more is no number that anybody measured */
#define SLOWEST_PER_S       (1.0 / 3600) /* slower is a slip of the pen, and times of sessions would leave their range */

/* Cuts "/s", "/min" or the like off; its seconds, or 0 when none stands there. */
static double cut_unit(struct sv *text)
{
    static const struct {
        const char *unit;
        double seconds;
    } rows[] = {{"/s", 1}, {"/sec", 1}, {"/min", 60}, {"/m", 60}, {"/h", 3600}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (sv_ends(*text, sv_of(rows[i].unit))) {
            text->n -= strlen(rows[i].unit);
            return rows[i].seconds;
        }
    return 0;
}

enum err ramp_parse_rate(const char *text, double *per_s, struct errinfo *ei)
{
    struct sv t = sv_of(text);
    double seconds = cut_unit(&t), n;
    if (!sv_to_f64(t, &n) || n < 0 || n > 1e6 || (n > 0 && n / (seconds > 0 ? seconds : 1) < SLOWEST_PER_S))
        return err_set(
            ei, ERR_USAGE,
            "a rate is written 5/s, 300/min or 900/h, 0 for all at once, and is one an hour at least; not \"%s\"",
            text);
    *per_s = n / (seconds > 0 ? seconds : 1);
    return ERR_OK;
}

enum err ramp_parse_link(const char *text, double *bytes_per_s, struct errinfo *ei)
{
    static const struct {
        const char *unit;
        double bytes;
    } rows[] = {{"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"kB", 1e3},     {"MB", 1e6},
                {"GB", 1e9},   {"kbit", 125},    {"Mbit", 125e3},     {"Gbit", 125e6}, {"B", 1}};
    struct sv t = sv_of(text);
    double n;
    (void)cut_unit(&t);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!sv_ends(t, sv_of(rows[i].unit)))
            continue;
        struct sv number = {t.p, t.n - strlen(rows[i].unit)};
        if (!sv_to_f64(sv_trim(number), &n) || n <= 0 || n * rows[i].bytes > FASTEST_BYTES_PER_S)
            break;
        *bytes_per_s = n * rows[i].bytes;
        return ERR_OK;
    }
    return err_set(ei, ERR_USAGE, "a link is written 110MB/s, 12.5MiB/s or 1Gbit/s; not \"%s\"", text);
}

enum err ramp_parse_work(const char *text, struct ramp_work *out, struct errinfo *ei)
{
    static const struct {
        const char *word;
        enum ramp_session kind;
    } words[] = {{"sign-in", RAMP_SIGN_IN},
                 {"login", RAMP_SIGN_IN},
                 {"apps", RAMP_APPS},
                 {"mix", RAMP_APPS},
                 {"upload", RAMP_UPLOAD}};
    struct sv size = sv_of(text), word;
    *out = (struct ramp_work){.bytes = UPLOAD_BYTES};
    bool named = sv_split(&size, ':', &word), known = false;
    for (size_t i = 0; named && i < ARRAY_LEN(words) && !known; i++) {
        known = sv_eq_cstr(word, words[i].word);
        out->kind = words[i].kind;
    }
    bool sized = strchr(text, ':') != NULL;
    if (known && (!sized || (out->kind == RAMP_UPLOAD && opt_parse_size(size, &out->bytes) == ERR_OK)))
        return ERR_OK;
    return err_set(ei, ERR_USAGE, "--session takes apps, upload:50MiB (any size) or sign-in, not \"%s\"", text);
}

/* ---- arithmetic ---- */

int64_t ramp_due_us(double per_s, unsigned i)
{
    return per_s > 0 ? (int64_t)(i / per_s * 1e6) : 0;
}

struct ramp_measure ramp_expect(const struct ramp_measure *first, unsigned sessions, double link_bytes_per_s,
                                int64_t bytes)
{
    struct ramp_measure x = {.sessions = sessions, .rate = -1, .p95_s = first->p95_s};
    const struct knee_step base = {.sessions = first->sessions, .rate = first->rate};
    if (first->rate >= 0 && first->sessions > 0)
        x.rate = knee_expected(&base, sessions, link_bytes_per_s);
    if (link_bytes_per_s > 0)
        x.p95_s = sessions * (double)bytes / link_bytes_per_s;
    return x;
}
