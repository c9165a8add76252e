#include "checks/evidence/tree.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"

#include <string.h>

struct tree_strings {
    struct arena *arena;
    uint32_t *index; /* open addressing by id: node + 1, 0 is free */
    uint32_t mask;
    uint32_t cap, cap_accounts;
    const char **parent_ids; /* while loading */
};

struct tree *tree_new(unsigned schema)
{
    struct tree *t = mem_zalloc(sizeof(*t));
    t->schema = schema;
    t->strings = mem_zalloc(sizeof(*t->strings));
    t->strings->arena = arena_new(1 << 20);
    return t;
}

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

uint32_t tree_find_account(const struct tree *t, const char *id)
{
    for (uint32_t i = t->n_accounts; i-- > 0;) /* rows come ordered by account: the last one nearly always fits */
        if (strcmp(t->accounts[i].id, id) == 0)
            return i;
    return TREE_NONE;
}

struct tree_account *tree_add_account(struct tree *t, const char *id, const char *email)
{
    struct tree_strings *s = t->strings;
    if (t->n_accounts == s->cap_accounts) {
        s->cap_accounts = s->cap_accounts ? s->cap_accounts * 2 : 16;
        t->accounts = mem_realloc_array(t->accounts, s->cap_accounts, sizeof(*t->accounts));
    }
    struct tree_account *a = &t->accounts[t->n_accounts++];
    *a = (struct tree_account){
        .id = arena_strdup(s->arena, id), .email = arena_strdup(s->arena, email), .used = -1, .reserved = -1};
    return a;
}

static const char *keep(struct tree *t, const char *s)
{
    return s ? arena_strdup(t->strings->arena, s) : NULL;
}

void tree_add(struct tree *t, const struct tree_row *row)
{
    struct tree_strings *s = t->strings;
    if (t->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 1024;
        t->nodes = mem_realloc_array(t->nodes, s->cap, sizeof(*t->nodes));
        s->parent_ids = mem_realloc_array(s->parent_ids, s->cap, sizeof(*s->parent_ids));
    }
    struct tree_node *n = &t->nodes[t->n];
    *n = (struct tree_node){.id = keep(t, row->id),
                            .name = keep(t, row->name),
                            .folder = row->folder,
                            .path = keep(t, row->path),
                            .size = row->folder ? -1 : row->size,
                            .trashed = row->trashed,
                            .agg_size = row->agg_size,
                            .agg_files = row->agg_files,
                            .agg_folders = row->agg_folders,
                            .version = row->version ? hash_str(row->version) : 0,
                            .parent = TREE_NONE,
                            .account = tree_find_account(t, row->account)};
    s->parent_ids[t->n++] = keep(t, row->parent_id);
    if (n->account == TREE_NONE) {
        tree_add_account(t, row->account, "(no such user)");
        n->account = t->n_accounts - 1;
    }
    struct tree_account *a = &t->accounts[n->account];
    if (n->folder) {
        a->folders++;
    } else {
        a->files++;
        a->sum_size = drive_sum(a->sum_size, n->size);
    }
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

void tree_link(struct tree *t)
{
    index_build(t);
    link_parents(t);
    order_nodes(t);
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
