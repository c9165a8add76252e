/* The tree itself: no cycles, each parent is a live row of the same account and a folder, no two live entries of one
 * name in a folder. */
#include "base/mem.h"
#include "checks/evidence/look.h"
#include "drive/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tree *sorting; /* qsort has no context argument that is portable; one check runs at a time */

static int by_parent_and_name(const void *a, const void *b)
{
    const struct tree_node *x = &sorting->nodes[*(const uint32_t *)a], *y = &sorting->nodes[*(const uint32_t *)b];
    if (x->account != y->account)
        return x->account < y->account ? -1 : 1;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Servers of before the stored folder totals take an entry whose name is there already, by design: a folder made or
 * copied, a file moved or renamed. */
static bool names_are_unique(const struct tree *t)
{
    return t->schema & SCHEMA_AGGREGATES;
}

/* Returns how many there are; they are wrong only where the server promises that there are none. */
static uint64_t find_twins(const struct check_ctx *c, struct check_result *r)
{
    const struct tree *t = c->tree;
    uint64_t twins = 0;
    uint32_t *live = mem_alloc(((size_t)t->n + 1) * sizeof(*live)), n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (!t->nodes[i].trashed)
            live[n++] = i;
    sorting = t;
    qsort(live, n, sizeof(*live), by_parent_and_name);
    char path[256], look[LOOK_MAX];
    for (uint32_t i = 1; i < n; i++) {
        if (by_parent_and_name(&live[i - 1], &live[i]) != 0)
            continue;
        twins++;
        if (names_are_unique(t))
            check_detail(r, "two live entries of one name in one folder: %s and %s, both %s; look: %s",
                         t->nodes[live[i - 1]].id, t->nodes[live[i]].id, tree_path(t, live[i], path, sizeof(path)),
                         look_at(c, LOOK_ROW, t->nodes[live[i]].id, look));
    }
    mem_free(live);
    return twins;
}

/* One entry by itself and against its parent. */
static void judge_entry(const struct check_ctx *c, uint32_t i, struct check_result *r)
{
    const struct tree *t = c->tree;
    const struct tree_node *n = &t->nodes[i], *p = n->parent == TREE_NONE ? NULL : &t->nodes[n->parent];
    const char *kind = n->folder ? "folder" : "file";
    char path[256], look[LOOK_MAX];
    bool placed = !p || (p->folder && p->account == n->account && (n->trashed || !p->trashed));
    if (placed && !n->in_cycle && !n->parent_missing)
        return;
    look_at(c, LOOK_ROW, n->id, look);
    if (n->in_cycle) {
        check_detail(r, "%s %s (%s) is part of a cycle: no root reaches it; look: %s", kind, n->id, n->name, look);
        return;
    }
    if (n->parent_missing)
        check_detail(r, "%s %s (%s): its parent does not exist; look: %s", kind, n->id, n->name, look);
    if (!p)
        return;
    if (!p->folder)
        check_detail(r, "%s %s (%s): its parent %s is a file; look: %s", kind, n->id, n->name, p->id, look);
    if (p->account != n->account)
        check_detail(r, "%s %s (%s) belongs to account %s, its parent %s to %s; look: %s", kind, n->id, n->name,
                     t->accounts[n->account].id, p->id, t->accounts[p->account].id, look);
    if (p->trashed && !n->trashed)
        check_detail(r, "%s %s (%s) is live in a trashed folder; look: %s", kind, n->id,
                     tree_path(t, i, path, sizeof(path)), look);
}

static void run(struct check_ctx *c, struct check_result *r)
{
    const struct tree *t = check_tree(c, r);
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n; i++)
        judge_entry(c, i, r);
    r->examined = t->n;
    char allowed[80] = "";
    uint64_t twins = find_twins(c, r);
    if (twins > 0 && !names_are_unique(t))
        snprintf(allowed, sizeof(allowed), "; %s twice in a folder, which this server allows", COUNTED(twins, "name"));
    check_summary(r, "%s, %" PRIu64 " wrong%s", COUNTED(r->examined, "entry"), r->wrong, allowed);
}

const struct check check_structure = {"structure", "no cycles, one living parent each, no two of one name in a folder",
                                      run};
