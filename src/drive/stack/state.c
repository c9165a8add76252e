/* .sim/stack.json and what else lies in .sim. The file is rewritten after every start, so that whatever happens next,
 * `down` finds what there is; and where even that is lost, processes are found by program and folder. */
#include "drive/stack/state.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own_tree.h"
#include "base/secret.h"
#include "base/str.h"
#include "drive/stack/fixture.h"
#include "drive/stack/impl.h"
#include "drive/stack/ports.h"
#include "drive/stack/seeded.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_MAX (256 * 1024)

static const struct part_ops *const rows[PART_COUNT] = {
    [PART_POSTGRES] = &stack_postgres,
    [PART_REDIS] = &stack_redis,
    [PART_STORE] = &stack_store,
    [PART_SERVER] = &stack_server,
};

static void random_hex(char *dst, size_t n)
{
    unsigned char raw[32];
    digest_random(raw, sizeof raw);
    digest_hex(dst, raw, n / 2);
}

/* By the folder, so that it is found again when the state is lost. */
static void name_project(struct stack *s)
{
    unsigned char sum[DIGEST_SHA256_LEN];
    char hex[13];
    digest_sha256(s->home, strlen(s->home), sum);
    digest_hex(hex, sum, 6);
    snprintf(s->project, sizeof s->project, "drivesim-%s", hex);
}

/* The folder of a part may have been moved away (stack/postgres.c): then a link stands in its place. Any other link is
 * nobody's, and not followed. */
static const char *real_folder(const struct stack *s, const char *name)
{
    const char *path = arena_printf(s->mem, "%s/%s", s->home, name);
    char *real = realpath(path, NULL);
    if (real && own_tree_belongs(real, s->home))
        path = arena_strdup(s->mem, real);
    free(real);
    return path;
}

static void hide_secrets(const struct stack *s)
{
    const char *const all[] = {s->password, s->s3_secret, s->jwt_secret, s->file_key};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        secret_add(sv_of(all[i]));
}

void stack_state_init(struct stack *s)
{
    random_hex(s->password, sizeof s->password - 1);
    random_hex(s->s3_secret, sizeof s->s3_secret - 1);
    random_hex(s->jwt_secret, sizeof s->jwt_secret - 1);
    random_hex(s->file_key, sizeof s->file_key - 1);
    hide_secrets(s);
    name_project(s);
    for (int i = 0; i < PART_COUNT; i++) {
        struct part *p = &s->parts[i];
        *p = (struct part){.ops = rows[i], .stack = s};
        p->folder = real_folder(s, rows[i]->name);
        p->log = arena_printf(s->mem, "%s/logs/%s.log", s->home, rows[i]->name);
    }
}

/* ---- reading ---- */

static void text_field(const struct json *o, const char *key, char *dst, size_t n)
{
    const char *v = json_str(json_get(o, key));
    if (v)
        snprintf(dst, n, "%s", v);
}

static void load_part(struct part *p, const struct json *o)
{
    int64_t port = 0, pid = 0, start = 0;
    p->wanted = json_bool(json_get(o, "wanted"), false);
    if (json_i64(json_get(o, "port"), &port))
        p->port = (int)port;
    if (json_i64(json_get(o, "pid"), &pid) && json_i64(json_get(o, "start"), &start))
        p->proc = (struct proc){(pid_t)pid, (uint64_t)start};
    const char *exe = json_str(json_get(o, "exe"));
    if (exe)
        p->exe = arena_strdup(p->stack->mem, exe);
}

static void load_fields(struct stack *s, const struct json *root)
{
    const char *kind = json_str(json_get(root, "kind"));
    s->kind = kind && strcmp(kind, "docker") == 0 ? KIND_DOCKER : KIND_NATIVE;
    text_field(root, "password", s->password, sizeof s->password);
    text_field(root, "s3_secret", s->s3_secret, sizeof s->s3_secret);
    text_field(root, "jwt_secret", s->jwt_secret, sizeof s->jwt_secret);
    text_field(root, "account", s->account, sizeof s->account);
    text_field(root, "file_key", s->file_key, sizeof s->file_key);
    hide_secrets(s);
    mem_free(s->server_args);
    s->server_args = mem_strdup(json_str(json_get(root, "server_args")));
    for (int i = 0; i < PART_COUNT; i++)
        load_part(&s->parts[i], json_get(json_get(root, "parts"), s->parts[i].ops->name));
}

enum err stack_state_load(struct stack *s, struct errinfo *ei)
{
    const char *path = arena_printf(s->mem, "%s/stack.json", s->home);
    struct buf text = BUF_INIT(STATE_MAX);
    struct json *root = NULL;
    struct errinfo why;
    enum err err = file_read(path, &text, ERR_ENV, &why);
    if (err && why.os_errno == ENOENT)
        err = ERR_NOTFOUND;
    else if (err)
        err_set(ei, err, "%s", err_message(&why));
    if (!err && json_parse(buf_cstr(&text), text.len, &root, NULL)) {
        LOGW("stack", "%s is damaged: the parts are looked for by their folders", path);
        s->damaged = true;
        err = ERR_NOTFOUND;
    }
    if (!err)
        load_fields(s, root);
    json_free(&root);
    buf_done(&text);
    return err == ERR_NOTFOUND ? ERR_OK : err;
}

/* ---- writing ---- */

static void save_part(struct jsonw *w, const struct part *p)
{
    jsonw_object(w, p->ops->name);
    jsonw_bool(w, "wanted", p->wanted);
    jsonw_i64(w, "port", p->port);
    jsonw_i64(w, "pid", p->proc.pid);
    jsonw_i64(w, "start", (int64_t)p->proc.start);
    jsonw_str(w, "exe", p->exe);
    jsonw_end_object(w);
}

static enum err state_text(const struct stack *s, struct buf *out)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "kind", s->kind == KIND_DOCKER ? "docker" : "native");
    jsonw_str(&w, "password", s->password);
    jsonw_str(&w, "s3_secret", s->s3_secret);
    jsonw_str(&w, "jwt_secret", s->jwt_secret);
    jsonw_str(&w, "account", s->account);
    jsonw_str(&w, "file_key", s->file_key);
    jsonw_str(&w, "server_args", s->server_args);
    jsonw_object(&w, "parts");
    for (int i = 0; i < PART_COUNT; i++)
        save_part(&w, &s->parts[i]);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    return w.err ? w.err : buf_append_char(out, '\n');
}

/* Whole or not at all: a reader never meets half a file. */
static enum err replace_file(const struct stack *s, const char *name, enum err (*write)(const struct stack *, FILE *),
                             struct errinfo *ei)
{
    const char *path = arena_printf(s->mem, "%s/%s", s->home, name);
    const char *next = arena_printf(s->mem, "%s.next", path);
    unlink(next); /* of one that was interrupted; or a link, which is not written through */
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        return err_sys(ei, ERR_ENV, "cannot write %s", next);
    enum err err = write(s, f);
    if (fclose(f) != 0 || err || rename(next, path) < 0)
        return err_sys(ei, ERR_ENV, "cannot write %s", path);
    return ERR_OK;
}

static enum err write_state(const struct stack *s, FILE *f)
{
    struct buf text = BUF_INIT(STATE_MAX);
    enum err err = state_text(s, &text);
    if (!err && fwrite(buf_cstr(&text), 1, text.len, f) != text.len)
        err = ERR_IO;
    buf_done(&text);
    return err;
}

static enum err write_env(const struct stack *s, FILE *f)
{
    return stack_print_env(s, f, false, NULL);
}

enum err stack_state_save(struct stack *s, struct errinfo *ei)
{
    enum err err = replace_file(s, "stack.json", write_state, ei);
    return err ? err : replace_file(s, "env", write_env, ei);
}

/* ---- removing ---- */

/* A link to a folder that was moved away goes as a link; so does any that stands where a file of ours does. */
static bool remove_link_or_file(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT;
}

static void remove_folder(const char *path)
{
    struct errinfo ei;
    struct stat st;
    bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && access(path, F_OK) < 0; /* to what is gone by now */
    if (link ? !remove_link_or_file(path) : own_tree_remove(path, &ei))
        LOGW("stack", "%s", link ? path : err_message(&ei));
}

/* Only what the stack made: .sim itself goes when nothing else lies in it. */
void stack_state_remove(struct stack *s)
{
    static const char *const folders[] = {"postgres", "store.next", "logs", "sessions"};
    static const char *const files[] = {STACK_SEEDED_FILE, STACK_TABLES_FILE, "loading",    "env",
                                        "env.next",        "stack.json.next", "stack.json", "lock"};
    stack_release_ports(s);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        remove_folder(arena_printf(s->mem, "%s/%s", s->home, folders[i]));
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const char *path = arena_printf(s->mem, "%s/%s", s->home, files[i]);
        if (!remove_link_or_file(path))
            LOGW("stack", "cannot remove %s: %s", path, strerror(errno));
    }
    if (fixture_tidy(s))
        stack_say(s, "fixtures stay in %s", fixture_folder(s, NULL));
    else if (rmdir(s->home) < 0 && errno != ENOENT)
        LOGI("stack", "%s holds other files and stays", s->home);
    close(s->lock_fd); /* whoever waits for it makes a new one */
    s->lock_fd = -1;
}
