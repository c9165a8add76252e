/* Routing: which row a path finds, its parameters decoded, other methods named; and cookies and queries of a request.
 */
#include "server/http/route.h"
#include "unit.h"
#include <string.h>

static struct request request_of(struct arena *mem, const char *method, const char *path)
{
    return (struct request){.mem = mem, .method = method, .path = sv_of(path), .query = SV("")};
}

static const struct {
    const char *method, *path, *pattern; /* pattern NULL: none */
    const char *param;
    bool known; /* other methods have it */
} cases[] = {
    {"GET", "/health", "/health", NULL, false},
    {"HEAD", "/health", "/health", NULL, false},
    {"POST", "/health", NULL, NULL, true},
    {"GET", "/health/", NULL, NULL, false},
    {"GET", "//health", NULL, NULL, false},
    {"GET", "/", NULL, NULL, false},
    {"OPTIONS", "*", NULL, NULL, false},
    {"GET", "/api/files", "/api/files", NULL, false},
    {"GET", "/api/files/events", "/api/files/events", NULL, false},
    {"GET", "/api/files/changes", "/api/files/changes", NULL, false},
    {"GET", "/api/files/search", "/api/files/search", NULL, false},
    {"GET", "/api/files/abc/info", "/api/files/:id/info", "abc", false},
    {"GET", "/api/files/a%20b%2Fc/info", "/api/files/:id/info", "a b/c", false},
    {"GET", "/api/files/%00/info", NULL, NULL, false},
    {"GET", "/api/files/%zz/info", NULL, NULL, false},
    {"GET", "/api/files//info", NULL, NULL, false},
    {"GET", "/api/files/abc/info/more", NULL, NULL, false},
    {"DELETE", "/api/user/sub-users/u1", "/api/user/sub-users/:id", "u1", false},
    {"GET", "/api/user/sub-users/u1", NULL, NULL, true},
    {"PUT", "/api/user/sub-users", NULL, NULL, true},
    {"GET", "/API/files", NULL, NULL, false},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *mem = arena_new(512);
        struct request r = request_of(mem, cases[i].method, cases[i].path);
        struct buf allow = BUF_INIT(256);
        bool known;
        const struct route *found = route_find(&r, &known, &allow);
        if ((found != NULL) != (cases[i].pattern != NULL) || (found && strcmp(found->pattern, cases[i].pattern) != 0))
            fail_msg("%s %s found %s", cases[i].method, cases[i].path, found ? found->pattern : "nothing");
        if (cases[i].param)
            assert_string_equal(r.params[0], cases[i].param);
        if (!found) {
            assert_int_equal(known, cases[i].known);
            assert_int_equal(allow.len > 0, cases[i].known);
        }
        buf_done(&allow);
        arena_free(&mem);
    }
}

static void test_names_the_other_methods(void **state)
{
    (void)state;
    struct arena *mem = arena_new(512);
    struct request r = request_of(mem, "PATCH", "/api/user/sub-users/u1");
    struct buf allow = BUF_INIT(256);
    bool known;
    assert_null(route_find(&r, &known, &allow));
    assert_string_equal(buf_cstr(&allow), "PUT, DELETE");
    buf_done(&allow);
    arena_free(&mem);
}

static void test_query(void **state)
{
    (void)state;
    struct arena *mem = arena_new(512);
    struct request r = request_of(mem, "GET", "/");
    r.query = SV("a=1&b=x+y%2Bz&c=&b=2&%64=4&bad=%zz&nul=%00&utf=%ff&e");
    assert_string_equal(req_query(&r, "a"), "1");
    assert_string_equal(req_query(&r, "b"), "x y+z");
    assert_string_equal(req_query(&r, "c"), "");
    assert_string_equal(req_query(&r, "d"), "4");
    assert_null(req_query(&r, "bad"));
    assert_null(req_query(&r, "nul"));
    assert_null(req_query(&r, "utf"));
    assert_null(req_query(&r, "missing"));
    assert_string_equal(req_query(&r, "e"), "");
    r.query = SV("");
    assert_null(req_query(&r, "a"));
    arena_free(&mem);
}

static void test_headers_and_cookies(void **state)
{
    (void)state;
    const struct http_header headers[] = {
        {SV("Cookie"), SV("a=b; token=x.y=z ;c=d; tokens=no")},
        {SV("X-Two"), SV("first")},
        {SV("x-two"), SV("second")},
    };
    struct request r = {.headers = headers, .n_headers = ARRAY_LEN(headers)};
    assert_true(sv_eq_cstr(req_header(&r, "x-TWO"), "first"));
    assert_null(req_header(&r, "X-Three").p);
    assert_true(sv_eq_cstr(req_cookie(&r, "token"), "x.y=z"));
    assert_true(sv_eq_cstr(req_cookie(&r, "a"), "b"));
    assert_null(req_cookie(&r, "toke").p);
    r.n_headers = 0;
    assert_null(req_cookie(&r, "a").p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_names_the_other_methods),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_headers_and_cookies),
    };
    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
