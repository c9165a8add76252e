/* A tree goes when it bears the mark, whole, and nothing else with it. */
#include "base/own_tree.h"
#include "unit.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static char dir[32], tree[64], victim[64];
static struct errinfo ei;

static void put(const char *in, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", in, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
}

static bool there(const char *in, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof(path), "%s%s%s", in, *name ? "/" : "", name);
    return lstat(path, &st) == 0;
}

static void make(const char *in, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", in, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void point(const char *in, const char *name, const char *to)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", in, name);
    assert_int_equal(symlink(to, path), 0);
}

static int enter(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test-own-tree-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(tree, sizeof(tree), "%s/tree", dir);
    snprintf(victim, sizeof(victim), "%s/victim", dir);
    make(dir, "victim");
    put(victim, "precious");
    return 0;
}

/* Whatever a test did, what was not ours is there; and the module cleans up after the tests of itself. */
static int leave(void **state)
{
    (void)state;
    assert_true(there(victim, "precious"));
    if (own_tree_mark(tree, &ei) == ERR_OK)
        assert_int_equal(own_tree_remove(tree, &ei), ERR_OK);
    unlink(tree);
    assert_int_equal(own_tree_mark(victim, &ei), ERR_OK);
    assert_int_equal(own_tree_remove(victim, &ei), ERR_OK);
    return rmdir(dir);
}

static void what_it_made_goes_whole(void **state)
{
    (void)state;
    char sub[80];
    struct stat st;
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_OK);
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_OK);
    assert_int_equal(own_tree_check(tree, &ei), ERR_OK);
    assert_true(stat(tree, &st) == 0 && (st.st_mode & 07777) == 0700);
    make(tree, "a b\n");
    snprintf(sub, sizeof(sub), "%s/a b\n", tree);
    put(sub, "file");
    put(sub, "-rf");
    make(sub, "closed");
    snprintf(sub, sizeof(sub), "%s/a b\n/closed", tree);
    assert_int_equal(chmod(sub, 0), 0);
    assert_int_equal(own_tree_remove(tree, &ei), ERR_OK);
    assert_false(there(tree, ""));
    assert_int_equal(own_tree_remove(tree, &ei), ERR_OK);
}

static void a_folder_without_the_mark_stays(void **state)
{
    (void)state;
    make(dir, "tree");
    assert_int_equal(own_tree_remove(tree, &ei), ERR_OK); /* empty: nothing that has to go */
    assert_true(there(tree, ""));
    put(tree, "theirs");
    assert_int_equal(own_tree_remove(tree, &ei), ERR_SAFETY);
    assert_non_null(strstr(ei.msg, tree));
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_SAFETY);
    assert_int_equal(own_tree_remove_part(tree, "theirs", &ei), ERR_SAFETY);
    assert_true(there(tree, "theirs"));
}

static void a_link_or_other_text_is_no_mark(void **state)
{
    (void)state;
    make(dir, "tree");
    put(tree, OWN_TREE_MARK);
    put(tree, "theirs");
    assert_int_equal(own_tree_remove(tree, &ei), ERR_SAFETY);
    char mark[128], other[64];
    snprintf(mark, sizeof(mark), "%s/" OWN_TREE_MARK, tree);
    snprintf(other, sizeof(other), "%s/other", dir);
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(own_tree_make(other, 0700, &ei), ERR_OK);
    point(tree, OWN_TREE_MARK, "../other/" OWN_TREE_MARK);
    assert_int_equal(own_tree_remove(tree, &ei), ERR_SAFETY);
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(mkfifo(mark, 0600), 0);
    assert_int_equal(own_tree_remove(tree, &ei), ERR_SAFETY);
    assert_true(there(tree, "theirs"));
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(own_tree_remove(other, &ei), ERR_OK);
}

static void links_are_not_followed(void **state)
{
    (void)state;
    assert_int_equal(own_tree_mark(victim, &ei), ERR_OK); /* a mark does not make a link a folder */
    point(dir, "tree", "victim");
    assert_int_equal(own_tree_remove(tree, &ei), ERR_SAFETY);
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_SAFETY);
    assert_int_equal(own_tree_check(tree, &ei), ERR_SAFETY);
    assert_int_equal(unlink(tree), 0);
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_OK);
    point(tree, "leak", "../victim");
    point(tree, "dangling", "nowhere");
    assert_int_equal(own_tree_remove_part(tree, "leak", &ei), ERR_OK);
    assert_false(there(tree, "leak"));
    point(tree, "leak", "../victim");
    assert_int_equal(own_tree_remove(tree, &ei), ERR_OK);
    assert_false(there(tree, ""));
}

static void a_part_goes_alone(void **state)
{
    (void)state;
    char sub[80];
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_OK);
    make(tree, "part");
    snprintf(sub, sizeof(sub), "%s/part", tree);
    put(sub, "file");
    put(tree, "other");
    assert_int_equal(own_tree_remove_part(tree, "part", &ei), ERR_OK);
    assert_int_equal(own_tree_remove_part(tree, "part", &ei), ERR_OK);
    assert_true(there(tree, "other") && !there(tree, "part"));
    assert_int_equal(own_tree_check(tree, &ei), ERR_OK);
}

/* Deeper than a path may be long, than folders may be open, and than are held open. */
static void any_depth_goes(void **state)
{
    (void)state;
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_OK);
    int fd = open(tree, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdirat(fd, "deep", 0700), 0);
        int below = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = below;
        assert_true(fd >= 0);
    }
    close(fd);
    assert_int_equal(own_tree_remove(tree, &ei), ERR_OK);
    assert_false(there(tree, ""));
}

static void what_is_mounted_stays(void **state)
{
    (void)state;
    char sub[80];
    assert_int_equal(own_tree_make(tree, 0700, &ei), ERR_OK);
    make(tree, "mnt");
    put(tree, "file");
    snprintf(sub, sizeof(sub), "%s/mnt", tree);
    pid_t pid = fork();
    if (pid == 0) { /* in a mount namespace of its own */
        if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
            mount(victim, sub, NULL, MS_BIND, NULL))
            _exit(77);
        enum err e = own_tree_remove(tree, &ei);
        _exit(e == ERR_SAFETY && strstr(ei.msg, "mounted") && there(sub, "precious") &&
                      own_tree_check(tree, &ei) == ERR_OK
                  ? 0
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip(); /* may not mount */
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(own_tree_remove(tree, &ei), ERR_OK);
}

static void one_that_lies_elsewhere_says_whose_it_is(void **state)
{
    (void)state;
    char temporary[64];
    snprintf(temporary, sizeof(temporary), "%s/t-XXXXXX", dir);
    assert_int_equal(own_tree_make_temporary(temporary, "/some/home", &ei), ERR_OK);
    assert_true(own_tree_belongs(temporary, "/some/home"));
    assert_false(own_tree_belongs(temporary, "/some/homes"));
    assert_false(own_tree_belongs(victim, ""));
    assert_int_equal(own_tree_remove(temporary, &ei), ERR_OK);
    assert_false(there(temporary, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_it_made_goes_whole, enter, leave),
        cmocka_unit_test_setup_teardown(a_folder_without_the_mark_stays, enter, leave),
        cmocka_unit_test_setup_teardown(a_link_or_other_text_is_no_mark, enter, leave),
        cmocka_unit_test_setup_teardown(links_are_not_followed, enter, leave),
        cmocka_unit_test_setup_teardown(a_part_goes_alone, enter, leave),
        cmocka_unit_test_setup_teardown(any_depth_goes, enter, leave),
        cmocka_unit_test_setup_teardown(what_is_mounted_stays, enter, leave),
        cmocka_unit_test_setup_teardown(one_that_lies_elsewhere_says_whose_it_is, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
