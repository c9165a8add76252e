/* Control groups as machines really show them: version 1, 2 and both, nested, in containers with a namespace and
 * without, and what is not there. */
#include "base/mem.h"
#include "drive/cgroup.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define V1(root) "32 31 0:29 " root " /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
#define V2(root) "30 23 0:26 " root " /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

static void test_find(void **state)
{
    static const struct {
        const char *own, *mounts;
        bool found, v2;
        size_t n;
        const char *first, *last;
    } rows[] = {
        {"0::/user.slice/a.scope\n", V2("/"), true, true, 3, "/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup"},
        {"0::/\n", V2("/"), true, true, 1, "/sys/fs/cgroup", "/sys/fs/cgroup"},
        {"0::/../../x\n", V2("/"), true, true, 1, "/sys/fs/cgroup", "/sys/fs/cgroup"}, /* outside of the namespace */
        {"0::/docker/id\n", V2("/docker/id"), true, true, 1, "/sys/fs/cgroup", "/sys/fs/cgroup"},
        {"0::/docker/id/in\n", V2("/docker/id"), true, true, 2, "/sys/fs/cgroup/in", "/sys/fs/cgroup"},
        {"0::/docker/idle\n", V2("/docker/id"), true, true, 1, "/sys/fs/cgroup", "/sys/fs/cgroup"},
        {"5:cpu,cpuacct:/a/b\n4:memory:/m\n0::/u\n", V1("/") V2("/"), true, false, 3, "/sys/fs/cgroup/cpu,cpuacct/a/b",
         "/sys/fs/cgroup/cpu,cpuacct"},
        {"5:cpuacct:/a\n0::/u\n", V1("/") V2("/"), true, true, 2, "/sys/fs/cgroup/u", "/sys/fs/cgroup"},
        {"5:cpuset:/a\n", V1("/"), false, true, 0, NULL, NULL},
        {"0::/u\n", "22 1 0:5 / /proc rw - proc proc rw\n", false, true, 0, NULL, NULL},
        {"", "", false, true, 0, NULL, NULL},
        {"0::/a:b/c\n", V2("/"), true, true, 3, "/sys/fs/cgroup/a:b/c", "/sys/fs/cgroup"},
        {"nonsense\n::\n", "1 2\n- \n" V2("/"), false, true, 0, NULL, NULL},
    };
    struct cgroup *g = mem_alloc(sizeof *g);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        print_message("# %s", rows[i].own);
        assert_int_equal(cgroup_find(g, rows[i].own, rows[i].mounts, "cpu", ""), rows[i].found);
        assert_int_equal(g->n, rows[i].n);
        assert_int_equal(g->v2, rows[i].v2);
        if (rows[i].n) {
            assert_string_equal(g->paths[0], rows[i].first);
            assert_string_equal(g->paths[g->n - 1], rows[i].last);
        }
    }
    mem_free(g);
}

static char root[] = "/tmp/drivesim-cgroup-XXXXXX";

static void put(const char *path, const char *text)
{
    char whole[300];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* An ancestor's quota counts, too. */
static void test_read(void **state)
{
    struct cgroup *g = mem_alloc(sizeof *g);
    (void)state;
    assert_non_null(mkdtemp(root));
    put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/a/cpu.stat", "usage_usec 900\nnr_periods 50\nnr_throttled 7\nthrottled_usec 12345\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 900\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    put("/sys/fs/cgroup/a/b/memory.events", "low 0\nhigh 3\nmax 4\noom 0\noom_kill 0\noom_group_kill 9\n");
    assert_true(cgroup_find(g, "0::/a/b\n", V2("/"), "cpu", root));
    struct cgroup_cpu c = cgroup_cpu(g);
    assert_true(c.quota == 0.5);
    assert_int_equal(c.throttled_us, 700000);
    assert_int_equal(cgroup_memory(g), 7);

    put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "10000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "50000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.stat", "nr_periods 90\nnr_throttled 80\nthrottled_time 123456789\n");
    put("/sys/fs/cgroup/cpu,cpuacct/x/memory.failcnt", "12\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    assert_true(cgroup_find(g, "3:cpu,cpuacct:/x\n0::/a/b\n", V1("/") V2("/"), "cpu", root));
    c = cgroup_cpu(g);
    assert_true(c.quota == 0.2);
    assert_int_equal(c.throttled_us, 80 * 50000);
    assert_int_equal(cgroup_memory(g), 12);

    put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "garbage");
    c = cgroup_cpu(g);
    assert_true(c.quota == 0 && c.throttled_us == 0);
    assert_true(cgroup_find(g, "3:cpu,cpuacct:/gone\n", V1("/"), "cpu", root)); /* no such folder: nothing is known */
    c = cgroup_cpu(g);
    assert_true(c.quota == 0 && c.throttled_us == 0 && cgroup_memory(g) == 0);
    mem_free(g);
}

static int teardown(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), cmocka_unit_test(test_read)};
    return cmocka_run_group_tests(tests, NULL, teardown);
}
