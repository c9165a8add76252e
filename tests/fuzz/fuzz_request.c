/* What stands in a request besides its framing, as the server reads it: the first line is the path with its query, the
 * second a header's value, which every reader of one sees, the rest a name that goes into an answer. */
#include "base/arena.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "server/access/token.h"
#include "server/events/events.h"
#include "server/http/disposition.h"
#include "server/http/page.h"
#include "server/http/route.h"
#include "server/http/upload_form.h"
#include "server/meta/calls.h"
#include "server/objects/seal.h"

#define SECRET "a secret for the fuzzer"

static void find_route(struct request *r)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct buf allow = BUF_INIT(512);
        bool known = false;
        r->method = methods[i];
        const struct route *found = route_find(r, &known, &allow);
        MUST(!found || strcmp(found->method, r->method) == 0);
        for (size_t k = 0; found && k < ARRAY_LEN(r->params) && r->params[k]; k++)
            MUST(strlen(r->params[k]) > 0);
        memset(r->params, 0, sizeof(r->params));
        buf_done(&allow);
    }
}

static void read_query(struct request *r)
{
    static const char *const names[] = {"cursor", "limit", "q", ""};
    (void)req_query_valid(r);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *v = req_query(r, names[i]);
        MUST(!v || utf8_valid(sv_of(v)));
    }
}

static void read_header(struct arena *mem, struct sv value)
{
    static const uint64_t sizes[] = {0, 1, 1000, UINT64_MAX / 2};
    const char *z = arena_strndup(mem, value.p, value.n);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        uint64_t first = 0, count = 0;
        if (range_parse(value, sizes[i], &first, &count) == RANGE_PART)
            MUST(count > 0 && first < sizes[i] && count <= sizes[i] - first);
    }
    (void)etag_listed(value, "1");

    struct wall at;
    struct page_mark mark;
    if (form_time(z, &at))
        MUST(at.us == META_NOW.us || (at.us / US_PER_S >= -INT64_C(62135596800) && at.us / US_PER_S <= 253402300799));
    if (page_cursor_read(mem, z, "name.asc", &mark)) {
        const char *again = page_cursor_make(mem, &mark);
        struct page_mark back;
        MUST(again && page_cursor_read(mem, again, "name.asc", &back));
        MUST(strcmp(back.key, mark.key) == 0 && strcmp(back.id, mark.id) == 0 && strcmp(back.type, mark.type) == 0);
    }
    static struct server s = {.epoch = "e1"};
    int64_t seq = -1;
    if (cursor_parse(&s, value, &seq))
        MUST(seq >= 0);

    struct token t;
    struct seal_key key;
    struct errinfo ei;
    struct buf plain = BUF_INIT(1 << 16);
    MUST(token_read(SECRET, value, (struct wall){0}, &t) == TOKEN_BAD); /* nobody guesses a signature */
    (void)!seal_key_parse(&key, z, &ei);
    memset(&key, 7, sizeof(key));
    MUST(unseal_text(&key, "fuzz", value, &plain) != ERR_OK);
    buf_done(&plain);
}

/* Quotes, line ends or other bytes of a file's name never leave their place in the header. */
static void write_name(struct arena *mem, struct sv name)
{
    struct buf out = BUF_INIT(1 << 16);
    if (disposition_write(&out, arena_strndup(mem, name.p, name.n)) == ERR_OK) {
        size_t quotes = 0;
        for (size_t i = 0; i < out.len; i++) {
            MUST(out.data[i] >= 0x20 && out.data[i] < 0x7f);
            quotes += out.data[i] == '"';
        }
        MUST(quotes == 2);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = mem_dup(data, size);
    struct sv rest = {exact, size}, path, value = SV("");
    struct arena *mem = arena_new(4096);
    if (sv_split(&rest, '\n', &path) && path.n > 0 && path.p[0] == '/') {
        (void)sv_split(&rest, '\n', &value);
        const struct http_header headers[] = {{SV("Cookie"), value}, {SV("If-Match"), value}};
        struct request r = {.mem = mem, .method = "GET", .headers = headers, .n_headers = ARRAY_LEN(headers)};
        struct sv query = path;
        (void)sv_split(&query, '?', &r.path);
        r.query = query.p ? query : SV("");
        find_route(&r);
        read_query(&r);
        struct sv cookie = req_cookie(&r, "token");
        MUST(cookie.n <= value.n);
        struct strings tags = form_if_match(&r);
        MUST(tags.n <= value.n);
        read_header(mem, value);
        write_name(mem, rest.p ? rest : SV(""));
    }
    arena_free(&mem);
    mem_free(exact);
    return 0;
}
