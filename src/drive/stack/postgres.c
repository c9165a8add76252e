/* The stack's Postgres. It refuses to run as root: then it runs as another account, and its folder moves to the folder
 * for temporary files when that account cannot reach ours (a home or a test's private folder). */
#include "base/log.h"
#include "base/own_tree.h"
#include "base/str.h"
#include "drive/stack/env.h"
#include "drive/stack/impl.h"
#include "drive/stack/process.h"
#include "drive/stack/state.h"
#include "store/pg.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#define INITDB_LIMIT_US (120 * US_PER_S)

/* Distributions keep the server's programs out of PATH, a folder a version. The newest first. */
static const char *program_folders(struct arena *mem)
{
    static const char *const patterns[] = {"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"};
    const char *list = "";
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) == 0)
            for (size_t k = found.gl_pathc; k-- > 0;)
                list = arena_printf(mem, "%s%s%s", list, *list ? ":" : "", found.gl_pathv[k]);
        globfree(&found);
    }
    return list;
}

static enum err move_to_temporary(struct part *p, const struct account *a, struct errinfo *ei)
{
    struct arena *mem = p->stack->mem;
    const char *tmp = getenv("TMPDIR");
    char *path = arena_printf(mem, "%s/drivesim-postgres-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    enum err err = own_tree_make_temporary(path, p->stack->home, ei);
    if (!err)
        err = own_tree_remove(p->folder, ei);
    if (err)
        return err;
    if (symlink(path, p->folder) < 0) /* so that it is found again */
        err = err_sys(ei, ERR_ENV, "cannot link %s", p->folder);
    p->folder = path;
    if (!err && lchown(path, a->uid, a->gid) < 0)
        err = err_sys(ei, ERR_ENV, "cannot give %s to %s", path, a->name);
    if (!err && !account_can_use(a, path))
        err = err_set(ei, ERR_ENV, "%s cannot work in %s", a->name, path);
    return err;
}

static enum err give_folder(struct part *p, const struct account *a, struct errinfo *ei)
{
    if (lchown(p->folder, a->uid, a->gid) < 0)
        return err_sys(ei, ERR_ENV, "cannot give %s to %s", p->folder, a->name);
    return account_can_use(a, p->folder) ? ERR_OK : move_to_temporary(p, a, ei);
}

static enum err write_password(const struct part *p, const char *path, const struct account *a, struct errinfo *ei)
{
    const char *password = p->stack->password;
    unlink(path); /* of one that was interrupted; or a link, which is not written through */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(ei, ERR_ENV, "cannot write %s", path);
    bool ok =
        write(fd, password, strlen(password)) == (ssize_t)strlen(password) && (!a || fchown(fd, a->uid, a->gid) == 0);
    return close(fd) == 0 && ok ? ERR_OK : err_sys(ei, ERR_ENV, "cannot write %s", path);
}

/* Made beside its place and renamed: what lies in data/ is a whole cluster, however initdb ended. */
static MAY_YIELD enum err make_cluster(struct part *p, struct arena *mem, const struct account *a, struct errinfo *ei)
{
    const char *data = arena_printf(mem, "%s/data", p->folder);
    const char *fresh = arena_printf(mem, "%s/data.new", p->folder);
    const char *password = arena_printf(mem, "%s/password", p->folder);
    char initdb[512];
    struct stat st;
    if (lstat(data, &st) == 0)
        return S_ISDIR(st.st_mode)
                   ? ERR_OK
                   : err_set(ei, ERR_SAFETY, "%s is not a folder: move it away, or `sim stack down`", data);
    if (!proc_which("initdb", program_folders(mem), initdb, sizeof initdb))
        return err_set(ei, ERR_ENV, "initdb is not installed: `sim doctor` says how to get it");
    enum err err = own_tree_remove_part(p->folder, "data.new", ei);
    if (!err)
        err = write_password(p, password, a, ei);
    if (err)
        return err;
    const char *argv[] = {initdb,
                          "-D",
                          fresh,
                          "-U",
                          STACK_DB_USER,
                          arena_printf(mem, "--pwfile=%s", password),
                          "--auth=scram-sha-256",
                          "--encoding=UTF8",
                          "--locale=C.UTF-8",
                          "--no-sync",
                          "--no-instructions",
                          NULL};
    err = part_tool(p, argv, p->folder, a, INITDB_LIMIT_US, ei);
    unlink(password);
    if (!err && rename(fresh, data) < 0)
        err = err_sys(ei, ERR_ENV, "cannot rename %s", fresh);
    return err;
}

static MAY_YIELD enum err prepare(struct part *p, struct errinfo *ei)
{
    struct account a;
    const struct account *as = NULL;
    struct arena *mem = arena_new(4096);
    enum err err = part_account(p, &a, &as, ei);
    if (!err && as)
        err = give_folder(p, as, ei);
    if (!err)
        err = make_cluster(p, mem, as, ei);
    arena_free(&mem);
    return err;
}

static enum err command(struct part *p, struct arena *mem, struct part_command *out, struct errinfo *ei)
{
    static const char *const settings[] = {
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "max_connections=300",
        "log_lock_waits=on", /* deadlocks are always logged; who waited for whom stands beside them */
        "log_line_prefix=%m [%p] ",
        "log_destination=stderr",
        "logging_collector=off",
        "lc_messages=C",
        "timezone=UTC",
        "log_timezone=UTC",
        "dynamic_shared_memory_type=mmap", /* in the data folder, so that a crash leaves nothing outside it */
    };
    const size_t n = sizeof settings / sizeof settings[0];
    const char *postgres = part_program(p, mem);
    if (!postgres)
        return err_set(ei, ERR_ENV, "postgres is not installed: `sim doctor` says how to get it");
    const char **argv = arena_alloc(mem, (2 * n + 6) * sizeof *argv);
    size_t at = 0;
    argv[at++] = postgres;
    argv[at++] = "-D";
    argv[at++] = arena_printf(mem, "%s/data", p->folder);
    argv[at++] = "-p";
    argv[at++] = arena_printf(mem, "%d", p->port);
    for (size_t i = 0; i < n; i++) {
        argv[at++] = "-c";
        argv[at++] = settings[i];
    }
    out->argv = argv;
    return ERR_OK;
}

/* It is ours when it lives in our folder. */
static MAY_YIELD enum err answers(struct part *p, struct errinfo *ei)
{
    struct arena *mem = arena_new(1024);
    struct pg_pool *pool = NULL;
    struct pg_result *r = NULL;
    enum err err = pg_pool_new(&pool, p->stack->loop, stack_database_url(p->stack, mem, "postgres"), 1, ei);
    if (!err)
        err = pg_run(pool, "SELECT current_setting('data_directory')", 0, NULL, &r, ei);
    if (!err && strncmp(pg_str(r, 0, 0), p->folder, strlen(p->folder)) != 0)
        err = err_set(ei, ERR_ENV, "another Postgres answers on port %d", p->port);
    pg_result_free(&r);
    pg_pool_free(&pool);
    arena_free(&mem);
    return err;
}

static MAY_YIELD enum err setup(struct part *p, struct errinfo *ei)
{
    struct arena *mem = arena_new(1024);
    struct pg_pool *pool = NULL;
    struct pg_result *r = NULL;
    static const char *const database[] = {STACK_DATABASE};
    enum err err = pg_pool_new(&pool, p->stack->loop, stack_database_url(p->stack, mem, "postgres"), 1, ei);
    if (!err)
        err = pg_run(pool, "SELECT 1 FROM pg_database WHERE datname = $1", 1, database, &r, ei);
    if (!err && pg_rows(r) == 0)
        err = pg_run(pool, "CREATE DATABASE " STACK_DATABASE, 0, NULL, NULL, ei);
    pg_result_free(&r);
    pg_pool_free(&pool);
    arena_free(&mem);
    return err;
}

/* "  5432001    196610": key and number. */
static bool segment_line(const char *line, int64_t *key, int64_t *id)
{
    struct sv rest = sv_trim(sv_of(line)), word;
    return sv_split(&rest, ' ', &word) && sv_to_i64(word, key) && sv_to_i64(sv_trim(rest), id);
}

static void remove_segment(const void *arg, void *out)
{
    char line[256];
    int64_t key = 0, id = -1;
    struct shmid_ds ds;
    FILE *f = fopen(arg, "re");
    (void)out;
    if (!f)
        return;
    for (int i = 1; fgets(line, sizeof line, f); i++)
        if (i == 7 && !segment_line(line, &key, &id))
            id = -1;
    fclose(f);
    if (id >= 0 && shmctl((int)id, IPC_STAT, &ds) == 0 && ds.shm_perm.__key == (key_t)key && ds.shm_nattch == 0)
        shmctl((int)id, IPC_RMID, NULL);
    unlink(arg);
}

/* A killed Postgres leaves postmaster.pid, and the System V segment that its line 7 names in the kernel. The next one
 * would look there for a living postmaster and be held up by a dead one that nobody has reaped. */
static void ended(struct part *p)
{
    struct account a;
    const struct account *as = NULL;
    struct errinfo ei;
    char unused;
    const char *path = arena_printf(p->stack->mem, "%s/data/postmaster.pid", p->folder);
    if (part_account(p, &a, &as, &ei) || !account_ask(as, remove_segment, path, &unused, sizeof unused))
        LOGW("stack", "the lock of Postgres may have stayed behind: %s", path);
}

const struct part_ops stack_postgres = {
    .name = "postgres",
    .program = "postgres",
    .folders = program_folders,
    .port = 55433,
    .stop_signal = SIGINT, /* "fast": ends sessions instead of waiting for them */
    .stop_grace_s = 10,
    .down_signal = SIGQUIT, /* "immediate": no checkpoint of what is thrown away */
    .own_account = true,
    .prepare = prepare,
    .command = command,
    .answers = answers,
    .setup = setup,
    .ended = ended,
};
