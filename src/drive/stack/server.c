/* The stack's reference server: `sim serve` of this very program, told by the environment as the source document's
 * server is by its .env. */
#include "base/str.h"
#include "drive/stack/env.h"
#include "drive/stack/impl.h"
#include "drive/target.h"
#include "net/guard.h"
#include "net/httpc.h"
#include <signal.h>
#include <string.h>

#define MAX_ARGS 64

static enum err arguments(struct part *p, struct arena *mem, const char **argv, struct errinfo *ei)
{
    size_t n = 0;
    char self[4096];
    struct proc us = {.pid = getpid()};
    if (!proc_exe(&us, self, sizeof self))
        return err_sys(ei, ERR_ENV, "cannot find this program");
    argv[n++] = arena_strdup(mem, self);
    argv[n++] = "serve";
    argv[n++] = "--listen";
    argv[n++] = "127.0.0.1";
    argv[n++] = "--port";
    argv[n++] = arena_printf(mem, "%d", p->port);
    struct sv rest = sv_of(p->stack->server_args), word;
    while (sv_split(&rest, ' ', &word)) {
        if (word.n == 0)
            continue;
        if (n == MAX_ARGS)
            return err_set(ei, ERR_USAGE, "--server-args: more than %d words", MAX_ARGS - 7);
        argv[n++] = arena_strndup(mem, word.p, word.n);
    }
    argv[n] = NULL;
    return ERR_OK;
}

static enum err command(struct part *p, struct arena *mem, struct part_command *out, struct errinfo *ei)
{
    const struct stack *s = p->stack;
    const char *env[] = {
        "APP_ENV=development",
        arena_printf(mem, "PORT=%d", p->port),
        arena_printf(mem, "BACKEND_URL=%s", stack_server_url(s, mem)),
        arena_printf(mem, "DATABASE_URL=%s", stack_database_url(s, mem, STACK_DATABASE)),
        arena_printf(mem, "REDIS_URL=%s", stack_redis_url(s, mem)),
        arena_printf(mem, "JWT_SECRET=%s", s->jwt_secret),
        arena_printf(mem, "FILE_ENCRYPTION_KEY=%s", s->file_key),
        "FORCE_INSECURE_COOKIES=true",
        NULL,
    };
    out->argv = arena_alloc(mem, (MAX_ARGS + 1) * sizeof *out->argv);
    out->env = arena_alloc(mem, sizeof env);
    memcpy(out->env, env, sizeof env);
    return arguments(p, mem, out->argv, ei);
}

static MAY_YIELD enum err answers(struct part *p, struct errinfo *ei)
{
    struct arena *mem = arena_new(1024);
    struct httpc_peer *peer = NULL;
    struct http_resp resp = {0};
    struct http_req req = {.method = "GET", .path = "/health", .timeout_us = 5 * US_PER_S};
    enum err err = httpc_peer_new(&peer, p->stack->http, stack_server_url(p->stack, mem), NULL, ei);
    if (!err) {
        err = httpc_perform(peer, &req, &resp, ei);
        if (!err && resp.status != 200)
            err = err_set(ei, ERR_HTTP, "GET /health answers %d", resp.status);
        http_resp_done(&resp);
        httpc_peer_free(&peer);
    }
    arena_free(&mem);
    return err;
}

/* The stack of this folder, where url is its server; NULL when it is not. */
static struct stack *stack_of(struct loop *l, struct httpc *h, const char *url)
{
    const struct stack_conf conf = {.mode = STACK_AUTO};
    struct stack *s = NULL;
    struct http_url u;
    if (http_url_parse(url, &u, NULL))
        return NULL;
    if (!guard_is_loopback(u.host) || stack_open(&s, l, h, &conf, false, NULL) != ERR_OK)
        s = NULL;
    if (s && (!stack_exists(s) || s->parts[PART_SERVER].port != u.port))
        stack_close(&s);
    http_url_done(&u);
    return s;
}

bool stack_find_process(struct loop *l, struct httpc *h, const char *url, const char *name, struct proc *out)
{
    struct stack *s = stack_of(l, h, url);
    struct part *part;
    if (!s)
        return false;
    bool found = s->kind == KIND_NATIVE && stack_find_part(s, name, &part, NULL) == ERR_OK && proc_alive(&part->proc);
    if (found)
        *out = part->proc;
    stack_close(&s);
    return found;
}

enum err stack_owns(struct loop *l, struct httpc *h, const char *url, bool *native, struct errinfo *ei)
{
    struct stack *s = stack_of(l, h, url);
    if (!s)
        return err_set(ei, ERR_ENV, "%s is not the server of a stack in this folder (sim stack up)", url);
    *native = s->kind == KIND_NATIVE;
    stack_close(&s);
    return ERR_OK;
}

const struct part_ops stack_server = {
    .name = "server",
    .port = 3200,
    .stop_signal = SIGTERM,
    .stop_grace_s = 10,
    .command = command,
    .answers = answers,
};
