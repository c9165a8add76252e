#ifndef STORE_PG_RESULT_H
#define STORE_PG_RESULT_H
/* What Postgres answered: rows and columns counted from 0, all of it text. Strings live as long as the result.
 * Layer 1. */
#include "base/buf.h"

struct pg_result;

int pg_rows(const struct pg_result *r);
bool pg_is_null(const struct pg_result *r, int row, int col);
const char *pg_str(const struct pg_result *r, int row, int col); /* "" for NULL */
const char *pg_str_or_null(const struct pg_result *r, int row, int col);
int64_t pg_i64(const struct pg_result *r, int row, int col); /* 0 for NULL */
bool pg_bool(const struct pg_result *r, int row, int col);   /* false for NULL */
void pg_result_free(struct pg_result **r);

/* Text form of a text[] parameter; appended to out. A NULL item is SQL NULL. */
enum err pg_array(struct buf *out, const char *const *items, size_t n) WARN_UNUSED;
#endif
