/* Plots are well-formed whatever the numbers: none, one, all the same, gaps, hostile names. */
#include "drive/result/plot.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

static char *drawn(const struct plot *p)
{
    struct buf b = BUF_INIT(1 << 20);
    struct markup m;
    markup_init(&m, &b);
    plot_write(&m, p);
    assert_int_equal(m.err, ERR_OK);
    return buf_take(&b, NULL);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void round_steps(void **state)
{
    (void)state;
    static const double rows[][2] = {{1, 1},  {1.1, 2},     {2, 2},       {3, 5},
                                     {7, 10}, {0.03, 0.05}, {1200, 2000}, {0.001, 0.001}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_true(fabs(plot_round_step(rows[i][0]) / rows[i][1] - 1) < 1e-9);
}

static void numbers_of_an_axis(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *want;
    } rows[] = {{0, "0"}, {0.5, "0.5"}, {20, "20"}, {1500, "1,500"}, {-1500, "-1,500"}, {2500000, "2.5 M"}};
    char text[40];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(plot_number(text, sizeof(text), rows[i].v), rows[i].want);
}

/* However odd the numbers: no nan, no inf, every tag that is opened is closed. */
static void any_numbers(void **state)
{
    (void)state;
    static const double x[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const double columns[][8] = {
        {0, 0, 0, 0, 0, 0, 0, 0},
        {5, 5, 5, 5, 5, 5, 5, 5},
        {1e-9, 1e9, 1, 0, 1, 1, 1, 1},
        {NAN, NAN, 3, NAN, NAN, NAN, NAN, 4},
        {INFINITY, 1, -INFINITY, NAN, 2, 2, 2, 2},
        {1e300, 1, 1, 1, 1, 1, 1, 1},
    };
    for (size_t c = 0; c < ARRAY_LEN(columns); c++)
        for (int scale = PLOT_LINEAR; scale <= PLOT_LOG; scale++)
            for (size_t n = 0; n <= 8; n++) {
                const struct plot_line line = {.name = "a", .x = x, .y = columns[c], .n = n, .class = "c1"};
                const struct plot p = {.title = "t",
                                       .unit = "u",
                                       .x_unit = "s",
                                       .scale = (enum plot_scale)scale,
                                       .lines = &line,
                                       .n_lines = 1};
                char *svg = drawn(&p);
                assert_null(strstr(svg, "nan"));
                assert_null(strstr(svg, "inf"));
                assert_int_equal(count(svg, "<svg "), count(svg, "</svg>"));
                assert_int_equal(count(svg, "<text "), count(svg, "</text>"));
                assert_true(strlen(svg) < 20000);
                free(svg);
            }
}

static void nothing_measured_is_no_plot(void **state)
{
    (void)state;
    static const double x[] = {0, 1}, none[] = {NAN, NAN}, zero[] = {0, 0};
    const struct plot_line lines[] = {{.name = "a", .x = x, .y = none, .n = 2, .class = "c1"},
                                      {.name = "b", .x = x, .y = zero, .n = 2, .class = "c2"}};
    struct plot p = {.title = "t", .unit = "u", .x_unit = "s", .lines = lines, .n_lines = 1};
    char *svg = drawn(&p);
    assert_string_equal(svg, "");
    free(svg);
    p.n_lines = 2;
    svg = drawn(&p);
    assert_non_null(strstr(svg, ">b</text>"));
    assert_null(strstr(svg, ">a</text>"));
    free(svg);
    p.scale = PLOT_LOG;
    svg = drawn(&p);
    assert_string_equal(svg, "");
    free(svg);
}

/* One missing point is crossed, an hour without any is not. */
static void gaps(void **state)
{
    (void)state;
    static const double x[] = {0, 1, 2, 3, 4, 5, 6, 7}, y[] = {1, NAN, 2, NAN, NAN, NAN, NAN, 3};
    const struct plot_line line = {.name = "a", .x = x, .y = y, .n = 8, .class = "c1"};
    const struct plot p = {.title = "t", .unit = "u", .x_unit = "s", .lines = &line, .n_lines = 1};
    char *svg = drawn(&p), *path = strstr(svg, "<path class=\"line");
    assert_non_null(path);
    assert_int_equal(count(svg, "<circle "), 1);
    *strchr(path, '>') = '\0';
    assert_int_equal(count(path, "M"), 2);
    assert_int_equal(count(path, "L"), 1);
    free(svg);
}

/* The axis reaches below the smallest value. */
static void everything_is_above_the_axis(void **state)
{
    (void)state;
    static const double x[] = {0, 1};
    for (double v = 1e-3; v < 1e5; v *= 1.7) {
        const double y[] = {v, v * 1.01};
        const struct plot_line line = {.name = "a", .x = x, .y = y, .n = 2, .class = "c1"};
        const struct plot p = {
            .title = "t", .unit = "u", .x_unit = "s", .scale = PLOT_LOG, .lines = &line, .n_lines = 1};
        char *svg = drawn(&p), *at = strstr(svg, "class=\"line c1\" d=\"M");
        double left, top, end, last;
        assert_non_null(at);
        assert_int_equal(sscanf(strchr(at, 'M'), "M%lf %lfL%lf %lf", &left, &top, &end, &last), 4);
        assert_true(top <= PLOT_HEIGHT - 37 && last <= top && last >= 39);
        free(svg);
    }
}

static void bands_marks_and_hostile_names(void **state)
{
    (void)state;
    static const double x[] = {0, 10}, y[] = {1, 2};
    const struct plot_line line = {.name = "<b>&", .x = x, .y = y, .n = 2, .class = "c1", .dots = true};
    const struct plot_band bands[] = {
        {2, 4, "\"></rect><script>", "seen"}, {-9, -5, "before", "seen"}, {8, 99, "to the end", "ordered"}};
    const struct plot_mark marks[] = {{3, "knee"}, {50, "outside"}};
    const struct plot p = {.title = "<title>",
                           .unit = "u",
                           .x_unit = "s",
                           .lines = &line,
                           .n_lines = 1,
                           .bands = bands,
                           .n_bands = 3,
                           .marks = marks,
                           .n_marks = 2};
    char *svg = drawn(&p);
    assert_null(strstr(svg, "<script"));
    assert_null(strstr(svg, "<b>"));
    assert_non_null(strstr(svg, "&lt;b&gt;&amp;</text>"));
    assert_int_equal(count(svg, "<rect "), 2);
    assert_int_equal(count(svg, "<circle "), 2);
    assert_int_equal(count(svg, "class=\"mark\""), 1);
    assert_non_null(strstr(svg, ">knee</text>"));
    assert_non_null(strstr(svg, "<desc>&lt;b&gt;&amp;: 2 at the end, 2 at most; in u</desc>"));
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_steps),
        cmocka_unit_test(numbers_of_an_axis),
        cmocka_unit_test(any_numbers),
        cmocka_unit_test(nothing_measured_is_no_plot),
        cmocka_unit_test(everything_is_above_the_axis),
        cmocka_unit_test(gaps),
        cmocka_unit_test(bands_marks_and_hostile_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
