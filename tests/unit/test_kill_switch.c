#include "sim/stop/kill_switch.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void names(void **state)
{
    (void)state;
    static const struct {
        struct generator g;
        const char *name;
    } rows[] = {
        {{.proc.pid = 4711, .host = "load-1", .command = "run", .run = "/srv/runs/20261130T112828Z-1"},
         "drivesim:load-1:4711:run:20261130T112828Z-1"},
        {{.proc.pid = 1, .host = "a b:c", .command = "seed", .run = ""}, "drivesim:a_b_c:1:seed:"},
    };
    char name[400];
    struct generator back;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(kill_switch_client_name(&rows[i].g, name, sizeof(name)), rows[i].name);
        assert_true(kill_switch_parse_name(sv_of(name), &back));
        assert_int_equal(back.proc.pid, rows[i].g.proc.pid);
        assert_string_equal(back.command, rows[i].g.command);
        assert_string_equal(back.run, kill_switch_own_name(rows[i].g.run));
    }
    static const char *const none[] = {
        "", "drivesim", "drivesim:h", "drivesim:h:0:run:x", "drivesim:h:x:run:x", "other:h:1:run:x"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(kill_switch_parse_name(sv_of(none[i]), &back));
}

static void meant(void **state)
{
    (void)state;
    const struct generator g = {.run = "/srv/runs/20261130T112828Z-1"}, unnamed = {.run = ""};
    assert_true(kill_switch_meant(&g, NULL));
    assert_true(kill_switch_meant(&g, "20261130T112828Z-1"));
    assert_true(kill_switch_meant(&g, "runs/20261130T112828Z-1"));
    assert_false(kill_switch_meant(&g, "20261130T112828Z-2"));
    assert_true(kill_switch_meant(&unnamed, NULL));
    assert_false(kill_switch_meant(&unnamed, "20261130T112828Z-1"));
    const struct generator here = {.run = "/"};
    assert_false(kill_switch_meant(&here, "/tmp")); /* folders that are there are told apart by where they are */
}

/* A generator that was killed leaves its file: the next look takes it away and does not name it. */
static void left_behind(void **state)
{
    (void)state;
    char tmp[] = "/tmp/kill-switch-XXXXXX", folder[80], file[120];
    struct generator found[4];
    struct proc self;
    assert_non_null(mkdtemp(tmp));
    setenv("TMPDIR", tmp, 1);
    assert_int_equal(kill_switch_here(found, 4), 0);
    snprintf(folder, sizeof(folder), "%s/drivesim-%u", tmp, (unsigned)geteuid());
    assert_true(proc_of_pid(getpid(), &self));
    snprintf(file, sizeof(file), "%s/%d", folder, (int)getpid());
    FILE *f = fopen(file, "w");
    fprintf(f, "%llu\nrun\n/srv/runs/x\n", (unsigned long long)self.start);
    fclose(f);
    assert_int_equal(kill_switch_here(found, 4), 1);
    assert_string_equal(found[0].run, "/srv/runs/x");
    f = fopen(file, "w");
    fprintf(f, "%llu\nrun\n\n", (unsigned long long)self.start + 1); /* another process had this number */
    fclose(f);
    assert_int_equal(kill_switch_here(found, 4), 0);
    assert_int_equal(access(file, F_OK), -1);
    assert_int_equal(chmod(folder, 0777), 0); /* open to all: not ours any more */
    assert_int_equal(kill_switch_here(found, 4), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(tmp), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(meant), cmocka_unit_test(left_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
