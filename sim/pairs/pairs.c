/* A pool of couples takes pairs from a queue, which fills at the rate that was asked for. */
#include "base/log.h"
#include "base/mem.h"
#include "sim/pairs/impl.h"

#include <math.h>
#include <stdio.h>

#define TICK_US (100 * US_PER_MS)

/* ---- arithmetic ---- */

unsigned pairs_workers(const struct pairs_conf *c)
{
    double want = ceil(2 * c->per_s + c->per_s * (double)c->exchange_us / 1e6);
    return want < 1 ? 1 : want > (double)c->total ? (unsigned)c->total : (unsigned)want;
}

unsigned pairs_queue(const struct pairs_conf *c)
{
    double want = ceil(4 * c->per_s);
    return want < 1 ? 1 : (unsigned)want;
}

int64_t pairs_due_us(const struct pairs_conf *c, uint64_t i)
{
    double ramp = (double)c->ramp_us / 1e6, in_ramp = c->per_s * ramp / 2;
    double s = (double)i < in_ramp ? sqrt(2 * ramp * (double)i / c->per_s) : ramp + ((double)i - in_ramp) / c->per_s;
    return (int64_t)(s * 1e6);
}

/* ---- queue and workers ---- */

/* False: there are no more. */
static MAY_YIELD bool take_pair(struct pairs *p, struct due_pair *out)
{
    sem_take(p->w->loop, &p->ready, 1);
    if (!p->held || worker_draining(p->w))
        return false;
    *out = p->queue[p->head];
    p->head = (p->head + 1) % p->conf->queue;
    p->held--;
    sem_give(&p->room, 1);
    return true;
}

static void couple_lane(void *arg)
{
    struct couple *c = arg;
    struct due_pair pair;
    while (take_pair(c->p, &pair))
        pairs_exchange(c, &pair);
}

/* A full queue holds the pairs up: they are then late, which their time from due shows, and the report says why. */
static MAY_YIELD void wait_for_room(struct pairs *p)
{
    if (sem_take_until(p->w->loop, &p->room, 1, mono_now()))
        return;
    if (!p->saturated++)
        LOGW("pairs", "worker pool saturated: all %s are at work and %s wait: more --workers, or fewer pairs a second",
             COUNTED(p->conf->workers, "worker"), COUNTED(p->conf->queue, "pair"));
    while (!worker_draining(p->w) && !sem_take_until(p->w->loop, &p->room, 1, mono_add(mono_now(), TICK_US)))
        continue;
}

static void dispatch(void *arg)
{
    struct pairs *p = arg;
    for (uint64_t i = 0; i < p->conf->total && !worker_draining(p->w); i++) {
        struct mono due = mono_add(p->began, pairs_due_us(p->conf, i));
        if (!worker_sleep(p->w, mono_diff(due, mono_now()), PHASE_DRAIN))
            break;
        wait_for_room(p);
        p->queue[(p->head + p->held++) % p->conf->queue] = (struct due_pair){i, due};
        sem_give(&p->ready, 1);
    }
    sem_give(&p->ready, p->conf->workers);
}

static MAY_YIELD void run_all(struct pairs *p)
{
    struct worker *w = p->w;
    struct group group = {0};
    struct progress *progress = progress_new(p->conf->out, p->conf->tty, "pairs", p->conf->total);
    p->began = p->last = mono_now();
    for (unsigned i = 0; i < p->n; i++)
        group_spawn(w->loop, &group, couple_lane, &p->couples[i]);
    group_spawn(w->loop, &group, dispatch, p);
    while (group.running > 0 && worker_sleep(w, TICK_US, PHASE_DRAIN)) {
        progress_set(progress, p->succeeded + p->failed, NULL);
        if (p->conf->duration_us && mono_diff(mono_now(), p->began) >= p->conf->duration_us)
            worker_set_phase(w, PHASE_DRAIN);
    }
    group_wait(w->loop, &group);
    progress_set(progress, p->succeeded + p->failed, NULL);
    progress_free(&progress);
}

/* ---- before and after ---- */

/* Pairs that go on at the same time hold a stream each, and a login has so many. */
static enum err enough_logins(const struct pairs *p, struct errinfo *ei)
{
    const struct pairs_conf *c = p->conf;
    double at_once = c->per_s * (double)c->exchange_us / 1e6;
    if (at_once > (double)c->total)
        at_once = (double)c->total;
    unsigned needed = (unsigned)ceil(at_once / DRIVE_STREAMS_PER_LOGIN);
    if (!(p->w->server.caps & API_CAP_EVENTS))
        return err_set(ei, ERR_ENV, "this server has no event stream: pairs cannot tell each other anything");
    if (needed <= p->w->roster.n_logins)
        return ERR_OK;
    return err_set(
        ei, ERR_ENV,
        "%.0f pairs go on at once, and the %s there are may hold %d event streams each: %u sub-users would do: "
        "sim seed %u SCALE adds them",
        ceil(at_once), COUNTED(p->w->roster.n_logins, "login"), DRIVE_STREAMS_PER_LOGIN, needed - 1, needed - 1);
}

/* The receiver is another login of the sender's account where there is one. */
static struct login *partner_of(const struct worker *w, const struct login *l)
{
    for (uint32_t i = 1; i < w->roster.n_logins; i++) {
        struct login *other = &w->roster.logins[(l->index + i) % w->roster.n_logins];
        if (other->account == l->account)
            return other;
    }
    return &w->roster.logins[l->index];
}

static enum err make_couples(struct pairs *p, struct errinfo *ei)
{
    struct worker *w = p->w;
    p->couples = mem_zalloc(p->conf->workers * sizeof(*p->couples));
    for (; p->n < p->conf->workers; p->n++) {
        struct couple *c = &p->couples[p->n];
        enum err e = app_init_bare(&c->sender, w, p->n, p->conf->timeout_us, ei);
        if (e == ERR_OK &&
            (e = app_init_bare(&c->receiver, w, p->conf->workers + p->n, p->conf->timeout_us, ei)) != ERR_OK)
            app_done(&c->sender);
        if (e != ERR_OK)
            return e;
        c->receiver.login = partner_of(w, c->sender.login);
        c->p = p;
    }
    return ERR_OK;
}

static MAY_YIELD enum err prepare(struct pairs *p, struct errinfo *ei)
{
    struct worker *w = p->w;
    run_folders_init(&p->folders, w, "Pairs");
    p->streams = mem_zalloc(w->roster.n_logins * sizeof(*p->streams));
    p->queue = mem_zalloc(p->conf->queue * sizeof(*p->queue));
    p->delivery = hist_new();
    p->message = hist_new();
    sem_init_coro(&p->ready, 0);
    sem_init_coro(&p->room, p->conf->queue);
    for (uint32_t i = 0; i < w->roster.n_logins; i++)
        sem_init_coro(&p->streams[i], DRIVE_STREAMS_PER_LOGIN);
    enum err e = enough_logins(p, ei);
    if (e == ERR_OK)
        e = make_couples(p, ei);
    for (unsigned i = 0; i < p->n && e == ERR_OK; i++)
        e = run_folders_make(&p->folders, &p->couples[i].sender, ei);
    return e;
}

static void release(struct pairs *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        app_done(&p->couples[i].sender);
        app_done(&p->couples[i].receiver);
    }
    hist_free(&p->delivery);
    hist_free(&p->message);
    mem_free(p->couples);
    run_folders_done(&p->folders);
    mem_free(p->streams);
    mem_free(p->queue);
}

enum err pairs_run(struct worker *w, const struct pairs_conf *conf, struct errinfo *ei)
{
    struct pairs p = {.conf = conf, .w = w};
    enum err e = prepare(&p, ei);
    if (e == ERR_OK) {
        run_all(&p);
        pairs_report(&p);
    }
    run_folders_remove(&p.folders, "pairs");
    release(&p);
    return e;
}
