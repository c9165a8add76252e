/* `sim doctor`: what this machine and the target can do, what is missing, and the one command that brings it. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "drive/api/caps.h"
#include "drive/belong.h"
#include "drive/stack/stack.h"
#include "net/work.h"
#include "sim/app/open_files.h"
#include "store/kv.h"
#include "store/pg.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum verdict { FINE, NOTED, MISSING };
struct doctor {
    struct cmd_ctx *ctx;
    unsigned missing;
    struct buf packages; /* Debian's, that would bring what is missing */
    const char *command; /* another command that would; NULL: none is needed */
    const char *next;    /* what to call when all is well */
};

static void row(struct doctor *d, enum verdict v, const char *name, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void row(struct doctor *d, enum verdict v, const char *name, const char *fmt, ...)
{
    static const char *const words[] = {"ok", "note", "missing"};
    va_list ap;
    fprintf(d->ctx->out, "  %-8s %-14s ", words[v], name);
    va_start(ap, fmt);
    vfprintf(d->ctx->out, fmt, ap);
    va_end(ap);
    fputc('\n', d->ctx->out);
    if (v == MISSING)
        d->missing++;
}

/* ---- this machine ---- */

static void need(struct doctor *d, const struct stack_need *n, bool docker)
{
    row(d, n->there ? FINE : docker ? NOTED : MISSING, n->name, "%s", n->detail);
    if (n->there || docker)
        return;
    if (!n->package)
        d->command = d->command ? d->command : n->command;
    else if (buf_appendf(&d->packages, " %s", n->package))
        d->command = "make deps"; /* too many to list */
}

static MAY_YIELD enum err stack_rows(struct doctor *d, struct errinfo *ei)
{
    struct stack *s = NULL;
    struct stack_conf conf = {0};
    struct stack_need needs[STACK_NEEDS_MAX];
    bool docker = false;
    enum err err = stack_open(&s, d->ctx->loop, d->ctx->http, &conf, false, ei);
    if (err)
        return err;
    size_t n = stack_needs(s, needs, &docker);
    row(d, FINE, "stack", "%s",
        docker ? "a Docker engine answers: `sim stack up` uses containers"
               : "no Docker engine answers: `sim stack up` uses native processes");
    for (size_t i = 0; i < n; i++)
        need(d, &needs[i], docker);
    stack_close(&s);
    return ERR_OK;
}

static void files_row(struct doctor *d)
{
    struct rlimit r;
    unsigned apps = 0;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return;
    if (r.rlim_max == RLIM_INFINITY) {
        row(d, FINE, "open files", "no limit");
        return;
    }
    for (unsigned step = 1u << 20; step > 0; step >>= 1)
        if (open_files_needed(apps + step, (apps + step) / DRIVE_STREAMS_PER_LOGIN + 1) <= r.rlim_max)
            apps += step;
    row(d, r.rlim_max < 4096 ? NOTED : FINE, "open files", "%llu allowed: enough for %s in one process",
        (unsigned long long)r.rlim_max, COUNTED(apps, "app"));
}

static void size_rows(struct doctor *d)
{
    char memory[32], disk[32];
    struct statvfs fs;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    row(d, cpus < 2 ? NOTED : FINE, "size", "%ld CPUs, %s of memory", cpus, str_bytes(memory, sizeof memory, bytes));
    if (statvfs(".", &fs) == 0) {
        uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
        row(d, left < UINT64_C(4) << 30 ? NOTED : FINE, "disk", "%s free here; a tree of scale 1 takes about 3 GiB",
            str_bytes(disk, sizeof disk, left));
    }
}

/* ---- the target ---- */

struct stream_look {
    bool open;
    struct done done;
};

static void on_stream_open(void *arg)
{
    struct stream_look *l = arg;
    l->open = true;
    done_set(&l->done);
}

static void on_stream_event(void *arg, const struct api_event *ev)
{
    (void)arg, (void)ev;
}

static void on_stream_close(void *arg, const struct api_result *r)
{
    struct stream_look *l = arg;
    (void)r;
    done_set(&l->done);
}

static MAY_YIELD bool has_events(struct doctor *d, struct api *a)
{
    static const struct api_stream_ops ops = {on_stream_open, on_stream_event, on_stream_close};
    struct stream_look look = {0};
    struct api_stream *stream = NULL;
    struct errinfo ei;
    if (api_stream_open(&stream, a, NULL, &ops, &look, &ei))
        return false;
    done_wait_until(d->ctx->loop, &look.done, mono_add(mono_now(), 5 * US_PER_S));
    api_stream_close(&stream);
    return look.open;
}

#define LISTINGS_MOST 30

/* A file: one used lately, else the first that a look into some folders finds. NULL: none. What listings show about the
 * server is noted on the way. */
static MAY_YIELD const char *find_file(struct api *a, struct arena *mem)
{
    const char *folders[LISTINGS_MOST] = {NULL}; /* the root is the first */
    struct drive_listing l = {0};
    struct api_result r;
    if (api_recent(a, 1, mem, &l, &r) == ERR_OK && l.n > 0 && !l.items[0].folder)
        return l.items[0].id;
    for (size_t i = 0, n = 1; i < n; i++) {
        if (api_list(a, folders[i], mem, &l, &r) != ERR_OK)
            return NULL;
        for (size_t k = 0; k < l.n; k++) {
            if (!l.items[k].folder)
                return l.items[k].id;
            if (n < LISTINGS_MOST)
                folders[n++] = l.items[k].id;
        }
    }
    return NULL;
}

/* Locks, versions and ranges show for sure on a file alone. Returns what was tried. */
static MAY_YIELD unsigned probe_file(struct api *a)
{
    struct arena *mem = arena_new(4096);
    struct api_result r;
    struct drive_file f;
    struct api_lock lock;
    const char *id = find_file(a, mem);
    if (id) {
        if (api_lock(a, id, 30, NULL, &lock, &r) == ERR_OK && r.outcome == OUT_OK)
            (void)!api_unlock(a, id, lock.id, &r);
        (void)!api_download(a, id, 0, 1, NULL, NULL, NULL, 0, &r);
        if (api_info(a, id, mem, &f, NULL, &r) == ERR_OK && r.outcome == OUT_OK && !f.version)
            api_set_caps(a, api_caps(a) & ~(unsigned)API_CAP_VERSIONS);
    }
    arena_free(&mem);
    return id ? API_CAP_LOCKS | API_CAP_RANGES | API_CAP_VERSIONS : 0;
}

static void caps_row(struct doctor *d, enum verdict v, const char *name, unsigned caps, const char *after)
{
    struct buf text = BUF_INIT(400);
    enum err err = ERR_OK;
    for (unsigned cap = 1; cap < API_CAP_ALL && !err; cap <<= 1)
        if (caps & cap)
            err = buf_appendf(&text, "%s%s", text.len ? ", " : "", api_cap_text((enum api_cap)cap));
    if (text.len)
        row(d, v, name, "%s%s", buf_cstr(&text), after);
    buf_done(&text);
}

static void lack_rows(struct doctor *d, unsigned caps)
{
    for (unsigned cap = 1; cap < API_CAP_ALL; cap <<= 1)
        if (!(caps & cap))
            row(d, NOTED, "it lacks", "%s: %s", api_cap_text((enum api_cap)cap), caps_instead((enum api_cap)cap, caps));
}

static MAY_YIELD void capability_rows(struct doctor *d)
{
    struct api_conf conf = api_conf_of(d->ctx);
    conf.timeout_us = 15 * US_PER_S;
    unsigned assumed = API_CAP_LOCKS | API_CAP_RANGES | API_CAP_VERSIONS;
    struct api *a = NULL;
    struct api_result r = {0};
    struct errinfo ei;
    if (api_new(&a, &conf, &ei)) {
        row(d, MISSING, "capabilities", "%s", err_message(&ei));
        return;
    }
    char owner[TARGET_LOGIN_MAX + 1];
    target_owner(d->ctx->target, 0, owner, sizeof owner);
    const char *password = target_password(d->ctx->target, owner);
    bool in = api_enter(a, owner, password, &r) == ERR_OK && r.outcome == OUT_OK;
    if (!in) {
        d->next = "sim seed 2 0.02";
        row(d, NOTED, "capabilities", "not known before `sim seed`: %s cannot sign in (%s)", owner, r.reason);
    } else if (api_probe(a, &r) == ERR_OK) {
        unsigned tried = probe_file(a);
        assumed &= ~tried;
        d->next = tried ? "sim run 5 10 30 15" : "sim seed 2 0.02";
        if (!has_events(d, a))
            api_set_caps(a, api_caps(a) & ~(unsigned)API_CAP_EVENTS);
        caps_row(d, FINE, "it has", api_caps(a) & ~assumed, "");
        lack_rows(d, api_caps(a));
        caps_row(d, NOTED, "assumed", api_caps(a) & assumed, " (the first call of its kind will show)");
        d->ctx->result->caps_known = true;
        d->ctx->result->caps = api_caps(a);
    } else {
        row(d, MISSING, "capabilities", "%s", r.reason);
    }
    api_free(&a);
}

static void sessions_row(struct doctor *d)
{
    struct token_store_view v;
    api_space_look(d->ctx->space, d->ctx->target->password, &v);
    if (!v.folder)
        row(d, NOTED, "sessions", "not kept between commands: %s", v.why);
    else if (v.why[0])
        row(d, NOTED, "sessions", "those kept in %s are not used: %s", v.folder, v.why);
    else
        row(d, FINE, "sessions", "kept in %s: %zu of %zu can still be used", v.folder, v.usable, v.all);
}

static MAY_YIELD void database_row(struct doctor *d)
{
    const char *url = d->ctx->target->database_url;
    struct pg_pool *pool = NULL;
    struct pg_result *res = NULL;
    struct errinfo ei;
    if (!url) {
        row(d, NOTED, "database", "DATABASE_URL is not set: the checks that read rows will not run");
        return;
    }
    enum err err = pg_pool_new(&pool, d->ctx->loop, url, 1, &ei);
    if (!err)
        err = pg_run(pool, "SELECT current_setting('server_version'), current_setting('max_connections')", 0, NULL,
                     &res, &ei);
    if (err)
        row(d, MISSING, "database", "%s", err_message(&ei));
    else
        row(d, FINE, "database", "Postgres %s, %s connections", pg_str(res, 0, 0), pg_str(res, 0, 1));
    pg_result_free(&res);
    pg_pool_free(&pool);
}

static MAY_YIELD void redis_row(struct doctor *d)
{
    const char *url = d->ctx->target->redis_url;
    struct kv *k = NULL;
    struct errinfo ei;
    if (!url)
        return;
    enum err err = kv_new(&k, d->ctx->loop, url, &ei);
    if (!err)
        err = kv_ready(k, mono_add(mono_now(), 5 * US_PER_S), &ei);
    row(d, err ? MISSING : FINE, "Redis", "%s", err ? err_message(&ei) : "answers");
    kv_free(&k);
}

static MAY_YIELD void store_row(struct doctor *d)
{
    struct blob_conf conf = target_blob_conf(d->ctx->target);
    struct work *work = work_new(d->ctx->loop, 2);
    struct blob *b = NULL;
    struct errinfo ei;
    enum err err = blob_new(&b, d->ctx->loop, d->ctx->http, work, &conf, &ei);
    if (!err)
        err = blob_probe(b, &ei);
    if (err)
        row(d, MISSING, "S3 bucket", "%s", err_message(&ei));
    else
        row(d, FINE, "S3 bucket", "%s at %s: head, list, write, read and delete work", conf.bucket, conf.endpoint);
    blob_free(&b);
    work_free(&work);
}

static MAY_YIELD void belong_row(struct doctor *d)
{
    const struct target *t = d->ctx->target;
    struct belong b;
    struct errinfo ei;
    if (!t->database_url && !t->redis_url && !target_has_s3(t))
        return;
    if (belong_prove(d->ctx, NULL, false, &b, &ei))
        row(d, MISSING, "one server", "%s", err_message(&ei));
    else if (b.parts[0])
        row(d, NOTED, "one server", "not proven of %s: %s", b.parts, b.why);
    else
        row(d, FINE, "one server", "what was given of database, Redis and bucket is this server's");
}

static MAY_YIELD void target_rows(struct doctor *d)
{
    const struct target *t = d->ctx->target;
    struct errinfo ei;
    fprintf(d->ctx->out, "target\n");
    if (!t->url) {
        d->next = "sim stack up";
        row(d, NOTED, "server",
            "TMA_URL is not set: `sim stack up` starts one, or export TMA_URL=http://127.0.0.1:3200");
        return;
    }
    enum err err = target_require_url(t, &ei);
    if (!err)
        err = target_probe(d->ctx, &ei);
    if (err)
        row(d, MISSING, "server", "%s", err_message(&ei));
    else
        row(d, FINE, "server", "%s (from %s)", t->url, t->url_from);
    if (!err) {
        api_space_keep(d->ctx->space, t, d->ctx->common->fresh_sign_in);
        capability_rows(d);
        if (target_shows_inside(t))
            sessions_row(d);
    }
    /* Nothing of a server that must not be touched, nor of one that shows no inside. */
    unsigned missing = d->missing;
    if (err != ERR_SAFETY && target_shows_inside(t)) {
        database_row(d);
        redis_row(d);
        if (target_has_s3(t))
            store_row(d);
        else
            row(d, NOTED, "S3 bucket", "TMA_LOAD_S3_* is not set: the server keeps its own bucket");
        if (!err && d->missing == missing) /* all of them answer */
            belong_row(d);
    }
}

static enum err verdict(struct doctor *d, struct errinfo *ei)
{
    if (d->missing == 0)
        return ERR_OK;
    if (d->packages.len > 0)
        return err_set(ei, ERR_ENV, "missing: %sapt-get install -y%s", geteuid() == 0 ? "" : "sudo ",
                       buf_cstr(&d->packages));
    if (d->command)
        return err_set(ei, ERR_ENV, "missing: %s", d->command);
    return err_set(ei, ERR_ENV, "the target is not as it should be: see above");
}

static MAY_YIELD enum err run(void *conf, struct cmd_ctx *ctx, struct errinfo *ei)
{
    struct doctor d = {.ctx = ctx, .packages = BUF_INIT(160)};
    (void)conf;
    fprintf(ctx->out, "this machine\n");
    enum err err = stack_rows(&d, ei);
    files_row(&d);
    size_rows(&d);
    target_rows(&d);
    if (!err)
        err = verdict(&d, ei);
    if (!err && d.next)
        fprintf(ctx->out, "ready; next: %s\n", d.next);
    buf_done(&d.packages);
    return err;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "what this machine and the target can do, and what is missing",
    .usage = "sim doctor",
    .examples = "sim doctor",
    .run = run,
};
