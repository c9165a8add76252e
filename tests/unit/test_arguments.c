#include "base/secret.h"
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
        {{"http", "--url=https://u:a@b@h?x=1@2"}, "'--url=https://u:***@h?x=***'"},
        {{"http", "http://u@h/"}, "http://***@h/"},
        {{"http", "http://h/?token=a&sig=b"}, "'http://h/?token=***&sig=***'"},
        {{"http", "htp://u:p@h/"}, "htp://u:***@h/"},
        {{"http", "u:p@h/"}, "u:***@h/"},
        {{"http", "-H", "X-Api-Key:abc"}, "-H X-Api-Key:***"},
        {{"http", "-kH", "X-Api-Key:\tabc"}, "-kH 'X-Api-Key:\\x09***'"},
        {{"http", "-kHX-Api-Key:abc"}, "-kHX-Api-Key:***"},
        {{"http", "--headr", "X-Thing:abc"}, "--headr X-Thing:***"},
        {{"http", "--header=X-Thing:abc"}, "--header=X-Thing:***"},
        {{"http", "--header@X-Thing:abc"}, "--header@X-Thing:***"},
        {{"run", "X-Api-Key:abc"}, "X-Api-Key:***"},
        {{"run", "password=abc", "x"}, "password=*** x"},
        {{"run", "--chaos", "kill:server@10,pause:redis@20+10"}, "--chaos kill:server@10,pause:redis@20+10"},
        {{"ramp", "25:400:x2", "--session", "upload:64KiB"}, "25:400:x2 --session upload:64KiB"},
        {{"run", "--watch", "ssh:ann@host:22"}, "--watch ssh:ann@host:22"},
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

/* As the kernel keeps them: one behind the other. */
static void overwritten_in_place(void **state)
{
    (void)state;
    char area[] = "sim\0http\0http://ann:pass-word-9@h/\0-k\0-H\0X-Api-Key:k3y-value-9", copy[sizeof(area)];
    char *argv[7], *at = area;
    int argc = 0;
    for (; at < area + sizeof(area); at += strlen(at) + 1)
        argv[argc++] = at;
    assert_int_equal(argc, 6);
    memcpy(copy, area, sizeof(area));
    char **kept = arguments_guard(argc, argv);
    assert_string_equal(kept[2], "http://ann:pass-word-9@h/");
    assert_string_equal(kept[5], "X-Api-Key:k3y-value-9");
    assert_null(kept[6]);
    static const char want[] = "sim\0http\0http://ann:***@h/\0-k\0-H\0X-Api-Key:***";
    assert_memory_equal(area, want, sizeof(want));
    for (size_t i = sizeof(want); i < sizeof(area); i++)
        assert_int_equal(area[i], 0);
    char text[100];
    snprintf(text, sizeof(text), "(%s)", "pass-word-9 k3y-value-9");
    secret_hide_in(text, sizeof(text));
    assert_string_equal(text, "(*** ***)");
    while (argc)
        mem_free(kept[--argc]);
    mem_free(kept);
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
        cmocka_unit_test(overwritten_in_place),
        cmocka_unit_test(cut_where_it_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
