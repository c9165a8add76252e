/* Each call is its statement and its parameters; the statement's text is what the connection knows it by. */
#include "server/meta/calls.h"
#include <inttypes.h>
#include <stdlib.h>

#define PARAMS_MAX 12
#define ROWS                                                                                                           \
    "SELECT refused, detail, seq, event, data, keys, id, name, type, size, mime_type, parent_id, starred,"             \
    " shared, modified, accessed_at, version, path FROM "

/* The parameters of a call as text. */
struct params {
    struct arena *mem;
    const char *v[PARAMS_MAX];
    int n;
};

static void p_str(struct params *p, const char *s)
{
    if (p->n == PARAMS_MAX) /* one parameter too many is a bug that must not go unseen in a release */
        abort();
    p->v[p->n++] = s;
}

static void p_i64(struct params *p, int64_t v)
{
    p_str(p, arena_printf(p->mem, "%" PRId64, v));
}

/* An array of texts; items NULL is SQL NULL. */
static void p_array(struct params *p, const char *const *items, size_t n)
{
    struct buf text = BUF_INIT(64 << 20);
    if (!items) {
        p_str(p, NULL);
        return;
    }
    p_str(p, pg_array(&text, items, n) == ERR_OK ? arena_strndup(p->mem, buf_cstr(&text), text.len) : NULL);
    buf_done(&text);
}

static struct params params_who(const struct meta_who *who, struct arena *mem)
{
    struct params p = {.mem = mem};
    p_str(&p, who->account_id);
    p_str(&p, who->user_id);
    return p;
}

static const char *micros(struct arena *mem, struct wall t)
{
    return t.us == INT64_MIN ? NULL : arena_printf(mem, "%" PRId64, t.us);
}

#define WRITE(sql)                                                                                                     \
    static const char text[] = ROWS sql;                                                                               \
    return meta_write(s, who->account_id, text, p.n, p.v, mem, out, ei)
#define WRITE_LONG(sql)                                                                                                \
    static const char text[] = ROWS sql;                                                                               \
    return meta_write_long(s, who->account_id, text, p.n, p.v, mem, out, ei)

enum err meta_folder_create(struct server *s, const struct meta_who *who, const char *parent, const char *name,
                            struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    p_str(&p, parent);
    p_str(&p, name);
    WRITE("drive_folder_create($1, $2, $3, $4)");
}

enum err meta_folder_path(struct server *s, const struct meta_who *who, const char *parent, const char *const *names,
                          size_t n, struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    p_str(&p, parent);
    p_array(&p, names, n);
    WRITE("drive_folder_path($1, $2, $3, $4)");
}

/* One field of every item as an array parameter. */
#define P_COLUMN(expr)                                                                                                 \
    do {                                                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                 \
            column[i] = (expr);                                                                                        \
        p_array(&p, column, n);                                                                                        \
    } while (0)

enum err meta_upload_commit(struct server *s, const struct meta_who *who, const struct meta_upload *items, size_t n,
                            const char *reservation, struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    const char **column = arena_alloc(mem, (n + 1) * sizeof *column);
    P_COLUMN(items[i].parent_id);
    P_COLUMN(items[i].name);
    P_COLUMN(arena_printf(mem, "%" PRIu64, items[i].size));
    P_COLUMN(items[i].mime_type);
    P_COLUMN(items[i].path);
    P_COLUMN(micros(mem, items[i].modified));
    p_str(&p, reservation);
    WRITE("drive_upload_commit_many($1, $2, $3, $4, $5, $6, $7, $8, $9)");
}

enum err meta_replace_commit(struct server *s, const struct meta_who *who, const char *file_id,
                             const struct meta_guard *guard, const struct meta_upload *content, const char *reservation,
                             struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    p_str(&p, who->session_id);
    p_str(&p, file_id);
    p_array(&p, guard->if_match, guard->n);
    p_i64(&p, (int64_t)content->size);
    p_str(&p, content->mime_type);
    p_str(&p, content->path);
    p_str(&p, micros(mem, content->modified));
    p_str(&p, reservation);
    p_str(&p, guard->lock_id);
    WRITE("drive_replace_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
}

enum err meta_rename(struct server *s, const struct meta_who *who, const char *id, const char *name, struct arena *mem,
                     struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    p_str(&p, id);
    p_str(&p, name);
    WRITE("drive_rename($1, $2, $3, $4)");
}

enum err meta_move(struct server *s, const struct meta_who *who, const char *const *ids, size_t n, const char *target,
                   struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    p_array(&p, ids, n);
    p_str(&p, target);
    WRITE("drive_move($1, $2, $3, $4)");
}

enum err meta_mark(struct server *s, const struct meta_who *who, const char *const *ids, size_t n, const char *mark,
                   bool on, struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    p_array(&p, ids, n);
    p_str(&p, mark);
    p_str(&p, on ? "true" : "false");
    WRITE("drive_mark($1, $2, $3, $4, $5)");
}

static struct params params_bounded(const struct meta_who *who, const char *const *ids, size_t n, int64_t max_items,
                                    struct arena *mem)
{
    struct params p = params_who(who, mem);
    p_array(&p, ids, n);
    p_str(&p, max_items ? arena_printf(mem, "%" PRId64, max_items) : NULL);
    return p;
}

enum err meta_trash(struct server *s, const struct meta_who *who, const char *const *ids, size_t n, int64_t max_items,
                    struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_bounded(who, ids, n, max_items, mem);
    WRITE("drive_trash($1, $2, $3, $4)");
}

enum err meta_restore(struct server *s, const struct meta_who *who, const char *const *ids, size_t n, int64_t max_items,
                      struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_bounded(who, ids, n, max_items, mem);
    WRITE("drive_restore($1, $2, $3, $4)");
}

enum err meta_copy_commit(struct server *s, const struct meta_who *who, const char *job_id, struct arena *mem,
                          struct meta_result *out, struct errinfo *ei)
{
    struct params p = params_who(who, mem);
    p_str(&p, job_id);
    WRITE_LONG("drive_copy_commit($1, $2, $3)");
}

enum err meta_room(struct server *s, const struct meta_who *who, int64_t *bytes, struct errinfo *ei)
{
    static const char text[] = "SELECT storage_limit - storage_used - storage_reserved FROM users WHERE id = $1";
    struct pg_result *res = NULL;
    enum err err = pg_run(s->pg, text, 1, &who->account_id, &res, ei);
    if (err)
        return err;
    *bytes = pg_rows(res) > 0 && !pg_is_null(res, 0, 0) ? pg_i64(res, 0, 0) : META_NO_LIMIT;
    pg_result_free(&res);
    return ERR_OK;
}

enum err meta_upload_check(struct server *s, const struct meta_who *who, const char *parent, uint64_t bytes,
                           struct arena *mem, struct meta_result *out, struct errinfo *ei)
{
    static const char text[] = ROWS "drive_upload_check($1, $2, $3)";
    struct params p = {.mem = mem};
    p_str(&p, who->account_id);
    p_str(&p, parent);
    p_i64(&p, (int64_t)bytes);
    return meta_read(s, text, p.n, p.v, mem, out, ei);
}

enum err meta_replace_check(struct server *s, const struct meta_who *who, const char *file_id,
                            const struct meta_guard *guard, uint64_t bytes, struct arena *mem, struct meta_result *out,
                            struct errinfo *ei)
{
    static const char text[] = ROWS "drive_replace_check($1, $2, $3, $4, $5, $6)";
    struct params p = {.mem = mem};
    p_str(&p, who->account_id);
    p_str(&p, who->session_id);
    p_str(&p, file_id);
    p_array(&p, guard->if_match, guard->n);
    p_i64(&p, (int64_t)bytes);
    p_str(&p, guard->lock_id);
    return meta_read(s, text, p.n, p.v, mem, out, ei);
}
