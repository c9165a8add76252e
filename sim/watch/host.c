/* The fields are those of proc(5): /proc/stat, meminfo, vmstat, diskstats (Documentation/admin-guide/iostats.rst),
 * net/dev, net/sockstat, sys/fs/file-nr. Of disks only whole ones count: a partition's work is its disk's. */
#include "sim/watch/host.h"
#include "base/mem.h"
#include "drive/health.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const host_files[] = {"stat",    "meminfo",      "vmstat",         "diskstats",
                                  "net/dev", "net/sockstat", "sys/fs/file-nr", NULL};

#define FIELDS_MAX 24

/* The words of a line, blanks between them. */
static size_t words_of(struct sv line, struct sv *out)
{
    size_t n = 0;
    while (n < FIELDS_MAX) {
        while (line.n && isspace((unsigned char)*line.p))
            line = (struct sv){line.p + 1, line.n - 1};
        if (!line.n)
            break;
        size_t len = 0;
        while (len < line.n && !isspace((unsigned char)line.p[len]))
            len++;
        out[n++] = (struct sv){line.p, len};
        line = (struct sv){line.p + len, line.n - len};
    }
    return n;
}

static uint64_t number(struct sv word)
{
    uint64_t v = 0;
    return sv_to_u64(word, &v) ? v : 0;
}

/* ---- one function a file, a line at a time ---- */

static void on_stat(const struct sv *w, size_t n, struct host_counters *out)
{
    if (n == 0)
        return;
    const struct sv line = {w[0].p, (size_t)(w[n - 1].p + w[n - 1].n - w[0].p)};
    if (!health_parse_cpu(line, &out->cpu_busy, &out->cpu_total) && n > 1 && sv_eq_cstr(w[0], "procs_running"))
        out->running = number(w[1]);
}

static void on_meminfo(const struct sv *w, size_t n, struct host_counters *out)
{
    static const struct {
        const char *name;
        int sign;
        size_t offset;
    } rows[] = {{"MemTotal:", 1, offsetof(struct host_counters, mem_used_kib)},
                {"MemAvailable:", -1, offsetof(struct host_counters, mem_used_kib)},
                {"SwapTotal:", 1, offsetof(struct host_counters, swap_used_kib)},
                {"SwapFree:", -1, offsetof(struct host_counters, swap_used_kib)}};
    for (size_t i = 0; i < ARRAY_LEN(rows) && n > 1; i++)
        if (sv_eq_cstr(w[0], rows[i].name)) {
            uint64_t *at = (uint64_t *)((char *)out + rows[i].offset);
            *at = rows[i].sign > 0 ? *at + number(w[1]) : *at - number(w[1]);
        }
}

static void on_vmstat(const struct sv *w, size_t n, struct host_counters *out)
{
    if (n > 1 && (sv_eq_cstr(w[0], "pswpin") || sv_eq_cstr(w[0], "pswpout")))
        out->swap_pages += number(w[1]);
}

/* sda, vdb, xvda, nvme0n1, mmcblk0; not sda1, nvme0n1p1, dm-0, loop0. */
static bool whole_disk(struct sv name)
{
    static const char *const lettered[] = {"sd", "vd", "xvd", "hd"};
    for (size_t i = 0; i < ARRAY_LEN(lettered); i++)
        if (sv_starts(name, sv_of(lettered[i])))
            return isalpha((unsigned char)name.p[name.n - 1]);
    return (sv_starts(name, SV("nvme")) || sv_starts(name, SV("mmcblk"))) && !memchr(name.p + 1, 'p', name.n - 1);
}

static void on_diskstats(const struct sv *w, size_t n, struct host_counters *out)
{
    if (n < 14 || !whole_disk(w[2]))
        return;
    out->disk_ios += number(w[3]) + number(w[7]);
    out->disk_ms += number(w[6]) + number(w[10]);
    out->disk_writes += number(w[7]);
    out->disk_write_ms += number(w[10]);
    out->disk_sectors += number(w[5]) + number(w[9]);
    out->disk_weighted_ms += number(w[13]);
}

/* "eth0: received … transmitted …"; the colon may stand right before the first number. The loopback counts too: between
 * a server and its database on one machine that is the network. Each of its bytes is received and sent once. */
static void on_net(const struct sv *w, size_t n, struct host_counters *out)
{
    const char *colon = n ? memchr(w[0].p, ':', w[0].n) : NULL;
    if (!colon)
        return;
    bool apart = colon == w[0].p + w[0].n - 1;
    if (apart && n > 9)
        out->net_bytes += number(w[1]) + number(w[9]);
    else if (!apart && n > 8)
        out->net_bytes += number((struct sv){colon + 1, (size_t)(w[0].p + w[0].n - colon - 1)}) + number(w[8]);
}

static void on_sockstat(const struct sv *w, size_t n, struct host_counters *out)
{
    if (n > 2 && sv_eq_cstr(w[0], "TCP:"))
        out->tcp_in_use = number(w[2]);
}

static void on_file_nr(const struct sv *w, size_t n, struct host_counters *out)
{
    if (n)
        out->open_files = number(w[0]);
}

static void (*const readers[])(const struct sv *w, size_t n, struct host_counters *out) = {
    on_stat, on_meminfo, on_vmstat, on_diskstats, on_net, on_sockstat, on_file_nr};

bool host_parse(struct sv text, struct host_counters *out)
{
    struct sv line, words[FIELDS_MAX];
    int section = -1;
    *out = (struct host_counters){0};
    while (sv_split(&text, '\n', &line)) {
        if (!sv_starts(line, SV("== "))) {
            if (section >= 0)
                readers[section](words, words_of(line, words), out);
            continue;
        }
        section = -1;
        for (int i = 0; host_files[i]; i++)
            if (sv_eq_cstr((struct sv){line.p + 3, line.n - 3}, host_files[i]))
                section = i;
    }
    return out->cpu_total > 0 && out->mem_used_kib > 0;
}

static double per(uint64_t now, uint64_t before, double by)
{
    return by > 0 && now >= before ? (double)(now - before) / by : WATCH_UNKNOWN;
}

void host_figures(const struct host_counters *b, const struct host_counters *n, const struct host_counters *first,
                  int64_t elapsed_us, struct watch_values *out)
{
    double s = (double)elapsed_us / 1e6;
    uint64_t swap = n->swap_used_kib > first->swap_used_kib ? n->swap_used_kib - first->swap_used_kib : 0;
    bool ios = n->disk_ios > b->disk_ios, writes = n->disk_writes > b->disk_writes;
    out->v[WATCH_CPU] = per(n->cpu_busy, b->cpu_busy, (double)(n->cpu_total - b->cpu_total) / 100);
    out->v[WATCH_RUN_QUEUE] = (double)n->running;
    out->v[WATCH_MEMORY] = (double)n->mem_used_kib / 1024;
    out->v[WATCH_SWAP] = (double)swap / 1024;
    out->v[WATCH_SWAP_IO] = per(n->swap_pages, b->swap_pages, s);
    out->v[WATCH_DISK_QUEUE] = per(n->disk_weighted_ms, b->disk_weighted_ms, s * 1e3);
    out->v[WATCH_DISK_AWAIT] = ios ? per(n->disk_ms, b->disk_ms, (double)(n->disk_ios - b->disk_ios)) : 0;
    out->v[WATCH_DISK_WRITE] =
        writes ? per(n->disk_write_ms, b->disk_write_ms, (double)(n->disk_writes - b->disk_writes)) : 0;
    out->v[WATCH_DISK_BYTES] = per(n->disk_sectors * 512, b->disk_sectors * 512, s * 1e6);
    out->v[WATCH_NET] = per(n->net_bytes, b->net_bytes, s * 1e6);
    out->v[WATCH_CONNECTIONS] = (double)n->tcp_in_use;
    out->v[WATCH_OPEN_FILES] = (double)n->open_files;
}

/* ---- processes ---- */

#define TREE_MAX 4096

static bool read_text(int64_t pid, const char *name, char *dst, size_t cap)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(dst, 1, cap - 1, f);
    fclose(f);
    dst[n] = '\0';
    return n > 0;
}

/* Fields of /proc/PID/stat behind the name, which may hold anything: ppid is word 1, utime and stime 11 and 12. */
static bool stat_of(int64_t pid, int64_t *ppid, uint64_t *ticks)
{
    char text[1024];
    struct sv w[FIELDS_MAX];
    const char *after = read_text(pid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    if (!after || words_of(sv_of(after + 1), w) < 13 || !sv_to_i64(w[1], ppid))
        return false;
    *ticks = number(w[11]) + number(w[12]);
    return true;
}

static uint64_t pss_of(int64_t pid)
{
    char text[2048];
    struct sv w[FIELDS_MAX], rest, line;
    if (!read_text(pid, "smaps_rollup", text, sizeof(text)))
        return 0;
    rest = sv_of(text);
    while (sv_split(&rest, '\n', &line))
        if (words_of(line, w) > 1 && sv_eq_cstr(w[0], "Pss:"))
            return number(w[1]);
    return 0;
}

static uint64_t files_of(int64_t pid)
{
    char path[64];
    uint64_t n = 0;
    snprintf(path, sizeof(path), "/proc/%lld/fd", (long long)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* Every process with its parent, once; then the children of what is in the tree are in it too, until no more are. */
bool tree_read(int64_t root, struct tree_counters *out)
{
    struct row {
        int64_t pid, parent;
        uint64_t ticks;
        bool in;
    } *rows = mem_alloc(TREE_MAX * sizeof(*rows));
    size_t n = 0;
    bool found = false, grown = true;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && n < TREE_MAX && (e = readdir(d));) {
        struct row r = {0};
        if (sv_to_i64(sv_of(e->d_name), &r.pid) && stat_of(r.pid, &r.parent, &r.ticks)) {
            r.in = r.pid == root;
            found = found || r.in;
            rows[n++] = r;
        }
    }
    if (d)
        closedir(d);
    while (grown) {
        grown = false;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; !rows[i].in && k < n; k++)
                if (rows[k].in && rows[k].pid == rows[i].parent)
                    rows[i].in = grown = true;
    }
    *out = (struct tree_counters){0};
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].in)
            continue;
        out->cpu_ticks += rows[i].ticks;
        out->pss_kib += pss_of(rows[i].pid);
        out->open_files += files_of(rows[i].pid);
    }
    mem_free(rows);
    return found;
}
