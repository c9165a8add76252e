#include "base/opt.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

struct common {
    const char *json;
    struct opt_list fail_on;
    bool quiet;
};
struct conf {
    struct common common;
    int64_t apps, folders, size, wait_us;
    double rate;
    bool keep;
    int64_t n;
};

static const struct opt_pos positionals[] = {
    {"apps", OPT_INT, offsetof(struct conf, apps), 1, 100000, false, "how many apps"},
    {"rate", OPT_NUM, offsetof(struct conf, rate), 0, 600, false, "how many actions\na minute"},
    {"folders", OPT_INT, offsetof(struct conf, folders), 0, 0, true, "open folders"},
    {0},
};
static const struct opt options[] = {
    {"size", 0, "SIZE", OPT_SIZE, offsetof(struct conf, size), 1, 1073741824, "size of a file"},
    {"wait", 'w', "TIME", OPT_DURATION, offsetof(struct conf, wait_us), 0, 0, "how long"},
    {"keep", 'k', NULL, OPT_FLAG, offsetof(struct conf, keep), 0, 0, "keep alive"},
    {"number", 'n', "N", OPT_INT, offsetof(struct conf, n), -5, 1e300, "requests"},
    {0},
};
static const struct opt common_options[] = {
    {"json", 0, "FILE", OPT_STR, offsetof(struct common, json), 0, 0, "result as JSON"},
    {"fail-on", 0, "COND", OPT_LIST, offsetof(struct common, fail_on), 0, 0, "condition"},
    {"quiet", 'q', NULL, OPT_FLAG, offsetof(struct common, quiet), 0, 0, "say less\nmuch less"},
    {0},
};
static const struct opt_table tables[] = {{positionals, options, 0},
                                          {NULL, common_options, offsetof(struct conf, common)}};

/* "a b c" as argv behind a program name; words are split at single spaces. */
static enum err parse(const char *line, struct conf *c, bool *help, struct errinfo *ei)
{
    static char text[400];
    static char *argv[32];
    int argc = 1;
    snprintf(text, sizeof text, "%s", line);
    argv[0] = text + sizeof text - 1;
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    *c = (struct conf){.folders = 9};
    return opt_parse(argc, argv, tables, ARRAY_LEN(tables), c, help, ei);
}

static void good_lines(void **state)
{
    (void)state;
    struct conf c;
    bool help;
    assert_int_equal(parse("20 0.5", &c, &help, NULL), ERR_OK);
    assert_true(c.apps == 20 && c.rate == 0.5 && c.folders == 9 && !help);
    assert_int_equal(
        parse("--json - 20 --size=64KiB 6 -w 500ms -kq 300 -n7 --fail-on a<1 --fail-on=b==2", &c, &help, NULL), ERR_OK);
    assert_true(c.apps == 20 && c.rate == 6 && c.folders == 300 && c.size == 65536 && c.wait_us == 500000 && c.keep &&
                c.n == 7);
    assert_true(c.common.quiet);
    assert_string_equal(c.common.json, "-");
    assert_int_equal(c.common.fail_on.n, 2);
    assert_string_equal(c.common.fail_on.items[0], "a<1");
    assert_string_equal(c.common.fail_on.items[1], "b==2");
    opt_done(tables, ARRAY_LEN(tables), &c);
    assert_null(c.common.fail_on.items);
    assert_int_equal(parse("-kn -3 1 1 -- -5", &c, &help, NULL), ERR_OK);
    assert_true(c.n == -3 && c.folders == -5);
    assert_int_equal(parse("1 1 --wait@30", &c, &help, NULL), ERR_OK);
    assert_int_equal(c.wait_us, 30000000);
    assert_int_equal(parse("1 1 -7", &c, &help, NULL), ERR_OK); /* a negative number is no option */
    assert_int_equal(c.folders, -7);
}

/* Each is refused by a sentence that names what is wrong. */
static void bad_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says[3];
    } rows[] = {
        {"", {"<apps>", "how many apps"}},
        {"20", {"<rate>", "missing", "how many actions"}}, /* an error is one line */
        {"0 1", {"<apps>", "from 1 to 100000", "\"0\""}},
        {"1,5 1", {"<apps>", "whole number", "1,5"}},
        {"x 1", {"<apps>", "\"x\""}},
        {"1 0,5", {"<rate>", "0,5"}},
        {"1 601", {"<rate>", "from 0 to 600"}},
        {"1 nan", {"<rate>"}},
        {"-5 1", {"<apps>", "-5"}},
        {"1 1 1 4", {"unexpected", "\"4\""}},
        {"1 1 --jsn x", {"--jsn", "did you mean --json"}},
        {"1 1 --colour", {"--colour"}},
        {"1 1 -x", {"unknown option -x"}},
        {"1 1 --json", {"--json needs FILE"}},
        {"1 1 --json --quiet", {"--json needs FILE"}},
        {"1 1 --quiet@1", {"--quiet takes no value"}},
        {"1 1 --quiet=1", {"--quiet takes no value"}},
        {"1 1 --size 2TiB", {"--size", "1 B to 1.0 GiB"}},
        {"1 1 --size 5x", {"--size", "5x"}},
        {"1 1 --wait -1", {"--wait", "-1"}},
        {"1 1 -n -9", {"-n", "at least -5"}},
        {"1 1 --", {NULL}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows) - 1; i++) {
        struct conf c;
        bool help;
        struct errinfo ei = {0};
        assert_int_equal(parse(rows[i].line, &c, &help, &ei), ERR_USAGE);
        for (size_t k = 0; k < ARRAY_LEN(rows[i].says) && rows[i].says[k]; k++)
            if (!strstr(ei.msg, rows[i].says[k]))
                fail_msg("'%s': \"%s\" does not say \"%s\"", rows[i].line, ei.msg, rows[i].says[k]);
        opt_done(tables, ARRAY_LEN(tables), &c);
    }
}

/* X11: an argument is shown escaped. */
static void hostile_arguments(void **state)
{
    (void)state;
    struct conf c;
    bool help;
    struct errinfo ei;
    static const char *const lines[] = {"\x1b[2J 1", "1 1 1 \x1b[2J", "1 1 --\x1b[2J", "1 1 -\x1b"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(parse(lines[i], &c, &help, &ei), ERR_USAGE);
        assert_null(strchr(ei.msg, '\x1b'));
        assert_non_null(strstr(ei.msg, "\\x1b"));
    }
}

static void help_wins(void **state)
{
    (void)state;
    struct conf c;
    bool help;
    assert_int_equal(parse("nonsense --what -h", &c, &help, NULL), ERR_OK);
    assert_true(help);
    assert_int_equal(parse("--help", &c, &help, NULL), ERR_OK);
    assert_true(help);
    assert_int_equal(parse("1 1 -- --help", &c, &help, NULL), ERR_USAGE);
    assert_false(help);
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    opt_print_help(out, tables, ARRAY_LEN(tables));
    fclose(out);
    assert_non_null(strstr(text, "  <apps>                    how many apps\n"));
    assert_non_null(strstr(text, "  [folders]  "));
    assert_non_null(strstr(text, "  -w, --wait TIME           how long\n"));
    assert_non_null(strstr(text, "      --json FILE           result as JSON\n"));
    assert_non_null(strstr(text, "say less\n                            much less\n"));
    free(text);
}

static void scaled_values(void **state)
{
    (void)state;
    int64_t v;
    static const struct {
        const char *text;
        int64_t us;
    } times[] = {{"30", 30000000},   {"500ms", 500000}, {"1.5s", 1500000}, {"5min", 300000000},
                 {"2h", 7200000000}, {"0", 0},          {"10us", 10}};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        assert_int_equal(opt_parse_duration(sv_of(times[i].text), &v), ERR_OK);
        assert_int_equal(v, times[i].us);
    }
    static const char *const bad[] = {"", "s", "5 s", "-5s", "5sec", "1e3s", "nan", "99999999999999999h", "."};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(opt_parse_duration(sv_of(bad[i]), &v), ERR_USAGE);
    assert_int_equal(opt_parse_size(sv_of("512"), &v), ERR_OK);
    assert_int_equal(v, 512);
    assert_int_equal(opt_parse_size(sv_of("1.5KiB"), &v), ERR_OK);
    assert_int_equal(v, 1536);
    assert_int_equal(opt_parse_size(sv_of("2MB"), &v), ERR_OK);
    assert_int_equal(v, 2000000);
    assert_int_equal(opt_parse_size(sv_of("9EiB"), &v), ERR_USAGE);
}

static void guesses(void **state)
{
    (void)state;
    static const char *const names[] = {"run", "ramp", "reads", "report", "pg", "stream_connect"};
    static const char *const rows[][2] = {
        {"rnu", "run"},     {"rum", "run"},        {"reprot", "report"},
        {"raeds", "reads"}, {"rmpa", "ramp"},      {"stream_conect", "stream_connect"},
        {"xy", ""},         {"quite_another", ""}, {"", ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct opt_guess g;
        opt_guess_init(&g, sv_of(rows[i][0]));
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            opt_guess_try(&g, names[k]);
        assert_string_equal(g.name, rows[i][1]);
        assert_int_equal(opt_guess_text(&g)[0] == '\0', rows[i][1][0] == '\0');
    }
    assert_int_equal(opt_distance("ab", "ba"), 1);
    assert_int_equal(opt_distance("", "abc"), 3);
    assert_int_equal(opt_distance("kitten", "sitting"), 3);
}

static void words_of_a_list(void **state)
{
    (void)state;
    static const char *items[] = {"a, b", "", "c,"}, *const expected[] = {"a", "b", "", "c", ""};
    const struct opt_list list = {items, ARRAY_LEN(items)}, none = {NULL, 0};
    struct opt_words w = {.list = &list}, empty = {.list = &none};
    struct sv word;
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_true(opt_words_next(&w, &word));
        assert_true(sv_eq_cstr(word, expected[i]));
    }
    assert_false(opt_words_next(&w, &word));
    assert_false(opt_words_next(&w, &word));
    assert_false(opt_words_next(&empty, &word));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_lines), cmocka_unit_test(bad_lines),     cmocka_unit_test(hostile_arguments),
        cmocka_unit_test(help_wins),  cmocka_unit_test(scaled_values), cmocka_unit_test(words_of_a_list),
        cmocka_unit_test(guesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
