/* Known hosts: the first byte names the host and the port, the rest is a file. What is found adds up with the lines
 * that there are, names match as OpenSSH's own recursive matcher says, and a revocation beats whatever else stands
 * there. */
#include "base/digest.h"
#include "fuzz.h"
#include "net/known_hosts.h"

static const struct {
    const char *host;
    int port;
} places[] = {{"host.example", 22}, {"Host.Example", 2222}, {"[::1]", 22}, {"[::1]", 2222}, {"aaaaaaaaaaab", 22}};

static int steps; /* of one match: the recursion is exponential in its stars */

static bool naive(const char *pattern, const char *end, const char *name)
{
    if (--steps < 0)
        return false;
    if (pattern == end)
        return *name == '\0';
    if (*pattern == '*')
        return naive(pattern + 1, end, name) || (*name && naive(pattern, end, name + 1));
    char c = *pattern >= 'A' && *pattern <= 'Z' ? (char)(*pattern + 32) : *pattern;
    return *name && (c == '?' || c == *name) && naive(pattern + 1, end, name + 1);
}

static bool naive_list(struct sv list, const char *name)
{
    bool any = false;
    const char *end = list.p + list.n;
    for (const char *p = list.p, *to; p <= end; p = to + 1) {
        to = memchr(p, ',', (size_t)(end - p));
        to = to ? to : end;
        bool negated = p < to && *p == '!';
        if (to - p - negated >= 1023)
            return false;
        if (!naive(p + negated, to, name))
            continue;
        if (negated)
            return false;
        any = true;
    }
    return any;
}

static bool is_own(const struct known_place *p, const struct known_line *l)
{
    for (size_t i = 0; i < p->n_own; i++)
        if (p->own[i] == l)
            return true;
    return false;
}

static void check_lines(const struct known_hosts *k, const struct known_place *p, const char *name)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct known_line *l = &k->lines[i];
        MUST(l->names.n && l->type.n && l->key.n && l->line);
        MUST(!memchr(l->names.p, ' ', l->names.n) && !memchr(l->names.p, '\n', l->names.n));
        steps = 2000;
        if (l->names.p[0] != '|') {
            bool match = naive_list(l->names, name);
            MUST(steps < 0 || match == is_own(p, l));
        }
    }
}

static void check_findings(const struct known_hosts *k, const struct known_place *p)
{
    for (size_t i = 0; i < k->n; i++) {
        struct sv key = k->lines[i].key;
        struct known_finding f = known_place_judge(p, key);
        bool plain = false, revoked = false;
        for (size_t n = 0; n < p->n_own; n++) {
            plain = plain || (p->own[n]->mark == KNOWN_PLAIN && sv_eq(p->own[n]->key, key));
            revoked = revoked || (p->own[n]->mark == KNOWN_REVOKED && sv_eq(p->own[n]->key, key));
        }
        MUST(!revoked || f.verdict == KNOWN_BAD);
        MUST(!plain || revoked || f.verdict == KNOWN_OK);
        MUST(f.verdict != KNOWN_OK || (f.line->mark == KNOWN_PLAIN && sv_eq(f.line->key, key)));
        MUST(f.verdict != KNOWN_BAD || (f.line->mark == KNOWN_REVOKED && sv_eq(f.line->key, key)));
        MUST(f.verdict != KNOWN_CHANGED || (f.line->mark == KNOWN_PLAIN && !sv_eq(f.line->key, key)));
        MUST(f.verdict != KNOWN_NEW || !f.line || f.line->mark == KNOWN_AUTHORITY);
    }
    struct known_finding none = known_place_judge(p, SV("no key"));
    MUST(none.verdict == KNOWN_NEW || none.verdict == KNOWN_CHANGED);
}

/* The same lines, and before them one that revokes the first line's key everywhere. */
static void revoke_first(const struct known_hosts *k, struct sv text, const char *host, int port)
{
    struct buf more = BUF_INIT(1 << 20);
    struct known_hosts all;
    struct known_place p;
    if (k->n == 0)
        return;
    MUST(!buf_appendf(&more, "@revoked * " SV_FMT " ", SV_ARG(k->lines[0].type)));
    MUST(!digest_base64(&more, k->lines[0].key.p, k->lines[0].key.n));
    MUST(!buf_append_char(&more, '\n') && !buf_append(&more, text.p, text.n));
    known_hosts_init(&all);
    known_hosts_add(&all, "more", (struct sv){more.data, more.len});
    MUST(all.n == k->n + 1);
    known_place_find(&p, &all, host, port);
    MUST(known_place_judge(&p, k->lines[0].key).verdict == KNOWN_BAD);
    known_place_done(&p);
    known_hosts_done(&all);
    buf_done(&more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 2048)
        return 0;
    char *exact = mem_dup(data + 1, size - 1), name[64];
    const char *host = places[data[0] % ARRAY_LEN(places)].host;
    int port = places[data[0] % ARRAY_LEN(places)].port;
    struct sv text = {exact, size - 1};
    struct known_hosts k;
    struct known_place p;
    known_hosts_init(&k);
    known_hosts_add(&k, "file", text);
    known_place_find(&p, &k, host, port);
    known_name(name, sizeof(name), host, port);
    check_lines(&k, &p, name);
    check_findings(&k, &p);
    revoke_first(&k, text, host, port);
    known_place_done(&p);
    known_hosts_done(&k);
    mem_free(exact);
    return 0;
}
