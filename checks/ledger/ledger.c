/* Acknowledged changes: every upload, save, rename, move, trashing, copy and new folder of the run that the server said
 * it did is there, files with the bytes of the last revision, and what got no answer was either done or not, never by
 * half. Everything is read back through the API as the account's own logins: listings for names and places, each
 * written file byte for byte. No database is needed, so it holds for any server. What may be true is fate.c's. */
#include "base/mem.h"
#include "checks/evidence/look.h"
#include "checks/evidence/others.h"
#include "checks/ledger/impl.h"
#include "net/coro.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define READERS 8

static bool is_judged(const struct journal_op *o)
{
    for (size_t i = 0; i < LEDGER_JUDGED; i++)
        if (ledger_judged[i].op == o->op)
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

static void collect(struct judge *k)
{
    char key[CHECK_SPOT_MAX];
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
            map_put(k->touched, sv_of(check_spot(key, o->parent_id, o->old_name[0] ? o->old_name : o->name)), k);
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

size_t ledger_source_changes(const struct judge *k, uint32_t account, const struct journal_op *o, size_t *from)
{
    bool copy = o->op == OP_COPY && o->source_id[0];
    size_t to = *from = copy ? first_of(k, account, o->source_id) : k->n;
    while (to < k->n && k->acts[to].account == account && strcmp(k->acts[to].id, o->source_id) == 0)
        to++;
    return to;
}

static bool source_explains(const struct judge *k, const struct act *a)
{
    size_t i, to = ledger_source_changes(k, a->account, a->o, &i);
    while (i < to && !fate_explains_copy(a->o, k->acts[i].o))
        i++;
    return i < to;
}

/* What it made stands nowhere under its name. Somebody may have renamed, moved or trashed it meanwhile, or its source.
 */
static MAY_YIELD void judge_nameless(struct judge *k, struct act *a)
{
    char key[CHECK_SPOT_MAX], at[32], look[LOOK_MAX];
    const char *folder = fate_folder_of(a->o);
    struct figures *f = &k->figures[a->o->op];
    bool explained = !journal_whole(k->j) || map_get(k->touched, sv_of(check_spot(key, folder, a->o->name))) ||
                     source_explains(k, a);
    if (!explained && journal_acked(a->o) && check_changed_by_others(k->c, check_spot(key, folder, a->o->name))) {
        k->others++;
        explained = true;
    }
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
        else if (ledger_judge_item(k, a, to - from, &why) != ERR_OK)
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
        ledger_report(&k);
        check_note_blind(c, r);
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
