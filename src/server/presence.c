#include "server/presence.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/coro.h"
#include "store/pg.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEAT_US (3 * US_PER_S)

struct presence {
    char id[17], host[256];
    struct done wake; /* the server stops */
    struct group beater;
};

const char *presence_id(const struct server *s)
{
    return s->presence->id;
}

/* Says that we live. The row may have been taken away by a server that thought us dead. */
static MAY_YIELD enum err beat(struct server *s, struct errinfo *ei)
{
    static const char sql[] = "INSERT INTO servers (id, host, pid) VALUES ($1, $2, $3)"
                              " ON CONFLICT (id) DO UPDATE SET seen_at = now()";
    const struct presence *p = s->presence;
    char pid[24];
    const char *params[] = {p->id, p->host, pid};
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    return pg_run(s->pg, sql, 3, params, NULL, ei);
}

/* A process of this machine that is not there any more; our own number under another id is an earlier life of it (in a
 * container every first process is number 1). */
static bool gone(const struct presence *p, const char *host, int64_t pid)
{
    if (strcmp(host, p->host) != 0)
        return false;
    return pid == getpid() || (kill((pid_t)pid, 0) < 0 && errno == ESRCH);
}

static MAY_YIELD enum err bury_the_dead(struct server *s, struct errinfo *ei)
{
    struct presence *p = s->presence;
    struct pg_result *res = NULL;
    enum err e =
        pg_run(s->pg, "SELECT id, host, pid FROM servers WHERE id <> $1", 1, (const char *[]){p->id}, &res, ei);
    for (int i = 0; e == ERR_OK && i < pg_rows(res); i++) {
        const char *id = pg_str(res, i, 0);
        if (!gone(p, pg_str(res, i, 1), pg_i64(res, i, 2)))
            continue;
        LOGI("server", "process %s on this machine ended without a word; its work is taken over", pg_str(res, i, 2));
        e = pg_run(s->pg, "DELETE FROM servers WHERE id = $1", 1, &id, NULL, ei);
    }
    pg_result_free(&res);
    return e;
}

enum err presence_alone(struct server *s, bool *alone, struct errinfo *ei)
{
    static const char sql[] = "SELECT count(*) FROM servers WHERE id <> $1 AND seen_at > now() - interval '1 minute'";
    const char *id = s->presence->id;
    struct pg_result *res = NULL;
    enum err e = bury_the_dead(s, ei);
    if (e == ERR_OK)
        e = pg_run(s->pg, sql, 1, &id, &res, ei);
    if (e == ERR_OK)
        *alone = pg_i64(res, 0, 0) == 0;
    pg_result_free(&res);
    return e;
}

static void beat_in_coroutine(void *arg)
{
    struct server *s = arg;
    struct errinfo ei;
    while (!done_wait_until(s->loop, &s->presence->wake, mono_add(mono_now(), BEAT_US)))
        if (beat(s, &ei) != ERR_OK)
            LOGW("server", "cannot say that we live: %s", err_message(&ei));
}

static enum err presence_start(struct server *s, struct errinfo *ei)
{
    struct presence *p = s->presence = mem_zalloc(sizeof(*p));
    digest_random_id(p->id, sizeof(p->id) - 1);
    if (gethostname(p->host, sizeof(p->host) - 1) < 0)
        return err_sys(ei, ERR_ENV, "this machine's name cannot be read");
    enum err e = bury_the_dead(s, ei);
    if (e == ERR_OK)
        e = beat(s, ei);
    if (e == ERR_OK)
        group_spawn(s->loop, &p->beater, beat_in_coroutine, s);
    return e;
}

static void presence_stop(struct server *s)
{
    const char *id = s->presence->id;
    struct errinfo ei;
    done_set(&s->presence->wake);
    group_wait(s->loop, &s->presence->beater);
    if (pg_run(s->pg, "DELETE FROM servers WHERE id = $1", 1, &id, NULL, &ei) != ERR_OK)
        LOGD("server", "could not take leave: %s", err_message(&ei));
    MEM_FREE(s->presence);
}

const struct server_part presence_part = {"presence", presence_start, presence_stop};
