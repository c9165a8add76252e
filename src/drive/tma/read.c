/* The reading calls of the tma dialect. */
#include "drive/tma/read.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

#define CURSOR_MAX 1024
#define PAGES_MAX  100000

static struct tma_call get(struct buf *path)
{
    return (struct tma_call){.method = "GET", .path = path};
}

/* A listing that is being gathered page by page. */
struct pages {
    struct arena *mem;
    struct drive_file *items; /* malloc'ed while it grows */
    size_t n, cap;
    char cursor[CURSOR_MAX]; /* of the next page; "" at the start and the end */
};

static void pages_add(struct pages *p, const struct drive_listing *page)
{
    if (p->n + page->n > p->cap) {
        p->cap = (p->n + page->n) * 2;
        p->items = mem_realloc_array(p->items, p->cap, sizeof *p->items);
    }
    if (page->n)
        memcpy(p->items + p->n, page->items, page->n * sizeof *p->items);
    p->n += page->n;
}

static enum err pages_next(struct pages *p, const struct http_resp *resp, struct api_result *r)
{
    struct sv next = http_resp_header(resp, WIRE_CURSOR_HEADER);
    if (next.n >= sizeof p->cursor)
        return api_wrong(r, "the listing's cursor is longer than 1,023 bytes");
    if (next.n && sv_eq_cstr(next, p->cursor))
        return api_wrong(r, "the listing's cursor repeats: the next page is the same page");
    memcpy(p->cursor, next.n ? next.p : "", next.n);
    p->cursor[next.n] = '\0';
    return ERR_OK;
}

/* What a listing shows about the server. */
static void note_caps(struct api *a, const struct drive_listing *page, bool has_next)
{
    if (page->n > DRIVE_LIST_LIMIT_MAX && !has_next)
        a->caps &= ~(unsigned)API_CAP_PAGING;
    size_t files = 0, versions = 0;
    for (size_t i = 0; i < page->n; i++) {
        files += !page->items[i].folder;
        versions += !page->items[i].folder && page->items[i].version;
    }
    if (files > 0 && versions == 0) /* one that lacks it among others is that file's business */
        a->caps &= ~(unsigned)API_CAP_VERSIONS;
}

static enum err endless(const struct api *a, struct api_result *r)
{
    char text[80];
    str_format(text, sizeof text, API_LISTING_ENDLESS, a->listing_most);
    return api_wrong(r, text);
}

static MAY_YIELD enum err one_page(struct api *a, const struct tma_call *c, struct pages *p, struct api_result *r)
{
    struct http_resp resp;
    struct json *j = NULL;
    struct drive_listing page = {0};
    enum err err = tma_call(a, c, &resp, r);
    if (err || r->outcome != OUT_OK) {
        p->cursor[0] = '\0';
        goto out;
    }
    if (json_parse(buf_cstr(&resp.body), resp.body.len, &j, NULL) || !wire_listing(j, p->mem, &page)) {
        err = api_wrong(r, "the answer is not a listing");
        goto out;
    }
    pages_add(p, &page);
    err = p->n > a->listing_most ? endless(a, r) : pages_next(p, &resp, r);
    note_caps(a, &page, p->cursor[0] != '\0');
out:
    json_free(&j);
    http_resp_done(&resp);
    return err;
}

/* Follows the pages of path (whose query may have begun). The latency is that of the whole: from the first page's send
 * to the last page's end. */
static MAY_YIELD enum err list_pages(struct api *a, const char *before, const char *parent, enum api_cap cap,
                                     struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    struct pages p = {.mem = mem};
    struct mono sent = {0};
    uint64_t bytes = 0;
    unsigned count = 0;
    enum err err;
    *out = (struct drive_listing){0};
    do {
        struct buf path;
        tma_path(&path, before, NULL, NULL);
        tma_query(&path, "parentId", parent);
        tma_query_u(&path, "limit", DRIVE_LIST_LIMIT_MAX);
        tma_query(&path, "cursor", p.cursor[0] ? p.cursor : NULL);
        struct tma_call c = get(&path);
        c.cap = cap;
        c.bare = cap != 0;
        err = one_page(a, &c, &p, r);
        if (count++ == 0)
            sent = r->sent;
        bytes += r->bytes_down;
        if (!err && count == PAGES_MAX && p.cursor[0])
            err = api_wrong(r, "the listing does not end after 100,000 pages");
    } while (!err && p.cursor[0]);
    r->sent = sent;
    r->bytes_down = bytes;
    if (!err && r->outcome == OUT_OK && p.n) {
        out->items = arena_alloc(mem, p.n * sizeof *out->items);
        memcpy(out->items, p.items, p.n * sizeof *out->items);
        out->n = p.n;
    }
    mem_free(p.items);
    return err;
}

enum err tma_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    enum err err = list_pages(a, "/api/files", folder, 0, mem, out, r);
    for (size_t i = 0; folder && i < out->n; i++) {
        if (!out->items[i].parent_id) /* some servers leave it out */
            out->items[i].parent_id = arena_strdup(mem, folder);
    }
    return err;
}

enum err tma_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    return list_pages(a, "/api/files/trash", NULL, API_CAP_TRASH, mem, out, r);
}

static MAY_YIELD enum err one_listing(struct api *a, const struct tma_call *c, struct arena *mem,
                                      struct drive_listing *out, struct api_result *r)
{
    struct json *j;
    *out = (struct drive_listing){0};
    enum err err = tma_call_json(a, c, &j, r);
    if (j && !wire_listing(j, mem, out))
        err = api_wrong(r, "the answer is not a listing");
    json_free(&j);
    return err;
}

enum err tma_search(struct api *a, const char *q, unsigned limit, struct arena *mem, struct drive_listing *out,
                    struct api_result *r)
{
    struct buf path;
    tma_path(&path, "/api/files/search", NULL, NULL);
    tma_query(&path, "q", q);
    tma_query_u(&path, "limit", limit);
    struct tma_call c = get(&path);
    return one_listing(a, &c, mem, out, r);
}

enum err tma_recent(struct api *a, unsigned limit, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    struct buf path;
    tma_path(&path, "/api/files/recent", NULL, NULL);
    tma_query_u(&path, "limit", limit);
    struct tma_call c = get(&path);
    c.cap = API_CAP_RECENT;
    c.bare = true;
    return one_listing(a, &c, mem, out, r);
}

static int64_t number(const struct json *j, const char *key)
{
    int64_t v;
    return json_i64(json_get(j, key), &v) ? v : -1;
}

enum err tma_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out, struct api_totals *totals,
                  struct api_result *r)
{
    struct buf path;
    struct json *j;
    struct drive_file f;
    tma_path(&path, "/api/files/", id, "/info");
    struct tma_call c = get(&path);
    enum err err = tma_call_json(a, &c, &j, r);
    if (j && !wire_file(j, mem, &f))
        err = api_wrong(r, "the answer is not a file");
    if (j && !err && out)
        *out = f;
    if (totals) {
        const struct json *t = json_get(j, "folderInfo");
        *totals = (struct api_totals){number(t, "totalSize"), number(t, "fileCount"), number(t, "folderCount")};
    }
    json_free(&j);
    return err;
}

enum err tma_stats(struct api *a, struct api_totals *out, struct api_result *r)
{
    struct buf path;
    struct json *j;
    tma_path(&path, "/api/files/stats", NULL, NULL);
    struct tma_call c = get(&path);
    enum err err = tma_call_json(a, &c, &j, r);
    *out = (struct api_totals){-1, number(j, "totalFiles"), number(j, "totalFolders")};
    json_free(&j);
    return err;
}

static bool read_changes(const struct json *j, struct arena *mem, struct api_changes *out)
{
    const struct json *folders = json_get(j, "folders");
    const char *cursor = json_str(json_get(j, "cursor"));
    int64_t n;
    if (cursor)
        snprintf(out->cursor, sizeof out->cursor, "%s", cursor);
    else if (json_i64(json_get(j, "cursor"), &n))
        snprintf(out->cursor, sizeof out->cursor, "%lld", (long long)n);
    if (!out->cursor[0] || (cursor && strlen(cursor) >= sizeof out->cursor))
        return false;
    out->resync = json_bool(json_get(j, "resync"), false);
    out->has_more = json_bool(json_get(j, "hasMore"), false);
    out->folders = arena_alloc(mem, (json_count(folders) + 1) * sizeof *out->folders);
    for (const struct json *it = json_first(folders); it; it = json_next(it)) {
        const char *id = json_str(it);
        out->folders[out->n++] = arena_strdup(mem, id);
    }
    return true;
}

enum err tma_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out,
                     struct api_result *r)
{
    struct buf path;
    struct json *j;
    memset(out, 0, sizeof *out);
    tma_path(&path, "/api/files/changes", NULL, NULL);
    tma_query(&path, "cursor", cursor && *cursor ? cursor : NULL);
    struct tma_call c = get(&path);
    c.cap = API_CAP_FEED;
    c.bare = true;
    enum err err = tma_call_json(a, &c, &j, r);
    if (j && !read_changes(j, mem, out))
        err = api_wrong(r, "the answer is no page of changes");
    json_free(&j);
    return err;
}

static void read_stamp(const struct json *j, const char *key, struct wall *out)
{
    const char *text = json_str(json_get(j, key));
    struct wall at;
    if (text && wall_parse(text, &at))
        *out = at;
}

static void read_job_state(const struct json *j, struct api_job *job)
{
    const char *status = json_str(json_get(j, "status"));
    const struct json *progress = json_get(j, "progress");
    job->started = job->started || !status || (strcmp(status, "created") != 0 && strcmp(status, "queued") != 0);
    job->items_done = number(progress, "done");
    job->items_total = number(progress, "total");
    read_stamp(j, "createdAt", &job->created);
    read_stamp(j, "startedAt", &job->begun);
    read_stamp(j, "finishedAt", &job->ended);
}

static void read_job_result(const struct json *result, struct arena *mem, struct api_job *job)
{
    const struct json *ids = json_get(result, "ids");
    job->count = number(result, "count");
    job->ids = arena_alloc(mem, (json_count(ids) + 1) * sizeof *job->ids);
    for (const struct json *it = json_first(ids); it; it = json_next(it)) {
        const char *id = json_str(it);
        if (id)
            job->ids[job->n_ids++] = arena_strdup(mem, id);
    }
}

/* 202 while it runs, 200 when it is done, 500 when it failed: the last is the job's end, not the call's. */
enum err tma_job_poll(struct api *a, struct api_job *job, struct arena *mem, struct api_result *r)
{
    struct buf path;
    struct json *j;
    tma_path(&path, "/api/files/jobs/", job->id, NULL);
    struct tma_call c = get(&path);
    enum err err = tma_call_json(a, &c, &j, r);
    if (j)
        read_job_state(j, job);
    if (r->status == 200 && j) {
        job->done = job->started = true;
        read_job_result(json_get(j, "result"), mem, job);
    } else if (r->status == 500) {
        job->done = job->failed = true;
    }
    json_free(&j);
    return err;
}
