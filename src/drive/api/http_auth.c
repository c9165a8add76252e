#include "drive/api/http_auth.h"
#include "base/digest.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

#define HEX_MAX  (2 * DIGEST_SHA256_LEN + 1)
#define TEXT_MAX (16 * 1024)

/* ---- challenges ---- */

static bool token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static void skip(struct sv *s, const char *chars)
{
    while (s->n && strchr(chars, *s->p)) {
        s->p++;
        s->n--;
    }
}

static struct sv take_token(struct sv *s)
{
    struct sv t = {s->p, 0};
    while (t.n < s->n && token_char(s->p[t.n]))
        t.n++;
    s->p += t.n;
    s->n -= t.n;
    return t;
}

/* A token, or a quoted string with its escapes undone. */
static bool take_value(struct sv *s, char *dst, size_t n)
{
    size_t at = 0;
    if (!s->n || *s->p != '"') {
        struct sv t = take_token(s);
        return (size_t)snprintf(dst, n, SV_FMT, SV_ARG(t)) < n;
    }
    for (s->p++, s->n--; s->n && *s->p != '"'; s->p++, s->n--) {
        if (*s->p == '\\' && s->n > 1) {
            s->p++;
            s->n--;
        }
        if (at + 1 >= n)
            return false;
        dst[at++] = *s->p;
    }
    dst[at] = '\0';
    bool closed = s->n > 0;
    if (closed) {
        s->p++;
        s->n--;
    }
    return closed;
}

static bool lists(const char *value, struct sv word)
{
    struct sv rest = sv_of(value), one;
    while (sv_split(&rest, ',', &one)) {
        if (sv_ieq(sv_trim(one), word))
            return true;
    }
    return false;
}

/* One parameter of a Digest challenge; false: one that rules the challenge out. */
static bool digest_param(struct http_auth *a, struct sv name, const char *value)
{
    if (sv_ieq(name, SV("realm")))
        return str_fit(a->realm, sizeof a->realm, value);
    if (sv_ieq(name, SV("nonce")))
        return str_fit(a->nonce, sizeof a->nonce, value);
    if (sv_ieq(name, SV("opaque")))
        return str_fit(a->opaque, sizeof a->opaque, value);
    if (sv_ieq(name, SV("stale")))
        a->stale = sv_ieq(sv_of(value), SV("true"));
    if (sv_ieq(name, SV("algorithm"))) {
        a->sha256 = sv_ieq(sv_of(value), SV("SHA-256"));
        return a->sha256 || sv_ieq(sv_of(value), SV("MD5"));
    }
    if (sv_ieq(name, SV("qop"))) {
        a->qop = lists(value, SV("auth"));
        return a->qop;
    }
    return true;
}

static int rank(const struct http_auth *a)
{
    return a->kind == HTTP_AUTH_DIGEST ? 1 + a->sha256 + (int)HTTP_AUTH_BASIC : (int)a->kind;
}

static bool keep_better(struct http_auth *a, const struct http_auth *found, bool usable)
{
    if (!usable || rank(found) <= rank(a) || (found->kind == HTTP_AUTH_DIGEST && !found->nonce[0]))
        return false;
    *a = *found;
    return true;
}

bool http_auth_challenge(struct http_auth *a, struct sv s)
{
    struct http_auth found = {0};
    bool usable = false, better = false;
    for (skip(&s, ", \t"); s.n; skip(&s, ", \t")) {
        struct sv word = take_token(&s);
        char value[512];
        if (!word.n)
            break;
        skip(&s, " \t");
        if (s.n && *s.p == '=') { /* a parameter */
            s.p++;
            s.n--;
            skip(&s, " \t");
            bool whole = take_value(&s, value, sizeof value);
            if (found.kind == HTTP_AUTH_DIGEST)
                usable = whole && digest_param(&found, word, value) && usable;
            continue;
        }
        better = keep_better(a, &found, usable) || better;
        found = (struct http_auth){.kind = sv_ieq(word, SV("Basic"))    ? HTTP_AUTH_BASIC
                                           : sv_ieq(word, SV("Digest")) ? HTTP_AUTH_DIGEST
                                                                        : HTTP_AUTH_NONE};
        usable = found.kind != HTTP_AUTH_NONE;
    }
    return keep_better(a, &found, usable) || better;
}

static void take_challenge(void *arg, struct sv value)
{
    http_auth_challenge(arg, value);
}

bool http_auth_take(struct http_auth *a, const struct http_resp *resp, bool signed_request)
{
    struct http_auth found = {0};
    http_resp_each_header(resp, "WWW-Authenticate", take_challenge, &found);
    bool fresh = !signed_request || found.stale || strcmp(found.nonce, a->nonce) != 0;
    if (!found.kind || !fresh)
        return false;
    *a = found;
    return true;
}

/* ---- answers ---- */

static void hash_hex(const struct http_auth *a, struct sv text, char hex[HEX_MAX])
{
    unsigned char raw[DIGEST_SHA256_LEN];
    if (a->sha256)
        digest_sha256(text.p, text.n, raw);
    else
        digest_md5(text.p, text.n, raw);
    digest_hex(hex, raw, a->sha256 ? DIGEST_SHA256_LEN : DIGEST_MD5_LEN);
}

static enum err hash_parts(const struct http_auth *a, const char *const *parts, size_t n, char hex[HEX_MAX])
{
    struct buf text = BUF_INIT(TEXT_MAX);
    enum err err = ERR_OK;
    for (size_t i = 0; i < n && !err; i++)
        err = buf_appendf(&text, "%s%s", i ? ":" : "", parts[i]);
    if (!err)
        hash_hex(a, (struct sv){buf_cstr(&text), text.len}, hex);
    buf_done(&text);
    return err;
}

static enum err append_quoted(struct buf *out, const char *name, const char *value)
{
    enum err err = buf_appendf(out, ", %s=\"", name);
    for (; *value && !err; value++) {
        if (*value == '"' || *value == '\\')
            err = buf_append_char(out, '\\');
        if (!err)
            err = buf_append_char(out, *value);
    }
    return err ? err : buf_append_char(out, '"');
}

static enum err digest_answer(struct http_auth *a, const char *user, const char *password, const char *method,
                              const char *target, const char *cnonce, struct buf *out)
{
    char ha1[HEX_MAX], ha2[HEX_MAX], response[HEX_MAX], count[16];
    const char *who[] = {user, a->realm, password}, *what[] = {method, target};
    snprintf(count, sizeof count, "%08x", ++a->count);
    const char *with_qop[] = {ha1, a->nonce, count, cnonce, "auth", ha2}, *plain[] = {ha1, a->nonce, ha2};
    enum err err = hash_parts(a, who, ARRAY_LEN(who), ha1);
    if (!err)
        err = hash_parts(a, what, ARRAY_LEN(what), ha2);
    if (!err)
        err = a->qop ? hash_parts(a, with_qop, ARRAY_LEN(with_qop), response)
                     : hash_parts(a, plain, ARRAY_LEN(plain), response);
    if (!err)
        err = buf_append_str(out, "Authorization: Digest algorithm=");
    if (!err)
        err = buf_append_str(out, a->sha256 ? "SHA-256" : "MD5");
    const struct {
        const char *name, *value;
    } rows[] = {{"username", user}, {"realm", a->realm}, {"nonce", a->nonce}, {"uri", target}, {"response", response}};
    for (size_t i = 0; i < ARRAY_LEN(rows) && !err; i++)
        err = append_quoted(out, rows[i].name, rows[i].value);
    if (!err && a->opaque[0])
        err = append_quoted(out, "opaque", a->opaque);
    if (!err && a->qop)
        err = buf_appendf(out, ", qop=auth, nc=%s, cnonce=\"%s\"", count, cnonce);
    return err;
}

static enum err basic_answer(const char *user, const char *password, struct buf *out)
{
    struct buf pair = BUF_INIT(TEXT_MAX);
    enum err err = buf_appendf(&pair, "%s:%s", user, password);
    if (!err)
        err = buf_append_str(out, "Authorization: Basic ");
    if (!err)
        err = digest_base64(out, pair.data, pair.len);
    buf_done(&pair);
    return err;
}

enum err http_auth_header_with(struct http_auth *a, const char *user, const char *password, const char *method,
                               const char *target, const char *cnonce, struct buf *out)
{
    if (a->kind == HTTP_AUTH_BASIC)
        return basic_answer(user, password, out);
    if (a->kind == HTTP_AUTH_DIGEST)
        return digest_answer(a, user, password, method, target, cnonce, out);
    return ERR_OK;
}

enum err http_auth_header(struct http_auth *a, const char *user, const char *password, const char *method,
                          const char *target, struct buf *out)
{
    char cnonce[23];
    digest_random_id(cnonce, sizeof cnonce - 1);
    return http_auth_header_with(a, user, password, method, target, cnonce, out);
}
