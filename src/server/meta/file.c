#include "server/meta/file.h"
#include "server/server.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct meta_file meta_file_of(const struct pg_result *res, int row, int first)
{
    return (struct meta_file){
        .id = pg_str_or_null(res, row, first),
        .name = pg_str_or_null(res, row, first + 1),
        .folder = strcmp(pg_str(res, row, first + 2), "folder") == 0,
        .size = pg_is_null(res, row, first + 3) ? -1 : pg_i64(res, row, first + 3),
        .mime_type = pg_str_or_null(res, row, first + 4),
        .parent_id = pg_str_or_null(res, row, first + 5),
        .starred = pg_bool(res, row, first + 6),
        .shared = pg_bool(res, row, first + 7),
        .modified = {pg_i64(res, row, first + 8)},
        .accessed = {pg_i64(res, row, first + 9)},
        .version = pg_i64(res, row, first + 10),
        .path = pg_str_or_null(res, row, first + 11),
    };
}

struct meta_file meta_file_keep(struct arena *mem, struct meta_file f)
{
    f.id = arena_strdup(mem, f.id);
    f.name = arena_strdup(mem, f.name);
    f.mime_type = arena_strdup(mem, f.mime_type);
    f.parent_id = arena_strdup(mem, f.parent_id);
    f.path = arena_strdup(mem, f.path);
    return f;
}

enum err meta_find(struct server *s, const char *account_id, const char *id, struct arena *mem, struct meta_file *out,
                   struct errinfo *ei)
{
    static const char sql[] = "SELECT" META_FILE_COLUMNS "FROM drive_get($1, $2) WHERE deleted_at IS NULL"
                              " AND id IS NOT NULL";
    const char *params[] = {account_id, id};
    struct pg_result *res = NULL;
    enum err err = pg_run(s->pg, sql, 2, params, &res, ei);
    if (err)
        return err;
    if (pg_rows(res) > 0)
        *out = meta_file_keep(mem, meta_file_of(res, 0, 0));
    else
        err = err_set(ei, ERR_NOTFOUND, "no such file");
    pg_result_free(&res);
    return err;
}

void meta_file_fields(struct jsonw *w, const struct meta_file *f)
{
    char text[32];
    jsonw_str(w, "id", f->id);
    jsonw_str(w, "name", f->name);
    jsonw_str(w, "type", f->folder ? "folder" : "file");
    if (f->folder)
        jsonw_null(w, "size");
    else
        jsonw_i64(w, "size", f->size);
    jsonw_str(w, "mimeType", f->mime_type);
    jsonw_str(w, "parentId", f->parent_id);
    jsonw_bool(w, "starred", f->starred);
    jsonw_bool(w, "shared", f->shared);
    jsonw_str(w, "modified", wall_format(text, sizeof text, f->modified));
    jsonw_str(w, "accessedAt", wall_format(text, sizeof text, f->accessed));
    snprintf(text, sizeof text, "%" PRId64, f->version);
    jsonw_str(w, "version", text);
}

void meta_file_json(struct jsonw *w, const char *key, const struct meta_file *f)
{
    jsonw_object(w, key);
    meta_file_fields(w, f);
    jsonw_end_object(w);
}

void meta_reply_file(struct request *r, int status, const struct meta_file *f)
{
    struct buf out = BUF_INIT(64 << 10);
    struct jsonw w;
    jsonw_init(&w, &out);
    meta_file_json(&w, NULL, f);
    reply_json(r, status, &out);
    buf_done(&out);
}
