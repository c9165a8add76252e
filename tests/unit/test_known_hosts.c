/* Known hosts, line by line. That ssh decides the same is tried by tests/sys/known_hosts.t. */
#include "base/digest.h"
#include "net/known_hosts.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

#define A "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"
#define B "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC"
#define R "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAABAAAAAE="
/* ssh-keygen -H of host.example and of [host.example]:2222 */
#define HASHED      "|1|VJXBNLB10OVjtheuIiG44t/VcQU=|9bpquVRf6zDtk0DZuc+WN+fRlTw="
#define HASHED_2222 "|1|VJXBNLB10OVjtheuIiG44t/VcQU=|r/ahhiCePRD4Rl3JAQAcXIvqKF4="

/* The key of a line "type base64". */
static struct sv key_of(const char *text)
{
    static struct buf key = BUF_INIT(4096);
    buf_reset(&key);
    assert_int_equal(digest_unbase64(&key, sv_of(strchr(text, ' ') + 1)), ERR_OK);
    return (struct sv){key.data, key.len};
}

static struct known_finding judge(const char *text, size_t n, const char *host, int port, const char *key)
{
    struct known_hosts k;
    struct known_place p;
    known_hosts_init(&k);
    char *exact = malloc(n ? n : 1);
    memcpy(exact, text, n);
    known_hosts_add(&k, "f", (struct sv){exact, n});
    free(exact);
    known_place_find(&p, &k, host, port);
    struct known_finding f = known_place_judge(&p, key_of(key));
    known_place_done(&p);
    known_hosts_done(&k);
    f.line = NULL; /* it went with them */
    return f;
}

static void test_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int port;
        enum known_verdict want; /* of A at host.example */
    } rows[] = {
        {"", 22, KNOWN_NEW},
        {"\n\n# x\n", 22, KNOWN_NEW},
        {"host.example " A, 22, KNOWN_OK},
        {"host.example " B "\n", 22, KNOWN_CHANGED},
        {"host.example " R "\n", 22, KNOWN_CHANGED},
        {"host.example " B "\nhost.example " A "\n", 22, KNOWN_OK},
        {"Host.EXAMPLE " A "\r\n", 22, KNOWN_OK},
        {"\thost.example\t\t" A "\tcomment # x\n", 22, KNOWN_OK},
        {"host.example,10.0.0.1 " A "\n", 22, KNOWN_OK},
        {"hos?.e*le " A "\n", 22, KNOWN_OK},
        {"*,!host.example " A "\n", 22, KNOWN_NEW},
        {"*,!*.EXAMPLE " A "\n", 22, KNOWN_NEW},
        {"!other,host.* " A "\n", 22, KNOWN_OK},
        {"!other " A "\n", 22, KNOWN_NEW},
        {", " A "\n", 22, KNOWN_NEW},
        {"! " A "\n", 22, KNOWN_NEW},
        {"host.example: " A "\n", 22, KNOWN_NEW},
        {"[host.example]:22 " A "\n", 22, KNOWN_NEW},
        {"[host.example]:2222 " A "\n", 22, KNOWN_NEW},
        {"[host.example]:2222 " A "\n", 2222, KNOWN_OK},
        {"[host.example]:* " A "\n", 2222, KNOWN_OK},
        {"host.example " A "\n", 2222, KNOWN_OK}, /* ssh falls back to the bare name, when nothing else is known */
        {"[host.example]:2222 " B "\nhost.example " A "\n", 2222, KNOWN_CHANGED},
        {"host.example " B "\n", 2222, KNOWN_CHANGED},
        {HASHED " " A "\n", 22, KNOWN_OK},
        {HASHED " " A "\n", 2222, KNOWN_OK},
        {HASHED_2222 " " A "\n", 2222, KNOWN_OK},
        {HASHED_2222 " " A "\n", 22, KNOWN_NEW},
        {HASHED ",host.example " A "\n", 22, KNOWN_NEW},
        {"|1| " A "\n|1|x|y " A "\n|2||| " A "\n| " A "\n", 22, KNOWN_NEW},
        {"@revoked host.example " A "\n", 22, KNOWN_BAD},
        {"host.example " A "\n@revoked * " A "\n", 22, KNOWN_BAD},
        {"@revoked " HASHED " " A "\nhost.example " A "\n", 22, KNOWN_BAD},
        {"@revoked\thost.example\t" A "\nhost.example " A "\n", 22, KNOWN_BAD},
        {"@revoked * " B "\nhost.example " A "\n", 22, KNOWN_OK},
        {"@revoked other " A "\nhost.example " A "\n", 22, KNOWN_OK},
        {"@revoked host.example " A "\n[host.example]:2222 " A "\n", 2222, KNOWN_OK},
        {"@revoked host.example " A "\nhost.example " A "\n", 2222, KNOWN_BAD},
        {"@cert-authority * " A "\n", 22, KNOWN_NEW},
        {"@cert-authority * " B "\nhost.example " A "\n", 22, KNOWN_OK},
        {"@revoked @cert-authority * " A "\nhost.example " A "\n", 22, KNOWN_OK},
        {"@Revoked * " A "\nhost.example " A "\n", 22, KNOWN_OK},
        {"@ host.example " A "\n", 22, KNOWN_NEW},
        {"@\n@revoked\n@revoked *\n@revoked * ssh-ed25519\n", 22, KNOWN_NEW},
        {"host.example " A "=\n", 22, KNOWN_NEW},
        {"host.example ssh-ed25519 AAAA\n", 22, KNOWN_NEW},
        {"host.example ssh-ed25519 ====\n", 22, KNOWN_NEW},
        {"host.example ssh-ed25519 \xff\xfe\n", 22, KNOWN_NEW},
        {"host.example ssh-ed25519\n", 22, KNOWN_NEW},
        {"host.example\n", 22, KNOWN_NEW},
        {"host.example ssh-rsa"
         " AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB\n",
         22, KNOWN_NEW},
        {"host.example ssh-new AAAAB3NzaC1yc2EAAAADAQABAAAABAAAAAE=\n", 22, KNOWN_NEW},
        {"host.example 1024 35 123456789\n", 22, KNOWN_NEW},
        {"\xef\xbb\xbfhost.example " A "\n", 22, KNOWN_NEW},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum known_verdict is = judge(rows[i].text, strlen(rows[i].text), "host.example", rows[i].port, A).verdict;
        if (is != rows[i].want)
            fail_msg("row %zu: %d: %s", i, is, rows[i].text);
    }
    static const char nul[] = "host.example " A "\0@\nx\0 " B "\n\0host.example " B "\n";
    assert_int_equal(judge(nul, sizeof nul - 1, "host.example", 22, A).verdict, KNOWN_OK);
}

static void test_what_others_there_are(void **state)
{
    (void)state;
    static const char rsa[] = "host.example " R "\n", other[] = "host.example " R "\nhost.example " B "\n";
    assert_false(judge(rsa, sizeof rsa - 1, "host.example", 22, A).same_type);
    assert_true(judge(other, sizeof other - 1, "host.example", 22, A).same_type);
}

static void test_which_line_says_so(void **state)
{
    (void)state;
    struct known_hosts k;
    struct known_place p;
    known_hosts_init(&k);
    known_hosts_add(&k, "one", SV("# x\nhost.example " B "\nca " B "\n"));
    known_hosts_add(&k, "two", SV("\n\n@revoked * " A "\n@cert-authority ca.example " B "\n"));
    known_place_find(&p, &k, "HOST.example", 22);
    struct known_finding f = known_place_judge(&p, key_of(A));
    assert_int_equal(f.verdict, KNOWN_BAD);
    assert_string_equal(f.line->file, "two");
    assert_int_equal(f.line->line, 3);
    f = known_place_judge(&p, key_of(R));
    assert_int_equal(f.verdict, KNOWN_CHANGED);
    assert_string_equal(f.line->file, "one");
    assert_int_equal(f.line->line, 2);
    known_place_done(&p);
    known_place_find(&p, &k, "ca.example", 2222);
    f = known_place_judge(&p, key_of(R));
    assert_int_equal(f.verdict, KNOWN_NEW);
    assert_int_equal(f.line->mark, KNOWN_AUTHORITY);
    known_place_done(&p);
    known_hosts_done(&k);
}

/* What ssh asks for first: a type whose first key is revoked is not known. */
static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ed25519, rsa;
    } rows[] = {
        {"h " A "\n", true, false},
        {"h " R "\nh " A "\n", true, true},
        {"h rsa-sha2-256 AAAAB3NzaC1yc2EAAAADAQABAAAABAAAAAE=\n", false, true},
        {"@revoked h " A "\nh " A "\nh " B "\nh " R "\n", false, true},
        {"@revoked h " A "\nh " B "\nh " A "\n", true, false},
        {"@cert-authority h " A "\n", false, false},
        {"other " A "\n", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct known_hosts k;
        struct known_place p;
        known_hosts_init(&k);
        known_hosts_add(&k, "f", sv_of(rows[i].text));
        known_place_find(&p, &k, "h", 22);
        assert_int_equal(known_place_has(&p, "ssh-ed25519"), rows[i].ed25519);
        assert_int_equal(known_place_has(&p, "ssh-rsa"), rows[i].rsa);
        known_place_done(&p);
        known_hosts_done(&k);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        int port;
        const char *name;
    } rows[] = {
        {"Host.Example", 22, "host.example"}, {"host", 2222, "[host]:2222"}, {"[::1]", 22, "::1"},
        {"[::1]", 2222, "[::1]:2222"},        {"FE80::1", 22, "fe80::1"},    {"[]", 22, "[]"},
    };
    char name[64];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        known_name(name, sizeof name, rows[i].host, rows[i].port);
        assert_string_equal(name, rows[i].name);
    }
}

/* Stars that would cost a plain matcher years. */
static void test_patterns_are_quick(void **state)
{
    (void)state;
    static char text[1100];
    size_t n = 0;
    while (n < 900)
        n += (size_t)str_format(text + n, sizeof text - n, "*h");
    n += (size_t)str_format(text + n, sizeof text - n, "z " A "\n");
    static char host[1000];
    memset(host, 'h', sizeof host - 1);
    assert_int_equal(judge(text, n, host, 22, A).verdict, KNOWN_NEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_what_others_there_are),
        cmocka_unit_test(test_which_line_says_so),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_patterns_are_quick),
    };
    return cmocka_run_group_tests_name("known_hosts", tests, NULL, NULL);
}
