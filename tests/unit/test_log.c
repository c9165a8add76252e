#include "base/log.h"
#include "base/secret.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What fn writes to stderr. */
static char *captured(void (*fn)(void))
{
    static char text[20000];
    char name[] = "/tmp/log-XXXXXX";
    int fd = mkstemp(name), saved = dup(STDERR_FILENO);
    assert_true(fd >= 0 && unlink(name) == 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    fn();
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
    return text;
}

static void say_hello(void)
{
    LOGI("mod", "hello %d", 5);
    LOGD("mod", "not shown");
}

static void one_stamped_line(void **state)
{
    (void)state;
    char *text = captured(say_hello);
    assert_true(strlen(text) > 26 && text[23] == 'Z' && text[10] == 'T');
    assert_string_equal(text + 24, " info  mod: hello 5\n");
}

static void say_hostile(void)
{
    LOGE("mod", "%s", "a\x1b[2J\r\nforged");
}

/* X11 */
static void control_bytes_are_shown(void **state)
{
    (void)state;
    char *text = captured(say_hostile);
    assert_non_null(strstr(text, "a\\x1b[2J\\x0d\\x0aforged\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void say_secret(void)
{
    LOGW("mod", "password is %s%s!", "hunter2hunter2", "hunter2");
}

static void secrets_are_hidden(void **state)
{
    (void)state;
    secret_add(SV("hunter2"));
    char *text = captured(say_secret);
    assert_non_null(strstr(text, "password is *********!"));
}

static void say_debug(void)
{
    LOGD("httpc", "one");
    LOGD("pg", "two");
    LOGD("kv", "three");
}

static void tracing(void **state)
{
    (void)state;
    log_set_trace("httpc");
    char *text = captured(say_debug);
    assert_true(strstr(text, "one") && !strstr(text, "two"));
    log_set_trace("all,-pg");
    text = captured(say_debug);
    assert_true(strstr(text, "one") && !strstr(text, "two") && strstr(text, "three"));
    log_set_trace(NULL);
    log_set_level(LOG_DEBUG);
    log_set_trace("-pg");
    text = captured(say_debug);
    assert_true(strstr(text, "one") && !strstr(text, "two") && strstr(text, "three"));
    log_set_trace(NULL);
    log_set_level(LOG_INFO);
}

static void levels(void **state)
{
    (void)state;
    enum log_level level = LOG_INFO;
    assert_true(log_level_parse("debug", &level) && level == LOG_DEBUG);
    assert_false(log_level_parse("loud", &level));
    assert_false(log_enabled(LOG_DEBUG, "x"));
    log_set_level(LOG_ERROR);
    assert_false(log_enabled(LOG_WARN, "x"));
    log_set_level(LOG_INFO);
}

static void say_long(void)
{
    char big[10000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    LOGI("mod", "%s", big);
}

static void long_lines_are_cut(void **state)
{
    (void)state;
    char *text = captured(say_long);
    assert_true(strlen(text) < 4300 && text[strlen(text) - 1] == '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stamped_line),
        cmocka_unit_test(control_bytes_are_shown),
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(tracing),
        cmocka_unit_test(levels),
        cmocka_unit_test(long_lines_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
