#include "drive/cgroup.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- which folders ---- */

static bool has_word(struct sv list, const char *word)
{
    struct sv item;
    while (sv_split(&list, ',', &item))
        if (sv_eq_cstr(item, word))
            return true;
    return false;
}

/* "4:cpu,cpuacct:/a/b" of version 1, "0::/a/b" of version 2. */
static bool path_within(const char *cgroups, const char *controller, bool v2, struct sv *path)
{
    struct sv rest = sv_of(cgroups), line, id, names;
    while (sv_split(&rest, '\n', &line)) {
        if (!sv_split(&line, ':', &id) || !sv_split(&line, ':', &names))
            continue;
        *path = line;
        if (v2 ? sv_eq_cstr(id, "0") && !names.n : has_word(names, controller))
            return true;
    }
    return false;
}

struct mount {
    struct sv root, point; /* the group that is mounted, and where */
};

/* "36 35 98:0 /root /point rw,noatime master:1 - cgroup cgroup rw,cpu" */
static bool mount_of(struct sv line, const char *controller, bool v2, struct mount *m)
{
    struct sv field, fields[5], type, source;
    size_t n = 0;
    while (n < ARRAY_LEN(fields) && sv_split(&line, ' ', &field))
        fields[n++] = field;
    while (sv_split(&line, ' ', &field) && !sv_eq_cstr(field, "-"))
        ;
    if (n < ARRAY_LEN(fields) || !sv_split(&line, ' ', &type) || !sv_split(&line, ' ', &source))
        return false;
    *m = (struct mount){fields[3], fields[4]};
    return v2 ? sv_eq_cstr(type, "cgroup2") : sv_eq_cstr(type, "cgroup") && has_word(line, controller);
}

static bool mounted(const char *mountinfo, const char *controller, bool v2, struct mount *m)
{
    struct sv rest = sv_of(mountinfo), line;
    while (sv_split(&rest, '\n', &line))
        if (mount_of(line, controller, v2, m))
            return true;
    return false;
}

/* What of the path lies below the mount; nothing when the mount shows another part of the tree. */
static struct sv below(struct sv path, struct sv root)
{
    if (sv_eq_cstr(root, "/"))
        return sv_starts(path, SV("/..")) ? SV("") : path;
    if (!sv_starts(path, root) || (path.n > root.n && path.p[root.n] != '/'))
        return SV("");
    return (struct sv){path.p + root.n, path.n - root.n};
}

static struct sv parent(struct sv path)
{
    while (path.n && path.p[path.n - 1] != '/')
        path.n--;
    return (struct sv){path.p, path.n ? path.n - 1 : 0};
}

static void add_level(struct cgroup *g, const char *root, struct sv point, struct sv path)
{
    int n = snprintf(g->paths[g->n], CGROUP_PATH_MAX, "%s" SV_FMT SV_FMT, root, SV_ARG(point), SV_ARG(path));
    if (n > 0 && n < CGROUP_PATH_MAX)
        g->n++;
}

static bool find_version(struct cgroup *g, const char *cgroups, const char *mountinfo, const char *controller,
                         const char *root)
{
    struct mount m;
    struct sv path;
    if (!path_within(cgroups, controller, g->v2, &path) || !mounted(mountinfo, controller, g->v2, &m))
        return false;
    path = below(path, m.root);
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    for (; path.n && g->n + 1 < CGROUP_LEVELS; path = parent(path))
        add_level(g, root, m.point, path);
    add_level(g, root, m.point, SV(""));
    return g->n > 0;
}

bool cgroup_find(struct cgroup *g, const char *cgroups, const char *mountinfo, const char *controller, const char *root)
{
    for (int v2 = 0; v2 <= 1; v2++) { /* with both mounted, the controller is of version 1 where that names it */
        *g = (struct cgroup){.v2 = v2};
        if (find_version(g, cgroups, mountinfo, controller, root))
            return true;
    }
    return false;
}

/* ---- what they say ---- */

/* Into text[cap], "" when it is not there. */
static const char *file_text(const char *folder, const char *name, char *text, size_t cap)
{
    char path[CGROUP_PATH_MAX + 40];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, cap - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static int64_t first_number(const char *text)
{
    struct sv rest = sv_of(text), word;
    int64_t v;
    return sv_split(&rest, ' ', &word) && sv_to_i64(sv_trim(word), &v) ? v : -1;
}

/* "nr_throttled 12" among lines of that form; 0: not there. */
static uint64_t named_number(const char *text, const char *name)
{
    struct sv rest = sv_of(text), line, word;
    uint64_t v;
    while (sv_split(&rest, '\n', &line))
        if (sv_split(&line, ' ', &word) && sv_eq_cstr(word, name) && sv_to_u64(sv_trim(line), &v))
            return v;
    return 0;
}

/* -1: no quota. */
static int64_t quota_of(const struct cgroup *g, const char *folder, int64_t *period_us)
{
    char text[128], period[64];
    if (!g->v2) {
        *period_us = first_number(file_text(folder, "cpu.cfs_period_us", period, sizeof period));
        return first_number(file_text(folder, "cpu.cfs_quota_us", text, sizeof text));
    }
    const char *space = strchr(file_text(folder, "cpu.max", text, sizeof text), ' ');
    *period_us = space ? first_number(space + 1) : -1;
    return first_number(text); /* "max": no number */
}

struct cgroup_cpu cgroup_cpu(const struct cgroup *g)
{
    struct cgroup_cpu c = {0};
    char text[1024];
    for (size_t i = 0; i < g->n; i++) {
        int64_t period_us, quota_us = quota_of(g, g->paths[i], &period_us);
        if (quota_us <= 0 || period_us <= 0)
            continue;
        double quota = (double)quota_us / (double)period_us;
        c.quota = c.quota > 0 && c.quota < quota ? c.quota : quota;
        c.throttled_us +=
            (int64_t)named_number(file_text(g->paths[i], "cpu.stat", text, sizeof text), "nr_throttled") * period_us;
    }
    return c;
}

uint64_t cgroup_memory(const struct cgroup *g)
{
    static const char *const events[] = {"high", "max", "oom", "oom_kill"};
    uint64_t n = 0;
    char text[1024];
    for (size_t i = 0; i < g->n; i++) {
        if (!g->v2) {
            int64_t v = first_number(file_text(g->paths[i], "memory.failcnt", text, sizeof text));
            n += v > 0 ? (uint64_t)v : 0;
            continue;
        }
        file_text(g->paths[i], "memory.events", text, sizeof text);
        for (size_t k = 0; k < ARRAY_LEN(events); k++)
            n += named_number(text, events[k]);
    }
    return n;
}
