#include "server/objects/archive.h"
#include "server/objects/content_out.h"

#include "base/log.h"
#include "base/mem.h"
#include "drive/path.h"
#include "server/http/disposition.h"
#include "server/meta/meta.h"
#include "server/objects/content.h"
#include "server/objects/zip.h"

#include <string.h>

#define ENTRIES_MAX 200000 /* a hundred bytes or two each are held while the archive is sent */
#define PIECES_MAX  (1 << 20)

struct entry {
    struct entry *next;
    const char *id, *name, *key; /* name: the path inside the archive; key NULL: a folder */
    uint64_t size;
    struct wall modified;
};
struct archive {
    struct request *r;
    struct meta_who who;
    struct entry *entries, **tail;
    size_t n;
    struct zip *zip;
    struct buf out;
};

/* ---- what goes in ---- */

/* Items of different folders may have one name: at the top of the archive they are told apart by numbers. */
static const char *name_once(struct arena *mem, const char *name, const char *const *taken, size_t n)
{
    char numbered[DRIVE_NAME_MAX + 1];
    const char *tried = name;
    for (unsigned k = 1;; k++) {
        size_t i = 0;
        while (i < n && strcmp(taken[i], tried) != 0)
            i++;
        if (i == n)
            return tried == name ? name : arena_strdup(mem, tried);
        path_numbered(numbered, sizeof(numbered), name, k, DRIVE_NAME_MAX);
        tried = numbered;
    }
}

/* The ids with their names in the archive, as two parameters of the query. Answers and returns false when one is
 * missing. */
static MAY_YIELD bool find_tops(struct archive *a, const char *const *ids, size_t n, const char **id_array,
                                const char **name_array)
{
    struct request *r = a->r;
    const char **names = arena_alloc(r->mem, n * sizeof(*names));
    struct buf id_text = BUF_INIT(1 << 20), name_text = BUF_INIT(1 << 20);
    for (size_t i = 0; i < n; i++) {
        struct meta_file f;
        struct errinfo ei;
        enum err e = meta_find(r->server, a->who.account_id, ids[i], r->mem, &f, &ei);
        if (e == ERR_NOTFOUND)
            meta_reply_refusal(r, "NOT_FOUND", NULL);
        else if (e != ERR_OK)
            reply_error(r, &ei);
        if (e != ERR_OK)
            return false;
        names[i] = name_once(r->mem, f.name, names, i);
    }
    bool ok = pg_array(&id_text, ids, n) == ERR_OK && pg_array(&name_text, names, n) == ERR_OK;
    *id_array = arena_strdup(r->mem, buf_cstr(&id_text));
    *name_array = arena_strdup(r->mem, buf_cstr(&name_text));
    buf_done(&id_text);
    buf_done(&name_text);
    if (!ok)
        reply_message(r, 413, "TOO_MANY", "These are too many items for one archive");
    return ok;
}

static bool add_entry(void *arg, const struct pg_result *row)
{
    struct archive *a = arg;
    struct arena *mem = a->r->mem;
    struct entry *e = arena_alloc(mem, sizeof(*e));
    e->id = arena_strdup(mem, pg_str(row, 0, 0));
    e->name = arena_strdup(mem, pg_str(row, 0, 1));
    e->key = pg_is_null(row, 0, 2) ? NULL : arena_strdup(mem, pg_str(row, 0, 2));
    e->size = (uint64_t)pg_i64(row, 0, 3);
    e->modified.us = pg_i64(row, 0, 4);
    *a->tail = e;
    a->tail = &e->next;
    return ++a->n <= ENTRIES_MAX;
}

/* Depth is bounded, so that a cycle made by hand ends. */
static const char entries_sql[] =
    "WITH RECURSIVE t AS ("
    " SELECT f.id, f.type, i.name COLLATE \"C\" AS place, 1 AS depth FROM unnest($2::text[], $3::text[]) AS i (id, "
    "name)"
    " JOIN files f ON f.id = i.id AND f.user_id = $1 AND f.deleted_at IS NULL"
    " UNION ALL"
    " SELECT c.id, c.type, t.place || '/' || c.name, t.depth + 1 FROM t JOIN files c ON c.parent_id = t.id"
    " WHERE t.type = 'folder' AND c.deleted_at IS NULL AND t.depth < 200)"
    " SELECT f.id, t.place, f.path, f.size, drive_us(f.modified) FROM t JOIN files f ON f.id = t.id"
    " ORDER BY t.place";

static MAY_YIELD bool find_entries(struct archive *a, const char *const *ids, size_t n)
{
    struct request *r = a->r;
    const char *params[] = {a->who.account_id, NULL, NULL};
    struct pg *c = NULL;
    struct errinfo ei;
    if (!find_tops(a, ids, n, &params[1], &params[2]))
        return false;
    enum err e = pg_take(r->server->pg, &c, &ei);
    if (e == ERR_OK) {
        e = pg_each(c, entries_sql, 3, params, add_entry, a, &ei);
        pg_give(&c);
    }
    if (e != ERR_OK)
        reply_error(r, &ei);
    else if (a->n > ENTRIES_MAX)
        reply_message(r, 413, "TOO_MANY", "An archive holds at most %d items; take fewer folders at a time",
                      ENTRIES_MAX);
    return e == ERR_OK && a->n <= ENTRIES_MAX;
}

/* ---- sending ---- */

static MAY_YIELD enum err flush(struct archive *a)
{
    enum err e = reply_write(a->r, a->out.data, a->out.len);
    buf_reset(&a->out);
    return e;
}

/* The file's content, opened. Since the list was made it may have been replaced: then it goes in as it is now. Or
 * deleted: then it is left out, and *reader stays NULL. */
static MAY_YIELD enum err open_entry(struct archive *a, struct entry *e, struct content_reader **reader,
                                     struct errinfo *ei)
{
    struct server *s = a->r->server;
    enum err err = content_open(s, e->key, e->size, 0, e->size, reader, ei);
    for (int i = 0; err == ERR_NOTFOUND && i < 3; i++) {
        struct meta_file now;
        enum err found = meta_find(s, a->who.account_id, e->id, a->r->mem, &now, ei);
        if (found == ERR_NOTFOUND)
            return ERR_OK;
        if (found != ERR_OK)
            return found;
        if (strcmp(now.path, e->key) == 0)
            break;
        e->key = now.path;
        e->size = (uint64_t)now.size;
        e->modified = now.modified;
        err = content_open(s, e->key, e->size, 0, e->size, reader, ei);
    }
    return err;
}

static MAY_YIELD enum err send_content(struct archive *a, struct content_reader *reader, struct errinfo *ei)
{
    struct sv piece = {"", 1};
    enum err e = ERR_OK;
    while (e == ERR_OK && piece.n > 0) {
        e = content_next(reader, &piece, ei);
        if (e == ERR_OK && piece.n > 0)
            e = zip_data(a->zip, piece.p, piece.n, &a->out);
        if (e == ERR_OK && piece.n > 0)
            e = flush(a);
    }
    return e;
}

static MAY_YIELD enum err send_entry(struct archive *a, struct entry *e, struct errinfo *ei)
{
    struct content_reader *reader = NULL;
    enum err err = e->key ? open_entry(a, e, &reader, ei) : ERR_OK;
    if (err != ERR_OK || (e->key && !reader))
        return err;
    const struct zip_entry entry = {e->name, e->size, e->modified, !e->key};
    err = zip_begin(a->zip, &entry, &a->out);
    if (err == ERR_OK && reader)
        err = send_content(a, reader, ei);
    if (err == ERR_OK)
        err = zip_end(a->zip, &a->out);
    if (err == ERR_OK && a->out.len >= 32768) /* heads of folders and empty files go together */
        err = flush(a);
    if (err == ERR_OK && reader)
        meta_touch(a->r->server, &a->who, e->id);
    content_close(&reader);
    return err;
}

/* An archive that cannot be finished is cut, so that no client takes it for a whole one. */
static MAY_YIELD void send_archive(struct archive *a)
{
    struct errinfo ei = {0};
    const struct buf *directory = NULL;
    enum err e = reply_begin(a->r, 200, "application/zip", -1);
    if (strcmp(a->r->method, "HEAD") == 0) {
        reply_end(a->r, true);
        return;
    }
    for (struct entry *at = a->entries; e == ERR_OK && at; at = at->next)
        e = send_entry(a, at, &ei);
    if (e == ERR_OK)
        e = zip_finish(a->zip, &directory);
    if (e == ERR_OK)
        e = flush(a);
    if (e == ERR_OK)
        e = reply_write(a->r, directory->data, directory->len);
    if (e != ERR_OK && e != ERR_CLOSED)
        LOGE("download", "an archive was cut: %s", ei.code != ERR_OK ? err_message(&ei) : err_text(e));
    reply_end(a->r, e == ERR_OK);
}

void reply_archive(struct request *r, const char *const *ids, size_t n, const char *filename)
{
    struct archive a = {.r = r, .who = meta_who(&r->login), .out = BUF_INIT(PIECES_MAX)};
    struct buf disposition = BUF_INIT(4096);
    a.tail = &a.entries;
    if (find_entries(&a, ids, n)) {
        if (disposition_write(&disposition, arena_printf(r->mem, "%s.zip", filename)) == ERR_OK)
            reply_header(r, "Content-Disposition", "%s", buf_cstr(&disposition));
        reply_header(r, "Cache-Control", "private, no-store");
        a.zip = zip_new();
        send_archive(&a);
        zip_free(&a.zip);
    }
    buf_done(&disposition);
    buf_done(&a.out);
}
