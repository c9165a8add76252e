/* The stack as containers of docker-compose.yml, by the command line of Docker. Ports, secrets and the project's name
 * are ours and travel in the environment, so that several stacks can stand side by side and the exports look the same.
 */
#include "drive/stack/docker.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/stack/env.h"
#include "drive/stack/impl.h"
#include "drive/stack/ports.h"
#include "drive/stack/state.h"
#include "net/guard.h"
#include "net/httpc.h"
#include "net/work.h"
#include "store/kv.h"
#include "store/pg.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_ARGS        32
#define ASK_LIMIT_US    (10 * US_PER_S)
#define UP_LIMIT_US     (1800 * US_PER_S) /* images are pulled and ours is built */
#define ANSWER_LIMIT_US (120 * US_PER_S)
#define LOOK_EVERY_US   (100 * US_PER_MS)
#define TAIL_LINES      15

enum err stack_docker_judge(struct errinfo *ei)
{
    static const struct http_url_scheme remote[] = {
        {"tcp", 2375}, {"ssh", 22}, {"http", 80}, {"https", 443}, {NULL, 0}};
    const char *engine = getenv("DOCKER_HOST");
    struct http_url u = {0};
    if (!engine || !*engine || sv_starts(sv_of(engine), SV("unix://")))
        return ERR_OK;
    enum err err = http_url_parse_of(engine, remote, &u, ei);
    if (!err)
        err = guard_judge(u.host, ei);
    http_url_done(&u);
    return err;
}

/* Only a stack has a place for logs; a question may come without one. */
static const char *log_file(struct stack *s)
{
    const char *logs = arena_printf(s->mem, "%s/logs", s->home);
    return access(logs, W_OK) == 0 ? arena_printf(s->mem, "%s/docker.log", logs) : "/dev/null";
}

static MAY_YIELD enum err run_tool(struct stack *s, const char *const *argv, const char *const *env, const char *log,
                                   int64_t limit_us, struct errinfo *ei)
{
    struct proc_spec spec = {.argv = argv, .env = env, .cwd = s->dir, .log = log, .dies_with_us = true};
    int status = 0;
    enum err err = stack_docker_judge(ei);
    if (!err)
        err = proc_run(s->loop, &spec, mono_add(mono_now(), limit_us), &s->tools[PART_COUNT], &status, ei);
    if (!err && s->cancelled)
        err = err_set(ei, ERR_INTERRUPTED, "interrupted");
    if (!err && status != 0)
        err = err_set(ei, ERR_ENV, "%s %s failed with status %d", argv[0], argv[1], status);
    return err;
}

/* In the working folder, or in the sources that this program was built from. */
const char *stack_docker_file(struct stack *s)
{
    const char *here = arena_printf(s->mem, "%s/docker-compose.yml", s->dir);
    char exe[4096];
    struct proc us = {.pid = getpid()};
    if (access(here, R_OK) == 0)
        return here;
    if (!proc_exe(&us, exe, sizeof exe))
        return NULL;
    for (int up = 0; up < 3; up++) { /* build/release/sim.bin */
        char *slash = strrchr(exe, '/');
        if (!slash)
            return NULL;
        *slash = '\0';
    }
    const char *there = arena_printf(s->mem, "%s/docker-compose.yml", exe);
    return access(there, R_OK) == 0 ? there : NULL;
}

/* The plug-in where it is installed, else the program of old; 0 when there is neither. */
static MAY_YIELD size_t compose_program(struct stack *s, const char **argv)
{
    static const char *const plugin[] = {"docker", "compose", "version", NULL};
    char path[512];
    if (run_tool(s, plugin, NULL, log_file(s), ASK_LIMIT_US, NULL) == ERR_OK) {
        argv[0] = "docker";
        argv[1] = "compose";
        return 2;
    }
    argv[0] = "docker-compose";
    return proc_which(argv[0], NULL, path, sizeof path) ? 1 : 0;
}

bool stack_docker_answers(struct stack *s)
{
    static const char *const info[] = {"docker", "info", "--format", "{{.ServerVersion}}", NULL};
    const char *compose[2];
    return run_tool(s, info, NULL, log_file(s), ASK_LIMIT_US, NULL) == ERR_OK && compose_program(s, compose) > 0;
}

static const char **compose_env(struct stack *s)
{
    const char *env[] = {
        arena_printf(s->mem, "DRIVESIM_PASSWORD=%s", s->password),
        arena_printf(s->mem, "DRIVESIM_S3_SECRET=%s", s->s3_secret),
        arena_printf(s->mem, "DRIVESIM_JWT_SECRET=%s", s->jwt_secret),
        arena_printf(s->mem, "DRIVESIM_FILE_KEY=%s", s->file_key),
        arena_printf(s->mem, "DRIVESIM_POSTGRES_PORT=%d", s->parts[PART_POSTGRES].port),
        arena_printf(s->mem, "DRIVESIM_REDIS_PORT=%d", s->parts[PART_REDIS].port),
        arena_printf(s->mem, "DRIVESIM_STORE_PORT=%d", s->parts[PART_STORE].port),
        arena_printf(s->mem, "DRIVESIM_SERVER_PORT=%d", s->parts[PART_SERVER].port),
        NULL,
    };
    const char **copy = arena_alloc(s->mem, sizeof env);
    memcpy(copy, env, sizeof env);
    return copy;
}

static MAY_YIELD enum err compose(struct stack *s, const char *const *args, const char *log, struct errinfo *ei)
{
    const char *argv[MAX_ARGS];
    const char *file = stack_docker_file(s);
    size_t n = compose_program(s, argv);
    if (n == 0)
        return err_set(ei, ERR_ENV, "docker compose is not installed");
    argv[n++] = "-p";
    argv[n++] = s->project;
    if (file) {
        argv[n++] = "-f";
        argv[n++] = file;
    }
    for (size_t i = 0; args[i] && n < MAX_ARGS - 1; i++)
        argv[n++] = args[i];
    argv[n] = NULL;
    return run_tool(s, argv, compose_env(s), log, UP_LIMIT_US, ei);
}

/* ---- awaiting answers through the published ports ---- */

static MAY_YIELD enum err postgres_answers(struct stack *s, struct errinfo *ei)
{
    struct pg_pool *pool = NULL;
    enum err err = pg_pool_new(&pool, s->loop, stack_database_url(s, s->mem, STACK_DATABASE), 1, ei);
    if (!err)
        err = pg_run(pool, "SELECT 1", 0, NULL, NULL, ei);
    pg_pool_free(&pool);
    return err;
}

static MAY_YIELD enum err redis_answers(struct stack *s, struct errinfo *ei)
{
    struct kv *kv = NULL;
    enum err err = kv_new(&kv, s->loop, stack_redis_url(s, s->mem), ei);
    if (!err)
        err = kv_ready(kv, mono_add(mono_now(), 2 * US_PER_S), ei);
    kv_free(&kv);
    return err;
}

static MAY_YIELD enum err store_answers(struct stack *s, struct errinfo *ei)
{
    struct blob *b = NULL;
    struct blob_conf conf = stack_blob_conf(s, s->mem);
    enum err err = blob_new(&b, s->loop, s->http, s->work, &conf, ei);
    if (!err)
        err = blob_bucket_create(b, ei);
    if (!err)
        err = blob_probe(b, ei);
    blob_free(&b);
    return err;
}

static MAY_YIELD enum err server_answers(struct stack *s, struct errinfo *ei)
{
    return stack_server.answers(&s->parts[PART_SERVER], ei);
}

static MAY_YIELD enum err (*const answers[PART_COUNT])(struct stack *s, struct errinfo *ei) = {
    [PART_POSTGRES] = postgres_answers,
    [PART_REDIS] = redis_answers,
    [PART_STORE] = store_answers,
    [PART_SERVER] = server_answers,
};

static MAY_YIELD enum err await_part(struct stack *s, int part, struct errinfo *ei)
{
    struct mono deadline = mono_add(mono_now(), ANSWER_LIMIT_US);
    const struct part *p = &s->parts[part];
    struct errinfo last = {0};
    for (;;) {
        if (s->cancelled)
            return err_set(ei, ERR_INTERRUPTED, "interrupted");
        if (answers[part](s, &last) == ERR_OK)
            break;
        if (mono_passed(deadline))
            return err_set(ei, ERR_ENV, "%s does not answer: %s", p->ops->name, err_message(&last));
        coro_sleep_until(s->loop, mono_add(mono_now(), LOOK_EVERY_US));
    }
    stack_say(s, "%-9s ready on 127.0.0.1:%d", p->ops->name, p->port);
    return ERR_OK;
}

/* ---- up and down ---- */

static MAY_YIELD enum err containers_up(struct stack *s, bool server, struct errinfo *ei)
{
    static const char *const all[] = {"up", "-d", "--build", "postgres", "redis", "server", NULL};
    static const char *const most[] = {"up", "-d", "postgres", "redis", "bucket", NULL};
    stack_say(s, "starting containers (the first time, images are pulled and built)");
    enum err err = compose(s, server ? all : most, log_file(s), ei); /* what these need comes with them */
    for (int i = 0; i < PART_COUNT && !err; i++)
        if (s->parts[i].wanted && (i != PART_SERVER || server))
            err = await_part(s, i, ei);
    return err;
}

enum err stack_docker_up(struct stack *s, struct errinfo *ei)
{
    enum err err = ERR_OK;
    bool server = !s->conf.no_server;
    for (int i = 0; i < PART_COUNT && !err; i++) {
        struct part *p = &s->parts[i];
        p->wanted = p->wanted || i != PART_SERVER || server;
        if (p->port == 0)
            err = stack_choose_port(p, p->ops->port, ei);
    }
    if (!err)
        err = stack_state_save(s, ei);
    if (!err)
        err = containers_up(s, server, ei);
    if (err && err != ERR_INTERRUPTED && s->conf.progress) {
        fprintf(s->conf.progress, "docker: the last lines of its output:\n");
        stack_tail(s->conf.progress, log_file(s), TAIL_LINES);
    }
    if (err && s->fresh) {
        struct errinfo after;
        s->cancelled = false;
        if (stack_docker_down(s, &after))
            stack_say(s, "%s", err_message(&after));
    }
    return err;
}

enum err stack_docker_down(struct stack *s, struct errinfo *ei)
{
    static const char *const args[] = {"down", "-v", "--remove-orphans", "--timeout", "5", NULL};
    return compose(s, args, log_file(s), ei);
}

enum err stack_docker_part(struct stack *s, const char *verb, const struct part *p, struct errinfo *ei)
{
    const char *args[] = {verb, p->ops->name, NULL};
    enum err err = compose(s, args, log_file(s), ei);
    if (!err && strcmp(verb, "start") == 0)
        err = await_part(s, (int)(p - s->parts), ei);
    return err;
}

/* What compose says (ps, logs), passed on. */
enum err stack_docker_print(struct stack *s, const char *const *args, FILE *out, struct errinfo *ei)
{
    const char *path = arena_printf(s->mem, "%s/print.%d", s->home, (int)getpid());
    enum err err = compose(s, args, path, ei);
    if (!err)
        stack_tail(out, path, 0);
    unlink(path);
    return err;
}
