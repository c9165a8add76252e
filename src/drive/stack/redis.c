/* The stack's Redis: in memory only, nothing of it survives a restart, as with the containers. */
#include "drive/stack/env.h"
#include "drive/stack/impl.h"
#include "store/kv.h"
#include <inttypes.h>
#include <signal.h>
#include <string.h>

static enum err command(struct part *p, struct arena *mem, struct part_command *out, struct errinfo *ei)
{
    const char *argv[] = {"redis-server", "--port",    arena_printf(mem, "%d", p->port),
                          "--bind",       "127.0.0.1", "--dir",
                          p->folder,      "--save",    "",
                          "--appendonly", "no",        "--daemonize",
                          "no",           NULL};
    (void)ei;
    out->argv = arena_alloc(mem, sizeof argv);
    memcpy(out->argv, argv, sizeof argv);
    return ERR_OK;
}

/* It is ours when it says our process number. */
static MAY_YIELD enum err answers(struct part *p, struct errinfo *ei)
{
    struct arena *mem = arena_new(1024);
    struct kv *kv = NULL;
    struct kv_reply r = {0};
    const struct sv argv[] = {SV("INFO"), SV("server")};
    const char *ours = arena_printf(mem, "process_id:%d\r", (int)p->proc.pid);
    enum err err = kv_new(&kv, p->stack->loop, stack_redis_url(p->stack, mem), ei);
    if (!err)
        err = kv_ready(kv, mono_add(mono_now(), 2 * US_PER_S), ei);
    if (!err)
        err = kv_command(kv, 2, argv, &r, ei);
    if (!err && (r.type != KV_STR || !strstr(r.s, ours)))
        err = err_set(ei, ERR_ENV, "another Redis answers on port %d", p->port);
    kv_reply_done(&r);
    kv_free(&kv);
    arena_free(&mem);
    return err;
}

const struct part_ops stack_redis = {
    .name = "redis",
    .program = "redis-server",
    .port = 56381,
    .stop_signal = SIGTERM,
    .stop_grace_s = 5,
    .command = command,
    .answers = answers,
};
