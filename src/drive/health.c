#include "drive/health.h"
#include "base/str.h"
#include "drive/proc.h"

#include <stdio.h>
#include <unistd.h>

#define LAG_LIMIT_US (50 * US_PER_MS)
#define CPU_LIMIT    0.9 /* of one processor: the generator is one thread */
#define IDLE_LEAST   0.05

/* ---- readings ---- */

bool health_parse_cpu(struct sv line, uint64_t *busy, uint64_t *total)
{
    enum { IDLE = 3, IOWAIT = 4, FIELDS = 8 };
    struct sv word;
    uint64_t ticks[FIELDS];
    size_t n = 0;
    if (!sv_split(&line, ' ', &word) || !sv_eq_cstr(word, "cpu"))
        return false;
    while (n < FIELDS && sv_split(&line, ' ', &word))
        if (word.n && !sv_to_u64(sv_trim(word), &ticks[n++]))
            return false;
    if (n < FIELDS)
        return false;
    *total = 0;
    for (size_t i = 0; i < FIELDS; i++)
        *total += ticks[i];
    *busy = *total - ticks[IDLE] - ticks[IOWAIT];
    return true;
}

static void read_machine(struct health *h)
{
    char line[256];
    FILE *f = fopen("/proc/stat", "re");
    h->busy = h->total = 0;
    if (f && fgets(line, sizeof(line), f))
        (void)!health_parse_cpu(sv_trim(sv_of(line)), &h->busy, &h->total);
    if (f)
        fclose(f);
}

int64_t health_rss_bytes(void)
{
    struct proc self;
    int64_t now, peak;
    return proc_of_pid(getpid(), &self) && proc_memory(&self, &now, &peak) ? now : 0;
}

struct generator_summary health_summary(const struct hist *lag)
{
    struct proc self;
    int64_t now, peak = 0;
    if (!proc_of_pid(getpid(), &self) || !proc_memory(&self, &now, &peak))
        peak = 0;
    return (struct generator_summary){.known = true,
                                      .cpu_us = clock_process_cpu_us(),
                                      .lag_p99_us = hist_percentile(lag, 99),
                                      .peak_rss_bytes = peak};
}

/* ---- stretches ---- */

void health_begin(struct health *h)
{
    read_machine(h);
    h->cpu_us = clock_process_cpu_us();
    h->at = mono_now();
}

static struct health_span span(const struct health *from, const struct health *to)
{
    int64_t us = mono_diff(to->at, from->at);
    struct health_span s = {.us = us > 0 ? us : 1, .machine = -1};
    s.own = (double)(to->cpu_us - from->cpu_us) / (double)s.us;
    if (from->total > 0 && to->total > from->total)
        s.machine = (double)(to->busy - from->busy) / (double)(to->total - from->total);
    return s;
}

struct health_span health_since(const struct health *h)
{
    struct health now;
    health_begin(&now);
    return span(h, &now);
}

struct health_span health_lap(struct health *h)
{
    struct health before = *h;
    health_begin(h);
    return span(&before, h);
}

/* ---- the verdict ---- */

bool health_limited(const struct health_span *s, int64_t lag_p99_us, char *why, size_t n)
{
    bool limited = s->own > CPU_LIMIT || lag_p99_us > LAG_LIMIT_US;
    why[0] = '\0';
    if (limited)
        str_format(why, n, "%sloop lag p99 %.1f ms at %.0f %% of a processor",
                   health_crowded(s) ? "no processor time was left on this machine, " : "", (double)lag_p99_us / 1e3,
                   s->own * 100);
    return limited;
}

bool health_crowded(const struct health_span *s)
{
    return s->own <= CPU_LIMIT && s->machine >= 0 && s->machine > 1 - IDLE_LEAST;
}
