#ifndef SERVER_HTTP_ROUTE_H
#define SERVER_HTTP_ROUTE_H
/* The route table: each h_*.c defines one array of rows, and route.c lists the arrays. gate.c runs what stands before a
 * handler, in this order: desktop-only, CSRF, token, budget, session, permission, store. Layer 3. */
#include "server/http/http.h"

enum route_flags {
    ROUTE_PUBLIC = 1,        /* no token needed */
    ROUTE_OWNER = 2,         /* sub-users get 403 */
    ROUTE_ADMIN = 4,         /* the first user only */
    ROUTE_UPLOAD_BUDGET = 8, /* counts as an upload too */
    ROUTE_NEEDS_STORE = 16,  /* 503 STORAGE_NOT_CONFIGURED until a bucket is connected */
    ROUTE_NO_BUDGET = 32,
    ROUTE_LOOPBACK = 64,       /* other peers get 403 */
    ROUTE_STORAGE_BUDGET = 128 /* counts as a test of a bucket */
};
struct route {
    const char *method;  /* "GET" answers HEAD too */
    const char *pattern; /* "/api/files/:id/info" */
    unsigned perm;       /* PERM(…) or 0 */
    unsigned flags;
    MAY_YIELD void (*handler)(struct request *r);
};
/* Each table ends with a row whose method is NULL. */
extern const struct route routes_ops[], routes_account[], routes_subusers[], routes_events[];
extern const struct route routes_upload[], routes_bulk[], routes_download[], routes_jobs[], routes_storage[];
extern const struct route routes_files[], routes_write[], routes_lock[];

/* Finds the row and fills r->params. *path_known: the path has rows for other methods (their names, comma-separated, in
 * allow). NULL when there is none. */
const struct route *route_find(struct request *r, bool *path_known, struct buf *allow);
/* Everything between a parsed head and the end of the handler. */
MAY_YIELD void route_dispatch(struct request *r);
/* Runs the checks that stand before the handler. False: answered already. */
MAY_YIELD bool gate_pass(struct request *r);
#endif
