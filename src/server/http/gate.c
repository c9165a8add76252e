/* What stands before each handler, one step a rule, in the order of the table at the end. All of it is decided from the
 * request's head, so that a refusal never waits for a body. */
#include "base/log.h"
#include "base/mem.h"
#include "server/access/budget.h"
#include "server/access/session.h"
#include "server/http/conn.h"
#include "server/http/route.h"
#include "server/objects/storage.h"
#include "server/server.h"
#include "store/pg.h"
#include <string.h>

struct gate {
    struct request *r;
    const struct token *token; /* after gate_token; NULL on public routes */
};

static bool is_api(const struct request *r)
{
    return sv_starts(r->path, SV("/api/"));
}

static bool has_header(const struct request *r, const char *name)
{
    struct sv v = req_header(r, name);
    return v.p && v.n > 0;
}

static MAY_YIELD bool gate_loopback(struct gate *g)
{
    if (!(g->r->route->flags & ROUTE_LOOPBACK) || g->r->conn->loopback)
        return true;
    reply_message(g->r, 403, NULL, "This page is for the server's own machine");
    return false;
}

static MAY_YIELD bool gate_desktop(struct gate *g)
{
    if (!g->r->server->conf->desktop_only || !is_api(g->r) ||
        sv_eq_cstr(req_header(g->r, "X-TMA-Desktop-Client"), "tma-electron-client-v1"))
        return true;
    reply_message(g->r, 403, "DESKTOP_ONLY_ACCESS", "This server is for the desktop app only");
    return false;
}

/* A page of another site can make a browser send our cookie, but not this header. Real servers let the desktop app's
 * own header stand for it too; drive-api.md 1 does not. */
static MAY_YIELD bool gate_csrf(struct gate *g)
{
    const char *method = g->r->method;
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (reads || !req_cookie(g->r, "token").p || has_header(g->r, "X-Requested-With"))
        return true;
    reply_message(g->r, 403, NULL, "Forbidden: missing CSRF header");
    return false;
}

static MAY_YIELD bool gate_token(struct gate *g)
{
    return (g->r->route->flags & ROUTE_PUBLIC) || session_token(g->r, &g->token);
}

static MAY_YIELD bool gate_budget(struct gate *g)
{
    struct budget_use uses[2];
    size_t n = 0;
    if (g->r->route->flags & ROUTE_NO_BUDGET)
        return true;
    const char *who = g->token ? g->token->user_id : arena_printf(g->r->mem, "ip:%s", g->r->client_ip);
    uses[n++] = (struct budget_use){BUDGET_REQUESTS, who};
    if (g->r->route->flags & ROUTE_UPLOAD_BUDGET)
        uses[n++] = (struct budget_use){BUDGET_UPLOADS, who};
    return budget_take(g->r, uses, n);
}

static MAY_YIELD bool gate_session(struct gate *g)
{
    return !g->token || session_login(g->r, g->token);
}

/* After the answer, so that nobody waits for it. */
static MAY_YIELD void audit_denied(struct request *r, const char *action)
{
    const char *params[] = {r->login.user_id, action,
                            arena_strndup(r->mem, r->path.p, r->path.n < 200 ? r->path.n : 200)};
    struct errinfo ei;
    if (pg_run(r->server->pg, "SELECT drive_audit($1, $2, 'route', $3, 'failure', NULL)", 3, params, NULL, &ei) !=
        ERR_OK)
        LOGW("gate", "a refusal was not noted in the audit log: %s", err_message(&ei));
}

static MAY_YIELD bool gate_rank(struct gate *g)
{
    struct request *r = g->r;
    if ((r->route->flags & ROUTE_ADMIN) && !r->login.admin)
        reply_message(r, 403, NULL, "Only the administrator can do that.");
    else if ((r->route->flags & ROUTE_OWNER) && !r->login.owner)
        reply_message(r, 403, NULL, "Only the account owner can do that.");
    else
        return true;
    audit_denied(r, "account.owner_action_denied");
    return false;
}

static const char *const permission_labels[PERM_COUNT] = {
    [PERM_BIT_DOWNLOAD] = "Download files", [PERM_BIT_UPLOAD] = "Upload files", [PERM_BIT_EDIT] = "Edit files",
    [PERM_BIT_SHARE] = "Share files",       [PERM_BIT_DELETE] = "Delete files", [PERM_BIT_TRASH] = "Manage the trash",
};

static MAY_YIELD bool gate_permission(struct gate *g)
{
    unsigned missing = g->r->route->perm & ~g->r->login.perms;
    for (unsigned bit = 0; bit < PERM_COUNT; bit++) {
        if (!(missing & (1u << bit)))
            continue;
        reply_message(g->r, 403, NULL, "You do not have permission to do that. Ask the account owner to enable \"%s\".",
                      permission_labels[bit]);
        audit_denied(g->r, "account.permission_denied");
        return false;
    }
    return true;
}

static MAY_YIELD bool gate_store(struct gate *g)
{
    struct server *s = g->r->server;
    struct errinfo ei;
    if (!(g->r->route->flags & ROUTE_NEEDS_STORE) || s->blob)
        return true;
    if (storage_refresh(s, &ei) != ERR_OK) { /* another process may have connected one */
        reply_error(g->r, &ei);
        return false;
    }
    if (s->blob)
        return true;
    reply_message(g->r, 503, "STORAGE_NOT_CONFIGURED",
                  "No bucket is connected yet. The administrator connects one by PUT /api/user/storage-config.");
    return false;
}

bool gate_pass(struct request *r)
{
    static MAY_YIELD bool (*const steps[])(struct gate * g) = {
        gate_loopback, gate_desktop, gate_csrf,       gate_token, gate_budget,
        gate_session,  gate_rank,    gate_permission, gate_store,
    };
    struct gate g = {r, NULL};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (!steps[i](&g))
            return false;
    return true;
}
