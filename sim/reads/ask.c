/* One read, page by page, by hand: sorting, page sizes and cursors are part of what is measured. */
#include "base/mem.h"
#include "drive/limits.h"
#include "drive/wire.h"
#include "net/http_date.h"
#include "sim/reads/read.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_US (60 * US_PER_S)
#define PAGES_MAX  10000

static const char *const names[READ_WORD_COUNT] = {
#define X(sym, word) [READ_##sym] = word,
    READ_WORDS(X)
#undef X
};

const char *read_word(const struct reads_stage *s, struct sv word)
{
    for (int i = 0; i < READ_WORD_COUNT; i++)
        if (sv_eq_cstr(word, names[i]))
            return s->words[i][0] || i == READ_ROOT ? s->words[i] : NULL;
    return NULL;
}

static bool add_word(const struct reads_stage *s, struct sv word, struct buf *out)
{
    bool literal = word.n > 0 && word.p[0] == '=';
    struct sv text = literal ? (struct sv){word.p + 1, word.n - 1} : sv_of(read_word(s, word));
    return (literal || text.n > 0) && str_url_encode(out, text, "") == ERR_OK;
}

bool read_path(const struct reads_stage *s, const struct read *row, struct buf *out)
{
    enum err e = ERR_OK;
    for (const char *p = row->path; *p && e == ERR_OK;) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        if (!end) {
            e = buf_append_char(out, *p++);
            continue;
        }
        if (!add_word(s, (struct sv){p + 1, (size_t)(end - p - 1)}, out))
            return false;
        p = end + 1;
    }
    return e == ERR_OK;
}

/* ---- an answer ---- */

/* What is gathered over pages. */
struct gathering {
    struct reading *out;
    struct arena *mem;
    struct drive_file *items; /* malloc'ed while it grows */
    size_t n, cap;
    const char **folders;
    size_t n_folders;
    char cursor[1024]; /* of the next page; "": none */
};

static void add_items(struct gathering *g, const struct drive_listing *page)
{
    if (g->n + page->n > g->cap) {
        g->cap = 2 * (g->n + page->n);
        g->items = mem_realloc_array(g->items, g->cap, sizeof(*g->items));
    }
    if (page->n > 0)
        memcpy(g->items + g->n, page->items, page->n * sizeof(*g->items));
    g->n += page->n;
}

static void add_folders(struct gathering *g, const struct json *j)
{
    const struct json *folders = json_get(j, "folders");
    g->folders = mem_realloc_array(g->folders, g->n_folders + json_count(folders) + 1, sizeof(*g->folders));
    for (const struct json *it = json_first(folders); it; it = json_next(it)) {
        const char *id = json_str(it);
        g->folders[g->n_folders++] = id ? arena_strdup(g->mem, id) : NULL;
    }
}

static const char *take_page(struct gathering *g, const struct read *row, const struct http_resp *resp)
{
    struct json *j = NULL;
    struct drive_listing page;
    struct sv next = http_resp_header(resp, WIRE_CURSOR_HEADER);
    const char *cursor;
    if (json_parse(buf_cstr(&resp->body), resp->body.len, &j, NULL) != ERR_OK)
        return "the answer is not JSON";
    json_free(&g->out->object);
    g->out->object = j;
    g->cursor[0] = '\0';
    switch (row->kind) {
    case READ_KIND_OBJECT:
        g->out->rows = 1;
        return NULL;
    case READ_KIND_FEED:
        cursor = json_str(json_get(j, "cursor"));
        add_folders(g, j);
        if (g->out->rows == 0)
            g->out->rows = (int64_t)g->n_folders; /* of the first page, as the time is */
        if (json_bool(json_get(j, "hasMore"), false) && cursor && !str_fit(g->cursor, sizeof(g->cursor), cursor))
            return "the cursor is too long";
        return cursor ? NULL : "the answer has no cursor";
    case READ_KIND_PAGE:
    case READ_KIND_PAGES:
        if (!wire_listing(j, g->mem, &page))
            return "the answer is not a listing";
        add_items(g, &page);
        if (row->kind == READ_KIND_PAGES && next.n > 0)
            snprintf(g->cursor, sizeof(g->cursor), SV_FMT, SV_ARG(next));
        return NULL;
    }
    return NULL;
}

/* One request; a spent budget is waited out and asked again. */
static MAY_YIELD bool one_page(struct reads_stage *s, const struct read *row, const char *path, struct gathering *g)
{
    const struct http_req req = {.method = "GET", .path = path, .timeout_us = TIMEOUT_US, .max_body = 64 << 20};
    struct reading *out = g->out;
    for (;;) {
        struct http_resp resp;
        struct errinfo ei = {0};
        char code[WIRE_CODE_MAX];
        const char *wrong = NULL;
        if (!budget_turn(&s->budget.pace, s->ctx->loop, s->stop))
            return false;
        enum err e = httpc_perform(api_peer(s->logins[s->turn++ % s->n_logins]), &req, &resp, &ei);
        int64_t wait = resp.status == 429 ? http_wait_us(&resp, wall_now()) : 0;
        out->status = resp.status;
        if (resp.status != 429 && (row->kind != READ_KIND_FEED || out->us == 0)) /* of a feed, the first page */
            out->us += mono_diff(resp.done, resp.sent);
        if (e != ERR_OK)
            str_format(out->reason, sizeof(out->reason), "%s", err_message(&ei));
        else if (resp.status == 200)
            wrong = take_page(g, row, &resp);
        else
            wire_error((struct sv){buf_cstr(&resp.body), resp.body.len}, out->reason, sizeof(out->reason), code);
        if (wrong)
            str_format(out->reason, sizeof(out->reason), "%s", wrong);
        http_resp_done(&resp);
        if (resp.status != 429) {
            s->patience = (struct patience){0};
            s->budget.tries = 0;
        }
        if (resp.status != 429 || *s->stop || !patience_bears(&s->patience, wait, mono_now()))
            return e == ERR_OK && out->status == 200 && !wrong;
        budget_sit_out(&s->budget, wait, out->reason);
        out->reason[0] = '\0';
    }
}

/* The row's path with the cursor of the next page. */
static bool next_path(const struct read *row, const char *first, const char *cursor, struct buf *out)
{
    const char *at = row->kind == READ_KIND_FEED ? strstr(first, "cursor=") : NULL;
    enum err e = at ? buf_append(out, first, (size_t)(at - first) + sizeof("cursor=") - 1)
                    : buf_appendf(out, "%s&cursor=", first);
    return e == ERR_OK && str_url_encode(out, sv_of(cursor), "") == ERR_OK;
}

static void finish(struct gathering *g)
{
    struct reading *out = g->out;
    out->list = (struct drive_listing){arena_alloc(g->mem, (g->n + 1) * sizeof(*g->items)), g->n};
    if (g->n > 0)
        memcpy(out->list.items, g->items, g->n * sizeof(*g->items));
    out->folders = arena_alloc(g->mem, (g->n_folders + 1) * sizeof(*g->folders));
    if (g->n_folders > 0)
        memcpy(out->folders, g->folders, g->n_folders * sizeof(*g->folders));
    out->n_folders = g->n_folders;
    if (out->rows == 0)
        out->rows = (int64_t)(g->n + g->n_folders);
    mem_free(g->items);
    mem_free(g->folders);
}

bool read_ask(struct reads_stage *s, const struct read *row, bool whole, struct arena *mem, struct reading *out)
{
    struct buf first = BUF_INIT(4096), path = BUF_INIT(8192);
    struct gathering g = {.out = out, .mem = mem};
    if (!(api_caps(s->logins[0]) & API_CAP_TMA_WIRE))
        return read_call(s, row, mem, out);
    *out = (struct reading){0};
    bool ok = read_path(s, row, &first) && one_page(s, row, buf_cstr(&first), &g);
    bool more = whole || row->kind != READ_KIND_FEED;
    for (unsigned pages = 1; ok && more && g.cursor[0] && pages < PAGES_MAX && !*s->stop; pages++) {
        buf_reset(&path);
        ok = next_path(row, buf_cstr(&first), g.cursor, &path) && one_page(s, row, buf_cstr(&path), &g);
    }
    finish(&g);
    buf_done(&first);
    buf_done(&path);
    return ok;
}

void reading_done(struct reading *r)
{
    json_free(&r->object);
}
