/* What the webdav dialect is made of: signing in by headers, multi-status answers, schemes. */
#include "drive/api/http_auth.h"
#include "drive/api/scheme.h"
#include "drive/webdav/cloud.h"
#include "net/xml.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

/* ---- sign-in ---- */

static const char *header(struct http_auth *a, const char *method, const char *target, const char *cnonce)
{
    static char text[2048];
    struct buf b = BUF_INIT(2000);
    assert_int_equal(http_auth_header_with(a, "Mufasa", "Circle of Life", method, target, cnonce, &b), ERR_OK);
    snprintf(text, sizeof text, "%s", buf_cstr(&b));
    buf_done(&b);
    return text;
}

static void digest_of_the_standards(void **state)
{
    (void)state;
    /* RFC 7616, 3.9.1 */
    struct http_auth a = {0};
    assert_true(http_auth_challenge(&a, SV("Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", "
                                           "algorithm=MD5, nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
                                           "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"")));
    assert_int_equal(a.kind, HTTP_AUTH_DIGEST);
    const char *text = header(&a, "GET", "/dir/index.html", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ");
    assert_non_null(strstr(text, "response=\"8ca523f5e9506fed4657c9700eebdbec\""));
    assert_non_null(strstr(text, "nc=00000001"));
    assert_non_null(strstr(text, "opaque=\"FQhe/"));
    a = (struct http_auth){0};
    assert_true(http_auth_challenge(&a, SV("Digest realm=\"http-auth@example.org\", qop=\"auth\", algorithm=SHA-256, "
                                           "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\"")));
    text = header(&a, "GET", "/dir/index.html", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ");
    assert_non_null(strstr(text, "response=\"753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1\""));
    text = header(&a, "GET", "/", "x");
    assert_non_null(strstr(text, "nc=00000002"));
}

static void the_better_challenge_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        enum http_auth_kind kind;
        bool sha256;
    } rows[] = {
        {"Basic realm=\"x\"", HTTP_AUTH_BASIC, false},
        {"basic", HTTP_AUTH_BASIC, false},
        {"Basic realm=\"x, Digest nonce=y\"", HTTP_AUTH_BASIC, false},
        {"Digest realm=\"x\", nonce=\"n\", Basic realm=\"y\"", HTTP_AUTH_DIGEST, false},
        {"Basic realm=\"y\", Digest realm=\"x\", nonce=\"n\"", HTTP_AUTH_DIGEST, false},
        {"Digest realm=\"x\", nonce=\"n\", Digest realm=\"x\", nonce=\"n\", algorithm=SHA-256", HTTP_AUTH_DIGEST, true},
        {"Digest realm=\"x\", nonce=\"n\", algorithm=MD4, Basic realm=\"y\"", HTTP_AUTH_BASIC, false},
        {"Digest realm=\"x\", nonce=\"n\", qop=\"auth-int\", Basic realm=\"y\"", HTTP_AUTH_BASIC, false},
        {"Digest realm=\"x\"", HTTP_AUTH_NONE, false},
        {"Digest realm=\"x, nonce=\"n\"", HTTP_AUTH_NONE, false},
        {"Negotiate", HTTP_AUTH_NONE, false},
        {"", HTTP_AUTH_NONE, false},
        {",,;", HTTP_AUTH_NONE, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_auth a = {0};
        http_auth_challenge(&a, sv_of(rows[i].value));
        if (a.kind != rows[i].kind || a.sha256 != rows[i].sha256)
            fail_msg("%s: kind %d", rows[i].value, a.kind);
    }
}

static void basic_and_nobody(void **state)
{
    (void)state;
    struct http_auth a = {.kind = HTTP_AUTH_BASIC};
    assert_string_equal(header(&a, "GET", "/", ""), "Authorization: Basic TXVmYXNhOkNpcmNsZSBvZiBMaWZl");
    a.kind = HTTP_AUTH_NONE;
    assert_string_equal(header(&a, "GET", "/", ""), "");
}

/* ---- multi-status ---- */

struct seen {
    char text[2048];
    size_t n;
};

static bool note(void *arg, const struct dav_item *it)
{
    struct seen *s = arg;
    size_t at = strlen(s->text);
    s->n++;
    snprintf(s->text + at, sizeof s->text - at, "%s %d %s%lld %s|", it->href, it->status, it->folder ? "d" : "f",
             (long long)it->size, it->etag ? it->etag : "-");
    return true;
}

static enum err parse(const char *xml, size_t step, struct seen *s)
{
    struct dav_multistatus *m = dav_multistatus_new(note, s);
    enum err err = ERR_OK;
    *s = (struct seen){.n = 0};
    for (size_t n = strlen(xml), i = 0; i < n && !err; i += step)
        err = dav_multistatus_feed(m, xml + i, i + step < n ? step : n - i);
    if (!err)
        err = dav_multistatus_end(m);
    dav_multistatus_free(&m);
    return err;
}

static void items_are_the_same_for_every_split(void **state)
{
    (void)state;
    static const char xml[] =
        "<?xml version=\"1.0\"?><x:multistatus xmlns:x=\"DAV:\" "
        "xmlns:o=\"urn:other\"><x:response><x:href>/a%20b/</x:href>"
        "<x:propstat><x:prop><x:resourcetype><x:collection/></x:resourcetype><o:getetag>no</o:getetag></x:prop>"
        "<x:status>HTTP/1.1 200 OK</x:status></x:propstat></x:response>"
        "<x:response><x:href>/a&amp;b</x:href><x:propstat><x:prop><x:getetag>\"gone\"</x:getetag></x:prop>"
        "<x:status>HTTP/1.1 404 Not Found</x:status></x:propstat><x:propstat><x:prop><x:resourcetype/>"
        "<x:getcontentlength> 12 </x:getcontentlength><x:getetag>W/&quot;e&quot;</x:getetag></x:prop>"
        "<x:status>HTTP/1.1 200 OK</x:status></x:propstat></x:response>"
        "<x:response><x:href>/locked</x:href><x:status>HTTP/1.1 423 Locked</x:status></x:response></x:multistatus>";
    struct seen s;
    for (size_t step = 1; step < sizeof xml; step += step < 20 ? 1 : 37) {
        assert_int_equal(parse(xml, step, &s), ERR_OK);
        assert_string_equal(s.text, "/a%20b/ 0 d-1 -|/a&b 0 f12 W/\"e\"|/locked 423 f-1 -|");
    }
}

static bool note_quota(void *arg, const struct dav_item *it)
{
    struct seen *s = arg;
    size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "%lld %lld|", (long long)it->used, (long long)it->available);
    return true;
}

static void quotas(void **state)
{
    (void)state;
    static const struct {
        const char *used, *available, *told;
    } rows[] = {
        {"100", "200", "100 200|"},
        {"100", "-3", "100 -1|"},
        {"100", "9223372036854775807", "100 -1|"},
        {"4611686018427387903", "99999999999999999999", "4611686018427387903 -1|"},
        {"", "x", "-1 -1|"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct seen s = {.n = 0};
        struct dav_multistatus *m = dav_multistatus_new(note_quota, &s);
        char xml[600];
        int n = snprintf(xml, sizeof xml,
                         "<d:multistatus xmlns:d=\"DAV:\"><d:response><d:href>/</d:href><d:propstat><d:prop>"
                         "<d:quota-used-bytes>%s</d:quota-used-bytes><d:quota-available-bytes>%s"
                         "</d:quota-available-bytes></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat>"
                         "</d:response></d:multistatus>",
                         rows[i].used, rows[i].available);
        assert_int_equal(dav_multistatus_feed(m, xml, (size_t)n), ERR_OK);
        assert_int_equal(dav_multistatus_end(m), ERR_OK);
        assert_string_equal(s.text, rows[i].told);
        dav_multistatus_free(&m);
    }
}

static void what_is_no_multistatus(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "<html></html>",
        "<multistatus></multistatus>", /* of no namespace */
        "<d:multistatus xmlns:d=\"DAV:\"><d:response>",
        "<d:multistatus xmlns:d=\"DAV:\"></d:response></d:multistatus>",
        "<!DOCTYPE d [<!ENTITY a \"b\">]><d:multistatus xmlns:d=\"DAV:\">&a;</d:multistatus>",
        "<d:multistatus xmlns:d=\"DAV:\">\x01</d:multistatus>",
        "<d:multistatus xmlns:d=\"DAV:\"><d:response><d:status>HTTP/1.1 200 OK</d:status></d:response></d:multistatus>",
    };
    struct seen s;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (parse(rows[i], 5, &s) == ERR_OK)
            fail_msg("passes: %s", rows[i]);
    assert_int_equal(parse("<multistatus xmlns=\"DAV:\"/>", 4, &s), ERR_OK);
    assert_int_equal(s.n, 0);
}

static void errors_have_a_sentence(void **state)
{
    (void)state;
    char text[64];
    assert_true(
        dav_error_text(SV("<d:error xmlns:d=\"DAV:\" xmlns:s=\"http://sabredav.org/ns\"><s:exception>x</s:exception>"
                          "<s:message>No such file</s:message></d:error>"),
                       text, sizeof text));
    assert_string_equal(text, "No such file");
    assert_true(dav_error_text(SV("<html><head><title>423 Locked</title></head></html>"), text, sizeof text));
    assert_string_equal(text, "423 Locked");
    assert_false(dav_error_text(SV("oops"), text, sizeof text));
    assert_false(dav_error_text(SV(""), text, sizeof text));
}

static void tags(void **state)
{
    (void)state;
    static const struct {
        const char *tag, *opaque;
        bool weak;
    } rows[] = {{"\"x\"", "x", false}, {"W/\"x\"", "x", true}, {"x", "", false}, {"\"\"", "", false},
                {"", "", false},       {"W/x", "", true},      {NULL, "", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[DRIVE_ID_MAX + 1];
        bool weak;
        assert_int_equal(dav_etag(rows[i].tag, text, sizeof text, &weak), rows[i].opaque[0] != '\0');
        assert_string_equal(text, rows[i].opaque);
        assert_int_equal(weak, rows[i].weak);
    }
    char tiny[4];
    bool weak;
    assert_false(dav_etag("\"long\"", tiny, sizeof tiny, &weak));
}

/* ---- what the clouds add ---- */

static bool note_cloud(void *arg, const struct dav_item *it)
{
    snprintf(arg, 256, "%s|%s|%s|%lld", it->own_id ? it->own_id : "-", it->checksum ? it->checksum : "-",
             it->trashed_from ? it->trashed_from : "-", (long long)it->total);
    return true;
}

static void properties_of_the_clouds(void **state)
{
    (void)state;
    static const char head[] =
        "<d:multistatus xmlns:d=\"DAV:\" xmlns:o=\"http://owncloud.org/ns\" "
        "xmlns:n=\"http://nextcloud.org/ns\"><d:response><d:href>/x</d:href><d:propstat><d:prop>",
                      tail[] =
                          "</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>";
    static const struct {
        const char *props, *seen;
    } rows[] = {
        {"<o:fileid>7</o:fileid><o:size>12</o:size>", "7|-|-|12"},
        {"<o:size>-1</o:size>", "-|-|-|-1"}, /* not looked through yet */
        {"<o:checksums><o:checksum>SHA1:aa MD5:bb</o:checksum></o:checksums>", "-|SHA1:aa MD5:bb|-|-1"},
        {"<o:checksum>SHA1:aa</o:checksum>", "-|SHA1:aa|-|-1"},
        {"<o:checksums/>", "-|-|-|-1"},
        {"<n:trashbin-original-location>a/b&amp;c</n:trashbin-original-location>", "-|-|a/b&c|-1"},
        {"<o:trashbin-original-location>a</o:trashbin-original-location>", "-|-|a|-1"},
        {"<d:trashbin-original-location>a</d:trashbin-original-location>", "-|-|-|-1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char seen[256] = "", xml[1024];
        snprintf(xml, sizeof xml, "%s%s%s", head, rows[i].props, tail);
        struct dav_multistatus *m = dav_multistatus_new(note_cloud, seen);
        assert_int_equal(dav_multistatus_feed(m, xml, strlen(xml)), ERR_OK);
        assert_int_equal(dav_multistatus_end(m), ERR_OK);
        dav_multistatus_free(&m);
        assert_string_equal(seen, rows[i].seen);
    }
}

static void checksums(void **state)
{
    (void)state;
#define SENT "OC-Checksum: SHA1:a9993e364706816aba3e25717850c26c9cd0d89d"
    static const struct {
        const char *told, *sent;
        bool fits;
    } rows[] = {
        {"SHA1:a9993e364706816aba3e25717850c26c9cd0d89d", SENT, true},
        {"MD5:00 sha1:A9993E364706816ABA3E25717850C26C9CD0D89D ADLER32:1", SENT, true},
        {"SHA1:a9993e364706816aba3e25717850c26c9cd0d89e", SENT, false},
        {"SHA1:a9", SENT, false},
        {"SHA1:", SENT, false},
        {"MD5:900150983cd24fb0d6963f7d28e17f72", SENT, true},
        {"", SENT, true},
        {"SHA1:00", NULL, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (dav_checksum_fits(rows[i].told, rows[i].sent) != rows[i].fits)
            fail_msg("%s", rows[i].told);
}

/* ---- schemes, with addresses as X06 has them ---- */

static void schemes(void **state)
{
    (void)state;
    static const struct {
        const char *url, *dialect, *speaks, *origin; /* speaks NULL: refused */
    } rows[] = {
        {"http://h:1/x", NULL, "tma", "http://h:1/x"},
        {"webdav://u:p@h/dav/", NULL, "webdav", "http://h:80/dav"},
        {"webdavs://h", NULL, "webdav", "https://h:443"},
        {"webdav://[::1]:8080/a%20b", NULL, "webdav", "http://[::1]:8080/a%20b"},
        {"webdavs://[fe80::1%25eth0]/", NULL, "webdav", "https://[fe80::1%25eth0]:443"},
        {"https://h", "webdav", "webdav", "https://h:443"},
        {"webdav://h", "webdav", "webdav", "http://h:80"},
        {"webdav://h", "tma", NULL, NULL},
        {"http://h", "gopher", NULL, NULL},
        {"ftp://h", NULL, NULL, NULL},
        {"webdav://::1:80", NULL, NULL, NULL},
        {"webdav://h?x", NULL, NULL, NULL},
        {"webdav:///x", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct scheme *row;
        struct http_url u;
        struct errinfo ei = {0};
        enum err err = scheme_of(rows[i].url, rows[i].dialect, &row, &u, &ei);
        if ((err == ERR_OK) != (rows[i].speaks != NULL))
            fail_msg("%s: %s", rows[i].url, ei.msg);
        if (err) {
            assert_int_equal(err, ERR_USAGE);
            continue;
        }
        char *text = scheme_url(&u);
        assert_string_equal(row->dialect, rows[i].speaks);
        assert_string_equal(text, rows[i].origin);
        mem_free(text);
        http_url_done(&u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digest_of_the_standards),
        cmocka_unit_test(the_better_challenge_is_taken),
        cmocka_unit_test(basic_and_nobody),
        cmocka_unit_test(items_are_the_same_for_every_split),
        cmocka_unit_test(what_is_no_multistatus),
        cmocka_unit_test(quotas),
        cmocka_unit_test(errors_have_a_sentence),
        cmocka_unit_test(tags),
        cmocka_unit_test(properties_of_the_clouds),
        cmocka_unit_test(checksums),
        cmocka_unit_test(schemes),
    };
    xml_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
