#include "base/mem.h"
#include "sim/pairs/impl.h"

#include <stdio.h>

static const struct {
    const char *key, *text;
    double pct; /* -1: the mean */
} times[] = {{"min_ms", "min", 0},  {"p50_ms", "p50", 50},  {"p95_ms", "p95", 95},
             {"p99_ms", "p99", 99}, {"max_ms", "max", 100}, {"mean_ms", "mean", -1}};

/* From the first pair's due time to the last one's end: what the server kept up with. Pairs that go on for a while are
 * counted as they begin, the last one's share of time included. */
static double took_us(const struct pairs *p)
{
    return p->conf->exchange_us > 0 ? (double)mono_diff(p->last_begun, p->began) + 1e6 / p->conf->per_s
                                    : (double)mono_diff(p->last, p->began);
}

static double rate_reached(const struct pairs *p)
{
    bool goes_on = p->conf->exchange_us > 0;
    double us = took_us(p);
    return us > 0 ? (double)(goes_on ? p->sent : p->succeeded + p->failed) * 1e6 / us : 0;
}

static void add_figures(struct result *r, const struct pairs *p)
{
    const struct {
        const char *key;
        double value;
        int decimals;
    } rows[] = {
        {"asked_per_second", p->conf->per_s, 2},
        {"per_second", rate_reached(p), 2},
        {"seconds", p->conf->per_s > 0 ? took_us(p) / 1e6 : 0, 3},
        {"sent", (double)p->sent, 0},
        {"succeeded", (double)p->succeeded, 0},
        {"failed", (double)p->failed, 0},
        {"messages", (double)p->messages, 0},
        {"errors", (double)p->errors, 0},
        {"saturated", (double)p->saturated, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        result_figure(r, "pairs", rows[i].key, rows[i].value, rows[i].decimals);
    for (size_t i = 0; i < ARRAY_LEN(times) && hist_count(p->delivery); i++)
        if (times[i].pct < 0)
            result_figure(r, "pairs", times[i].key, hist_mean(p->delivery) / 1e3, 3);
        else
            result_percentile(r, "pairs", times[i].key, p->delivery, times[i].pct, US_PER_MS, 3);
}

void pairs_sample(struct result *r)
{
    const struct pairs_conf conf = {0};
    struct pairs p = {.conf = &conf, .delivery = hist_new()};
    hist_record(p.delivery, 1);
    add_figures(r, &p);
    hist_free(&p.delivery);
}

static void print_times(FILE *out, const char *what, const struct hist *h)
{
    char cell[32];
    fprintf(out, "%-34s", what);
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (times[i].pct < 0 && hist_count(h))
            str_format(cell, sizeof(cell), "%.3f", hist_mean(h) / 1e3);
        else
            hist_cell(h, times[i].pct < 0 ? 0 : times[i].pct, US_PER_MS, 3, cell, sizeof(cell));
        fprintf(out, " %9s", cell);
    }
    fputc('\n', out);
}

static void print_report(const struct pairs *p)
{
    FILE *out = p->conf->out;
    char line[200];
    if (!out)
        return;
    str_format(line, sizeof(line), "pairs: %.2f pairs/s of %.2f asked; %llu sent, %llu succeeded, %llu failed",
               rate_reached(p), p->conf->per_s, (unsigned long long)p->sent, (unsigned long long)p->succeeded,
               (unsigned long long)p->failed);
    fprintf(out, "%s\npairs: %s, %s%s\n", line, COUNTED(p->messages, "message"), COUNTED(p->errors, "error"),
            p->saturated ? "; the worker pool was saturated: pairs began late" : "");
    fprintf(out, "%-34s", "ms");
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        fprintf(out, " %9s", times[i].text);
    fputc('\n', out);
    print_times(out, "delivery: sent to event", p->delivery);
    print_times(out, "message: sent to same bytes read", p->message);
    if (hist_count(p->delivery) && !hist_carries(p->message, 99))
        fprintf(out, "%s\n", HIST_FEW);
    fflush(out);
}

void pairs_report(const struct pairs *p)
{
    print_report(p);
    add_figures(p->w->ctx->result, p);
}
