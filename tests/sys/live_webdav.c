/* The webdav dialect against real servers: run by tests/sys/webdav_client.t with DAV_* in the environment. */
#include "live_api.h"
#include "net/xml.h"

static struct api_space *space;
static struct api *other; /* of the same tree */

static struct api *signed_in(void)
{
    const struct api_conf conf = {
        .base_url = target.url, .target = &target, .http = http, .loop = loop, .space = space};
    struct api *a = NULL;
    if (api_new(&a, &conf, &why) != ERR_OK)
        fail_msg("%s", why.msg);
    ANSWERS(api_sign_in(a, login.name, login.password, &r), 207);
    return a;
}

static int setup(void **state)
{
    const struct httpc_conf conf = {.cafile = getenv("DAV_CAFILE")};
    (void)state;
    login = (struct target_login){.name = env("DAV_USER"), .password = env("DAV_PASSWORD")};
    target = (struct target){.url = env("DAV_URL"), .logins = &login, .n_logins = 1};
    if (loop_new(&loop, &why) != ERR_OK || httpc_new(&http, loop, &conf, &why) != ERR_OK)
        return -1;
    mem = arena_new(4096);
    space = api_space_new();
    app = signed_in();
    GOES_WELL(api_claim(app, &r));
    other = signed_in();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct api_locks_left left;
    GOES_WELL(api_unclaim(app, &left, &r));
    api_free(&app);
    api_free(&other);
    api_space_free(&space);
    return live_api_down();
}

/* K12: one entry under the new name, of a file and of a folder with something in it, by the same id. */
static void a_change_of_case_only(void **state)
{
    (void)state;
    struct drive_file f = upload(NULL, "test", 1), folder, renamed;
    GOES_WELL(api_rename(app, f.id, "Test", mem, &renamed, &r));
    assert_string_equal(renamed.id, f.id);
    assert_string_equal(renamed.name, "Test");
    assert_int_equal(entries(NULL, "Test"), 1);
    assert_int_equal(entries(NULL, NULL), 1);
    holds(f.id, 1);
    GOES_WELL(api_folder_create(app, NULL, "plans", mem, &folder, &r));
    struct drive_file in = upload(folder.id, "in.txt", 2);
    GOES_WELL(api_rename(app, folder.id, "PLANS", mem, &renamed, &r));
    assert_int_equal(entries(NULL, "PLANS"), 1);
    assert_int_equal(entries(NULL, NULL), 2);
    holds(in.id, 2);
}

/* S03: what is there already is a conflict or gets a number, and stays as it was. */
static void taken_names(void **state)
{
    (void)state;
    struct drive_file folder, f;
    GOES_WELL(api_folder_create(app, NULL, "Folder", mem, &folder, &r));
    ANSWERS(api_folder_create(app, NULL, "Folder", mem, &f, &r), 409);
    assert_string_equal(r.code, "EXISTS");
    assert_int_equal(r.outcome, OUT_CONFLICT);
    struct drive_file one = upload(NULL, "one.txt", 1), two = upload(NULL, "two.txt", 2), again;
    again = upload(NULL, "two.txt", 3);
    assert_string_equal(again.name, "two (1).txt");
    ANSWERS(api_rename(app, one.id, "two.txt", mem, &f, &r), 409);
    assert_int_equal(r.outcome, OUT_CONFLICT);
    holds(one.id, 1);
    holds(two.id, 2);
    holds(again.id, 3);
    assert_int_equal(entries(NULL, NULL), 4);
}

/* K09: a lock is for what is there: one on a name that was deleted meanwhile leaves neither a lock nor an empty file.
 */
static void a_lock_on_what_is_gone(void **state)
{
    (void)state;
    struct drive_file f = upload(NULL, "gone.txt", 1);
    struct api_lock lock;
    const struct content c = body_of(2);
    char path[4096];
    snprintf(path, sizeof path, "%s/drivesim-load/gone.txt", env("DAV_FILES"));
    assert_int_equal(remove(path), 0); /* behind its back */
    (void)api_lock(app, f.id, 60, NULL, &lock, &r);
    assert_int_equal(r.status, 404);
    assert_string_equal(lock.id, "");
    assert_int_equal(entries(NULL, NULL), 0);
    ANSWERS(api_replace(app, f.id, f.name, f.version, NULL, &c, mem, &f, &r), 404); /* a save makes no file */
    assert_int_equal(entries(NULL, NULL), 0);
    f = upload(NULL, "gone.txt", 3);
    GOES_WELL(api_lock(app, f.id, 60, NULL, &lock, &r)); /* no lock is left on the name */
    GOES_WELL(api_unlock(app, f.id, lock.id, &r));
}

/* K08: a lock holds for others, by save, rename and deletion, and not for its owner. */
static void a_lock_holds(void **state)
{
    (void)state;
    struct drive_file f = upload(NULL, "f.txt", 1), saved;
    struct api_lock lock, second;
    struct api_job job;
    const struct content c = body_of(2);
    const char *ids[] = {f.id};
    GOES_WELL(api_lock(app, f.id, 60, NULL, &lock, &r));
    ANSWERS(api_lock(other, f.id, 60, NULL, &second, &r), 423);
    ANSWERS(api_replace(other, f.id, f.name, f.version, NULL, &c, mem, &saved, &r), 423);
    assert_int_equal(r.outcome, OUT_CONFLICT);
    (void)api_trash(other, ids, 1, &job, &r);
    assert_int_equal(r.outcome, OUT_CONFLICT);
    holds(f.id, 1);
    GOES_WELL(api_replace(app, f.id, f.name, f.version, lock.id, &c, mem, &saved, &r));
    holds(f.id, 2);
    GOES_WELL(api_unlock(app, f.id, lock.id, &r));
    (void)api_replace(other, f.id, f.name, f.version, NULL, &c, mem, &saved, &r); /* of the version before */
    assert_int_equal(r.status, 412);
    assert_string_equal(r.code, "VERSION_CONFLICT");
}

/* K08, the client's side of it: what it puts into an If header is the token of a lock that it was given, and nothing
 * else (the <DAV:no-lock> forms are for servers to judge, and ours speaks no WebDAV). A lock that is lost makes the
 * save a conflict, which says so; a copy to a name that somebody has locked takes the next free one. */
static void a_lost_lock_is_a_conflict(void **state)
{
    (void)state;
    struct drive_file f = upload(NULL, "lost.txt", 1), folder, source, saved, copied;
    struct api_lock lock;
    struct api_job job;
    const struct content c = body_of(2);
    GOES_WELL(api_lock(app, f.id, 60, NULL, &lock, &r));
    GOES_WELL(api_unlock(other, f.id, lock.id, &r)); /* as an administrator may */
    (void)api_replace(app, f.id, f.name, f.version, lock.id, &c, mem, &saved, &r);
    assert_int_equal(r.status, 412);
    if (getenv("DAV_LAPSES")) { /* lighttpd grants the refresh of a lock that is gone: then nobody can tell */
        assert_int_equal(r.outcome, OUT_CONFLICT);
        assert_string_equal(r.code, "LOCK_LOST");
    }
    holds(f.id, 1);

    GOES_WELL(api_folder_create(app, NULL, "copies", mem, &folder, &r));
    source = upload(folder.id, "lost.txt", 3);
    GOES_WELL(api_lock(app, f.id, 60, NULL, &lock, &r));
    const char *ids[] = {source.id};
    (void)api_copy(other, ids, 1, NULL, &job, &r);
    if (r.outcome == OUT_OK) {
        assert_int_equal(job.n_ids, 1);
        GOES_WELL(api_info(other, job.ids[0], mem, &copied, NULL, &r));
        assert_string_equal(copied.name, "lost (1).txt");
    } else { /* lighttpd looks at locks before it looks at Overwrite: F */
        assert_int_equal(r.outcome, OUT_CONFLICT);
        assert_int_equal(r.status, 423);
    }
    holds(f.id, 1);
    GOES_WELL(api_unlock(app, f.id, lock.id, &r));
}

/* K05, K07: a lock that lapsed frees itself; its owner is judged by version, and a refresh keeps it. */
static void a_lock_lapses(void **state)
{
    (void)state;
    struct drive_file f = upload(NULL, "f.txt", 1), saved;
    struct api_lock lock, kept, renewed;
    const struct content c = body_of(2), later = body_of(3);
    if (!getenv("DAV_LAPSES"))
        skip();
    GOES_WELL(api_lock(app, f.id, 1, NULL, &lock, &r));
    for (int i = 0; i < 100; i++) { /* nothing tells that it lapsed */
        ANSWERS(api_lock(other, f.id, 60, NULL, &kept, &r), r.status);
        if (r.outcome == OUT_OK)
            break;
        coro_sleep_until(loop, mono_add(mono_now(), 100 * US_PER_MS));
    }
    assert_int_equal(r.outcome, OUT_OK);
    (void)api_replace(app, f.id, f.name, f.version, lock.id, &c, mem, &saved, &r); /* late, and refused as that */
    assert_int_equal(r.outcome, OUT_CONFLICT);
    holds(f.id, 1);
    GOES_WELL(api_lock(other, f.id, 60, kept.id, &renewed, &r));
    GOES_WELL(api_replace(other, f.id, f.name, f.version, kept.id, &later, mem, &saved, &r));
    holds(f.id, 3);
    (void)api_unlock(app, f.id, lock.id, &r); /* is another's by now */
    assert_int_equal(r.status, 409);
    assert_string_equal(r.code, "LOCK_LOST");
    GOES_WELL(api_unlock(other, f.id, kept.id, &r));
}

/* Where there is a trash-bin: an entry has one id in the tree and in the bin. */
static void the_trash_gives_back(void **state)
{
    (void)state;
    struct drive_file folder, f, g;
    struct drive_listing l;
    struct api_job job;
    if (!(api_caps(app) & API_CAP_TRASH))
        return;
    GOES_WELL(api_folder_create(app, NULL, "A", mem, &folder, &r));
    f = upload(folder.id, "f.txt", 1);
    g = upload(NULL, "g.txt", 2);
    const char *whole[] = {folder.id}, *one[] = {g.id}, *none[] = {"nobody"};
    GOES_WELL(api_trash(app, whole, 1, &job, &r));
    GOES_WELL(api_trash(app, one, 1, &job, &r));
    assert_int_equal(entries(NULL, NULL), 0);
    ANSWERS(api_trash_list(app, mem, &l, &r), 207);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.items[0].id, folder.id);
    assert_string_equal(l.items[0].name, "A");
    assert_true(l.items[0].folder && !l.items[1].folder && l.items[1].size == (int64_t)body_of(2).size);
    ANSWERS(api_restore(app, none, 1, &job, &r), 404);
    GOES_WELL(api_restore(app, whole, 1, &job, &r));
    assert_true(job.done);
    holds(f.id, 1);
    GOES_WELL(api_purge(app, one, 1, &job, &r));
    ANSWERS(api_purge(app, one, 1, &job, &r), 404);
    ANSWERS(api_trash_list(app, mem, &l, &r), 207);
    assert_int_equal(l.n, 0);
    assert_int_equal(entries(NULL, NULL), 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_change_of_case_only),     CASE(taken_names),   CASE(a_lock_on_what_is_gone), CASE(a_lock_holds),
        CASE(a_lost_lock_is_a_conflict), CASE(a_lock_lapses), CASE(the_trash_gives_back),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    xml_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
