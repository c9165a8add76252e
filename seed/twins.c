/* A seeder that is killed leaves requests under way, and the server may finish them after its successor has asked what
 * is there. Whoever comes second gets " (1)". Such a copy is ours beyond doubt when name, size, time and the key in its
 * bytes are those of the file beside it: then it goes for good, since the plan has one file of that name. */
#include "drive/api/job.h"
#include "seed/crew.h"

#define REMOVE_US (600 * US_PER_S) /* of one file: a job that hangs in the server holds no seeder up for ever */

/* The calls of a removal, each by whichever login has a budget for it. */
struct removal {
    struct seeder *s;
    unsigned account;
    struct seed_login *login; /* that makes the call */
};

static MAY_YIELD struct api *begin(void *arg)
{
    struct removal *m = arg;
    m->login = seed_login_take(m->s, m->account);
    return m->login ? m->login->api : NULL;
}

static MAY_YIELD bool again(void *arg, enum drive_op op, const struct api_job *job, const struct api_result *r)
{
    struct removal *m = arg;
    (void)job;
    return seed_login_give(m->s, m->login, op, r);
}

static MAY_YIELD bool sleep_unless_stopped(void *arg, int64_t us)
{
    struct removal *m = arg;
    coro_sleep_until(m->s->ctx->loop, mono_add(mono_now(), us));
    return !m->s->stop;
}

bool seed_remove(struct seeder *s, unsigned account, const char *id)
{
    struct removal m = {.s = s, .account = account};
    const struct job_caller c = {.begin = begin,
                                 .again = again,
                                 .pause = sleep_unless_stopped,
                                 .arg = &m,
                                 .limit_us = REMOVE_US,
                                 .away_us = JOB_AWAY_US};
    char why[200];
    return job_remove(&c, &id, 1, why, sizeof(why));
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
