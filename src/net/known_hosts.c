/* The doubtful decision: not libssh2's own reader, which knows neither marks nor wildcards nor an order of files, and
 * takes any line with the key for a yes. The rules are those of OpenSSH's hostfile.c, match.c and sshconnect.c, tried
 * against ssh itself by tests/sys/known_hosts.t; one is stricter: a tab ends a mark as well, where ssh overlooks it and
 * trusts what was meant to be revoked. */
#include "net/known_hosts.h"
#include "base/arena.h"
#include "base/digest.h"
#include "base/mem.h"
#include <ctype.h>
#include <string.h>

#define NAME_MOST    1023 /* of one pattern: a line with a longer one matches nothing */
#define KEY_BYTES    4096 /* of a key; an RSA one of 16384 bits has 2,071 */
#define HASHED_BEGIN "|1|"

void known_hosts_init(struct known_hosts *k)
{
    *k = (struct known_hosts){.mem = arena_new(4096)};
}

void known_hosts_done(struct known_hosts *k)
{
    mem_free(k->lines);
    arena_free(&k->mem);
    *k = (struct known_hosts){0};
}

/* ---- words of a line ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct sv take_word(struct sv *rest)
{
    struct sv word;
    while (rest->n && is_blank(rest->p[0]))
        *rest = (struct sv){rest->p + 1, rest->n - 1};
    for (word = (struct sv){rest->p, 0}; word.n < rest->n && !is_blank(rest->p[word.n]);)
        word.n++;
    *rest = (struct sv){rest->p + word.n, rest->n - word.n};
    return word;
}

/* Base64 as ssh takes it: padded, no bit to spare, white space of other kinds than blanks passed over. */
static bool decode(struct sv text, struct buf *out)
{
    char plain[2 * KEY_BYTES];
    size_t n = 0;
    struct buf again = BUF_INIT(sizeof plain);
    for (size_t i = 0; i < text.n && n < sizeof plain; i++)
        if (!isspace((unsigned char)text.p[i]))
            plain[n++] = text.p[i];
    bool fine = n && n < sizeof plain && digest_unbase64(out, (struct sv){plain, n}) == ERR_OK &&
                digest_base64(&again, out->data, out->len) == ERR_OK &&
                sv_eq((struct sv){again.data, again.len}, (struct sv){plain, n});
    buf_done(&again);
    return fine;
}

/* ---- keys ---- */

/* The next field of a blob: a length of four bytes, then that much. */
static bool take_field(struct sv *rest, struct sv *field)
{
    if (rest->n < 4)
        return false;
    const unsigned char *p = (const unsigned char *)rest->p;
    size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    if (n > rest->n - 4)
        return false;
    *field = (struct sv){rest->p + 4, n};
    *rest = (struct sv){rest->p + 4 + n, rest->n - 4 - n};
    return true;
}

static const struct {
    const char *name, *in_blob;
    const char *curve;
    unsigned fields; /* after the type, and the curve where there is one */
    size_t size;     /* of the first one; 0: any */
} types[] = {
    {"ssh-ed25519", "ssh-ed25519", NULL, 1, 32},
    {"ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", "nistp256", 1, 65},
    {"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384", "nistp384", 1, 97},
    {"ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521", "nistp521", 1, 133},
    {"ssh-rsa", "ssh-rsa", NULL, 2, 0},
    {"rsa-sha2-256", "ssh-rsa", NULL, 2, 0},
    {"rsa-sha2-512", "ssh-rsa", NULL, 2, 0},
    {"ssh-dss", "ssh-dss", NULL, 4, 0},
    {"sk-ssh-ed25519@openssh.com", "sk-ssh-ed25519@openssh.com", NULL, 2, 32},
    {"sk-ecdsa-sha2-nistp256@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com", "nistp256", 2, 65},
};

/* What a blob says that it is; "" when it says nothing. */
static struct sv type_of(struct sv blob)
{
    struct sv type;
    return take_field(&blob, &type) ? type : (struct sv){"", 0};
}

static size_t find_type(struct sv name)
{
    size_t i = 0;
    while (i < ARRAY_LEN(types) && !sv_eq_cstr(name, types[i].name))
        i++;
    return i;
}

static bool is_key(size_t i, struct sv blob)
{
    struct sv type, field;
    if (!take_field(&blob, &type) || !sv_eq_cstr(type, types[i].in_blob))
        return false;
    if (types[i].curve && (!take_field(&blob, &field) || !sv_eq_cstr(field, types[i].curve)))
        return false;
    for (unsigned k = 0; k < types[i].fields; k++)
        if (!take_field(&blob, &field) || (k == 0 && types[i].size && field.n != types[i].size))
            return false;
    return blob.n == 0;
}

/* ---- reading ---- */

static bool take_mark(struct sv *rest, enum known_mark *out)
{
    struct sv after = *rest, word = take_word(&after);
    *out = KNOWN_PLAIN;
    if (!word.n || word.p[0] != '@')
        return true;
    *rest = after;
    *out = sv_eq(word, SV("@revoked")) ? KNOWN_REVOKED : KNOWN_AUTHORITY;
    return *out == KNOWN_REVOKED || sv_eq(word, SV("@cert-authority"));
}

static bool read_line(struct sv text, struct known_line *out, struct buf *key)
{
    const char *nul = memchr(text.p, '\0', text.n);
    if (nul) /* ssh sees no further */
        text.n = (size_t)(nul - text.p);
    if (!take_mark(&text, &out->mark))
        return false;
    out->names = take_word(&text);
    out->type = take_word(&text);
    size_t type = find_type(out->type);
    return type < ARRAY_LEN(types) && out->names.p[0] != '#' && out->names.p[0] != '@' &&
           decode(take_word(&text), key) && is_key(type, (struct sv){key->data, key->len});
}

void known_hosts_add(struct known_hosts *k, const char *file, struct sv text)
{
    struct sv one;
    const char *name = arena_strdup(k->mem, file);
    for (unsigned at = 1; sv_split(&text, '\n', &one); at++) {
        struct known_line line = {.file = name, .line = at};
        struct buf key = BUF_INIT(KEY_BYTES);
        if (read_line(one, &line, &key)) {
            if (k->n == k->cap)
                k->lines = mem_realloc(k->lines, (k->cap = k->cap ? 2 * k->cap : 16) * sizeof *k->lines);
            line.names.p = arena_strndup(k->mem, line.names.p, line.names.n);
            line.type.p = arena_strndup(k->mem, line.type.p, line.type.n);
            char *blob = arena_alloc(k->mem, key.len);
            memcpy(blob, key.data, key.len);
            line.key = (struct sv){blob, key.len};
            k->lines[k->n++] = line;
        }
        buf_done(&key);
    }
}

/* ---- names ---- */

void known_name(char *dst, size_t n, const char *host, int port)
{
    struct sv h = sv_of(host);
    if (h.n > 2 && h.p[0] == '[' && h.p[h.n - 1] == ']')
        h = (struct sv){h.p + 1, h.n - 2};
    if (port == 22)
        str_format(dst, n, SV_FMT, SV_ARG(h));
    else
        str_format(dst, n, "[" SV_FMT "]:%d", SV_ARG(h), port);
    for (; *dst; dst++)
        if (*dst >= 'A' && *dst <= 'Z')
            *dst = (char)(*dst - 'A' + 'a');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* '*' is any number of characters, '?' any one, all else itself. Each star but the last one takes as little as it can,
 * so that no pattern costs more than its length times the name's. */
static bool pattern_matches(struct sv pattern, struct sv name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, resume = 0;
    while (n < name.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            resume = n;
        } else if (p < pattern.n && (pattern.p[p] == '?' || lower(pattern.p[p]) == name.p[n])) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            n = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

/* "a,*.b,!c.b": any of them, and none of those with a '!'. */
static bool list_matches(struct sv list, struct sv name)
{
    struct sv one;
    bool any = false;
    while (sv_split(&list, ',', &one)) {
        bool negated = one.n && one.p[0] == '!';
        if (negated)
            one = (struct sv){one.p + 1, one.n - 1};
        if (one.n >= NAME_MOST)
            return false;
        if (!pattern_matches(one, name))
            continue;
        if (negated)
            return false;
        any = true;
    }
    return any;
}

/* "|1|salt|hash": HMAC-SHA1 of the name. */
static bool hash_matches(struct sv text, struct sv name)
{
    unsigned char sum[DIGEST_SHA1_LEN];
    struct buf salt = BUF_INIT(64), hash = BUF_INIT(64);
    struct sv rest = text, part;
    bool fine = sv_starts(text, SV(HASHED_BEGIN));
    rest = fine ? (struct sv){text.p + 3, text.n - 3} : rest;
    fine = fine && sv_split(&rest, '|', &part) && decode(part, &salt) && salt.len == DIGEST_SHA1_LEN;
    if (fine) {
        digest_hmac_sha1(salt.data, salt.len, name.p, name.n, sum);
        fine = digest_base64(&hash, sum, sizeof sum) == ERR_OK && sv_eq(rest, (struct sv){hash.data, hash.len});
    }
    buf_done(&salt);
    buf_done(&hash);
    return fine;
}

static const struct known_line **find(const struct known_hosts *k, const char *host, int port, size_t *n)
{
    char name[1100];
    const struct known_line **found = NULL;
    known_name(name, sizeof name, host, port);
    *n = 0;
    for (size_t i = 0; i < k->n; i++) {
        const struct known_line *l = &k->lines[i];
        if (!(l->names.p[0] == '|' ? hash_matches : list_matches)(l->names, sv_of(name)))
            continue;
        if (!(*n & (*n - 1))) /* full, at a power of two */
            found = mem_realloc(found, (*n ? 2 * *n : 1) * sizeof *found);
        found[(*n)++] = l;
    }
    return found;
}

void known_place_find(struct known_place *p, const struct known_hosts *k, const char *host, int port)
{
    *p = (struct known_place){0};
    p->own = find(k, host, port, &p->n_own);
    if (port != 22)
        p->bare = find(k, host, 22, &p->n_bare);
}

void known_place_done(struct known_place *p)
{
    mem_free(p->own);
    mem_free(p->bare);
    *p = (struct known_place){0};
}

/* ---- judging ---- */

static const struct known_line *revoked(const struct known_line *const *lines, size_t n, struct sv key)
{
    for (size_t i = 0; i < n; i++)
        if (lines[i]->mark == KNOWN_REVOKED && sv_eq(lines[i]->key, key))
            return lines[i];
    return NULL;
}

bool known_place_has(const struct known_place *p, const char *type)
{
    for (size_t i = 0; i < p->n_own; i++)
        if (p->own[i]->mark == KNOWN_PLAIN && sv_eq_cstr(type_of(p->own[i]->key), type))
            return !revoked(p->own, p->n_own, p->own[i]->key);
    return false;
}

static struct known_finding judge(const struct known_line *const *lines, size_t n, struct sv key)
{
    struct known_finding f = {.verdict = KNOWN_NEW, .line = revoked(lines, n, key)};
    if (f.line) {
        f.verdict = KNOWN_BAD;
        return f;
    }
    for (size_t i = 0; i < n; i++) {
        if (lines[i]->mark == KNOWN_PLAIN && sv_eq(lines[i]->key, key))
            return (struct known_finding){.verdict = KNOWN_OK, .line = lines[i]};
        bool plain = lines[i]->mark == KNOWN_PLAIN;
        if (plain || (lines[i]->mark == KNOWN_AUTHORITY && f.verdict == KNOWN_NEW))
            f.line = lines[i];
        if (plain) {
            f.verdict = KNOWN_CHANGED;
            f.same_type = f.same_type || sv_eq(type_of(lines[i]->key), type_of(key));
        }
    }
    return f;
}

struct known_finding known_place_judge(const struct known_place *p, struct sv key)
{
    struct known_finding own = judge(p->own, p->n_own, key);
    if (own.verdict != KNOWN_NEW || !p->n_bare)
        return own;
    struct known_finding bare = judge(p->bare, p->n_bare, key);
    return bare.verdict == KNOWN_NEW && own.line ? own : bare;
}
