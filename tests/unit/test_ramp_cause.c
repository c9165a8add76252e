#include "sim/ramp/cause.h"
#include "unit.h"
#include <string.h>

struct at {
    enum watch_figure figure;
    double on, off;
};

static void causes(void **state)
{
    (void)state;
    static const struct {
        struct at figures[4];
        double link;
        bool known;
        const char *begins;
    } rows[] = {
        {{{WATCH_CPU, 43, 97}}, 0, true, "the processors: CPU 97 % (43 before)"},
        {{{WATCH_CPU, 30, 84}}, 0, false, "none of the machine's resources"},
        {{{WATCH_CPU, 20, 25}, {WATCH_DISK_WRITE, 5, 130}, {WATCH_DISK_QUEUE, 3.8, 19.5}},
         0,
         true,
         "the disk: disk write 130.0 ms (5.0 before)"},
        {{{WATCH_DISK_QUEUE, 3.8, 19.5}}, 0, true, "the disk: disk queue 19.5 (3.8 before)"},
        {{{WATCH_DISK_WRITE, 25, 30}}, 0, false, "none"}, /* slow all along */
        {{{WATCH_PG_WAITING, 0, 3}}, 0, true, "locks in Postgres: PG locks waited for 3 (0 before)"},
        {{{WATCH_PROC_CPU, 50, 99}, {WATCH_CPU, 20, 30}}, 0, true, "one processor: the server's process fills it"},
        {{{WATCH_SWAP, 0, 300}, {WATCH_CPU, 50, 99}}, 0, true, "memory: swap 300 MiB (0 before); the processors"},
        {{{WATCH_NET, 60, 105}}, 110, true, "the network"},
        {{{WATCH_NET, 60, 80}}, 110, false, "none"},
        {{{WATCH_NET, 60, 105}}, 0, false, "none"},
    };
    char text[300];
    bool known;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct watch_values on, off;
        for (size_t k = 0; k < WATCH_COUNT; k++)
            on.v[k] = off.v[k] = WATCH_UNKNOWN;
        for (size_t k = 0; k < 4 && (k == 0 || rows[i].figures[k].off > 0); k++) {
            on.v[rows[i].figures[k].figure] = rows[i].figures[k].on;
            off.v[rows[i].figures[k].figure] = rows[i].figures[k].off;
        }
        ramp_cause(&on, &off, rows[i].link, &known, text, sizeof(text));
        if (known != rows[i].known || strncmp(text, rows[i].begins, strlen(rows[i].begins)) != 0)
            print_message("row %zu: %s\n", i, text);
        assert_int_equal(known, rows[i].known);
        assert_memory_equal(text, rows[i].begins, strlen(rows[i].begins));
    }
    struct watch_values none;
    for (size_t k = 0; k < WATCH_COUNT; k++)
        none.v[k] = WATCH_UNKNOWN;
    assert_non_null(strstr(ramp_cause(NULL, &none, 0, &known, text, sizeof(text)), "not watched"));
    assert_false(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(causes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
