/* Listings. Folders come first whatever the order, so a page is the end of the folders and the beginning of the files:
 * each of the two reads one index, either way round, from where the cursor says. Static texts, one for each order and
 * place, because a condition that is sometimes absent would keep Postgres from using the index for it. What is shown of
 * a key must not be called k itself: ORDER BY would take it, a text, for the key. */
#include "base/log.h"
#include "base/mem.h"
#include "server/http/fields.h"
#include "server/http/page.h"
#include "server/http/route.h"
#include "server/meta/meta.h"
#include <stdio.h>
#include <string.h>

#define LIST_LIMIT_DEFAULT 200

/* ---- the statements ---- */

enum place { FROM_START, WITHIN_FOLDERS, WITHIN_FILES, PLACES };

#define RUN(rank, kind, key, dir, beyond)                                                                              \
    "(SELECT " rank " AS rank, f.*, " key " AS k FROM files f WHERE user_id = $1 AND coalesce(parent_id, '') = $2"     \
    " AND type = '" kind "' AND deleted_at IS NULL" beyond " ORDER BY " key " " dir ", id " dir " LIMIT $3)"
#define BEYOND(key, cmp, param) " AND (" key ", id) " cmp " (" param ", $5)"
#define PAGE(runs, shown, dir)                                                                                         \
    "SELECT" META_FILE_COLUMNS ", " shown " FROM (" runs ") AS f ORDER BY rank, k " dir ", id " dir " LIMIT $3"
#define ORDER(key, param, shown, dir, cmp)                                                                             \
    {                                                                                                                  \
        PAGE(RUN("0", "folder", key, dir, "") " UNION ALL " RUN("1", "file", key, dir, ""), shown, dir),               \
            PAGE(RUN("0", "folder", key, dir, BEYOND(key, cmp, param)) " UNION ALL " RUN("1", "file", key, dir, ""),   \
                 shown, dir),                                                                                          \
            PAGE(RUN("1", "file", key, dir, BEYOND(key, cmp, param)), shown, dir)                                      \
    }
#define SORT(name, key, param, shown, numeric)                                                                         \
    {                                                                                                                  \
        name, numeric,                                                                                                 \
        {                                                                                                              \
            ORDER(key, param, shown, "ASC", ">"), ORDER(key, param, shown, "DESC", "<")                                \
        }                                                                                                              \
    }

static const struct sort {
    const char *name;
    bool numeric; /* the cursor's key is a number */
    const char *sql[2][PLACES];
} sorts[] = {
    SORT("name", "name", "$4", "k", false),
    SORT("size", "coalesce(size, 0)", "$4::bigint", "k::text AS shown", true),
    SORT("modified", "modified", "drive_time($4::bigint)", "drive_us(k)::text", true),
    SORT("accessedAt", "accessed_at", "drive_time($4::bigint)", "drive_us(k)::text", true),
};

#define MARKED(where, key, param, shown, more, dir, cmp, beyond)                                                       \
    "SELECT" META_FILE_COLUMNS ", " shown more " FROM files WHERE user_id = $1 AND " where beyond " ORDER BY " key     \
    " " dir ", id " dir " LIMIT $2"
#define LIVE_STARRED "starred AND deleted_at IS NULL"
static const char *const starred_sql[] = {
    MARKED(LIVE_STARRED, "name", "$3", "name", "", "ASC", ">", ""),
    MARKED(LIVE_STARRED, "name", "$3", "name", "", "ASC", ">", " AND (name, id) > ($3, $4)"),
};
#define TRASH(dir, beyond)                                                                                             \
    MARKED("trash_root = id", "deleted_at", "", "drive_us(deleted_at)::text", ", drive_us(deleted_at)", dir, "", beyond)
static const char *const trash_sql[2][2] = {
    {TRASH("ASC", ""), TRASH("ASC", " AND (deleted_at, id) > (drive_time($3::bigint), $4)")},
    {TRASH("DESC", ""), TRASH("DESC", " AND (deleted_at, id) < (drive_time($3::bigint), $4)")},
};
enum { COL_KEY = META_FILE_COLUMN_COUNT, COL_DELETED };

/* ---- a page as the answer ---- */

/* What a listing call asks for. */
struct wanted {
    int64_t limit;
    char listing[32]; /* order, as the cursor names it */
    const struct sort *sort;
    bool descending, has_mark, trash;
    struct page_mark mark;
};

static MAY_YIELD bool read_cursor(struct request *r, struct wanted *w, bool numeric)
{
    const char *text = req_query(r, "cursor");
    int64_t n;
    if (!text || !*text)
        return true;
    w->has_mark =
        page_cursor_read(r->mem, text, w->listing, &w->mark) && (!numeric || sv_to_i64(sv_of(w->mark.key), &n));
    if (!w->has_mark)
        reply_message(r, 400, "INVALID_CURSOR", "This cursor is not one of this listing in this order");
    return w->has_mark;
}

static MAY_YIELD bool read_order(struct request *r, struct wanted *w, bool descending)
{
    const char *order = req_query(r, "order");
    w->descending = descending;
    if (!order || !*order)
        return true;
    struct sv o = sv_of(order);
    w->descending = sv_ieq(o, SV("desc"));
    if (w->descending || sv_ieq(o, SV("asc")))
        return true;
    reply_message(r, 400, "BAD_REQUEST", "order must be asc or desc");
    return false;
}

static MAY_YIELD bool read_sort(struct request *r, struct wanted *w)
{
    const char *by = req_query(r, "sortBy");
    w->sort = &sorts[0];
    if (!by || !*by)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(sorts); i++) {
        if (strcmp(by, sorts[i].name) == 0) {
            w->sort = &sorts[i];
            return true;
        }
    }
    reply_message(r, 400, "BAD_REQUEST", "sortBy must be name, size, modified or accessedAt");
    return false;
}

/* An array of file objects; one row more than the page was asked for, so that its end is known. */
static MAY_YIELD void reply_page(struct request *r, const struct wanted *want, const struct pg_result *res)
{
    struct buf out = BUF_INIT(4 << 20);
    struct jsonw w;
    char text[32];
    int rows = pg_rows(res), shown = rows > want->limit ? (int)want->limit : rows;
    jsonw_init(&w, &out);
    jsonw_array(&w, NULL);
    bool stale = fault_hit(r->server, FAULT_STALE_LISTING);
    for (int i = 0; i < shown; i++) {
        struct meta_file f = meta_file_of(res, i, 0);
        if (stale && !f.folder && wall_now().us - f.modified.us < 10 * US_PER_S)
            continue;
        jsonw_object(&w, NULL);
        meta_file_fields(&w, &f);
        if (want->trash)
            jsonw_str(&w, "deletedAt", wall_format(text, sizeof text, (struct wall){pg_i64(res, i, COL_DELETED)}));
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    if (shown < rows) {
        struct meta_file last = meta_file_of(res, shown - 1, 0);
        const struct page_mark mark = {want->listing, last.folder ? "folder" : "file", pg_str(res, shown - 1, COL_KEY),
                                       last.id};
        reply_header(r, "X-Next-Cursor", "%s", page_cursor_make(r->mem, &mark));
    }
    reply_header(r, "Cache-Control", "no-store");
    if (w.err)
        reply_message(r, 500, NULL, "The listing could not be written");
    else
        reply_json(r, 200, &out);
    buf_done(&out);
}

static const char *one_more(struct request *r, int64_t limit)
{
    return arena_printf(r->mem, "%lld", (long long)limit + 1);
}

/* An empty page of a folder may mean that there is no such folder: only then is it worth a question. */
static MAY_YIELD bool folder_is_there(struct request *r, const char *parent)
{
    struct meta_file f;
    struct errinfo ei;
    enum err err = meta_find(r->server, r->login.account_id, parent, r->mem, &f, &ei);
    if (err == ERR_OK && f.folder)
        return true;
    if (err == ERR_OK || err == ERR_NOTFOUND)
        meta_reply_refusal(r, "PARENT_NOT_FOUND", NULL);
    else
        reply_error(r, &ei);
    return false;
}

static MAY_YIELD void get_listing(struct request *r)
{
    struct wanted want = {0};
    struct pg_result *res = NULL;
    struct errinfo ei;
    const char *parent = req_query(r, "parentId");
    if (!query_int(r, "limit", 1, DRIVE_LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &want.limit) || !read_sort(r, &want) ||
        !read_order(r, &want, false))
        return;
    snprintf(want.listing, sizeof want.listing, "%s.%s", want.sort->name, want.descending ? "desc" : "asc");
    if (!read_cursor(r, &want, want.sort->numeric))
        return;
    enum place place = !want.has_mark                          ? FROM_START
                       : strcmp(want.mark.type, "folder") == 0 ? WITHIN_FOLDERS
                                                               : WITHIN_FILES;
    const char *params[] = {r->login.account_id, parent ? parent : "", one_more(r, want.limit), want.mark.key,
                            want.mark.id};
    if (pg_run(r->server->pg, want.sort->sql[want.descending][place], want.has_mark ? 5 : 3, params, &res, &ei)) {
        reply_error(r, &ei);
        return;
    }
    if (pg_rows(res) > 0 || !parent || !*parent || folder_is_there(r, parent))
        reply_page(r, &want, res);
    pg_result_free(&res);
}

/* Starred items and the trash: marked items of the whole account. */
static MAY_YIELD void get_marked(struct request *r, struct wanted *want, const char *const sql[2], bool numeric)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (!read_cursor(r, want, numeric))
        return;
    const char *params[] = {r->login.account_id, one_more(r, want->limit), want->mark.key, want->mark.id};
    if (pg_run(r->server->pg, sql[want->has_mark], want->has_mark ? 4 : 2, params, &res, &ei)) {
        reply_error(r, &ei);
        return;
    }
    reply_page(r, want, res);
    pg_result_free(&res);
}

static MAY_YIELD void get_starred(struct request *r)
{
    struct wanted want = {.listing = "starred"};
    if (query_int(r, "limit", 1, DRIVE_LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &want.limit))
        get_marked(r, &want, starred_sql, false);
}

static MAY_YIELD void get_trash(struct request *r)
{
    struct wanted want = {.trash = true};
    if (!query_int(r, "limit", 1, DRIVE_LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT, &want.limit) || !read_order(r, &want, true))
        return;
    snprintf(want.listing, sizeof want.listing, "trash.%s", want.descending ? "desc" : "asc");
    get_marked(r, &want, trash_sql[want.descending], true);
}

/* ---- without pages ---- */

static MAY_YIELD void get_rows(struct request *r, const char *sql, int n, const char *const *params, int64_t limit)
{
    const struct wanted want = {.limit = limit};
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(r->server->pg, sql, n, params, &res, &ei)) {
        reply_error(r, &ei);
        return;
    }
    reply_page(r, &want, res);
    pg_result_free(&res);
}

static MAY_YIELD void get_recent(struct request *r)
{
    static const char sql[] = "SELECT" META_FILE_COLUMNS "FROM files WHERE user_id COLLATE \"C\" = $1 AND type = 'file'"
                              " AND deleted_at IS NULL ORDER BY accessed_at DESC, id DESC LIMIT $2";
    int64_t limit;
    if (!query_int(r, "limit", 1, DRIVE_LIST_LIMIT_MAX, 10, &limit))
        return;
    const char *params[] = {r->login.account_id, arena_printf(r->mem, "%lld", (long long)limit)};
    get_rows(r, sql, 2, params, limit);
}

static MAY_YIELD void get_search(struct request *r)
{
    static const char sql[] = "SELECT" META_FILE_COLUMNS "FROM drive_search($1, $2, $3) ORDER BY name, id";
    const char *q = req_query(r, "q");
    int64_t limit;
    if (!q)
        q = req_query(r, "query");
    if (!q || sv_trim(sv_of(q)).n == 0) {
        reply_message(r, 400, "BAD_REQUEST", "q must say what to search for");
        return;
    }
    if (!query_int(r, "limit", 1, DRIVE_LIST_LIMIT_MAX, 50, &limit))
        return;
    const char *params[] = {r->login.account_id, q, arena_printf(r->mem, "%lld", (long long)limit)};
    get_rows(r, sql, 3, params, limit);
}

static MAY_YIELD void reply_object(struct request *r, struct jsonw *w)
{
    jsonw_end_object(w);
    reply_header(r, "Cache-Control", "no-store");
    if (w->err)
        reply_message(r, 500, NULL, "The answer could not be written");
    else
        reply_json(r, 200, w->out);
    buf_done(w->out);
}

static MAY_YIELD void get_stats(struct request *r)
{
    static const char sql[] = "SELECT count(*) FILTER (WHERE type = 'file'), count(*) FILTER (WHERE type = 'folder'),"
                              " (SELECT count(*) FROM files WHERE user_id = $1 AND shared AND deleted_at IS NULL),"
                              " (SELECT count(*) FROM files WHERE user_id = $1 AND starred AND deleted_at IS NULL)"
                              " FROM files WHERE user_id = $1 AND deleted_at IS NULL";
    static const char *const names[] = {"totalFiles", "totalFolders", "sharedCount", "starredCount"};
    const char *params[] = {r->login.account_id};
    struct pg_result *res = NULL;
    struct buf out = BUF_INIT(1024);
    struct errinfo ei;
    struct jsonw w;
    if (pg_run(r->server->pg, sql, 1, params, &res, &ei)) {
        reply_error(r, &ei);
        return;
    }
    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    for (int i = 0; i < (int)ARRAY_LEN(names); i++)
        jsonw_i64(&w, names[i], pg_i64(res, 0, i));
    pg_result_free(&res);
    reply_object(r, &w);
}

/* One item, and where it is. A folder's totals are those kept with it: they count trashed items too, as the storage use
 * does. */
static MAY_YIELD void get_info(struct request *r)
{
    static const char sql[] =
        "SELECT" META_FILE_COLUMNS ", aggregate_size, aggregate_file_count, aggregate_folder_count,"
        " (SELECT coalesce(json_agg(p.name ORDER BY c.n DESC), '[]') FROM unnest(drive_chain(f.parent_id))"
        " WITH ORDINALITY AS c (id, n) JOIN files p ON p.id = c.id)"
        " FROM drive_get($1, $2) AS f WHERE id IS NOT NULL AND deleted_at IS NULL";
    const char *params[] = {r->login.account_id, r->params[0]};
    struct pg_result *res = NULL;
    struct buf out = BUF_INIT(1 << 20);
    struct errinfo ei;
    struct jsonw w;
    if (pg_run(r->server->pg, sql, 2, params, &res, &ei)) {
        reply_error(r, &ei);
        return;
    }
    if (pg_rows(res) == 0) {
        pg_result_free(&res);
        meta_reply_refusal(r, "NOT_FOUND", NULL);
        return;
    }
    struct meta_file f = meta_file_of(res, 0, 0);
    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    meta_file_fields(&w, &f);
    jsonw_raw(&w, "locationPath", sv_of(pg_str(res, 0, META_FILE_COLUMN_COUNT + 3)));
    if (f.folder) {
        jsonw_object(&w, "folderInfo");
        jsonw_i64(&w, "totalSize", pg_i64(res, 0, META_FILE_COLUMN_COUNT));
        jsonw_i64(&w, "fileCount", pg_i64(res, 0, META_FILE_COLUMN_COUNT + 1));
        jsonw_i64(&w, "folderCount", pg_i64(res, 0, META_FILE_COLUMN_COUNT + 2));
        jsonw_end_object(&w);
    }
    pg_result_free(&res);
    reply_object(r, &w);
}

const struct route routes_files[] = {
    {"GET", "/api/files", 0, 0, get_listing},         {"GET", "/api/files/search", 0, 0, get_search},
    {"GET", "/api/files/recent", 0, 0, get_recent},   {"GET", "/api/files/stats", 0, 0, get_stats},
    {"GET", "/api/files/starred", 0, 0, get_starred}, {"GET", "/api/files/trash", 0, 0, get_trash},
    {"GET", "/api/files/:id/info", 0, 0, get_info},   {0},
};
