/* One item of a run, a file or folder: whether what is seen of it can be, after all that the apps were told. What may
 * be true is fate.c's. */
#include "base/arena.h"
#include "checks/evidence/look.h"
#include "checks/evidence/others.h"
#include "checks/evidence/readback.h"
#include "checks/ledger/impl.h"

#include <inttypes.h>
#include <string.h>

struct item {
    struct fate fate;
    struct fate_contents contents;
    struct item_seen seen;
    const char *id;
    uint32_t account;
    const struct journal_op *bad;     /* the one whose word does not hold */
    const struct journal_op *content; /* the write whose bytes it has; NULL: another one's */
    bool content_known;
};

/* What does not fit proves nothing where somebody else was at work too. */
static MAY_YIELD bool not_ours_alone(struct judge *k, const struct item *it)
{
    bool shared = check_changed_by_others(k->c, it->id);
    k->others += shared;
    return shared;
}

static MAY_YIELD void complain(struct judge *k, struct item *it, const struct journal_op *o, const char *told,
                               const char *seen)
{
    char at[32], look[LOOK_MAX];
    it->bad = o;
    if (not_ours_alone(k, it))
        return;
    if (journal_acked(o))
        check_detail(k->r, "%s %s: app %" PRIu32 " was told at %s that it is %s, but it is %s; look: %s",
                     o->op == OP_NEW_FOLDER ? "folder" : "file", it->id, o->app, journal_time(at, o->wall_us), told,
                     seen, look_at(k->c, LOOK_INFO, it->id, look));
    else
        check_detail(k->r,
                     "%s %s: the %s of app %" PRIu32 " at %s got no answer, and it is neither done nor not done: it is"
                     " %s; look: %s",
                     o->op == OP_NEW_FOLDER ? "folder" : "file", it->id, drive_op_text((enum drive_op)o->op), o->app,
                     journal_time(at, o->wall_us), seen, look_at(k->c, LOOK_INFO, it->id, look));
}

/* The write to be named when the bytes are none that may be there: the last that was acknowledged. */
static const struct journal_op *writer_of(const struct item *it)
{
    const struct journal_op *last = NULL;
    for (size_t i = it->fate.n; i-- > 0;) {
        const struct journal_op *o = it->fate.ops[i];
        if (o->op != OP_UPLOAD && o->op != OP_SAVE && o->op != OP_COPY)
            continue;
        if (journal_acked(o))
            return o;
        last = last ? last : o;
    }
    return last;
}

static MAY_YIELD void complain_bytes(struct judge *k, struct item *it, const char *why)
{
    const struct journal_op *o = writer_of(it);
    char at[32], look[LOOK_MAX];
    it->bad = o;
    if (not_ours_alone(k, it))
        return;
    if (!journal_acked(o))
        check_detail(k->r,
                     "file %s: the %s of app %" PRIu32
                     " at %s got no answer, and the content is neither the old one nor"
                     " the new one: %s; look: %s",
                     it->id, drive_op_text((enum drive_op)o->op), o->app, journal_time(at, o->wall_us), why,
                     look_at(k->c, LOOK_CONTENT, it->id, look));
    else if (o->op == OP_COPY)
        check_detail(k->r, "file %s: app %" PRIu32 " was told at %s that it is a copy of file %s, but %s; look: %s",
                     it->id, o->app, journal_time(at, o->wall_us), o->source_id, why,
                     look_at(k->c, LOOK_CONTENT, it->id, look));
    else
        check_detail(k->r,
                     "file %s: app %" PRIu32 " was told at %s that revision %" PRIu64 " of %" PRIu64
                     " bytes is saved, but %s; look: %s",
                     it->id, o->app, journal_time(at, o->wall_us), o->revision, o->size, why,
                     look_at(k->c, LOOK_CONTENT, it->id, look));
}

/* A revision that was acknowledged and then replaced by an acknowledged one: not even lost records explain it. */
static bool is_outdated(const struct item *it, uint64_t revision)
{
    for (size_t i = 0; i < it->contents.n; i++)
        if (it->contents.of[i]->revision == revision)
            return false;
    for (size_t i = 0; i < it->fate.n; i++)
        if (it->fate.ops[i]->op == OP_SAVE && journal_acked(it->fate.ops[i]) && it->fate.ops[i]->revision == revision)
            return true;
    return false;
}

static MAY_YIELD enum err judge_bytes(struct judge *k, struct item *it, struct errinfo *ei)
{
    struct readback rb;
    enum err e = readback(k->asker, it->account, it->id, it->seen.name, &it->contents, &rb, ei);
    if (e != ERR_OK)
        return e;
    k->read++;
    bool fits = rb.verdict == READ_MATCHES || (rb.verdict == READ_OTHER && it->contents.other) ||
                (rb.verdict == READ_UNKNOWN && it->contents.other && k->j->foreign);
    if (!fits || (rb.verdict == READ_OTHER && is_outdated(it, rb.revision))) {
        complain_bytes(k, it, rb.why);
        return ERR_OK;
    }
    it->content = rb.which;
    it->content_known = true;
    return ERR_OK;
}

/* What lies in the trash cannot be read, but its size is shown. */
static MAY_YIELD void judge_size(struct judge *k, struct item *it)
{
    char why[80];
    size_t fit = 0;
    for (size_t i = 0; i < it->contents.n; i++)
        if ((int64_t)it->contents.of[i]->size == it->seen.size) {
            it->content = it->contents.of[i];
            fit++;
        }
    it->content_known = fit == 1 || (fit == 0 && it->contents.other);
    if (fit > 0 || it->contents.other)
        return;
    snprintf(why, sizeof(why), "%" PRId64 " bytes lie in the trash", it->seen.size);
    complain_bytes(k, it, why);
}

/* A save without an answer, by the bytes that are there. */
static enum fate_end settle_save(const struct item *it, const struct journal_op *o)
{
    const struct journal_op *is = it->content;
    if (!it->content_known)
        return FATE_OVERTAKEN;
    if (is == o)
        return FATE_DONE;
    bool later = is && is->sent_us > o->sent_us;
    bool from_the_same = is && o->version_before[0] && strcmp(is->version_before, o->version_before) == 0;
    return later && !from_the_same ? FATE_OVERTAKEN : FATE_NOT_DONE;
}

static void count(struct judge *k, struct item *it, struct act *acts)
{
    k->r->examined++;
    k->trashed += it->seen.where == ITEM_TRASHED;
    for (size_t i = 0; i < it->fate.n; i++) {
        const struct journal_op *o = it->fate.ops[i];
        struct figures *f = &k->figures[o->op];
        f->found += journal_acked(o) && o != it->bad;
        if (!fate_unknown(o))
            continue;
        acts[i].end = o->op == OP_SAVE ? settle_save(it, o) : fate_settle(&it->fate, &it->seen, o);
        f->ends[acts[i].end] += o != it->bad;
    }
}

static const char *last_folder(const struct fate *f)
{
    for (size_t i = f->n; i-- > 0;) {
        const struct journal_op *o = f->ops[i];
        const char *folder = o->op == OP_MOVE && journal_acked(o) ? o->other_id : fate_folder_of(o);
        if (folder[0] && (o->op != OP_COPY || journal_acked(o)))
            return folder;
    }
    return "";
}

static void find_source_names(const struct judge *k, struct fate *f, uint32_t account, struct arena *mem)
{
    const struct journal_op *copy = f->ops[0];
    size_t from, to = ledger_source_changes(k, account, copy, &from);
    const char **names = arena_alloc(mem, (to - from + 1) * sizeof(*names));
    for (size_t i = from; i < to; i++)
        if (k->acts[i].o->op == OP_RENAME && k->acts[i].o->sent_us <= copy->told_us)
            names[f->n_source_names++] = k->acts[i].o->name;
    f->source_names = names;
}

enum err ledger_judge_item(struct judge *k, struct act *acts, size_t n, struct errinfo *ei)
{
    struct arena *mem = arena_new(1024);
    const struct journal_op **ops = arena_alloc(mem, n * sizeof(*ops));
    for (size_t i = 0; i < n; i++)
        ops[i] = acts[i].o;
    struct item it = {
        .fate = {.ops = ops, .n = n, .whole = journal_whole(k->j)}, .id = acts->id, .account = acts->account};
    struct fate_fault fault;
    fate_contents(&it.fate, &it.contents);
    find_source_names(k, &it.fate, it.account, mem);
    enum err e = places_see(k->places, it.account, it.id, last_folder(&it.fate), mem, &it.seen, ei);
    if (e == ERR_OK && !fate_fits(&it.fate, &it.seen, &fault))
        complain(k, &it, fault.op, fault.told, fault.seen);
    else if (e == ERR_OK && it.contents.claimed && it.seen.where == ITEM_LIVE)
        e = judge_bytes(k, &it, ei);
    else if (e == ERR_OK && it.contents.claimed && it.seen.where == ITEM_TRASHED && it.seen.size >= 0)
        judge_size(k, &it);
    if (e == ERR_OK)
        count(k, &it, acts);
    arena_free(&mem);
    return e;
}
