/* The server comes to rest before anything is judged: no job is queued or at work, no storage is reserved, no event
 * stream is open that was not open when the command began. A job gets time as long as it gets on, and 30 s without any
 * progress; the rest a few seconds, since the apps that caused it are gone. What then is not at rest is named: jobs
 * here, reservations by `storage`, streams by `server`. */
#include "checks/check.h"
#include "drive/schema.h"
#include "net/coro.h"

#include <inttypes.h>

#define LOOK_US     (US_PER_S / 4)
#define JOBS_US     (30 * US_PER_S)
#define RESERVED_US (5 * US_PER_S)
#define STREAMS_US  (5 * US_PER_S)

static MAY_YIELD int64_t ask(struct check_ctx *c, const char *sql, int64_t *progress)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    int64_t n = -1;
    if (pg_run(c->pg, sql, 0, NULL, &res, &ei) == ERR_OK && pg_rows(res) == 1) {
        n = pg_i64(res, 0, 0);
        *progress = pg_i64(res, 0, 1);
    }
    pg_result_free(&res);
    return n;
}

static MAY_YIELD int64_t look_at_jobs(struct check_ctx *c, int64_t *progress)
{
    static const char sql[] = "SELECT count(*), (coalesce(sum(done), 0) + count(*) FILTER (WHERE status = 'active'))"
                              "::bigint FROM jobs WHERE status IN ('created', 'active')";
    return c->pg && c->schema & SCHEMA_JOBS ? ask(c, sql, progress) : -1;
}

static MAY_YIELD int64_t look_at_reservations(struct check_ctx *c, int64_t *progress)
{
    static const char sql[] = "SELECT count(*), 0 FROM storage_reservations";
    return c->pg && c->schema & SCHEMA_RESERVATIONS ? ask(c, sql, progress) : -1;
}

static MAY_YIELD int64_t look_at_streams(struct check_ctx *c, int64_t *progress)
{
    int64_t now;
    struct errinfo ei;
    *progress = 0;
    if (!c->since || !c->since->known_streams || check_read_metric(c->cmd, CHECK_STREAMS, &now, &ei) != ERR_OK)
        return -1;
    return now > c->since->streams ? now - c->since->streams : 0;
}

/* What has to become 0, or is -1 where it cannot be told; progress changes as long as somebody is at it. */
static const struct rest {
    const char *one, *many;
    int64_t patience_us;
    MAY_YIELD int64_t (*look)(struct check_ctx *c, int64_t *progress);
} rests[CHECK_RESTS] = {
    [CHECK_REST_JOBS] = {"job queued", "jobs queued", JOBS_US, look_at_jobs},
    [CHECK_REST_RESERVED] = {"reservation", "reservations", RESERVED_US, look_at_reservations},
    [CHECK_REST_STREAMS] = {"stream left open", "streams left open", STREAMS_US, look_at_streams},
};

/* What is left when it was given up. */
static MAY_YIELD int64_t wait_for(struct check_ctx *c, const struct rest *rest)
{
    int64_t progress = 0, left = rest->look(c, &progress), least = left;
    struct mono until = mono_add(mono_now(), rest->patience_us);
    while (left > 0 && *c->cmd->interrupts < 2 && !mono_passed(until)) {
        int64_t before = progress;
        coro_sleep_until(c->cmd->loop, mono_add(mono_now(), LOOK_US));
        left = rest->look(c, &progress);
        if (left < least || progress != before)
            until = mono_add(mono_now(), rest->patience_us);
        least = left < least ? left : least;
    }
    return left;
}

void check_drain_wait(struct check_ctx *c)
{
    struct mono from = mono_now();
    for (int i = 0; i < CHECK_RESTS; i++)
        c->left[i] = wait_for(c, &rests[i]);
    c->waited_us = mono_diff(mono_now(), from);
}

static MAY_YIELD void name_jobs(struct check_ctx *c, struct check_result *r)
{
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (pg_run(c->pg,
               "SELECT id, kind, status, to_jsonb(j)->>'created_at' FROM jobs j WHERE status IN ('created', 'active')"
               " ORDER BY id LIMIT 50",
               0, NULL, &res, &ei) == ERR_OK)
        for (int i = 0; i < pg_rows(res); i++)
            check_detail(r,
                         "job %s (%s, asked for at %s) is '%s' and gets no further; look: SELECT * FROM jobs WHERE id ="
                         " '%s'",
                         pg_str(res, i, 0), pg_str(res, i, 1), pg_str(res, i, 3), pg_str(res, i, 2), pg_str(res, i, 0));
    pg_result_free(&res);
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    char line[160] = "", waited[32];
    size_t at = 0;
    for (int i = 0; i < CHECK_RESTS; i++) {
        if (c->left[i] < 0)
            continue;
        r->examined++;
        at += (size_t)snprintf(line + at, sizeof(line) - at, "%" PRId64 " %s, ", c->left[i],
                               c->left[i] == 1 ? rests[i].one : rests[i].many);
    }
    if (r->examined == 0) {
        check_not_run(r, "neither the database nor the server says whether it is at rest");
        return;
    }
    if (c->left[CHECK_REST_JOBS] > 0)
        name_jobs(c, r);
    check_summary(r, "%safter %s", line, str_duration(waited, sizeof(waited), c->waited_us));
}

const struct check check_drain = {"drain", "the server came to rest before it was judged: no job is queued or at work",
                                  run};
