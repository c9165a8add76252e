/* The three steps of bulk: how each is asked for, how one tells from the outside whether it was done (its answer may be
 * lost), and how what was done is verified. */
#include "sim/large/impl.h"

#include <inttypes.h>
#include <string.h>

/* ---- the copy ---- */

static MAY_YIELD void ask_copy(struct bulk *b, struct api_job *job, struct api_result *r)
{
    api_copy(b->app.api, &b->source, 1, b->place, job, r);
}

/* Complete when it holds what its source does. By info first; listings are counted once it stands still, since a source
 * with things in the trash is larger than its copy. */
static MAY_YIELD enum bulk_seen judge_copy(struct bulk *b)
{
    struct api_result r;
    struct bulk_totals made, source, before = b->seen;
    if (!bulk_info(b, b->copy, &made, &r))
        return r.status == 404 ? SEEN_NOT : SEEN_NOTHING;
    b->seen = made;
    if (bulk_same(&made, &b->size))
        return SEEN_DONE;
    if (!bulk_same(&made, &before) || b->counted)
        return SEEN_IN_PART;
    b->counted = true;
    if (!bulk_count(b, b->copy, &made, &r) || !bulk_count(b, b->source, &source, &r))
        return SEEN_NOTHING;
    return bulk_same(&made, &source) ? SEEN_DONE : SEEN_IN_PART;
}

static MAY_YIELD enum bulk_seen look_copy(struct bulk *b)
{
    struct api_result r;
    size_t n;
    if (!bulk_list(b, b->place, &n, b->copy, &r))
        return SEEN_NOTHING;
    return n == 0 ? SEEN_NOT : n == 1 ? judge_copy(b) : SEEN_TWICE;
}

/* storage use against what it should be; both -1 when not known. */
static MAY_YIELD void verify_storage(struct bulk *b, int64_t more, struct api_result *r)
{
    int64_t used = b->conf->alone && b->used >= 0 ? bulk_storage_used(b) : -1;
    int64_t due = drive_sum(b->used, more);
    if (used >= 0 && used != due)
        call_wrong(r, "storage use is %" PRId64 " bytes, %" PRId64 " expected (was anybody else at work?)", used, due);
}

/* Info counts what is in the trash too, a copy leaves it out: only then the listings tell. */
static MAY_YIELD void verify_copy(struct bulk *b, struct api_result *r)
{
    struct bulk_totals made, source;
    struct api_result asked;
    char have[120], want[120];
    size_t n;
    if (!bulk_list(b, b->place, &n, b->copy, &asked)) {
        call_wrong(r, "done, but cannot be looked at: %.100s", asked.reason);
        return;
    }
    if (n != 1) {
        call_wrong(r, n ? "%zu copies were made of one" : "done, but there is no copy", n);
        return;
    }
    if (!b->conf->alone || !bulk_info(b, b->copy, &made, &asked))
        return;
    if (!bulk_same(&made, &b->size)) {
        if (!bulk_count(b, b->source, &source, &asked) || !bulk_count(b, b->copy, &made, &asked))
            return;
        if (!bulk_same(&made, &source)) {
            bool trash = false;
            bulk_in_trash(b, NULL, &trash, &asked);
            call_wrong(r, "the copy %s holds %s, its source %s %s%s", b->copy,
                       bulk_totals_text(have, sizeof(have), &made), b->source,
                       bulk_totals_text(want, sizeof(want), &source),
                       trash && made.files > source.files ? ": deleted files are live again in the copy" : "");
        }
    }
    if (r->outcome == OUT_OK)
        verify_storage(b, made.bytes, r);
    b->size = made;
}

/* ---- the trash, and for good ---- */

static MAY_YIELD void ask_trash(struct bulk *b, struct api_job *job, struct api_result *r)
{
    const char *id = b->copy;
    api_trash(b->app.api, &id, 1, job, r);
}

static MAY_YIELD enum bulk_seen look_trash(struct bulk *b)
{
    struct api_result r;
    char first[DRIVE_ID_MAX + 1];
    size_t n;
    if (!bulk_list(b, b->place, &n, first, &r))
        return SEEN_NOTHING;
    return n ? SEEN_NOT : SEEN_DONE;
}

static MAY_YIELD void verify_trash(struct bulk *b, struct api_result *r)
{
    struct api_result asked;
    bool there;
    if (look_trash(b) == SEEN_NOT)
        call_wrong(r, "done, but the copy is still listed");
    else if (bulk_in_trash(b, b->copy, &there, &asked) && !there)
        call_wrong(r, "done, but the trash does not list the copy");
}

static MAY_YIELD void ask_purge(struct bulk *b, struct api_job *job, struct api_result *r)
{
    const char *id = b->copy;
    api_purge(b->app.api, &id, 1, job, r);
}

static MAY_YIELD enum bulk_seen look_purge(struct bulk *b)
{
    struct api_result r;
    bool there;
    if (!bulk_in_trash(b, b->copy, &there, &r))
        return SEEN_NOTHING;
    return there ? SEEN_NOT : SEEN_DONE;
}

static MAY_YIELD void verify_purge(struct bulk *b, struct api_result *r)
{
    struct api_result asked;
    struct bulk_totals t;
    if (bulk_info(b, b->copy, &t, &asked))
        call_wrong(r, "done, but the copy is still there");
    else
        verify_storage(b, 0, r);
}

/* ---- the table ---- */

const struct bulk_step bulk_steps[BULK_STEPS] = {
    [BULK_COPY] = {.figures = "bulk_copy",
                   .what = "copy",
                   .doing = "bulk: copied",
                   .ask = ask_copy,
                   .look = look_copy,
                   .verify = verify_copy},
    [BULK_TRASH] = {.figures = "bulk_trash",
                    .what = "trash",
                    .doing = "bulk: trashed",
                    .ask = ask_trash,
                    .look = look_trash,
                    .verify = verify_trash},
    [BULK_PURGED] = {.figures = BULK_PURGE_KEY,
                     .what = "delete for good",
                     .doing = "bulk: deleted",
                     .ask = ask_purge,
                     .look = look_purge,
                     .verify = verify_purge},
};
