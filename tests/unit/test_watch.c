#include "unit.h"

#include "base/clock.h"
#include "sim/watch/host.h"

#include <math.h>
#include <string.h>

/* One machine at two moments, 2 s apart, as /proc tells it: made by hand, field by field. */
static const char first_text[] =
    "== stat\ncpu  1000 0 500 8000 500 0 0 0 77 0\ncpu0 1 1 1 1 1 1 1 1\nprocs_running 3\n"
    "== meminfo\nMemTotal:        1000000 kB\nMemFree: 1 kB\nMemAvailable:     600000 kB\nSwapTotal: 2048 "
    "kB\nSwapFree:  1024 kB\n"
    "== vmstat\npgpgin 9\npswpin 10\npswpout 20\n"
    "== diskstats\n 8 0 sda 100 0 1000 50 200 0 4000 400 0 300 450 0 0 0 0\n 8 1 sda1 100 0 1000 50 200 0 4000 400 0 "
    "300 450\n"
    " 253 0 dm-0 1 1 1 1 1 1 1 1 1 1 1\n 259 0 nvme0n1 10 0 0 0 0 0 0 0 0 0 0\n 259 1 nvme0n1p1 10 0 0 0 0 0 0 0 0 0 "
    "0\n"
    "== net/dev\nInter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0\n"
    "  eth0:500 1 0 0 0 0 0 0 700 1 0 0 0 0 0 0\n"
    "== net/sockstat\nsockets: used 9\nTCP: inuse 42 orphan 0\n"
    "== sys/fs/file-nr\n1234\t0\t99999\n";
static const char second_text[] =
    "== stat\ncpu  1100 0 550 8000 550 0 0 0 77 0\nprocs_running 5\n"
    "== meminfo\nMemTotal:        1000000 kB\nMemAvailable:     500000 kB\nSwapTotal: 2048 kB\nSwapFree:  0 kB\n"
    "== vmstat\npswpin 12\npswpout 22\n"
    "== diskstats\n 8 0 sda 110 0 1000 70 220 0 8096 800 0 700 900 0 0 0 0\n 259 0 nvme0n1 10 0 0 0 0 0 0 0 0 0 0\n"
    "== net/dev\n    lo: 2000001 1 0 0 0 0 0 0 2000001 1 0 0 0 0 0 0\n  eth0:500 1 0 0 0 0 0 0 700 1 0 0 0 0 0 0\n"
    "== net/sockstat\nTCP: inuse 43 orphan 0\n"
    "== sys/fs/file-nr\n1240\t0\t99999\n";

static void test_what_two_moments_say(void **state)
{
    (void)state;
    static const struct {
        enum watch_figure f;
        double value;
    } rows[] = {
        {WATCH_CPU, 75},        {WATCH_RUN_QUEUE, 5},    {WATCH_MEMORY, 500000 / 1024.0},
        {WATCH_SWAP, 1},        {WATCH_SWAP_IO, 2},      {WATCH_DISK_QUEUE, 0.225},
        {WATCH_DISK_AWAIT, 14}, {WATCH_DISK_WRITE, 20},  {WATCH_DISK_BYTES, 4096 * 512 / 2e6},
        {WATCH_NET, 1.999001},  {WATCH_CONNECTIONS, 43}, {WATCH_OPEN_FILES, 1240},
    };
    struct host_counters a, b;
    struct watch_values v;
    assert_true(host_parse((struct sv){first_text, strlen(first_text)}, &a));
    assert_true(host_parse((struct sv){second_text, strlen(second_text)}, &b));
    host_figures(&a, &b, &a, 2 * US_PER_S, &v);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (fabs(v.v[rows[i].f] - rows[i].value) > 1e-6)
            fail_msg("%s is %f, not %f", watch_key(rows[i].f), v.v[rows[i].f], rows[i].value);
}

static void test_nonsense_is_no_machine(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "cpu 1 2 3",
                                       "== stat\n",
                                       "== stat\ncpu\n== meminfo\nMemTotal:\n",
                                       "== none\ncpu 1 2 3 4 5 6 7 8",
                                       "== stat\ncpu  x y z 1 2 3 4 5\n== meminfo\nMemTotal: -5 kB\n"};
    struct host_counters c;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_false(host_parse(sv_of(rows[i]), &c));
}

static void test_names(void **state)
{
    (void)state;
    enum watch_figure f;
    for (unsigned i = 0; i < WATCH_COUNT; i++) {
        assert_true(watch_find(sv_of(watch_key((enum watch_figure)i)), &f));
        assert_int_equal(f, i);
    }
    assert_false(watch_find(SV("cpu"), &f));
}

/* Pages that a forked child shares with its parent count once in the sum of both. */
static void test_a_tree_counts_shared_pages_once(void **state)
{
    (void)state;
    enum { MIB = 48 };
    char *shared = mem_alloc((size_t)MIB << 20);
    memset(shared, 1, (size_t)MIB << 20);
    int hold[2], ready[2];
    char c = 0;
    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe(ready), 0);
    struct tree_counters alone, both;
    assert_true(tree_read(getpid(), &alone));
    pid_t pid = fork();
    if (pid == 0) {
        close(hold[1]);
        (void)!write(ready[1], &c, 1);
        (void)!read(hold[0], &c, 1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_true(tree_read(getpid(), &both));
    assert_true(both.pss_kib >= alone.pss_kib / 2);
    assert_true(both.pss_kib < alone.pss_kib + MIB * 1024 / 2);
    assert_true(both.open_files > alone.open_files);
    close(hold[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct tree_counters gone;
    assert_false(tree_read(pid, &gone));
    for (int i = 0; i < 2; i++)
        close(ready[i]);
    close(hold[0]);
    mem_free(shared);
}

/* Units stand behind their numbers, and no line runs across the whole screen. */
static void test_a_line_to_read(void **state)
{
    (void)state;
    char text[800];
    struct watch_values v;
    for (unsigned i = 0; i < WATCH_COUNT; i++)
        v.v[i] = WATCH_UNKNOWN;
    assert_string_equal(watch_line(&v, "\n", text, sizeof(text)), "");
    v.v[WATCH_CPU] = 43;
    v.v[WATCH_RUN_QUEUE] = 2;
    v.v[WATCH_MEMORY] = 2156;
    v.v[WATCH_PG_COMMITS] = 20;
    assert_string_equal(watch_line(&v, "\n", text, sizeof(text)),
                        "CPU 43 %, run queue 2.0, memory 2156 MiB\nPG commits/s 20.0");
    for (unsigned i = 0; i < WATCH_COUNT; i++)
        v.v[i] = 123456;
    watch_line(&v, "\n", text, sizeof(text));
    struct sv rest = sv_of(text), line;
    while (sv_split(&rest, '\n', &line))
        assert_in_range(line.n, 1, 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_two_moments_say),
        cmocka_unit_test(test_nonsense_is_no_machine),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_line_to_read),
        cmocka_unit_test(test_a_tree_counts_shared_pages_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
