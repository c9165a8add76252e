/* The small readers that everything else is made of: numbers, times, sizes, URLs, percent and base64 coding, UTF-8,
 * conditions. Each sees every input; what one writes the other reads back, and what people are shown is clean. */
#include "base/clock.h"
#include "base/compare.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/opt.h"
#include "base/utf8.h"
#include "drive/path.h"
#include "fuzz.h"
#include "net/http_url.h"
#include "store/pg_url.h"

static void read_numbers(struct sv s, const char *z)
{
    int64_t i = 0, us = 0, bytes = 0;
    uint64_t u = 0;
    double d = 0;
    char text[32];
    if (sv_to_i64(s, &i)) {
        snprintf(text, sizeof(text), "%lld", (long long)i);
        int64_t again;
        MUST(sv_to_i64(sv_of(text), &again) && again == i);
    }
    if (sv_to_u64(s, &u))
        MUST(i < 0 || u > INT64_MAX || (uint64_t)i == u);
    if (sv_to_f64(s, &d))
        MUST(d == d && d - d == 0); /* a number, and a finite one */
    if (opt_parse_duration(sv_of(z), &us) == ERR_OK)
        MUST(us >= 0);
    if (opt_parse_size(sv_of(z), &bytes) == ERR_OK)
        MUST(bytes >= 0);
    enum compare c;
    MUST(compare_parse(z, &c) <= 2);
}

static void read_time(const char *z)
{
    struct wall at, again;
    char text[40];
    if (wall_parse(z, &at) && at.us >= 0) {
        wall_format(text, sizeof(text), at);
        MUST(at.us / US_PER_S > INT64_C(253402300799) || (wall_parse(text, &again) && again.us == at.us / 1000 * 1000));
    }
}

static bool same(const struct buf *b, struct sv s)
{
    return b->len == s.n && (s.n == 0 || memcmp(b->data, s.p, s.n) == 0);
}

static void code(struct sv s)
{
    struct buf coded = BUF_INIT(16 << 20), plain = BUF_INIT(16 << 20);
    if (str_url_decode(&plain, s) == ERR_OK)
        MUST(plain.len <= s.n);
    buf_reset(&plain);
    MUST(str_url_encode(&coded, s, "/") == ERR_OK);
    MUST(str_url_decode(&plain, (struct sv){coded.data, coded.len}) == ERR_OK && same(&plain, s));
    buf_reset(&plain);
    buf_reset(&coded);
    if (digest_unbase64(&plain, s) == ERR_OK)
        MUST(plain.len <= s.n);
    buf_reset(&plain);
    MUST(digest_base64(&coded, s.p, s.n) == ERR_OK);
    MUST(digest_unbase64(&plain, (struct sv){coded.data, coded.len}) == ERR_OK && same(&plain, s));
    buf_done(&coded);
    buf_done(&plain);
}

static void show(struct sv s)
{
    struct buf out = BUF_INIT(16 << 20);
    MUST(str_escape(&out, s, 80) == ERR_OK);
    MUST(utf8_valid((struct sv){out.data, out.len}));
    for (size_t i = 0; i < out.len; i++)
        MUST((unsigned char)out.data[i] >= 0x20 && out.data[i] != 0x7f);
    buf_done(&out);
    size_t cut = utf8_cut(s, 20);
    MUST(cut <= 20 && cut <= s.n);
    if (utf8_valid(s))
        MUST(utf8_length(s) <= s.n && utf8_valid((struct sv){s.p, cut}));
}

static void read_urls(const char *z)
{
    static const struct http_url_scheme others[] = {{"webdav", 80}, {"webdavs", 443}, {"sftp", 22}, {0}};
    const struct http_url_scheme *const which[] = {NULL, others};
    for (size_t i = 0; i < ARRAY_LEN(which); i++) {
        struct http_url u = {0};
        struct errinfo ei = {0};
        enum err e = which[i] ? http_url_parse_of(z, which[i], &u, &ei) : http_url_parse(z, &u, &ei);
        MUST(e == ERR_OK || ei.msg[0]);
        if (e == ERR_OK) {
            MUST(u.scheme && u.host && u.host[0] && u.path && u.port > 0 && u.port <= 65535);
            MUST(!strpbrk(u.host, "\r\n ") && !strpbrk(u.path, "\r\n ?#"));
            http_url_done(&u);
        }
    }
    struct errinfo ei;
    (void)!pg_url_judge(z, &ei);
}

/* What is repaired is valid, and stays as it is when it is repaired again; lines are the text without its line ends. */
static void read_text(struct sv s)
{
    struct buf once = BUF_INIT(16 << 20), twice = BUF_INIT(16 << 20);
    MUST(utf8_append_repaired(&once, s) == ERR_OK);
    MUST(utf8_valid((struct sv){buf_cstr(&once), once.len}) && (!utf8_valid(s) || same(&once, s)));
    MUST(utf8_append_repaired(&twice, (struct sv){buf_cstr(&once), once.len}) == ERR_OK);
    MUST(same(&twice, (struct sv){buf_cstr(&once), once.len}));
    struct sv rest = s, line;
    size_t in_lines = 0, ends = 0;
    while (file_line(&rest, &line)) {
        in_lines += line.n;
        MUST(!memchr(line.p, '\n', line.n) && !memchr(line.p, '\r', line.n));
    }
    for (size_t i = 0; i < s.n; i++)
        ends += s.p[i] == '\n' || s.p[i] == '\r';
    MUST(in_lines + ends == s.n);
    if (!path_name_problem_file(s))
        MUST(s.n > 0 && utf8_valid(s) && !utf8_has_controls(s));
    buf_done(&once);
    buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096)
        return 0;
    char *exact = mem_dup(data, size), *z = mem_strndup((const char *)data, size);
    struct sv s = {exact, size};
    read_numbers(s, z);
    read_time(z);
    code(s);
    read_text(s);
    show(s);
    read_urls(z);
    mem_free(exact);
    mem_free(z);
    return 0;
}
