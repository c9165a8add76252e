/* Tokens: what we sign is read back, what is changed, lapsed or foreign is not. */
#include "base/digest.h"
#include "server/access/token.h"
#include "unit.h"
#include <string.h>

#define SECRET "a secret of this test"
static const struct wall now = {INT64_C(1700000000) * US_PER_S};

static char *made(int64_t expires_s, const char *secret)
{
    struct token t = {.user_id = "user", .session_id = "session", .issued_s = 1699999000, .expires_s = expires_s};
    char *text = token_make(secret, &t);
    assert_non_null(text);
    return text;
}

static void test_reads_back(void **state)
{
    (void)state;
    char *text = made(1700000001, SECRET);
    struct token t;
    assert_int_equal(token_read(SECRET, sv_of(text), now, &t), TOKEN_OK);
    assert_string_equal(t.user_id, "user");
    assert_string_equal(t.session_id, "session");
    assert_int_equal(t.issued_s, 1699999000);
    assert_int_equal(t.expires_s, 1700000001);
    mem_free(text);
}

static void test_lapses_with_its_second(void **state)
{
    (void)state;
    struct token t;
    char *text = made(1700000000, SECRET);
    assert_int_equal(token_read(SECRET, sv_of(text), now, &t), TOKEN_EXPIRED);
    mem_free(text);
    text = made(1700000000, "another");
    assert_int_equal(token_read(SECRET, sv_of(text), now, &t), TOKEN_BAD);
    mem_free(text);
}

/* Every single byte counts: no changed token passes. */
static void test_every_byte_counts(void **state)
{
    (void)state;
    char *text = made(1700000001, SECRET);
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        char kept = text[i];
        struct token t;
        text[i] = kept == 'A' ? 'B' : 'A';
        /* The last character of a base64 part may hold bits that mean nothing. */
        bool spare = i + 1 == n || text[i + 1] == '.';
        if (!spare)
            assert_int_equal(token_read(SECRET, sv_of(text), now, &t), TOKEN_BAD);
        text[i] = kept;
        assert_int_not_equal(token_read(SECRET, (struct sv){text, i}, now, &t), TOKEN_OK);
    }
    mem_free(text);
}

/* The text of a token with these parts, signed or not: as strangers make them. */
static enum token_state read_made_of(const char *head, const char *body)
{
    struct buf text = BUF_INIT(64 * 1024);
    struct token t;
    assert_int_equal(digest_base64(&text, head, strlen(head)), ERR_OK);
    assert_int_equal(buf_append_char(&text, '.'), ERR_OK);
    assert_int_equal(digest_base64(&text, body, strlen(body)), ERR_OK);
    assert_int_equal(buf_append_str(&text, ".c2lnbmF0dXJl"), ERR_OK);
    enum token_state state = token_read(SECRET, (struct sv){buf_cstr(&text), text.len}, now, &t);
    buf_done(&text);
    return state;
}

static void test_strange_ones(void **state)
{
    (void)state;
    static char deep[3000];
    memset(deep, '[', sizeof deep - 1);
    static const char body[] = "{\"id\":\"user\",\"sid\":\"session\",\"exp\":9999999999}";
    struct token t;
    assert_int_equal(read_made_of("{\"alg\":\"none\",\"typ\":\"JWT\"}", body), TOKEN_BAD);
    assert_int_equal(read_made_of("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", body), TOKEN_BAD);
    assert_int_equal(read_made_of(deep, body), TOKEN_BAD);
    assert_int_equal(read_made_of("{\"alg\":\"HS256\"}", deep), TOKEN_BAD);
    static const char *const texts[] = {"", ".", "..", "a.b", "a.b.c", "...."};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_int_equal(token_read(SECRET, sv_of(texts[i]), now, &t), TOKEN_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_back),
        cmocka_unit_test(test_lapses_with_its_second),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_strange_ones),
    };
    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
