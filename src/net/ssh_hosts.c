/* Which host keys are trusted: OpenSSH's file of known hosts, by its own rule that another port is another host. */
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/ssh_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_LINE_MAX 16384
#define KNOWN_FILE_MAX (16 << 20)

/* The kinds of host key: what libssh2 calls them here and there, most wanted first. */
static const struct {
    const char *name;
    int shown, known;
} kinds[] = {
    {"ssh-ed25519", LIBSSH2_HOSTKEY_TYPE_ED25519, LIBSSH2_KNOWNHOST_KEY_ED25519},
    {"ecdsa-sha2-nistp256", LIBSSH2_HOSTKEY_TYPE_ECDSA_256, LIBSSH2_KNOWNHOST_KEY_ECDSA_256},
    {"ecdsa-sha2-nistp384", LIBSSH2_HOSTKEY_TYPE_ECDSA_384, LIBSSH2_KNOWNHOST_KEY_ECDSA_384},
    {"ecdsa-sha2-nistp521", LIBSSH2_HOSTKEY_TYPE_ECDSA_521, LIBSSH2_KNOWNHOST_KEY_ECDSA_521},
    {"ssh-rsa", LIBSSH2_HOSTKEY_TYPE_RSA, LIBSSH2_KNOWNHOST_KEY_SSHRSA},
};

/* "host", or "[host]:port" for another than SSH's own port. */
static const char *known_name(const struct ssh *s, char *dst, size_t n)
{
    struct sv host = sv_of(s->login->host);
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = (struct sv){host.p + 1, host.n - 2};
    if (s->login->port == 22)
        snprintf(dst, n, SV_FMT, SV_ARG(host));
    else
        snprintf(dst, n, "[" SV_FMT "]:%d", SV_ARG(host), s->login->port);
    return dst;
}

/* libssh2 takes the last byte of a line for its end, whatever it is. A line that it does not understand (a mark, a kind
 * of key it has not) is one host less, not the end. */
static void load_lines(struct ssh_client *c, struct sv rest)
{
    struct sv text;
    struct buf line = BUF_INIT(KNOWN_LINE_MAX);
    for (int at = 1; sv_split(&rest, '\n', &text); at++) {
        text = sv_trim(text);
        buf_reset(&line);
        if (text.n == 0 || text.p[0] == '#')
            continue;
        if (buf_appendf(&line, SV_FMT "\n", SV_ARG(text)) != ERR_OK ||
            libssh2_knownhost_readline(c->known, line.data, line.len, LIBSSH2_KNOWNHOST_FILE_OPENSSH) != 0)
            LOGD("ssh", "%s line %d is passed over", c->known_file, at);
    }
    buf_done(&line);
}

enum err ssh_hosts_load(struct ssh_client *c, struct errinfo *ei)
{
    const char *home = getenv("HOME");
    struct buf name = BUF_INIT(4096);
    enum err e = ERR_OK;
    if (c->conf.known_hosts)
        e = buf_append_str(&name, c->conf.known_hosts);
    else if (home && *home)
        e = buf_appendf(&name, "%s/.ssh/known_hosts", home);
    c->known_file = mem_strdup(e == ERR_OK && name.len ? buf_cstr(&name) : "~/.ssh/known_hosts");
    buf_done(&name);
    struct buf text = BUF_INIT(KNOWN_FILE_MAX);
    e = file_read(c->known_file, &text, ERR_ENV, ei);
    if (e == ERR_OK)
        load_lines(c, (struct sv){buf_cstr(&text), text.len});
    buf_done(&text);
    return c->conf.known_hosts ? e : ERR_OK;
}

static int look_up(const struct ssh *s, const char *key, size_t n, int kind)
{
    char name[300];
    return libssh2_knownhost_checkp(s->client->known, known_name(s, name, sizeof(name)), -1, key, n,
                                    LIBSSH2_KNOWNHOST_TYPE_PLAIN | LIBSSH2_KNOWNHOST_KEYENC_RAW | kind, NULL);
}

/* A key that nobody has is another one where a key of that kind is known. */
void ssh_hosts_prefer(struct ssh *s)
{
    struct buf order = BUF_INIT(512);
    enum err e = ERR_OK;
    for (int known = 1; known >= 0 && !s->client->conf.insecure; known--)
        for (size_t i = 0; i < ARRAY_LEN(kinds) && e == ERR_OK; i++)
            if ((look_up(s, "-", 1, kinds[i].known) == LIBSSH2_KNOWNHOST_CHECK_MISMATCH) == known)
                e = buf_appendf(&order, "%s%s", order.len ? "," : "", kinds[i].name);
    if (e == ERR_OK && order.len)
        libssh2_session_method_pref(s->session, LIBSSH2_METHOD_HOSTKEY, buf_cstr(&order));
    buf_done(&order);
}

/* As ssh and ssh-keygen print it: SHA256 in base64 without padding. */
static void fingerprint(const char *key, size_t n, char *dst, size_t size)
{
    unsigned char sum[DIGEST_SHA256_LEN];
    struct buf text = BUF_INIT(128);
    digest_sha256(key, n, sum);
    if (digest_base64(&text, sum, sizeof(sum)) == ERR_OK) {
        while (text.len && text.data[text.len - 1] == '=')
            text.len--;
        snprintf(dst, size, "SHA256:%.*s", (int)text.len, text.data);
    }
    buf_done(&text);
}

enum err ssh_hosts_check(struct ssh *s, struct errinfo *ei)
{
    char name[300], print[80] = "?";
    size_t n = 0;
    int shown = LIBSSH2_HOSTKEY_TYPE_UNKNOWN, kind = LIBSSH2_KNOWNHOST_KEY_UNKNOWN;
    const char *key = libssh2_session_hostkey(s->session, &n, &shown);
    if (s->client->conf.insecure)
        return ERR_OK;
    if (!key)
        return err_set(ei, ERR_PROTO, "the server showed no host key");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        kind = kinds[i].shown == shown ? kinds[i].known : kind;
    known_name(s, name, sizeof(name));
    fingerprint(key, n, print, sizeof(print));
    switch (look_up(s, key, n, kind)) {
    case LIBSSH2_KNOWNHOST_CHECK_MATCH:
        return ERR_OK;
    case LIBSSH2_KNOWNHOST_CHECK_MISMATCH:
        return err_set(ei, ERR_SAFETY,
                       "the host key of %s (%s) is not the one in %s: another server answers there, or its key was "
                       "changed",
                       name, print, s->client->known_file);
    default:
        return err_set(ei, ERR_SAFETY,
                       "the host key of %s (%s) is not in %s: if it is right, ssh-keyscan -p %d %s >> FILE, and give "
                       "--known-hosts FILE",
                       name, print, s->client->known_file, s->login->port, s->login->host);
    }
}
