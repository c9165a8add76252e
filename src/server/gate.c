/* What stands before each handler. All of it is decided from the request's head, so that a refusal never waits for a
 * body. */
#include "server/conn.h"
#include "server/route.h"
#include "server/server.h"
#include <string.h>

static MAY_YIELD bool gate_loopback(struct request *r)
{
    if (!(r->route->flags & ROUTE_LOOPBACK) || r->conn->loopback)
        return true;
    reply_message(r, 403, NULL, "This page is for the server's own machine");
    return false;
}

static MAY_YIELD bool gate_store(struct request *r)
{
    if (!(r->route->flags & ROUTE_NEEDS_STORE) || r->server->blob)
        return true;
    reply_message(r, 503, "STORAGE_NOT_CONFIGURED",
                  "No bucket is connected yet. The administrator connects one by PUT /api/user/storage-config.");
    return false;
}

bool gate_pass(struct request *r)
{
    static MAY_YIELD bool (*const steps[])(struct request * r) = {gate_loopback, gate_store};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (!steps[i](r))
            return false;
    return true;
}
