/* Counts of an audit log: every form in which they may come, and the mix that --mix reads back. */
#include "sim/app/mix.h"
#include "sim/mix/counts.h"
#include "sim/mix/query.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

static enum err import(const char *text, size_t n, struct mix_counts *c, struct errinfo *ei)
{
    FILE *f = fmemopen((void *)(uintptr_t)text, n, "r");
    assert_non_null(f);
    *c = (struct mix_counts){0};
    enum err err = mix_counts_read(c, f, "log.csv", ei);
    fclose(f);
    return err;
}

static uint64_t count_of(const struct mix_counts *c, const char *action)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->rows[i].action, action) == 0)
            return c->rows[i].n;
    return 0;
}

static void test_every_form_gives_the_same_counts(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "file.download,3\nfile.update,2\nauth.login,1\n",
        "action,actions\nfile.download,3\nfile.update,2\nauth.login,1\n",
        "\xef\xbb\xbf\"action\";\"count\"\r\n\"file.download\";3\r\nfile.update;2\r\nauth.login;1\r\n",
        " action | actions \n--------+--------\n file.download | 3\n file.update | 2\n auth.login | 1\n(3 rows)\n\n",
        "action,actions\rfile.download,3\rfile.update,2\r\rauth.login,1\r",
        "action,actions\r\n\r\n\"file.download\",\"3\"\r\nfile.update,2,,,\r\nauth.login,\"1\"",
        "# by hand\nfile.download\t1\nfile.download\t2\nfile.update\t2\nauth.login\t1",
        "N,Action\n3,file.download\n2,file.update\n1,auth.login\n",
        "id,action,status,metadata\n"
        "1,file.download,success,\"{\"\"name\"\": \"\"a,\nfile.move\"\"}\"\n2,file.download,success,\n"
        "3,file.download,success,\n4,file.update,success,\n5,file.update,success,\n6,auth.login,success,\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct mix_counts c;
        struct errinfo ei = {0};
        assert_int_equal(import(texts[i], strlen(texts[i]), &c, &ei), ERR_OK);
        assert_int_equal(count_of(&c, "file.download"), 3);
        assert_int_equal(count_of(&c, "file.update"), 2);
        assert_int_equal(count_of(&c, "auth.login"), 1);
        assert_int_equal(c.n, 3);
        assert_int_equal(mix_counts_total(&c, true), 5);
        assert_int_equal(mix_counts_total(&c, false), 1);
        mix_counts_done(&c);
    }
}

static void test_what_is_no_count_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        struct sv text;
        const char *says;
    } rows[] = {
        {SV("file.download\n"), "line 1: file.download needs its count"},
        {SV("file.download,3\n\nfile.update,x\n"), "line 3: file.update needs its count"},
        {SV("file.download,-1\n"), "line 1"},
        {SV("file.download,9999999999999999\n"), "line 1"},
        {SV("action,count\n,4\n"), "line 2: no action"},
        {SV("a,1\n\"b,2\n"), "line 2: a quote that is not closed"},
        {SV("a\0,1\n"), "line 1: a byte of 0"},
        {SV("\"a\0\",1\n"), "line 1: a byte of 0"},
        {SV("\0"), "line 1: a byte of 0"},
        {SV(","), "line 1: no action"},
        {SV(",\n"), "line 1: no action"},
        {SV("|"), "line 1: no action"},
        {SV(";;;"), "line 1: no action"},
        {SV("\t|\n"), "line 1: no action"},
        {SV(",1\n"), "line 1: no action"},
        {SV("\"\",1\n"), "line 1: no action"},
        {SV("\xef\xbb\xbf,1\n"), "line 1: no action"},
        {SV("\n\n,\n"), "line 3: no action"},
        {SV("\""), "line 1: a quote that is not closed"},
        {SV("\"\"\""), "line 1: a quote that is not closed"},
        {SV("action,count\r,4\r"), "line 2: no action"},
        {SV("action\nfile.download\n\"\"\n,\n"), "line 4: no action"},
        {SV("file.download,\n"), "line 1: file.download needs its count"},
        {SV("file.download,NULL\n"), "line 1: file.download needs its count"},
        {SV("\x7f"
            "ELF\x02\x01"),
         "line 1: "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mix_counts c;
        struct errinfo ei = {0};
        assert_int_equal(import(rows[i].text.p, rows[i].text.n, &c, &ei), ERR_USAGE);
        assert_non_null(strstr(ei.msg, "log.csv"));
        assert_non_null(strstr(ei.msg, rows[i].says));
        mix_counts_done(&c);
    }
}

/* Nothing at all, and what holds no record, is no crash and no count. */
static void test_texts_without_a_record(void **state)
{
    (void)state;
    static const struct sv texts[] = {SV("\n"),           SV("\r\n\r\n"), SV("\xef\xbb\xbf"),           SV("\"\""),
                                      SV("\"\"\n\"\"\n"), SV("#"),        SV("action,count"),           SV("action"),
                                      SV("()"),           SV("-"),        SV("-----+-----\n(0 rows)\n")};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct mix_counts c;
        struct errinfo ei = {0};
        assert_int_equal(import(texts[i].p, texts[i].n, &c, &ei), ERR_OK);
        assert_int_equal(c.n, 0);
        mix_counts_done(&c);
    }
}

static void test_a_thousand_actions_are_no_log(void **state)
{
    (void)state;
    struct mix_counts c;
    struct errinfo ei = {0};
    struct buf text = BUF_INIT(1 << 20);
    for (int i = 0; i < 1001; i++)
        assert_int_equal(buf_appendf(&text, "name-%d,1\n", i), ERR_OK);
    assert_int_equal(import(text.data, text.len, &c, &ei), ERR_USAGE);
    assert_non_null(strstr(ei.msg, "line 1001: more than 1000 different actions"));
    mix_counts_done(&c);
    buf_done(&text);
}

static const char log_text[] =
    "file.download,600\nfile.update,200\nfile.upload,60\nfile.upload.bulk,40\nfile.delete,30\n"
    "file.rename,25\nfile.copy,20\nfolder.create,15\nfile.move,10\n"
    "share.access,7\nauth.login,90\nevil\x1b[2J,1\n"
    "total.users,12\ntotal.user_hours,50\ntotal.busiest_hour,300\n";

static void test_the_mix_reads_back_as_the_counts(void **state)
{
    (void)state;
    static const struct {
        enum drive_op op;
        double share;
    } rows[] = {{OP_DOWNLOAD, 0.60}, {OP_SAVE, 0.20}, {OP_UPLOAD, 0.10},      {OP_TRASH, 0.03}, {OP_RENAME, 0.025},
                {OP_COPY, 0.02},     {OP_MOVE, 0.01}, {OP_NEW_FOLDER, 0.015}, {OP_LIST, 0}};
    static const char *const says[] = {"1,000 actions of day.csv",
                                       "98",
                                       "auth.login",
                                       "share.access",
                                       "evil\\x1b[2J",
                                       "file.upload, file.upload.bulk",
                                       "12 users; 0.333 actions",
                                       "300 actions, 5 a minute"};
    struct mix_counts c;
    struct errinfo ei = {0};
    struct buf text = BUF_INIT(1 << 16);
    struct mix m;
    assert_int_equal(import(log_text, strlen(log_text), &c, &ei), ERR_OK);
    assert_int_equal(mix_counts_write(&c, "day.csv", &text, &ei), ERR_OK);
    assert_int_equal(mix_parse(&m, "day.mix", (struct sv){text.data, text.len}, &ei), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_float_equal(mix_share(&m, rows[i].op), rows[i].share, 1e-9);
    for (size_t i = 0; i < ARRAY_LEN(says); i++)
        assert_non_null(strstr(text.data, says[i]));
    assert_true(strstr(text.data, "auth.login") < strstr(text.data, "share.access"));
    buf_done(&text);
    mix_counts_done(&c);
}

static void test_counts_beyond_a_weight_keep_their_shares(void **state)
{
    (void)state;
    static const char huge[] = "download,600000000000\nsave,200000000000\n";
    struct mix_counts c;
    struct buf text = BUF_INIT(1 << 16);
    struct mix m;
    assert_int_equal(import(huge, strlen(huge), &c, NULL), ERR_OK);
    assert_int_equal(mix_counts_write(&c, "x", &text, NULL), ERR_OK);
    assert_int_equal(mix_parse(&m, "x", (struct sv){text.data, text.len}, NULL), ERR_OK);
    assert_float_equal(mix_share(&m, OP_DOWNLOAD), 0.75, 1e-9);
    buf_done(&text);
    mix_counts_done(&c);
}

static void test_a_log_without_an_apps_actions_makes_no_mix(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {{"auth.login,5\nshare.access,9\n", "the most frequent is share.access"}, {"#\n", "no action"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct mix_counts c;
        struct errinfo ei = {0};
        struct buf text = BUF_INIT(1 << 16);
        assert_int_equal(import(rows[i].text, strlen(rows[i].text), &c, &ei), ERR_OK);
        assert_int_equal(mix_counts_write(&c, "x", &text, &ei), ERR_USAGE);
        assert_non_null(strstr(ei.msg, rows[i].says));
        buf_done(&text);
        mix_counts_done(&c);
    }
}

static void test_a_time_cannot_end_its_literal(void **state)
{
    (void)state;
    static const struct {
        const char *time;
        enum err err;
    } rows[] = {{"2026-11-01", ERR_OK},
                {"2026-11-01T08:00:00+01:00", ERR_OK},
                {"1 Nov 2026 Europe/Paris", ERR_OK},
                {"2026'; DROP", ERR_USAGE},
                {"", ERR_USAGE},
                {"2026-11-01\n--", ERR_USAGE},
                {"'||pg_sleep(9)||'", ERR_USAGE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct mix_window since = {.since = rows[i].time}, until = {.until = rows[i].time};
        assert_int_equal(mix_query_judge(&since, NULL), rows[i].err);
        assert_int_equal(mix_query_judge(&until, NULL), rows[i].err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form_gives_the_same_counts),
        cmocka_unit_test(test_what_is_no_count_is_refused_with_its_line),
        cmocka_unit_test(test_texts_without_a_record),
        cmocka_unit_test(test_a_thousand_actions_are_no_log),
        cmocka_unit_test(test_the_mix_reads_back_as_the_counts),
        cmocka_unit_test(test_counts_beyond_a_weight_keep_their_shares),
        cmocka_unit_test(test_a_log_without_an_apps_actions_makes_no_mix),
        cmocka_unit_test(test_a_time_cannot_end_its_literal),
    };
    return cmocka_run_group_tests_name("mix import", tests, NULL, NULL);
}
