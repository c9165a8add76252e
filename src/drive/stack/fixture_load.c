/* Loading: everything is made beside what the stack uses, compared with the manifest, and put in its place in the end.
 * Between the two renames of that end lies a mark, since no call renames a database and a folder at once: whoever
 * starts the server while it lies there would give it the rows of one state and the objects of another. */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own_tree.h"
#include "drive/limits.h"
#include "drive/stack/fixture_impl.h"
#include "drive/stack/part.h"
#include "net/work.h"
#include "store/kv.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define REDIS_US (5 * US_PER_S)
#define BLOCK    4096

struct loading {
    struct stack *stack;
    const char *folder; /* of the fixture */
    const char *next;   /* the store's new folder */
    struct manifest m;
    struct errinfo database, objects; /* how making each ended */
};

/* ---- may it be loaded ---- */

static enum err judge_part(const struct loading *l, const char *name, const struct fixture_part *p, struct errinfo *ei)
{
    struct stat st;
    const char *path = arena_printf(l->stack->mem, "%s/%s", l->folder, name);
    if (lstat(path, &st) < 0)
        return err_sys(ei, ERR_ENV, "the fixture %s is damaged: %s", l->m.info.name, name);
    if (!S_ISREG(st.st_mode))
        return err_set(ei, ERR_ENV, "the fixture %s is damaged: %s is no plain file", l->m.info.name, name);
    if ((uint64_t)st.st_size != p->size)
        return err_set(ei, ERR_ENV, "the fixture %s is damaged: %s has %lld bytes, not %llu", l->m.info.name, name,
                       (long long)st.st_size, (unsigned long long)p->size);
    return ERR_OK;
}

/* Rows become rows and indexes, a file takes whole blocks. In floating point: whoever wrote the manifest may have
 * written any number. */
static enum err judge_room(const struct loading *l, struct errinfo *ei)
{
    struct statvfs fs;
    char want[32], have[32];
    const double need =
        (double)l->m.objects.size + 3 * (double)l->m.database.size + (double)BLOCK * (double)l->m.entries;
    if (statvfs(l->stack->home, &fs) < 0)
        return ERR_OK;
    if (fs.f_favail && fs.f_favail < l->m.entries)
        return err_set(ei, ERR_FULL, "no room to load it: %s are needed in %s, %llu are free",
                       COUNTED(l->m.entries, "inode"), l->stack->home, (unsigned long long)fs.f_favail);
    if ((double)fs.f_bavail * (double)fs.f_frsize > need)
        return ERR_OK;
    return err_set(ei, ERR_FULL, "no room to load it: %s are needed in %s, %s are free",
                   str_bytes(want, sizeof want, need < 9e18 ? (uint64_t)need : INT64_MAX), l->stack->home,
                   str_bytes(have, sizeof have, (uint64_t)fs.f_bavail * fs.f_frsize));
}

static MAY_YIELD enum err judge_fit(const struct loading *l, struct errinfo *ei)
{
    const struct fixture_info *f = &l->m.info;
    const bool own = l->stack->parts[PART_SERVER].wanted;
    struct manifest now = {0};
    int64_t others;
    if (own != l->m.own_server)
        return err_set(ei, ERR_ENV, "%s was saved with %s server, and this stack has %s", f->name,
                       l->m.own_server ? "the reference" : "another", own ? "the reference server" : "none of its own");
    enum err err = fixture_db_look(l->stack, &now, &others, ei);
    if (!err && others)
        err = err_set(ei, ERR_SAFETY,
                      "the stack's database holds %s outside " DRIVE_EMAIL_DOMAIN ": a fixture is not loaded over them",
                      COUNTED((uint64_t)others, "user"));
    if (!err && now.postgres < l->m.postgres)
        err = err_set(ei, ERR_ENV, "%s was saved from PostgreSQL %d, and this stack has version %d", f->name,
                      (int)l->m.postgres, (int)now.postgres);
    if (!err && own && strcmp(now.schema, l->m.schema) != 0)
        err = err_set(ei, ERR_ENV,
                      "%s was saved by drivesim %s, whose server has other tables than this one's: seed anew, and save",
                      f->name, f->version);
    return err ? err : fixture_db_judge_tables(l->stack, &l->m, ei);
}

static MAY_YIELD enum err judge(struct loading *l, const char *name, struct errinfo *ei)
{
    struct errinfo why = {0};
    enum err err = manifest_load(&l->m, l->folder, &why);
    str_format(l->m.info.name, sizeof l->m.info.name, "%s", name);
    if (err)
        return err_set(ei, err, "%s is no fixture that can be loaded: %s", l->folder, err_message(&why));
    err = judge_part(l, DATABASE_FILE, &l->m.database, ei);
    if (!err)
        err = judge_part(l, OBJECTS_FILE, &l->m.objects, ei);
    if (!err)
        err = judge_fit(l, ei);
    return err ? err : judge_room(l, ei);
}

/* ---- making it beside ---- */

static enum err compare(const struct loading *l, const char *name, const struct fixture_part *want,
                        const struct pack_sum *sum, struct errinfo *ei)
{
    struct fixture_part is;
    manifest_part(&is, sum);
    if (is.size == want->size && strcmp(is.sha256, want->sha256) == 0)
        return ERR_OK;
    return err_set(ei, ERR_ENV, "the fixture %s is damaged: %s is not what was written", l->m.info.name, name);
}

static void database_task(void *arg)
{
    struct loading *l = arg;
    struct stack *s = l->stack;
    struct pack_call sum = {.what = PACK_DIGEST, .file = arena_printf(s->mem, "%s/" DATABASE_FILE, l->folder)};
    enum err err = fixture_pack(s, &sum, &l->database);
    if (!err)
        err = compare(l, DATABASE_FILE, &l->m.database, &sum.sum, &l->database);
    if (!err)
        err = fixture_db_restore(s, sum.file, &l->m, &l->database);
    fixture_end(s, err, &l->database);
}

/* The store starts with these two folders. */
static bool of_store(DIR *d, const char *name)
{
    struct stat st;
    if (strcmp(name, OWN_TREE_MARK) == 0)
        return true;
    bool known = strcmp(name, "objects") == 0 || strcmp(name, "incoming") == 0;
    return known && fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static enum err judge_store(const struct loading *l, struct errinfo *ei)
{
    DIR *d = opendir(l->next);
    const struct dirent *e;
    enum err err = d ? ERR_OK : err_sys(ei, ERR_IO, "cannot read %s", l->next);
    while (!err && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !of_store(d, e->d_name))
            err = err_set(ei, ERR_ENV, "the fixture %s holds %s, which is not a store's", l->m.info.name,
                          SHOWN(sv_of(e->d_name)));
    if (d)
        closedir(d);
    return err;
}

static void objects_task(void *arg)
{
    struct loading *l = arg;
    struct stack *s = l->stack;
    struct pack_call c = {.what = PACK_UNFOLD,
                          .folder = l->next,
                          .file = arena_printf(s->mem, "%s/" OBJECTS_FILE, l->folder),
                          .entries = l->m.entries};
    enum err err = own_tree_remove(l->next, &l->objects);
    if (!err)
        err = fixture_pack(s, &c, &l->objects);
    if (err == ERR_PARSE)
        err = err_set(&l->objects, ERR_ENV, "the fixture %s: %s", l->m.info.name, err_message(&c.ei));
    if (!err)
        err = compare(l, OBJECTS_FILE, &l->m.objects, &c.sum, &l->objects);
    if (!err)
        err = judge_store(l, &l->objects);
    fixture_end(s, err, &l->objects);
}

static MAY_YIELD enum err make_beside(struct loading *l, struct errinfo *ei)
{
    struct group g = {0};
    group_spawn(l->stack->loop, &g, database_task, l);
    group_spawn(l->stack->loop, &g, objects_task, l);
    group_wait(l->stack->loop, &g);
    return fixture_blame(&l->database, &l->objects, ei);
}

/* Thousands of files: in a thread, so that the loop can start what is to be there again. */
static void remove_beside(void *arg)
{
    struct loading *l = arg;
    struct errinfo why;
    if (own_tree_remove(l->next, &why))
        LOGW("stack", "%s", err_message(&why));
}

static void forget_beside_task(void *arg)
{
    struct loading *l = arg;
    struct errinfo why;
    work_run(l->stack->work, remove_beside, l);
    if (fixture_db_clear(l->stack, &why))
        LOGW("stack", "%s", err_message(&why));
}

/* ---- putting it in its place ---- */

static enum err mark(const struct loading *l, struct errinfo *ei)
{
    struct buf text = BUF_INIT(FIXTURE_NAME_MAX + 2);
    enum err err = buf_appendf(&text, "%s\n", l->m.info.name);
    if (!err)
        err = file_replace(fixture_mark(l->stack), &text, ei);
    buf_done(&text);
    return err;
}

/* Both names at once where the file system can, else one after the other. */
static enum err swap_folders(const struct loading *l, struct errinfo *ei)
{
    const char *place = l->stack->parts[PART_STORE].folder, *old = arena_printf(l->stack->mem, "%s.old", l->next);
    if (renameat2(AT_FDCWD, l->next, AT_FDCWD, place, RENAME_EXCHANGE) == 0)
        return ERR_OK;
    if ((rename(place, old) < 0 && errno != ENOENT) || rename(l->next, place) < 0 ||
        (rename(old, l->next) < 0 && errno != ENOENT))
        return err_sys(ei, ERR_IO, "cannot replace %s", place);
    return ERR_OK;
}

static enum err note_seeded(const struct loading *l, struct errinfo *ei)
{
    const char *path = arena_printf(l->stack->mem, "%s/" STACK_SEEDED_FILE, l->stack->home);
    struct buf b = BUF_INIT(4096);
    struct jsonw w;
    if (!l->m.info.is_seeded)
        return unlink(path) < 0 && errno != ENOENT ? err_sys(ei, ERR_IO, "cannot remove %s", path) : ERR_OK;
    jsonw_init(&w, &b);
    stack_seeded_write(&l->m.info.seeded, &w, NULL);
    enum err err = w.err ? err_set(ei, w.err, "the note does not fit") : file_replace(path, &b, ei);
    buf_done(&b);
    return err;
}

/* Budgets that were spent since, and whatever else belongs to what was. */
static MAY_YIELD enum err empty_redis(struct stack *s, struct errinfo *ei)
{
    static const struct sv argv[] = {{"FLUSHALL", 8}};
    struct kv *kv = NULL;
    if (!part_alive(&s->parts[PART_REDIS]))
        return ERR_OK; /* it keeps nothing over its end */
    enum err err = kv_new(&kv, s->loop, stack_redis_url(s, s->mem), ei);
    if (!err)
        err = kv_ready(kv, mono_add(mono_now(), REDIS_US), ei);
    if (!err)
        err = kv_command(kv, ARRAY_LEN(argv), argv, NULL, ei);
    kv_free(&kv);
    return err;
}

/* What the content was sealed with, and the secret that the server knows its bucket by. */
static enum err adopt_secrets(const struct loading *l, struct errinfo *ei)
{
    struct stack *s = l->stack;
    if (!l->m.own_server)
        return ERR_OK;
    if (strcmp(s->s3_secret, l->m.s3_secret) != 0)
        stack_say(s, "the store's secret key is now the fixture's: a shell that was told the old one needs"
                     " eval \"$(sim stack up)\" again");
    memcpy(s->file_key, l->m.file_key, sizeof s->file_key - 1);
    memcpy(s->s3_secret, l->m.s3_secret, sizeof s->s3_secret - 1);
    return stack_state_save(s, ei);
}

/* The two renames, and nothing between them that could fail for long. */
static MAY_YIELD enum err swap_both(struct loading *l, struct errinfo *ei)
{
    enum err err = mark(l, ei);
    if (!err && (err = fixture_db_swap(l->stack, ei)))
        (void)!unlink(fixture_mark(l->stack)); /* it was done whole or not at all */
    return err ? err : swap_folders(l, ei);
}

static MAY_YIELD enum err put_in_place(struct loading *l, struct errinfo *ei)
{
    struct stack *s = l->stack;
    enum err err = stack_part_stop(s, stack_store.name, ei);
    if (!err)
        err = swap_both(l, ei);
    if (!err)
        err = adopt_secrets(l, ei);
    if (!err)
        err = note_seeded(l, ei);
    if (!err) /* of logins, by sessions that are not in the rows */
        err = own_tree_remove(arena_printf(s->mem, "%s/sessions", s->home), ei);
    if (!err)
        err = stack_make_sessions(s, ei);
    if (!err)
        err = empty_redis(s, ei);
    if (!err && unlink(fixture_mark(s)) < 0)
        err = err_sys(ei, ERR_IO, "cannot remove %s", fixture_mark(s));
    return err;
}

/* Whatever became of it: the parts are there again, what is not used is not. */
static MAY_YIELD enum err go_on(struct loading *l, bool server, enum err err, struct errinfo *ei)
{
    struct stack *s = l->stack;
    struct errinfo why = {0};
    struct group g = {0};
    s->cancelled = false;
    group_spawn(s->loop, &g, forget_beside_task, l);
    enum err store = stack_part_start(s, stack_store.name, &why);
    if (store && !err)
        err = err_set(ei, store, "the store does not come back: %s", err_message(&why));
    err = fixture_go_on(s, server, err, ei);
    group_wait(s->loop, &g);
    return err;
}

enum err fixture_load(struct stack *s, const char *dir, const char *name, struct fixture_info *out, struct errinfo *ei)
{
    struct loading l = {.stack = s};
    struct fixture_place at = {.lock_fd = -1};
    bool was_up = false;
    enum err err = fixture_judge_name(name, ei);
    if (!err)
        err = fixture_place_open(&at, s, dir, false, ei);
    if (!err) {
        l.folder = arena_printf(s->mem, "%s/%s", at.folder, name);
        l.next = arena_printf(s->mem, "%s.next", s->parts[PART_STORE].folder);
        if (access(l.folder, F_OK) < 0)
            err = err_set(ei, ERR_ENV, "there is no fixture %s: `sim fixture list` tells which there are", l.folder);
    }
    if (!err)
        err = fixture_ready(s, ei);
    if (!err)
        err = judge(&l, name, ei);
    if (!err) {
        err = fixture_still(s, &was_up, ei);
        if (!err)
            err = make_beside(&l, ei);
        if (!err)
            err = put_in_place(&l, ei);
        err = go_on(&l, was_up || (!err && l.m.own_server), err, ei);
    }
    fixture_place_close(&at);
    *out = l.m.info;
    manifest_done(&l.m);
    return err;
}
