/* The wire's shapes: what real servers were seen to send is read, hostile text is made harmless. */
#include "drive/wire.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void files(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool ok, folder;
        int64_t size;
        const char *version, *parent;
    } rows[] = {
        {"{\"id\":\"a\",\"name\":\"n\",\"type\":\"file\",\"size\":4096,\"version\":\"7\",\"parentId\":\"p\"}", true,
         false, 4096, "7", "p"},
        {"{\"id\":\"a\",\"name\":\"n\",\"type\":\"file\",\"size\":\"4096\"}", true, false, 4096, NULL, NULL},
        {"{\"id\":\"a\",\"name\":\"n\",\"type\":\"file\",\"size\":\"4294967297\",\"version\":12}", true, false,
         4294967297, "12", NULL},
        {"{\"id\":\"a\",\"name\":\"n\",\"type\":\"folder\",\"size\":null,\"parentId\":null}", true, true, -1, NULL,
         NULL},
        {"{\"id\":\"a\",\"name\":\"n\",\"type\":\"folder\",\"size\":17}", true, true, -1, NULL, NULL},
        {"{\"id\":\"a\",\"name\":\"n\",\"type\":\"file\",\"size\":-5}", true, false, -1, NULL, NULL},
        {"{\"id\":\"a\",\"name\":\"n\",\"type\":\"file\",\"size\":1.5}", true, false, -1, NULL, NULL},
        {"{\"name\":\"n\",\"type\":\"file\"}", false, false, 0, NULL, NULL},
        {"{\"id\":\"a\",\"type\":\"file\"}", false, false, 0, NULL, NULL},
        {"{\"id\":\"\",\"name\":\"n\"}", false, false, 0, NULL, NULL},
        {"[]", false, false, 0, NULL, NULL},
        {"7", false, false, 0, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena *mem = arena_new(1024);
        struct json *j;
        struct drive_file f;
        assert_int_equal(json_parse(rows[i].json, strlen(rows[i].json), &j, NULL), ERR_OK);
        if (wire_file(j, mem, &f) != rows[i].ok)
            fail_msg("row %zu", i);
        if (rows[i].ok) {
            assert_int_equal(f.folder, rows[i].folder);
            assert_int_equal(f.size, rows[i].size);
            assert_true(sv_eq(sv_of(f.version), sv_of(rows[i].version)));
            assert_true(sv_eq(sv_of(f.parent_id), sv_of(rows[i].parent)));
        }
        json_free(&j);
        arena_free(&mem);
    }
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *body, *reason, *code;
        bool readable;
    } rows[] = {
        {"{\"message\":\"No token provided\"}", "No token provided", "", true},
        {"{\"message\":\"Held\",\"error\":\"LOCKED\"}", "Held", "LOCKED", true},
        {"{\"message\":\"Held\",\"error\":\"LOCKED\",\"lockedBy\":{\"name\":\"Bo\"},\"expiresAt\":\"2026-11-30T12:00:"
         "00Z\"}",
         "Held: Bo, until 2026-11-30T12:00:00Z", "LOCKED", true},
        {"{\"error\":\"Too many requests, please wait.\"}", "Too many requests, please wait.", "", true},
        {"{\"error\":\"GONE\"}", "GONE", "GONE", true},
        {"{\"message\":\"Validation failed\",\"details\":[{\"undefined\":\"too short\"}]}",
         "Validation failed: too short", "", true},
        {"{\"message\":\"Validation failed\",\"details\":\"name\"}", "Validation failed: name", "", true},
        {"{\"message\":\"boom\\u001b[2J\\r\\nok\"}", "boom\\x1b[2J\\x0d\\x0aok", "", true},
        {"{}", "", "", false},
        {"<html>Cannot POST</html>", "", "", false},
        {"", "", "", false},
        {"{\"message\":7}", "", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char reason[200], code[WIRE_CODE_MAX];
        assert_int_equal(wire_error(sv_of(rows[i].body), reason, sizeof reason, code), rows[i].readable);
        assert_string_equal(reason, rows[i].reason);
        assert_string_equal(code, rows[i].code);
    }
}

static void long_reasons_are_cut(void **state)
{
    (void)state;
    static char body[12000];
    char reason[200], code[WIRE_CODE_MAX];
    strcpy(body, "{\"message\":\"");
    memset(body + strlen(body), 'x', 10240);
    strcat(body, "\"}");
    assert_true(wire_error(sv_of(body), reason, sizeof reason, code));
    assert_true(strlen(reason) < 200 && strlen(reason) > 150);
}

static void cookies_and_tags(void **state)
{
    (void)state;
    struct sv v;
    assert_true(wire_set_cookie(SV("token=abc.def; Path=/; HttpOnly"), "token", &v));
    assert_true(sv_eq_cstr(v, "abc.def"));
    assert_true(wire_set_cookie(SV("token=; Max-Age=0"), "token", &v));
    assert_int_equal(v.n, 0);
    assert_false(wire_set_cookie(SV("other=token=x"), "token", &v));
    assert_false(wire_set_cookie(SV("token"), "token", &v));
    assert_true(wire_etag(SV("\"12\""), &v));
    assert_true(sv_eq_cstr(v, "12"));
    assert_false(wire_etag(SV("W/\"12\""), &v));
    assert_false(wire_etag(SV("\"\""), &v));
    assert_false(wire_etag(SV("\"a\"b\""), &v));
    assert_false(wire_etag(SV("12"), &v));
}

static void token_life(void **state)
{
    (void)state;
    /* {"alg":"HS256"} . {"id":"x","iat":1000,"exp":1020} */
    assert_int_equal(wire_token_life_us(SV("eyJhbGciOiJIUzI1NiJ9.eyJpZCI6IngiLCJpYXQiOjEwMDAsImV4cCI6MTAyMH0.sig")),
                     20 * US_PER_S);
    /* {"id":"x"}; {"iat":5,"exp":5}; no JSON; no JWT */
    assert_int_equal(wire_token_life_us(SV("a.eyJpZCI6IngifQ.c")), -1);
    assert_int_equal(wire_token_life_us(SV("a.eyJpYXQiOjUsImV4cCI6NX0.c")), -1);
    assert_int_equal(wire_token_life_us(SV("a.b.c")), -1);
    assert_int_equal(wire_token_life_us(SV("fake")), -1);
    assert_int_equal(wire_token_life_us(SV("")), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),
        cmocka_unit_test(errors),
        cmocka_unit_test(long_reasons_are_cut),
        cmocka_unit_test(cookies_and_tags),
        cmocka_unit_test(token_life),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
