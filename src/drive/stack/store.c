/* The stack's S3 store: an npm package (measured.md 2), installed once a user into a cache folder that is named after
 * the contents of its lock file, and started by our run.js there. */
#include "base/digest.h"
#include "base/embed.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own_tree.h"
#include "base/private_file.h"
#include "drive/stack/env.h"
#include "drive/stack/impl.h"
#include "drive/stack/process.h"
#include "drive/stack/state.h"
#include "net/work.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NPM_LIMIT_US (300 * US_PER_S)

static const char *cache_root(struct arena *mem)
{
    char path[PATH_MAX];
    if (private_folder_of_user(path, sizeof path, "XDG_CACHE_HOME", ".cache"))
        return arena_strdup(mem, path);
    return arena_printf(mem, "/tmp/drivesim-cache-%u", (unsigned)geteuid());
}

static const char *package_folder(struct arena *mem)
{
    unsigned char sum[DIGEST_SHA256_LEN];
    char hex[2 * DIGEST_SHA256_LEN + 1];
    struct digest *d = digest_new();
    for (const struct embed_file *f = embed_drive; f->name; f++)
        digest_update(d, f->data, f->size);
    digest_final(d, sum);
    digest_free(&d);
    digest_hex(hex, sum, sizeof sum);
    return arena_printf(mem, "%s/store-%.16s", cache_root(mem), hex);
}

/* Programs are run from there: it must be ours alone, also where /tmp is everybody's. */
static enum err check_ours(const char *path, struct errinfo *ei)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return err_sys(ei, ERR_ENV, "cannot use %s", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(ei, ERR_ENV, "%s is not a folder of ours alone: remove it or set XDG_CACHE_HOME", path);
    return ERR_OK;
}

static enum err write_files(struct arena *mem, const char *folder, struct errinfo *ei)
{
    for (const struct embed_file *file = embed_drive; file->name; file++) {
        const char *path = arena_printf(mem, "%s/%s", folder, file->name);
        FILE *f = fopen(path, "wxe");
        if (!f)
            return err_sys(ei, ERR_ENV, "cannot write %s", path);
        bool ok = fwrite(file->data, 1, file->size, f) == file->size;
        if (fclose(f) != 0 || !ok)
            return err_sys(ei, ERR_ENV, "cannot write %s", path);
    }
    return ERR_OK;
}

/* Installed beside its place and renamed there, so that a folder of that name is a whole installation, and two stacks
 * that install at once do not meet. */
static MAY_YIELD enum err install(struct part *p, struct arena *mem, const char *folder, struct errinfo *ei)
{
    const char *argv[] = {"npm",       "ci", "--omit=dev", "--ignore-scripts", "--prefer-offline", "--no-audit",
                          "--no-fund", NULL, NULL};
    if (!private_home()) /* where npm would keep what it downloads, and cannot go on without */
        argv[ARRAY_LEN(argv) - 2] = arena_printf(mem, "--cache=%s/npm", cache_root(mem));
    char *fresh = arena_printf(mem, "%s.XXXXXX", folder);
    enum err err = private_folder_make(cache_root(mem), ei);
    if (!err)
        err = check_ours(cache_root(mem), ei);
    if (err)
        return err;
    err = own_tree_make_temporary(fresh, NULL, ei);
    if (err)
        return err;
    stack_say(p->stack, "%-9s installing the S3 store by npm (once)", p->ops->name);
    err = write_files(mem, fresh, ei);
    if (!err)
        err = part_tool(p, argv, fresh, NULL, NPM_LIMIT_US, ei);
    if (!err && rename(fresh, folder) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        err = err_sys(ei, ERR_ENV, "cannot rename %s", fresh);
    struct errinfo left;
    if (access(fresh, F_OK) == 0 && own_tree_remove(fresh, &left))
        LOGW("stack", "%s", err_message(&left));
    return err;
}

bool stack_store_installed(char *where, size_t n)
{
    struct arena *mem = arena_new(4096);
    const char *folder = package_folder(mem);
    bool there = access(folder, X_OK) == 0;
    str_format(where, n, "%s", folder);
    arena_free(&mem);
    return there;
}

static MAY_YIELD enum err prepare(struct part *p, struct errinfo *ei)
{
    struct arena *mem = arena_new(4096);
    const char *folder = package_folder(mem);
    enum err err = access(folder, X_OK) == 0 ? check_ours(cache_root(mem), ei) : install(p, mem, folder, ei);
    arena_free(&mem);
    return err;
}

static enum err command(struct part *p, struct arena *mem, struct part_command *out, struct errinfo *ei)
{
    const char *argv[] = {"node",
                          "--openssl-legacy-provider",
                          arena_printf(mem, "%s/run.js", package_folder(mem)),
                          arena_printf(mem, "%d", p->port),
                          p->folder,
                          NULL};
    const char *env[] = {"STORE_ACCESS_KEY=" STACK_ACCESS_KEY,
                         arena_printf(mem, "STORE_SECRET_KEY=%s", p->stack->s3_secret), "NODE_ENV=production", NULL};
    (void)ei;
    out->argv = arena_alloc(mem, sizeof argv);
    memcpy(out->argv, argv, sizeof argv);
    out->env = arena_alloc(mem, sizeof env);
    memcpy(out->env, env, sizeof env);
    return ERR_OK;
}

static MAY_YIELD enum err with_bucket(struct part *p, MAY_YIELD enum err (*fn)(struct blob *b, struct errinfo *ei),
                                      struct errinfo *ei)
{
    struct stack *s = p->stack;
    struct arena *mem = arena_new(1024);
    struct blob *b = NULL;
    struct blob_conf conf = stack_blob_conf(s, mem);
    enum err err = blob_new(&b, s->loop, s->http, s->work, &conf, ei);
    if (!err)
        err = fn(b, ei);
    blob_free(&b);
    arena_free(&mem);
    return err;
}

/* It is ours when it takes our secret. */
static MAY_YIELD enum err answers(struct part *p, struct errinfo *ei)
{
    return with_bucket(p, blob_bucket_create, ei);
}

static MAY_YIELD enum err setup(struct part *p, struct errinfo *ei)
{
    return with_bucket(p, blob_probe, ei);
}

const struct part_ops stack_store = {
    .name = "store",
    .program = "node",
    .port = 59001,
    .stop_signal = SIGTERM,
    .stop_grace_s = 5,
    .prepare = prepare,
    .command = command,
    .answers = answers,
    .setup = setup,
};
