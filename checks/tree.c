/* Why not SQL for the totals: a recursive query over 200,000 rows takes seconds and its memory is the server's; one
 * streamed pass is linear, and is independent of anything the server computes. */
#include "checks/tree.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"

#include "drive/schema.h"

#include <string.h>

struct tree_strings {
    struct arena *arena;
    uint32_t *index; /* open addressing by id: node + 1, 0 is free */
    uint32_t mask;
    uint32_t cap, cap_accounts;
    const char **parent_ids; /* while loading */
};

uint32_t tree_find(const struct tree *t, const char *id)
{
    const struct tree_strings *s = t->strings;
    if (!s->index)
        return TREE_NONE;
    for (uint32_t i = (uint32_t)hash_str(id) & s->mask;; i = (i + 1) & s->mask) {
        if (s->index[i] == 0)
            return TREE_NONE;
        if (strcmp(t->nodes[s->index[i] - 1].id, id) == 0)
            return s->index[i] - 1;
    }
}

static void index_build(struct tree *t)
{
    struct tree_strings *s = t->strings;
    uint32_t size = 64;
    while (size < t->n * 2)
        size *= 2;
    s->mask = size - 1;
    s->index = mem_zalloc(size * sizeof(*s->index));
    for (uint32_t n = 0; n < t->n; n++) {
        uint32_t i = (uint32_t)hash_str(t->nodes[n].id) & s->mask;
        while (s->index[i] != 0)
            i = (i + 1) & s->mask;
        s->index[i] = n + 1;
    }
}

static uint32_t account_find(const struct tree *t, const char *id)
{
    for (uint32_t i = t->n_accounts; i-- > 0;) /* rows come ordered by account: the last one nearly always fits */
        if (strcmp(t->accounts[i].id, id) == 0)
            return i;
    return TREE_NONE;
}

static struct tree_account *account_add(struct tree *t, const char *id, const char *email)
{
    struct tree_strings *s = t->strings;
    if (t->n_accounts == s->cap_accounts) {
        s->cap_accounts = s->cap_accounts ? s->cap_accounts * 2 : 16;
        t->accounts = mem_realloc_array(t->accounts, s->cap_accounts, sizeof(*t->accounts));
    }
    struct tree_account *a = &t->accounts[t->n_accounts++];
    *a = (struct tree_account){.id = arena_strdup(s->arena, id), .email = arena_strdup(s->arena, email)};
    return a;
}

static bool on_account(void *arg, const struct pg_result *r)
{
    struct tree *t = arg;
    struct tree_account *a = account_add(t, pg_str(r, 0, 0), pg_str(r, 0, 1));
    a->used = pg_is_null(r, 0, 2) ? -1 : pg_i64(r, 0, 2);
    a->reserved = pg_is_null(r, 0, 3) ? -1 : pg_i64(r, 0, 3);
    return true;
}

static bool on_reservations(void *arg, const struct pg_result *r)
{
    struct tree *t = arg;
    uint32_t a = account_find(t, pg_str(r, 0, 0));
    if (a != TREE_NONE)
        t->accounts[a].reservations = pg_i64(r, 0, 1);
    return true;
}

static bool on_file(void *arg, const struct pg_result *r)
{
    struct tree *t = arg;
    struct tree_strings *s = t->strings;
    if (t->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 1024;
        t->nodes = mem_realloc_array(t->nodes, s->cap, sizeof(*t->nodes));
        s->parent_ids = mem_realloc_array(s->parent_ids, s->cap, sizeof(*s->parent_ids));
    }
    struct tree_node *n = &t->nodes[t->n];
    *n = (struct tree_node){.id = arena_strdup(s->arena, pg_str(r, 0, 0)),
                            .name = arena_strdup(s->arena, pg_str(r, 0, 1)),
                            .folder = strcmp(pg_str(r, 0, 2), "folder") == 0,
                            .path = pg_is_null(r, 0, 5) ? NULL : arena_strdup(s->arena, pg_str(r, 0, 5)),
                            .trashed = !pg_is_null(r, 0, 7),
                            .agg_size = pg_i64(r, 0, 8),
                            .agg_files = pg_i64(r, 0, 9),
                            .agg_folders = pg_i64(r, 0, 10),
                            .parent = TREE_NONE};
    n->size = n->folder ? -1 : pg_i64(r, 0, 3);
    s->parent_ids[t->n] = pg_is_null(r, 0, 4) ? NULL : arena_strdup(s->arena, pg_str(r, 0, 4));
    n->account = account_find(t, pg_str(r, 0, 6));
    if (n->account == TREE_NONE) {
        account_add(t, pg_str(r, 0, 6), "(no such user)");
        n->account = t->n_accounts - 1;
        t->accounts[n->account].used = t->accounts[n->account].reserved = -1;
    }
    struct tree_account *a = &t->accounts[n->account];
    if (n->folder) {
        a->folders++;
    } else {
        a->files++;
        a->sum_size += n->size;
    }
    t->n++;
    return true;
}

static void link_parents(struct tree *t)
{
    struct tree_strings *s = t->strings;
    for (uint32_t i = 0; i < t->n; i++) {
        if (!s->parent_ids[i])
            continue;
        t->nodes[i].parent = tree_find(t, s->parent_ids[i]);
        t->nodes[i].parent_missing = t->nodes[i].parent == TREE_NONE;
    }
    MEM_FREE(s->parent_ids);
}

/* Parents before children (Kahn 1962, on child lists); what no root reaches hangs on a cycle. */
static void order_nodes(struct tree *t)
{
    uint32_t *first = mem_alloc(((size_t)t->n + 1) * sizeof(*first)),
             *next = mem_alloc(((size_t)t->n + 1) * sizeof(*next));
    t->order = mem_alloc(((size_t)t->n + 1) * sizeof(*t->order));
    memset(first, 0xff, ((size_t)t->n + 1) * sizeof(*first));
    uint32_t filled = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t p = t->nodes[i].parent;
        if (p == TREE_NONE) {
            t->order[filled++] = i;
        } else {
            next[i] = first[p];
            first[p] = i;
        }
    }
    for (uint32_t at = 0; at < filled; at++)
        for (uint32_t c = first[t->order[at]]; c != TREE_NONE; c = next[c])
            t->order[filled++] = c;
    t->n_cyclic = t->n - filled;
    if (t->n_cyclic > 0) {
        for (uint32_t i = 0; i < t->n; i++)
            t->nodes[i].in_cycle = true;
        for (uint32_t i = 0; i < filled; i++)
            t->nodes[t->order[i]].in_cycle = false;
        for (uint32_t i = 0; i < t->n; i++)
            if (t->nodes[i].in_cycle)
                t->order[filled++] = i;
    }
    mem_free(first);
    mem_free(next);
}

/* Whole texts, because statements are prepared by the address of their text (pg.h); what an older server lacks comes as
 * NULL through to_jsonb. */
static const char accounts_sql[] =
    "SELECT id, email, to_jsonb(u)->>'storage_used', to_jsonb(u)->>'storage_reserved' FROM users u"
    " WHERE to_jsonb(u)->>'parent_user_id' IS NULL ORDER BY id";
static const char reservations_sql[] = "SELECT user_id, sum(bytes) FROM storage_reservations GROUP BY user_id";
static const char files_sql[] = "SELECT id, name, type, size, parent_id, path, user_id, deleted_at, aggregate_size,"
                                " aggregate_file_count, aggregate_folder_count FROM files ORDER BY user_id";
static const char files_plain_sql[] =
    "SELECT id, name, type, size, parent_id, path, user_id, deleted_at, 0, 0, 0 FROM files ORDER BY user_id";

static enum err load_rows(struct pg *c, struct tree *t, struct errinfo *ei)
{
    enum err e = pg_each(c, accounts_sql, 0, NULL, on_account, t, ei);
    if (e == ERR_OK && (t->schema & SCHEMA_RESERVATIONS))
        e = pg_each(c, reservations_sql, 0, NULL, on_reservations, t, ei);
    if (e == ERR_OK)
        e = pg_each(c, t->schema & SCHEMA_AGGREGATES ? files_sql : files_plain_sql, 0, NULL, on_file, t, ei);
    return e;
}

enum err tree_load(struct pg_pool *pool, struct tree **out, struct errinfo *ei)
{
    struct tree *t = mem_zalloc(sizeof(*t));
    t->strings = mem_zalloc(sizeof(*t->strings));
    t->strings->arena = arena_new(1 << 20);
    struct pg *c = NULL;
    enum err e = pg_take(pool, &c, ei);
    if (e == ERR_OK)
        e = pg_script(c, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ei);
    if (e == ERR_OK)
        e = schema_probe(c, &t->schema, ei);
    if (e == ERR_OK)
        e = load_rows(c, t, ei);
    if (c)
        pg_give(&c);
    if (e != ERR_OK) {
        tree_free(&t);
        return e;
    }
    index_build(t);
    link_parents(t);
    order_nodes(t);
    *out = t;
    return ERR_OK;
}

void tree_free(struct tree **tp)
{
    struct tree *t = *tp;
    if (!t)
        return;
    arena_free(&t->strings->arena);
    mem_free(t->strings->index);
    mem_free(t->strings->parent_ids);
    mem_free(t->strings);
    mem_free(t->nodes);
    mem_free(t->accounts);
    mem_free(t->order);
    MEM_FREE(*tp);
}

char *tree_path(const struct tree *t, uint32_t node, char *dst, size_t n)
{
    static const char cut[] = "…/";
    const size_t cut_len = sizeof(cut) - 1;
    size_t at = n - 1;
    dst[at] = 0;
    for (unsigned depth = 0; node != TREE_NONE && depth < 256; node = t->nodes[node].parent, depth++) {
        size_t len = strlen(t->nodes[node].name), slash = depth > 0;
        if (len + slash + cut_len > at) {
            at -= cut_len;
            memcpy(dst + at, cut, cut_len);
            break;
        }
        if (slash)
            dst[--at] = '/';
        at -= len;
        memcpy(dst + at, t->nodes[node].name, len);
    }
    memmove(dst, dst + at, n - at);
    return dst;
}
