/* Sessions kept from program to program: whose they are, how long they serve, and what becomes of a bad file. */
#include "base/digest.h"
#include "base/private_file.h"
#include "drive/api/token_store.h"
#include "drive/target.h"
#include "unit.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SERVER "http://127.0.0.1:3200"
#define OWNER  "owner@load.test"
#define HOUR   (3600 * US_PER_S)

static char dir[32], folder[64];

static int enter(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/test-tokens-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(folder, sizeof folder, "%s/drivesim", dir);
    setenv("XDG_STATE_HOME", dir, 1);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    return system(command);
}

static struct token_store *open_for(const char *url, bool afresh)
{
    char *copy = mem_strdup(url);
    const struct target t = {.url = copy};
    struct token_store *s = token_store_new();
    token_store_open(s, &t, afresh);
    mem_free(copy);
    return s;
}

static void put(struct token_store *s, const char *login, const char *password, const char *token, int64_t age_us)
{
    token_store_put(s, login, password,
                    &(struct kept_session){.token = token, .since = {wall_now().us - age_us}, .caps = 5});
}

static void save(struct token_store **s)
{
    token_store_save(*s);
    token_store_free(s);
}

static void keep(const char *login, const char *password, const char *token, int64_t age_us)
{
    struct token_store *s = open_for(SERVER, false);
    put(s, login, password, token, age_us);
    save(&s);
}

/* The token that a program finds; "" for none. In memory until the next call. */
static const char *found(const char *url, const char *login, const char *password)
{
    static char token[200];
    struct kept_session k = {.token = ""};
    struct token_store *s = open_for(url, false);
    snprintf(token, sizeof token, "%s", token_store_find(s, login, password, &k) ? k.token : "");
    token_store_free(&s);
    return token;
}

static void whose_it_is_finds_it_again(void **state)
{
    (void)state;
    struct kept_session k;
    keep(OWNER, "secret", "token-1", 0);
    assert_string_equal(found(SERVER, OWNER, "secret"), "token-1");
    assert_string_equal(found(SERVER "/", OWNER, "secret"), "token-1");
    assert_string_equal(found(SERVER, OWNER, "another"), "");
    assert_string_equal(found(SERVER, OWNER, NULL), "");
    assert_string_equal(found(SERVER, "user-1@load.test", "secret"), "");
    assert_string_equal(found("http://127.0.0.1:3201", OWNER, "secret"), "");
    assert_string_equal(found(SERVER "/prefix", OWNER, "secret"), "");
    assert_string_equal(found("https://127.0.0.1:3200", OWNER, "secret"), "");
    struct token_store *s = open_for(SERVER, false);
    assert_true(token_store_find(s, OWNER, "secret", &k));
    assert_int_equal(k.caps, UINT_MAX); /* what its server has is not known here */
    assert_true(token_store_take(s, OWNER));
    assert_false(token_store_take(s, OWNER));
    token_store_free(&s);
}

/* A file under another server's name is worth nothing: the proof holds the server too. */
static void a_file_cannot_be_lent_to_another_server(void **state)
{
    (void)state;
    char command[300];
    keep(OWNER, "secret", "token-1", 0);
    struct token_store *s = open_for("http://127.0.0.1:3201", false);
    put(s, OWNER, "secret", "token-2", 0);
    save(&s);
    assert_string_equal(found("http://127.0.0.1:3201", OWNER, "secret"), "token-2");
    snprintf(command, sizeof command,
             "cd '%s' && grep -l token-1 *.json > from && grep -l token-2 *.json > to && cp -p \"$(cat from)\" \"$(cat "
             "to)\"",
             folder);
    assert_int_equal(system(command), 0);
    assert_string_equal(found("http://127.0.0.1:3201", OWNER, "secret"), "");
}

static void only_our_own_logins_are_kept(void **state)
{
    (void)state;
    struct kept_session k;
    struct token_store *s = open_for(SERVER, false);
    put(s, "somebody@example.com", "secret", "token-1", 0);
    put(s, OWNER, "secret", "with;semicolon", 0);
    assert_true(token_store_find(s, "somebody@example.com", "secret", &k)); /* for this program */
    save(&s);
    assert_int_equal(access(folder, F_OK), -1);
}

/* iat 1000: the server's clock need not be ours. */
static const char *token_of_life(int seconds)
{
    static char text[200];
    char payload[80];
    struct buf coded = BUF_INIT(200);
    snprintf(payload, sizeof payload, "{\"iat\":1000,\"exp\":%d}", 1000 + seconds);
    assert_int_equal(digest_base64(&coded, payload, strlen(payload)), ERR_OK);
    snprintf(text, sizeof text, "head.%s.sum", buf_cstr(&coded));
    buf_done(&coded);
    return text;
}

static void it_serves_in_the_first_half_of_its_life(void **state)
{
    static const struct {
        int life_s; /* 0: it does not tell */
        int64_t age_us;
        bool serves;
    } rows[] = {
        {7200, HOUR - 60 * US_PER_S, true},
        {7200, HOUR + US_PER_S, false},
        {7200, -30 * US_PER_S, true},
        {7200, -HOUR, false},
        {0, 3 * 24 * HOUR, true},
        {0, 4 * 24 * HOUR, false},
        {7200, 0, true},
        {7200, 365 * 24 * HOUR, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        keep(OWNER, "secret", "fresh", 0); /* one that is not kept takes nothing's place */
        struct token_store *s = open_for(SERVER, true);
        token_store_forget(s);
        token_store_free(&s);
        keep(OWNER, "secret", rows[i].life_s ? token_of_life(rows[i].life_s) : "untold", rows[i].age_us);
        if (!!*found(SERVER, OWNER, "secret") != rows[i].serves)
            fail_msg("row %zu", i);
    }
}

#define PROOF "d1bef9b312e7be670cdd0e3fcef6418ae2f90afd941273499d1ddb6091b089fd601009831d5982c4f8171b70ac9fcca2"
#define ENTRY(login, token, proof, since)                                                                              \
    "{\"sessions\":[{\"login\":" login ",\"token\":" token ",\"proof\":" proof ",\"since\":" since "}]}"

static void what_does_not_hold_together_is_left_out(void **state)
{
    static const struct {
        const char *text;
        size_t known;
    } rows[] = {
        {ENTRY("\"a@load.test\"", "\"t\"", "\"" PROOF "\"", "1"), 1},
        {ENTRY("\"a@load.test\"", "null", "\"" PROOF "\"", "1"), 1},
        {"", 0},
        {"{", 0},
        {"[]", 0},
        {"null", 0},
        {"{\"sessions\":7}", 0},
        {"{\"sessions\":[7,null,[],{}]}", 0},
        {ENTRY("\"a@example.com\"", "\"t\"", "\"" PROOF "\"", "1"), 0},
        {ENTRY("7", "\"t\"", "\"" PROOF "\"", "1"), 0},
        {ENTRY("\"a@load.test\"", "\"\"", "\"" PROOF "\"", "1"), 0},
        {ENTRY("\"a@load.test\"", "\"t\\r\\nX: y\"", "\"" PROOF "\"", "1"), 0},
        {ENTRY("\"a@load.test\"", "\"t; path\"", "\"" PROOF "\"", "1"), 0},
        {ENTRY("\"a@load.test\"", "7", "\"" PROOF "\"", "1"), 0},
        {ENTRY("\"a@load.test\"", "\"t\"", "\"short\"", "1"), 0},
        {ENTRY("\"a@load.test\"", "\"t\"", "\"" PROOF "00\"", "1"), 0},
        {ENTRY("\"a@load.test\"", "\"t\"", "\"" PROOF "\"", "-1"), 0},
        {ENTRY("\"a@load.test\"", "\"t\"", "\"" PROOF "\"", "1e300"), 0},
        {ENTRY("\"a@load.test\"", "\"t\"", "\"" PROOF "\"", "9223372036854775807"), 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct token_store *s = token_store_new();
        if (token_store_read(s, sv_of(rows[i].text)) != rows[i].known)
            fail_msg("row %zu: %s", i, rows[i].text);
        token_store_free(&s);
    }
}

static char *file_path(void)
{
    static char path[200];
    char name[60] = "";
    char command[100];
    snprintf(command, sizeof command, "cd '%s' && ls", folder);
    FILE *ls = popen(command, "r");
    assert_non_null(fgets(name, sizeof name, ls));
    assert_null(fgets(command, sizeof command, ls)); /* nothing beside it */
    pclose(ls);
    name[strcspn(name, "\n")] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_damaged_file_is_as_none(void **state)
{
    (void)state;
    keep(OWNER, "secret", "token-1", 0);
    write_file(file_path(), "{\"sessions\":[{");
    assert_string_equal(found(SERVER, OWNER, "secret"), "");
    keep(OWNER, "secret", "token-2", 0);
    assert_string_equal(found(SERVER, OWNER, "secret"), "token-2");
}

static void one_that_others_can_read_is_not_used(void **state)
{
    (void)state;
    struct token_store_view v;
    struct stat st;
    keep(OWNER, "secret", "token-1", 0);
    assert_int_equal(stat(file_path(), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(file_path(), 0644), 0);
    struct token_store *s = open_for(SERVER, false);
    token_store_look(s, "secret", &v);
    assert_int_equal(v.all, 0);
    assert_non_null(strstr(v.why, "open to others"));
    token_store_free(&s);
    keep(OWNER, "secret", "token-2", 0);
    assert_int_equal(stat(file_path(), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_string_equal(found(SERVER, OWNER, "secret"), "token-2");
}

static void nowhere_to_keep_them(void **state)
{
    static const char *const homes[] = {"/nonexistent", "/proc", NULL};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
        struct kept_session k;
        struct token_store_view v;
        unsetenv("XDG_STATE_HOME");
        if (homes[i])
            setenv("HOME", homes[i], 1);
        else
            unsetenv("HOME");
        struct token_store *s = open_for(SERVER, false);
        put(s, OWNER, "secret", "token-1", 0);
        token_store_look(s, "secret", &v);
        assert_true(v.folder || v.why[0]);
        token_store_save(s);
        assert_true(token_store_find(s, OWNER, "secret", &k)); /* within the program */
        token_store_free(&s);
    }
}

static void those_of_a_stack_are_in_its_folder(void **state)
{
    (void)state;
    char url[] = SERVER;
    const struct target t = {.url = url, .own_stack = true};
    struct token_store_view v;
    struct stat st;
    assert_int_equal(chdir(dir), 0);
    struct token_store *s = token_store_new();
    token_store_open(s, &t, false);
    put(s, OWNER, "secret", "token-1", 0);
    token_store_look(s, "secret", &v);
    assert_string_equal(v.folder, ".sim/sessions");
    save(&s);
    assert_int_equal(stat(".sim/sessions", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_string_equal(found(SERVER, OWNER, "secret"), ""); /* not in the user's */
    assert_int_equal(chdir("/"), 0);
}

static void programs_side_by_side_lose_nothing(void **state)
{
    (void)state;
    keep("user-1@load.test", "secret", "old-1", HOUR);
    keep("user-2@load.test", "secret", "old-2", HOUR);
    keep("user-3@load.test", "secret", "old-3", HOUR);
    struct token_store *a = open_for(SERVER, false), *b = open_for(SERVER, false);
    put(a, OWNER, "secret", "of a", 0); /* not a token: a blank */
    put(a, OWNER, "secret", "of-a", 10 * US_PER_S);
    put(b, OWNER, "secret", "of-b", 0);
    put(a, "user-1@load.test", "secret", "new-1", 0);
    token_store_refused(b, "old-1");
    token_store_refused(b, "old-2");
    save(&b);
    save(&a);
    assert_string_equal(found(SERVER, OWNER, "secret"), "of-b"); /* the newer one, though written first */
    assert_string_equal(found(SERVER, "user-1@load.test", "secret"), "new-1");
    assert_string_equal(found(SERVER, "user-2@load.test", "secret"),
                        ""); /* a had not made it, and did not bring it back */
    assert_string_equal(found(SERVER, "user-3@load.test", "secret"), "old-3");
}

static void a_new_token_takes_the_place_of_the_old_one(void **state)
{
    (void)state;
    keep(OWNER, "secret", "token-1", HOUR);
    struct token_store *s = open_for(SERVER, false);
    token_store_renew(s, "token-0", "token-x", wall_now());
    token_store_renew(s, "token-1", "token-2", wall_now());
    save(&s);
    assert_string_equal(found(SERVER, OWNER, "secret"), "token-2");
    assert_string_equal(found(SERVER, OWNER, "another"), "");
    s = open_for(SERVER, false);
    token_store_drop(s, "token-2");
    save(&s);
    assert_string_equal(found(SERVER, OWNER, "secret"), "");
    assert_int_equal(rmdir(folder), 0); /* no file without sessions */
}

static void afresh_is_neither_read_nor_lost(void **state)
{
    (void)state;
    struct kept_session k;
    keep(OWNER, "secret", "token-1", HOUR);
    keep("user-1@load.test", "secret", "token-2", HOUR);
    struct token_store *s = open_for(SERVER, true);
    assert_false(token_store_find(s, OWNER, "secret", &k));
    put(s, OWNER, "secret", "token-3", 0);
    save(&s);
    assert_string_equal(found(SERVER, OWNER, "secret"), "token-3");
    assert_string_equal(found(SERVER, "user-1@load.test", "secret"), "token-2");
}

static void forgotten(void **state)
{
    (void)state;
    keep(OWNER, "secret", "token-1", 0);
    struct token_store *s = open_for(SERVER, false);
    token_store_forget(s);
    save(&s);
    assert_int_equal(rmdir(folder), 0);
}

static bool absent(const char *login, const char *password)
{
    struct token_store *s = open_for(SERVER, false);
    bool is = token_store_absent(s, login, password);
    token_store_free(&s);
    return is;
}

static void who_is_not_there_is_known_for_a_while(void **state)
{
    (void)state;
    const char *two = "owner-2@load.test";
    struct token_store_view v;
    keep(OWNER, "secret", "token-1", 0);
    keep(two, "secret", NULL, 0);
    assert_true(absent(two, "secret"));
    assert_false(absent(two, "another"));
    assert_false(absent(OWNER, "secret"));
    assert_string_equal(found(SERVER, two, "secret"), "");
    struct token_store *s = open_for(SERVER, false);
    token_store_look(s, "secret", &v);
    assert_int_equal(v.all, 1);
    token_store_refused(s, "token-1"); /* another server, perhaps: it may be there */
    assert_false(token_store_absent(s, two, "secret"));
    save(&s);
    assert_false(absent(two, "secret"));
    keep(two, "secret", NULL, 16 * 60 * US_PER_S);
    assert_false(absent(two, "secret"));
    keep(two, "secret", NULL, 0);
    keep(two, "secret", "token-2", 0);
    assert_false(absent(two, "secret"));
    assert_string_equal(found(SERVER, two, "secret"), "token-2");
    keep(two, "another", NULL, 0); /* a wrong password: it is there all the same */
    assert_string_equal(found(SERVER, two, "secret"), "token-2");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(whose_it_is_finds_it_again),
        TEST(a_file_cannot_be_lent_to_another_server),
        TEST(only_our_own_logins_are_kept),
        TEST(it_serves_in_the_first_half_of_its_life),
        TEST(what_does_not_hold_together_is_left_out),
        TEST(a_damaged_file_is_as_none),
        TEST(one_that_others_can_read_is_not_used),
        TEST(nowhere_to_keep_them),
        TEST(those_of_a_stack_are_in_its_folder),
        TEST(programs_side_by_side_lose_nothing),
        TEST(a_new_token_takes_the_place_of_the_old_one),
        TEST(afresh_is_neither_read_nor_lost),
        TEST(forgotten),
        TEST(who_is_not_there_is_known_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
