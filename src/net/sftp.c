#include "net/sftp.h"
#include "base/mem.h"
#include "net/sftp_int.h"

#include <string.h>

#define VERSION_WANTED 3

static const struct {
    const char *name;
    enum sftp_ext bit;
} extensions[] = {
    {"posix-rename@openssh.com", SFTP_EXT_POSIX_RENAME},
    {"statvfs@openssh.com", SFTP_EXT_STATVFS},
    {"copy-data", SFTP_EXT_COPY_DATA},
    {"fsync@openssh.com", SFTP_EXT_FSYNC},
};

const char *sftp_status_text(enum sftp_status s)
{
    static const char *const texts[] = {
        [SFTP_OK] = "ok",
        [SFTP_EOF] = "end of file",
        [SFTP_NO_SUCH_FILE] = "no such file",
        [SFTP_PERMISSION_DENIED] = "permission denied",
        [SFTP_FAILURE] = "failure",
        [SFTP_BAD_MESSAGE] = "bad message",
        [SFTP_UNSUPPORTED] = "not supported",
        [SFTP_EXISTS] = "already exists",
        [SFTP_NO_SPACE] = "no space left",
        [SFTP_QUOTA] = "quota exceeded",
        [SFTP_FOLDER_NOT_EMPTY] = "folder not empty",
    };
    return (unsigned)s < ARRAY_LEN(texts) && texts[s] ? texts[s] : "unknown status";
}

/* ---- answers ---- */

static void deliver(struct sftp *s, const struct sftp_packet *p)
{
    struct sftp_call *c = s->waiting;
    while (c && c->id != p->id)
        c = c->next;
    if (!c)
        return; /* forgotten meanwhile */
    if (buf_append(&c->body, p->body.p, p->body.n) != ERR_OK)
        return;
    c->type = p->type;
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    c->at = NULL;
    done_set(&c->done);
}

static void break_off(struct sftp *s, enum err err, const struct errinfo *why)
{
    if (s->broken != ERR_OK)
        return;
    s->broken = err;
    s->why = *why;
    for (struct sftp_call *c = s->waiting; c; c = c->next)
        done_set(&c->done);
}

static void on_data(void *arg, const char *p, size_t n)
{
    struct sftp *s = arg;
    struct sftp_packet packet;
    struct errinfo why;
    size_t at = 0, used = 0;
    if (s->broken != ERR_OK)
        return;
    if (buf_append(&s->in, p, n) != ERR_OK)
        break_off(s, err_set(&why, ERR_PROTO, "sftp: the server sends too much"), &why);
    while (s->broken == ERR_OK && sftp_packet_take((struct sv){s->in.data + at, s->in.len - at}, &packet, &used)) {
        at += used;
        if (packet.type == 0)
            break_off(s, err_set(&why, ERR_PROTO, "sftp: malformed answer"), &why);
        else
            deliver(s, &packet);
    }
    buf_consume(&s->in, at);
}

static void on_end(void *arg, enum err err, const struct errinfo *why)
{
    break_off(arg, err, why);
}

/* ---- requests ---- */

static void enlist(struct sftp *s, struct sftp_call *c, uint32_t id)
{
    *c = (struct sftp_call){.id = id, .body = BUF_INIT(SFTP_PACKET_MAX), .next = s->waiting, .at = &s->waiting};
    if (c->next)
        c->next->at = &c->next;
    s->waiting = c;
}

void sftp_begin(struct sftp *s, struct sftp_call *c, struct sftp_out *o, enum sftp_type type)
{
    uint32_t id = s->next_id++;
    if (s->next_id == 0) /* 0 is the hello's */
        s->next_id = 1;
    enlist(s, c, id);
    sftp_out_begin(o, type, id);
}

void sftp_extended(struct sftp *s, struct sftp_call *c, struct sftp_out *o, const char *name)
{
    sftp_begin(s, c, o, SFTP_T_EXTENDED);
    sftp_out_text(o, sv_of(name));
}

void sftp_send(struct sftp *s, struct sftp_out *o, struct sv more)
{
    struct errinfo why;
    sftp_out_end(o, more.n);
    if (o->err != ERR_OK) {
        break_off(s, err_set(&why, ERR_LIMIT, "sftp: the request is too long"), &why);
    } else {
        ssh_write(s->ssh, o->bytes.data, o->bytes.len);
        if (more.n)
            ssh_write(s->ssh, more.p, more.n);
    }
    sftp_out_done(o);
}

void sftp_forget(struct sftp_call *c)
{
    if (c->at) {
        *c->at = c->next;
        if (c->next)
            c->next->at = c->at;
        c->at = NULL;
    }
    buf_done(&c->body);
}

enum err sftp_await(struct sftp *s, struct sftp_call *c, struct errinfo *ei)
{
    struct mono deadline = mono_add(mono_now(), s->timeout_us);
    while (c->at && s->broken == ERR_OK)
        if (!done_wait_until(s->loop, &c->done, deadline) && c->at && s->broken == ERR_OK)
            return err_set(ei, ERR_TIMEOUT, "timed out waiting for an answer");
    if (!c->at)
        return ERR_OK;
    if (ei)
        *ei = s->why;
    return s->broken;
}

enum err sftp_judge(const struct sftp_call *c, enum sftp_type wanted, struct sftp_reply *r, struct errinfo *ei)
{
    struct sftp_in in = {.rest = {c->body.data, c->body.len}};
    *r = (struct sftp_reply){.status = SFTP_OK};
    if (c->type == SFTP_T_STATUS) {
        uint32_t status = sftp_in_u32(&in);
        bool bad = in.bad;
        if (in.rest.n) /* some servers leave the sentence out */
            str_shown(r->text, sizeof(r->text), sftp_in_text(&in));
        r->status = status;
        if (!bad && (wanted == SFTP_T_STATUS || status != SFTP_OK))
            return ERR_OK;
    } else if (c->type == wanted) {
        return ERR_OK;
    }
    return err_set(ei, ERR_PROTO, "sftp: an answer of the wrong kind");
}

enum err sftp_ask(struct sftp *s, struct sftp_call *c, struct sftp_out *o, enum sftp_type wanted, struct sftp_reply *r,
                  struct errinfo *ei)
{
    *r = (struct sftp_reply){.status = SFTP_FAILURE};
    sftp_send(s, o, (struct sv){NULL, 0});
    enum err e = sftp_await(s, c, ei);
    return e == ERR_OK ? sftp_judge(c, wanted, r, ei) : e;
}

/* ---- session ---- */

static enum err read_hello(struct sftp *s, const struct sftp_call *c, struct errinfo *ei)
{
    struct sftp_in in = {.rest = {c->body.data, c->body.len}};
    uint32_t version = sftp_in_u32(&in);
    if (c->type != SFTP_T_VERSION || in.bad || version < VERSION_WANTED)
        return err_set(ei, ERR_PROTO, "sftp: the server does not speak version 3");
    while (in.rest.n && !in.bad) {
        struct sv name = sftp_in_text(&in);
        (void)sftp_in_text(&in);
        for (size_t i = 0; i < ARRAY_LEN(extensions); i++)
            if (sv_eq_cstr(name, extensions[i].name))
                s->exts |= extensions[i].bit;
    }
    return ERR_OK;
}

static MAY_YIELD enum err hello(struct sftp *s, struct errinfo *ei)
{
    static const struct ssh_ops ops = {on_data, on_end};
    struct sftp_call c;
    struct sftp_out o;
    enlist(s, &c, 0);
    sftp_out_begin(&o, SFTP_T_INIT, VERSION_WANTED);
    ssh_start(s->ssh, &ops, s);
    sftp_send(s, &o, (struct sv){NULL, 0});
    enum err e = sftp_await(s, &c, ei);
    if (e == ERR_OK)
        e = read_hello(s, &c, ei);
    sftp_forget(&c);
    return e;
}

enum err sftp_open(struct sftp **out, struct ssh_client *c, struct loop *l, const struct ssh_login *login,
                   int64_t timeout_us, struct ssh_report *report, struct errinfo *ei)
{
    struct sftp *s = mem_zalloc(sizeof(*s));
    s->loop = l;
    s->timeout_us = timeout_us;
    s->next_id = 1;
    buf_init(&s->in, 2 * SFTP_PACKET_MAX);
    enum err e = ssh_open(&s->ssh, c, login, "sftp", mono_add(mono_now(), timeout_us), report, ei);
    if (e == ERR_OK)
        e = hello(s, ei);
    if (e == ERR_OK)
        *out = s;
    else
        sftp_close(&s);
    return e;
}

void sftp_cancel(struct sftp *s)
{
    struct errinfo why;
    break_off(s, err_set(&why, ERR_CANCELLED, "cancelled"), &why);
}

void sftp_close(struct sftp **s)
{
    if (!*s)
        return;
    ssh_close(&(*s)->ssh);
    buf_done(&(*s)->in);
    MEM_FREE(*s);
}

bool sftp_alive(const struct sftp *s)
{
    return s->broken == ERR_OK;
}

unsigned sftp_extensions(const struct sftp *s)
{
    return s->exts;
}

const struct ssh *sftp_ssh(const struct sftp *s)
{
    return s->ssh;
}
