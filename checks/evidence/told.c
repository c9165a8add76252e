#include "checks/evidence/told.h"
#include "base/arena.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

#define ACCOUNTS_MOST 20
#define FOLDERS_MOST  300

struct api *told_sign_in(struct check_ctx *c, const char *email)
{
    const struct target *t = c->cmd->target;
    struct api_conf conf = api_conf_of(c->cmd);
    struct api *api = NULL;
    struct api_result r;
    struct errinfo ei;
    conf.app_version = "check";
    if (!t->url || !email || api_new(&api, &conf, &ei) != ERR_OK)
        return NULL;
    if (api_enter(api, email, target_password(t, email), &r) != ERR_OK || r.outcome != OUT_OK)
        api_free(&api);
    return api;
}

/* Where logins are given, or were made with a given one's help, a tree is known by its URL: the first login there. */
static MAY_YIELD struct api *sign_in_at(struct check_ctx *c, const char *tree)
{
    char name[TARGET_LOGIN_MAX + 1];
    for (unsigned i = 0; i < ACCOUNTS_MOST && target_owner(c->cmd->target, i, name, sizeof(name)); i++) {
        struct api *api = told_sign_in(c, name);
        if (!api || strcmp(api_tree(api), tree) == 0)
            return api;
        api_free(&api);
    }
    return NULL;
}

/* The account's owner signed in, once for all checks, as limiters count sign-ins; NULL: not one of ours, or it cannot.
 * Borrowed until the next call. */
static MAY_YIELD struct api *owner_in(struct check_ctx *c, const struct tree_account *a)
{
    bool listed = c->tree && c->tree->listed;
    if (!listed && !sv_ends(sv_of(a->email), SV(DRIVE_EMAIL_DOMAIN)))
        return NULL;
    if (c->owner && strcmp(c->owner_email, a->email) == 0)
        return c->owner;
    told_sign_out(c);
    c->owner_email = a->email;
    return c->owner = listed ? sign_in_at(c, a->email) : told_sign_in(c, a->email);
}

void told_sign_out(struct check_ctx *c)
{
    api_free(&c->owner);
}

/* ---- folder totals ---- */

/* What is below each folder and not in the trash: children come after their parents in t->order. */
static struct api_totals *live_totals(const struct tree *t)
{
    struct api_totals *sum = mem_zalloc(((size_t)t->n + 1) * sizeof(*sum));
    for (uint32_t at = t->n - t->n_cyclic; at-- > 0;) {
        uint32_t i = t->order[at];
        const struct tree_node *n = &t->nodes[i];
        if (n->parent == TREE_NONE || n->trashed)
            continue;
        struct api_totals *p = &sum[n->parent];
        p->bytes = drive_sum(p->bytes, n->folder ? sum[i].bytes : n->size);
        p->files += n->folder ? sum[i].files : 1;
        p->folders += n->folder ? sum[i].folders + 1 : 0;
    }
    return sum;
}

static bool differs(int64_t said, int64_t is)
{
    return said >= 0 && said != is; /* WebDAV tells bytes alone */
}

/* False: it tells no totals. */
static MAY_YIELD bool compare_folder(struct api *api, const struct tree *t, uint32_t i, const struct api_totals *is,
                                     struct check_result *r)
{
    struct arena *mem = arena_new(1024);
    struct api_totals says = {-1, -1, -1};
    struct api_result res;
    char path[200];
    const char *id = t->nodes[i].id;
    bool told = api_info(api, id, mem, NULL, &says, &res) == ERR_OK && res.outcome == OUT_OK && says.bytes >= 0;
    arena_free(&mem);
    if (!told)
        return false;
    r->examined++;
    if (differs(says.bytes, is->bytes) || differs(says.files, is->files) || differs(says.folders, is->folders))
        check_detail(r,
                     "folder %s (%s): info says %" PRId64 " bytes, %" PRId64 " files, %" PRId64
                     " folders; %s add up to %" PRId64 ", %" PRId64 ", %" PRId64 "; look: %s",
                     id, tree_path(t, i, path, sizeof(path)), says.bytes, says.files, says.folders,
                     t->listed ? "its listings" : "its rows", is->bytes, is->files, is->folders,
                     t->listed ? "PROPFIND oc:size" : "GET /api/files/ID/info");
    return true;
}

/* A server that tells no total of the first folder is not asked for all the others. */
static MAY_YIELD void compare_account(struct check_ctx *c, struct api *api, uint32_t account, uint32_t step,
                                      const struct api_totals *sum, struct check_result *r)
{
    const struct tree *t = c->tree;
    uint32_t met = 0;
    bool tells = true;
    for (uint32_t i = 0; i < t->n && !*c->cmd->interrupts && (tells || r->examined); i++) {
        const struct tree_node *n = &t->nodes[i];
        if (n->account == account && n->folder && !n->trashed && !n->in_cycle && met++ % step == 0)
            tells = compare_folder(api, t, i, &sum[i], r);
    }
}

void told_totals(struct check_ctx *c, const struct tree *t, struct check_result *r)
{
    struct api_totals *sum = live_totals(t);
    uint32_t folders = 0, signed_in = 0;
    for (uint32_t i = 0; i < t->n; i++)
        folders += t->nodes[i].folder;
    for (uint32_t a = 0; a < t->n_accounts && signed_in < ACCOUNTS_MOST; a++) {
        struct api *api = t->accounts[a].folders ? owner_in(c, &t->accounts[a]) : NULL;
        signed_in += api != NULL;
        if (api)
            compare_account(c, api, a, folders / FOLDERS_MOST + 1, sum, r);
    }
    mem_free(sum);
    if (r->examined == 0)
        check_not_run(r, "not offered: %s, and the server reports no folder totals",
                      t->listed ? "there is no database to read" : "the table files has no aggregate columns");
    else
        check_summary(r, "%" PRIu64 " of %" PRIu32 " folders by what info says, %" PRIu64 " wrong; none are stored",
                      r->examined, folders, r->wrong);
}

/* ---- storage ---- */

void told_storage(struct check_ctx *c, const struct tree *t, struct check_result *r)
{
    int64_t total = 0;
    char text[32];
    for (uint32_t i = 0; i < t->n_accounts && r->examined < ACCOUNTS_MOST; i++) {
        const struct tree_account *a = &t->accounts[i];
        struct api_storage storage = {-1, -1, -1};
        struct api_result res;
        struct api *api = a->files ? owner_in(c, a) : NULL;
        if (!api || api_storage(api, &storage, &res) != ERR_OK || res.outcome != OUT_OK)
            continue;
        r->examined++;
        total = drive_sum(total, a->sum_size);
        if (storage.used != a->sum_size)
            check_detail(r,
                         "account %s (%s): the server reports %" PRId64 " bytes in use, its %" PRIu32
                         " files add up to %" PRId64 " (%+" PRId64 "); look: GET /api/user/storage",
                         a->id, a->email, storage.used, a->files, a->sum_size,
                         drive_difference(storage.used, a->sum_size));
    }
    if (r->examined == 0)
        check_not_run(r, "not offered: the table users has no storage_used, and the server reports no storage use");
    else
        check_summary(r, "%s as the server reports it, %s, %" PRIu64 " wrong; none is stored",
                      COUNTED(r->examined, "account"), str_bytes(text, sizeof(text), (uint64_t)total), r->wrong);
}
