#include "base/percentiles.h"
#include "base/str.h"
#include <math.h>

#define ROWS_MOST 16

uint64_t hist_needs(double pct)
{
    double beyond = pct > 50 ? 100 - pct : pct;
    return beyond > 0 ? (uint64_t)ceil(100 / beyond - 1e-9) : 1;
}

bool hist_carries(const struct hist *h, double pct)
{
    return h && hist_count(h) >= hist_needs(pct);
}

char *hist_cell(const struct hist *h, double pct, int64_t unit_us, int decimals, char *dst, size_t n)
{
    int64_t us = h ? hist_percentile(h, pct) : -1;
    if (us < 0)
        str_format(dst, n, "-");
    else
        str_format(dst, n, "%s%.*f", hist_carries(h, pct) ? "" : "~", decimals, (double)us / (double)unit_us);
    return dst;
}

struct few few_of_count(const char *key, uint64_t samples, double pct)
{
    uint64_t needs = hist_needs(pct);
    return (struct few){.key = key, .samples = samples, .needs = samples < needs ? needs : 0};
}

struct few few_of(const char *key, const struct hist *h, double pct)
{
    return few_of_count(key, h ? hist_count(h) : 0, pct);
}

void few_write(struct jsonw *w, const struct few *of, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!of[i].needs)
            continue;
        if (!any)
            jsonw_object(w, PERCENTILES_FEW);
        any = true;
        jsonw_object(w, of[i].key);
        jsonw_i64(w, "samples", (int64_t)of[i].samples);
        jsonw_i64(w, "needs", (int64_t)of[i].needs);
        jsonw_end_object(w);
    }
    if (any)
        jsonw_end_object(w);
}

void percentiles_write(struct jsonw *w, const struct hist *h, const struct percentile *rows, size_t n)
{
    struct few few[ROWS_MOST];
    for (size_t i = 0; i < n && i < ROWS_MOST; i++) {
        jsonw_measured(w, rows[i].key, hist_percentile_ms(h, rows[i].pct), 3);
        few[i] = few_of(rows[i].key, h, rows[i].pct);
    }
    few_write(w, few, n < ROWS_MOST ? n : ROWS_MOST);
}

bool few_read(const struct json *object, const char *key, uint64_t *samples, uint64_t *needs)
{
    const struct json *few = json_get(json_get(object, PERCENTILES_FEW), key);
    int64_t n = 0, least = 0;
    if (!json_i64(json_get(few, "needs"), &least) || least < 1)
        return false;
    (void)json_i64(json_get(few, "samples"), &n);
    *samples = n > 0 ? (uint64_t)n : 0;
    *needs = (uint64_t)least;
    return true;
}
