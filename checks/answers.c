/* Every request was answered. One that ran into its time limit while the server answered others that were sent later,
 * or whose connection was closed in place of an answer, was forgotten by the server: a full account, say, must be told
 * so and not hung up on. A server that was away is not meant: around a time when connections were refused, or event
 * streams broke off, nothing is held against it, and a server that answered nobody has hung as a whole, which the
 * report tells as an outage. */
#include "base/mem.h"
#include "base/sorted.h"
#include "checks/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_US  US_PER_S       /* a server that goes away drops what it works at */
#define AFTER_US   (3 * US_PER_S) /* until somebody tries to connect to it again */
#define BREAKS_US  (US_PER_S / 2) /* streams break off together with the requests */
#define ALIVE_US   (5 * US_PER_S)
#define CUT_OLD_US (10 * US_PER_S) /* what the end of the run cut had waited for longer than that */

#define DETAILS_KEPT 50 /* drive/result/result.h: what is beyond is counted alone */

struct answer {
    int64_t sent_us, told_us;
};
struct judge {
    const struct journal *j;
    struct check_result *r;
    struct answer *answers;    /* by when they were sent */
    int64_t *refused, *broken; /* times of connections that could not be made, of streams that broke off */
    size_t n, n_refused, n_broken;
    uint64_t excused;
};

static int by_sent(const void *a, const void *b)
{
    const struct answer *x = a, *y = b;
    return (x->sent_us > y->sent_us) - (x->sent_us < y->sent_us);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool has_answer(enum outcome o)
{
    return o != OUT_TIMEOUT && o != OUT_TRANSPORT && o != OUT_UNKNOWN && o != OUT_UNFINISHED && o != OUT_LOCAL;
}

static void collect(struct judge *k)
{
    const struct journal *j = k->j;
    k->answers = mem_alloc((j->n + j->n_reads + 1) * sizeof(*k->answers));
    k->refused = mem_alloc((j->n_troubles + 1) * sizeof(*k->refused));
    k->broken = mem_alloc((j->n_notes + 1) * sizeof(*k->broken));
    for (size_t i = 0; i < j->n; i++)
        if (has_answer(j->ops[i].outcome) && j->ops[i].told_us != INT64_MAX)
            k->answers[k->n++] = (struct answer){j->ops[i].sent_us, j->ops[i].told_us};
    for (size_t i = 0; i < j->n_reads; i++)
        k->answers[k->n++] = (struct answer){j->reads[i].sent_us, j->reads[i].told_us};
    for (size_t i = 0; i < j->n_troubles; i++)
        if (j->troubles[i].kind == LEDGER_UNANSWERED && j->troubles[i].how == LEDGER_NO_CONNECTION)
            k->refused[k->n_refused++] = j->troubles[i].to_us;
    for (size_t i = 0; i < j->n_notes; i++)
        if (j->notes[i].op == OP_STREAM && j->notes[i].flags == LEDGER_STREAM_DOWN)
            k->broken[k->n_broken++] = j->notes[i].at_us;
    qsort(k->answers, k->n, sizeof(*k->answers), by_sent);
    qsort(k->refused, k->n_refused, sizeof(*k->refused), by_time);
    qsort(k->broken, k->n_broken, sizeof(*k->broken), by_time);
}

static bool any_within(const int64_t *times, size_t n, int64_t from, int64_t to)
{
    size_t first = sorted_place(&from, times, n, sizeof(*times), by_time);
    return first < n && times[first] <= to;
}

static bool was_away(const struct judge *k, const struct journal_trouble *t)
{
    int64_t breaks_to = t->how == LEDGER_CLOSED ? t->to_us + BREAKS_US : t->to_us - 1;
    return any_within(k->refused, k->n_refused, t->from_us - BEFORE_US, t->to_us + AFTER_US) ||
           any_within(k->broken, k->n_broken, t->from_us - BEFORE_US, breaks_to);
}

/* Somebody who asked at `sent` or later had an answer in [from, to]. */
static bool answered(const struct judge *k, int64_t sent, int64_t from, int64_t to)
{
    const struct answer key = {.sent_us = sent};
    for (size_t i = sorted_place(&key, k->answers, k->n, sizeof(key), by_sent); i < k->n && k->answers[i].sent_us <= to;
         i++)
        if (k->answers[i].told_us >= from && k->answers[i].told_us <= to)
            return true;
    return false;
}

/* While it waited, the server worked: in the second half of the time at least, for those who came later. */
static bool forgotten(const struct judge *k, const struct journal_trouble *t)
{
    int64_t waited = t->to_us - t->from_us;
    if (t->how == LEDGER_CUT && waited < CUT_OLD_US)
        return false;
    return answered(k, t->from_us + 1, t->from_us + waited / 2, t->to_us);
}

/* The file, where the ledger has the request's intent. */
static const char *file_of(const struct judge *k, const struct journal_trouble *t)
{
    for (size_t i = 0; i < k->j->n && k->j->ops[i].sent_us <= t->to_us; i++) {
        const struct journal_op *o = &k->j->ops[i];
        if (o->app == t->app && o->op == t->op && !has_answer(o->outcome) && o->told_us >= t->from_us)
            return o->file_id[0] ? o->file_id : o->parent_id;
    }
    return "";
}

static void report(struct judge *k, const struct journal_trouble *t)
{
    char at[32], email[80] = "";
    const char *file = k->r->wrong < DETAILS_KEPT ? file_of(k, t) : "";
    if (t->login < k->j->n_logins && k->j->emails[t->login])
        snprintf(email, sizeof(email), " as %s", k->j->emails[t->login]);
    check_detail(k->r, "%s of app %" PRIu32 "%s%s%s, %s at %s after %.1f s%s (%s); look for it in the server's log",
                 drive_op_text((enum drive_op)t->op), t->app, email, file[0] ? " of " : "", file,
                 t->how == LEDGER_CLOSED ? "its connection was closed instead of an answer"
                                         : "given up without an answer",
                 journal_time(at, t->wall_us), (double)(t->to_us - t->from_us) / 1e6,
                 t->how == LEDGER_CLOSED ? "" : ", in which the server answered others", t->why);
}

static void judge_one(struct judge *k, const struct journal_trouble *t)
{
    bool held;
    if (t->how == LEDGER_CLOSED)
        held = answered(k, t->from_us - ALIVE_US, t->from_us, t->to_us + ALIVE_US);
    else
        held = forgotten(k, t);
    if (held && !was_away(k, t))
        report(k, t);
    else
        k->excused++;
}

static void run(struct check_ctx *c, struct check_result *r)
{
    struct judge k = {.j = check_journal(c, r), .r = r};
    if (!k.j)
        return;
    collect(&k);
    for (size_t i = 0; i < k.j->n_troubles; i++)
        if (k.j->troubles[i].kind == LEDGER_UNANSWERED && k.j->troubles[i].how != LEDGER_NO_CONNECTION)
            judge_one(&k, &k.j->troubles[i]);
    r->examined = k.n + r->wrong + k.excused;
    check_summary(
        r, "%zu writes and downloads answered, %s forgotten or hung up on, %" PRIu64 " others without an answer%s", k.n,
        COUNTED(r->wrong, "request"), k.excused, k.excused ? " (nobody was answered then, or the run cut them)" : "");
    if (r->examined == 0)
        check_not_run(r, "the run made no request that its ledger records");
    mem_free(k.answers);
    mem_free(k.refused);
    mem_free(k.broken);
}

const struct check check_answers = {"answers", "no request of a run was forgotten or hung up on by a server at work",
                                    run};
