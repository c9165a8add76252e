#include "sim/watch/server_watch.h"
#include "base/mem.h"
#include "drive/api/scrape.h"
#include "drive/proc.h"
#include "drive/stack/stack.h"
#include "net/coro.h"

#include <inttypes.h>
#include <stdio.h>

#define SAMPLE_US  (50 * US_PER_MS)
#define METRICS_US (500 * US_PER_MS)
#define FIND_US    US_PER_S

struct server_watch {
    struct cmd_ctx *ctx;
    struct proc proc;      /* pid 0: none */
    bool named;            /* by the user: never looked for again */
    int64_t high;          /* what the kernel held as the highest when we last looked; -1: a new one */
    int64_t lap, whole;    /* -1: no sample yet */
    struct mono find_next; /* when to look for the process again */
    struct timer timer;
    struct done wake;
    struct group group; /* the coroutine that asks /metrics */
    bool stopping;
    char source[40];
};

static void take(struct server_watch *w, int64_t rss, int64_t high)
{
    int64_t seen = rss;
    if (w->high >= 0 && high > w->high)
        seen = high;
    w->high = high;
    if (seen > w->lap)
        w->lap = seen;
    if (seen > w->whole)
        w->whole = seen;
    w->ctx->result->server_peak_rss = w->whole;
}

/* ---- by its process ---- */

static bool find_process(struct server_watch *w, bool first)
{
    struct mono now = mono_now();
    if (w->named || mono_before(now, w->find_next))
        return false;
    w->find_next = mono_add(now, FIND_US);
    if (!stack_find_process(w->ctx->loop, w->ctx->http, w->ctx->target->url, "server", &w->proc)) {
        w->proc.pid = 0;
        return false;
    }
    w->high = first ? -1 : 0; /* started while we watched: all its memory is of this run */
    snprintf(w->source, sizeof(w->source), "process %d", (int)w->proc.pid);
    return true;
}

static void on_sample(struct timer *t)
{
    struct server_watch *w = container_of(t, struct server_watch, timer);
    int64_t rss, high;
    if (w->proc.pid && proc_memory(&w->proc, &rss, &high))
        take(w, rss, high);
    else
        find_process(w, false);
    loop_timer_set(w->ctx->loop, t, mono_add(mono_now(), SAMPLE_US));
}

/* ---- by its /metrics ---- */

/* False: not offered, so that it makes no sense to ask again. */
static MAY_YIELD bool sample_metrics(struct server_watch *w)
{
    struct buf text;
    double rss, high;
    struct errinfo ei;
    enum err e = scrape(w->ctx->http, w->ctx->target->url, 5 * US_PER_S, cmd_counters(w->ctx, CAUSE_WATCH), &text, &ei);
    bool told = e == ERR_OK && scrape_value(buf_cstr(&text), "process_resident_memory_bytes", &rss);
    if (told) {
        if (!scrape_value(buf_cstr(&text), "drive_peak_resident_memory_bytes", &high))
            high = rss;
        if ((int64_t)high < w->high) /* another process */
            w->high = 0;
        snprintf(w->source, sizeof(w->source), "its /metrics");
        take(w, (int64_t)rss, (int64_t)high);
    }
    buf_done(&text);
    return told || (e != ERR_OK && e != ERR_NOTFOUND);
}

static void ask_metrics(void *arg)
{
    struct server_watch *w = arg;
    while (sample_metrics(w) && !w->stopping &&
           !done_wait_until(w->ctx->loop, &w->wake, mono_add(mono_now(), METRICS_US)))
        ;
}

/* ---- life ---- */

enum err server_watch_new(struct server_watch **out, struct cmd_ctx *ctx, int64_t pid, struct errinfo *ei)
{
    struct server_watch *w = mem_zalloc(sizeof(*w));
    *w = (struct server_watch){.ctx = ctx, .named = pid != 0, .high = -1, .lap = -1, .whole = -1};
    w->timer.fn = on_sample;
    if (pid && !proc_of_pid((pid_t)pid, &w->proc)) {
        mem_free(w);
        return err_set(ei, ERR_ENV, "--server-pid: there is no process %" PRId64, pid);
    }
    if (pid)
        snprintf(w->source, sizeof(w->source), "process %" PRId64, pid);
    if (pid || find_process(w, true))
        on_sample(&w->timer);
    else
        group_spawn(ctx->loop, &w->group, ask_metrics, w);
    *out = w;
    return ERR_OK;
}

void server_watch_free(struct server_watch **wp)
{
    struct server_watch *w = *wp;
    if (!w)
        return;
    if (w->timer.heap_index)
        on_sample(&w->timer);
    loop_timer_stop(&w->timer);
    w->stopping = true;
    done_set(&w->wake);
    group_wait(w->ctx->loop, &w->group);
    MEM_FREE(*wp);
}

int64_t server_watch_lap(struct server_watch *w)
{
    if (w->timer.heap_index)
        on_sample(&w->timer);
    int64_t lap = w->lap;
    w->lap = -1;
    return lap;
}

const char *server_watch_source(const struct server_watch *w)
{
    return w->source;
}
