/* What a reader is told to look at, by the kind of the server. */
#include "checks/evidence/look.h"
#include "drive/target.h"

#include "unit.h"

static struct journal_op ops[] = {
    {.file_id = "7", .parent_id = "", .name = "Old.pdf"},
    {.file_id = "7", .parent_id = "", .name = "Plan.pdf"},
    {.file_id = "7", .parent_id = "", .name = ""},
};
static struct journal journal = {.ops = ops, .n = 3};

static void of_tma_cloud(void **state)
{
    (void)state;
    char url[] = "http://127.0.0.1:3200", dst[LOOK_MAX];
    struct target t = {.url = url};
    struct cmd_ctx cmd = {.target = &t};
    struct check_ctx c = {.cmd = &cmd, .journal = &journal};
    assert_string_equal(look_at(&c, LOOK_CONTENT, "7", dst), "GET /api/files/7/download");
    assert_string_equal(look_at(&c, LOOK_HISTORY, "7", dst), "GET /api/files/7/info"); /* no database is known */
    c.pg = (struct pg_pool *)&t;
    assert_string_equal(look_at(&c, LOOK_HISTORY, "7", dst), "SELECT * FROM audit_log WHERE resource_id = '7'");
}

static void of_a_server_of_paths(void **state)
{
    (void)state;
    char url[] = "webdav://127.0.0.1/dav", dst[LOOK_MAX];
    struct target_login login = {0};
    struct target t = {.url = url, .logins = &login, .n_logins = 1};
    struct cmd_ctx cmd = {.target = &t};
    struct check_ctx c = {.cmd = &cmd};
    assert_string_equal(look_at(&c, LOOK_CONTENT, "7", dst), "7");
    c.journal = &journal;
    assert_string_equal(look_at(&c, LOOK_HISTORY, "7", dst), "Plan.pdf");
    c.tree = tree_new(0);
    tree_add_account(c.tree, "a", "owner@load.test");
    tree_add(c.tree, &(struct tree_row){.id = "1", .name = "Work", .account = "a", .folder = true});
    tree_add(c.tree, &(struct tree_row){.id = "7", .name = "Plan 2.pdf", .parent_id = "1", .account = "a", .size = 1});
    tree_link(c.tree);
    assert_string_equal(look_at(&c, LOOK_INFO, "7", dst), "Work/Plan 2.pdf");
    assert_string_equal(look_at(&c, LOOK_INFO, "8", dst), "8");
    tree_free(&c.tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_tma_cloud),
        cmocka_unit_test(of_a_server_of_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
