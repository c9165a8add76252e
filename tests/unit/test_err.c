#include "base/err.h"
#include "base/shortage.h"
#include "base/str.h"
#include "base/utf8.h"
#include "unit.h"
#include <errno.h>
#include <string.h>

static void texts_and_statuses(void **state)
{
    (void)state;
    for (int i = 0; i < ERR_COUNT; i++) {
        assert_non_null(err_text((enum err)i));
        assert_true(strlen(err_symbol((enum err)i)) > 1);
    }
    assert_int_equal(err_exit_status(ERR_OK), 0);
    assert_int_equal(err_exit_status(ERR_CHECK), 1);
    assert_int_equal(err_exit_status(ERR_USAGE), 2);
    assert_int_equal(err_exit_status(ERR_ENV), 3);
    assert_int_equal(err_exit_status(ERR_SAFETY), 3);
    assert_int_equal(err_exit_status(ERR_STOPPED), 4);
    assert_int_equal(err_exit_status(ERR_INTERRUPTED), 130);
    assert_true(err_retryable(ERR_RESET));
    assert_false(err_retryable(ERR_USAGE));
    assert_string_equal(err_text((enum err)999), "unknown error");
}

static void set_returns_its_code(void **state)
{
    (void)state;
    struct errinfo ei = {.http_status = 500};
    assert_int_equal(err_set(&ei, ERR_PARSE, "line %d", 7), ERR_PARSE);
    assert_string_equal(ei.msg, "line 7");
    assert_int_equal(ei.http_status, 0);
    assert_int_equal(err_set(NULL, ERR_IO, "nobody listens"), ERR_IO);
    assert_string_equal(err_message(&ei), "line 7");
    assert_string_equal(err_message(&(struct errinfo){.code = ERR_TIMEOUT}), "timed out");
    assert_non_null(err_message(NULL));
}

static void system_errors_keep_errno(void **state)
{
    (void)state;
    struct errinfo ei;
    errno = ENOENT;
    assert_int_equal(err_sys(&ei, ERR_IO, "cannot open %s", "x"), ERR_IO);
    assert_int_equal(ei.os_errno, ENOENT);
    assert_string_equal(ei.msg, "cannot open x: No such file or directory");
    errno = ENOSPC;
    assert_int_equal(err_sys(&ei, ERR_IO, "write"), ERR_FULL);
    errno = ENOSPC;
    assert_int_equal(err_sys(NULL, ERR_IO, "write"), ERR_FULL);
}

/* A shortage of this machine is counted, and is not the other side's doing. */
static void shortages_are_ours(void **state)
{
    (void)state;
    static const struct {
        int os;
        enum shortage s;
    } rows[] = {{EADDRNOTAVAIL, SHORTAGE_PORTS}, {EMFILE, SHORTAGE_FILES},     {ENFILE, SHORTAGE_FILES},
                {ENOBUFS, SHORTAGE_MEMORY},      {ENOMEM, SHORTAGE_MEMORY},    {ECONNREFUSED, SHORTAGE_NONE},
                {ECONNRESET, SHORTAGE_NONE},     {ENETUNREACH, SHORTAGE_NONE}, {0, SHORTAGE_NONE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool ours = rows[i].s != SHORTAGE_NONE;
        uint64_t before = ours ? shortage_count(rows[i].s) : 0;
        struct errinfo ei;
        errno = rows[i].os;
        assert_int_equal(err_sys(&ei, ERR_CONNECT, "x"), ours ? ERR_LOCAL : ERR_CONNECT);
        assert_int_equal(ei.code, ours ? ERR_LOCAL : ERR_CONNECT);
        errno = rows[i].os;
        assert_int_equal(err_sys(NULL, ERR_ENV, "x"), ERR_ENV); /* it speaks of this machine already */
        if (ours)
            assert_int_equal(shortage_count(rows[i].s), before + 2);
    }
}

static void long_messages_end_between_characters(void **state)
{
    (void)state;
    struct errinfo ei;
    char text[600];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'a', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xF0\x9F\x8C\x8D", 5);
        err_set(&ei, ERR_IO, "%s", text);
        assert_true(strlen(ei.msg) > 240);
        assert_true(utf8_valid(sv_of(ei.msg)));
        errno = EIO;
        err_sys(&ei, ERR_IO, "%.*s", 250 - (int)shift, text);
        assert_true(strlen(ei.msg) < sizeof ei.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_and_statuses),
        cmocka_unit_test(set_returns_its_code),
        cmocka_unit_test(system_errors_keep_errno),
        cmocka_unit_test(shortages_are_ours),
        cmocka_unit_test(long_messages_end_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
