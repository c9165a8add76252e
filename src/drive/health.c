#include "drive/health.h"
#include "base/mem.h"
#include "drive/cgroup.h"
#include "drive/proc.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LATE_US    (50 * US_PER_MS) /* timers so late: a cause that else may be harmless was none */
#define LATE_ALONE 0.25             /* seconds: so late needs no cause to be told */
#define OWN_LEAST  US_PER_S         /* shorter bursts of work are no limit */
#define TEXT_MOST  (64u << 10)

/* ---- readings ---- */

enum { IDLE = 3, IOWAIT = 4, STEAL = 7, FIELDS = 8 };

static bool parse_ticks(struct sv line, uint64_t ticks[FIELDS])
{
    struct sv word;
    size_t n = 0;
    while (n < FIELDS && sv_split(&line, ' ', &word))
        if (word.n && !sv_to_u64(sv_trim(word), &ticks[n++]))
            return false;
    return n == FIELDS;
}

static void add_ticks(const uint64_t ticks[FIELDS], uint64_t *busy, uint64_t *total)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < FIELDS; i++)
        sum += ticks[i];
    *total += sum;
    *busy += sum - ticks[IDLE] - ticks[IOWAIT];
}

bool health_parse_cpu(struct sv line, uint64_t *busy, uint64_t *total)
{
    struct sv word;
    uint64_t ticks[FIELDS];
    if (!sv_split(&line, ' ', &word) || !sv_eq_cstr(word, "cpu") || !parse_ticks(line, ticks))
        return false;
    *busy = *total = 0;
    add_ticks(ticks, busy, total);
    return true;
}

/* All of a file of /proc, "" when it is not there. The caller frees it. */
static char *proc_file(const char *path)
{
    char *text = mem_alloc(TEXT_MOST);
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got; fd >= 0 && n + 1 < TEXT_MOST && (got = read(fd, text + n, TEXT_MOST - 1 - n)) > 0;)
        n += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[n] = '\0';
    return text;
}

/* The lines "cpu0 …", "cpu1 …" of those processors alone that we may use. */
static void read_machine(struct health *h)
{
    cpu_set_t allowed;
    char *text = proc_file("/proc/stat");
    struct sv rest = sv_of(text), line, word;
    bool all = sched_getaffinity(0, sizeof allowed, &allowed) != 0;
    while (sv_split(&rest, '\n', &line) && sv_starts(line, SV("cpu"))) {
        uint64_t ticks[FIELDS], cpu;
        if (!sv_split(&line, ' ', &word) || !sv_to_u64((struct sv){word.p + 3, word.n - 3}, &cpu) ||
            !parse_ticks(line, ticks) || (!all && (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed))))
            continue;
        add_ticks(ticks, &h->busy, &h->total);
        h->stolen += ticks[STEAL];
    }
    mem_free(text);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123": microseconds. */
static int64_t pressure_us(const char *path)
{
    char *text = proc_file(path);
    const char *total = strstr(text, "total=");
    int64_t us = total ? strtoll(total + 6, NULL, 10) : -1;
    mem_free(text);
    return us;
}

/* "on a processor, waiting for one, times", of this thread, in ns. */
static int64_t queued_us(void)
{
    char *text = proc_file("/proc/thread-self/schedstat");
    const char *space = strchr(text, ' ');
    int64_t us = space ? strtoll(space, NULL, 10) / 1000 : -1;
    mem_free(text);
    return us;
}

static struct cgroup cpu_group, memory_group;
static pthread_once_t groups_once = PTHREAD_ONCE_INIT;

static void find_groups(void)
{
    char *own = proc_file("/proc/self/cgroup"), *mounts = proc_file("/proc/self/mountinfo");
    (void)!cgroup_find(&cpu_group, own, mounts, "cpu", "");
    (void)!cgroup_find(&memory_group, own, mounts, "memory", "");
    mem_free(own);
    mem_free(mounts);
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec ts = {0};
    clock_gettime(clock, &ts);
    return ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

void health_begin(struct health *h)
{
    struct rusage use = {0};
    *h = (struct health){.cpu_us = clock_process_cpu_us(), .thread_us = clock_thread_cpu_us()};
    pthread_once(&groups_once, find_groups);
    read_machine(h);
    h->queued_us = queued_us();
    h->throttled_us = cgroup_cpu(&cpu_group).throttled_us;
    h->memory_us = pressure_us("/proc/pressure/memory");
    h->memory_limits = cgroup_memory(&memory_group);
    getrusage(RUSAGE_SELF, &use);
    h->faults = (uint64_t)use.ru_majflt;
    for (size_t i = 0; i < SHORTAGE_COUNT; i++)
        h->short_of[i] = shortage_count((enum shortage)i);
    h->away_us = shortage_away_us();
    h->at = mono_now();
    h->wall_us = wall_now().us;
    h->boot_us = clock_us(CLOCK_BOOTTIME);
}

/* ---- stretches ---- */

static double share(int64_t from, int64_t to, int64_t us)
{
    return from < 0 || to < from ? 0 : (double)(to - from) / (double)us;
}

struct health_span health_between(const struct health *from, const struct health *to)
{
    int64_t us = mono_diff(to->at, from->at);
    struct health_span s = {.us = us > 0 ? us : 1, .machine = -1};
    double ticks = (double)(to->total - from->total);
    s.own = share(from->cpu_us, to->cpu_us, s.us);
    s.thread = share(from->thread_us, to->thread_us, s.us);
    s.queued = share(from->queued_us, to->queued_us, s.us);
    s.throttled = share(from->throttled_us, to->throttled_us, s.us);
    s.memory = share(from->memory_us, to->memory_us, s.us);
    if (from->total > 0 && to->total > from->total) {
        s.machine = (double)(to->busy - from->busy) / ticks;
        s.stolen = (double)(to->stolen - from->stolen) / ticks;
    }
    if (to->memory_limits > from->memory_limits)
        s.memory_limits = (double)(to->memory_limits - from->memory_limits);
    s.faults_per_s = (double)(to->faults - from->faults) * 1e6 / (double)s.us;
    for (size_t i = 0; i < SHORTAGE_COUNT; i++)
        s.short_of[i] = (double)(to->short_of[i] - from->short_of[i]);
    s.away_s = (double)(to->away_us - from->away_us) / 1e6;
    s.suspended_s = (double)(to->boot_us - from->boot_us - us) / 1e6;
    s.clock_s = (double)(to->wall_us - from->wall_us - (to->boot_us - from->boot_us)) / 1e6;
    return s;
}

struct health_span health_since(const struct health *h)
{
    struct health now;
    health_begin(&now);
    struct health_span s = health_between(h, &now);
    s.quota = cgroup_cpu(&cpu_group).quota;
    return s;
}

struct health_span health_lap(struct health *h)
{
    struct health before = *h;
    struct health_span s = health_since(&before);
    health_begin(h);
    return s;
}

/* ---- the causes ---- */

/* The figure of each; what is short or stands still counts at once, what others do only where it made timers late. */
static double ports(const struct health_span *s)
{
    return s->short_of[SHORTAGE_PORTS];
}

static double files(const struct health_span *s)
{
    return s->short_of[SHORTAGE_FILES];
}

static double no_memory(const struct health_span *s)
{
    return s->short_of[SHORTAGE_MEMORY];
}

static double throttled(const struct health_span *s)
{
    return s->throttled * 100;
}

static double own(const struct health_span *s)
{
    return s->us < OWN_LEAST ? 0 : s->thread * 100;
}

static double away(const struct health_span *s)
{
    return s->away_s;
}

static double suspended(const struct health_span *s)
{
    return s->suspended_s;
}

static double clock_set(const struct health_span *s)
{
    return fabs(s->clock_s);
}

static double stolen(const struct health_span *s)
{
    return s->stolen * 100;
}

/* Per cent of the time in which somebody waited for memory. */
static double memory(const struct health_span *s)
{
    return s->memory * 100;
}

/* Times in a second that our control group's limit was met, or a page of ours had to come from disk. */
static double paging(const struct health_span *s)
{
    return s->memory_limits * 1e6 / (double)s->us + s->faults_per_s;
}

static double others(const struct health_span *s)
{
    return s->machine * 100;
}

static double queued(const struct health_span *s)
{
    return s->queued * 100;
}

static const struct rule {
    const char *key;
    double (*figure)(const struct health_span *s);
    double least;
    bool late;   /* only where timers were late */
    bool sums;   /* of several stretches the sum is told, else the worst */
    bool shared; /* others on this machine: a server beside us has it as well */
    int decimals;
    const char *before, *after, *advice; /* around the figure */
} rules[HEALTH_CAUSES] = {
    [HEALTH_PORTS] = {"local_ports", ports, 1, false, true, false, 0, "no local ports were left (", " times)",
                      "widen net.ipv4.ip_local_port_range, or start fewer apps"},
    [HEALTH_FILES] = {"open_files", files, 1, false, true, false, 0, "no open files were left (", " times)",
                      "raise the limit (ulimit -Hn), or start fewer apps"},
    [HEALTH_NO_MEMORY] = {"no_memory", no_memory, 1, false, true, false, 0,
                          "the system had no memory left for a connection (", " times)",
                          "start fewer apps, or give this machine more memory"},
    [HEALTH_QUOTA] = {"cpu_quota", throttled, 5, false, false, false, 0, "its CPU quota was used up in ",
                      " % of the time", "raise the quota of its control group or container"},
    [HEALTH_OWN] = {"own_cpu", own, 90, false, false, false, 0, "it used ", " % of a processor itself",
                    "start fewer apps here, others on a second machine"},
    [HEALTH_AWAY] = {"paused", away, 1, false, true, false, 1, "it did not run for ", " s (stopped, frozen or held up)",
                     "measure again without the pause"},
    [HEALTH_SUSPENDED] = {"suspended", suspended, 1, false, true, false, 1, "this machine was suspended for ", " s",
                          "measure again on a machine that stays awake"},
    [HEALTH_CLOCK] = {"clock", clock_set, 1, false, true, false, 1, "this machine's clock was set by ", " s",
                      "measure again once the clock is in step"},
    [HEALTH_STOLEN] = {"stolen_time", stolen, 2, true, false, false, 0, "the hypervisor took ",
                       " % of this machine's processor time", "measure on a machine of its own"},
    [HEALTH_MEMORY] = {"memory", memory, 5, true, false, false, 0, "memory was waited for in ", " % of the time",
                       "give this machine more memory, or start fewer apps"},
    [HEALTH_PAGING] = {"memory", paging, 20, true, false, false, 0, "its memory was taken from it ", " times a second",
                       "raise the memory limit of its control group, or start fewer apps"},
    [HEALTH_OTHERS] = {"busy_machine", others, 95, true, false, true, 0, "this machine's processors were ", " % busy",
                       "measure on a quiet machine"},
    [HEALTH_QUEUED] = {"busy_machine", queued, 5, true, false, true, 0, "it waited for a processor in ",
                       " % of the time", "measure on a quiet machine"},
    [HEALTH_LATE] = {"late", NULL, LATE_ALONE, false, false, false, 2, "its timers were up to ",
                     " s late (p99), and no cause was found", "measure again"},
};

static bool shows(const struct rule *r, double figure, int64_t lag_p99_us)
{
    return figure >= r->least && (!r->late || lag_p99_us > LATE_US);
}

static void keep(struct health_verdict *v, enum health_cause c, double figure, const struct health_span *s)
{
    bool worst = figure > v->figure[c];
    v->causes |= 1u << c;
    if (worst)
        v->at[c] = *s;
    if (rules[c].sums)
        v->figure[c] += figure;
    else if (worst)
        v->figure[c] = figure;
}

unsigned health_judge(struct health_verdict *v, const struct health_span *s, int64_t lag_p99_us)
{
    unsigned found = 0;
    for (unsigned c = 0; c < HEALTH_LATE; c++)
        if (shows(&rules[c], rules[c].figure(s), lag_p99_us)) {
            keep(v, (enum health_cause)c, rules[c].figure(s), s);
            found |= 1u << c;
        }
    double late_s = (double)lag_p99_us / 1e6;
    if (!found && late_s >= LATE_ALONE) {
        keep(v, HEALTH_LATE, late_s, s);
        found = 1u << HEALTH_LATE;
    }
    return found;
}

void health_forget(struct health_verdict *v)
{
    struct health_verdict before = *v;
    *v = (struct health_verdict){0};
    for (unsigned c = HEALTH_PORTS; c <= HEALTH_NO_MEMORY; c++)
        if (before.causes & (1u << c))
            keep(v, (enum health_cause)c, before.figure[c], &before.at[c]);
}

static unsigned first_of(unsigned causes)
{
    unsigned c = 0;
    while (c < HEALTH_CAUSES && !(causes & (1u << c)))
        c++;
    return c;
}

/* What belongs to a cause beside its own figure. */
static void put_rest(const struct health_verdict *v, enum health_cause c, char *dst, size_t n)
{
    const struct health_span *s = &v->at[c];
    dst[0] = '\0';
    if (c == HEALTH_QUOTA && s->quota > 0)
        str_format(dst, n, " (%.0f %% of a processor)", s->quota * 100);
    if (c == HEALTH_OTHERS)
        str_format(dst, n, ", %.0f %% of one by this process", s->own * 100);
}

char *health_text(const struct health_verdict *v, char *dst, size_t n)
{
    size_t at = 0;
    dst[0] = '\0';
    if (!v->causes)
        return dst;
    for (unsigned c = 0; c < HEALTH_CAUSES; c++) {
        const struct rule *r = &rules[c];
        char rest[80];
        if (!(v->causes & (1u << c)) || (c > 0 && r->key == rules[c - 1].key && v->causes & (1u << (c - 1))))
            continue; /* each is told once */
        put_rest(v, (enum health_cause)c, rest, sizeof rest);
        str_format(dst + at, n - at, "%s%s%.*f%s%s", at ? ", " : "", r->before, r->decimals, v->figure[c], r->after,
                   rest);
        at = strlen(dst); /* what does not fit is cut */
    }
    str_format(dst + at, n - at, ": %s", rules[first_of(v->causes)].advice);
    return dst;
}

const char *health_cause_key(enum health_cause c)
{
    return c < HEALTH_CAUSES ? rules[c].key : NULL;
}

const char *health_key(const struct health_verdict *v)
{
    return health_cause_key((enum health_cause)first_of(v->causes));
}

bool health_crowded(unsigned causes)
{
    for (unsigned c = 0; c < HEALTH_CAUSES; c++)
        if (causes & (1u << c) && !rules[c].shared)
            return false;
    return causes != 0;
}

/* ---- in the result ---- */

int64_t health_rss_bytes(void)
{
    struct proc self;
    int64_t now, peak;
    return proc_of_pid(getpid(), &self) && proc_memory(&self, &now, &peak) ? now : 0;
}

struct generator_summary health_summary(const struct hist *lag, const struct health_verdict *v)
{
    struct proc self;
    int64_t now, peak = 0;
    if (!proc_of_pid(getpid(), &self) || !proc_memory(&self, &now, &peak))
        peak = 0;
    struct generator_summary g = {.known = true,
                                  .cpu_us = clock_process_cpu_us(),
                                  .lag_p99_us = hist_percentile(lag, 99),
                                  .peak_rss_bytes = peak,
                                  .limited = v->causes != 0,
                                  .cause = health_key(v)};
    health_text(v, g.why, sizeof g.why);
    return g;
}
