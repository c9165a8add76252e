/* Every refusal of sql/, and what may keep one item of several from being done, with its status and sentence, in one
 * table. The code is what the function said and what the client reads in "error". */
#include "base/mem.h"
#include "server/meta/meta.h"
#include <inttypes.h>
#include <string.h>

struct refusal {
    const char *code;
    int status;
    const char *sentence;
};

static const struct refusal refusals[] = {
    {"ACCOUNT_NOT_FOUND", 404, "This account does not exist any more"},
    {"NOT_FOUND", 404, "There is no such file or folder"},
    {"PARENT_NOT_FOUND", 404, "The folder does not exist, or is in the trash"},
    {"NOT_A_FILE", 400, "This is a folder, not a file"},
    {"INTO_ITSELF", 400, "A folder cannot be put into itself or below itself"},
    {"TOO_DEEP", 400, "Folders cannot be nested more than 100 deep"},
    {"NAME_TAKEN", 409, "An item of this name exists in the folder already"},
    {"LOCK_LOST", 409, "The lock has lapsed or is not yours"},
    {"VERSION_CONFLICT", 412, "The file was changed by somebody else"},
    {"STORAGE_LIMIT_EXCEEDED", 413, "Storage limit exceeded"},
    {"CONTENT_MISSING", 500, "The content of a file is not in the store"},
    {"CONTENT_GIVEN_UP", 503, "The upload took too long and its content was given up. Send it again."},
    {"INTERNAL_ERROR", 500, "Internal server error"},
    {"DATABASE_UNAVAILABLE", 503, "The database cannot be reached at the moment. Try again shortly."},
    {"GIVEN_UP", 503, "The server gave up after several attempts"},
    {"LOCKED", 423, "The file is locked by somebody else"},
};

static const struct refusal *refusal_find(const char *code)
{
    static const struct refusal unknown = {"CONFLICT", 409, "This is not possible now"};
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (strcmp(refusals[i].code, code) == 0)
            return &refusals[i];
    return &unknown;
}

/* The sentence, with the figures that the detail has for it. */
static const char *sentence(struct arena *mem, const struct refusal *f, const struct json *d)
{
    char need[32], have[32];
    int64_t required, available;
    const char *holder = json_str(json_get(json_get(d, "lockedBy"), "name"));
    if (json_i64(json_get(d, "required"), &required) && json_i64(json_get(d, "available"), &available))
        return arena_printf(mem, "%s: %s needed, %s available", f->sentence,
                            str_bytes(need, sizeof need, (uint64_t)required),
                            str_bytes(have, sizeof have, (uint64_t)available));
    if (holder && *holder)
        return arena_printf(mem, "The file is locked by %s", holder);
    return f->sentence;
}

static struct json *parse_detail(const char *detail)
{
    struct json *d = NULL;
    if (detail && json_parse(detail, strlen(detail), &d, NULL) != ERR_OK)
        return NULL;
    return d;
}

const char *meta_refusal_text(struct arena *mem, const char *code, const char *detail)
{
    struct json *d = parse_detail(detail);
    const char *text = sentence(mem, refusal_find(code), d);
    json_free(&d);
    return text;
}

const char *meta_room_detail(struct arena *mem, int64_t required, int64_t available)
{
    return arena_printf(mem, "{\"required\":%" PRId64 ",\"available\":%" PRId64 "}", required,
                        available > 0 ? available : 0);
}

int meta_refusal_status(const char *code)
{
    return refusal_find(code)->status;
}

void meta_reply_refusal(struct request *r, const char *code, const char *detail)
{
    const struct refusal *f = refusal_find(code);
    struct buf out = BUF_INIT(64 * 1024);
    struct jsonw w;
    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "message", meta_refusal_text(r->mem, code, detail));
    jsonw_str(&w, "error", f->code);
    jsonw_end_object(&w);
    /* The fields of the detail stand beside the message: {…} continues as ,…} */
    if (detail && strlen(detail) > 2 && !w.err) {
        out.len--;
        w.err = buf_appendf(&out, ",%s", detail + 1);
    }
    if (w.err)
        reply_message(r, f->status, f->code, "%s", f->sentence);
    else
        reply_json(r, f->status, &out);
    buf_done(&out);
}
