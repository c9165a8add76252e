/* Which host keys are trusted, and what is said of those that are not: known_hosts.h decides. */
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/ssh_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_FILE_MAX (256 << 20)
#define HOST_NAME_MOST 300

/* The types of host key that the library can ask for, in the order in which ssh does. It knows RSA by SHA-1 alone,
 * which servers of today do not offer, and no certificates of the kinds that ssh asks for. */
static const char *const asked[] = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
                                    "ssh-rsa"};

/* ssh's own, in its order; "~" is the home. */
static const char *const default_files[] = {"~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts",
                                            "/etc/ssh/ssh_known_hosts2"};

static enum err load(struct ssh_client *c, const char *path, struct errinfo *ei)
{
    struct buf text = BUF_INIT(KNOWN_FILE_MAX);
    enum err e = file_read(path, &text, ERR_ENV, ei);
    if (e == ERR_OK)
        known_hosts_add(&c->known, path, (struct sv){buf_cstr(&text), text.len});
    buf_done(&text);
    return e;
}

static void load_default(struct ssh_client *c, const char *name)
{
    const char *home = getenv("HOME");
    struct errinfo why;
    char path[4096];
    if (name[0] == '~' && (!home || !*home))
        return;
    str_format(path, sizeof(path), "%s%s", name[0] == '~' ? home : "", name[0] == '~' ? name + 1 : name);
    if (load(c, path, &why) != ERR_OK)
        LOGD("ssh", "%s", err_message(&why));
}

enum err ssh_hosts_load(struct ssh_client *c, struct errinfo *ei)
{
    c->known_file = mem_strdup(c->conf.known_hosts ? c->conf.known_hosts : default_files[0]);
    if (c->conf.known_hosts)
        return load(c, c->known_file, ei);
    for (size_t i = 0; i < ARRAY_LEN(default_files); i++)
        load_default(c, default_files[i]);
    return ERR_OK;
}

/* Thousands sign in to one host: its lines are looked for once. */
static const struct known_place *place_of(const struct ssh *s)
{
    struct ssh_client *c = s->client;
    char name[HOST_NAME_MOST];
    known_name(name, sizeof(name), s->login->host, s->login->port);
    if (!c->place_name || strcmp(c->place_name, name) != 0) {
        known_place_done(&c->place);
        mem_free(c->place_name);
        c->place_name = mem_strdup(name);
        known_place_find(&c->place, &c->known, s->login->host, s->login->port);
    }
    return &c->place;
}

/* The types that are known of the host come first, but for the very first one: when that is known all stays as it is.
 */
void ssh_hosts_prefer(struct ssh *s)
{
    struct buf order = BUF_INIT(512);
    enum err e = ERR_OK;
    if (s->client->conf.insecure)
        return;
    const struct known_place *p = place_of(s);
    bool as_it_is = known_place_has(p, asked[0]);
    for (int known = !as_it_is; known >= 0; known--)
        for (size_t i = 0; i < ARRAY_LEN(asked) && e == ERR_OK; i++)
            if (as_it_is || known_place_has(p, asked[i]) == known)
                e = buf_appendf(&order, "%s%s", order.len ? "," : "", asked[i]);
    if (e == ERR_OK)
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

#define ADD_IT "ssh-keyscan -p %d %s >> FILE, and give --known-hosts FILE"

/* "FILE line 3" */
static const char *where(char *dst, size_t n, const struct known_line *l)
{
    str_format(dst, n, "%s line %u", l->file, l->line);
    return dst;
}

static enum err refuse(const struct ssh *s, const char *shown, const struct known_finding *f, struct errinfo *ei)
{
    char name[HOST_NAME_MOST], at[512] = "";
    const struct ssh_login *l = s->login;
    known_name(name, sizeof(name), l->host, l->port);
    if (f->line)
        where(at, sizeof(at), f->line);
    if (f->verdict == KNOWN_BAD)
        return err_set(ei, ERR_SAFETY,
                       "the host key of %s (%s) is marked @revoked in %s: ask the server's owner for its new key", name,
                       shown, at);
    if (f->verdict == KNOWN_CHANGED && f->same_type)
        return err_set(ei, ERR_SAFETY,
                       "the host key of %s (%s) is not the one in %s: another server answers there, or its key was "
                       "changed",
                       name, shown, at);
    if (f->verdict == KNOWN_CHANGED)
        return err_set(ei, ERR_SAFETY,
                       "%s is known by its " SV_FMT
                       " key (%s), which libssh2 cannot ask for here; it shows %s: if that "
                       "is right, " ADD_IT,
                       name, SV_ARG(f->line->type), at, shown, l->port, l->host);
    if (f->line)
        return err_set(ei, ERR_SAFETY,
                       "%s is known by a @cert-authority alone (%s), which libssh2 cannot check; it shows %s: if that "
                       "is right, " ADD_IT,
                       name, at, shown, l->port, l->host);
    return err_set(ei, ERR_SAFETY, "the host key of %s (%s) is not in %s: if it is right, " ADD_IT, name, shown,
                   s->client->known_file, l->port, l->host);
}

enum err ssh_hosts_check(struct ssh *s, struct errinfo *ei)
{
    char shown[80] = "?";
    size_t n = 0;
    int type;
    const char *key = libssh2_session_hostkey(s->session, &n, &type);
    if (s->client->conf.insecure)
        return ERR_OK;
    if (!key)
        return err_set(ei, ERR_PROTO, "the server showed no host key");
    struct known_finding f = known_place_judge(place_of(s), (struct sv){key, n});
    if (f.verdict == KNOWN_OK)
        return ERR_OK;
    fingerprint(key, n, shown, sizeof(shown));
    return refuse(s, shown, &f, ei);
}
