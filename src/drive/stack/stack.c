#include "drive/stack/stack.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/own_tree.h"
#include "base/str.h"
#include "drive/stack/docker.h"
#include "drive/stack/fixture.h"
#include "drive/stack/impl.h"
#include "drive/stack/native.h"
#include "drive/stack/process.h"
#include "drive/stack/state.h"
#include "net/work.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

static enum err find_dir(struct stack *s, struct errinfo *ei)
{
    const char *dir = s->conf.dir ? s->conf.dir : ".";
    char *real = realpath(dir, NULL);
    if (!real)
        return err_sys(ei, ERR_ENV, "cannot use folder %s", dir);
    s->dir = arena_strdup(s->mem, real);
    s->home = arena_printf(s->mem, "%s/.sim", real);
    free(real);
    return ERR_OK;
}

/* A `down` removes the lock with the rest: whoever waited for it meanwhile holds a file that is gone, and tries again.
 */
static enum err take_lock(struct stack *s, struct errinfo *ei)
{
    const char *path = arena_printf(s->mem, "%s/lock", s->home);
    for (;;) {
        struct stat held, there;
        if (lstat(s->home, &there) == 0 && !S_ISDIR(there.st_mode))
            return err_set(ei, ERR_SAFETY,
                           "%s is a link or a file, which drivesim does not follow: move it away, or use --dir",
                           s->home);
        if (mkdir(s->home, 0711) == 0) /* others may pass through it to the folder that is theirs, not look around */
            (void)!chmod(s->home, 0711);
        else if (errno != EEXIST)
            return err_sys(ei, ERR_ENV, "cannot make %s", s->home);
        int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0)
            return err_sys(ei, ERR_ENV, "cannot open %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            stack_say(s, "waiting for another sim that works on this stack");
            while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
                ;
        }
        if (fstat(fd, &held) == 0 && stat(path, &there) == 0 && held.st_ino == there.st_ino) {
            s->lock_fd = fd;
            return ERR_OK;
        }
        close(fd);
    }
}

enum err stack_open(struct stack **out, struct loop *l, struct httpc *h, const struct stack_conf *conf, bool change,
                    struct errinfo *ei)
{
    struct stack *s = mem_zalloc(sizeof *s);
    s->loop = l;
    s->http = h;
    s->conf = *conf;
    s->lock_fd = -1;
    s->mem = arena_new(8192);
    s->work = work_new(l, 2);
    enum err err = find_dir(s, ei);
    if (!err && change)
        err = take_lock(s, ei);
    if (!err) {
        stack_state_init(s);
        err = stack_state_load(s, ei);
    }
    if (err) {
        stack_close(&s);
        return err;
    }
    if (conf->server_args) {
        mem_free(s->server_args);
        s->server_args = mem_strdup(conf->server_args);
    }
    *out = s;
    return ERR_OK;
}

void stack_close(struct stack **sp)
{
    struct stack *s = *sp;
    if (!s)
        return;
    work_free(&s->work);
    if (s->lock_fd >= 0 && !stack_exists(s)) /* nothing but the lock: as it was before */
        stack_state_remove(s);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    mem_free(s->server_args);
    arena_free(&s->mem);
    MEM_FREE(*sp);
}

bool stack_exists(const struct stack *s)
{
    return s->kind != KIND_NONE;
}

static enum err need_stack(const struct stack *s, struct errinfo *ei)
{
    return stack_exists(s) ? ERR_OK : err_set(ei, ERR_ENV, "no stack in %s: start one with `sim stack up`", s->dir);
}

enum err stack_find_part(struct stack *s, const char *name, struct part **out, struct errinfo *ei)
{
    struct opt_guess near;
    opt_guess_init(&near, sv_of(name));
    for (int i = 0; i < PART_COUNT; i++) {
        opt_guess_try(&near, s->parts[i].ops->name);
        if (strcmp(s->parts[i].ops->name, name) == 0) {
            *out = &s->parts[i];
            return need_stack(s, ei);
        }
    }
    return err_set(ei, ERR_USAGE, "no part is called '%s'%s", SHOWN(sv_of(name)),
                   near.name[0] ? opt_guess_text(&near) : ": postgres, redis, store or server");
}

/* ---- all parts ---- */

static enum err make_logs(const struct stack *s, struct errinfo *ei)
{
    return own_tree_make(arena_printf(s->mem, "%s/logs", s->home), 0700, ei);
}

/* Kept ones (api/token_store.h), which go with the stack. */
enum err stack_make_sessions(const struct stack *s, struct errinfo *ei)
{
    return own_tree_make(arena_printf(s->mem, "%s/sessions", s->home), 0700, ei);
}

static MAY_YIELD enum err choose_kind(struct stack *s, struct errinfo *ei)
{
    if (stack_exists(s))
        return ERR_OK;
    s->fresh = true;
    bool docker = s->conf.mode != STACK_NATIVE && stack_docker_answers(s);
    if (docker && !stack_docker_file(s)) {
        stack_say(s, "a Docker engine answers, but there is no docker-compose.yml here: native processes instead");
        docker = false;
    }
    if (!docker && s->conf.mode == STACK_DOCKER)
        return err_set(ei, ERR_ENV, "no Docker engine answers, or docker-compose.yml is not in %s", s->dir);
    s->kind = docker ? KIND_DOCKER : KIND_NATIVE;
    return ERR_OK;
}

enum err stack_up(struct stack *s, struct errinfo *ei)
{
    enum err err = fixture_judge_whole(s, ei);
    if (!err)
        err = make_logs(s, ei);
    if (!err)
        err = stack_make_sessions(s, ei);
    if (!err)
        err = choose_kind(s, ei);
    if (!err)
        err = stack_state_save(s, ei);
    if (!err)
        err = s->kind == KIND_DOCKER ? stack_docker_up(s, ei) : stack_native_up(s, ei);
    if (err && s->fresh) {
        stack_state_remove(s);
        s->kind = KIND_NONE;
    }
    return err;
}

enum err stack_fetch(struct stack *s, struct errinfo *ei)
{
    struct part *p = &s->parts[PART_STORE];
    enum err err = make_logs(s, ei);
    if (!err)
        err = p->ops->prepare(p, ei);
    if (err && err != ERR_INTERRUPTED)
        stack_show_log(p);
    return err;
}

enum err stack_down(struct stack *s, struct errinfo *ei)
{
    if (!stack_exists(s) && !s->damaged && s->conf.progress)
        fprintf(s->conf.progress, "no stack runs in %s\n", s->dir);
    bool docker = s->kind == KIND_DOCKER || (s->damaged && stack_docker_answers(s));
    enum err err = s->kind == KIND_DOCKER ? ERR_OK : stack_native_down(s, ei);
    if (!err && docker)
        err = stack_docker_down(s, ei);
    if (!err) {
        stack_state_remove(s);
        s->kind = KIND_NONE;
    }
    return err;
}

void stack_cancel(struct stack *s)
{
    s->cancelled = true;
    for (size_t i = 0; i < ARRAY_LEN(s->tools); i++)
        proc_kill_session(&s->tools[i]);
}

/* ---- looking ---- */

static void print_row(const struct part *p, FILE *out)
{
    char since[32] = "-", memory[32] = "-", pid[16] = "-";
    bool alive = part_alive(p);
    if (alive) {
        wall_format(since, sizeof since, proc_started(&p->proc));
        int64_t rss, peak;
        if (proc_memory(&p->proc, &rss, &peak))
            str_bytes(memory, sizeof memory, (uint64_t)rss);
        snprintf(pid, sizeof pid, "%d", (int)p->proc.pid);
    }
    fprintf(out, "%-9s %-5s %6d %8s %11s  %-24s  %s\n", p->ops->name, alive ? "up" : "down", p->port, pid, memory,
            since, p->folder);
}

enum err stack_print_status(struct stack *s, FILE *out, struct errinfo *ei)
{
    static const char *const ps[] = {"ps", NULL};
    enum err err = need_stack(s, ei);
    if (err)
        return err;
    if (s->kind == KIND_DOCKER)
        return stack_docker_print(s, ps, out, ei);
    fprintf(out, "%-9s %-5s %6s %8s %11s  %-24s  %s\n", "PART", "STATE", "PORT", "PID", "MEMORY", "SINCE", "FOLDER");
    for (int i = 0; i < PART_COUNT; i++) {
        const struct part *p = &s->parts[i];
        if (!p->wanted)
            continue;
        print_row(p, out);
        if (!part_alive(p) && !err)
            err = err_set(ei, ERR_ENV, "%s is down: `sim stack up` starts it, `sim stack logs %s` shows why",
                          p->ops->name, p->ops->name);
    }
    return err;
}

/* Where the last `lines` lines begin; read backwards in blocks, so that a log of gigabytes costs nothing. */
static long tail_offset(FILE *f, int64_t lines)
{
    char block[4096];
    if (lines <= 0 || fseek(f, 0, SEEK_END) < 0)
        return 0;
    long at = ftell(f), end = at;
    while (at > 0) {
        size_t n = at < (long)sizeof block ? (size_t)at : sizeof block;
        at -= (long)n;
        if (fseek(f, at, SEEK_SET) < 0 || fread(block, 1, n, f) != n)
            return 0;
        for (size_t i = n; i-- > 0;)
            if (block[i] == '\n' && at + (long)i != end - 1 && --lines == 0)
                return at + (long)i + 1;
    }
    return 0;
}

void stack_tail(FILE *out, const char *path, int64_t lines)
{
    char *line = NULL, shown[4000];
    size_t cap = 0;
    ssize_t n;
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (fseek(f, tail_offset(f, lines), SEEK_SET) == 0) {
        while ((n = getline(&line, &cap, f)) > 0)
            fprintf(out, "  %s\n", str_shown(shown, sizeof shown, sv_trim((struct sv){line, (size_t)n})));
    }
    free(line);
    fclose(f);
}

enum err stack_print_logs(struct stack *s, const char *part, int64_t lines, FILE *out, struct errinfo *ei)
{
    struct part *only = NULL;
    enum err err = part ? stack_find_part(s, part, &only, ei) : need_stack(s, ei);
    if (err)
        return err;
    if (s->kind == KIND_DOCKER) {
        const char *tail = lines > 0 ? arena_printf(s->mem, "--tail=%lld", (long long)lines) : "--tail=all";
        const char *args[] = {"logs", "--no-color", tail, part, NULL};
        return stack_docker_print(s, args, out, ei);
    }
    for (int i = 0; i < PART_COUNT; i++) {
        const struct part *p = &s->parts[i];
        if (only ? p != only : !p->wanted)
            continue;
        if (!only)
            fprintf(out, "%s:\n", p->ops->name);
        stack_tail(out, p->log, lines);
    }
    return ERR_OK;
}
