#include "sim/app/worker.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/api/caps.h"
#include "sim/app/delivery.h"

#include <string.h>

struct sleeper {
    struct done done;
    enum phase until;
    struct sleeper *next, **link;
};

void worker_init(struct worker *w, struct cmd_ctx *ctx, const struct worker_conf *conf)
{
    *w = (struct worker){.ctx = ctx, .loop = ctx->loop, .conf = *conf, .server.caps = API_CAP_ALL};
    sem_init_coro(&w->roster.sign_ins, 4);
    meter_init(&w->meter, &ctx->result->stats);
    w->outer_requests = ctx->requests;
    ctx->requests = w->meter.interval.by_cause;
    mix_default(&w->mix);
    w->run_key = rng_mix64(conf->seed ^ (uint64_t)wall_now().us);
}

void worker_done(struct worker *w)
{
    for (uint32_t i = 0; i < w->roster.n_logins; i++) {
        loop_timer_stop(&w->roster.logins[i].early);
        api_free(&w->roster.logins[i].api);
        mem_free(w->roster.logins[i].email);
    }
    for (uint32_t i = 0; i < w->roster.n_accounts; i++) {
        folders_free(&w->roster.accounts[i].folders);
        delivery_free(&w->roster.accounts[i].delivery);
    }
    MEM_FREE(w->roster.logins);
    MEM_FREE(w->roster.accounts);
    w->ctx->requests = w->outer_requests;
    meter_done(&w->meter);
}

void worker_lane(struct worker *w, void (*fn)(void *arg), void *arg)
{
    w->schedule.lanes++;
    coro_spawn(w->loop, fn, arg);
}

void worker_lane_ended(struct worker *w)
{
    if (--w->schedule.lanes == 0)
        done_set(&w->schedule.wake);
}

int64_t worker_poll_us(const struct worker *w)
{
    return w->conf.poll_us ? w->conf.poll_us : 60 * US_PER_S;
}

bool worker_sleep(struct worker *w, int64_t us, enum phase until)
{
    if (w->schedule.phase >= until)
        return false;
    struct sleeper s = {.until = until, .next = w->schedule.sleepers, .link = &w->schedule.sleepers};
    if (s.next)
        s.next->link = &s.next;
    w->schedule.sleepers = &s;
    bool woken = done_wait_until(w->loop, &s.done, mono_add(mono_now(), us));
    *s.link = s.next;
    if (s.next)
        s.next->link = s.link;
    return !woken;
}

void worker_set_phase(struct worker *w, enum phase phase)
{
    if (phase <= w->schedule.phase)
        return;
    w->schedule.phase = phase;
    for (struct sleeper *s = w->schedule.sleepers; s; s = s->next)
        if (phase >= s->until)
            done_set(&s->done);
    done_set(&w->schedule.wake);
}

void worker_finish(struct worker *w)
{
    worker_set_phase(w, PHASE_DRAIN);
    for (struct mono cut = mono_add(mono_now(), US_PER_S); w->schedule.lanes > 0;)
        if (!done_wait_until(w->loop, &w->schedule.wake, cut) && w->schedule.lanes > 0) {
            worker_set_phase(w, PHASE_CUT);
            api_cancel(NULL);
            httpc_cancel(w->ctx->http, NULL);
            cut = mono_add(mono_now(), US_PER_S);
        }
}

char *worker_fallbacks(const struct worker *w, char *dst, size_t n)
{
    struct buf b = BUF_INIT(n);
    enum err e = buf_append_str(&b, caps_fallbacks(w->server.caps, dst, n));
    if (w->server.no_heartbeat && e == ERR_OK)
        e = buf_appendf(&b, "%sno heartbeat: none is sent", b.len ? "; " : "");
    if (w->server.foreign && e == ERR_OK)
        e = buf_appendf(&b, "%sfiles that seed did not make: downloads are checked by length alone", b.len ? "; " : "");
    str_format(dst, n, "%s", buf_cstr(&b));
    buf_done(&b);
    return dst;
}
