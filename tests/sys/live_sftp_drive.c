/* The sftp dialect against OpenSSH, with posix-rename and without: run by tests/sys/sftp_client.t with SSHD_* in the
 * environment. */
#include "live_api.h"

static int setup(void **state)
{
    const struct httpc_conf none = {0};
    (void)state;
    login = (struct target_login){.name = env("SSHD_USER")};
    target = (struct target){.url = env("SSHD_URL"),
                             .ssh_key = env("SSHD_KEY"),
                             .known_hosts = env("SSHD_KNOWN_HOSTS"),
                             .logins = &login,
                             .n_logins = 1};
    if (loop_new(&loop, &why) != ERR_OK || httpc_new(&http, loop, &none, &why) != ERR_OK)
        return -1;
    const struct api_conf conf = {.base_url = target.url, .target = &target, .http = http, .loop = loop};
    mem = arena_new(4096);
    if (api_new(&app, &conf, &why) != ERR_OK)
        return -1;
    ANSWERS(api_sign_in(app, login.name, NULL, &r), 200);
    ANSWERS(api_claim(app, &r), 200);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct api_locks_left left;
    ANSWERS(api_unclaim(app, &left, &r), 200);
    api_free(&app);
    return live_api_down();
}

/* S03: what is there already is a conflict, verified by looking, and stays as it was. */
static void taken_names(void **state)
{
    (void)state;
    struct drive_file folder, f;
    ANSWERS(api_folder_create(app, NULL, "Folder", mem, &folder, &r), 200);
    ANSWERS(api_folder_create(app, NULL, "Folder", mem, &f, &r), 409);
    assert_string_equal(r.code, "EXISTS");
    assert_int_equal(r.outcome, OUT_CONFLICT);
    struct drive_file one = upload(NULL, "one.txt", 1), two = upload(NULL, "two.txt", 2);
    ANSWERS(try_upload(NULL, "two.txt", 3), 409);
    ANSWERS(api_rename(app, one.id, "two.txt", mem, &f, &r), 409);
    holds(one.id, 1);
    holds(two.id, 2);
    upload(folder.id, "one.txt", 4);
    const char *ids[] = {one.id};
    ANSWERS(api_move(app, ids, 1, folder.id, &r), 409);
    holds(one.id, 1);
    assert_int_equal(entries(NULL, NULL), 3); /* nothing temporary is left or shown */
}

/* K10: a save goes to a temporary name and takes the file's in one step: one file, by the same id, with the new body.
 */
static void a_save_leaves_one_file(void **state)
{
    (void)state;
    const struct content c = body_of(9);
    struct drive_file f = upload(NULL, "X.docx", 8), saved;
    ANSWERS(api_replace(app, f.id, f.name, NULL, NULL, &c, mem, &saved, &r), 200);
    assert_string_equal(saved.id, f.id);
    holds(f.id, 9);
    assert_int_equal(entries(NULL, "X.docx"), 1);
    assert_int_equal(entries(NULL, NULL), 1);
    const char *ids[] = {f.id};
    struct api_job job;
    ANSWERS(api_trash(app, ids, 1, &job, &r), 200);
    ANSWERS(api_replace(app, f.id, f.name, NULL, NULL, &c, mem, &saved, &r), 404); /* it is not brought back */
    assert_int_equal(entries(NULL, NULL), 0);
}

/* An id stays with its entry whatever it is called and wherever it goes. */
static void ids_move_with_their_entries(void **state)
{
    (void)state;
    struct drive_file a, b, f, info;
    ANSWERS(api_folder_create(app, NULL, "A", mem, &a, &r), 200);
    ANSWERS(api_folder_create(app, NULL, "B", mem, &b, &r), 200);
    f = upload(a.id, "f.txt", 1);
    const char *ids[] = {a.id}, *into_itself[] = {b.id};
    ANSWERS(api_move(app, ids, 1, b.id, &r), 200);
    ANSWERS(api_rename(app, b.id, "B and more", mem, &b, &r), 200);
    holds(f.id, 1);
    ANSWERS(api_info(app, f.id, mem, &info, NULL, &r), 200);
    struct api_totals totals = {0};
    ANSWERS(api_info(app, f.id, mem, NULL, &totals, &r), 200);
    assert_true(totals.bytes == -1);
    assert_string_equal(info.name, "f.txt");
    assert_string_equal(info.parent_id, a.id);
    assert_true(info.size == (int64_t)body_of(1).size && info.modified.us == 1700000000 * US_PER_S);
    ANSWERS(api_move(app, into_itself, 1, a.id, &r), 409);
    ANSWERS(api_rename(app, b.id, "a/b", mem, &b, &r), 400);
}

static void copies_and_removals_are_whole(void **state)
{
    (void)state;
    struct drive_file a, b, deep;
    struct api_job job;
    ANSWERS(api_folder_create(app, NULL, "A", mem, &a, &r), 200);
    ANSWERS(api_folder_create(app, a.id, "B", mem, &b, &r), 200);
    upload(a.id, "1.txt", 1);
    upload(b.id, "2.txt", 2);
    const char *ids[] = {a.id};
    ANSWERS(api_copy(app, ids, 1, NULL, &job, &r), 200);
    assert_true(job.done && !job.failed);
    struct drive_listing l;
    ANSWERS(api_list(app, NULL, mem, &l, &r), 200);
    assert_int_equal(l.n, 2);
    deep = l.items[strcmp(l.items[0].name, "A") == 0 ? 1 : 0];
    assert_string_equal(deep.name, "A (1)");
    assert_int_equal(entries(deep.id, NULL), 2);
    const char *gone[] = {deep.id};
    ANSWERS(api_trash(app, gone, 1, &job, &r), 200);
    ANSWERS(api_list(app, deep.id, mem, &l, &r), 404);
    assert_int_equal(entries(a.id, NULL), 2);
    assert_int_equal(entries(b.id, "2.txt"), 1);
}

/* A session that the server ends is made again by the next call. */
static void a_lost_session_is_renewed(void **state)
{
    (void)state;
    struct drive_file f = upload(NULL, "f.txt", 1);
    api_cancel(app);
    holds(f.id, 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(taken_names),
        CASE(a_save_leaves_one_file),
        CASE(ids_move_with_their_entries),
        CASE(copies_and_removals_are_whole),
        CASE(a_lost_session_is_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
