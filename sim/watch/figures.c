#include "sim/watch/figures.h"
#include "base/json.h"
#include "base/mem.h"

#include <string.h>

#define LINE_WIDTH 110

enum fold { FOLD_MEAN, FOLD_MOST };
static const struct {
    const char *key, *text;
    int decimals;
    enum fold fold;
} figures[WATCH_COUNT] = {
#define X(sym, key, text, decimals, fold) [WATCH_##sym] = {key, text, decimals, FOLD_##fold},
    WATCH_FIGURES(X)
#undef X
};

const char *watch_key(enum watch_figure f)
{
    return figures[f].key;
}

char *watch_amount(enum watch_figure f, double value, char *dst, size_t n)
{
    static const char *const units[] = {" %", " MiB", " ms", " MB/s"};
    struct sv name = sv_of(figures[f].text);
    const char *unit = "";
    for (size_t i = 0; i < ARRAY_LEN(units) && !unit[0]; i++)
        if (sv_ends(name, sv_of(units[i]))) {
            unit = units[i];
            name.n -= strlen(unit);
        }
    str_format(dst, n, SV_FMT " %.*f%s", SV_ARG(name), figures[f].decimals, value, unit);
    return dst;
}

int watch_decimals(enum watch_figure f)
{
    return figures[f].decimals;
}

bool watch_find(struct sv key, enum watch_figure *out)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        if (sv_eq_cstr(key, figures[f].key)) {
            *out = (enum watch_figure)f;
            return true;
        }
    return false;
}

/* ---- folding ---- */

void watch_unknown(struct watch_values *v)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        v->v[f] = WATCH_UNKNOWN;
}

void watch_fold_in(struct watch_fold *k, const struct watch_values *v)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++) {
        if (v->v[f] < 0)
            continue;
        k->most[f] = k->n[f] && k->most[f] > v->v[f] ? k->most[f] : v->v[f];
        k->sum[f] += v->v[f];
        k->n[f]++;
    }
}

void watch_fold_out(const struct watch_fold *k, struct watch_values *out)
{
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        out->v[f] = !k->n[f] ? WATCH_UNKNOWN : figures[f].fold == FOLD_MOST ? k->most[f] : k->sum[f] / (double)k->n[f];
}

/* ---- telling ---- */

char *watch_line(const struct watch_values *v, const char *turn, char *dst, size_t n)
{
    size_t at = 0, begun = 0;
    const char *sep = "";
    char amount[64];
    dst[0] = '\0';
    for (unsigned f = 0; f < WATCH_COUNT && at < n; f++) {
        if (f == WATCH_PROC_CPU && at)
            sep = turn;
        if (v->v[f] < 0)
            continue;
        watch_amount((enum watch_figure)f, v->v[f], amount, sizeof(amount));
        if (sep[0] == ',' && at - begun + strlen(amount) > LINE_WIDTH)
            sep = turn;
        if (sep == turn)
            begun = at;
        str_format(dst + at, n - at, "%s%s", sep, amount);
        at += strlen(dst + at);
        sep = ", ";
    }
    return dst;
}

void watch_json(const struct watch_values *v, const char *key, struct jsonw *w)
{
    jsonw_object(w, key);
    for (unsigned f = 0; f < WATCH_COUNT; f++)
        if (v->v[f] >= 0)
            jsonw_f64(w, figures[f].key, v->v[f], figures[f].decimals + 1);
    jsonw_end_object(w);
}
