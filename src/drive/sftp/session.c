/* The sftp dialect: sessions, verdicts, and its table. Verdicts borrow HTTP's numbers (404, 409, 507), which is what
 * scenarios ask for; status 0 stays "no answer". */

#include "base/digest.h"
#include "base/file.h"
#include "base/mem.h"
#include "drive/sftp/read.h"
#include "drive/sftp/sftp.h"
#include "drive/sftp/tree.h"
#include "drive/sftp/write.h"
#include "drive/target.h"
#include <stdio.h>
#include <string.h>

#define OURS          ".drivesim-"
#define PATH_LIMIT    4096
#define OPENING_MOST  4 /* sessions signed in again at the same time */
#define REFUSED_TRIES 6
#define REFUSED_US    (250 * US_PER_MS) /* the first wait; doubles */

/* What all sessions of the program share; it has one loop. */
static struct {
    struct ssh_client *client;
    struct sem opening;
    unsigned users;
} shared;

/* ---- verdicts ---- */

static const struct {
    enum sftp_status status;
    int http;
    enum outcome outcome;
} answers[] = {
    {SFTP_OK, 200, OUT_OK},
    {SFTP_EOF, 416, OUT_CLIENT},
    {SFTP_NO_SUCH_FILE, 404, OUT_CLIENT},
    {SFTP_PERMISSION_DENIED, 403, OUT_REFUSED},
    {SFTP_BAD_MESSAGE, 400, OUT_CLIENT},
    {SFTP_UNSUPPORTED, 501, OUT_CLIENT},
    {SFTP_EXISTS, 409, OUT_CONFLICT},
    {SFTP_NO_SPACE, 507, OUT_REFUSED},
    {SFTP_QUOTA, 507, OUT_REFUSED},
    {SFTP_FOLDER_NOT_EMPTY, 409, OUT_CONFLICT},
};

static void answered(struct api_result *r, const struct sftp_reply *reply)
{
    const char *text = sftp_status_text(reply->status);
    r->status = 500;
    r->outcome = OUT_SERVER;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        if (answers[i].status == reply->status) {
            r->status = answers[i].http;
            r->outcome = answers[i].outcome;
        }
    if (reply->status == SFTP_EXISTS)
        snprintf(r->code, sizeof(r->code), "EXISTS");
    if (r->outcome == OUT_OK)
        r->reason[0] = '\0';
    else if (reply->text[0] && strcasecmp(reply->text, text) != 0)
        snprintf(r->reason, sizeof(r->reason), "%s: %s", text, reply->text);
    else
        snprintf(r->reason, sizeof(r->reason), "%s", text);
}

static void unanswered(struct api_result *r, enum err e, bool write, const struct errinfo *ei)
{
    static const struct {
        enum err err;
        enum outcome outcome;
        int status;
        const char *code;
    } rows[] = {{ERR_REFUSED, OUT_REFUSED, 0, API_CODE_BEFORE_SIGN_IN}, {ERR_AUTH, OUT_CLIENT, 401, ""}};
    api_no_answer(r, e == ERR_PROTO ? ERR_PARSE : e, write, ei);
    r->err = e;
    r->status = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].err == e) {
            r->outcome = rows[i].outcome;
            r->status = rows[i].status;
            snprintf(r->code, sizeof(r->code), "%s", rows[i].code);
        }
}

void sftp_op_say(struct api_result *r, int status, const char *code, const char *reason)
{
    r->status = status;
    r->outcome = outcome_of_status(status);
    if (code)
        snprintf(r->code, sizeof(r->code), "%s", code);
    snprintf(r->reason, sizeof(r->reason), "%s", reason);
}

/* ---- sessions ---- */

static void link_release(struct sftp_link *l)
{
    if (l->users > 0 || !l->dropped)
        return;
    sftp_close(&l->sftp);
    mem_free(l);
}

static void link_drop(struct sftp_state *st)
{
    struct sftp_link *l = st->link;
    st->link = NULL;
    if (l) {
        l->dropped = true;
        link_release(l);
    }
}

/* Where this login's work is. */
static MAY_YIELD enum err find_root(struct sftp_state *st, struct sftp *s, struct errinfo *ei)
{
    struct sftp_reply reply = {.status = SFTP_OK};
    struct sftp_attrs attrs = {0};
    struct buf path = BUF_INIT(PATH_LIMIT);
    const char *base = *st->base ? st->base : ".";
    enum err e = sftp_real_path(s, base, &path, &reply, ei);
    if (e == ERR_OK && reply.status == SFTP_OK)
        e = sftp_stat(s, buf_cstr(&path), &attrs, &reply, ei);
    if (e == ERR_OK && (reply.status != SFTP_OK || !sftp_attrs_is_folder(&attrs)))
        e = err_set(ei, ERR_ENV, "%s has no folder %s for %s: make it, or name another in TMA_URL", st->host, base,
                    st->user);
    if (e == ERR_OK)
        e = buf_appendf(&path, "%s" API_PLACE, path.len && path.data[path.len - 1] == '/' ? "" : "/");
    if (e == ERR_OK) {
        mem_free(st->root);
        st->root = buf_take(&path, NULL);
    }
    buf_done(&path);
    return e;
}

static MAY_YIELD enum err link_open(struct api *a, struct errinfo *ei)
{
    struct sftp_state *st = a->state;
    const struct ssh_login login = {.host = st->host,
                                    .port = st->port,
                                    .user = st->user,
                                    .password = st->password,
                                    .key_file = st->password ? NULL : st->key_file,
                                    .passphrase = st->passphrase};
    struct ssh_report report;
    struct sftp *s = NULL;
    st->opens = &login;
    enum err e = sftp_open(&s, shared.client, st->loop, &login, a->timeout_us, &report, ei);
    st->opens = NULL;
    if (e == ERR_OK && !st->root)
        e = find_root(st, s, ei);
    if (e != ERR_OK) {
        sftp_close(&s);
        return e;
    }
    st->extensions = sftp_extensions(s);
    st->link = mem_zalloc(sizeof(*st->link));
    st->link->sftp = s;
    return ERR_OK;
}

/* An app's own session, made when it is first needed: a few at a time, and again when the server refuses for now. */
static MAY_YIELD enum err link_renew(struct api *a, struct errinfo *ei)
{
    struct sftp_state *st = a->state;
    enum err e = ERR_REFUSED;
    unsigned cancels = st->cancels;
    for (unsigned tries = 0; tries < REFUSED_TRIES && e == ERR_REFUSED; tries++) {
        if (tries > 0)
            coro_sleep_until(st->loop, mono_add(mono_now(), REFUSED_US << (tries - 1)));
        sem_take(st->loop, &shared.opening, 1);
        if (st->cancels == cancels)
            e = link_open(a, ei);
        else /* while it waited for its turn */
            e = err_set(ei, ERR_CANCELLED, "cancelled");
        sem_give(&shared.opening, 1);
    }
    return e;
}

static MAY_YIELD enum err link_take(struct api *a, struct sftp_link **out, struct errinfo *ei)
{
    struct sftp_state *st = a->state;
    enum err e = ERR_OK;
    if (!st->user)
        return err_set(ei, ERR_AUTH, "not signed in");
    sem_take(st->loop, &st->opening, 1);
    if (st->link && !sftp_alive(st->link->sftp))
        link_drop(st);
    if (!st->link)
        e = link_renew(a, ei);
    sem_give(&st->opening, 1);
    if (e == ERR_OK) {
        st->link->users++;
        *out = st->link;
    }
    return e;
}

bool sftp_op_begin(struct sftp_op *op, struct api *a, struct api_result *r, bool write)
{
    *op = (struct sftp_op){.a = a, .st = a->state, .r = r, .write = write};
    api_result_init(r);
    r->sent = mono_now();
    enum err e = link_take(a, &op->link, &op->ei);
    if (e != ERR_OK) {
        unanswered(r, e, false, &op->ei);
        r->done = mono_now();
        op->ei.code = e;
        return false;
    }
    op->s = op->link->sftp;
    op->up = ssh_bytes_up(sftp_ssh(op->s));
    op->down = ssh_bytes_down(sftp_ssh(op->s));
    r->sent = mono_now();
    return true;
}

enum err sftp_op_end(struct sftp_op *op, enum err e)
{
    struct api_result *r = op->r;
    r->done = mono_now();
    r->bytes_up = ssh_bytes_up(sftp_ssh(op->s)) - op->up;
    r->bytes_down = ssh_bytes_down(sftp_ssh(op->s)) - op->down;
    if (e == ERR_OK)
        answered(r, &op->reply);
    else
        unanswered(r, e, op->write, &op->ei);
    if (op->st->link == op->link && !sftp_alive(op->s))
        link_drop(op->st);
    op->link->users--;
    link_release(op->link);
    return e;
}

/* ---- paths ---- */

const char *sftp_path_of(const struct sftp_op *op, struct arena *mem, const char *id)
{
    struct buf path = BUF_INIT(PATH_LIMIT);
    const char *found = NULL;
    if (!id)
        found = op->st->root;
    else if (op->a->names && names_path(op->a->names, id, &path) == ERR_OK)
        found = arena_printf(mem, "%s/%s", op->st->root, buf_cstr(&path));
    buf_done(&path);
    return found;
}

const char *sftp_path_in(const struct sftp_op *op, struct arena *mem, const char *folder_id, const char *name)
{
    const char *folder = sftp_path_of(op, mem, folder_id);
    return folder ? arena_printf(mem, "%s/%s", folder, name) : NULL;
}

const char *sftp_temporary(struct arena *mem, const char *path)
{
    char id[17];
    const char *slash = strrchr(path, '/');
    digest_random_id(id, sizeof(id) - 1);
    return arena_printf(mem, "%.*s" OURS "%s", slash ? (int)(slash + 1 - path) : 0, path, id);
}

bool sftp_name_is_ours(struct sv name)
{
    return sv_starts(name, SV(OURS)) || sv_eq_cstr(name, API_MARKER);
}

/* ---- rows of the table ---- */

static enum err open_state(struct api *a, const struct api_conf *conf, const struct http_url *url, struct errinfo *ei)
{
    const struct target *t = conf->target;
    struct buf base = BUF_INIT(PATH_LIMIT);
    enum err e = str_url_decode(&base, sv_of(url->path));
    if (e != ERR_OK)
        e = err_set(ei, ERR_USAGE, "the path of TMA_URL cannot be decoded");
    if (e == ERR_OK && t && t->ssh_key) /* libssh2 opens it by its name */
        e = file_readable(t->ssh_key, ERR_ENV, ei);
    if (e == ERR_OK && shared.users == 0) {
        const struct ssh_client_conf cc = {.known_hosts = t ? t->known_hosts : NULL, .insecure = t && t->insecure};
        e = ssh_client_new(&shared.client, conf->loop, &cc, ei);
        sem_init_coro(&shared.opening, OPENING_MOST);
    }
    if (e == ERR_OK) {
        struct sftp_state *st = a->state = mem_zalloc(sizeof(*st));
        bool home = sv_starts(sv_of(buf_cstr(&base)), SV("/~"));
        shared.users++;
        st->loop = conf->loop;
        st->target = t;
        st->host = mem_strdup(url->host);
        st->port = url->port;
        st->base = mem_strdup(buf_cstr(&base) + (home ? 2 : 0));
        if (home && st->base[0] == '/')
            memmove(st->base, st->base + 1, strlen(st->base));
        st->key_file = t ? t->ssh_key : NULL;
        st->passphrase = t ? t->ssh_passphrase : NULL;
        sem_init_coro(&st->opening, 1);
    }
    buf_done(&base);
    return e;
}

static void close_state(struct api *a)
{
    struct sftp_state *st = a->state;
    if (!st)
        return;
    link_drop(st);
    mem_free(st->host);
    mem_free(st->base);
    mem_free(st->user);
    mem_free(st->password);
    mem_free(st->root);
    MEM_FREE(a->state);
    if (--shared.users == 0)
        ssh_client_free(&shared.client);
}

static void set_login(struct sftp_state *st, const char *user, const char *password)
{
    char *u = mem_strdup(user), *p = mem_strdup(password);
    mem_free(st->user);
    mem_free(st->password);
    st->user = u;
    st->password = p;
}

static void share(struct api *to, const struct api *from)
{
    struct sftp_state *st = to->state;
    const struct sftp_state *other = from->state;
    bool same = st->user && other->user && strcmp(st->user, other->user) == 0;
    set_login(st, other->user, other->password);
    char *root = mem_strdup(other->root);
    mem_free(st->root);
    st->root = root;
    st->extensions = other->extensions;
    if (!same)
        link_drop(st);
}

static void cancel(struct api *a)
{
    struct sftp_state *st = a->state;
    st->cancels++;
    if (st->link)
        sftp_cancel(st->link->sftp);
    if (st->opens)
        ssh_client_cancel(shared.client, st->opens);
}

/* A login with a password signs in by it, one without by the key, or by the password for all where there is none. */
static MAY_YIELD enum err enter(struct api *a, const char *user, const char *password, struct errinfo *ei)
{
    struct sftp_state *st = a->state;
    bool for_all = !password && !st->key_file && st->target;
    set_login(st, user, for_all ? st->target->password : password);
    MEM_FREE(st->root);
    link_drop(st);
    enum err e = link_open(a, ei);
    if (e != ERR_OK)
        return e;
    struct buf tree = BUF_INIT(PATH_LIMIT);
    if ((e = buf_appendf(&tree, "%s:%d%s", st->host, st->port, st->root)) == ERR_OK)
        api_set_tree(a, buf_cstr(&tree));
    buf_done(&tree);
    return e;
}

static MAY_YIELD enum err sign_in(struct api *a, const char *email, const char *password, struct api_result *r)
{
    struct errinfo ei = {0};
    api_result_init(r);
    r->sent = mono_now();
    enum err e = enter(a, email, password, &ei);
    r->done = mono_now();
    if (e == ERR_OK)
        r->status = 200;
    else
        unanswered(r, e, false, &ei);
    return e == ERR_AUTH ? ERR_OK : e;
}

static MAY_YIELD enum err sign_out(struct api *a, struct api_result *r)
{
    api_result_init(r);
    r->sent = r->done = mono_now();
    r->status = 200;
    link_drop(a->state);
    return ERR_OK;
}

static MAY_YIELD enum err probe(struct api *a, struct api_result *r)
{
    struct sftp_op op;
    if (!sftp_op_begin(&op, a, r, false))
        return op.ei.code;
    return sftp_op_end(&op, ERR_OK); /* the server told its extensions when the session began */
}

static MAY_YIELD enum err greet(struct api *a, struct errinfo *ei)
{
    const struct sftp_state *st = a->state;
    const struct target_login *first = &st->target->logins[0];
    struct errinfo why = {0};
    enum err e = enter(a, first->name, first->password, &why);
    if (e == ERR_OK)
        return ERR_OK;
    if (e == ERR_SAFETY || e == ERR_ENV)
        return err_set(ei, e, "%s", err_message(&why));
    if (e == ERR_CONNECT)
        return err_set(ei, ERR_ENV, "nothing is listening at %s: start the server", st->target->url);
    return err_set(ei, e == ERR_CANCELLED ? ERR_INTERRUPTED : ERR_ENV, "%s: %s", st->target->url, err_message(&why));
}

static void fill_mark(void *arg, uint64_t offset, char *dst, size_t n)
{
    (void)arg;
    memcpy(dst, &API_MARKER_TEXT[offset], n);
}

static MAY_YIELD enum err put_mark(struct sftp_op *op, const char *mark)
{
    static const struct sftp_source text = {.size = sizeof(API_MARKER_TEXT) - 1, .fill = fill_mark};
    enum err e = sftp_put(op->s, mark, &text, &op->reply, &op->ei);
    struct sftp_attrs attrs;
    if (e == ERR_OK && op->reply.status != SFTP_OK && sftp_is_there(op, mark, &attrs))
        op->reply = (struct sftp_reply){.status = SFTP_OK}; /* another process was first */
    return e;
}

static bool count_entry(void *arg, struct sv name, const struct sftp_attrs *a)
{
    (void)name;
    (void)a;
    ++*(uint64_t *)arg;
    return true;
}

static MAY_YIELD enum err claim(struct api *a, struct api_result *r)
{
    struct sftp_op op;
    struct sftp_attrs attrs;
    uint64_t others = 0;
    struct arena *mem = arena_new(1024);
    bool begun = sftp_op_begin(&op, a, r, true), foreign = false;
    enum err e = begun ? ERR_OK : op.ei.code;
    if (begun) {
        const char *mark = arena_printf(mem, "%s/" API_MARKER, op.st->root);
        if (!sftp_is_there(&op, mark, &attrs)) {
            e = sftp_change(op.s, SFTP_MKDIR, op.st->root, NULL, &op.reply, &op.ei);
            if (e == ERR_OK && op.reply.status != SFTP_OK)
                e = sftp_list(op.s, op.st->root, count_entry, &others, &op.reply, &op.ei);
            foreign = others > 0;
            if (sftp_op_ok(&op, e) && !foreign)
                e = put_mark(&op, mark);
        }
        e = sftp_op_end(&op, e);
        if (foreign)
            sftp_op_say(r, 403, NULL, "the folder " API_PLACE " is there and holds what drivesim did not make");
    }
    arena_free(&mem);
    return e;
}

static MAY_YIELD enum err unclaim(struct api *a, struct api_locks_left *left, struct api_result *r)
{
    (void)left; /* no locks here */
    struct sftp_op op;
    struct sftp_attrs attrs;
    if (!sftp_op_begin(&op, a, r, true))
        return op.ei.code;
    struct arena *mem = arena_new(1024);
    enum err e = ERR_OK;
    bool there = sftp_is_there(&op, op.st->root, &attrs);
    bool ours = there && sftp_is_there(&op, arena_printf(mem, "%s/" API_MARKER, op.st->root), &attrs);
    if (ours)
        e = sftp_remove_tree(&op, op.st->root);
    e = sftp_op_end(&op, e);
    if (there && !ours)
        sftp_op_say(r, 403, NULL, "the folder " API_PLACE " holds what drivesim did not make");
    arena_free(&mem);
    return e;
}

const struct api_dialect api_dialect_sftp = {
    .name = "sftp",
    .caps = API_CAP_RANGES,
    .open = open_state,
    .close = close_state,
    .share = share,
    .cancel = cancel,
    .greet = greet,
    .claim = claim,
    .unclaim = unclaim,
    .probe = probe,
    .sign_in = sign_in,
    .sign_out = sign_out,
    .storage = sftp_op_storage,
    .list = sftp_op_list,
    .info = sftp_op_info,
    .folder_create = sftp_op_folder_create,
    .upload = sftp_op_upload,
    .replace = sftp_op_replace,
    .download = sftp_op_download,
    .rename = sftp_op_rename,
    .move = sftp_op_move,
    .copy = sftp_op_copy,
    .trash = sftp_op_remove,
};
