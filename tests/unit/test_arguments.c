#include "sim/arguments.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

static void as_typed_but_for_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *words[6], *want;
    } rows[] = {
        {{"run", "20", "60"}, "20 60"},
        {{"run"}, ""},
        {{"run", "--fail-on", "save.p99<200ms"}, "--fail-on 'save.p99<200ms'"},
        {{"run", ""}, "''"},
        {{"http", "http://h:80/a:b@c"}, "http://h:80/a:b@c"},
        {{"http", "http://u:p%40ss@h/"}, "http://u:***@h/"},
        {{"http", "--url=https://u:a@b@h?x=1@2"}, "'--url=https://u:***@h?x=1@2'"},
        {{"http", "http://u@h/"}, "http://u@h/"},
        {{"http", "-H", "Authorization: Bearer abc"}, "-H 'Authorization: ***'"},
        {{"http", "--header=Cookie: a=b; c: d"}, "'--header=Cookie: ***'"},
        {{"stack", "--server-args=a b: c"}, "'--server-args=a b: c'"},
        {{"seed", "\x1b[31m\xff"}, "\\x1b[31m\\xff"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *argv[6], text[200];
        int argc = 0;
        for (; argc < 6 && rows[i].words[argc]; argc++)
            argv[argc] = mem_strdup(rows[i].words[argc]);
        assert_string_equal(arguments_tell(text, sizeof(text), argc, argv), rows[i].want);
        while (argc)
            mem_free(argv[--argc]);
    }
}

static void cut_where_it_does_not_fit(void **state)
{
    (void)state;
    char text[40], many[4000];
    char *argv[] = {many, many, many};
    memset(many, 'x', sizeof(many));
    many[sizeof(many) - 1] = '\0';
    arguments_tell(text, sizeof(text), 3, argv);
    assert_true(strlen(text) < sizeof(text));
    assert_non_null(strstr(text, "xxx…"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_typed_but_for_secrets),
        cmocka_unit_test(cut_where_it_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
