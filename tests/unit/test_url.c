/* URLs taken apart (cases X06, X07). */
#include "base/mem.h"
#include "base/str.h"
#include "net/httpc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static void good_urls(void **state)
{
    (void)state;
    static const struct {
        const char *text, *scheme, *host, *path, *user, *password, *zone;
        int port;
    } rows[] = {
        {"http://127.0.0.1:3200", "http", "127.0.0.1", "", NULL, NULL, NULL, 3200},
        {"http://127.0.0.1", "http", "127.0.0.1", "", NULL, NULL, NULL, 80},
        {"https://drive.lan/", "https", "drive.lan", "", NULL, NULL, NULL, 443},
        {"HTTP://Drive.lan:080/tma/", "http", "Drive.lan", "/tma", NULL, NULL, NULL, 80},
        {"http://h/dav", "http", "h", "/dav", NULL, NULL, NULL, 80},
        {"http://h/dav/", "http", "h", "/dav", NULL, NULL, NULL, 80},
        {"http://h/dav//", "http", "h", "/dav", NULL, NULL, NULL, 80},
        {"http://h//dav", "http", "h", "//dav", NULL, NULL, NULL, 80},
        {"http://h/a%20b", "http", "h", "/a%20b", NULL, NULL, NULL, 80},
        {"http://[::1]:3200", "http", "[::1]", "", NULL, NULL, NULL, 3200},
        {"http://[::1]/x", "http", "[::1]", "/x", NULL, NULL, NULL, 80},
        {"http://[fe80::1%25eth0]:3200", "http", "[fe80::1]", "", NULL, NULL, "eth0", 3200},
        {"https://us%20er:p%40ss@h:1/", "https", "h", "", "us er", "p@ss", NULL, 1},
        {"http://user@[::1]:1/", "http", "[::1]", "", "user", NULL, NULL, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_url u;
        struct errinfo ei = {0};
        if (http_url_parse(rows[i].text, &u, &ei) != ERR_OK)
            fail_msg("%s: %s", rows[i].text, ei.msg);
        assert_string_equal(u.scheme, rows[i].scheme);
        assert_string_equal(u.host, rows[i].host);
        assert_string_equal(u.path, rows[i].path);
        assert_int_equal(u.port, rows[i].port);
        assert_true(sv_eq(sv_of(u.user), sv_of(rows[i].user)));
        assert_true(sv_eq(sv_of(u.password), sv_of(rows[i].password)));
        assert_true(sv_eq(sv_of(u.zone), sv_of(rows[i].zone)));
        http_url_done(&u);
        assert_null(u.host);
    }
}

static void bad_urls_say_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "empty"},
        {"http://::1:3200", "brackets"},
        {"http://fe80::1/", "brackets"},
        {"http://u@::1:3200/", "brackets"},
        {"127.0.0.1:3200", "http://"},
        {"drive.lan", "http://"},
        {"ftp://drive.lan", "http://"},
        {"sftp://drive.lan/x", "http://"},
        {"http://", "host"},
        {"http:///x", "host"},
        {"http:/x", "http://"},
        {"http://:3200", "host"},
        {"http://h:0", "port"},
        {"http://h:65536", "port"},
        {"http://h:x", "port"},
        {"http://h/?a=b", "query"},
        {"http://h/#x", "fragment"},
        {"http://h h/", "URL"},
        {"http://[::1", "URL"},
        {"http://h/\x01", "URL"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_url u = {0};
        struct errinfo ei = {0};
        if (http_url_parse(rows[i].text, &u, &ei) != ERR_USAGE)
            fail_msg("%s passes: host %s, port %d, path %s", rows[i].text, u.host, u.port, u.path);
        if (strstr(ei.msg, rows[i].says) == NULL)
            fail_msg("%s: \"%s\" does not say %s", rows[i].text, ei.msg, rows[i].says);
        assert_null(u.host);
        assert_int_equal(http_url_parse(rows[i].text, &u, NULL), ERR_USAGE);
    }
}

/* X09, X11: no password and no control byte of the text comes back in a message. */
static void messages_are_harmless(void **state)
{
    (void)state;
    struct http_url u;
    struct errinfo ei = {0};
    assert_int_equal(http_url_parse("http://owner:secret@h:x/", &u, &ei), ERR_USAGE);
    assert_null(strstr(ei.msg, "secret"));
    assert_int_equal(http_url_parse("\x1b[2J\r\nok", &u, &ei), ERR_USAGE);
    for (const char *p = ei.msg; *p != '\0'; p++)
        assert_true((unsigned char)*p >= ' ');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_urls),
        cmocka_unit_test(bad_urls_say_what_is_wrong),
        cmocka_unit_test(messages_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
