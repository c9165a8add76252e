#include "checks/evidence/places.h"
#include "base/map.h"
#include "base/mem.h"
#include "drive/path.h"
#include "net/coro.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READERS       8
#define KEY_MAX       (2 * DRIVE_ID_MAX + DRIVE_NAME_MAX + 32)
#define LISTING_BLOCK (16u << 10)

struct folder {
    uint32_t account;
    const char *id;
    bool absent; /* the server knows it no more: trashed, with what is in it */
};
struct places {
    struct check_ctx *c;
    struct asker *asker;
    struct arena *mem;
    struct map *ids;     /* "account/id": the place, or wanted_id as long as it was not seen */
    struct map *names;   /* "account/folder/base name": the first of a chain */
    struct map *bases;   /* "account/base name": wanted */
    struct map *folders; /* "account/id": its place in list, + 1 */
    struct folder *list;
    size_t n, cap, next;
    bool *accounts; /* by number: something of it is wanted */
    uint32_t n_accounts;
    bool trash_told; /* every trash could be read */
    struct errinfo cannot;
};

static struct place wanted_id; /* only its address counts */

/* "a (2) (1).pdf" becomes "a.pdf": one key for all twins of a name. */
static void base_name(char dst[DRIVE_NAME_MAX + 1], const char *name)
{
    struct sv ext = path_extension(sv_of(name));
    size_t n = strlen(name), tail = ext.n ? ext.n + 1 : 0, stem = n - tail;
    while (stem > 3 && name[stem - 1] == ')') {
        size_t at = stem - 1;
        while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
            at--;
        if (at == stem - 1 || at < 3 || name[at - 1] != '(' || name[at - 2] != ' ')
            break;
        stem = at - 2;
    }
    snprintf(dst, DRIVE_NAME_MAX + 1, "%.*s%s", (int)stem, name, name + n - tail);
}

static struct sv key_of(char dst[KEY_MAX], uint32_t account, const char *a, const char *b)
{
    int n = snprintf(dst, KEY_MAX, "%" PRIu32 "/%s%s%s", account, a, b ? "/" : "", b ? b : "");
    return (struct sv){dst, n < KEY_MAX ? (size_t)n : KEY_MAX - 1};
}

struct places *places_new(struct check_ctx *c, struct asker *a)
{
    struct places *p = mem_zalloc(sizeof(*p));
    p->c = c;
    p->asker = a;
    p->mem = arena_new(1 << 16);
    p->ids = map_new();
    p->names = map_new();
    p->bases = map_new();
    p->folders = map_new();
    for (size_t i = 0; i < c->journal->n_logins; i++)
        if (c->journal->account_of[i] >= p->n_accounts)
            p->n_accounts = c->journal->account_of[i] + 1;
    p->accounts = mem_zalloc((p->n_accounts + 1) * sizeof(*p->accounts));
    p->trash_told = true;
    return p;
}

void places_free(struct places **pp)
{
    struct places *p = *pp;
    if (!p)
        return;
    map_free(&p->ids);
    map_free(&p->names);
    map_free(&p->bases);
    map_free(&p->folders);
    arena_free(&p->mem);
    mem_free(p->list);
    mem_free(p->accounts);
    MEM_FREE(*pp);
}

void places_want(struct places *p, uint32_t account, const char *id)
{
    char key[KEY_MAX];
    if (account < p->n_accounts)
        p->accounts[account] = true;
    if (id[0] && !map_get(p->ids, key_of(key, account, id, NULL)))
        map_put(p->ids, key_of(key, account, id, NULL), &wanted_id);
}

void places_want_name(struct places *p, uint32_t account, const char *name)
{
    char key[KEY_MAX], base[DRIVE_NAME_MAX + 1];
    base_name(base, name);
    map_put(p->bases, key_of(key, account, base, NULL), p);
}

void places_want_folder(struct places *p, uint32_t account, const char *id)
{
    char key[KEY_MAX];
    struct sv k = key_of(key, account, id, NULL);
    if (!id[0] || map_get(p->folders, k))
        return;
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 64;
        p->list = mem_realloc_array(p->list, p->cap, sizeof(*p->list));
    }
    p->list[p->n++] = (struct folder){.account = account, .id = id};
    map_put(p->folders, k, (void *)(uintptr_t)p->n);
    places_want(p, account, id); /* it may be in the trash itself */
}

static struct folder *folder_of(const struct places *p, uint32_t account, const char *id)
{
    char key[KEY_MAX];
    uintptr_t at = (uintptr_t)map_get(p->folders, key_of(key, account, id, NULL));
    return at ? &p->list[at - 1] : NULL;
}

/* ---- what the listings show ---- */

static struct place *new_place(struct places *p, uint32_t account, const struct drive_file *f, const char *folder)
{
    char key[KEY_MAX], base[DRIVE_NAME_MAX + 1];
    struct place *at = arena_alloc(p->mem, sizeof(*at));
    *at = (struct place){.id = arena_strdup(p->mem, f->id),
                         .name = arena_strdup(p->mem, f->name),
                         .parent = folder[0] ? arena_strdup(p->mem, folder) : NULL,
                         .size = f->size};
    map_put(p->ids, key_of(key, account, f->id, NULL), at);
    base_name(base, f->name);
    struct sv k = key_of(key, account, folder, base);
    at->same_name = map_get(p->names, k);
    map_put(p->names, k, at);
    return at;
}

static void keep_wanted(struct places *p, uint32_t account, const struct drive_listing *l, const char *folder)
{
    char key[KEY_MAX], base[DRIVE_NAME_MAX + 1];
    for (size_t i = 0; i < l->n; i++) {
        const struct drive_file *f = &l->items[i];
        struct place *at = map_get(p->ids, key_of(key, account, f->id, NULL));
        base_name(base, f->name);
        if (!at && !map_get(p->bases, key_of(key, account, base, NULL)))
            continue;
        if (!at || at == &wanted_id)
            at = new_place(p, account, f, folder);
        if (!folder[0]) {
            at->trashed = true;
        } else if (at->listed == 0 || strcmp(at->parent, folder) != 0) { /* a folder may be read twice */
            at->parent = at->listed ? at->parent : arena_strdup(p->mem, folder);
            at->listed++;
        }
    }
}

/* Keeps what is wanted of a folder, or of the trash (NULL). False: with the reason in r. */
static MAY_YIELD bool list(struct places *p, uint32_t account, const char *folder, struct api_result *r)
{
    struct arena *mem = arena_new(LISTING_BLOCK);
    struct drive_listing l;
    struct asking q = {0};
    do {
        struct api *api = asker_api(p->asker, account, &q);
        arena_reset(mem);
        if (folder)
            api_list(api, folder, mem, &l, r);
        else
            api_trash_list(api, mem, &l, r);
    } while (asker_again(p->asker, &q, r));
    if (r->outcome == OUT_OK)
        keep_wanted(p, account, &l, folder ? folder : "");
    arena_free(&mem);
    return r->outcome == OUT_OK;
}

static MAY_YIELD enum err list_folder(struct places *p, struct folder *f, struct errinfo *ei)
{
    struct api_result r;
    bool ok = list(p, f->account, f->id, &r);
    f->absent = r.status == 404;
    if (ok || f->absent)
        return ERR_OK;
    return err_set(ei, ERR_ENV, "the server does not list folder %s: %s", f->id, r.reason);
}

static void list_next(void *arg)
{
    struct places *p = arg;
    while (p->next < p->n && p->cannot.code == ERR_OK && *p->c->cmd->interrupts < 2) {
        struct errinfo why;
        if (list_folder(p, &p->list[p->next++], &why) != ERR_OK)
            p->cannot = why;
    }
}

static MAY_YIELD enum err list_trash(struct places *p, uint32_t account, struct errinfo *ei)
{
    struct api_result r;
    if (list(p, account, NULL, &r))
        return ERR_OK;
    if (strcmp(r.code, API_CODE_ABSENT) != 0)
        return err_set(ei, ERR_ENV, "the server does not list its trash: %s", r.reason);
    p->trash_told = false;
    return ERR_OK;
}

enum err places_read(struct places *p, struct errinfo *ei)
{
    struct group readers = {0};
    enum err e = ERR_OK;
    for (int i = 0; i < READERS; i++)
        group_spawn(p->c->cmd->loop, &readers, list_next, p);
    group_wait(p->c->cmd->loop, &readers);
    if (p->cannot.code != ERR_OK) {
        *ei = p->cannot;
        return p->cannot.code;
    }
    for (uint32_t i = 0; i < p->n_accounts && e == ERR_OK; i++)
        if (p->accounts[i])
            e = list_trash(p, i, ei);
    return e;
}

struct place *places_find(struct places *p, uint32_t account, const char *id)
{
    char key[KEY_MAX];
    struct place *at = map_get(p->ids, key_of(key, account, id, NULL));
    return at == &wanted_id ? NULL : at;
}

struct place *places_named(struct places *p, uint32_t account, const char *folder, const char *name)
{
    char key[KEY_MAX], base[DRIVE_NAME_MAX + 1];
    base_name(base, name);
    return map_get(p->names, key_of(key, account, folder, base));
}

/* ---- one item ---- */

static bool folder_is_trashed(struct places *p, uint32_t account, const char *id)
{
    const struct folder *f = folder_of(p, account, id);
    const struct place *at = places_find(p, account, id);
    return (f && f->absent) || (at && at->trashed);
}

/* It answers, yet none of the listings showed it: once more, since the listing may have come first. */
static MAY_YIELD enum err look_again(struct places *p, uint32_t account, const char *id, struct item_seen *seen,
                                     struct errinfo *ei)
{
    struct folder *f = seen->parent ? folder_of(p, account, seen->parent) : NULL;
    if (!f)
        return ERR_OK;
    enum err e = list_folder(p, f, ei);
    const struct place *at = places_find(p, account, id);
    seen->listed = at ? at->listed : 0;
    seen->listings_tell = true;
    return e;
}

enum err places_see(struct places *p, uint32_t account, const char *id, const char *last_folder, struct arena *mem,
                    struct item_seen *seen, struct errinfo *ei)
{
    const struct place *at = places_find(p, account, id);
    struct drive_file f = {0};
    struct api_result r;
    struct asking q = {0};
    *seen = (struct item_seen){.where = ITEM_GONE, .size = -1, .has_trash = p->trash_told};
    if (at) {
        seen->where = at->listed > 0 ? ITEM_LIVE : ITEM_TRASHED;
        seen->name = at->name;
        seen->parent = at->parent;
        seen->size = at->size;
        seen->listed = at->listed;
        seen->listings_tell = at->listed > 0;
        return ERR_OK;
    }
    do
        api_info(asker_api(p->asker, account, &q), id, mem, &f, NULL, &r);
    while (asker_again(p->asker, &q, &r));
    if (r.outcome == OUT_OK) {
        seen->where = ITEM_LIVE;
        seen->name = f.name;
        seen->parent = f.parent_id;
        seen->size = f.size;
        return look_again(p, account, id, seen, ei);
    }
    if (r.status != 404 && strcmp(r.code, API_CODE_ABSENT) != 0)
        return err_set(ei, ERR_ENV, "the server could not be asked for %s: %s", id, r.reason);
    if (last_folder[0] && folder_is_trashed(p, account, last_folder))
        seen->where = ITEM_TRASHED;
    return ERR_OK;
}
