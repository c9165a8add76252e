/* A seeder that is killed leaves requests under way, and the server may finish them after its successor has asked what
 * is there. Whoever comes second gets " (1)". Such a copy is ours beyond doubt when name, size, time and the key in its
 * bytes are those of the file beside it: then it goes for good, since the plan has one file of that name. */
#include "base/mem.h"
#include "drive/api/api.h"
#include "seed/crew.h"
#include <string.h>

#define POLL_US (50 * US_PER_MS)

static MAY_YIELD bool wait_for_job(struct seeder *s, unsigned account, struct api_job *job)
{
    struct api_result r;
    struct seed_login *l;
    struct arena *mem = arena_new(1024);
    while (job->id[0] && !job->done && (l = seed_login_take(s, account))) {
        enum err err = api_job_poll(l->api, job, mem, &r);
        if (!seed_login_give(s, l, OP_JOB, err, &r) && r.outcome != OUT_OK)
            break;
        if (!job->done)
            coro_sleep_until(s->ctx->loop, mono_add(mono_now(), POLL_US));
    }
    arena_free(&mem);
    return (job->done || !job->id[0]) && !job->failed;
}

static MAY_YIELD bool remove_step(struct seeder *s, unsigned account, const char *id, bool for_good)
{
    struct api_job job = {0};
    struct api_result r = {.outcome = OUT_UNFINISHED};
    struct seed_login *l;
    bool again = true;
    while (again && (l = seed_login_take(s, account))) {
        enum err err = for_good ? api_purge(l->api, &id, 1, &job, &r) : api_trash(l->api, &id, 1, &job, &r);
        again = seed_login_give(s, l, for_good ? OP_PURGE : OP_TRASH, err, &r);
    }
    bool for_good_at_once = for_good && strcmp(r.code, API_CODE_ABSENT) == 0; /* no trash: it is gone already */
    return for_good_at_once || (r.outcome == OUT_OK && wait_for_job(s, account, &job));
}

bool seed_remove(struct seeder *s, unsigned account, const char *id)
{
    return remove_step(s, account, id, false) && remove_step(s, account, id, true);
}

struct twins {
    struct crew crew;
    unsigned account;
};

static MAY_YIELD void judge_twin(struct seeder *s, void *arg, size_t i)
{
    struct twins *twins = arg;
    struct found *f = &s->founds[twins->account];
    const struct found_twin *w = &f->twins[i];
    const struct planned_file *plan = &s->trees[twins->account].files[w->file];
    struct api_result r;
    bool same = w->size == (int64_t)plan->size && (!s->times_kept || w->modified_us == plan->modified_s * US_PER_S);
    if (same && seed_reads_as(s, twins->account, w->id, w->file, true, &r) && seed_remove(s, twins->account, w->id)) {
        s->twins_undone++;
        f->other_files--;
    }
    twins->crew.done++;
}

void seed_remove_twins(struct seeder *s)
{
    for (unsigned a = 0; a < s->n_accounts && !s->stop; a++) {
        size_t n = s->founds[a].n_twins;
        struct twins twins = {.account = a};
        twins.crew =
            (struct crew){.what = "second copies", .units = n, .least = 4, .most = 4, .one = judge_twin, .arg = &twins};
        if (n == 0)
            continue;
        crew_begin(s, &twins.crew);
        crew_run(s, &twins.crew, n);
        crew_end(&twins.crew);
    }
}
