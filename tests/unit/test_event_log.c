/* What apps heard, arranged for the check of events: streams across reconnects, what came twice, what was published. */
#include "checks/evidence/event_log.h"
#include "unit.h"

#define S US_PER_S

static struct journal_note heard(uint32_t app, int64_t at_s, const char *file, uint64_t number)
{
    return (struct journal_note){.op = OP_STREAM,
                                 .flags = LEDGER_EVENT,
                                 .app = app,
                                 .login = app,
                                 .at_us = at_s * S,
                                 .file_id = file,
                                 .status = OP_SAVE,
                                 .key = number * 7919,
                                 .size = number};
}

static struct journal_note stream(uint32_t app, int64_t at_s, enum ledger_stream what, uint64_t bytes_per_s)
{
    return (struct journal_note){.op = OP_STREAM,
                                 .flags = (uint8_t)what,
                                 .app = app,
                                 .login = app,
                                 .at_us = at_s * S,
                                 .file_id = "",
                                 .size = bytes_per_s};
}

static struct event_log *log_of(struct journal_note *notes, size_t n, uint32_t apps, uint32_t *accounts)
{
    const struct journal j = {.notes = notes, .n_notes = n, .n_apps = apps, .account_of = accounts, .n_logins = apps};
    return event_log_new(&j);
}

static void streams_across_reconnects(void **state)
{
    (void)state;
    struct journal_note notes[] = {
        stream(0, 10, LEDGER_STREAM_UP, 0),   stream(1, 11, LEDGER_STREAM_UP, 0),   stream(2, 12, LEDGER_STREAM_UP, 0),
        stream(3, 13, LEDGER_STREAM_UP, 0),   stream(0, 20, LEDGER_STREAM_DOWN, 0), stream(0, 25, LEDGER_STREAM_UP, 0),
        stream(1, 30, LEDGER_STREAM_DOWN, 0), stream(3, 40, LEDGER_RESYNC, 0),      stream(0, 60, LEDGER_STREAM_END, 0),
        stream(3, 60, LEDGER_STREAM_END, 0),
    };
    static const struct {
        int64_t up_s, until_s, resync_s;
    } rows[] = {
        {10, -1, -1}, /* closed when all was quiet: everything is due, the gap included */
        {11, 25, -1}, /* never back: what was answered long enough before */
        {12, 55, -1}, /* its end is not told, the run was killed: likewise, by the last that is known */
        {13, -1, 40},
    };
    uint32_t accounts[4] = {0};
    struct event_log *l = log_of(notes, ARRAY_LEN(notes), 4, accounts);
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct event_stream *s = event_log_stream(l, i);
        assert_int_equal(s->first_up_us, rows[i].up_s * S);
        assert_int_equal(s->until_us, rows[i].until_s < 0 ? INT64_MAX : rows[i].until_s * S);
        assert_int_equal(s->resync_us, rows[i].resync_s < 0 ? -1 : rows[i].resync_s * S);
    }
    event_log_free(&l);
    assert_null(l);
}

static void what_came_twice_and_what_was_published(void **state)
{
    (void)state;
    struct journal_note notes[] = {
        stream(0, 1, LEDGER_STREAM_UP, 0),
        stream(1, 1, LEDGER_STREAM_UP, 0),
        stream(2, 1, LEDGER_STREAM_UP, 0),
        heard(0, 2, "f", 6), /* ahead of 5 */
        heard(1, 2, "f", 5),
        heard(0, 3, "f", 5),
        heard(1, 3, "f", 5), /* twice */
        heard(2, 3, "f", 9), /* another account */
        heard(1, 4, "g", 7),
    };
    uint32_t accounts[] = {0, 0, 1};
    struct event_log *l = log_of(notes, ARRAY_LEN(notes), 3, accounts);
    const struct event *const *first;
    assert_int_equal(l->n, 6);
    for (size_t i = 0; i < l->n; i++)
        assert_int_equal(l->events[i].repeated, i == 3);

    assert_int_equal(event_log_published(l, 0, "f", OP_SAVE, &first), 2);
    assert_int_equal(first[0]->note->size, 5); /* by number, not by arrival */
    assert_int_equal(first[0]->note->app, 1);  /* as the first heard it */
    assert_int_equal(first[1]->note->size, 6);
    assert_non_null(event_log_find(l, 0, first[0]));
    assert_non_null(event_log_find(l, 0, first[1]));
    assert_null(event_log_find(l, 1, first[1]));
    assert_int_equal(event_log_published(l, 1, "f", OP_SAVE, &first), 1);
    assert_int_equal(event_log_published(l, 0, "f", OP_RENAME, &first), 0);
    assert_int_equal(event_log_published(l, 0, "none", OP_SAVE, &first), 0);
    assert_int_equal(event_log_published(l, 1, "g", OP_SAVE, &first), 0);
    event_log_free(&l);
}

static void slow_readers_owe_what_came_before_their_last(void **state)
{
    (void)state;
    struct journal_note notes[] = {
        stream(0, 1, LEDGER_STREAM_UP, 0),
        stream(1, 1, LEDGER_STREAM_UP, 64),
        stream(2, 1, LEDGER_STREAM_UP, 64),
        heard(0, 20, "f", 1),
        heard(0, 30, "f", 2),
        heard(1, 50, "f", 1),
        stream(0, 60, LEDGER_STREAM_END, 0),
        stream(1, 60, LEDGER_STREAM_END, 64),
        stream(2, 60, LEDGER_STREAM_END, 64),
    };
    uint32_t accounts[3] = {0};
    struct event_log *l = log_of(notes, ARRAY_LEN(notes), 3, accounts);
    assert_true(event_log_stream(l, 1)->slow);
    assert_int_equal(event_log_stream(l, 1)->until_us, 15 * S);
    assert_int_equal(event_log_stream(l, 2)->until_us, -1); /* it has read nothing: it owes nothing */
    assert_int_equal(event_log_stream(l, 0)->until_us, INT64_MAX);
    event_log_free(&l);
}

static void nothing_at_all(void **state)
{
    (void)state;
    struct event_log *l = log_of(NULL, 0, 0, NULL);
    const struct event *const *first;
    assert_int_equal(l->n, 0);
    assert_int_equal(event_log_published(l, 0, "f", OP_SAVE, &first), 0);
    event_log_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_across_reconnects),
        cmocka_unit_test(what_came_twice_and_what_was_published),
        cmocka_unit_test(slow_readers_owe_what_came_before_their_last),
        cmocka_unit_test(nothing_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
