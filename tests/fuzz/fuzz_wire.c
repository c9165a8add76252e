/* What servers answer: file objects, listings, error bodies, cookies, tags and dates are read or refused, and what is
 * shown to people is free of control bytes and fits. Every reader sees every input. */
#include "drive/wire.h"
#include "fuzz.h"
#include "net/http_date.h"

static void read_error(struct sv text)
{
    char reason[200], code[WIRE_CODE_MAX];
    bool readable = wire_error(text, reason, sizeof reason, code);

    MUST(strlen(reason) < sizeof reason && strlen(code) < sizeof code);
    MUST(readable || (!reason[0] && !code[0]));
    for (const char *p = reason; *p; p++)
        MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void read_file(const struct drive_file *f)
{
    MUST(f->id && f->id[0] && strlen(f->id) <= DRIVE_ID_MAX && f->name && f->name[0]);
    MUST(f->size >= -1 && !(f->folder && f->size != -1));
}

/* A date that can be read is the same when it is written and read again; a wait is bounded. */
static void read_dates(struct sv text)
{
    const struct wall now = {INT64_C(1796083200) * US_PER_S};
    struct http_resp r = {.status = 429};
    struct wall at, again;
    char s[40];
    if (http_date_parse(text, now, &at) && at.us >= 0 && at.us < INT64_C(253402300800) * US_PER_S) /* year 10000 */
        MUST(http_date_parse(sv_of(http_date_format(s, sizeof s, at)), now, &again) && again.us == at.us);
    buf_init(&r.headers, 1 << 20);
    if (!buf_append_str(&r.headers, "Retry-After: ") && !buf_append(&r.headers, text.p, text.n)) {
        int64_t us = http_wait_us(&r, now);
        MUST(us >= -1 && us <= HTTP_WAIT_MAX_US);
    }
    buf_done(&r.headers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv text = {(const char *)data, size}, out;
    struct arena *mem = arena_new(1024);
    struct json *j = NULL;
    struct drive_file f;
    struct drive_listing l;

    read_error(text);
    if (json_parse(text.p, text.n, &j, NULL) == ERR_OK) {
        if (wire_file(j, mem, &f))
            read_file(&f);
        if (wire_listing(j, mem, &l)) {
            for (size_t i = 0; i < l.n; i++)
                read_file(&l.items[i]);
        }
        json_free(&j);
    }
    if (wire_set_cookie(text, WIRE_COOKIE, &out))
        MUST(out.n <= text.n);
    if (wire_etag(text, &out))
        MUST(out.n + 2 == text.n);
    read_dates(text);
    arena_free(&mem);
    return 0;
}
