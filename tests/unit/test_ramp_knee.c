#include "sim/ramp/knee.h"
#include "unit.h"
#include <string.h>

#define MOST 8
struct row {
    const char *what;
    struct knee_step steps[MOST];
    double link;
    enum knee_state state;
    double at;
    unsigned on, off, recommended, highest;
};
#define STEP(sessions, rate)                                                                                           \
    {                                                                                                                  \
        sessions, rate, 0, -1, -1                                                                                      \
    }

/* 50 MB each over a gigabit link of 110 MB/s: the bound of the p95 is N x 50 / 110 s. */
#define SHARED(sessions, rate, p95)                                                                                    \
    {                                                                                                                  \
        sessions, rate, 0, p95, (sessions)*50 / 110.0                                                                  \
    }

static const struct row rows[] = {
    {"the lines cross at 4.2",
     {STEP(1, 1), STEP(2, 2), STEP(4, 3.9), STEP(8, 4.2), STEP(16, 4.1)},
     0,
     KNEE_FOUND,
     4.2,
     4,
     8,
     2,
     16},
    {"in any order",
     {STEP(16, 4.1), STEP(8, 4.2), STEP(1, 1), STEP(4, 3.9), STEP(2, 2)},
     0,
     KNEE_FOUND,
     4.2,
     4,
     8,
     2,
     16},
    {"not beyond the first step off track",
     {STEP(10, 10), STEP(20, 17.9), STEP(40, 30)},
     0,
     KNEE_FOUND,
     20,
     10,
     20,
     14,
     40},
    {"not below the last one on track",
     {STEP(100, 100), STEP(200, 181), STEP(300, 150)},
     0,
     KNEE_FOUND,
     200,
     200,
     300,
     140,
     300},
    {"every step on track", {STEP(25, 50), STEP(50, 99), STEP(100, 181)}, 0, KNEE_NONE, 0, 100, 0, 0, 100},
    {"the first step is the end of it", {STEP(25, 50), STEP(50, 51), STEP(100, 49)}, 0, KNEE_BELOW, 25, 25, 50, 0, 100},
    {"a step that was ended early",
     {STEP(50, 50), STEP(100, 100), STEP(200, -1)},
     0,
     KNEE_FOUND,
     100,
     100,
     200,
     70,
     100},
    {"one step", {STEP(50, 50)}, 0, KNEE_UNKNOWN, 0, 0, 0, 0, 50},
    {"chance, not the server: 24 acts, then 40",
     {{10, 12, 24, -1, -1}, {20, 20, 40, -1, -1}},
     0,
     KNEE_NONE,
     0,
     20,
     0,
     0,
     20},
    {"no chance among thousands",
     {{10, 12, 2400, -1, -1}, {20, 20, 4000, -1, -1}},
     0,
     KNEE_FOUND,
     16.67,
     10,
     20,
     11,
     20},
    {"no work", {STEP(50, 0), STEP(100, 10)}, 0, KNEE_UNKNOWN, 0, 0, 0, 0, 100},
    {"nothing", {{0}}, 0, KNEE_UNKNOWN, 0, 0, 0, 0, 0},
    {"sessions let in: a limit of 150",
     {STEP(50, 50), STEP(100, 100), STEP(200, 150)},
     0,
     KNEE_FOUND,
     150,
     100,
     200,
     105,
     200},
    {"the source document's ramp",
     {SHARED(25, 106, 11.8), SHARED(50, 107, 23.5), SHARED(100, 104, 48), SHARED(200, 88, 114), SHARED(300, 70, 214)},
     110,
     KNEE_FOUND,
     150,
     100,
     200,
     105,
     300},
    {"as much work, far later", {SHARED(10, 109, 4.6), SHARED(20, 109, 14)}, 110, KNEE_FOUND, 15, 10, 20, 10, 20},
    {"a link that the first step cannot fill yet",
     {SHARED(1, 30, 1.7), SHARED(2, 60, 1.7), SHARED(4, 108, 1.9)},
     110,
     KNEE_NONE,
     0,
     4,
     0,
     0,
     4},
    {"a first step that does not fill the link says nothing of it",
     {SHARED(10, 60, 9), SHARED(20, 100, 9.5), SHARED(40, 109, 60)},
     110,
     KNEE_FOUND,
     30,
     20,
     40,
     21,
     40},
};

static size_t count_steps(const struct row *r)
{
    size_t n = 0;
    while (n < MOST && r->steps[n].sessions)
        n++;
    return n;
}

static void find(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct knee k = knee_find(r->steps, count_steps(r), r->link);
        if (k.state != r->state || k.on != r->on || k.off != r->off || k.recommended != r->recommended)
            print_message("%s: state %d, on %u, off %u, recommended %u\n", r->what, k.state, k.on, k.off,
                          k.recommended);
        assert_int_equal(k.state, r->state);
        assert_int_equal(k.on, r->on);
        assert_int_equal(k.off, r->off);
        assert_int_equal(k.recommended, r->recommended);
        assert_int_equal(k.highest, r->highest);
        assert_true(k.at > r->at - 0.01 && k.at < r->at + 0.01);
        if (k.on)
            assert_int_equal(r->steps[k.on_row].sessions, k.on);
        if (k.off)
            assert_int_equal(r->steps[k.off_row].sessions, k.off);
    }
}

static void texts(void **state)
{
    (void)state;
    static const struct {
        struct knee k;
        const char *want;
    } says[] = {
        {{.state = KNEE_FOUND, .at = 150, .on = 100, .off = 200}, "about 150 sessions: 100 are on track, 200 are not"},
        {{.state = KNEE_NONE, .highest = 400}, "none up to 400 sessions, the most that were held"},
        {{.state = KNEE_BELOW, .at = 25}, "at or below 25 sessions, the first step: begin with fewer"},
    };
    char text[160];
    for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
        assert_string_equal(knee_text(&says[i].k, text, sizeof(text)), says[i].want);
    struct knee unknown = knee_find(NULL, 0, 0);
    assert_non_null(strstr(knee_text(&unknown, text, sizeof(text)), "not known"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(find), cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
