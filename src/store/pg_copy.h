#ifndef STORE_PG_COPY_H
#define STORE_PG_COPY_H
/* Rows in and out of a table in bulk, as COPY's text. Layer 1; one loop's thread. */
#include "base/str.h"
#include "store/pg.h"

/* COPY … TO STDOUT. take gets a line each, its line feed included; what it returns ends the call when it is no ERR_OK,
 * and the connection is of no further use then. *rows: how many. */
MAY_YIELD enum err pg_copy_out(struct pg *c, const char *sql,
                               enum err (*take)(void *arg, struct sv line, struct errinfo *ei), void *arg,
                               uint64_t *rows, struct errinfo *ei) WARN_UNUSED;
/* COPY … FROM STDIN. give fills *piece, valid until its next call, empty at the end; when it fails nothing of it is in
 * the table. *rows: how many the server took. */
MAY_YIELD enum err pg_copy_in(struct pg *c, const char *sql,
                              enum err (*give)(void *arg, struct sv *piece, struct errinfo *ei), void *arg,
                              uint64_t *rows, struct errinfo *ei) WARN_UNUSED;
#endif
