#include "server/events/presence.h"

#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/coro.h"
#include "server/objects/sweeper.h"
#include "store/pg.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BEAT_US    (3 * US_PER_S)
#define LOOK_BEATS 4 /* so often it is looked for who died */

struct presence {
    char id[17];
    char host[128]; /* this run of this machine, and the space that process numbers belong to */
    int64_t pid, born;
    struct done wake; /* the server stops */
    struct group beater;
};

/* When a process was born, in clock ticks since the machine started. False when it is not there; one that has ended and
 * that nobody has taken notice of counts as gone. */
static bool process_born(int64_t pid, int64_t *born)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *name_end = strrchr(text, ')'); /* the program's name may hold anything */
    struct sv rest = sv_trim(sv_of(name_end ? name_end + 1 : "")), field = {NULL, 0}, state = {NULL, 0};
    for (int i = 3; i <= 22 && sv_split(&rest, ' ', &field); i++) /* as proc(5) numbers them */
        if (i == 3)
            state = field;
    return sv_to_i64(field, born) && !sv_eq_cstr(state, "Z") && !sv_eq_cstr(state, "X");
}

static void know_this_machine(struct presence *p)
{
    char boot[64] = "", space[48] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f) {
        if (!fgets(boot, sizeof(boot), f))
            boot[0] = '\0';
        fclose(f);
    }
    boot[strcspn(boot, "\n")] = '\0';
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    space[n > 0 ? n : 0] = '\0';
    snprintf(p->host, sizeof(p->host), "%s %s", boot, space);
    p->pid = getpid();
    if (!process_born(p->pid, &p->born) || !boot[0] || !space[0])
        snprintf(p->host, sizeof(p->host), "unknown %s", p->id); /* then silence alone tells */
}

const char *presence_id(const struct server *s)
{
    return s->presence->id;
}

/* Says that we live. The row may have been taken away by a server that thought us dead. */
static MAY_YIELD enum err beat(struct server *s, struct errinfo *ei)
{
    static const char sql[] = "INSERT INTO servers (id, host, pid, born) VALUES ($1, $2, $3, $4)"
                              " ON CONFLICT (id) DO UPDATE SET seen_at = now()";
    const struct presence *p = s->presence;
    char pid[24], born[24];
    const char *params[] = {p->id, p->host, pid, born};
    snprintf(pid, sizeof(pid), "%lld", (long long)p->pid);
    snprintf(born, sizeof(born), "%lld", (long long)p->born);
    return pg_run(s->pg, sql, 4, params, NULL, ei);
}

/* A process of this machine that is not there any more, or whose number another one has now. */
static bool gone(const struct presence *p, const char *host, int64_t pid, int64_t born)
{
    int64_t now = 0;
    return strcmp(host, p->host) == 0 && (!process_born(pid, &now) || now != born);
}

/* *any: somebody has died since this was last asked by any of us. */
static MAY_YIELD enum err bury_the_dead(struct server *s, bool *any, struct errinfo *ei)
{
    static const char silent[] =
        "DELETE FROM servers WHERE id <> $1 AND seen_at < now() - interval '1 minute' RETURNING id";
    struct presence *p = s->presence;
    struct pg_result *res = NULL, *buried = NULL;
    const char *own[] = {p->id};
    enum err e = pg_run(s->pg, silent, 1, own, &buried, ei);
    if (e == ERR_OK)
        e = pg_run(s->pg, "SELECT id, host, pid, born FROM servers WHERE id <> $1", 1, own, &res, ei);
    *any = e == ERR_OK && pg_rows(buried) > 0;
    for (int i = 0; e == ERR_OK && i < pg_rows(res); i++) {
        const char *id = pg_str(res, i, 0);
        if (!gone(p, pg_str(res, i, 1), pg_i64(res, i, 2), pg_i64(res, i, 3)))
            continue;
        LOGI("server", "process %s on this machine ended without a word; its work is taken over", pg_str(res, i, 2));
        e = pg_run(s->pg, "DELETE FROM servers WHERE id = $1", 1, &id, NULL, ei);
        *any = true;
    }
    pg_result_free(&res);
    pg_result_free(&buried);
    return e;
}

enum err presence_others(struct server *s, struct buf *marks, struct errinfo *ei)
{
    const char *id = s->presence->id;
    struct pg_result *res = NULL;
    bool any;
    enum err e = bury_the_dead(s, &any, ei);
    if (e == ERR_OK)
        e = pg_run(s->pg, "SELECT id FROM servers WHERE id <> $1", 1, &id, &res, ei);
    for (int i = 0; e == ERR_OK && i < pg_rows(res); i++)
        if (strlen(pg_str(res, i, 0)) >= PRESENCE_MARK_LEN)
            e = buf_append(marks, pg_str(res, i, 0), PRESENCE_MARK_LEN);
    pg_result_free(&res);
    return e;
}

static void beat_in_coroutine(void *arg)
{
    struct server *s = arg;
    struct errinfo ei;
    bool any = false;
    for (unsigned n = 1; !done_wait_until(s->loop, &s->presence->wake, mono_add(mono_now(), BEAT_US)); n++) {
        enum err e = beat(s, &ei);
        if (e == ERR_OK && n % LOOK_BEATS == 0)
            e = bury_the_dead(s, &any, &ei);
        if (e != ERR_OK)
            LOGW("server", "cannot say that we live: %s", err_message(&ei));
        if (any)
            sweeper_look(s);
        any = false;
    }
}

static MAY_YIELD enum err presence_start(struct server *s, struct errinfo *ei)
{
    struct presence *p = s->presence = mem_zalloc(sizeof(*p));
    digest_random_id(p->id, sizeof(p->id) - 1);
    know_this_machine(p);
    bool any;
    enum err e = bury_the_dead(s, &any, ei);
    if (e == ERR_OK)
        e = beat(s, ei);
    if (e == ERR_OK)
        group_spawn(s->loop, &p->beater, beat_in_coroutine, s);
    else
        MEM_FREE(s->presence);
    return e;
}

static MAY_YIELD void presence_stop(struct server *s)
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
