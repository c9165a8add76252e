/* sim serve: the reference drive server, as a command. */
#include "base/log.h"
#include "base/mem.h"
#include "drive/cmd.h"
#include "net/coro.h"
#include "server/conf.h"
#include <string.h>

#define GRACE_US (10 * US_PER_S)

#define AT(field) offsetof(struct server_conf, field)
static const struct opt options[] = {
    {"port", 'p', "N", OPT_INT, AT(port), 0, 65535, "port to listen on; 0: any free one (default: PORT, or 3200)"},
    {"listen", 0, "ADDRESS", OPT_STR, AT(listen), 0, 0, "address to listen on (default 127.0.0.1)"},
    {"max-connections", 0, "N", OPT_INT, AT(max_connections), 1, 1e6,
     "client connections at once (default: what the limit of open files allows)"},
    {"max-sessions", 0, "N", OPT_INT, AT(max_sessions), 1, 1e6,
     "sessions at once: beyond it sign-ins are refused at once, 503 TOO_MANY_SESSIONS;\na session counts until it "
     "signs "
     "out or is silent for 3 min (default: no limit)"},
    {"max-upload-mb", 0, "N", OPT_INT, AT(max_upload_mb), 1, 1e9,
     "largest file in MiB (default: MAX_UPLOAD_MB, or 10240)"},
    {"upload-memory-mb", 0, "N", OPT_INT, AT(upload_memory_mb), 1, 1 << 20,
     "memory that all uploads together may take, in MiB; beyond it they wait\n(default: UPLOAD_MEMORY_MB, or 512)"},
    {"pool", 0, "N", OPT_INT, AT(pool_size), 1, 1000, "Postgres connections (default 16)"},
    {"request-budget", 0, "N", OPT_INT, AT(request_budget), 0, 1e12,
     "requests a login in 15 min (default 10000, 0: no limit)"},
    {"upload-budget", 0, "N", OPT_INT, AT(upload_budget), 0, 1e12,
     "uploads a login in 30 min (default 20000, 0: no limit)"},
    {"login-budget", 0, "N", OPT_INT, AT(login_budget), 0, 1e12,
     "logins and sign-ups per address and email in 15 min (default 25, 0: no limit)"},
    {"storage-test-budget", 0, "N", OPT_INT, AT(storage_test_budget), 0, 1e12,
     "tests of a bucket in 15 min (default 20, 0: no limit)"},
    {"stream-limit", 0, "N", OPT_INT, AT(stream_limit), 0, 1e9, "event streams a login (default 20, 0: no limit)"},
    {"stream-backlog", 0, "SIZE", OPT_SIZE, AT(stream_backlog_bytes), 1024, 1 << 30,
     "what may wait for the client of an event stream to read\nit; beyond that the stream is ended (default 256KiB)"},
    {"token-lifetime", 0, "TIME", OPT_DURATION, AT(token_lifetime_us), 1e6, 1e300,
     "how long a sign-in is valid (default 7 days)"},
    {"idle-timeout", 0, "TIME", OPT_DURATION, AT(idle_timeout_us), 1e5, 1e300,
     "closes a connection that sends no request (default 75s)"},
    {"head-timeout", 0, "TIME", OPT_DURATION, AT(head_timeout_us), 1e5, 1e300,
     "for a request's head to be complete (default 15s)"},
    {"body-timeout", 0, "TIME", OPT_DURATION, AT(body_timeout_us), 1e5, 1e300,
     "for the next bytes of a body (default 60s)"},
    {"db-timeout", 0, "TIME", OPT_DURATION, AT(db_timeout_us), 1e5, 3.6e9,
     "a database that is silent for this long is given up: the request is answered\n503 (default 8s)"},
    {"wait", 0, "TIME", OPT_DURATION, AT(wait_us), 0, 8.64e10,
     "at the start, waits this long for Postgres and Redis to answer, with a line a\nsecond (default 10s, 0: fails at "
     "once)"},
    {"lock-min", 0, "TIME", OPT_DURATION, AT(lock_min_us), 1e6, 600e6,
     "shortest time an edit lock may be asked for (default 30s)"},
    {"keepalive", 0, "TIME", OPT_DURATION, AT(keepalive_us), 1e5, 3e7,
     "between two comments on a stream (default 30s)"},
    {"bcrypt-cost", 0, "N", OPT_INT, AT(bcrypt_cost), 4, 16,
     "work factor of passwords; low, as they are throwaway (default 5)"},
    {"fault", 0, "NAME", OPT_LIST, AT(fault_args), 0, 0,
     "plants a bug, to judge the judge, NAME=0.1 in a tenth of the cases; may be\nrepeated; 'help' lists them all"},
    {"desktop-only", 0, NULL, OPT_FLAG, AT(desktop_only), 0, 0, "refuses requests without X-TMA-Desktop-Client"},
    {0},
};

struct serving {
    struct done stop;
    struct server *server;
};

static void on_interrupt(void *arg)
{
    struct serving *x = arg;
    done_set(&x->stop);
    if (x->server)
        x->server->stopping = true;
}

static enum err set_log_level(const struct server_conf *conf, const struct cmd_ctx *ctx, struct errinfo *ei)
{
    enum log_level level;
    if (!log_level_parse(conf->log_level, &level))
        return err_set(ei, ERR_USAGE, "LOG_LEVEL=%s: it takes error, warn, info or debug", conf->log_level);
    if (!ctx->common->log_level)
        log_set_level(level);
    return ERR_OK;
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    struct server_conf *conf = arg;
    struct serving x = {.server = NULL};
    if (faults_help(&conf->fault_args, ctx->out))
        return ERR_OK;
    enum err err = faults_parse(&conf->faults, &conf->fault_args, ei);
    if (!err)
        err = conf_load(conf, ei);

    ctx->on_interrupt_arg = &x;
    ctx->on_interrupt = on_interrupt;
    if (!err)
        err = set_log_level(conf, ctx, ei);
    if (!err)
        err = server_new(&x.server, ctx->loop, conf, ei);
    if (!err)
        err = server_start(x.server, ei);
    if (!err) {
        faults_announce(&conf->faults);
        bool v6 = strchr(conf->listen, ':') != NULL;
        fprintf(ctx->out, "listening on http://%s%s%s:%d\n", v6 ? "[" : "", conf->listen, v6 ? "]" : "",
                server_port(x.server));
        fflush(ctx->out);
        done_wait(ctx->loop, &x.stop);
        LOGI("server", "stopping");
    }
    if (x.server)
        server_stop(x.server, GRACE_US);
    ctx->on_interrupt = NULL;
    server_free(&x.server);
    conf_done(conf);
    return err;
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "the reference drive server",
    .usage = "sim serve [options]",
    .examples =
        "  sim serve\n"
        "  DATABASE_URL=postgresql://tma:tma@localhost:55433/tma_load REDIS_URL=redis://localhost:56380/0 \\\n"
        "    JWT_SECRET=$(openssl rand -hex 32) FILE_ENCRYPTION_KEY=$(openssl rand -base64 32) sim serve --port 0\n",
    .opts = options,
    .conf_size = sizeof(struct server_conf),
    .defaults = &server_conf_unset,
    .flags = CMD_SERVES,
    .run = run,
};
