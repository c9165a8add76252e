/* Edit locks exclude: the time that one app certainly held a file (from the answer that granted it to the request that
 * let it go, or until it lapsed) does not overlap with another's, and nobody's save is taken within it. A lock that was
 * let go is gone; one whose release had no answer lapses by itself: its holder and its end are told. */
#include "base/arena.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "checks/evidence/look.h"
#include "checks/evidence/probe.h"
#include "checks/evidence/told.h"
#include "drive/schema.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_US (120 * US_PER_S) /* as the apps ask for */

struct hold {
    const struct journal_op *lock;
    int64_t from, to;
};

static int by_file_and_time(const void *a, const void *b)
{
    const struct hold *x = a, *y = b;
    int c = strcmp(x->lock->file_id, y->lock->file_id);
    return c ? c : (x->from > y->from) - (x->from < y->from);
}

/* The holder's own request to let go ends what is certain, whatever came of it. */
static void end_hold(struct hold *h, size_t n, const struct journal_op *unlock)
{
    for (size_t i = n; i-- > 0;)
        if (h[i].lock->app == unlock->app && strcmp(h[i].lock->other_id, unlock->other_id) == 0 &&
            strcmp(h[i].lock->file_id, unlock->file_id) == 0) {
            h[i].to = unlock->sent_us < h[i].to ? unlock->sent_us : h[i].to;
            return;
        }
}

static size_t collect(const struct journal *j, struct hold *h)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if (o->op == OP_LOCK && journal_acked(o))
            h[n++] = (struct hold){o, o->told_us, o->sent_us + LEASE_US};
        else if (o->op == OP_UNLOCK)
            end_hold(h, n, o);
    }
    qsort(h, n, sizeof(*h), by_file_and_time);
    return n;
}

static void report(const struct check_ctx *c, struct check_result *r, const struct hold *a, const struct hold *b)
{
    char at[32], bt[32], look[LOOK_MAX];
    check_detail(r,
                 "file %s: app %" PRIu32 " was given lock %s at %s, and app %" PRIu32
                 " lock %s at %s, %.3f s before the first was let go; look: %s",
                 a->lock->file_id, a->lock->app, a->lock->other_id, journal_time(at, a->lock->wall_us), b->lock->app,
                 b->lock->other_id, journal_time(bt, b->lock->wall_us), (double)(a->to - b->from) / 1e6,
                 look_at(c, LOOK_HISTORY, a->lock->file_id, look));
}

/* A save whose request and answer both lie within the hold of another login: a server may let a login's own apps pass.
 */
static void judge_saves(const struct check_ctx *c, const struct hold *h, size_t n, struct check_result *r)
{
    const struct journal *j = c->journal;
    char at[32], look[LOOK_MAX];
    for (size_t i = 0; i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if (o->op != OP_SAVE || !journal_acked(o))
            continue;
        const struct hold first = {.lock = o, .from = INT64_MIN};
        for (size_t k = sorted_place(&first, h, n, sizeof(*h), by_file_and_time);
             k < n && strcmp(h[k].lock->file_id, o->file_id) == 0; k++)
            if (h[k].lock->login != o->login && h[k].from < o->sent_us && o->told_us < h[k].to &&
                strcmp(h[k].lock->other_id, o->other_id) != 0)
                check_detail(r,
                             "file %s: the save of app %" PRIu32 " at %s was accepted while app %" PRIu32
                             " held lock %s; look: %s",
                             o->file_id, o->app, journal_time(at, o->wall_us), h[k].lock->app, h[k].lock->other_id,
                             look_at(c, LOOK_HISTORY, o->file_id, look));
    }
}

/* ---- the probe: one login holds a file, another one asks for it all the same ---- */

static uint32_t other_login(const struct journal *j, uint32_t login)
{
    for (uint32_t i = 0; i < j->n_logins; i++)
        if (i != login && j->emails[i] && journal_account(j, i) == journal_account(j, login))
            return i;
    return UINT32_MAX;
}

/* The other login's save, and its lock, while the file is held: refused both. */
static MAY_YIELD bool save_refused(const struct check_ctx *c, struct check_result *r, const struct probe *p,
                                   struct api *other, const char *lock)
{
    char look[LOOK_MAX];
    struct arena *mem = arena_new(4096);
    struct drive_file f = {0};
    struct api_result res;
    api_replace(other, p->file_id, p->name, NULL, NULL, &p->content, mem, &f, &res);
    if (res.outcome == OUT_OK)
        check_detail(r, "file %s: a save by another login was accepted (%d) while lock %s held the file; look: %s",
                     p->file_id, res.status, lock, look_at(c, LOOK_SAVE, p->file_id, look));
    arena_free(&mem);
    return res.outcome == OUT_CONFLICT;
}

static MAY_YIELD bool lock_refused(const struct check_ctx *c, struct check_result *r, const struct probe *p,
                                   struct api *other, const char *lock)
{
    char look[LOOK_MAX];
    struct api_lock second = {.id = ""};
    struct api_result res;
    api_lock(other, p->file_id, 60, NULL, &second, &res);
    bool refused = res.outcome == OUT_CONFLICT;
    if (res.outcome == OUT_OK) {
        check_detail(r, "file %s: another login was given lock %s while lock %s held the file; look: %s", p->file_id,
                     second.id, lock, look_at(c, LOOK_LOCK, p->file_id, look));
        api_unlock(other, p->file_id, second.id, &res);
    }
    return refused;
}

/* What came of it. */
static MAY_YIELD const char *try_both(const struct check_ctx *c, struct check_result *r, const struct probe *p,
                                      struct api *holder, struct api *other)
{
    struct api_lock lock = {.id = ""};
    struct api_result res;
    uint64_t wrong = r->wrong;
    api_lock(holder, p->file_id, 60, NULL, &lock, &res);
    if (res.outcome != OUT_OK)
        return "; the file for the probe could not be locked";
    bool save = save_refused(c, r, p, other, lock.id), second = lock_refused(c, r, p, other, lock.id);
    api_unlock(holder, p->file_id, lock.id, &res);
    if (r->wrong > wrong)
        return "; the probe found a lock that does not keep others out";
    return save && second ? "; a save and a lock under another login's lock were refused"
                          : "; the probe with another login's lock had no clear answer";
}

/* A login of the run that has another one beside it in its account. */
static uint32_t first_login(const struct journal *j)
{
    for (uint32_t i = 0; i < j->n_logins; i++)
        if (j->emails[i] && other_login(j, i) != UINT32_MAX)
            return i;
    return UINT32_MAX;
}

static MAY_YIELD const char *probe(struct check_ctx *c, const struct journal *j, struct check_result *r)
{
    uint32_t first = c->tree ? first_login(j) : UINT32_MAX;
    struct probe p;
    if (first == UINT32_MAX)
        return "; no probe: it takes the rows and two logins of one account";
    struct api *holder = told_sign_in(c, j->emails[first]), *other = told_sign_in(c, j->emails[other_login(j, first)]);
    const char *result = "; no probe: the logins cannot sign in";
    if (holder && other)
        result = probe_choose(c, holder, OP_LOCK, first, &p) ? try_both(c, r, &p, holder, other)
                                                             : "; no probe: no file that was locked can be read";
    if (holder)
        api_free(&holder);
    if (other)
        api_free(&other);
    return result;
}

/* ---- what is still held ---- */

struct left {
    uint64_t n;     /* held by an app of the run, whose release had no answer, or by others: they lapse by themselves */
    char text[120]; /* the first of them */
};

static const struct journal_op *find_lock(const struct journal *j, enum drive_op op, const char *lock_id)
{
    for (size_t i = 0; j && i < j->n; i++)
        if (j->ops[i].op == op && journal_acked(&j->ops[i]) && strcmp(j->ops[i].other_id, lock_id) == 0)
            return &j->ops[i];
    return NULL;
}

static MAY_YIELD void look_at_left(struct check_ctx *c, const struct journal *j, struct check_result *r, struct left *l)
{
    static const char sql[] =
        "SELECT lock_id, file_id, holder_name, to_char(expires_at AT TIME ZONE 'UTC', 'HH24:MI:SS\"Z\"')"
        " FROM locks WHERE expires_at > clock_timestamp() ORDER BY expires_at LIMIT 200";
    struct pg_result *res = NULL;
    struct errinfo ei;
    char at[32];
    if (!c->pg || !(c->schema & SCHEMA_LOCKS) || pg_run(c->pg, sql, 0, NULL, &res, &ei) != ERR_OK)
        return;
    for (int i = 0; i < pg_rows(res); i++) {
        const char *lock = pg_str(res, i, 0), *file = pg_str(res, i, 1);
        const struct journal_op *gone = find_lock(j, OP_UNLOCK, lock), *taken = find_lock(j, OP_LOCK, lock);
        if (gone)
            check_detail(r,
                         "file %s: app %" PRIu32 " let lock %s go at %s, and it is still held, by %s until %s; look:"
                         " SELECT * FROM locks WHERE file_id = '%s'",
                         file, gone->app, lock, journal_time(at, gone->wall_us), pg_str(res, i, 2), pg_str(res, i, 3),
                         file);
        else if (l->n++ == 0)
            str_format(l->text, sizeof(l->text), "file %s by %s%s until %s", file, pg_str(res, i, 2),
                       taken ? ", an app of the run," : "", pg_str(res, i, 3));
    }
    pg_result_free(&res);
}

/* Rows that no server may have: no run is needed to say so. */
static MAY_YIELD void look_at_broken(struct check_ctx *c, struct check_result *r)
{
    static const char sql[] =
        "SELECT l.file_id, l.lock_id, l.holder_name,"
        " to_char(l.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'),"
        " CASE WHEN to_jsonb(l) ? 'user_id' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id::text ="
        " to_jsonb(l)->>'user_id') THEN 'its holder is no user'"
        " WHEN NOT EXISTS (SELECT 1 FROM files f WHERE f.id = l.file_id) THEN 'there is no such file'"
        " ELSE 'no lock may be asked for that lasts so long' END"
        " FROM locks l WHERE l.expires_at > clock_timestamp() AND (l.expires_at > clock_timestamp() + interval '11 min'"
        " OR to_jsonb(l) ? 'user_id' AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id::text = to_jsonb(l)->>'user_id')"
        " OR NOT EXISTS (SELECT 1 FROM files f WHERE f.id = l.file_id)) ORDER BY 1 LIMIT 200";
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (!c->pg || !(c->schema & SCHEMA_LOCKS) || pg_run(c->pg, sql, 0, NULL, &res, &ei) != ERR_OK)
        return;
    for (int i = 0; i < pg_rows(res); i++)
        check_detail(r, "file %s: lock %s, of %s until %s: %s; look: SELECT * FROM locks WHERE file_id = '%s'",
                     pg_str(res, i, 0), pg_str(res, i, 1), pg_str(res, i, 2), pg_str(res, i, 3), pg_str(res, i, 4),
                     pg_str(res, i, 0));
    pg_result_free(&res);
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    const struct journal *j = check_journal(c, r);
    struct left left = {.n = 0};
    look_at_broken(c, r);
    look_at_left(c, j, r, &left);
    if (!j) {
        if (r->wrong > 0) /* which needs no run */
            check_summary(r, "%" PRIu64 " wrong", r->wrong);
        else if (left.n > 0)
            check_not_run(r, "no run to judge; still held: %s", left.text);
        return;
    }
    struct hold *h = mem_alloc((j->n + 1) * sizeof(*h));
    size_t n = collect(j, h), last = 0;
    for (size_t i = 1; i < n; i++) {
        if (strcmp(h[last].lock->file_id, h[i].lock->file_id) == 0 && h[i].from < h[last].to)
            report(c, r, &h[last], &h[i]);
        if (strcmp(h[last].lock->file_id, h[i].lock->file_id) != 0 || h[i].to > h[last].to)
            last = i;
    }
    judge_saves(c, h, n, r);
    r->examined = n;
    if (n == 0 && r->wrong == 0) {
        check_not_run(r, "the run took no edit locks%s%s", left.n ? "; still held: " : "", left.text);
    } else {
        const char *probed = probe(c, j, r);
        check_summary(r, "%s held, %" PRIu64 " wrong%s%s%s", COUNTED(n, "lock"), r->wrong, probed,
                      left.n ? "; still held: " : "", left.text);
    }
    mem_free(h);
}

const struct check check_locks = {"locks", "nobody held or saved a file that another app had locked", run};
