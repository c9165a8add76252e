#include "base/secret.h"
#include "unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *hidden(const char *text)
{
    static char told[4000];
    struct buf out = BUF_INIT(sizeof(told));
    assert_int_equal(secret_hide(&out, sv_of(text)), ERR_OK);
    snprintf(told, sizeof(told), "%s", buf_cstr(&out));
    buf_done(&out);
    return told;
}

static void the_longest_and_all_that_overlap(void **state)
{
    (void)state;
    static const char *const secrets[] = {"hunter2", "hunter2-long", "2-longer", "xyzzy-ab", "ab-plugh", "hunter2"};
    static const char *const rows[][2] = {
        {"a hunter2 b", "a *** b"},
        {"a hunter2-long b", "a *** b"},
        {"a hunter2-longer b", "a *** b"}, /* two that share their middle */
        {"hunter2hunter2", "******"},
        {"xyzzy-ab-plugh", "***"},
        {"xyzzy-abhunter2-longer.", "******."},
        {"hunter", "***"}, /* the end of a text that was cut */
        {"hun…", "hun…"},  /* too little to be anybody's */
        {"hunte…", "***…"},
        {"hunter is a word", "hunter is a word"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        secret_add(sv_of(secrets[i]));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(hidden(rows[i][0]), rows[i][1]);
    secret_drop(SV("hunter2"));
    assert_string_equal(hidden("a hunter2 b"), "a *** b"); /* added twice */
    secret_drop(SV("hunter2"));
    assert_string_equal(hidden("a hunter2 b"), "a hunter2 b");
    assert_string_equal(hidden("a hunter2-long b"), "a *** b");
}

static void every_encoding(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "p\"w'x&<y>/é \\1",
        "p%22w%27x%26%3Cy%3E%2F%C3%A9%20%5C1",
        "p%22w'x%26%3cy%3e/%c3%a9+%5c1",
        "p\\\"w'x&<y>\\/é \\\\1",
        "p\\u0022w\\u0027x\\u0026\\u003cy\\u003e/é \\\\1",
        "p&quot;w&#39;x&amp;&lt;y&gt;/é \\1",
        "p\\x22w'x&<y>/\\xc3\\xa9 \\x5c1",
        "p\"w'\\''x&<y>/é \\1",
    };
    secret_add(SV("p\"w'x&<y>/é \\1"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[200];
        snprintf(text, sizeof(text), "(%s)", rows[i]);
        assert_string_equal(hidden(text), "(***)");
    }
}

static void what_is_not_looked_for(void **state)
{
    (void)state;
    static const char *const ordinary[] = {"", "a", "1", "abc", "1234", "20261201", "127.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(ordinary); i++)
        secret_add(sv_of(ordinary[i]));
    secret_add((struct sv){NULL, 0});
    assert_string_equal(hidden("abcabc 1234 20261201 127.0.0.1"), "abcabc 1234 20261201 127.0.0.1");
    secret_add(SV("1234567890123"));
    assert_string_equal(hidden("1234567890123"), "***");
}

/* The program says "examined, of which" somewhere, here. */
static void the_programs_own_words(void **state)
{
    (void)state;
    char word[] = "fxamined, of which", other[] = "qlugh-4711";
    word[0]--;
    other[0]--;
    secret_learn_program();
    secret_add(sv_of(word));
    secret_add(sv_of(other));
    assert_string_equal(hidden("5 examined, of which"), "5 examined, of which");
    char text[40];
    snprintf(text, sizeof(text), "5 %s", other);
    assert_string_equal(hidden(text), "5 ***");
}

static void headers(void **state)
{
    (void)state;
    secret_add_header(SV("Authorization"), SV(" Bearer tok-9f8e7d"));
    secret_add_header(SV("Authorization"), SV("Basic YW5uOnMzY3JldC1nYW1tYQ=="));
    secret_add_header(SV("Cookie"), SV("sid=cook-12ab; theme=dark-77xy"));
    secret_add_header(SV("Authorization"), SV("Digest username=\"ann\", response=\"d1g3st-77\""));
    secret_add_header(SV("Accept"), SV("application/x-thing"));
    assert_string_equal(hidden("tok-9f8e7d s3cret-gamma YW5uOnMzY3JldC1nYW1tYQ=="), "*** *** ***");
    assert_string_equal(hidden("cook-12ab dark-77xy d1g3st-77"), "*** *** ***");
    assert_string_equal(hidden("application/x-thing"), "application/x-thing");
}

static void parts_of_a_word(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        bool header;
        const char *want; /* joined by | */
    } rows[] = {
        {"http://h/", false, ""},
        {"http://tok@h/", false, "tok"},
        {"http://u:p@h/", false, "p"},
        {"http://:p@h/", false, "p"},
        {"http://u:p@x@h/a@b", false, "p@x"},
        {"http://u:p/x@h/", false, "p/x"},
        {"http://h:80/a:b@c", false, ""},
        {"http://[::1]:80/a@c", false, ""},
        {"--url=http://h/x?token=a&sig=b#c=d", false, "a|b|d"},
        {"http://h/x?justthis", false, "justthis"},
        {"postgresql:///db?host=x&password=y", false, "x|y|y"},
        {"host=h password=p1 dbname=d", false, "p1"},
        {"password = 'it''s' sslpassword=z", false, "it|z"},
        {"password='a\\'b c' x", false, "a\\'b c"},
        {"--no-password", false, ""},
        {"X-Api-Key:v", true, "v"},
        {"X-Api-Key:\t v w", true, "v w"},
        {"--header=Cookie: a=b", true, "a=b"},
        {"none", true, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sv parts[8];
        char text[200] = "";
        size_t n = secret_parts(sv_of(rows[i].word), rows[i].header, parts, ARRAY_LEN(parts));
        for (size_t k = 0; k < n; k++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s" SV_FMT, k ? "|" : "", SV_ARG(parts[k]));
        assert_string_equal(text, rows[i].want);
    }
}

static void urls_well_formed_or_not(void **state)
{
    (void)state;
    secret_add_url("http://u:p%40ss-one@h/");
    secret_add_url("http//u:pass-two@h/");
    secret_add_url("http://lone-token@h/");
    secret_add_url("postgresql://u:pa/ss-three@h/db");
    secret_add_url("dbname=x password='pass-four'");
    secret_add_url(NULL);
    assert_string_equal(hidden("p@ss-one p%40ss-one pass-two lone-token pa/ss-three pass-four"),
                        "*** *** *** *** *** ***");
}

/* Pieces as a stream's buffer may cut them. */
static void streams(void **state)
{
    (void)state;
    char name[] = "/tmp/secret-XXXXXX", text[400];
    int made = mkstemp(name);
    secret_add(SV("stream-secret"));
    secret_add(SV("secret-tail-x"));
    FILE *f = secret_fopen(name, "w");
    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    static const char whole[] = "1 stream-secret 2 stream%2Dsecret-tail 3 stream-secret-tail-x 4 stream-secre";
    for (const char *p = whole; *p; p++)
        fputc(*p, f);
    assert_int_equal(fclose(f), 0);
    ssize_t n = pread(made, text, sizeof(text) - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, "1 *** 2 ***-tail 3 *** 4 ***");
    assert_null(secret_fopen(name, "wx"));
    assert_null(secret_fopen("/nonexistent/x", "w"));
    close(made);
    unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_and_all_that_overlap),
        cmocka_unit_test(every_encoding),
        cmocka_unit_test(what_is_not_looked_for),
        cmocka_unit_test(headers),
        cmocka_unit_test(parts_of_a_word),
        cmocka_unit_test(urls_well_formed_or_not),
        cmocka_unit_test(streams),
        cmocka_unit_test(the_programs_own_words), /* the last: from here on no literal is a secret */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
