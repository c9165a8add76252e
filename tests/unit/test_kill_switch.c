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
         "drivesim:load-1:4711:run:20261130T112828Z-1:"},
        {{.proc.pid = 2, .host = "h", .command = "run", .run = "/r/x", .place = "localhost:3200/pre"},
         "drivesim:h:2:run:x:localhost:3200/pre"},
        {{.proc.pid = 1, .host = "a b:c", .command = "seed", .run = ""}, "drivesim:a_b_c:1:seed::"},
    };
    char name[700];
    struct generator back;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(kill_switch_client_name(&rows[i].g, name, sizeof(name)), rows[i].name);
        assert_true(kill_switch_parse_name(sv_of(name), &back));
        assert_int_equal(back.proc.pid, rows[i].g.proc.pid);
        assert_string_equal(back.command, rows[i].g.command);
        assert_string_equal(back.run, kill_switch_own_name(rows[i].g.run));
        assert_string_equal(back.place, rows[i].g.place);
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
    const struct {
        const struct generator *g;
        const char *run;
        bool is;
    } rows[] = {
        {&g, NULL, true},
        {&g, "20261130T112828Z-1", true},
        {&g, "runs/20261130T112828Z-1", true},
        {&g, "20261130T112828Z-2", false},
        {&unnamed, NULL, true},
        {&unnamed, "20261130T112828Z-1", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(kill_switch_meant(rows[i].g, &(struct kill_switch_aim){.run = rows[i].run}), rows[i].is);
    const struct generator here = {.run = "/"}; /* folders that are there are told apart by where they are */
    assert_false(kill_switch_meant(&here, &(struct kill_switch_aim){.run = "/tmp"}));
}

static void meant_by_target(void **state)
{
    (void)state;
    static const struct {
        const char *loads, *aim;
        bool is;
    } rows[] = {
        {"localhost:3200", "localhost:3200", true},
        {"localhost:3200/pre", "localhost:3200", true}, /* a page of it */
        {"localhost:3200", "localhost:3200/pre", false},
        {"localhost:32001", "localhost:3200", false},
        {"localhost:3201", "localhost:3200", false},
        {"drive.lan:3200", "localhost:3200", false},
        {"", "localhost:3200", false},
    };
    char text[320];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct generator g = {.folder = "/a"};
        snprintf(g.place, sizeof(g.place), "%s", rows[i].loads);
        const struct kill_switch_aim aim = {.place = rows[i].aim};
        assert_int_equal(kill_switch_meant(&g, &aim), rows[i].is);
        struct kill_switch_aim heard = kill_switch_aim_of(kill_switch_message(&aim, text, sizeof(text)));
        assert_int_equal(kill_switch_meant(&g, &heard), rows[i].is);
    }
    const struct generator g = {.folder = "/a", .run = "/a/runs/x"};
    assert_true(kill_switch_meant(&g, &(struct kill_switch_aim){.folder = "/a"}));
    assert_false(kill_switch_meant(&g, &(struct kill_switch_aim){.folder = "/"}));
    assert_string_equal(kill_switch_message(&(struct kill_switch_aim){.folder = "/a"}, text, sizeof(text)), "");
    assert_string_equal(kill_switch_message(&(struct kill_switch_aim){.run = "/a/runs/x"}, text, sizeof(text)), "x");
    assert_string_equal(kill_switch_message(&(struct kill_switch_aim){.run = NULL}, text, sizeof(text)), "*");
}

static void places(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"http://127.0.0.1:3200", "localhost:3200"},
        {"http://LocalHost:3200/", "localhost:3200"},
        {"http://[::1]:3200", "localhost:3200"},
        {"webdav://localhost:3200//", "localhost:3200"},
        {"http://Drive.LAN/a/b/", "drive.lan:80/a/b"},
        {"https://u:p@drive.lan", "drive.lan:443"},
        {"sftp://u@drive.lan/x", "drive.lan:22/x"},
        {"ftp://drive.lan", ""},
        {"nonsense", ""},
    };
    char place[TARGET_PLACE_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        target_place(rows[i][0], place, sizeof(place));
        assert_string_equal(place, rows[i][1]);
    }
    target_place(NULL, place, sizeof(place));
    assert_string_equal(place, "");
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
    fprintf(f, "%llu\nrun\n/srv/runs/x\nlocalhost:1\n/srv\n", (unsigned long long)self.start);
    fclose(f);
    assert_int_equal(kill_switch_here(found, 4), 1);
    assert_string_equal(found[0].run, "/srv/runs/x");
    f = fopen(file, "w");
    fprintf(f, "%llu\nrun\n\n\n\n", (unsigned long long)self.start + 1); /* another process had this number */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(meant),
                                       cmocka_unit_test(meant_by_target), cmocka_unit_test(places),
                                       cmocka_unit_test(left_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
