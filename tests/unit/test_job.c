/* Waiting for a server's job, and removing for good, against a dialect that answers from a script: which answers go on,
 * which end the wait, and what is said then. No time passes here but the pauses, which are only counted. */
#include "drive/api/dialect.h"
#include "drive/api/job.h"
#include "unit.h"

#include <string.h>

#define STEPS_MAX 8

/* An answer: of HTTP 200 the job is done, of 500 it has failed, 0 is none; code may be NULL. */
struct answer {
    int status;
    const char *code;
};
struct maker {
    struct api api;
    const struct answer *answers;  /* the last one for ever */
    unsigned asked, pauses, again; /* again: how many answers are to be asked for once more */
    unsigned stop_after;           /* pauses; 0: never */
    bool stopped;
};

static enum err answer(struct api *a, struct api_job *job, struct api_result *r)
{
    struct maker *m = container_of(a, struct maker, api);
    struct answer x = *m->answers;
    if (m->answers[1].status || m->answers[1].code)
        m->answers++;
    m->asked++;
    api_result_init(r);
    r->status = x.status;
    r->outcome = x.status == 200 || x.status == 202 ? OUT_OK : x.status == 0 ? OUT_TRANSPORT : OUT_SERVER;
    r->sent = r->done = mono_now();
    snprintf(r->code, sizeof(r->code), "%s", x.code ? x.code : "");
    snprintf(r->reason, sizeof(r->reason), "answer %d", x.status);
    job->done = x.status == 200 || x.status == 500;
    job->failed = x.status == 500;
    job->started = job->started || x.status != 202;
    return ERR_OK;
}

static enum err poll(struct api *a, struct api_job *job, struct arena *mem, struct api_result *r)
{
    (void)mem;
    return answer(a, job, r);
}

/* A removal becomes a job when its answer is 202. */
static enum err remove_items(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    (void)ids, (void)n;
    answer(a, job, r);
    if (r->status == 202)
        snprintf(job->id, sizeof(job->id), "j1");
    else
        *job = (struct api_job){0};
    return ERR_OK;
}

static const struct api_dialect scripted = {.job_poll = poll, .trash = remove_items, .purge = remove_items};

static struct api *begin(void *arg)
{
    struct maker *m = arg;
    return m->stopped ? NULL : &m->api;
}

static bool again(void *arg, enum drive_op op, const struct api_job *job, const struct api_result *r)
{
    struct maker *m = arg;
    (void)op, (void)job, (void)r;
    return m->again > 0 && m->again--;
}

static bool count_pause(void *arg, int64_t us)
{
    struct maker *m = arg;
    assert_true(us > 0 && us <= 500 * US_PER_MS);
    return ++m->pauses != m->stop_after;
}

static struct job_caller caller_of(struct maker *m, const struct answer *answers)
{
    m->api.dialect = &scripted;
    m->answers = answers;
    return (struct job_caller){.begin = begin, .again = again, .pause = count_pause, .arg = m};
}

static void test_fates(void **state)
{
    static const struct {
        struct answer answers[STEPS_MAX];
        int64_t limit_us, away_us;
        unsigned again, stop_after;
        enum job_fate fate;
        unsigned asked;
        const char *why;
    } rows[] = {
        {{{202, 0}, {202, 0}, {200, 0}}, 0, 0, 0, 0, JOB_DONE, 3, ""},
        {{{429, 0}, {200, 0}}, 0, 0, 1, 0, JOB_DONE, 2, ""},
        {{{202, 0}, {500, 0}}, 0, 0, 0, 0, JOB_FAILED, 2, "its job failed: answer 500"},
        {{{404, 0}},
         0,
         US_PER_S,
         0,
         0,
         JOB_LOST,
         1,
         "its job cannot be asked for any more, outcome unknown: answer 404"},
        {{{503, 0}, {0, "X"}, {200, 0}}, 0, 60 * US_PER_S, 0, 0, JOB_DONE, 3, ""},
        {{{503, 0}, {200, 0}},
         0,
         0,
         0,
         0,
         JOB_AWAY,
         1,
         "the server was away for too long, outcome unknown: answer 503"},
        {{{202, 0}}, 0, 0, 0, 3, JOB_CUT, 2, "cut before its job had ended"},
        {{{202, 0}}, 1, 0, 0, 0, JOB_LATE, 0, "timed out, outcome unknown"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct maker m = {.again = rows[i].again, .stop_after = rows[i].stop_after};
        struct job_caller c = caller_of(&m, rows[i].answers);
        struct arena *mem = arena_new(256);
        struct api_job job = {.id = "j1"};
        struct job_end end;
        c.limit_us = rows[i].limit_us;
        c.away_us = rows[i].away_us;
        print_message("# row %zu\n", i);
        assert_int_equal(job_wait(&c, &job, mem, &end), rows[i].fate);
        assert_int_equal(end.fate, rows[i].fate);
        if (!rows[i].limit_us) /* else how often that fits into the time is the machine's business */
            assert_int_equal(m.asked, rows[i].asked);
        assert_string_equal(end.why, rows[i].why);
        arena_free(&mem);
    }
}

/* An answer that was to be asked for again costs no pause: the caller has waited. */
static void test_started_and_pauses(void **state)
{
    static const struct answer answers[] = {{202, 0}, {202, 0}, {200, 0}, {0, 0}};
    struct maker m = {.again = 1};
    struct job_caller c = caller_of(&m, answers);
    struct arena *mem = arena_new(256);
    struct api_job job = {.id = "j1"};
    struct job_end end;
    (void)state;
    assert_int_equal(job_wait(&c, &job, mem, &end), JOB_DONE);
    assert_int_equal(m.asked, 3);
    assert_int_equal(m.pauses, 2);
    assert_true(end.started.us > 0 && end.told.us > 0);
    arena_free(&mem);
}

static void test_removal(void **state)
{
    static const struct {
        struct answer answers[STEPS_MAX]; /* of trash, its job, purge, its job */
        int64_t away_us;
        bool stopped, ok;
        unsigned asked;
        const char *why;
    } rows[] = {
        {{{200, 0}, {200, 0}}, 0, false, true, 2, NULL},
        {{{202, 0}, {202, 0}, {200, 0}, {202, 0}, {200, 0}}, 0, false, true, 5, NULL},
        {{{404, 0}, {404, 0}}, 0, false, true, 2, NULL},                  /* gone already */
        {{{200, 0}, {404, API_CODE_ABSENT}}, 0, false, true, 2, NULL},    /* no trash: gone at once */
        {{{404, API_CODE_ABSENT}}, 0, false, false, 1, "404 answer 404"}, /* cannot trash */
        {{{403, 0}}, 60 * US_PER_S, false, false, 1, "403 answer 403"},
        {{{503, 0}, {0, "X"}, {200, 0}, {200, 0}}, 60 * US_PER_S, false, true, 4, NULL},
        {{{503, 0}, {200, 0}}, 0, false, false, 1, "503 answer 503"},
        {{{0, "X"}, {200, 0}}, 0, false, false, 1, "answer 0"},
        {{{202, 0}, {500, 0}}, 0, false, false, 2, "its job failed: answer 500"},
        {{{200, 0}}, 0, true, false, 0, "the work was stopped"},
    };
    static const char *const ids[] = {"a", "b"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct maker m = {.stopped = rows[i].stopped};
        struct job_caller c = caller_of(&m, rows[i].answers);
        char why[200] = "";
        c.away_us = rows[i].away_us;
        print_message("# row %zu\n", i);
        assert_int_equal(job_remove(&c, ids, 2, why, sizeof(why)), rows[i].ok);
        assert_int_equal(m.asked, rows[i].asked);
        if (rows[i].why)
            assert_string_equal(why, rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fates),
        cmocka_unit_test(test_started_and_pauses),
        cmocka_unit_test(test_removal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
