/* Signing in, as a table of steps: each is called again until the library no longer wants to wait. Which step it was
 * decides what a lost connection means. */
#include "base/mem.h"
#include "net/ssh_int.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define WINDOW     (2u << 20) /* what the server may send unasked: a few reads under way */
#define PACKET_MAX (32u << 10)
#define CONNECT_US (10 * US_PER_S) /* at most, for TCP alone */

/* ---- ways of signing in ---- */

static bool has_key(const struct ssh_login *l)
{
    return l->key_file != NULL;
}

static bool has_password(const struct ssh_login *l)
{
    return l->password != NULL;
}

static unsigned user_n(const struct ssh *s)
{
    return (unsigned)strlen(s->login->user);
}

static int by_key(struct ssh *s)
{
    return libssh2_userauth_publickey_fromfile_ex(s->session, s->login->user, user_n(s), NULL, s->login->key_file,
                                                  s->login->passphrase);
}

static int by_password(struct ssh *s)
{
    const char *password = s->login->password;
    return libssh2_userauth_password_ex(s->session, s->login->user, user_n(s), password, (unsigned)strlen(password),
                                        NULL);
}

/* The password answers whatever is asked; the library frees the answers. */
static LIBSSH2_USERAUTH_KBDINT_RESPONSE_FUNC(on_questions)
{
    const struct ssh *s = *abstract;
    (void)name;
    (void)name_len;
    (void)instruction;
    (void)instruction_len;
    (void)prompts;
    for (int i = 0; i < num_prompts; i++) {
        responses[i].text = mem_strdup(s->login->password);
        responses[i].length = (unsigned)strlen(s->login->password);
    }
}

static int by_questions(struct ssh *s)
{
    return libssh2_userauth_keyboard_interactive_ex(s->session, s->login->user, user_n(s), on_questions);
}

static const struct {
    const char *name;
    bool (*usable)(const struct ssh_login *);
    int (*call)(struct ssh *);
} methods[] = {
    {"publickey", has_key, by_key},
    {"password", has_password, by_password},
    {"keyboard-interactive", has_password, by_questions},
};

static bool offered(const struct ssh *s, const char *name)
{
    struct sv rest = sv_of(s->methods), one;
    while (sv_split(&rest, ',', &one))
        if (sv_eq_cstr(one, name))
            return true;
    return false;
}

/* ---- steps ---- */

static int hand_shake(struct ssh *s)
{
    return libssh2_session_handshake(s->session, s->io.fd);
}

static int ask_methods(struct ssh *s)
{
    s->methods = libssh2_userauth_list(s->session, s->login->user, user_n(s));
    if (s->methods || libssh2_userauth_authenticated(s->session))
        return 0;
    return libssh2_session_last_errno(s->session);
}

static int authenticate(struct ssh *s)
{
    int rc = LIBSSH2_ERROR_AUTHENTICATION_FAILED;
    if (libssh2_userauth_authenticated(s->session))
        return 0;
    for (; s->method < ARRAY_LEN(methods); s->method++) {
        if (!methods[s->method].usable(s->login) || !offered(s, methods[s->method].name))
            continue;
        rc = methods[s->method].call(s);
        if (rc == 0 || rc == LIBSSH2_ERROR_EAGAIN || s->ended || s->os_errno)
            return rc;
    }
    return rc;
}

static int open_channel(struct ssh *s)
{
    static const char kind[] = "session";
    s->channel = libssh2_channel_open_ex(s->session, kind, sizeof(kind) - 1, WINDOW, PACKET_MAX, NULL, 0);
    return s->channel ? 0 : libssh2_session_last_errno(s->session);
}

static int start_subsystem(struct ssh *s)
{
    static const char request[] = "subsystem";
    return libssh2_channel_process_startup(s->channel, request, sizeof(request) - 1, s->subsystem,
                                           (unsigned)strlen(s->subsystem));
}

static const struct {
    enum ssh_stage stage;
    int (*call)(struct ssh *);
} steps[] = {
    {SSH_BANNER, hand_shake},    {SSH_AUTH, ask_methods},        {SSH_AUTH, authenticate},
    {SSH_CHANNEL, open_channel}, {SSH_CHANNEL, start_subsystem},
};

const char *ssh_stage_text(enum ssh_stage stage)
{
    static const char *const texts[] = {"connecting",     "waiting for the banner", "key exchange", "host key",
                                        "authentication", "starting the subsystem", "signed in"};
    return (unsigned)stage < ARRAY_LEN(texts) ? texts[stage] : "?";
}

/* ---- what went wrong ---- */

static enum err refused_login(const struct ssh *s, struct errinfo *ei)
{
    const struct ssh_login *l = s->login;
    if (l->key_file && access(l->key_file, R_OK) != 0)
        return err_sys(ei, ERR_ENV, "cannot read the key %s", l->key_file);
    if (libssh2_session_last_errno(s->session) == LIBSSH2_ERROR_FILE)
        return err_set(ei, ERR_ENV,
                       "the key %s cannot be used: its passphrase is wrong or missing, or its format is "
                       "not known",
                       l->key_file);
    return err_set(ei, ERR_AUTH, "%s may not sign in with %s%s%s (the server takes %s)", l->user,
                   l->key_file ? "this key" : "", l->key_file && l->password ? " or " : "",
                   l->password   ? "this password"
                   : l->key_file ? ""
                                 : "nothing",
                   s->methods ? s->methods : "?");
}

static enum err failed(struct ssh *s, int rc, struct errinfo *ei)
{
    const char *at = ssh_stage_text(s->stage);
    bool gone = s->ended || s->os_errno == ECONNRESET || s->os_errno == EPIPE;
    char *text = NULL;
    if (gone && s->stage == SSH_BANNER)
        return err_set(ei, ERR_REFUSED, "refused before sign-in%s%s", s->said[0] ? ": " : "", s->said);
    errno = s->os_errno;
    if (s->os_errno)
        return err_sys(ei, gone ? ERR_RESET : ERR_IO, "connection lost, %s", at);
    if (s->ended || rc == LIBSSH2_ERROR_SOCKET_DISCONNECT)
        return err_set(ei, ERR_CLOSED, "closed by the server, %s", at);
    if (s->stage == SSH_AUTH)
        return refused_login(s, ei);
    if (rc == LIBSSH2_ERROR_KEX_FAILURE)
        return err_set(ei, ERR_PROTO,
                       "ssh, %s: the server offers nothing that libssh2 can take; where its host key is an RSA one,"
                       " `ssh-keygen -A` there adds others",
                       at);
    libssh2_session_last_error(s->session, &text, NULL, 0);
    return err_set(ei, ERR_PROTO, "ssh, %s: %s", at, text && *text ? text : "malformed answer");
}

/* ---- the way through ---- */

static MAY_YIELD enum err await(struct ssh *s, struct errinfo *ei)
{
    ssh_flush(s);
    loop_io_set(&s->io, EPOLLIN | (ssh_out_waits(s) ? EPOLLOUT : 0));
    bool moved = done_wait_until(s->client->loop, &s->ready, s->deadline);
    loop_io_set(&s->io, 0);
    if (s->cancelled)
        return err_set(ei, ERR_CANCELLED, "cancelled");
    return moved ? ERR_OK : err_set(ei, ERR_TIMEOUT, "timed out, %s", ssh_stage_text(s->stage));
}

/* From here on what ends the connection is no longer a refusal. */
static void note_banner(struct ssh *s, struct mono began, struct ssh_report *report)
{
    if (!s->named || report->banner_us >= 0)
        return;
    report->banner_us = mono_diff(mono_now(), began);
    s->stage = SSH_KEX;
}

static MAY_YIELD enum err take_step(struct ssh *s, size_t i, struct mono began, struct ssh_report *report,
                                    struct errinfo *ei)
{
    s->stage = steps[i].stage;
    for (;;) {
        int rc = steps[i].call(s);
        note_banner(s, began, report);
        if (rc != LIBSSH2_ERROR_EAGAIN)
            return rc == 0 ? ERR_OK : failed(s, rc, ei);
        enum err e = await(s, ei);
        if (e != ERR_OK)
            return e;
    }
}

static MAY_YIELD enum err dial(struct ssh *s, struct errinfo *ei)
{
    struct ssh_client *c = s->client;
    const struct ssh_login *l = s->login;
    enum err e = ERR_OK;
    if (!c->dial || c->dial_port != l->port || strcmp(c->dial_host, l->host) != 0) {
        struct dial *found = NULL;
        if ((e = dial_new(&found, l->host, l->port, ei)) != ERR_OK)
            return e;
        dial_free(&c->dial);
        mem_free(c->dial_host);
        c->dial = found;
        c->dial_host = mem_strdup(l->host);
        c->dial_port = l->port;
    }
    struct mono soon = mono_add(mono_now(), CONNECT_US);
    e = dial_connect(c->loop, c->dial, mono_earlier(soon, s->deadline), &s->io.fd, ei);
    if (s->cancelled && e == ERR_OK)
        return err_set(ei, ERR_CANCELLED, "cancelled");
    if (e == ERR_RESET)
        e = err_set(ei, ERR_REFUSED, "refused before sign-in: reset while connecting");
    return e == ERR_OK ? loop_io_add(c->loop, &s->io, 0, ei) : e;
}

static MAY_YIELD enum err sign_in(struct ssh *s, struct ssh_report *report, struct errinfo *ei)
{
    struct mono began = mono_now();
    enum err e = dial(s, ei);
    if (e != ERR_OK)
        return e;
    report->connect_us = mono_diff(mono_now(), began);
    s->session = ssh_session_new(s);
    ssh_hosts_prefer(s);
    for (size_t i = 0; i < ARRAY_LEN(steps) && e == ERR_OK; i++) {
        e = take_step(s, i, began, report, ei);
        if (e == ERR_OK && steps[i].call == hand_shake) {
            s->stage = SSH_HOST_KEY;
            e = ssh_hosts_check(s, ei);
        }
    }
    if (e == ERR_OK)
        s->stage = SSH_UP;
    return e;
}

enum err ssh_open(struct ssh **out, struct ssh_client *c, const struct ssh_login *login, const char *subsystem,
                  struct mono deadline, struct ssh_report *report, struct errinfo *ei)
{
    struct ssh *s = ssh_new(c, login, subsystem, deadline);
    *report = (struct ssh_report){.connect_us = -1, .banner_us = -1};
    enum err e = sign_in(s, report, ei);
    report->stage = s->stage;
    s->login = NULL;
    if (e == ERR_OK)
        *out = s;
    else
        ssh_close(&s);
    return e;
}
