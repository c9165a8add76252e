#include "base/json.h"
#include "locale_comma.h"
#include "unit.h"
#include <math.h>
#include <string.h>

static enum err parse(const char *text, struct json **out)
{
    *out = NULL;
    return json_parse(text, strlen(text), out, NULL);
}

static const struct json *nth(const struct json *array, size_t i)
{
    const struct json *item = json_first(array);
    while (item && i-- > 0)
        item = json_next(item);
    return item;
}

static void reading(void **state)
{
    (void)state;
    struct json *j;
    int64_t i;
    double d;
    assert_int_equal(
        parse("{\"a\":1,\"A\":2,\"s\":\"x\",\"size\":\"123\",\"n\":null,\"l\":[1,{\"k\":true}],\"f\":1.5}", &j),
        ERR_OK);
    assert_true(json_i64(json_get(j, "a"), &i) && i == 1);
    assert_true(json_i64(json_get(j, "A"), &i) && i == 2); /* case counts */
    assert_string_equal(json_str(json_get(j, "s")), "x");
    assert_true(json_i64(json_get(j, "size"), &i) && i == 123); /* v2 sizes are strings */
    assert_false(json_i64(json_get(j, "f"), &i));
    assert_true(json_f64(json_get(j, "f"), &d) && d == 1.5);
    assert_true(json_is_null(json_get(j, "n")) && json_is_null(json_get(j, "missing")));
    const struct json *l = json_get(j, "l");
    assert_int_equal(json_count(l), 2);
    assert_true(json_bool(json_get(nth(l, 1), "k"), false));
    assert_null(nth(l, 2));
    assert_string_equal(json_key(json_first(j)), "a");
    assert_null(json_get(l, "x"));
    assert_null(json_get(NULL, "x"));
    assert_null(json_str(json_get(j, "a")));
    assert_int_equal(json_count(j), 7);
    json_free(&j);
    assert_null(j);
    json_free(&j);
}

static void malformed(void **state)
{
    (void)state;
    static const char *const bad[] = {"",       " ",   "{",   "[1,]",       "{\"a\":}",      "{a:1}",     "[1] x",
                                      "\"open", "nul", "tru", "{\"a\":1}}", "[\"\\ud800\"]", "[\"\\x\"]", "\x01"};
    for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
        struct json *j;
        assert_int_equal(parse(bad[k], &j), ERR_PARSE);
        assert_null(j);
    }
    struct json *j = NULL;
    assert_int_equal(json_parse("1\0", 2, &j, NULL), ERR_PARSE);
    assert_int_equal(parse("[\"a\\u0000b\"]", &j), ERR_PARSE); /* would read as "a" */
    assert_int_equal(parse("[\"a\\\\u0000b\"]", &j), ERR_OK);  /* a backslash, then u0000 */
    json_free(&j);
    assert_int_equal(json_parse("[1]garbage", 3, &j, NULL), ERR_OK); /* n counts, not the NUL */
    json_free(&j);
}

/* 64 levels pass on a small stack, 65 are refused before cJSON sees them; brackets within strings do not count. */
static void depth(void **state)
{
    (void)state;
    char text[2 * 100000 + 1];
    struct json *j;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_int_equal(json_parse(text, 128, &j, NULL), ERR_OK);
    json_free(&j);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    struct errinfo ei;
    assert_int_equal(json_parse(text, 130, &j, &ei), ERR_PARSE);
    assert_non_null(strstr(ei.msg, "64"));
    memset(text, '[', 100000);
    assert_int_equal(json_parse(text, 100000, &j, NULL), ERR_PARSE);
    memset(text, '[', 1000);
    text[0] = '"';
    text[999] = '"';
    assert_int_equal(json_parse(text, 1000, &j, NULL), ERR_OK);
    json_free(&j);
    assert_int_equal(parse("[\"\\\"[[[\"]", &j), ERR_OK);
    json_free(&j);
}

static void large_numbers(void **state)
{
    (void)state;
    struct json *j;
    int64_t i;
    double d;
    assert_int_equal(parse("[9007199254740992,9007199254740994000,1e999,-4294967297,\"9223372036854775807\"]", &j),
                     ERR_OK);
    assert_true(json_i64(nth(j, 0), &i) && i == INT64_C(9007199254740992));
    assert_false(json_i64(nth(j, 1), &i)); /* a double no longer holds it exactly */
    assert_false(json_f64(nth(j, 2), &d));
    assert_true(json_i64(nth(j, 3), &i) && i == INT64_C(-4294967297));
    assert_true(json_i64(nth(j, 4), &i) && i == INT64_MAX);
    json_free(&j);
}

static void writing(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(4096);
    struct jsonw w;
    jsonw_init(&w, &b);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "s", "q\" b\\ n\n \x1b \x7f \xC3\xA9 \xFF");
    jsonw_str(&w, "null", NULL);
    jsonw_i64(&w, "min", INT64_MIN);
    jsonw_f64(&w, "f", 12.5, 3);
    jsonw_f64(&w, "whole", 10, 3);
    jsonw_f64(&w, "hundred", 100, 0);
    jsonw_f64(&w, "nan", NAN, 1);
    jsonw_f64(&w, "inf", INFINITY, 1);
    jsonw_f64(&w, "zero", -0.0001, 2);
    jsonw_array(&w, "a");
    jsonw_bool(&w, NULL, true);
    jsonw_object(&w, NULL);
    jsonw_end_object(&w);
    jsonw_raw(&w, NULL, SV("[1]"));
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    assert_int_equal(w.err, ERR_OK);
    assert_string_equal(
        b.data,
        "{\"s\":\"q\\\" b\\\\ n\\n \\u001b \\u007f \xC3\xA9 \xEF\xBF\xBD\",\"null\":null,"
        "\"min\":-9223372036854775808,\"f\":12.5,\"whole\":10,\"hundred\":100,\"nan\":null,\"inf\":null,\"zero\":0,"
        "\"a\":[true,{},[1]]}");
    struct json *j;
    assert_int_equal(json_parse(b.data, b.len, &j, NULL), ERR_OK);
    json_free(&j);
    buf_done(&b);
}

static void write_errors_stick(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(8);
    struct jsonw w;
    jsonw_init(&w, &b);
    jsonw_array(&w, NULL);
    jsonw_str(&w, NULL, "longer than that");
    jsonw_end_array(&w);
    assert_int_equal(w.err, ERR_LIMIT);
    buf_done(&b);
}

/* X01 */
static void decimal_comma(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(64);
    struct jsonw w;
    struct json *j;
    double d;
    if (!locale_comma())
        skip();
    jsonw_init(&w, &b);
    jsonw_array(&w, NULL);
    jsonw_f64(&w, NULL, 0.25, 3);
    jsonw_end_array(&w);
    assert_string_equal(b.data, "[0.25]");
    assert_int_equal(json_parse(b.data, b.len, &j, NULL), ERR_OK);
    assert_true(json_f64(json_first(j), &d) && d == 0.25);
    json_free(&j);
    buf_done(&b);
    locale_plain();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),       cmocka_unit_test(malformed),          cmocka_unit_test(depth),
        cmocka_unit_test(writing),       cmocka_unit_test(write_errors_stick), cmocka_unit_test(large_numbers),
        cmocka_unit_test(decimal_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
