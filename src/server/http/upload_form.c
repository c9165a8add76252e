#include "server/http/upload_form.h"

#include "base/log.h"
#include "base/mem.h"
#include "drive/wire.h"
#include "server/meta/calls.h"

#include <stdio.h>
#include <string.h>

#define FIELD_MAX 4096

const char *form_value(const struct strings *s, size_t ordinal)
{
    return ordinal < s->n && s->items[ordinal][0] ? s->items[ordinal] : NULL;
}

static void strings_add(struct arena *mem, struct strings *s, const char *item)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 8;
        const char **items = arena_alloc(mem, cap * sizeof(*items));
        if (s->n > 0)
            memcpy(items, s->items, s->n * sizeof(*items));
        s->items = items;
        s->cap = cap;
    }
    s->items[s->n++] = item;
}

bool form_open(struct upload_form *f, struct request *r)
{
    struct errinfo ei = {0};
    *f = (struct upload_form){.r = r};
    enum err e = multipart_open(r, &f->m, &ei);
    if (e == ERR_OK)
        return true;
    form_reply_failure(r, e, &ei);
    return false;
}

/* Fields that nobody knows are dropped: clients send their own. */
static void keep_field(struct upload_form *f, struct sv name, struct sv value)
{
    const struct {
        const char *name;
        struct strings *list;
    } lists[] = {
        {"lastModifiedTimes", &f->times},
        {"lastModified", &f->times},
        {"relativePaths", &f->paths},
        {"clientIds", &f->client_ids},
    };
    const char *text = arena_strndup(f->r->mem, value.p, value.n);
    if (sv_eq_cstr(name, "parentId"))
        f->parent_id = text[0] ? text : NULL;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (sv_eq_cstr(name, lists[i].name))
            strings_add(f->r->mem, lists[i].list, text);
}

bool form_next_file(struct upload_form *f, struct multipart_part *part, bool *end)
{
    struct errinfo ei = {0};
    for (;;) {
        struct sv value;
        enum err e = multipart_next(f->m, part, end, &ei);
        if (e == ERR_OK && (*end || part->has_filename))
            return true;
        if (e == ERR_OK)
            e = multipart_text(f->m, FIELD_MAX, &value, &ei);
        if (e == ERR_LIMIT)
            e = ERR_PARSE; /* a field, not the file, is too long */
        if (e != ERR_OK) {
            form_reply_failure(f->r, e, &ei);
            return false;
        }
        keep_field(f, part->name, value);
    }
}

static MAY_YIELD enum err read_part(void *arg, char *dst, size_t cap, size_t *got, struct errinfo *ei)
{
    return multipart_read(arg, dst, cap, got, ei);
}

struct content_source form_source(struct upload_form *f)
{
    return (struct content_source){read_part, f->m};
}

bool form_time(const char *text, struct wall *out)
{
    static const int64_t first = INT64_C(-62135596800), last = INT64_C(253402300799); /* the years 1 and 9999 */
    int64_t ms;
    *out = META_NOW;
    if (!text)
        return true;
    if (sv_to_i64(sv_of(text), &ms) && ms >= first * 1000 && ms <= last * 1000) {
        out->us = ms * US_PER_MS;
        return true;
    }
    return wall_parse(text, out) && out->us >= first * US_PER_S && out->us <= last * US_PER_S;
}

const char *form_mime(struct request *r, const struct multipart_part *part)
{
    bool safe = part->type.n > 0 && part->type.n <= 255 && memchr(part->type.p, '/', part->type.n);
    for (size_t i = 0; i < part->type.n; i++)
        safe = safe && part->type.p[i] >= ' ' && part->type.p[i] <= '~';
    return safe ? arena_strndup(r->mem, part->type.p, part->type.n) : "application/octet-stream";
}

struct strings form_if_match(struct request *r)
{
    struct strings tags = {0};
    for (size_t i = 0; i < r->n_headers; i++) {
        struct sv rest = r->headers[i].value, item, tag;
        if (!sv_ieq(r->headers[i].name, SV("If-Match")) || sv_eq_cstr(rest, "*"))
            continue;
        if (!tags.items) { /* a condition, even if nothing can meet it */
            tags.items = arena_alloc(r->mem, sizeof(*tags.items));
            tags.cap = 1;
        }
        while (sv_split(&rest, ',', &item))
            if (wire_etag(sv_trim(item), &tag)) /* weak ones never match here (RFC 9110, 13.1.1) */
                strings_add(r->mem, &tags, arena_strndup(r->mem, tag.p, tag.n));
    }
    return tags;
}

void form_reply_too_large(struct request *r, int64_t required, int64_t available)
{
    struct buf json = BUF_INIT(4096);
    struct jsonw w;
    char text[200], a[32], b[32];
    snprintf(text, sizeof(text), "The file is too large: %s, of at most %s",
             str_bytes(a, sizeof(a), (uint64_t)required), str_bytes(b, sizeof(b), (uint64_t)available));
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", text);
    jsonw_str(&w, "error", "FILE_TOO_LARGE");
    jsonw_i64(&w, "required", required);
    jsonw_i64(&w, "available", available);
    jsonw_end_object(&w);
    reply_json(r, 413, &json);
    buf_done(&json);
}

void form_reply_failure(struct request *r, enum err e, const struct errinfo *ei)
{
    switch (e) {
    case ERR_CLOSED:
    case ERR_RESET:
        LOGI("upload", "the client left in the middle of " SV_FMT ": nothing is stored", SV_ARG(r->path));
        reply_message(r, 499, "CLIENT_CLOSED_REQUEST", "The client left before the whole body was there");
        return;
    case ERR_TIMEOUT:
        reply_message(r, 408, "REQUEST_TIMEOUT", "The body came too slowly; nothing is stored");
        return;
    case ERR_PARSE:
    case ERR_PROTO:
    case ERR_USAGE:
        reply_message(r, 400, "BAD_REQUEST", "The upload cannot be read: %s", err_message(ei));
        return;
    case ERR_LIMIT:
        reply_message(r, 413, "FILE_TOO_LARGE", "The upload is too large: %s", err_message(ei));
        return;
    case ERR_FULL:
        LOGE("upload", "%s", err_message(ei));
        reply_message(r, 507, "INSUFFICIENT_STORAGE",
                      "The server's disk for temporary files is full; nothing is stored");
        return;
    default:
        reply_error(r, ei);
    }
}
