#include "checks/evidence/fate.h"

#include <stdio.h>
#include <string.h>

bool fate_unknown(const struct journal_op *o)
{
    return o->outcome == OUT_UNKNOWN || o->outcome == OUT_TIMEOUT;
}

bool fate_makes(const struct journal_op *o)
{
    return o->op == OP_UPLOAD || o->op == OP_COPY || o->op == OP_NEW_FOLDER;
}

const char *fate_folder_of(const struct journal_op *o)
{
    return o->op == OP_COPY ? o->other_id : o->parent_id;
}

bool fate_explains_copy(const struct journal_op *copy, const struct journal_op *o)
{
    bool hides = o->op == OP_TRASH || (o->op == OP_RENAME && strcmp(o->name, copy->name) != 0);
    return hides && journal_maybe(o) && o->sent_us <= copy->told_us;
}

bool fate_is_twin(const char *name, const char *of)
{
    size_t n = 0;
    while (name[n] && name[n] == of[n])
        n++;
    if (!name[n] && !of[n])
        return true;
    while (n > 0 && name[n] != ' ')
        n--;
    size_t digits = strncmp(name + n, " (", 2) == 0 ? strspn(name + n + 2, "0123456789") : 0;
    const char *rest = digits > 0 ? name + n + 2 + digits : "";
    return rest[0] == ')' && strcmp(rest + 1, of + n) == 0;
}

/* o was over when later was sent. */
static bool surely_before(const struct journal_op *o, const struct journal_op *later)
{
    return o->told_us < later->sent_us;
}

/* No acknowledged one of its kind surely came after it. */
static bool may_be_last(const struct fate *f, const struct journal_op *o)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->ops[i]->op == o->op && journal_acked(f->ops[i]) && surely_before(o, f->ops[i]))
            return false;
    return true;
}

static bool any(const struct fate *f, enum drive_op op, bool (*fits)(const struct journal_op *))
{
    for (size_t i = 0; i < f->n; i++)
        if (f->ops[i]->op == op && fits(f->ops[i]))
            return true;
    return false;
}

/* The last one that was acknowledged, of a kind or (OP_COUNT) of any; NULL: none. */
static const struct journal_op *last_acked(const struct fate *f, enum drive_op op)
{
    for (size_t i = f->n; i-- > 0;)
        if (journal_acked(f->ops[i]) && (op == OP_COUNT || f->ops[i]->op == (uint8_t)op))
            return f->ops[i];
    return NULL;
}

/* ---- names and folders ---- */

/* What a rename or move makes of the item, and what it was before. */
static const char *made(const struct journal_op *o)
{
    return o->op == OP_RENAME ? o->name : o->other_id;
}

static const char *before(const struct journal_op *o)
{
    return o->op == OP_RENAME ? o->old_name : o->parent_id;
}

/* Taken names are numbered where an item arrives: by a move into a folder, by a copy. */
static bool same(const struct fate *f, enum drive_op op, const char *a, const char *of)
{
    bool numbered = op == OP_RENAME && (any(f, OP_MOVE, journal_maybe) || any(f, OP_COPY, journal_maybe));
    return numbered ? fate_is_twin(a, of) : strcmp(a, of) == 0;
}

/* A copy is called as its source is when it is made, which the app that asks may not have heard of. */
static bool is_source_name(const struct fate *f, const char *is)
{
    for (size_t i = 0; i < f->n_source_names; i++)
        if (fate_is_twin(is, f->source_names[i]))
            return true;
    return false;
}

/* What the item was called, or where it was, before any rename (move) of the run. True when nothing is known of it. */
static bool was_first(const struct fate *f, enum drive_op op, const char *is)
{
    bool known = false;
    for (size_t i = 0; i < f->n; i++) {
        const struct journal_op *o = f->ops[i];
        const char *was = NULL;
        if (fate_makes(o) && journal_maybe(o))
            was = op == OP_RENAME ? o->name : fate_folder_of(o);
        else if (o->op == op)
            was = before(o);
        known |= was && was[0];
        if (was && was[0] && same(f, op, is, was))
            return true;
    }
    return !known || (op == OP_RENAME && is_source_name(f, is));
}

/* op RENAME: its name may be that; op MOVE: its folder. */
static bool may_be(const struct fate *f, enum drive_op op, const char *is)
{
    bool acked = false;
    for (size_t i = 0; i < f->n; i++) {
        const struct journal_op *o = f->ops[i];
        if (o->op != op || !journal_maybe(o))
            continue;
        acked |= journal_acked(o);
        if (may_be_last(f, o) && same(f, op, is, made(o)))
            return true;
    }
    return !acked && was_first(f, op, is);
}

/* ---- is what is seen possible? ---- */

static bool fault(struct fate_fault *out, const struct journal_op *o, const char *told, const char *told_what,
                  const char *seen, const char *seen_what)
{
    out->op = o;
    snprintf(out->told, sizeof(out->told), "%s%s", told, told_what);
    snprintf(out->seen, sizeof(out->seen), "%s%s", seen, seen_what);
    return false;
}

static bool gone_fits(const struct fate *f, const struct item_seen *seen, struct fate_fault *out)
{
    const struct journal_op *trash = last_acked(f, OP_TRASH), *o = last_acked(f, OP_COUNT);
    if (!seen->has_trash && any(f, OP_TRASH, journal_maybe))
        return true;
    if (trash)
        return fault(out, trash, "in the trash", "", "gone for good", "");
    /* nobody deletes for good in a run; what is asked for without an answer was there before, unless that made it */
    if (!o && f->n > 0 && !fate_makes(f->ops[0]))
        o = f->ops[0];
    return !o || fault(out, o, "there", "", "gone for good", "");
}

static bool trashed_fits(const struct fate *f, struct fate_fault *out)
{
    const struct journal_op *o = last_acked(f, OP_COUNT);
    return !f->whole || !o || any(f, OP_TRASH, journal_maybe) ||
           fault(out, o, "done", "", "in the trash, where no app put it", "");
}

/* The last rename or move of the item, acknowledged rather than not; else what made it. */
static const struct journal_op *claimant(const struct fate *f, enum drive_op op)
{
    const struct journal_op *o = last_acked(f, op);
    for (size_t i = f->n; i-- > 0 && !o;)
        if (f->ops[i]->op == op && journal_maybe(f->ops[i]))
            o = f->ops[i];
    for (size_t i = 0; i < f->n && !o; i++)
        if (fate_makes(f->ops[i]))
            o = f->ops[i];
    return o;
}

static bool live_fits(const struct fate *f, const struct item_seen *seen, struct fate_fault *out)
{
    const struct journal_op *trash = last_acked(f, OP_TRASH), *rename = claimant(f, OP_RENAME),
                            *move = claimant(f, OP_MOVE);
    if (trash)
        return fault(out, trash, "in the trash", "", "still there", "");
    if (seen->listings_tell && seen->listed != 1 && move)
        return fault(out, move, "in folder ", move->op == OP_MOVE ? made(move) : fate_folder_of(move),
                     seen->listed ? "in several folders" : "in no folder's listing", "");
    if (!f->whole)
        return true; /* what is missing may have named or moved it once more */
    if (rename && seen->name && !may_be(f, OP_RENAME, seen->name))
        return fault(out, rename, "called ", rename->name, "called ", seen->name);
    if (move && seen->parent && !may_be(f, OP_MOVE, seen->parent))
        return fault(out, move, "in folder ", move->op == OP_MOVE ? made(move) : fate_folder_of(move), "in folder ",
                     seen->parent);
    return true;
}

bool fate_fits(const struct fate *f, const struct item_seen *seen, struct fate_fault *out)
{
    if (seen->where == ITEM_GONE)
        return gone_fits(f, seen, out);
    return seen->where == ITEM_TRASHED ? trashed_fits(f, out) : live_fits(f, seen, out);
}

/* ---- requests without an answer ---- */

/* Another one of the kind may have come after it. */
static bool may_be_overtaken(const struct fate *f, const struct journal_op *o)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->ops[i] != o && f->ops[i]->op == o->op && journal_maybe(f->ops[i]) && !surely_before(f->ops[i], o))
            return true;
    return !f->whole;
}

static enum fate_end settle_trash(const struct fate *f, const struct item_seen *seen, const struct journal_op *o)
{
    if (seen->where == ITEM_LIVE)
        return FATE_NOT_DONE;
    for (size_t i = 0; i < f->n; i++)
        if (f->ops[i] != o && f->ops[i]->op == OP_TRASH && journal_maybe(f->ops[i]))
            return FATE_OVERTAKEN; /* one of them did it */
    return FATE_DONE;
}

enum fate_end fate_settle(const struct fate *f, const struct item_seen *seen, const struct journal_op *o)
{
    if (o->op == OP_TRASH)
        return settle_trash(f, seen, o);
    if (fate_makes(o))
        return seen->where == ITEM_GONE ? FATE_NOT_DONE : FATE_DONE;
    const char *is = o->op == OP_RENAME ? seen->name : seen->parent;
    if (!is || seen->where == ITEM_GONE)
        return FATE_OVERTAKEN;
    if (same(f, (enum drive_op)o->op, is, made(o)))
        return FATE_DONE;
    return may_be_overtaken(f, o) ? FATE_OVERTAKEN : FATE_NOT_DONE;
}

/* ---- contents ---- */

static bool writes(const struct journal_op *o)
{
    return o->op == OP_UPLOAD || o->op == OP_SAVE;
}

/* v's bytes came after w's: made from its version, or asked for after it was over. */
static bool supersedes(const struct journal_op *v, const struct journal_op *w)
{
    if (v == w || v->op != OP_SAVE || !journal_acked(v))
        return false;
    if (fate_makes(w))
        return true; /* there is nothing to save before it */
    return surely_before(w, v) ||
           (journal_acked(w) && w->version_after[0] && strcmp(w->version_after, v->version_before) == 0);
}

static bool is_superseded(const struct fate *f, const struct journal_op *w)
{
    for (size_t i = 0; i < f->n; i++)
        if (supersedes(f->ops[i], w))
            return true;
    return false;
}

void fate_contents(const struct fate *f, struct fate_contents *out)
{
    *out = (struct fate_contents){.other = !f->whole};
    bool acked = false;
    for (size_t i = f->n; i-- > 0;) {
        const struct journal_op *o = f->ops[i];
        bool copy = o->op == OP_COPY;
        if ((!writes(o) && !copy) || !journal_maybe(o))
            continue;
        out->claimed = true;
        acked |= journal_acked(o);
        if (is_superseded(f, o))
            continue;
        out->other |= copy || out->n == FATE_CONTENTS;
        if (!copy && out->n < FATE_CONTENTS)
            out->of[out->n++] = o;
    }
    out->other |= !acked; /* nothing of the run need have been done: what was there before may be there still */
}
