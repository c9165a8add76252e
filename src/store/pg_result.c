/* A result of ours is libpq's own: struct pg_result is what its header calls PGresult. */
#include "store/pg_result.h"
#include "base/str.h"
#include <libpq-fe.h>

int pg_rows(const struct pg_result *r)
{
    return PQntuples(r);
}

bool pg_is_null(const struct pg_result *r, int row, int col)
{
    return PQgetisnull(r, row, col);
}

const char *pg_str(const struct pg_result *r, int row, int col)
{
    return PQgetvalue(r, row, col);
}

const char *pg_str_or_null(const struct pg_result *r, int row, int col)
{
    return PQgetisnull(r, row, col) ? NULL : PQgetvalue(r, row, col);
}

int64_t pg_i64(const struct pg_result *r, int row, int col)
{
    int64_t v = 0;
    return sv_to_i64(sv_of(PQgetvalue(r, row, col)), &v) ? v : 0;
}

bool pg_bool(const struct pg_result *r, int row, int col)
{
    return PQgetvalue(r, row, col)[0] == 't';
}

void pg_result_free(struct pg_result **r)
{
    PQclear(*r);
    *r = NULL;
}

static enum err array_item(struct buf *out, const char *item)
{
    if (!item)
        return buf_append_str(out, "NULL");
    enum err err = buf_append_char(out, '"');
    for (const char *s = item; *s && !err; s++) {
        if (*s == '"' || *s == '\\')
            err = buf_append_char(out, '\\');
        if (!err)
            err = buf_append_char(out, *s);
    }
    return err ? err : buf_append_char(out, '"');
}

enum err pg_array(struct buf *out, const char *const *items, size_t n)
{
    enum err err = buf_append_char(out, '{');
    for (size_t i = 0; i < n && !err; i++) {
        if (i > 0)
            err = buf_append_char(out, ',');
        if (!err)
            err = array_item(out, items[i]);
    }
    return err ? err : buf_append_char(out, '}');
}
