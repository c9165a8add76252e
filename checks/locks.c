/* Edit locks exclude: the time that one app certainly held a file (from the answer that granted it to the request that
 * let it go, or until it lapsed) does not overlap with another's, and nobody's save is taken within it. */
#include "base/arena.h"
#include "base/mem.h"
#include "checks/check.h"
#include "drive/api.h"
#include "drive/content.h"
#include "drive/path.h"

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

static void report(struct check_result *r, const struct hold *a, const struct hold *b)
{
    char at[32], bt[32];
    check_detail(r,
                 "file %s: app %" PRIu32 " was given lock %s at %s, and app %" PRIu32
                 " lock %s at %s, %.3f s before the first was let go",
                 a->lock->file_id, a->lock->app, a->lock->other_id, journal_time(at, a->lock->wall_us), b->lock->app,
                 b->lock->other_id, journal_time(bt, b->lock->wall_us), (double)(a->to - b->from) / 1e6);
}

/* A save whose request and answer both lie within the hold of another login: a server may let a login's own apps pass.
 */
static void judge_saves(const struct journal *j, const struct hold *h, size_t n, struct check_result *r)
{
    char at[32];
    for (size_t i = 0; i < j->n; i++) {
        const struct journal_op *o = &j->ops[i];
        if (o->op != OP_SAVE || !journal_acked(o))
            continue;
        size_t low = 0, high = n;
        while (low < high) { /* the first hold of the file */
            size_t middle = low + (high - low) / 2;
            if (strcmp(h[middle].lock->file_id, o->file_id) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < n && strcmp(h[low].lock->file_id, o->file_id) == 0; low++)
            if (h[low].lock->login != o->login && h[low].from < o->sent_us && o->told_us < h[low].to &&
                strcmp(h[low].lock->other_id, o->other_id) != 0)
                check_detail(r,
                             "file %s: the save of app %" PRIu32 " at %s was taken while app %" PRIu32 " held lock %s",
                             o->file_id, o->app, journal_time(at, o->wall_us), h[low].lock->app, h[low].lock->other_id);
    }
}

/* ---- the probe: one login holds a file, another one saves it all the same ---- */

/* A live file whose content is known, since the run wrote it once only. */
static const struct journal_op *probe_file(struct check_ctx *c, const struct journal *j)
{
    for (size_t i = j->n; i-- > 0;) {
        const struct journal_op *o = &j->ops[i];
        if (o->op != OP_UPLOAD || !journal_acked(o) || !c->tree)
            continue;
        bool touched = false;
        for (size_t k = i + 1; k < j->n && !touched; k++)
            touched = strcmp(j->ops[k].file_id, o->file_id) == 0;
        uint32_t at = tree_find(c->tree, o->file_id);
        if (!touched && at != TREE_NONE && !c->tree->nodes[at].trashed)
            return o;
    }
    return NULL;
}

static uint32_t other_login(const struct journal *j, uint32_t login)
{
    for (uint32_t i = 0; i < j->n_logins; i++)
        if (i != login && j->emails[i] && journal_account(j, i) == journal_account(j, login))
            return i;
    return UINT32_MAX;
}

static MAY_YIELD struct api *sign_in(struct check_ctx *c, const char *email)
{
    const struct target *t = c->cmd->target;
    struct api_conf conf = {.base_url = t->url, .http = c->cmd->http, .app_version = "check"};
    struct api *api = NULL;
    struct api_result r;
    struct errinfo ei;
    if (!email || api_new(&api, &conf, &ei) != ERR_OK)
        return NULL;
    if (api_sign_in(api, email, t->password, &r) != ERR_OK || r.outcome != OUT_OK)
        api_free(&api);
    return api;
}

/* Saves the very bytes that the file holds, so that a server that takes them loses nothing. "" or why not. */
static MAY_YIELD const char *try_save(struct check_result *r, const struct journal_op *o, struct api *holder,
                                      struct api *other)
{
    struct arena *mem = arena_new(4096);
    struct api_lock lock = {.id = ""};
    struct api_result res;
    struct drive_file f = {0};
    struct sv ext = path_extension(sv_of(o->name));
    const struct content content = {o->content_key, o->revision, o->parent_revision, o->size,
                                    arena_strndup(mem, ext.p, ext.n)};
    const char *result = "; the file for the probe could not be locked";
    api_lock(holder, o->file_id, 60, NULL, &lock, &res);
    if (res.outcome == OUT_OK) {
        api_replace(other, o->file_id, o->name, NULL, NULL, &content, mem, &f, &res);
        result = res.outcome == OUT_CONFLICT ? "; a save under another login's lock was refused"
                                             : "; the probe with another login's lock had no clear answer";
        if (res.outcome == OUT_OK) {
            check_detail(r,
                         "file %s: a save by another login was taken (%d) while lock %s held the file; look: POST"
                         " /api/files/%s/replace without X-Lock-Id",
                         o->file_id, res.status, lock.id, o->file_id);
            result = "; a save under another login's lock was taken";
        }
        api_unlock(holder, o->file_id, lock.id, &res);
    }
    arena_free(&mem);
    return result;
}

static MAY_YIELD const char *probe(struct check_ctx *c, const struct journal *j, struct check_result *r)
{
    const struct journal_op *o = probe_file(c, j);
    uint32_t second = o ? other_login(j, o->login) : UINT32_MAX;
    if (second == UINT32_MAX)
        return "; no probe: it takes a file uploaded by the run and a second login";
    struct api *holder = sign_in(c, j->emails[o->login]), *other = sign_in(c, j->emails[second]);
    const char *result = holder && other ? try_save(r, o, holder, other) : "; no probe: the logins cannot sign in";
    if (holder)
        api_free(&holder);
    if (other)
        api_free(&other);
    return result;
}

static void run(struct check_ctx *c, struct check_result *r)
{
    const struct journal *j = check_journal(c, r);
    if (!j)
        return;
    struct hold *h = mem_alloc((j->n + 1) * sizeof(*h));
    size_t n = collect(j, h), last = 0;
    for (size_t i = 1; i < n; i++) {
        if (strcmp(h[last].lock->file_id, h[i].lock->file_id) == 0 && h[i].from < h[last].to)
            report(r, &h[last], &h[i]);
        if (strcmp(h[last].lock->file_id, h[i].lock->file_id) != 0 || h[i].to > h[last].to)
            last = i;
    }
    judge_saves(j, h, n, r);
    r->examined = n;
    if (n == 0) {
        check_not_run(r, "the run took no edit locks");
    } else {
        const char *probed = probe(c, j, r);
        check_summary(r, "%zu locks held, %" PRIu64 " wrong%s", n, r->wrong, probed);
    }
    mem_free(h);
}

const struct check check_locks = {"locks", "nobody held or saved a file that another app had locked", run};
