#include "base/opt.h"
#include "base/str.h"
#include "base/utf8.h"
#include "locale_comma.h"
#include "unit.h"
#include <math.h>
#include <string.h>

static void comparing_and_cutting(void **state)
{
    (void)state;
    assert_true(sv_eq(SV("a"), sv_of("a")));
    assert_false(sv_eq(SV("a"), SV("ab")));
    assert_true(sv_eq((struct sv){NULL, 0}, sv_of(NULL)));
    assert_true(sv_ieq(SV("Content-TYPE"), SV("content-type")));
    assert_false(sv_ieq(SV("\xC3\x84"), SV("\xC3\xA4"))); /* ASCII only */
    assert_true(sv_starts(SV("abc"), SV("ab")) && !sv_starts(SV("a"), SV("ab")));
    assert_true(sv_ends(SV("abc"), SV("bc")) && !sv_ends(SV("c"), SV("bc")));
    assert_true(sv_eq(sv_trim(SV(" \t\r\na b\v\f ")), SV("a b")));
    assert_int_equal(sv_trim(SV("  ")).n, 0);
}

static void splitting(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words[4];
    } rows[] = {{"a,b", {"a", "b"}}, {"a", {"a"}},    {"", {""}},
                {"a,", {"a", ""}},   {",", {"", ""}}, {"a,,b", {"a", "", "b"}}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sv rest = sv_of(rows[i].text), word;
        size_t n = 0;
        while (sv_split(&rest, ',', &word)) {
            assert_non_null(rows[i].words[n]);
            assert_true(sv_eq_cstr(word, rows[i].words[n]));
            n++;
        }
        assert_null(rows[i].words[n]);
    }
}

static void whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {{"0", true, 0},
                {"-7", true, -7},
                {"9223372036854775807", true, INT64_MAX},
                {"-9223372036854775808", true, INT64_MIN},
                {"9223372036854775808", false, 0},
                {"-9223372036854775809", false, 0},
                {"18446744073709551616", false, 0},
                {"+5", false, 0},
                {"5,5", false, 0},
                {" 5", false, 0},
                {"5 ", false, 0},
                {"", false, 0},
                {"-", false, 0},
                {"--1", false, 0},
                {"0x10", false, 0},
                {"1e3", false, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = 42;
        assert_int_equal(sv_to_i64(sv_of(rows[i].text), &v), rows[i].good);
        assert_int_equal(v, rows[i].good ? rows[i].value : 42);
    }
    uint64_t u;
    assert_true(sv_to_u64(SV("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_false(sv_to_u64(SV("-1"), &u));
}

static void fitting(void **state)
{
    (void)state;
    char s[4] = "old";
    assert_true(str_fit(s, sizeof s, "abc"));
    assert_string_equal(s, "abc");
    assert_false(str_fit(s, sizeof s, "abcd"));
    assert_string_equal(s, "");
}

static void decimal_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        double value;
    } rows[] = {{"0.5", true, 0.5}, {"-2", true, -2},    {"1e3", true, 1000}, {".5", true, 0.5},   {"0,5", false, 0},
                {"nan", false, 0},  {"inf", false, 0},   {"0x1p3", false, 0}, {"1e999", false, 0}, {"", false, 0},
                {" 1", false, 0},   {"1.2.3", false, 0}, {"+1", false, 0},    {"1e", false, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double v = 42;
        assert_int_equal(sv_to_f64(sv_of(rows[i].text), &v), rows[i].good);
        assert_true(v == (rows[i].good ? rows[i].value : 42));
    }
}

static void utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } rows[] = {{"", true},
                {"Am\xC3\xA9lie", true},
                {"\xF0\x9F\x8C\x8D", true},
                {"\xEF\xBF\xBF", true},
                {"\xC0\x80", false},         /* overlong NUL */
                {"\xE0\x80\x80", false},     /* overlong */
                {"\xF0\x80\x80\x80", false}, /* overlong */
                {"\xED\xA0\x80", false},     /* surrogate */
                {"\xF4\x90\x80\x80", false}, /* beyond U+10FFFF */
                {"\xF5\x80\x80\x80", false},
                {"\x80", false},
                {"\xC3", false},
                {"\xF0\x9F\x8C", false},
                {"a\xFFz", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(utf8_valid(sv_of(rows[i].text)), rows[i].valid);
    static const char *const repaired[][2] = {
        {"", ""},
        {"a\xC3\xA9\xF0\x9F\x8C\x8D", "a\xC3\xA9\xF0\x9F\x8C\x8D"},
        {"\xFF"
         "a\xC3",
         "\xEF\xBF\xBD"
         "a\xEF\xBF\xBD"},
        {"\xF0\x9F\x8C"
         "a",
         "\xEF\xBF\xBD"
         "a"},
        {"\xE0\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF0\x9F\xC3\xA9", "\xEF\xBF\xBD\xC3\xA9"},
        {"\xF4\x90", "\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < ARRAY_LEN(repaired); i++) {
        struct buf out = BUF_INIT(100);
        assert_int_equal(utf8_append_repaired(&out, sv_of(repaired[i][0])), ERR_OK);
        assert_string_equal(buf_cstr(&out), repaired[i][1]);
        buf_done(&out);
    }
    assert_int_equal(utf8_code(SV("a")), 'a');
    assert_int_equal(utf8_code(SV("\xC3\xA9z")), 0xE9);
    assert_int_equal(utf8_code(SV("\xE2\x80\x8B")), 0x200B);
    assert_int_equal(utf8_code(SV("\xF3\xA0\x80\xA0")), 0xE0020);
    assert_int_equal(utf8_length(SV("a\xC3\xA9\xF0\x9F\x8C\x8D")), 3);
    assert_int_equal(utf8_cut(SV("a\xC3\xA9z"), 2), 1);
    assert_int_equal(utf8_cut(SV("a\xC3\xA9z"), 3), 3);
    assert_int_equal(utf8_cut(SV("a\xC3\xA9z"), 9), 4);
    assert_int_equal(utf8_cut(SV("\xF0\x9F\x8C\x8D"), 3), 0);
}

static void url_coding(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(200);
    assert_int_equal(str_url_encode(&b, SV("a b/\xC3\xA9+~%"), "/"), ERR_OK);
    assert_string_equal(b.data, "a%20b/%C3%A9%2B~%25");
    struct buf back = BUF_INIT(200);
    assert_int_equal(str_url_decode(&back, sv_of(b.data)), ERR_OK);
    assert_string_equal(back.data, "a b/\xC3\xA9+~%");
    buf_reset(&back);
    assert_int_equal(str_url_decode(&back, SV("100%0Applejuice+%2525")), ERR_OK); /* once, '+' stays */
    assert_string_equal(back.data, "100\npplejuice+%25");
    static const char *const bad[] = {"%", "%2", "%zz", "a%2", "%-1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(str_url_decode(&back, sv_of(bad[i])), ERR_PARSE);
    buf_done(&b);
    buf_done(&back);
}

/* X11: nothing that somebody else wrote moves the cursor, forges a line or fills the screen. */
static void hostile_text(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(100000);
    assert_int_equal(str_escape(&b, SV("boom\x1b[2J\x1b]0;x\x07\r\nok"), 500), ERR_OK);
    assert_string_equal(b.data, "boom\\x1b[2J\\x1b]0;x\\x07\\x0d\\x0aok");
    buf_reset(&b);
    assert_int_equal(str_escape(&b,
                                SV("\xC2\x9B"
                                   "2J \xFF \xE2\x80\xAE \x7F \xC3\xA9"),
                                500),
                     ERR_OK);
    assert_string_equal(b.data, "\\xc2\\x9b2J \\xff \\xe2\\x80\\xae \\x7f \xC3\xA9");
    char big[10240];
    memset(big, 'x', sizeof big);
    buf_reset(&b);
    assert_int_equal(str_escape(&b, (struct sv){big, sizeof big}, 100), ERR_OK);
    assert_int_equal(b.len, 100 + strlen("…"));
    for (size_t i = 0; i + 4 <= sizeof big; i += 4)
        memcpy(big + i, "\xF0\x9F\x8C\x8D", 4);
    buf_reset(&b);
    assert_int_equal(str_escape(&b, (struct sv){big, sizeof big}, 101), ERR_OK);
    assert_true(utf8_valid(sv_of(b.data)));
    buf_reset(&b);
    assert_int_equal(str_escape(&b, (struct sv){"a\0b", 3}, 50), ERR_OK);
    assert_string_equal(b.data, "a\\x00b");
    buf_done(&b);
}

/* The same into a fixed place: cut between code points, with the sign that it was. */
static void hostile_text_in_a_sentence(void **state)
{
    (void)state;
    char s[16];
    assert_string_equal(str_shown(s, sizeof s, SV("a\x1b[0m")), "a\\x1b[0m");
    assert_string_equal(str_shown(s, sizeof s, SV("")), "");
    assert_string_equal(str_shown(s, sizeof s, SV("123456789012")), "123456789012");
    assert_string_equal(str_shown(s, sizeof s, SV("1234567890123")), "123456789012…");
    assert_string_equal(str_shown(s, sizeof s, SV("12345678901\xC3\xA9")), "12345678901…");
    assert_string_equal(SHOWN(SV("word\n")), "word\\x0a");
}

static void figures_for_people(void **state)
{
    (void)state;
    char s[40];
    assert_string_equal(str_bytes(s, sizeof s, 812), "812 B");
    assert_string_equal(str_bytes(s, sizeof s, 1536), "1.5 KiB");
    assert_string_equal(str_bytes(s, sizeof s, 1073741824), "1.0 GiB");
    assert_string_equal(str_bytes(s, sizeof s, 1048575), "1.0 MiB");
    assert_string_equal(str_bytes(s, sizeof s, UINT64_MAX), "16.0 EiB");
    assert_string_equal(str_thousands(s, sizeof s, 0), "0");
    assert_string_equal(str_thousands(s, sizeof s, 999), "999");
    assert_string_equal(str_thousands(s, sizeof s, 16787), "16,787");
    assert_string_equal(str_thousands(s, sizeof s, UINT64_MAX), "18,446,744,073,709,551,615");
    static const struct {
        uint64_t n;
        const char *noun, *text;
    } counts[] = {{1, "file", "1 file"},
                  {0, "file", "0 files"},
                  {16787, "hot folder", "16,787 hot folders"},
                  {2, "entry", "2 entries"},
                  {1, "entry", "1 entry"},
                  {3, "day", "3 days"},
                  {2, "process", "2 processes"},
                  {2, "second copy", "2 second copies"}};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        assert_string_equal(COUNTED(counts[i].n, counts[i].noun), counts[i].text);
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {{0, "0 µs"},
                {999, "999 µs"},
                {1500, "1.5 ms"},
                {850000, "850 ms"},
                {999600, "1.0 s"},
                {12300000, "12.3 s"},
                {59960000, "1 min 0 s"},
                {250000000, "4 min 10 s"},
                {7260000000, "2 h 1 min"},
                {INT64_C(172799000000), "47 h 59 min"},
                {INT64_C(172800000000), "2 days"},
                {INT64_C(50000000000000), "578 days"},
                {INT64_C(99999999999000000), "3,168 years"},
                {-1500000, "-1.5 s"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(str_duration(s, sizeof s, rows[i].us), rows[i].text);
    str_duration(s, sizeof s, INT64_MIN);
    str_duration(s, sizeof s, INT64_MAX);
}

/* X01: a decimal comma in the locale changes neither what is read nor what is written. */
static void decimal_comma(void **state)
{
    (void)state;
    char s[40];
    double v;
    int64_t us;
    struct buf b = BUF_INIT(100);
    if (!locale_comma())
        skip();
    snprintf(s, sizeof s, "%.1f", 0.5);
    assert_string_equal(s, "0,5"); /* the locale is in force */
    str_format(s, sizeof s, "%.1f", 0.5);
    assert_string_equal(s, "0.5");
    assert_true(sv_to_f64(SV("0.5"), &v) && v == 0.5);
    assert_false(sv_to_f64(SV("0,5"), &v));
    assert_int_equal(buf_appendf(&b, "%.2f", 1.25), ERR_OK);
    assert_string_equal(b.data, "1.25");
    assert_string_equal(str_bytes(s, sizeof s, 1536), "1.5 KiB");
    assert_string_equal(str_duration(s, sizeof s, 1500), "1.5 ms");
    assert_int_equal(opt_parse_duration(sv_of("1.5s"), &us), ERR_OK);
    assert_int_equal(us, 1500000);
    buf_done(&b);
    locale_plain();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_and_cutting),
        cmocka_unit_test(splitting),
        cmocka_unit_test(fitting),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(decimal_numbers),
        cmocka_unit_test(utf8),
        cmocka_unit_test(url_coding),
        cmocka_unit_test(hostile_text),
        cmocka_unit_test(hostile_text_in_a_sentence),
        cmocka_unit_test(decimal_comma),
        cmocka_unit_test(figures_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
