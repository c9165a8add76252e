#ifndef STORE_PG_H
#define STORE_PG_H
/* PostgreSQL by libpq without blocking: a call suspends the coroutine (or runs the loop). A pool hands out connections
 * first come first served and replaces broken ones. Text results. An answer of the server that is an error is ERR_DB
 * with its SQLSTATE in the errinfo; a connection that could not be made or was lost is ERR_DB_GONE, and so is a server
 * that stays silent for longer than the pool's limit: what it was asked may then be done or not.
 * The owner of libpq-fe.h. Layer 1; one loop's thread. */
#include "net/coro.h"
#include "store/pg_result.h"

struct pg_pool;
struct pg; /* one connection, borrowed from a pool */

/* Connects lazily; url as libpq takes it (pg_url.h, which judges where it leads). While the server refuses connections,
 * takers share one attempt at a time with growing pauses (50 ms to 1 s), so that a caller that tries again at once does
 * not spin. */
enum err pg_pool_new(struct pg_pool **out, struct loop *l, const char *url, unsigned max,
                     struct errinfo *ei) WARN_UNUSED;
/* From now on nobody waits longer than that: for a connection to be free, to be made, for the next bytes of an answer
 * (four times as long while the server answers others). Once a whole such time went by without a word from the server
 * on any connection, one caller at a time asks it and the others fail at once, until it answers. And when it gives no
 * more connections, those that are open have to do, and who needs one waits for it. 0, as at first: no limit. */
void pg_pool_set_limit(struct pg_pool *p, int64_t us);
/* Every connection was given back before. Waits for rollbacks that pg_give started. */
MAY_YIELD void pg_pool_free(struct pg_pool **p);
MAY_YIELD enum err pg_take(struct pg_pool *p, struct pg **out, struct errinfo *ei) WARN_UNUSED;
/* Sets *c to NULL. What is still open is rolled back in the background before the connection is handed out again. */
void pg_give(struct pg **c);

/* Statements are prepared once a connection and found again by the text's address: pass string literals or other text
 * that lives and stays the same as long as the pool. params: text, NULL is SQL NULL. out may be NULL. */
MAY_YIELD enum err pg_query(struct pg *c, const char *sql, int n, const char *const *params, struct pg_result **out,
                            struct errinfo *ei) WARN_UNUSED;
/* pg_take, pg_query, pg_give: a statement that is its own transaction. Tried once more on another connection when the
 * first one was lost before the statement left this machine. */
MAY_YIELD enum err pg_run(struct pg_pool *p, const char *sql, int n, const char *const *params, struct pg_result **out,
                          struct errinfo *ei) WARN_UNUSED;
/* The same without the pool's limit, for what may take its time. */
MAY_YIELD enum err pg_run_long(struct pg_pool *p, const char *sql, int n, const char *const *params,
                               struct pg_result **out, struct errinfo *ei) WARN_UNUSED;
/* Several statements in one text, no parameters, results dropped: schema files, BEGIN/ROLLBACK. Any text will do. */
MAY_YIELD enum err pg_script(struct pg *c, const char *sql, struct errinfo *ei) WARN_UNUSED;
/* Row by row in bounded memory (single-row mode); row is valid during the call, its row index is 0. fn must not use c;
 * it returns false to stop early: the query is cancelled and ERR_OK returned. */
MAY_YIELD enum err pg_each(struct pg *c, const char *sql, int n, const char *const *params,
                           bool (*fn)(void *arg, const struct pg_result *row), void *arg,
                           struct errinfo *ei) WARN_UNUSED;

unsigned pg_pool_open(const struct pg_pool *p); /* connections open now */
unsigned pg_pool_waiting(const struct pg_pool *p);
#endif
