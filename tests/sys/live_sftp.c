/* The SFTP client against OpenSSH: run by tests/sys/sftp.t with a private sshd, told by SSHD_* in the environment. */
#include "base/rng.h"
#include "live.h"
#include "net/sftp.h"
#include "ssh_setup.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sftp_reply reply;

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if (call)                                                                                                      \
            fail_msg("%s: %s", #call, err_message(&why));                                                              \
    } while (0)
#define ANSWERS(call, want)                                                                                            \
    do {                                                                                                               \
        MUST(call);                                                                                                    \
        if (reply.status != (want))                                                                                    \
            fail_msg("%s: %s (%s)", #call, sftp_status_text(reply.status), reply.text);                                \
    } while (0)

static struct ssh_login login_of(void)
{
    int64_t port = 0;
    assert_true(sv_to_i64(sv_of(env("SSHD_PORT")), &port));
    return (struct ssh_login){
        .host = "127.0.0.1", .port = (int)port, .user = env("SSHD_USER"), .key_file = env("SSHD_KEY")};
}

static int setup(void **state)
{
    (void)state;
    const struct ssh_client_conf conf = {.known_hosts = env("SSHD_KNOWN_HOSTS")};
    return ssh_up(&conf);
}

static struct sftp *open_session(void)
{
    const struct ssh_login login = login_of();
    struct ssh_report report;
    struct sftp *s = NULL;
    MUST(sftp_open(&s, client, loop, &login, 20 * US_PER_S, &report, &why));
    assert_int_equal(report.stage, SSH_UP);
    assert_true(report.connect_us >= 0 && report.banner_us >= report.connect_us);
    return s;
}

static char *path(const char *name)
{
    static char paths[4][512];
    static unsigned at;
    char *p = paths[at++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", env("SSHD_DIR"), name);
    return p;
}

/* ---- bodies whose bytes follow from their offset ---- */

static char byte_at(uint64_t offset)
{
    return (char)rng_mix64(offset);
}

static void fill(void *arg, uint64_t offset, char *dst, size_t n)
{
    (void)arg;
    for (size_t i = 0; i < n; i++)
        dst[i] = byte_at(offset + i);
}

struct seen {
    uint64_t next, wrong, stop_after;
};

static int see(void *arg, const char *p, size_t n)
{
    struct seen *s = arg;
    for (size_t i = 0; i < n; i++)
        s->wrong += p[i] != byte_at(s->next + i);
    s->next += n;
    return s->stop_after && s->next >= s->stop_after;
}

static void put(struct sftp *s, const char *name, uint64_t size)
{
    const struct sftp_source from = {.size = size, .fill = fill, .mtime_s = 1234567890};
    ANSWERS(sftp_put(s, path(name), &from, &reply, &why), SFTP_OK);
}

static void bodies_come_back(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 32 * 1024 - 1, 32 * 1024, 32 * 1024 + 1, 2000001};
    struct sftp *s = open_session();
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct seen seen = {0};
        struct sftp_attrs a;
        put(s, "body", sizes[i]);
        ANSWERS(sftp_get(s, path("body"), 0, 0, see, &seen, &reply, &why), SFTP_OK);
        assert_true(seen.next == sizes[i] && seen.wrong == 0);
        ANSWERS(sftp_stat(s, path("body"), &a, &reply, &why), SFTP_OK);
        assert_true(a.has_size && a.size == sizes[i] && sftp_attrs_is_file(&a) && !sftp_attrs_is_folder(&a));
        assert_true(a.has_times && a.mtime_s == 1234567890);
        ANSWERS(sftp_change(s, SFTP_REMOVE, path("body"), NULL, &reply, &why), SFTP_OK);
    }
    sftp_close(&s);
}

static void ranges_and_ends(void **state)
{
    (void)state;
    struct sftp *s = open_session();
    struct seen seen = {.next = 100000};
    put(s, "range", 300000);
    ANSWERS(sftp_get(s, path("range"), 100000, 77777, see, &seen, &reply, &why), SFTP_OK);
    assert_true(seen.next == 177777 && seen.wrong == 0);
    seen = (struct seen){.next = 299999};
    ANSWERS(sftp_get(s, path("range"), 299999, 50, see, &seen, &reply, &why), SFTP_OK);
    assert_true(seen.next == 300000 && seen.wrong == 0);
    seen = (struct seen){.next = 300000};
    ANSWERS(sftp_get(s, path("range"), 300000, 0, see, &seen, &reply, &why), SFTP_OK);
    assert_true(seen.next == 300000);
    seen = (struct seen){.stop_after = 1};
    assert_int_equal(sftp_get(s, path("range"), 0, 0, see, &seen, &reply, &why), ERR_WRONG);
    ANSWERS(sftp_get(s, path("none"), 0, 0, see, &seen, &reply, &why), SFTP_NO_SUCH_FILE);
    ANSWERS(sftp_change(s, SFTP_REMOVE, path("range"), NULL, &reply, &why), SFTP_OK); /* the session lives on */
    sftp_close(&s);
}

static void a_put_never_replaces(void **state)
{
    (void)state;
    struct sftp *s = open_session();
    const struct sftp_source from = {.size = 5, .fill = fill};
    struct sftp_attrs a;
    put(s, "there", 100);
    ANSWERS(sftp_put(s, path("there"), &from, &reply, &why), SFTP_FAILURE);
    ANSWERS(sftp_stat(s, path("there"), &a, &reply, &why), SFTP_OK);
    assert_true(a.size == 100);
    ANSWERS(sftp_change(s, SFTP_REMOVE, path("there"), NULL, &reply, &why), SFTP_OK);
    sftp_close(&s);
}

/* S03: the plain rename fails on a name that is taken, posix-rename replaces it. */
static void two_renames(void **state)
{
    (void)state;
    struct sftp *s = open_session();
    struct sftp_attrs a;
    put(s, "one", 1);
    put(s, "two", 2);
    ANSWERS(sftp_change(s, SFTP_RENAME, path("one"), path("two"), &reply, &why), SFTP_FAILURE);
    ANSWERS(sftp_stat(s, path("two"), &a, &reply, &why), SFTP_OK);
    assert_true(a.size == 2);
    assert_true(sftp_extensions(s) & SFTP_EXT_POSIX_RENAME);
    ANSWERS(sftp_change(s, SFTP_POSIX_RENAME, path("one"), path("two"), &reply, &why), SFTP_OK);
    ANSWERS(sftp_stat(s, path("two"), &a, &reply, &why), SFTP_OK);
    assert_true(a.size == 1);
    ANSWERS(sftp_change(s, SFTP_MKDIR, path("two"), NULL, &reply, &why), SFTP_FAILURE);
    ANSWERS(sftp_change(s, SFTP_REMOVE, path("two"), NULL, &reply, &why), SFTP_OK);
    sftp_close(&s);
}

struct names {
    unsigned n, folders;
};

static bool count(void *arg, struct sv name, const struct sftp_attrs *a)
{
    struct names *c = arg;
    c->n += sv_starts(name, SV("f"));
    c->folders += sftp_attrs_is_folder(a);
    return true;
}

static void a_folder_of_many(void **state)
{
    (void)state;
    struct sftp *s = open_session();
    struct names seen = {0};
    struct sftp_space space;
    struct buf real = BUF_INIT(1000);
    ANSWERS(sftp_change(s, SFTP_MKDIR, path("many"), NULL, &reply, &why), SFTP_OK);
    ANSWERS(sftp_change(s, SFTP_MKDIR, path("many/folder"), NULL, &reply, &why), SFTP_OK);
    for (int i = 0; i < 150; i++) {
        char name[40];
        snprintf(name, sizeof(name), "many/f%03d", i);
        put(s, name, 0);
    }
    ANSWERS(sftp_list(s, path("many"), count, &seen, &reply, &why), SFTP_OK);
    assert_int_equal(seen.n, 151);
    assert_int_equal(seen.folders, 1);
    ANSWERS(sftp_change(s, SFTP_RMDIR, path("many"), NULL, &reply, &why), SFTP_FAILURE);
    ANSWERS(sftp_list(s, path("none"), count, &seen, &reply, &why), SFTP_NO_SUCH_FILE);
    ANSWERS(sftp_space(s, path(""), &space, &reply, &why), SFTP_OK);
    assert_true(space.total > 0 && space.free <= space.total);
    ANSWERS(sftp_real_path(s, path("many/../many"), &real, &reply, &why), SFTP_OK);
    assert_string_equal(buf_cstr(&real) + real.len - 5, "/many");
    buf_done(&real);
    sftp_close(&s);
}

static void copies_within_the_server(void **state)
{
    (void)state;
    struct sftp *s = open_session();
    struct seen seen = {0};
    if (!(sftp_extensions(s) & SFTP_EXT_COPY_DATA)) {
        sftp_close(&s);
        skip();
    }
    put(s, "original", 100001);
    ANSWERS(sftp_copy(s, path("original"), path("copy"), &reply, &why), SFTP_OK);
    ANSWERS(sftp_get(s, path("copy"), 0, 0, see, &seen, &reply, &why), SFTP_OK);
    assert_true(seen.next == 100001 && seen.wrong == 0);
    ANSWERS(sftp_copy(s, path("original"), path("copy"), &reply, &why), SFTP_FAILURE);
    sftp_close(&s);
}

/* ---- one session, many coroutines ---- */

struct user {
    struct sftp *s;
    unsigned index, ok;
};

static void use(void *arg)
{
    struct user *u = arg;
    char name[600];
    struct sftp_reply r;
    struct seen seen = {0};
    const struct sftp_source from = {.size = 100000 + u->index * 1000, .fill = fill};
    snprintf(name, sizeof(name), "%s/user-%u", env("SSHD_DIR"), u->index);
    u->ok += sftp_put(u->s, name, &from, &r, NULL) == ERR_OK && r.status == SFTP_OK;
    u->ok += sftp_get(u->s, name, 0, 0, see, &seen, &r, NULL) == ERR_OK && r.status == SFTP_OK;
    u->ok += seen.next == from.size && seen.wrong == 0;
    u->ok += sftp_change(u->s, SFTP_REMOVE, name, NULL, &r, NULL) == ERR_OK && r.status == SFTP_OK;
}

static void requests_of_many_interleave(void **state)
{
    (void)state;
    struct user users[20];
    struct group group = {0};
    struct sftp *s = open_session();
    for (unsigned i = 0; i < ARRAY_LEN(users); i++) {
        users[i] = (struct user){.s = s, .index = i};
        group_spawn(loop, &group, use, &users[i]);
    }
    group_wait(loop, &group);
    for (unsigned i = 0; i < ARRAY_LEN(users); i++)
        assert_int_equal(users[i].ok, 4);
    sftp_close(&s);
}

static void cancelled(void *arg)
{
    sftp_cancel(arg);
}

static void a_cancelled_session_ends_its_calls(void **state)
{
    (void)state;
    struct sftp *s = open_session();
    const struct sftp_source from = {.size = UINT64_C(1) << 40, .fill = fill};
    coro_spawn(loop, cancelled, s);
    assert_int_equal(sftp_put(s, path("endless"), &from, &reply, &why), ERR_CANCELLED);
    assert_false(sftp_alive(s));
    sftp_close(&s);
    unlink(path("endless"));
}

/* ---- refusals ---- */

static enum err sign_in(const struct ssh_login *login, struct ssh_report *report)
{
    struct sftp *s = NULL;
    enum err e = sftp_open(&s, client, loop, login, 20 * US_PER_S, report, &why);
    sftp_close(&s);
    return e;
}

static void wrong_keys(void **state)
{
    (void)state;
    struct ssh_report report;
    struct ssh_login login = login_of();
    login.key_file = env("SSHD_OTHER_KEY");
    assert_int_equal(sign_in(&login, &report), ERR_AUTH);
    assert_int_equal(report.stage, SSH_AUTH);
    login.key_file = "/nonexistent/key";
    assert_int_equal(sign_in(&login, &report), ERR_ENV);
    assert_non_null(strstr(why.msg, "/nonexistent/key"));
    login = login_of();
    login.user = "nobody-of-that-name";
    assert_int_equal(sign_in(&login, &report), ERR_AUTH);
}

static void a_key_with_a_passphrase(void **state)
{
    (void)state;
    struct ssh_report report;
    struct ssh_login login = login_of();
    login.key_file = env("SSHD_LOCKED_KEY");
    login.passphrase = "a passphrase of the tests";
    assert_int_equal(sign_in(&login, &report), ERR_OK);
    login.passphrase = "another one";
    assert_int_equal(sign_in(&login, &report), ERR_ENV);
    assert_null(strstr(why.msg, "another one"));
}

static void hosts_that_are_not_known(void **state)
{
    (void)state;
    struct ssh_report report;
    const struct ssh_login login = login_of();
    const struct {
        const char *file;
        bool insecure;
        enum err want;
        const char *says;
    } rows[] = {
        {env("SSHD_EMPTY_HOSTS"), false, ERR_SAFETY, "is not in"},
        {env("SSHD_OTHER_HOSTS"), false, ERR_SAFETY, "is not the one in"},
        {env("SSHD_ODD_HOSTS"), false, ERR_OK, ""},
        {env("SSHD_OTHER_HOSTS"), true, ERR_OK, ""},
        {"/nonexistent/hosts", false, ERR_ENV, "/nonexistent/hosts"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ssh_client *c = NULL;
        struct sftp *s = NULL;
        const struct ssh_client_conf conf = {.known_hosts = rows[i].file, .insecure = rows[i].insecure};
        why = (struct errinfo){0};
        enum err e = ssh_client_new(&c, loop, &conf, &why);
        if (e == ERR_OK)
            e = sftp_open(&s, c, loop, &login, 20 * US_PER_S, &report, &why);
        if (e != rows[i].want || !strstr(why.msg, rows[i].says))
            fail_msg("row %zu: %d %s", i, e, why.msg);
        sftp_close(&s);
        ssh_client_free(&c);
    }
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(bodies_come_back),
        CASE(ranges_and_ends),
        CASE(a_put_never_replaces),
        CASE(two_renames),
        CASE(a_folder_of_many),
        CASE(copies_within_the_server),
        CASE(requests_of_many_interleave),
        CASE(a_cancelled_session_ends_its_calls),
        CASE(wrong_keys),
        CASE(a_key_with_a_passphrase),
        CASE(hosts_that_are_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
