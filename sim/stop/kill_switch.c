#include "sim/stop/kill_switch.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/kv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_US (200 * US_PER_MS) /* how soon a new connection to Redis bears our name */

struct kill_switch {
    struct generator self;
    char file[300]; /* "": none */
    struct kv *kv;  /* NULL: no Redis */
    struct timer tick;
    unsigned named; /* kv_losses + 1 when the connection was named last; 0: it is not */
    void (*on_stop)(void *arg);
    void *arg;
};

/* ---- the folder ---- */

/* A folder that somebody else made in a place open to all would let them name our processes: it is not used. */
static bool own_folder(char *dst, size_t n)
{
    const char *tmp = getenv("TMPDIR");
    struct stat st;
    snprintf(dst, n, "%s/drivesim-%u", tmp && *tmp ? tmp : "/tmp", (unsigned)geteuid());
    if (mkdir(dst, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(dst, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

static bool write_text(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    size_t n = strlen(text);
    bool ok = write(fd, text, n) == (ssize_t)n;
    return close(fd) == 0 && ok;
}

/* A line each: start time, command, run folder, target, folder it was started in. Whole or not at all for those who
 * look meanwhile. */
static void stand_in_folder(struct kill_switch *k)
{
    char text[1400], beside[320];
    if (!k->file[0])
        return;
    snprintf(text, sizeof(text), "%" PRIu64 "\n%s\n%s\n%s\n%s\n", k->self.proc.start, k->self.command, k->self.run,
             k->self.place, k->self.folder);
    snprintf(beside, sizeof(beside), "%s.new", k->file);
    if (!write_text(beside, text) || rename(beside, k->file) != 0) {
        LOGW("stop", "%s cannot be written: 'sim stop' will not find this process by it", k->file);
        unlink(beside);
    }
}

static bool take_line(struct sv *rest, char *dst, size_t n)
{
    struct sv line;
    if (!sv_split(rest, '\n', &line) || line.n >= n)
        return false;
    memcpy(dst, line.p, line.n);
    dst[line.n] = '\0';
    return true;
}

static bool read_generator(const char *file, pid_t pid, struct generator *out)
{
    char text[1400], start[24];
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
    if (fd >= 0)
        close(fd);
    struct sv rest = {text, n > 0 ? (size_t)n : 0};
    *out = (struct generator){.proc.pid = pid};
    return take_line(&rest, start, sizeof(start)) && sv_to_u64(sv_of(start), &out->proc.start) &&
           take_line(&rest, out->command, sizeof(out->command)) && take_line(&rest, out->run, sizeof(out->run)) &&
           take_line(&rest, out->place, sizeof(out->place)) && take_line(&rest, out->folder, sizeof(out->folder));
}

static void our_host(char *dst, size_t n)
{
    if (gethostname(dst, n) != 0)
        snprintf(dst, n, "localhost");
    dst[n - 1] = '\0';
}

size_t kill_switch_here(struct generator *out, size_t max)
{
    char folder[200], file[480];
    size_t n = 0;
    DIR *d = own_folder(folder, sizeof(folder)) ? opendir(folder) : NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e && n < max; e = readdir(d)) {
        int64_t pid;
        if (!sv_to_i64(sv_of(e->d_name), &pid))
            continue;
        snprintf(file, sizeof(file), "%s/%s", folder, e->d_name);
        if (!read_generator(file, (pid_t)pid, &out[n]))
            continue;
        our_host(out[n].host, sizeof(out[n].host));
        if (proc_alive(&out[n].proc))
            n++;
        else
            unlink(file);
    }
    if (d)
        closedir(d);
    return n;
}

char *kill_switch_folder(char *dst, size_t n)
{
    if (!getcwd(dst, n))
        dst[0] = '\0';
    for (char *c = dst; *c; c++) /* a line is a line */
        *c = *c == '\n' ? '?' : *c;
    return dst;
}

/* ---- names ---- */

const char *kill_switch_own_name(const char *run)
{
    const char *slash = strrchr(run, '/');
    return slash && slash[1] ? slash + 1 : run;
}

static bool is_run(const struct generator *g, const char *run)
{
    char full[PATH_MAX];
    if (!g->run[0])
        return false;
    if (strchr(run, '/') && strchr(g->run, '/') && realpath(run, full))
        return strcmp(full, g->run) == 0;
    return strcmp(kill_switch_own_name(run), kill_switch_own_name(g->run)) == 0;
}

/* A drive may be loaded by a path below its own: sim http loads a page of it. */
static bool is_at(const struct generator *g, const char *place)
{
    size_t n = strlen(place);
    return g->place[0] && strncmp(g->place, place, n) == 0 && (g->place[n] == '\0' || g->place[n] == '/');
}

bool kill_switch_meant(const struct generator *g, const struct kill_switch_aim *aim)
{
    if (aim->run)
        return is_run(g, aim->run);
    if (aim->place)
        return is_at(g, aim->place);
    return !aim->folder || strcmp(g->folder, aim->folder) == 0;
}

char *kill_switch_message(const struct kill_switch_aim *aim, char *dst, size_t n)
{
    if (aim->run)
        snprintf(dst, n, "%s", kill_switch_own_name(aim->run));
    else if (aim->place)
        snprintf(dst, n, "@%s", aim->place);
    else
        snprintf(dst, n, "%s", aim->folder ? "" : "*");
    return dst;
}

struct kill_switch_aim kill_switch_aim_of(const char *message)
{
    struct kill_switch_aim aim = {NULL, NULL, NULL};
    if (message[0] == '@')
        aim.place = message + 1;
    else if (strcmp(message, "*") != 0)
        aim.run = message;
    return aim;
}

/* Redis takes no spaces in a name, and ':' parts ours; the last, the target, may have some itself. */
static void append_word(char *dst, size_t n, const char *text, bool last)
{
    size_t at = strlen(dst);
    for (; *text && at + 1 < n; text++)
        dst[at++] = *text > ' ' && *text < 127 && (last || *text != ':') ? *text : '_';
    dst[at] = '\0';
}

char *kill_switch_client_name(const struct generator *g, char *dst, size_t n)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)g->proc.pid);
    const char *const words[] = {g->host, pid, g->command, kill_switch_own_name(g->run), g->place};
    snprintf(dst, n, "drivesim");
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t at = strlen(dst);
        snprintf(dst + at, n - at, ":");
        append_word(dst, n, words[i], i + 1 == ARRAY_LEN(words));
    }
    return dst;
}

bool kill_switch_parse_name(struct sv name, struct generator *out)
{
    struct sv word[5];
    int64_t pid;
    *out = (struct generator){.run = ""};
    for (size_t i = 0; i < ARRAY_LEN(word); i++)
        if (!sv_split(&name, ':', &word[i]) && i < 4)
            return false;
        else if (i == 4 && !word[i].p)
            word[i] = SV("");
    if (!sv_eq_cstr(word[0], "drivesim") || !sv_to_i64(word[2], &pid) || pid < 1 || word[1].n >= sizeof(out->host) ||
        word[3].n >= sizeof(out->command) || word[4].n >= sizeof(out->run) || name.n >= sizeof(out->place))
        return false;
    out->proc.pid = (pid_t)pid;
    memcpy(out->host, word[1].p, word[1].n);
    memcpy(out->command, word[3].p, word[3].n);
    memcpy(out->run, word[4].p, word[4].n);
    if (name.n > 0)
        memcpy(out->place, name.p, name.n);
    return true;
}

/* ---- Redis ---- */

/* Both wait for nothing: a Redis that is away, or comes later, holds up no load. */
static void on_tick(struct timer *t)
{
    struct kill_switch *k = container_of(t, struct kill_switch, tick);
    char name[700];
    unsigned now = kv_losses(k->kv) + 1;
    loop_timer_set(t->loop, t, mono_add(mono_now(), TICK_US));
    if (!kv_up(k->kv) || k->named == now)
        return;
    const struct sv argv[] = {SV("CLIENT"), SV("SETNAME"),
                              sv_of(kill_switch_client_name(&k->self, name, sizeof(name)))};
    if (kv_send(k->kv, ARRAY_LEN(argv), argv))
        k->named = now;
}

static void on_message(void *arg, struct sv channel, struct sv payload)
{
    struct kill_switch *k = arg;
    char text[sizeof(k->self.place) + 1];
    (void)channel;
    if (payload.n == 0 || payload.n >= sizeof(text))
        return;
    memcpy(text, payload.p, payload.n);
    text[payload.n] = '\0';
    struct kill_switch_aim aim = kill_switch_aim_of(text);
    if (kill_switch_meant(&k->self, &aim))
        k->on_stop(k->arg);
}

static void on_redis(void *arg, bool up)
{
    (void)arg;
    (void)up;
}

static void listen_on_redis(struct kill_switch *k, struct cmd_ctx *ctx)
{
    struct errinfo why;
    if (!ctx->target->redis_url)
        return;
    enum err e = kv_new(&k->kv, ctx->loop, ctx->target->redis_url, &why);
    if (e == ERR_OK)
        e = kv_subscribe(k->kv, KILL_SWITCH_CHANNEL, on_message, on_redis, k, &why);
    if (e != ERR_OK) {
        LOGW("stop", "no 'sim stop' from other machines: %s", err_message(&why));
        kv_free(&k->kv);
        return;
    }
    loop_timer_set(ctx->loop, &k->tick, mono_now());
}

/* ---- the switch ---- */

static void on_signal(void *arg, int signo)
{
    struct kill_switch *k = arg;
    (void)signo;
    k->on_stop(k->arg);
}

void kill_switch_arm(struct kill_switch **out, struct cmd_ctx *ctx, const char *command, void (*on_stop)(void *arg),
                     void *arg)
{
    struct kill_switch *k = mem_zalloc(sizeof(*k));
    struct errinfo why;
    char folder[200];
    k->on_stop = on_stop;
    k->arg = arg;
    k->tick.fn = on_tick;
    snprintf(k->self.command, sizeof(k->self.command), "%s", command);
    our_host(k->self.host, sizeof(k->self.host));
    target_place(ctx->target->url, k->self.place, sizeof(k->self.place));
    kill_switch_folder(k->self.folder, sizeof(k->self.folder));
    bool ready = loop_on_signal(ctx->loop, KILL_SWITCH_SIGNAL, on_signal, k, &why) == ERR_OK &&
                 proc_of_pid(getpid(), &k->self.proc) && own_folder(folder, sizeof(folder));
    if (ready) {
        snprintf(k->file, sizeof(k->file), "%s/%d", folder, (int)k->self.proc.pid);
        stand_in_folder(k);
    } else {
        LOGW("stop", "'sim stop' will not find this process: no folder of its own below $TMPDIR or /tmp");
    }
    listen_on_redis(k, ctx);
    *out = k;
}

void kill_switch_name(struct kill_switch *k, const char *run_dir)
{
    char full[PATH_MAX];
    if (!k || !realpath(run_dir, full) || !str_fit(k->self.run, sizeof(k->self.run), full))
        return;
    k->named = 0;
    if (k->kv)
        on_tick(&k->tick);
    stand_in_folder(k);
}

void kill_switch_target(struct kill_switch *k, const char *url)
{
    if (!k)
        return;
    target_place(url, k->self.place, sizeof(k->self.place));
    k->named = 0;
    stand_in_folder(k);
}

void kill_switch_disarm(struct kill_switch **k)
{
    if (!*k)
        return;
    signal(KILL_SWITCH_SIGNAL, SIG_IGN); /* one that comes now finds us leaving */
    loop_timer_stop(&(*k)->tick);
    if ((*k)->kv)
        kv_free(&(*k)->kv);
    if ((*k)->file[0])
        unlink((*k)->file);
    MEM_FREE(*k);
}
