/* The target: where its parts come from, what may be aimed at by the URL's form alone. */
#include "drive/target.h"
#include "net/guard.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = {"TMA_URL",
                                    "DATABASE_URL",
                                    "REDIS_URL",
                                    "TMA_LOAD_S3_ENDPOINT",
                                    "TMA_LOAD_S3_BUCKET",
                                    "TMA_LOAD_S3_ACCESS_KEY",
                                    "TMA_LOAD_S3_SECRET_KEY",
                                    "TMA_LOAD_PASSWORD"};
static char dir[] = "/tmp/test-target-XXXXXX";

static void put(const char *file, const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    unlink(".env");
    unlink(".sim/env");
    return 0;
}

static int enter(void **state)
{
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(mkdir(".sim", 0700), 0);
    return clean(state);
}

static int leave(void **state)
{
    clean(state);
    rmdir(".sim");
    assert_int_equal(chdir("/"), 0);
    return rmdir(dir);
}

static void nothing_is_set(void **state)
{
    (void)state;
    struct target t;
    struct errinfo ei = {0};
    setenv("TMA_URL", "", 1); /* empty is unset */
    assert_int_equal(target_load(&t, &ei), ERR_OK);
    assert_null(t.url);
    assert_null(t.database_url);
    assert_non_null(t.password); /* the default */
    assert_false(target_has_s3(&t));
    assert_int_equal(target_require_url(&t, &ei), ERR_USAGE);
    assert_non_null(strstr(ei.msg, "TMA_URL"));
    target_done(&t);
}

static void sources_in_order(void **state)
{
    (void)state;
    struct target t;
    struct errinfo ei = {0};
    put(".sim/env", "TMA_URL=http://127.0.0.1:3200\nDATABASE_URL=postgresql://a@h/sim\nREDIS_URL=redis://sim\n");
    put(".env",
        "# a comment\n\nexport DATABASE_URL = \"postgresql://a@h/env\" \nTMA_LOAD_PASSWORD='with space '\r\nPORT=3\n");
    setenv("REDIS_URL", "redis://environment", 1);
    assert_int_equal(target_load(&t, &ei), ERR_OK);
    assert_string_equal(t.url, "http://127.0.0.1:3200");
    assert_string_equal(t.url_from, ".sim/env");
    assert_true(t.own_stack);
    assert_string_equal(t.database_url, "postgresql://a@h/env");
    assert_string_equal(t.redis_url, "redis://environment");
    assert_string_equal(t.password, "with space ");
    target_done(&t);
}

static void what_editors_and_people_add(void **state)
{
    (void)state;
    struct target t;
    struct errinfo ei = {0};
    put(".env", "\xEF\xBB\xBFTMA_URL=http://127.0.0.1:3200 # the copy\r\nexport\tREDIS_URL='redis://h' # cache\n"
                "TMA_LOAD_PASSWORD=a#b\n");
    assert_int_equal(target_load(&t, &ei), ERR_OK);
    assert_string_equal(t.url, "http://127.0.0.1:3200");
    assert_string_equal(t.redis_url, "redis://h");
    assert_string_equal(t.password, "a#b");
    target_done(&t);
}

/* A stale TMA_URL must not be judged with another server's database. */
static void parts_of_another_server(void **state)
{
    (void)state;
    struct target t;
    struct errinfo ei = {0};
    put(".sim/env", "TMA_URL=http://127.0.0.1:3200\nDATABASE_URL=postgresql://a@h/sim\nTMA_LOAD_S3_BUCKET=b\n");
    setenv("TMA_URL", "http://127.0.0.1:9999", 1);
    assert_int_equal(target_load(&t, &ei), ERR_OK);
    assert_null(t.database_url);
    assert_null(t.s3_bucket);
    assert_false(t.own_stack);
    target_done(&t);
    setenv("TMA_URL", "http://localhost:3200/", 1); /* the same one, written otherwise */
    assert_int_equal(target_load(&t, &ei), ERR_OK);
    assert_string_equal(t.database_url, "postgresql://a@h/sim");
    assert_true(t.own_stack);
    target_done(&t);
}

static void bad_files(void **state)
{
    (void)state;
    struct target t;
    struct errinfo ei = {0};
    put(".env", "\nTMA_URL=\"http://127.0.0.1\n");
    assert_int_equal(target_load(&t, &ei), ERR_USAGE);
    assert_non_null(strstr(ei.msg, ".env line 2"));
    put(".env", "TMA_URL=\"http://127.0.0.1\"x\n");
    assert_int_equal(target_load(&t, &ei), ERR_USAGE);
    assert_non_null(strstr(ei.msg, ".env line 1: something follows the closing quote"));
}

static void what_may_be_aimed_at(void **state)
{
    (void)state;
    static const struct {
        const char *url, *allow;
        enum err want;
        const char *says;
    } rows[] = {
        {"http://127.0.0.1:3200", NULL, ERR_OK, NULL},
        {"http://127.9.8.7", NULL, ERR_OK, NULL},
        {"http://localhost:3200/tma/", NULL, ERR_OK, NULL},
        {"https://LocalHost", NULL, ERR_OK, NULL},
        {"http://[::1]:3200", NULL, ERR_OK, NULL},
        {"http://latest.example.com", NULL, ERR_SAFETY, "--allow-host latest.example.com"},
        {"http://latest.example.com", "latest.example.com", ERR_OK, NULL},
        {"http://latest.example.com", "LATEST.example.com.", ERR_OK, NULL},
        {"http://latest.example.com", "example.com", ERR_SAFETY, "--allow-host"},
        {"http://latest.example.com", "db.lan, latest.example.com", ERR_OK, NULL},
        {"http://latest.example.com", "", ERR_SAFETY, "--allow-host"},
        {"http://10.0.0.7:3200", NULL, ERR_SAFETY, "--allow-host"},
        {"http://10.0.0.7:3200", "10.0.0.7", ERR_OK, NULL},
        {"http://127.0.0.1.example.com", NULL, ERR_SAFETY, "--allow-host"},
        {"http://localhost.example.com", NULL, ERR_SAFETY, "--allow-host"},
        {"http://prod.example.com", "prod.example.com", ERR_SAFETY, "production"},
        {"http://drive-production.example.com", "drive-production.example.com", ERR_SAFETY, "production"},
        {"http://reproduction.example.com", "reproduction.example.com", ERR_OK, NULL},
        {"ftp://127.0.0.1", NULL, ERR_USAGE, "TMA_URL"},
        {"127.0.0.1:3200", NULL, ERR_USAGE, "TMA_URL"},
        {"http://", NULL, ERR_USAGE, "TMA_URL"},
        {"http://::1:3200", NULL, ERR_USAGE, "TMA_URL"},
        {"http://127.0.0.1:99999", NULL, ERR_USAGE, "TMA_URL"},
        {"http://user:pw@127.0.0.1:3200", NULL, ERR_USAGE, "TMA_URL"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct target t = {.url = mem_strdup(rows[i].url)};
        const char *allow[] = {rows[i].allow};
        const struct opt_list hosts = {allow, rows[i].allow ? 1 : 0};
        struct errinfo ei = {0};
        guard_allow(&hosts);
        enum err err = target_require_url(&t, &ei);
        guard_allow(NULL);
        if (err != rows[i].want || (rows[i].says && !strstr(ei.msg, rows[i].says)))
            fail_msg("%s: %s, \"%s\"", rows[i].url, err_symbol(err), ei.msg);
        target_done(&t);
    }
}

/* Every part is judged before anything is dialled, in each way that its library can be told where it is. */
static void parts_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *database, *redis, *store;
        const char *variable, *value; /* of libpq's own */
        enum err want;
        const char *says[2];
    } rows[] = {
        {"postgresql://u:p@127.0.0.1:5432/d",
         "redis://:p@127.0.0.1:6379/0",
         "http://127.0.0.1:9000",
         NULL,
         NULL,
         ERR_OK,
         {0}},
        {"postgresql:///d?host=/run/postgresql", "unix:///run/redis.sock?db=1", NULL, NULL, NULL, ERR_OK, {0}},
        {"postgresql:///d", "redis://localhost", "http://[::1]:9000", NULL, NULL, ERR_OK, {0}},
        {"host=@drive dbname=d", NULL, NULL, NULL, NULL, ERR_OK, {0}},
        {"postgresql://db.lan/d", NULL, NULL, NULL, NULL, ERR_SAFETY, {"DATABASE_URL", "--allow-host db.lan"}},
        {"postgresql://127.0.0.1,db.lan/d", NULL, NULL, NULL, NULL, ERR_SAFETY, {"db.lan"}},
        {"postgresql://127.0.0.1/d?hostaddr=10.0.0.7", NULL, NULL, NULL, NULL, ERR_SAFETY, {"10.0.0.7"}},
        {"postgresql:///d?host=db.lan", NULL, NULL, NULL, NULL, ERR_SAFETY, {"db.lan"}},
        {"postgresql://%64b.lan/d", NULL, NULL, NULL, NULL, ERR_SAFETY, {"db.lan"}},
        {"host=db.lan dbname=d", NULL, NULL, NULL, NULL, ERR_SAFETY, {"db.lan"}},
        {"host='127.0.0.1' hostaddr='10.0.0.7'", NULL, NULL, NULL, NULL, ERR_SAFETY, {"10.0.0.7"}},
        {"host=/tmp,db.lan dbname=d", NULL, NULL, NULL, NULL, ERR_SAFETY, {"db.lan"}},
        {"dbname=d", NULL, NULL, "PGHOST", "db.lan", ERR_SAFETY, {"db.lan"}},
        {"host=127.0.0.1", NULL, NULL, "PGHOST", "db.lan", ERR_OK, {0}},
        {"host=127.0.0.1", NULL, NULL, "PGHOSTADDR", "10.0.0.7", ERR_SAFETY, {"10.0.0.7"}},
        {"dbname=d", NULL, NULL, "PGSERVICE", "there", ERR_SAFETY, {"db.lan"}},
        {"service=there", NULL, NULL, NULL, NULL, ERR_SAFETY, {"db.lan"}},
        {"service=ours", NULL, NULL, NULL, NULL, ERR_OK, {0}},
        {"service=nowhere", NULL, NULL, NULL, NULL, ERR_USAGE, {"DATABASE_URL"}},
        {"postgresql://prod-db/d", NULL, NULL, NULL, NULL, ERR_SAFETY, {"production"}},
        {"postgresql://db.prod.lan/d", NULL, NULL, NULL, NULL, ERR_SAFETY, {"production"}},
        {"host=prod2-db hostaddr=127.0.0.1", NULL, NULL, NULL, NULL, ERR_SAFETY, {"production"}},
        {"postgresql://[", NULL, NULL, NULL, NULL, ERR_USAGE, {"DATABASE_URL"}},
        {NULL, "redis://:p@kv.lan:6379/0", NULL, NULL, NULL, ERR_SAFETY, {"REDIS_URL", "kv.lan"}},
        {NULL, "redis://127.0.0.1:1@kv.lan/0", NULL, NULL, NULL, ERR_SAFETY, {"kv.lan"}},
        {NULL, "redis://production-redis", NULL, NULL, NULL, ERR_SAFETY, {"production"}},
        {NULL, "rediss://prod-redis", NULL, NULL, NULL, ERR_SAFETY, {"production"}},
        {NULL, "rediss://127.0.0.1", NULL, NULL, NULL, ERR_ENV, {"REDIS_URL", "TLS"}},
        {NULL, "kv.lan:6379", NULL, NULL, NULL, ERR_USAGE, {"REDIS_URL"}},
        {NULL, "unix://kv.lan/0", NULL, NULL, NULL, ERR_USAGE, {"REDIS_URL"}},
        {NULL, NULL, "https://s3.lan", NULL, NULL, ERR_SAFETY, {"TMA_LOAD_S3_ENDPOINT", "s3.lan"}},
        {NULL, NULL, "http://127.0.0.1@s3.lan:9000", NULL, NULL, ERR_SAFETY, {"s3.lan"}},
        {NULL, NULL, "s3.lan:9000", NULL, NULL, ERR_USAGE, {"TMA_LOAD_S3_ENDPOINT"}},
    };
    put("services", "[there]\nhost=db.lan\n[ours]\nhost=127.0.0.1\n");
    setenv("PGSERVICEFILE", "services", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct target t = {.database_url = mem_strdup(rows[i].database),
                           .redis_url = mem_strdup(rows[i].redis),
                           .s3_endpoint = mem_strdup(rows[i].store)};
        struct errinfo ei = {0};
        if (rows[i].variable)
            setenv(rows[i].variable, rows[i].value, 1);
        enum err err = target_judge_parts(&t, &ei);
        bool said = true;
        for (size_t k = 0; k < ARRAY_LEN(rows[i].says); k++)
            said = said && (!rows[i].says[k] || strstr(ei.msg, rows[i].says[k]));
        if (err != rows[i].want || !said)
            fail_msg("row %zu: %s, \"%s\"", i, err_symbol(err), ei.msg);
        if (rows[i].variable)
            unsetenv(rows[i].variable);
        target_done(&t);
    }
    put("services", "[there]\nldap://ldap.lan/dc=lan?host?sub?(cn=db)\n");
    struct target t = {.database_url = mem_strdup("service=there")};
    struct errinfo ei = {0};
    assert_int_equal(target_judge_parts(&t, &ei), ERR_SAFETY); /* libpq would ask that server already */
    assert_non_null(strstr(ei.msg, "LDAP"));
    target_done(&t);
    unsetenv("PGSERVICEFILE");
    unlink("services");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_set, clean),
        cmocka_unit_test_setup(sources_in_order, clean),
        cmocka_unit_test_setup(parts_of_another_server, clean),
        cmocka_unit_test_setup(bad_files, clean),
        cmocka_unit_test_setup(what_may_be_aimed_at, clean),
        cmocka_unit_test_setup(parts_elsewhere, clean),
        cmocka_unit_test_setup(what_editors_and_people_add, clean),
    };
    return cmocka_run_group_tests_name("target", tests, enter, leave);
}
