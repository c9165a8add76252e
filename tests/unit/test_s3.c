/* What is said to an S3 store and read from it: signatures against Amazon's published examples, answers in XML. */
#include "net/xml.h"
#include "store/s3sign.h"
#include "store/s3xml.h"
#include "unit.h"
#include <string.h>

/* Amazon S3 API reference, "Signature calculations for the Authorization header", examples with these three headers. */
static void signatures_are_those_of_the_reference(void **state)
{
    static const struct {
        const char *query, *signature;
    } rows[] = {
        {"lifecycle=", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
        {"max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct s3sign in = {.access_key = "AKIAIOSFODNN7EXAMPLE",
                            .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                            .region = "us-east-1",
                            .host = "examplebucket.s3.amazonaws.com",
                            .method = "GET",
                            .path = "/",
                            .query = rows[i].query};
        struct s3sign_headers out;
        assert_true(wall_parse("2013-05-24T00:00:00Z", &in.at));
        assert_int_equal(s3sign_make(&in, &out), ERR_OK);
        assert_non_null(strstr(out.authorization, rows[i].signature));
        assert_string_equal(out.date, "x-amz-date: 20130524T000000Z");
        assert_string_equal(out.content_sha256,
                            "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

static void absurd_keys_are_refused(void **state)
{
    char secret[600];
    (void)state;
    memset(secret, 'k', sizeof secret - 1);
    secret[sizeof secret - 1] = '\0';
    struct s3sign in = {
        .access_key = "a", .secret_key = secret, .region = "r", .host = "h", .method = "GET", .path = "/", .query = ""};
    struct s3sign_headers out;
    assert_int_equal(s3sign_make(&in, &out), ERR_LIMIT);
    in.secret_key = "s";
    in.access_key = secret;
    assert_int_equal(s3sign_make(&in, &out), ERR_LIMIT);
}

static struct sv text(const char *s)
{
    return (struct sv){s, strlen(s)};
}

static void a_page_is_read_whole(void **state)
{
    static const char xml[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><Prefix/>"
        "<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>"
        "<Contents><Key>a/b</Key><LastModified>2026-11-30T09:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag>"
        "<Size>12</Size><Owner><ID>1</ID><DisplayName>x</DisplayName></Owner><StorageClass>STANDARD</StorageClass>"
        "</Contents>\n  <Contents><Size>5000000000</Size><Key>a%20b</Key></Contents></ListBucketResult>";
    struct s3xml_page page;
    (void)state;
    assert_int_equal(s3xml_page_parse(text(xml), &page), ERR_OK);
    assert_int_equal(page.n, 2);
    assert_true(page.truncated);
    assert_string_equal(page.next, "t&1");
    assert_string_equal(page.items[0].key, "a/b");
    assert_int_equal(page.items[0].size, 12);
    struct wall at;
    assert_true(wall_parse("2026-11-30T09:00:00Z", &at));
    assert_int_equal(page.items[0].modified.us, at.us);
    assert_string_equal(page.items[1].key, "a%20b"); /* not said to be encoded: it is a name as it stands */
    assert_true(page.items[1].size == 5000000000);
    s3xml_page_done(&page);
}

static void encoded_keys_are_decoded_once(void **state)
{
    struct s3xml_page page;
    (void)state;
    assert_int_equal(s3xml_page_parse(text("<ListBucketResult><Contents><Key>a+b%2520%2B%0A</Key></Contents>"
                                           "<EncodingType>url</EncodingType></ListBucketResult>"),
                                      &page),
                     ERR_OK);
    assert_string_equal(page.items[0].key, "a b%20+\n");
    s3xml_page_done(&page);
}

static void what_is_no_page_is_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "not xml",
        "<html/>",
        "<html><body>Bad gateway</body></html>",
        "<Error><Code>NoSuchBucket</Code></Error>",
        "<ListBucketResult><Contents><Key>a</Key></Contents>",                      /* cut */
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>", /* no name */
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><LastModified>soon</LastModified></Contents></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents></ListBucketResult>",
        "<!DOCTYPE x [<!ENTITY e \"v\">]><ListBucketResult><Contents><Key>&e;</Key></Contents></ListBucketResult>",
        "<a><a><a><a><a><a><a><a><a><a>deep</a></a></a></a></a></a></a></a></a></a>",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct s3xml_page page;
        if (s3xml_page_parse(text(rows[i]), &page) == ERR_OK)
            fail_msg("taken for a page: %s", rows[i]);
        assert_null(page.items);
    }
}

static void an_empty_page_is_one(void **state)
{
    struct s3xml_page page;
    (void)state;
    assert_int_equal(s3xml_page_parse(text("<ListBucketResult/>"), &page), ERR_OK);
    assert_int_equal(page.n, 0);
    assert_false(page.truncated);
    s3xml_page_done(&page);
}

static void inner_errors_of_a_delete_are_counted(void **state)
{
    static const struct {
        const char *xml;
        enum err err;
        size_t failed;
        const char *code;
    } rows[] = {
        {"<DeleteResult/>", ERR_OK, 0, ""},
        {"<DeleteResult><Deleted><Key>a</Key></Deleted></DeleteResult>", ERR_OK, 0, ""},
        {"<DeleteResult><Error><Key>a</Key><Code>NoSuchKey</Code></Error></DeleteResult>", ERR_OK, 0, ""},
        {"<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
         "<Deleted><Key>b</Key></Deleted><Error><Key>c</Key><Code>InternalError</Code></Error></DeleteResult>",
         ERR_OK, 2, "AccessDenied"},
        {"<Error><Code>MalformedXML</Code></Error>", ERR_PARSE, 0, NULL},
        {"", ERR_PARSE, 0, NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct s3xml_error first;
        size_t failed;
        assert_int_equal(s3xml_delete_parse(text(rows[i].xml), &failed, &first), rows[i].err);
        if (rows[i].err)
            continue;
        assert_int_equal(failed, rows[i].failed);
        assert_string_equal(first.code, rows[i].code);
    }
}

static void errors_tell_code_and_message(void **state)
{
    struct s3xml_error e;
    (void)state;
    s3xml_error_parse(text("<Error><Code>NoSuchBucket</Code><Message>none &lt;here&gt;</Message></Error>"), &e);
    assert_string_equal(e.code, "NoSuchBucket");
    assert_string_equal(e.message, "none <here>");
    s3xml_error_parse(text("<Error><Code>SlowDown</Code><Mess"), &e);
    assert_string_equal(e.code, "");
    s3xml_error_parse(text("<html>502</html>"), &e);
    assert_string_equal(e.code, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_those_of_the_reference),
        cmocka_unit_test(absurd_keys_are_refused),
        cmocka_unit_test(a_page_is_read_whole),
        cmocka_unit_test(encoded_keys_are_decoded_once),
        cmocka_unit_test(what_is_no_page_is_refused),
        cmocka_unit_test(an_empty_page_is_one),
        cmocka_unit_test(inner_errors_of_a_delete_are_counted),
        cmocka_unit_test(errors_tell_code_and_message),
    };
    xml_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
