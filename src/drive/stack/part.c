/* What can be done to one part. Filling is the doubtful one: a disk is not filled, for that would hit everything on
 * this machine, and mounting a small one takes root. The kernel keeps the store's processes from making a file longer
 * than a few KiB instead: small objects fit in, the others break off in the middle, as on a disk that is almost full.
 */
#include "drive/stack/part.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/stack/docker.h"
#include "drive/stack/env.h"
#include "drive/stack/fixture.h"
#include "drive/stack/impl.h"
#include "drive/stack/native.h"
#include "drive/stack/process.h"
#include "drive/stack/state.h"
#include "store/pg.h"
#include <signal.h>

#define KILL_WAIT_US    (10 * US_PER_S)
#define LOOK_EVERY_US   (50 * US_PER_MS)
#define FILE_MOST       4096
#define CONNECTIONS_MAX 10000

static MAY_YIELD enum err end_part(struct stack *s, const char *name, const char *verb, int signo, struct errinfo *ei)
{
    struct part *p = NULL;
    enum err err = stack_find_part(s, name, &p, ei);
    if (err)
        return err;
    if (s->kind == KIND_DOCKER)
        return stack_docker_part(s, verb, p, ei);
    err = part_end(p, signo ? signo : p->ops->stop_signal, signo ? KILL_WAIT_US : p->ops->stop_grace_s * US_PER_S, ei);
    return err ? err : stack_state_save(s, ei);
}

enum err stack_part_kill(struct stack *s, const char *part, struct errinfo *ei)
{
    return end_part(s, part, "kill", SIGKILL, ei);
}

enum err stack_part_stop(struct stack *s, const char *part, struct errinfo *ei)
{
    return end_part(s, part, "stop", 0, ei);
}

enum err stack_part_pause(struct stack *s, const char *part, bool pause, struct errinfo *ei)
{
    struct part *p = NULL;
    enum err err = stack_find_part(s, part, &p, ei);
    if (err)
        return err;
    if (s->kind == KIND_DOCKER)
        return stack_docker_part(s, pause ? "pause" : "unpause", p, ei);
    if (!part_alive(p))
        return err_set(ei, ERR_ENV, "%s is down", p->ops->name);
    err = part_halt(p, pause, ei);
    return err || pause || p != &s->parts[PART_STORE] ? err : part_limit_files(p, UINT64_MAX, ei);
}

enum err stack_part_start(struct stack *s, const char *part, struct errinfo *ei)
{
    struct part *p = NULL;
    enum err err = stack_find_part(s, part, &p, ei);
    if (err)
        return err;
    if (p == &s->parts[PART_SERVER] && (err = fixture_judge_whole(s, ei)))
        return err;
    p->wanted = true;
    if (s->kind == KIND_DOCKER)
        return stack_docker_part(s, "start", p, ei);
    if (part_alive(p))
        return ERR_OK;
    err = stack_part_bring_up(p, ei);
    if (err && err != ERR_INTERRUPTED)
        stack_show_log(p);
    return err;
}

/* ---- filling ---- */

/* Whether there is time left. */
static MAY_YIELD bool hold_on(struct stack *s, struct mono until)
{
    if (s->cancelled || mono_passed(until))
        return false;
    struct mono next = mono_add(mono_now(), LOOK_EVERY_US);
    coro_sleep_until(s->loop, mono_earlier(next, until));
    return true;
}

static MAY_YIELD enum err fill_disk(struct part *p, struct mono until, struct errinfo *ei)
{
    enum err err = part_limit_files(p, FILE_MOST, ei);
    if (err)
        return err;
    stack_say(p->stack, "%-9s its disk is full", p->ops->name);
    while (hold_on(p->stack, until))
        ;
    return part_alive(p) ? part_limit_files(p, UINT64_MAX, ei) : err_set(ei, ERR_ENV, "the store has ended meanwhile");
}

/* Takes connections until there are no more, and those that others let go. */
static MAY_YIELD enum err take_connections(struct part *p, struct mono until, struct errinfo *ei)
{
    struct stack *s = p->stack;
    struct arena *mem = arena_new(1024);
    struct pg_pool *pool = NULL;
    struct pg **held = mem_alloc(CONNECTIONS_MAX * sizeof(*held));
    struct errinfo full = {0};
    size_t n = 0;
    bool told = false;
    enum err err = pg_pool_new(&pool, s->loop, stack_database_url(s, mem, "postgres"), CONNECTIONS_MAX, ei);
    while (!err && !s->cancelled && !mono_passed(until) && n < CONNECTIONS_MAX) {
        if (pg_take(pool, &held[n], &full) == ERR_OK) {
            n++;
            continue;
        }
        if (n > 0 && !told)
            stack_say(s, "%-9s gives no more connections: %zu are taken", p->ops->name, n);
        told = told || n > 0;
        hold_on(s, until);
    }
    if (!err && n == 0 && !s->cancelled)
        err = err_set(ei, ERR_ENV, "%s", err_message(&full));
    while (n > 0)
        pg_give(&held[--n]);
    pg_pool_free(&pool);
    mem_free(held);
    arena_free(&mem);
    return err;
}

enum err stack_part_fill(struct stack *s, const char *part, int64_t hold_us, struct errinfo *ei)
{
    struct part *p = NULL;
    struct mono until = mono_add(mono_now(), hold_us);
    enum err err = stack_find_part(s, part, &p, ei);
    if (err)
        return err;
    bool disk = p == &s->parts[PART_STORE];
    if (!disk && p != &s->parts[PART_POSTGRES])
        return err_set(ei, ERR_USAGE, "only the store (its disk) and postgres (its connections) can be filled");
    if (s->kind == KIND_DOCKER)
        return err_set(ei, ERR_USAGE, "containers cannot be filled: start the stack with --native");
    if (!part_alive(p))
        return err_set(ei, ERR_ENV, "%s is down", p->ops->name);
    return disk ? fill_disk(p, until, ei) : take_connections(p, until, ei);
}
