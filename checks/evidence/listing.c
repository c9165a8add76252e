/* The tree as a server without rows shows it: every folder listed, level by level, as the first login of each tree. */
#include "base/mem.h"
#include "checks/check.h"
#include "drive/api/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READERS   8
#define TREES_MAX 64

struct place {      /* a folder to be listed */
    const char *id; /* the tree's own; NULL: the top */
    uint32_t account;
};
struct walk {
    struct check_ctx *c;
    struct tree *t;
    struct api *apis[TREES_MAX]; /* of each account */
    uint32_t n_apis;
    struct place *places; /* of all levels; next: to be listed */
    size_t n, cap, next, level_end;
    enum err err;
    struct errinfo *ei;
};

static void add_place(struct walk *w, const char *id, uint32_t account)
{
    if (w->n == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 256;
        w->places = mem_realloc_array(w->places, w->cap, sizeof(*w->places));
    }
    w->places[w->n++] = (struct place){id, account};
}

static MAY_YIELD void list_one(struct walk *w, struct place p)
{
    struct arena *mem = arena_new(16 << 10);
    struct drive_listing l = {0};
    struct api_result r;
    enum err e = api_list(w->apis[p.account], p.id, mem, &l, &r);
    if (e != ERR_OK || r.outcome != OUT_OK)
        w->err = err_set(w->ei, e ? e : ERR_ENV, "a folder cannot be listed: %d %s", r.status, r.reason);
    for (size_t i = 0; w->err == ERR_OK && i < l.n; i++) {
        const struct drive_file *f = &l.items[i];
        tree_add(w->t, &(struct tree_row){.id = f->id,
                                          .name = f->name,
                                          .parent_id = p.id,
                                          .account = w->t->accounts[p.account].id,
                                          .version = f->version,
                                          .size = f->size,
                                          .folder = f->folder});
        if (f->folder)
            add_place(w, w->t->nodes[w->t->n - 1].id, p.account);
    }
    arena_free(&mem);
}

static void reader(void *arg)
{
    struct walk *w = arg;
    while (w->next < w->level_end && w->err == ERR_OK && *w->c->cmd->interrupts < 2)
        list_one(w, w->places[w->next++]);
}

static MAY_YIELD void list_all(struct walk *w)
{
    while (w->next < w->n && w->err == ERR_OK) {
        struct group readers = {0};
        w->level_end = w->n;
        for (int i = 0; i < READERS; i++)
            group_spawn(w->c->cmd->loop, &readers, reader, w);
        group_wait(w->c->cmd->loop, &readers);
    }
}

/* One login for each tree. */
static MAY_YIELD enum err sign_in_all(struct walk *w)
{
    struct check_ctx *c = w->c;
    const struct target *t = c->cmd->target;
    char name[TARGET_LOGIN_MAX + 1];
    for (unsigned i = 0; w->n_apis < TREES_MAX && target_owner(t, i, name, sizeof(name)); i++) {
        struct api_conf conf = api_conf_of(c->cmd);
        struct api_result r;
        struct api *a = NULL;
        if (i > 0 && api_space_lacks(c->cmd->space, name, target_password(t, name)))
            return ERR_OK;
        enum err e = api_new(&a, &conf, w->ei);
        if (e != ERR_OK)
            return e;
        e = api_enter(a, name, target_password(t, name), &r);
        if (e != ERR_OK || r.outcome != OUT_OK) {
            bool end = i > 0 && r.status == 401 && !target_logins_given(t); /* no more owners were made */
            api_free(&a);
            return end ? ERR_OK : err_set(w->ei, ERR_ENV, "cannot sign in as %s to list the tree: %s", name, r.reason);
        }
        bool known = false;
        for (uint32_t k = 0; k < w->n_apis; k++)
            known = known || strcmp(api_tree(w->apis[k]), api_tree(a)) == 0;
        if (known)
            api_free(&a);
        else
            w->apis[w->n_apis++] = a;
    }
    return ERR_OK;
}

/* As they were answered: of two that crossed each other the one asked for first may have come last. */
static int by_answer(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    if (x->told_us != y->told_us)
        return x->told_us < y->told_us ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void place(struct api *a, const struct journal_op *o)
{
    bool named = o->op != OP_COPY || o->old_name[0]; /* a record of before copies were named has the source's name */
    if ((o->op == OP_MOVE || o->op == OP_COPY) && named)
        api_place(a, o->file_id, o->other_id, o->name);
    else if (o->op == OP_RENAME || o->op == OP_UPLOAD || o->op == OP_NEW_FOLDER)
        api_place(a, o->file_id, o->parent_id, o->name);
    else if (o->op == OP_TRASH)
        api_place(a, o->file_id, NULL, NULL);
}

/* Which id an earlier process gave to what, told by its ledger. */
static void place_all(struct walk *w)
{
    const struct journal *j = w->c->journal;
    const struct journal_op **acked = mem_alloc((j->n + 1) * sizeof(*acked));
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++)
        if (j->ops[i].file_id[0] && journal_acked(&j->ops[i]) && journal_account(j, j->ops[i].login) < w->n_apis)
            acked[n++] = &j->ops[i];
    qsort(acked, n, sizeof(*acked), by_answer);
    for (size_t i = 0; i < n; i++)
        place(w->apis[journal_account(j, acked[i]->login)], acked[i]);
    mem_free(acked);
}

static MAY_YIELD void walk(struct walk *w)
{
    char who[40];
    tree_free(&w->t);
    w->t = tree_new(0);
    w->t->listed = true;
    w->n = w->next = 0;
    for (uint32_t a = 0; a < w->n_apis; a++) {
        snprintf(who, sizeof(who), "%" PRIu32, a);
        tree_add_account(w->t, who, api_tree(w->apis[a]));
        add_place(w, NULL, a);
    }
    list_all(w);
}

enum err tree_list(struct check_ctx *c, struct tree **out, struct errinfo *ei)
{
    struct walk w = {.c = c, .ei = ei};
    w.err = sign_in_all(&w);
    if (w.err == ERR_OK)
        walk(&w);
    if (w.err == ERR_OK && c->offline && c->journal) {
        place_all(&w);
        walk(&w); /* under the ids that the ledger knows */
    }
    if (w.err == ERR_OK) {
        tree_link(w.t);
        *out = w.t;
        w.t = NULL;
    }
    tree_free(&w.t);
    for (uint32_t a = 0; a < w.n_apis; a++)
        api_free(&w.apis[a]);
    mem_free(w.places);
    return w.err;
}
