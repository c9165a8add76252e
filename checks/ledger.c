/* Acknowledged changes: every upload, save, rename, move, trashing, copy and new folder of the run that the server said
 * it did is there, files with the bytes of the last revision, and what got no answer was either done or not, never by
 * half. Everything is read back through the API as the account's own logins: listings for names and places, each
 * written file byte for byte. No database is needed, so it holds for any server. What may be true is fate.c's. */
#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "checks/evidence/look.h"
#include "checks/evidence/others.h"
#include "checks/evidence/places.h"
#include "checks/evidence/readback.h"
#include "net/coro.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define READERS 8

/* What is judged here, in the order of the report. */
static const struct {
    enum drive_op op;
    const char *key, *text;
} kinds[] = {
    {OP_SAVE, "saves", "saves"},
    {OP_UPLOAD, "uploads", "uploads"},
    {OP_RENAME, "renames", "renames"},
    {OP_MOVE, "moves", "moves"},
    {OP_TRASH, "trashes", "trashes"},
    {OP_COPY, "copies", "copies"},
    {OP_NEW_FOLDER, "new_folders", "new folders"},
};
struct figures {
    uint64_t acknowledged, found, unknown, ends[FATE_OVERTAKEN + 1];
};
struct act {
    const struct journal_op *o;
    const char *id; /* "": not told, and not found out */
    uint32_t account;
    enum fate_end end; /* of one without an answer */
};
struct judge {
    struct check_ctx *c;
    struct check_result *r;
    const struct journal *j;
    struct act *acts; /* by account, item, time */
    size_t n, next;
    struct asker *asker;
    struct places *places;
    struct map *made, *touched; /* ids that a request made for certain; "folder/name" that somebody changed later */
    struct figures figures[OP_COUNT];
    uint64_t trashed, read, others; /* items found in the trash; whose bytes were read; that others changed too */
    struct errinfo cannot;          /* why reading back is impossible; code OK: possible */
};

static bool is_judged(const struct journal_op *o)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].op == o->op)
            return journal_maybe(o);
    return false;
}

static int by_item_and_time(const void *a, const void *b)
{
    const struct act *x = a, *y = b;
    if (x->account != y->account)
        return x->account < y->account ? -1 : 1;
    int c = strcmp(x->id, y->id);
    return c ? c : (x->o->seq > y->o->seq) - (x->o->seq < y->o->seq);
}

/* ---- what is to be read ---- */

static char *folder_and_name(char *dst, size_t n, const char *folder, const char *name)
{
    snprintf(dst, n, "%s/%s", folder, name);
    return dst;
}

static void collect(struct judge *k)
{
    char key[DRIVE_ID_MAX + DRIVE_NAME_MAX + 8];
    k->acts = mem_alloc((k->j->n + 1) * sizeof(*k->acts));
    for (size_t i = 0; i < k->j->n; i++) {
        const struct journal_op *o = &k->j->ops[i];
        if (!is_judged(o))
            continue;
        k->acts[k->n++] = (struct act){o, o->file_id, journal_account(k->j, o->login), FATE_OVERTAKEN};
        k->figures[o->op].acknowledged += journal_acked(o);
        k->figures[o->op].unknown += fate_unknown(o);
        if (fate_makes(o) && o->file_id[0])
            map_put(k->made, sv_of(o->file_id), k);
        else if (!fate_makes(o) && o->op != OP_SAVE)
            map_put(k->touched,
                    sv_of(folder_and_name(key, sizeof(key), o->parent_id, o->op == OP_RENAME ? o->old_name : o->name)),
                    k);
    }
}

static void want_places(struct judge *k)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct act *a = &k->acts[i];
        places_want(k->places, a->account, a->id);
        places_want_folder(k->places, a->account, a->o->parent_id);
        if (a->o->op == OP_MOVE || a->o->op == OP_COPY)
            places_want_folder(k->places, a->account, a->o->other_id);
        if (fate_makes(a->o) && !a->id[0])
            places_want_name(k->places, a->account, a->o->name);
    }
}

static MAY_YIELD enum err read_places(struct judge *k, struct errinfo *ei)
{
    uint32_t n_accounts = 1;
    for (size_t i = 0; i < k->n; i++)
        n_accounts = k->acts[i].account >= n_accounts ? k->acts[i].account + 1 : n_accounts;
    uint64_t *requests = mem_zalloc(n_accounts * sizeof(*requests));
    for (size_t i = 0; i < k->n; i++)
        requests[k->acts[i].account] += 2; /* a folder or the item, its bytes */
    enum err e = asker_new(&k->asker, k->c, requests, n_accounts, ei);
    mem_free(requests);
    if (e != ERR_OK)
        return e;
    k->places = places_new(k->c, k->asker);
    want_places(k);
    return places_read(k->places, ei);
}

/* ---- requests that were not told the id of what they made ---- */

static struct place *unclaimed(struct judge *k, const struct act *a, const char *folder)
{
    struct place *at = places_named(k->places, a->account, folder, a->o->name);
    while (at && (at->claimed || !fate_is_twin(at->name, a->o->name) || strcmp(at->id, a->o->source_id) == 0 ||
                  map_get(k->made, sv_of(at->id))))
        at = at->same_name;
    return at;
}

static void find_ids(struct judge *k)
{
    for (size_t i = 0; i < k->n; i++) {
        struct act *a = &k->acts[i];
        if (!fate_makes(a->o) || a->id[0])
            continue;
        struct place *at = unclaimed(k, a, fate_folder_of(a->o));
        at = at ? at : unclaimed(k, a, "");
        if (at) {
            at->claimed = true;
            a->id = at->id;
        }
    }
}

/* The first change of an item in the order of by_item_and_time; k->n: none is behind it. */
static size_t first_of(const struct judge *k, uint32_t account, const char *id)
{
    size_t low = 0, high = k->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct act *a = &k->acts[mid];
        if (a->account < account || (a->account == account && strcmp(a->id, id) < 0))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The changes of a copy's source are [*from, the result). */
static size_t source_changes(const struct judge *k, uint32_t account, const struct journal_op *o, size_t *from)
{
    bool copy = o->op == OP_COPY && o->source_id[0];
    size_t to = *from = copy ? first_of(k, account, o->source_id) : k->n;
    while (to < k->n && k->acts[to].account == account && strcmp(k->acts[to].id, o->source_id) == 0)
        to++;
    return to;
}

static bool source_explains(const struct judge *k, const struct act *a)
{
    size_t i, to = source_changes(k, a->account, a->o, &i);
    while (i < to && !fate_explains_copy(a->o, k->acts[i].o))
        i++;
    return i < to;
}

/* What it made stands nowhere under its name. Somebody may have renamed, moved or trashed it meanwhile, or its source.
 */
static void judge_nameless(struct judge *k, struct act *a)
{
    char key[DRIVE_ID_MAX + DRIVE_NAME_MAX + 8], at[32], look[LOOK_MAX];
    const char *folder = fate_folder_of(a->o);
    struct figures *f = &k->figures[a->o->op];
    bool explained = !journal_whole(k->j) ||
                     map_get(k->touched, sv_of(folder_and_name(key, sizeof(key), folder, a->o->name))) ||
                     source_explains(k, a);
    if (fate_unknown(a->o))
        f->ends[explained ? FATE_OVERTAKEN : FATE_NOT_DONE]++;
    if (!journal_acked(a->o))
        return;
    f->found += explained;
    if (!explained)
        check_detail(k->r, "the %s of app %" PRIu32 " at %s was acknowledged, but no %s stands in folder %s; look: %s",
                     drive_op_text((enum drive_op)a->o->op), a->o->app, journal_time(at, a->o->wall_us), a->o->name,
                     folder, look_at(k->c, LOOK_FOLDER, folder, look));
}

/* ---- one item ---- */

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
    size_t from, to = source_changes(k, account, copy, &from);
    const char **names = arena_alloc(mem, (to - from + 1) * sizeof(*names));
    for (size_t i = from; i < to; i++)
        if (k->acts[i].o->op == OP_RENAME && k->acts[i].o->sent_us <= copy->told_us)
            names[f->n_source_names++] = k->acts[i].o->name;
    f->source_names = names;
}

static MAY_YIELD enum err judge_item(struct judge *k, struct act *acts, size_t n, struct errinfo *ei)
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

/* Each reader takes the next item until none is left. */
static void reader(void *arg)
{
    struct judge *k = arg;
    while (k->next < k->n && k->cannot.code == ERR_OK && *k->c->cmd->interrupts < 2) {
        size_t from = k->next, to = from + 1;
        struct act *a = &k->acts[from];
        struct errinfo why;
        while (a->id[0] && to < k->n && k->acts[to].account == a->account && strcmp(k->acts[to].id, a->id) == 0)
            to++;
        k->next = to;
        if (!a->id[0])
            judge_nameless(k, a);
        else if (judge_item(k, a, to - from, &why) != ERR_OK)
            k->cannot = why;
    }
}

static MAY_YIELD enum err judge_items(struct judge *k, struct errinfo *ei)
{
    struct group readers = {0};
    for (int i = 0; i < READERS; i++)
        group_spawn(k->c->cmd->loop, &readers, reader, k);
    group_wait(k->c->cmd->loop, &readers);
    if (k->cannot.code != ERR_OK)
        *ei = k->cannot;
    return k->cannot.code;
}

/* ---- requests about several items ---- */

static int by_request(const void *a, const void *b)
{
    const struct act *x = *(const struct act *const *)a, *y = *(const struct act *const *)b;
    return (x->o->revision > y->o->revision) - (x->o->revision < y->o->revision);
}

/* A trashing without an answer is of all its items or of none. */
static void judge_halves(struct judge *k)
{
    const struct act **t = mem_alloc((k->n + 1) * sizeof(*t));
    size_t n = 0;
    char at[32], look[LOOK_MAX];
    for (size_t i = 0; i < k->n; i++)
        if (k->acts[i].o->op == OP_TRASH && fate_unknown(k->acts[i].o) && k->acts[i].end != FATE_OVERTAKEN)
            t[n++] = &k->acts[i];
    qsort(t, n, sizeof(*t), by_request);
    for (size_t i = 1; i < n; i++)
        if (t[i]->o->revision == t[i - 1]->o->revision && t[i]->end != t[i - 1]->end)
            check_detail(k->r,
                         "the trash of app %" PRIu32 " at %s got no answer and was done by half: of its items %s is %s"
                         " the trash, %s is %s; look: %s",
                         t[i]->o->app, journal_time(at, t[i]->o->wall_us), t[i - 1]->id,
                         t[i - 1]->end == FATE_DONE ? "in" : "not in", t[i]->id,
                         t[i]->end == FATE_DONE ? "in it" : "not", look_at(k->c, LOOK_HISTORY, t[i]->id, look));
    mem_free(t);
}

/* ---- the figures ---- */

/* ", 3 unknown settled as done"; "" when there were none. */
static char *unknown_text(char *dst, size_t n, const struct figures *f)
{
    static const char *const ends[] = {"as done", "as not done", "hidden by later changes"};
    char count[32];
    int at = 0;
    dst[0] = '\0';
    if (f->unknown == 0)
        return dst;
    at = snprintf(dst, n, ", %s unknown settled", str_thousands(count, sizeof(count), f->unknown));
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (f->ends[i] == f->unknown)
            snprintf(dst + at, n - (size_t)at, " %s", ends[i]);
    if (dst[at])
        return dst;
    const char *sep = ":";
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (f->ends[i] > 0) {
            at += snprintf(dst + at, n - (size_t)at, "%s %s %s", sep, str_thousands(count, sizeof(count), f->ends[i]),
                           ends[i]);
            sep = ",";
        }
    return dst;
}

static void report(struct judge *k)
{
    char a[32], b[32], rest[160], others[100];
    struct figures all = {0};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct figures *f = &k->figures[kinds[i].op];
        all.acknowledged += f->acknowledged;
        all.found += f->found;
        all.unknown += f->unknown;
        for (size_t end = 0; end < ARRAY_LEN(f->ends); end++)
            all.ends[end] += f->ends[end];
        if (f->acknowledged || f->unknown)
            result_check_note(k->r, "%s: %s acknowledged, %s found%s", kinds[i].text,
                              str_thousands(a, sizeof(a), f->acknowledged), str_thousands(b, sizeof(b), f->found),
                              unknown_text(rest, sizeof(rest), f));
    }
    check_summary(k->r, "%s acknowledged, %s found%s; %s looked at, %" PRIu64 " of them in the trash, %s read%s%s",
                  COUNTED(all.acknowledged, "change"), str_thousands(b, sizeof(b), all.found),
                  unknown_text(rest, sizeof(rest), &all), COUNTED(k->r->examined, "item"), k->trashed,
                  COUNTED(k->read, "file"),
                  journal_whole(k->j) ? "" : "; the run was cut short: its last moments are missing",
                  check_others_text(others, sizeof(others), k->others));
}

static void report_json(struct judge *k)
{
    struct buf text = BUF_INIT(1 << 16);
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "records", (int64_t)k->j->end.records);
    jsonw_bool(&w, "whole", journal_whole(k->j));
    jsonw_i64(&w, "items", (int64_t)k->r->examined);
    jsonw_i64(&w, "files_read", (int64_t)k->read);
    jsonw_i64(&w, "items_in_trash", (int64_t)k->trashed);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct figures *f = &k->figures[kinds[i].op];
        jsonw_object(&w, kinds[i].key);
        jsonw_i64(&w, "acknowledged", (int64_t)f->acknowledged);
        jsonw_i64(&w, "found", (int64_t)f->found);
        jsonw_i64(&w, "unknown", (int64_t)f->unknown);
        jsonw_i64(&w, "done", (int64_t)f->ends[FATE_DONE]);
        jsonw_i64(&w, "not_done", (int64_t)f->ends[FATE_NOT_DONE]);
        jsonw_i64(&w, "overtaken", (int64_t)f->ends[FATE_OVERTAKEN]);
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
    result_part(k->c->cmd->result, "ledger", &w);
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    struct judge k = {.c = c, .r = r, .j = check_journal(c, r)};
    struct errinfo ei = {0};
    if (!k.j)
        return;
    k.made = map_new();
    k.touched = map_new();
    collect(&k);
    enum err e = read_places(&k, &ei);
    if (e == ERR_OK) {
        find_ids(&k);
        qsort(k.acts, k.n, sizeof(*k.acts), by_item_and_time);
        e = judge_items(&k, &ei);
    }
    if (e == ERR_OK) {
        judge_halves(&k);
        report(&k);
        report_json(&k);
    } else {
        check_blocked(r, "%s", err_message(&ei));
    }
    places_free(&k.places);
    asker_free(&k.asker);
    map_free(&k.made);
    map_free(&k.touched);
    mem_free(k.acts);
}

const struct check check_ledger = {
    "ledger", "acknowledged changes of a run are there, files byte for byte, and none was done by half", run};
