/* Files with secrets: only what is ours alone is read, and nobody meets half of one. */
#include "base/own_tree.h"
#include "base/private_file.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char dir[32], folder[64], file[96];
static struct errinfo ei;

static int enter(void **state)
{
    (void)state;
    umask(0);
    snprintf(dir, sizeof dir, "/tmp/test-private-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(folder, sizeof folder, "%s/a/b", dir);
    snprintf(file, sizeof file, "%s/one", folder);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    return own_tree_mark(dir, &ei) || own_tree_remove(dir, &ei);
}

static enum err read_it(char *dst, size_t n)
{
    struct buf text = BUF_INIT(100);
    enum err err = private_file_read(folder, "one", &text, &ei);
    snprintf(dst, n, "%s", buf_cstr(&text));
    buf_done(&text);
    return err;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void it_is_made_for_its_owner_alone(void **state)
{
    (void)state;
    char text[32];
    assert_int_equal(read_it(text, sizeof text), ERR_NOTFOUND);
    assert_int_equal(private_file_replace(folder, "one", SV("first"), &ei), ERR_OK);
    assert_int_equal(mode_of(folder), 0700);
    assert_int_equal(mode_of(file), 0600);
    assert_int_equal(private_file_replace(folder, "one", SV("second"), &ei), ERR_OK);
    assert_int_equal(read_it(text, sizeof text), ERR_OK);
    assert_string_equal(text, "second");
    private_file_remove(folder, "one");
    assert_int_equal(read_it(text, sizeof text), ERR_NOTFOUND);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left in it */
}

static void open_to_others(void)
{
    chmod(file, 0640);
}
static void a_folder_open_to_others(void)
{
    chmod(folder, 0755);
}
static void another_owner(void)
{
    if (geteuid() == 0)
        assert_int_equal(chown(file, 65534, 65534), 0);
    else
        chmod(file, 0604);
}
static void a_link(void)
{
    char target[96];
    snprintf(target, sizeof target, "%s/link", dir);
    assert_int_equal(rename(file, target), 0);
    assert_int_equal(symlink(target, file), 0);
}
static void a_pipe(void)
{
    unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0);
}
static void a_folder_in_its_place(void)
{
    unlink(file);
    assert_int_equal(mkdir(file, 0700), 0);
}

static void what_is_not_ours_alone_is_not_read(void **state)
{
    static void (*const spoil[])(void) = {open_to_others, a_folder_open_to_others, another_owner, a_link,
                                          a_pipe,         a_folder_in_its_place};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spoil); i++) {
        char text[32];
        enter(NULL);
        assert_int_equal(private_file_replace(folder, "one", SV("secret"), &ei), ERR_OK);
        spoil[i]();
        if (read_it(text, sizeof text) != ERR_SAFETY || text[0])
            fail_msg("case %zu is read: %s", i, text);
        leave(NULL);
    }
    enter(NULL);
}

static void a_folder_that_is_a_link_is_not_used(void **state)
{
    (void)state;
    char parent[64];
    snprintf(parent, sizeof parent, "%s/a", dir);
    assert_int_equal(mkdir(parent, 0700), 0);
    assert_int_equal(symlink(dir, folder), 0);
    assert_int_equal(private_file_replace(folder, "one", SV("secret"), &ei), ERR_SAFETY);
}

static void a_link_gives_way(void **state)
{
    (void)state;
    char text[32];
    assert_int_equal(private_file_replace(folder, "one", SV("first"), &ei), ERR_OK);
    a_link();
    assert_int_equal(private_file_replace(folder, "one", SV("second"), &ei), ERR_OK);
    assert_int_equal(read_it(text, sizeof text), ERR_OK);
    assert_string_equal(text, "second");
}

static void one_that_is_too_large_is_refused(void **state)
{
    (void)state;
    char text[101 + 1], read[8];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(private_file_replace(folder, "one", sv_of(text), &ei), ERR_OK);
    assert_int_equal(read_it(read, sizeof read), ERR_LIMIT);
}

static void the_folder_of_a_user(void **state)
{
    (void)state;
    char path[100], expected[100];
    setenv("XDG_STATE_HOME", "/there", 1);
    assert_true(private_folder_of_user(path, sizeof path, "XDG_STATE_HOME", ".local/state"));
    assert_string_equal(path, "/there/drivesim");
    setenv("XDG_STATE_HOME", "not/absolute", 1);
    setenv("HOME", dir, 1);
    assert_true(private_folder_of_user(path, sizeof path, "XDG_STATE_HOME", ".local/state"));
    snprintf(expected, sizeof expected, "%s/.local/state/drivesim", dir);
    assert_string_equal(path, expected);
    setenv("HOME", "/nonexistent", 1);
    assert_false(private_folder_of_user(path, sizeof path, "XDG_STATE_HOME", ".local/state"));
    unsetenv("HOME");
    assert_false(private_folder_of_user(path, sizeof path, "XDG_STATE_HOME", ".local/state"));
    assert_false(private_folder_of_user(path, 4, "XDG_STATE_HOME", ".local/state"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_made_for_its_owner_alone, enter, leave),
        cmocka_unit_test_setup_teardown(what_is_not_ours_alone_is_not_read, enter, leave),
        cmocka_unit_test_setup_teardown(a_folder_that_is_a_link_is_not_used, enter, leave),
        cmocka_unit_test_setup_teardown(a_link_gives_way, enter, leave),
        cmocka_unit_test_setup_teardown(one_that_is_too_large_is_refused, enter, leave),
        cmocka_unit_test_setup_teardown(the_folder_of_a_user, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
