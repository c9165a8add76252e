/* Saving. The store's files are packed as they lie while the server is stopped: through its API the same objects would
 * take several times as long, and come back with other times. */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own_tree.h"
#include "base/private_file.h"
#include "base/version.h"
#include "drive/stack/fixture_impl.h"
#include "drive/stack/part.h"
#include "net/work.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum err fixture_judge_name(const char *name, struct errinfo *ei)
{
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);
    if (n > 0 && n <= FIXTURE_NAME_MAX && strspn(name, fine) == n && !strchr("._-", name[0]))
        return ERR_OK;
    return err_set(ei, ERR_USAGE,
                   "%s is no name for a fixture: up to %d letters, digits, '.', '_' and '-', a letter or digit first",
                   SHOWN(sv_of(name)), FIXTURE_NAME_MAX);
}

/* ---- the folder of all fixtures ---- */

const char *fixture_folder(const struct stack *s, const char *dir)
{
    return dir ? dir : arena_printf(s->mem, "%s/fixtures", s->home);
}

enum err fixture_place_open(struct fixture_place *p, const struct stack *s, const char *dir, bool make,
                            struct errinfo *ei)
{
    const char *folder = fixture_folder(s, dir);
    *p = (struct fixture_place){.lock_fd = -1};
    enum err err = !make ? ERR_OK : dir ? private_folder_make(folder, ei) : own_tree_make(folder, 0700, ei);
    if (err)
        return err;
    char *real = realpath(folder, NULL);
    if (!real)
        return err_sys(ei, ERR_ENV, "no fixtures in %s", folder);
    p->folder = arena_strdup(s->mem, real);
    free(real);
    const char *lock = arena_printf(s->mem, "%s/.lock", p->folder);
    p->lock_fd = open(lock, (make ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (p->lock_fd < 0 && !make) /* brought here from elsewhere, or not ours to write: nobody writes it */
        return ERR_OK;
    if (p->lock_fd < 0)
        return err_sys(ei, ERR_ENV, "cannot write in %s", p->folder);
    while (flock(p->lock_fd, make ? LOCK_EX : LOCK_SH) < 0)
        if (errno != EINTR)
            return err_sys(ei, ERR_ENV, "cannot lock %s", lock);
    return ERR_OK;
}

void fixture_place_close(struct fixture_place *p)
{
    if (p->lock_fd >= 0)
        close(p->lock_fd);
    p->lock_fd = -1;
}

/* ---- a stack that stands still ---- */

const char *fixture_mark(const struct stack *s)
{
    return arena_printf(s->mem, "%s/loading", s->home);
}

enum err fixture_judge_whole(const struct stack *s, struct errinfo *ei)
{
    char name[SHOWN_LEN];
    struct buf text = BUF_INIT(4096);
    enum err err = ERR_OK;
    if (access(fixture_mark(s), F_OK) == 0) {
        (void)!file_read(fixture_mark(s), &text, ERR_IO, NULL);
        str_shown(name, sizeof name, sv_trim(sv_of(buf_cstr(&text))));
        err = err_set(ei, ERR_ENV,
                      "the load of fixture %s was cut short: `sim fixture load %s` does it again, `sim stack down` ends"
                      " the stack",
                      name, name);
    }
    buf_done(&text);
    return err;
}

enum err fixture_ready(const struct stack *s, struct errinfo *ei)
{
    if (!stack_exists(s))
        return err_set(ei, ERR_ENV, "no stack in %s: start one with `sim stack up`", s->dir);
    if (s->kind == KIND_DOCKER)
        return err_set(ei, ERR_ENV,
                       "the stack in %s runs in containers: fixtures need one of processes (sim stack up --native)",
                       s->dir);
    if (!part_alive(&s->parts[PART_POSTGRES]))
        return err_set(ei, ERR_ENV, "the stack's Postgres is down: `sim stack up` starts it");
    return ERR_OK;
}

enum err fixture_still(struct stack *s, bool *was_up, struct errinfo *ei)
{
    *was_up = part_alive(&s->parts[PART_SERVER]);
    enum err err = *was_up ? stack_part_stop(s, stack_server.name, ei) : ERR_OK;
    return err ? err : fixture_db_await_alone(s, ei);
}

enum err fixture_go_on(struct stack *s, bool was_up, enum err err, struct errinfo *ei)
{
    struct errinfo why = {0};
    s->cancelled = false;
    enum err start = was_up ? stack_part_start(s, stack_server.name, &why) : ERR_OK;
    if (start && !err)
        return err_set(ei, start, "the server does not come back: %s", err_message(&why));
    if (start)
        stack_say(s, "the server does not come back: %s", err_message(&why));
    return err;
}

void fixture_end(struct stack *s, enum err err, struct errinfo *ei)
{
    if (!err) {
        *ei = (struct errinfo){0}; /* what was tried twice may have left a word there */
        return;
    }
    ei->code = err;
    stack_cancel(s);
}

enum err fixture_blame(const struct errinfo *a, const struct errinfo *b, struct errinfo *ei)
{
    const struct errinfo *why = a->code && (a->code != ERR_INTERRUPTED || !b->code) ? a : b;
    return why->code ? err_set(ei, why->code, "%s", err_message(why)) : ERR_OK;
}

static void run_pack(void *arg)
{
    struct pack_call *c = arg;
    const atomic_bool *stop = &c->stack->cancelled;
    c->err = c->what == PACK_MAKE     ? pack_make(c->folder, c->file, stop, &c->sum, &c->ei)
             : c->what == PACK_UNFOLD ? pack_unfold(c->file, c->folder, c->entries, stop, &c->sum, &c->ei)
                                      : pack_digest(c->file, stop, &c->sum, &c->ei);
}

enum err fixture_pack(struct stack *s, struct pack_call *c, struct errinfo *ei)
{
    c->stack = s;
    work_run(s->work, run_pack, c);
    return c->err ? err_set(ei, c->err, "%s", err_message(&c->ei)) : ERR_OK;
}

/* ---- saving ---- */

struct saving {
    struct stack *stack;
    const char *fresh; /* the folder that it is written to, renamed in the end */
    struct manifest m;
    struct errinfo rows, pack; /* how each part ended */
};

static void rows_task(void *arg)
{
    struct saving *v = arg;
    struct stack *s = v->stack;
    struct pack_call sum = {.what = PACK_DIGEST, .file = arena_printf(s->mem, "%s/" DATABASE_FILE, v->fresh)};
    enum err err = fixture_db_save(s, sum.file, &v->m, &v->rows);
    if (!err)
        err = fixture_pack(s, &sum, &v->rows);
    fixture_end(s, err, &v->rows);
    manifest_part(&v->m.database, &sum.sum);
}

static void pack_task(void *arg)
{
    struct saving *v = arg;
    struct stack *s = v->stack;
    struct pack_call c = {.what = PACK_MAKE,
                          .folder = s->parts[PART_STORE].folder,
                          .file = arena_printf(s->mem, "%s/" OBJECTS_FILE, v->fresh)};
    fixture_end(s, fixture_pack(s, &c, &v->pack), &v->pack);
    manifest_part(&v->m.objects, &c.sum);
    v->m.info.objects = c.sum.files;
    v->m.entries = c.sum.entries;
}

static MAY_YIELD enum err write_parts(struct saving *v, struct errinfo *ei)
{
    struct group g = {0};
    group_spawn(v->stack->loop, &g, rows_task, v);
    group_spawn(v->stack->loop, &g, pack_task, v);
    group_wait(v->stack->loop, &g);
    return fixture_blame(&v->rows, &v->pack, ei);
}

static void describe(struct saving *v, const char *name)
{
    struct stack *s = v->stack;
    struct fixture_info *f = &v->m.info;
    struct buf note = BUF_INIT(4096);
    struct json *seeded = NULL;
    str_format(f->name, sizeof f->name, "%s", name);
    str_format(f->version, sizeof f->version, "%s", drivesim_version);
    wall_format_seconds(f->made, sizeof f->made, wall_now());
    v->m.own_server = s->parts[PART_SERVER].wanted;
    memcpy(v->m.file_key, s->file_key, sizeof v->m.file_key - 1);
    memcpy(v->m.s3_secret, s->s3_secret, sizeof v->m.s3_secret - 1);
    if (file_read(arena_printf(s->mem, "%s/" STACK_SEEDED_FILE, s->home), &note, ERR_IO, NULL) == ERR_OK &&
        json_parse(buf_cstr(&note), note.len, &seeded, NULL) == ERR_OK)
        f->is_seeded = stack_seeded_read(seeded, &f->seeded);
    json_free(&seeded);
    buf_done(&note);
}

static enum err write_manifest(const struct saving *v, struct errinfo *ei)
{
    struct buf text = BUF_INIT(MANIFEST_MAX);
    enum err err = manifest_text(&v->m, &text);
    if (!err)
        err = private_file_replace(v->fresh, MANIFEST_FILE, (struct sv){buf_cstr(&text), text.len}, ei);
    buf_done(&text);
    return err;
}

/* From here on it is there. Of two with one name the old one makes room first, so that there is never half of one. */
static enum err put_in_place(struct stack *s, const char *fresh, const char *place, struct errinfo *ei)
{
    const char *old = arena_printf(s->mem, "%s.old", fresh);
    enum err err = own_tree_check(place, ei);
    if (!err || err == ERR_NOTFOUND)
        err = own_tree_remove(old, ei);
    if (!err && rename(place, old) < 0 && errno != ENOENT)
        err = err_sys(ei, ERR_IO, "cannot replace %s", place);
    if (!err && rename(fresh, place) < 0)
        err = err_sys(ei, ERR_IO, "cannot make %s", place);
    return err ? err : own_tree_remove(old, ei);
}

static MAY_YIELD enum err write_all(struct saving *v, const char *place, struct errinfo *ei)
{
    int64_t others; /* are no reason not to save */
    enum err err = own_tree_remove(v->fresh, ei);
    if (!err)
        err = own_tree_make(v->fresh, 0700, ei);
    if (!err)
        err = fixture_db_look(v->stack, &v->m, &others, ei);
    if (!err && v->m.own_server)
        err = fixture_db_judge_bucket(v->stack, ei);
    if (!err)
        err = write_parts(v, ei);
    if (!err)
        err = write_manifest(v, ei);
    if (!err)
        err = put_in_place(v->stack, v->fresh, place, ei);
    struct errinfo left;
    if (err && own_tree_remove(v->fresh, &left))
        LOGW("stack", "%s", err_message(&left));
    return err;
}

enum err fixture_save(struct stack *s, const char *dir, const char *name, bool force, struct fixture_info *out,
                      struct errinfo *ei)
{
    struct saving v = {.stack = s};
    struct fixture_place at = {.lock_fd = -1};
    struct stat st;
    bool was_up = false;
    enum err err = fixture_judge_name(name, ei);
    if (!err)
        err = fixture_ready(s, ei);
    if (!err)
        err = fixture_place_open(&at, s, dir, true, ei);
    const char *place = err ? NULL : arena_printf(s->mem, "%s/%s", at.folder, name);
    if (!err)
        err = fixture_judge_whole(s, ei);
    if (!err && !force && lstat(place, &st) == 0)
        err = err_set(ei, ERR_USAGE, "%s is there already: --force replaces it", place);
    if (!err) {
        describe(&v, name);
        v.fresh = arena_printf(s->mem, "%s/.%s.new", at.folder, name);
        err = fixture_still(s, &was_up, ei);
        if (!err)
            err = write_all(&v, place, ei);
        err = fixture_go_on(s, was_up, err, ei);
    }
    fixture_place_close(&at);
    v.m.info.size = v.m.database.size + v.m.objects.size;
    *out = v.m.info;
    manifest_done(&v.m);
    return err;
}

/* ---- looking and removing ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void tell(const struct stack *s, const char *folder, const char *name,
                 void (*fn)(void *arg, const struct fixture_info *info, const char *why), void *arg)
{
    struct manifest m;
    struct errinfo why = {0};
    enum err err = manifest_load(&m, arena_printf(s->mem, "%s/%s", folder, name), &why);
    str_format(m.info.name, sizeof m.info.name, "%s", name);
    fn(arg, &m.info, err ? err_message(&why) : NULL);
    manifest_done(&m);
}

enum err fixture_each(const struct stack *s, const char *dir,
                      void (*fn)(void *arg, const struct fixture_info *info, const char *why), void *arg,
                      struct errinfo *ei)
{
    const char *folder = fixture_folder(s, dir);
    char **names = NULL;
    size_t n = 0, cap = 0;
    DIR *d = opendir(folder);
    if (!d)
        return errno == ENOENT && !dir ? ERR_OK : err_sys(ei, ERR_ENV, "cannot look into %s", folder);
    for (const struct dirent *e; (e = readdir(d));) {
        if (fixture_judge_name(e->d_name, NULL) != ERR_OK)
            continue;
        if (n == cap)
            names = mem_realloc(names, (cap = cap ? 2 * cap : 16) * sizeof *names);
        names[n++] = arena_strdup(s->mem, e->d_name);
    }
    closedir(d);
    if (n)
        qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++)
        tell(s, folder, names[i], fn, arg);
    mem_free(names);
    return ERR_OK;
}

enum err fixture_remove(const struct stack *s, const char *dir, const char *name, struct errinfo *ei)
{
    struct fixture_place at = {.lock_fd = -1};
    struct stat st;
    enum err err = fixture_judge_name(name, ei);
    const char *place = arena_printf(s->mem, "%s/%s", fixture_folder(s, dir), name);
    if (!err && lstat(place, &st) < 0)
        return err_set(ei, ERR_ENV, "there is no fixture %s: `sim fixture list` tells which there are", place);
    if (!err && lstat(arena_printf(s->mem, "%s/" MANIFEST_FILE, place), &st) < 0)
        return err_set(ei, ERR_ENV, "%s is no fixture: it has no " MANIFEST_FILE, place);
    if (!err)
        err = fixture_place_open(&at, s, dir, true, ei);
    const char *gone = err ? NULL : arena_printf(s->mem, "%s/.%s.gone", at.folder, name);
    if (!err)
        err = own_tree_check(place, ei);
    if (!err)
        err = own_tree_remove(gone, ei);
    if (!err && rename(place, gone) < 0)
        err = err_sys(ei, ERR_IO, "cannot remove %s", place);
    if (!err)
        err = own_tree_remove(gone, ei);
    fixture_place_close(&at);
    return err;
}

static void note_one(void *arg, const struct fixture_info *info, const char *why)
{
    (void)info, (void)why;
    *(bool *)arg = true;
}

bool fixture_tidy(const struct stack *s)
{
    struct errinfo ei;
    bool any = false;
    if (fixture_each(s, NULL, note_one, &any, &ei) || (!any && own_tree_remove(fixture_folder(s, NULL), &ei)))
        LOGW("stack", "%s", err_message(&ei));
    return any;
}
