/* `sim stop`: ends every generator of a run, of the target, or with --all of this user, here and on the machines that
 * share the target's Redis, and comes back when they are gone. A stopped generator lets its locks go and reports; one
 * that does not end is killed. */
#include "base/log.h"
#include "base/mem.h"
#include "sim/stop/kill_switch.h"
#include "store/kv.h"

#include <stdio.h>
#include <string.h>

#define GRACE_US (10 * US_PER_S) /* a generator needs 5 s at most */
#define REDIS_US (3 * US_PER_S)
#define LOOK_US  (50 * US_PER_MS)

struct stop_options {
    const char *run;
    bool all;
};
static const struct opt_pos pos[] = {
    {"run", OPT_STR, offsetof(struct stop_options, run), 0, 0, true,
     "a run's folder, or its name; default: every run on the\ntarget (of this folder's stack, or TMA_URL)"},
    {0},
};
static const struct opt options[] = {
    {"all", 0, NULL, OPT_FLAG, offsetof(struct stop_options, all), 0, 0,
     "end every run of yours on this machine, whatever its target\nand folder, and those that share this target's "
     "Redis"},
    {0},
};

struct stopper {
    struct cmd_ctx *ctx;
    struct kill_switch_aim aim;
    struct generator *here, *away;
    size_t n_here, n_away, n_others; /* others: here, and not meant */
    struct kv *kv;                   /* NULL: none, or it does not answer */
};

static bool is_all(const struct kill_switch_aim *aim)
{
    return !aim->run && !aim->place && !aim->folder;
}

static bool is_here(const struct stopper *s, const struct generator *g)
{
    for (size_t i = 0; i < s->n_here; i++)
        if (s->here[i].proc.pid == g->proc.pid && strcmp(s->here[i].host, g->host) == 0)
            return true;
    return false;
}

/* One line a connection: "id=3 addr=… name=drivesim:host:4711:run:20261130T112828Z-1 age=…". */
static size_t read_clients(const struct stopper *s, struct sv lines, struct generator *out)
{
    struct sv line, word;
    size_t n = 0;
    while (n < KILL_SWITCH_MAX && sv_split(&lines, '\n', &line))
        while (sv_split(&line, ' ', &word)) {
            if (!sv_starts(word, SV("name=drivesim:")))
                continue;
            struct sv name = {word.p + 5, word.n - 5};
            if (kill_switch_parse_name(name, &out[n]) && kill_switch_meant(&out[n], &s->aim) && !is_here(s, &out[n]))
                n++;
            break;
        }
    return n;
}

/* How many run elsewhere; 0 too when Redis does not tell. */
static MAY_YIELD size_t look_away(const struct stopper *s, struct generator *out)
{
    static const struct sv ask[] = {{"CLIENT", 6}, {"LIST", 4}};
    struct kv_reply reply = {.s = NULL};
    struct errinfo why;
    size_t n = 0;
    if (!s->kv)
        return 0;
    if (kv_command(s->kv, ARRAY_LEN(ask), ask, &reply, &why) == ERR_OK && reply.s)
        n = read_clients(s, (struct sv){reply.s, reply.n}, out);
    kv_reply_done(&reply);
    return n;
}

/* Nobody can say then that no generator is left, but those of this machine end all the same. */
static MAY_YIELD enum err connect_redis(struct stopper *s, struct errinfo *ei)
{
    struct errinfo why;
    const char *url = s->ctx->target->redis_url;
    enum err e = url ? kv_new(&s->kv, s->ctx->loop, url, &why) : ERR_OK;
    if (e == ERR_OK && s->kv)
        e = kv_ready(s->kv, mono_add(mono_now(), REDIS_US), &why);
    if (e == ERR_OK)
        return e;
    if (s->kv)
        kv_free(&s->kv);
    return err_set(ei, e == ERR_SAFETY ? e : ERR_ENV, "other machines are not reached by REDIS_URL: %s",
                   err_message(&why));
}

static MAY_YIELD void call_redis(struct stopper *s)
{
    char message[TARGET_PLACE_MAX + 2];
    const struct sv say[] = {SV("PUBLISH"), SV(KILL_SWITCH_CHANNEL),
                             sv_of(kill_switch_message(&s->aim, message, sizeof(message)))};
    struct kv_reply heard = {.s = NULL};
    struct errinfo why;
    if (!s->kv || !message[0])
        return;
    if (kv_command(s->kv, ARRAY_LEN(say), say, &heard, &why) != ERR_OK)
        LOGW("stop", "other machines are not reached: %s", err_message(&why));
    else if (is_all(&s->aim) && heard.i > 0 && s->n_here + s->n_away == 0)
        fprintf(s->ctx->out, "stopping: %s without a name yet\n", COUNTED((uint64_t)heard.i, "generator"));
    kv_reply_done(&heard);
}

static void name_one(FILE *out, const struct generator *g, bool here)
{
    char since[40], away[80] = "";
    if (here)
        wall_format_seconds(since, sizeof(since), proc_started(&g->proc));
    else
        snprintf(away, sizeof(away), " on %s", g->host);
    fprintf(out, "stopping: sim %s, process %d%s%s%s, %s%s, %s\n", g->command, (int)g->proc.pid, away,
            here ? " since " : "", here ? since : "", g->place[0] ? "target " : "no target", g->place,
            g->run[0] ? g->run : "no run folder");
    if (here && !g->run[0] && g->folder[0])
        fprintf(out, "          started in %s\n", g->folder);
}

static void name_them(const struct stopper *s)
{
    for (size_t i = 0; i < s->n_here; i++)
        name_one(s->ctx->out, &s->here[i], true);
    for (size_t i = 0; i < s->n_away; i++)
        name_one(s->ctx->out, &s->away[i], false);
    fflush(s->ctx->out); /* before the first of them ends */
}

static MAY_YIELD enum err end_here(struct stopper *s, struct errinfo *ei)
{
    struct proc *procs = mem_zalloc((s->n_here + 1) * sizeof(*procs));
    for (size_t i = 0; i < s->n_here; i++)
        procs[i] = s->here[i].proc;
    enum err e = s->n_here ? proc_end(s->ctx->loop, procs, s->n_here, KILL_SWITCH_SIGNAL, GRACE_US, ei) : ERR_OK;
    mem_free(procs);
    return e;
}

static MAY_YIELD enum err await_away(struct stopper *s, struct errinfo *ei)
{
    struct mono limit = mono_add(mono_now(), GRACE_US);
    struct generator *left = mem_zalloc(KILL_SWITCH_MAX * sizeof(*left));
    enum err e = ERR_OK;
    size_t n = s->n_away;
    while (n > 0 && !mono_passed(limit)) {
        n = look_away(s, left);
        if (n > 0)
            coro_sleep_until(s->ctx->loop, mono_add(mono_now(), LOOK_US));
    }
    if (n > 0)
        e = err_set(ei, ERR_ENV, "%s still run elsewhere, the first is process %d on %s", COUNTED(n, "generator"),
                    (int)left[0].proc.pid, left[0].host);
    mem_free(left);
    return e;
}

static void say_none(const struct stopper *s)
{
    const struct kill_switch_aim *a = &s->aim;
    const char *what = a->run ? a->run : a->place ? a->place : a->folder;
    fprintf(s->ctx->out, "no generator runs%s%s",
            is_all(a)                           ? ""
            : a->folder && !a->place && !a->run ? " from "
                                                : " for ",
            what ? what : "");
    if (s->n_others && !a->run)
        fprintf(s->ctx->out, "; %s with other targets: `sim stop --all` names and ends them",
                COUNTED(s->n_others, "generator"));
    fputc('\n', s->ctx->out);
}

static MAY_YIELD enum err stop_all(struct stopper *s, struct errinfo *ei)
{
    struct errinfo away_why, redis_why;
    struct mono began = mono_now();
    char took[32];
    size_t found = kill_switch_here(s->here, KILL_SWITCH_MAX);
    for (size_t i = 0; i < found; i++)
        if (kill_switch_meant(&s->here[i], &s->aim))
            s->here[s->n_here++] = s->here[i];
    s->n_others = found - s->n_here;
    enum err redis = connect_redis(s, &redis_why);
    s->n_away = look_away(s, s->away);
    name_them(s);
    call_redis(s); /* also those whose connection has no name yet */
    enum err e = end_here(s, ei);
    enum err away = await_away(s, &away_why);
    if (away != ERR_OK && e == ERR_OK) {
        *ei = away_why;
        e = away;
    }
    if (redis != ERR_OK && e == ERR_OK) {
        *ei = redis_why;
        e = redis;
    }
    result_figure(s->ctx->result, "stopped", "generators", (double)(s->n_here + s->n_away), 0);
    result_figure(s->ctx->result, "stopped", "seconds", (double)mono_diff(mono_now(), began) / 1e6, 2);
    if (e == ERR_OK && s->n_here + s->n_away == 0)
        say_none(s);
    else if (e == ERR_OK)
        fprintf(s->ctx->out, "%s ended after %s\n", COUNTED(s->n_here + s->n_away, "generator"),
                str_duration(took, sizeof(took), mono_diff(mono_now(), began)));
    return e;
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct stop_options *o = arg;
    char place[TARGET_PLACE_MAX + 1], folder[512];
    if (o->all && o->run)
        return err_set(ei, ERR_USAGE, "a run, or --all: not both");
    struct stopper s = {.ctx = ctx,
                        .here = mem_zalloc(KILL_SWITCH_MAX * sizeof(struct generator)),
                        .away = mem_zalloc(KILL_SWITCH_MAX * sizeof(struct generator))};
    target_place(ctx->target->url, place, sizeof(place));
    if (o->run)
        s.aim.run = o->run;
    else if (!o->all && place[0])
        s.aim.place = place;
    else if (!o->all)
        s.aim.folder = kill_switch_folder(folder, sizeof(folder));
    enum err e = stop_all(&s, ei);
    if (s.kv)
        kv_free(&s.kv);
    mem_free(s.here);
    mem_free(s.away);
    return e;
}

static void sample(struct result *r)
{
    result_figure(r, "stopped", "generators", 0, 0);
    result_figure(r, "stopped", "seconds", 0, 2);
}

const struct command cmd_stop = {
    .name = "stop",
    .summary =
        "end every generator of a run, or of the target, at once, here and on the machines that\nshare its Redis",
    .usage = "sim stop [run] [options]",
    .examples = "sim stop\nsim stop runs/20261130T112828Z-1\nsim stop --all",
    .pos = pos,
    .opts = options,
    .conf_size = sizeof(struct stop_options),
    .run = run,
    .sample = sample,
};
