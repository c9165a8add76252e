/* Refusals before and after the wire: what a row names, how an answer is judged, how the background is, and which keys
 * are ours to remove. */
#include "sim/clean/clean.h"
#include "sim/refusals/stage.h"
#include "sim/run/background.h"
#include "unit.h"
#include <string.h>

static void words_become_things(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name, *filled, *missing;
    } rows[] = {
        {"/api/files", NULL, "/api/files", NULL},
        {"/api/files/{file}/download", NULL, "/api/files/F1/download", NULL},
        {"{\"ids\":[\"{file}\"],\"parentId\":\"{folder}\"}", NULL, "{\"ids\":[\"F1\"],\"parentId\":\"D1\"}", NULL},
        {"{\"name\":\"{name}\"}", "a\"b\n", "{\"name\":\"a\\\"b\\n\"}", NULL},
        {"{\"name\":\"{name}\"}", "", "{\"name\":\"\"}", NULL},
        {"{\"fileSize\":7}", NULL, "{\"fileSize\":7}", NULL},
        {"{unheard}", NULL, "{unheard}", NULL},
        {"{", NULL, "{", NULL},
        {"/api/files/{foreign}/info", NULL, NULL, "foreign"},
    };
    struct stage s = {0};
    assert_true(str_fit(s.things[THING_FILE], sizeof s.things[0], "F1"));
    assert_true(str_fit(s.things[THING_FOLDER], sizeof s.things[0], "D1"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct refusal f = {.name = rows[i].name};
        struct buf out = BUF_INIT(1000);
        const char *missing = "";
        bool ok = refusal_fill(&s, &f, rows[i].pattern, &out, &missing);
        assert_int_equal(ok, rows[i].filled != NULL);
        if (ok)
            assert_string_equal(buf_cstr(&out), rows[i].filled);
        else
            assert_string_equal(missing, rows[i].missing);
        buf_done(&out);
    }
}

static void every_row_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_refusals; i++) {
        const struct refusal *f = &refusals[i];
        assert_true(f->key && f->asked && (f->flags & ROW_CALLS ? f->ask != NULL : f->method && f->path));
        assert_true(f->status >= 400 && f->status < 500);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(f->key, refusals[k].key);
        if (strstr(f->key, "over_quota"))
            assert_true(f->flags & ROW_OWN_ACCOUNT && f->before && f->after);
    }
}

static void an_answer_is_judged(void **state)
{
    (void)state;
    static const struct {
        struct refusal f;
        struct answer a;
        const char *problem; /* how it begins; NULL: none */
    } rows[] = {
        {{.status = 413}, {.status = 413, .reason = "too large", .us = 1000}, NULL},
        {{.status = 413}, {.status = 413, .us = 1000}, "413 without a reason"},
        {{.status = 413}, {.status = 200, .reason = ""}, "not refused, the server did it: 200"},
        {{.status = 413}, {.status = 507, .reason = "full"}, "507 instead of 413: full"},
        {{.status = 422, .or_status = 400}, {.status = 400, .reason = "name"}, NULL},
        {{.status = 423, .code = "LOCKED"}, {.status = 423, .reason = "x", .code = "LOCKED"}, NULL},
        {{.status = 423, .code = "LOCKED"}, {.status = 423, .reason = "x", .code = "OTHER"}, "423 with the code"},
        {{.status = 429, .flags = ROW_RETRY},
         {.status = 429, .reason = "x", .retry_after_us = -1},
         "429 without Retry"},
        {{.status = 429, .flags = ROW_RETRY}, {.status = 429, .reason = "x", .retry_after_us = 0}, NULL},
        {{.status = 413}, {.err = ERR_RESET, .reason = "connection reset"}, "no answer: connection reset"},
        {{.status = 413}, {.err = ERR_TIMEOUT, .status = 413, .reason = "timed out"}, "no answer: timed out"},
        {{.status = 403}, {.status = 403, .reason = "x", .besides = "it went on"}, "403, but it went on"},
        {{.status = 403}, {.status = 403, .reason = "x", .us = 1000001}, "after 1.0 s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[300];
        const char *problem = refusal_problem(&rows[i].f, &rows[i].a, US_PER_S, text, sizeof text);
        if (!rows[i].problem)
            assert_null(problem);
        else
            assert_true(problem && strncmp(problem, rows[i].problem, strlen(rows[i].problem)) == 0);
    }
}

static void backgrounds_are_compared_by_their_bounds(void **state)
{
    (void)state;
    static const struct {
        struct background_window before, now;
        enum background_verdict want;
    } rows[] = {
        {{1000, 0, 10000, 9000, 11000, 0, .5}, {1000, 0, 11900, 11000, 13000, 0, .5}, BACKGROUND_HELD},
        {{1000, 0, 10000, 9000, 11000, 0, .5}, {1000, 0, 12000, 9000, 19000, 0, .5}, BACKGROUND_HELD},
        {{1000, 0, 10000, 9000, 11000, 0, .5}, {1000, 0, 12500, 11000, 14000, 0, .5}, BACKGROUND_UNSETTLED},
        {{1000, 0, 10000, 9000, 11000, 0, .5}, {1000, 0, 20000, 14000, 25000, 0, .5}, BACKGROUND_WORSE},
        {{1000, 0, 10000, 9000, 11000, 0, .01}, {1000, 0, 20000, 14000, 25000, 0, .5}, BACKGROUND_CROWDED},
        {{1000, 0, 10000, 9000, 11000, 0, .5}, {1000, 0, 20000, 14000, 25000, 0, 0}, BACKGROUND_CROWDED},
        {{1000, 0, 10000, 9000, 11000, 0, -1}, {1000, 0, 20000, 14000, 25000, 0, -1}, BACKGROUND_WORSE},
        {{199, 0, 10000, 9000, 11000, 0, .5}, {1000, 0, 90000, 80000, 99000, 0, .5}, BACKGROUND_UNSETTLED},
        {{0, 0, -1, -1, -1, 0, .5}, {0, 0, -1, -1, -1, 0, .5}, BACKGROUND_UNSETTLED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(background_compare(&rows[i].before, &rows[i].now, 0.2), rows[i].want);
}

static void keys_are_ours_by_a_whole_part(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool ours;
    } rows[] = {
        {"drive:e1:budget:requests:U1", true},
        {"drive:e1:budget:logins:127.0.0.1:owner@load.test", true},
        {"cache:U1:files", true},
        {"U1", true},
        {"drive:e1:budget:requests:U11", false},
        {"drive:e1:budget:requests:xU1", false},
        {"drive:e1:budget:logins:127.0.0.1:somebody@example.com", false},
        {"", false},
    };
    struct map *ours = map_new();
    int mark;
    map_put(ours, SV("U1"), &mark);
    map_put(ours, SV("owner@load.test"), &mark);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(clean_key_is_ours(ours, sv_of(rows[i].key)), rows[i].ours);
    map_free(&ours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_things),           cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(an_answer_is_judged),           cmocka_unit_test(backgrounds_are_compared_by_their_bounds),
        cmocka_unit_test(keys_are_ours_by_a_whole_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
