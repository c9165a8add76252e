/* Names: the table of what is allowed (cases U11 to U13) and the numbering of taken ones. */
#include "drive/path.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static char *repeat(char *dst, const char *unit, size_t times, const char *tail)
{
    dst[0] = '\0';
    for (size_t i = 0; i < times; i++)
        strcat(dst, unit);
    return strcat(dst, tail);
}

static void allowed_and_barred(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool file, folder;
    } rows[] = {
        {"a", true, true},
        {"report.pdf", true, true},
        {".hidden", true, true},
        {"noext", true, true},
        {"a b", true, true},
        {"a..b", true, true},
        {"This & that", true, true},
        {"100%.txt", true, true},
        {"a+b", true, true},
        {"example[a].txt", true, true},
        {"100%0Applejuice.pdf", true, true},
        {"test(1).txt", true, true},
        {"na\xC3\xAFve \xE2\x98\x83.txt", true, true},
        {"\xF0\x9F\x8C\x8D.txt", true, true},
        {"Am\xC3\xA9lie.txt", true, true},
        {"Ame\xCC\x81lie.txt", true, true},
        {"a\xC2\x85z", false, false},   /* U+0085 */
        {"a\xC2\x80", false, false},    /* U+0080 */
        {"\xC2\x9Fz", false, false},    /* U+009F */
        {"a\xC2\xA0z", true, true},     /* U+00A0 */
        {"a\xC3\x85z", true, true},     /* U+00C5 */
        {"a\xE2\x80\x8Bz", true, true}, /* U+200B */
        {"a\xE2\x80\xAEz", true, true}, /* U+202E */
        {"\xE2\x80\x8B", false, false}, /* of such alone */
        {"\xE2\x80\x8B\xE2\x80\x8D\xEF\xBB\xBF", false, false},
        {"\xE2\x80\xAE", false, false},
        {"\xE2\x81\xA6\xE2\x81\xA9", false, false}, /* U+2066 U+2069 */
        {"\xE2\x80\xA8", false, false},             /* U+2028 */
        {"\xE2\x80\xA9", false, false},             /* U+2029 */
        {"\xC2\xA0", false, false},
        {"\xE3\x80\x80", false, false}, /* U+3000 */
        {"\xE1\x9A\x80", false, false}, /* U+1680 */
        {"\xE3\x85\xA4", false, false}, /* U+3164 */
        {"\xC2\xAD", false, false},
        {"\xF3\xA0\x80\xA0", false, false}, /* U+E0020 */
        {"\xEF\xB8\x8F", false, false},     /* U+FE0F */
        {".\xE2\x80\x8B", false, false},
        {"\xE2\x80\x8B..", false, false},
        {".\xC2\xA0.", false, false},
        {"...\xE2\x80\x8B", true, true},
        {"\xE2\x9D\xA4\xEF\xB8\x8F", true, true}, /* a heart and its selector */
        {"a\xF0\x9F\xBF\xBE", true, true},        /* U+1FFFE: XML can carry it */
        {"a\xEF\xB7\x90", true, true},            /* U+FDD0 */
        {"a\xF4\x90\x80\x80", false, false},      /* above U+10FFFF */
        {"a\xE0\x80\xAF", false, false},
        {"a\xE2\x80\xA8z", true, true}, /* U+2028 */
        {"\xEF\xBB\xBFmark.txt", true, true},
        {"CONSOLE", true, true},
        {"con1", true, true},
        {"xCON", true, true},
        {"", false, false},
        {" ", false, false},
        {"\t", false, false},
        {".", false, false},
        {"..", false, false},
        {"a.", false, false},
        {"a ", false, false},
        {" a", false, false},
        {"CON", false, false},
        {"con", false, false},
        {"aux.txt", false, false},
        {"LPT9.tar.gz", false, false},
        {"foo/bar", false, false},
        {"a\\b.txt", false, false},
        {"a:b", false, false},
        {"a*b", false, false},
        {"a?b", false, false},
        {"\"foo.jpg", false, false},
        {"a<b", false, false},
        {"a>b", false, false},
        {"a|b", false, false},
        {"a\nb", false, false},
        {"a\x1b[2Jb", false, false},
        {"a\x7f", false, false},
        {"a\xEF\xBF\xBE", false, false},  /* U+FFFE */
        {"a\xEF\xBF\xBFz", false, false}, /* U+FFFF */
        {"a\xEF\xBF\xBDz", true, true},   /* U+FFFD */
        {"a\xff", false, false},
        {"a\xC0\xAF", false, false},     /* overlong */
        {"a\xED\xA0\x80", false, false}, /* surrogate */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sv name = sv_of(rows[i].name);
        if ((path_name_problem_file(name) == NULL) != rows[i].file ||
            (path_name_problem_folder(name) == NULL) != rows[i].folder)
            fail_msg("row %zu: \"%s\"", i, rows[i].name);
    }
    assert_non_null(path_name_problem_file((struct sv){"a\0b", 3}));
}

static void lengths(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        size_t times;
        const char *tail;
        bool file, folder;
    } rows[] = {
        {"a", 255, "", true, false},
        {"a", 256, "", false, false},
        {"\xC3\xA9", 127, "x", true, false},         /* 255 bytes */
        {"\xC3\xA9", 128, "", false, false},         /* 256 bytes */
        {"\xF0\x9F\x8C\x8D", 63, "abc", true, true}, /* 255 bytes, 66 characters */
        {"\xF0\x9F\x8C\x8D", 64, "", false, true},   /* 256 bytes, 64 characters */
        {"a", 100, "", true, true},
        {"a", 101, "", true, false},
        {"\xF0\x9F\x8C\x8D", 100, "", false, true},
        {"\xF0\x9F\x8C\x8D", 101, "", false, false},
    };
    char name[512];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sv s = sv_of(repeat(name, rows[i].unit, rows[i].times, rows[i].tail));
        if ((path_name_problem_file(s) == NULL) != rows[i].file ||
            (path_name_problem_folder(s) == NULL) != rows[i].folder)
            fail_msg("row %zu", i);
    }
}

static void numbered(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned number;
        const char *want;
    } rows[] = {
        {"report.pdf", 1, "report (1).pdf"}, {"report.pdf", 12, "report (12).pdf"},
        {"a.tar.gz", 2, "a.tar (2).gz"},     {"noext", 1, "noext (1)"},
        {".hidden", 1, ".hidden (1)"},       {"report (1).pdf", 1, "report (1) (1).pdf"},
    };
    char got[256];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        path_numbered(got, sizeof got, rows[i].name, rows[i].number, 255);
        assert_string_equal(got, rows[i].want);
    }
}

static void numbered_fits(void **state)
{
    (void)state;
    char name[512], got[256], want[512];
    repeat(name, "a", 251, ".pdf");
    path_numbered(got, sizeof got, name, 1, 255);
    assert_string_equal(got, repeat(want, "a", 247, " (1).pdf"));
    repeat(name, "\xC3\xA9", 125, ".pdf"); /* 254 bytes: the cut falls between code points */
    path_numbered(got, sizeof got, name, 1, 255);
    assert_string_equal(got, repeat(want, "\xC3\xA9", 123, " (1).pdf"));
    assert_null(path_name_problem_file(sv_of(got)));
    repeat(name, "x", 252, "");
    name[1] = '.'; /* all extension: no room for a stem */
    path_numbered(got, sizeof got, name, 1, 255);
    assert_int_equal(strlen(got), 255);
    assert_string_equal(got + 251, " (1)");
}

static void extension(void **state)
{
    (void)state;
    assert_true(sv_eq_cstr(path_extension(SV("a.pdf")), "pdf"));
    assert_true(sv_eq_cstr(path_extension(SV("a.tar.gz")), "gz"));
    assert_true(sv_eq_cstr(path_extension(SV("a")), ""));
    assert_true(sv_eq_cstr(path_extension(SV(".bashrc")), ""));
    assert_true(sv_eq_cstr(path_extension(SV("")), ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allowed_and_barred), cmocka_unit_test(lengths),   cmocka_unit_test(numbered),
        cmocka_unit_test(numbered_fits),      cmocka_unit_test(extension),
    };
    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
