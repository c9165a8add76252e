/* Figures out of Prometheus' text: the whole name, no labels, the first of its kind. */
#include "drive/api/scrape.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void values(void **state)
{
    (void)state;
    static const char text[] =
        "# HELP a_total Words: a_total 9\n# TYPE a_total counter\na_total_more 1\na_total 2.5e3\r\n"
        "b{x=\"1\"} 4\nb 5\nc NaN\nd -1\nlast 7";
    static const struct {
        const char *name;
        bool found;
        double want;
    } rows[] = {{"a_total", true, 2500}, {"a_total_more", true, 1}, {"b", true, 5},  {"c", false, 0},
                {"d", true, -1},         {"last", true, 7},         {"a", false, 0}, {"", false, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = 0;
        assert_int_equal(scrape_value(text, rows[i].name, &v), rows[i].found);
        assert_true(!rows[i].found || (v > rows[i].want - 1e-9 && v < rows[i].want + 1e-9));
    }
    double v;
    assert_false(scrape_value("", "a", &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
