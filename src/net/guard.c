#include "net/guard.h"
#include "base/str.h"
#include <arpa/inet.h>
#include <string.h>

static const struct opt_list *allowed;

void guard_allow(const struct opt_list *hosts)
{
    allowed = hosts;
}

/* Without an IPv6 address's brackets and a name's last dot. */
static struct sv bare(struct sv h)
{
    if (h.n >= 2 && h.p[0] == '[' && h.p[h.n - 1] == ']')
        h = (struct sv){h.p + 1, h.n - 2};
    if (h.n && h.p[h.n - 1] == '.')
        h.n--;
    return h;
}

bool guard_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    struct sv h = bare(sv_of(host));
    char text[64];
    if (h.n == 0 || h.n >= sizeof text)
        return false;
    memcpy(text, h.p, h.n);
    text[h.n] = '\0';
    if (sv_ieq(h, SV("localhost")))
        return true;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, text, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
    return false;
}

static bool is_allowed(struct sv host)
{
    struct opt_words words = {.list = allowed};
    struct sv word;
    while (allowed && opt_words_next(&words, &word))
        if (sv_ieq(host, bare(word)))
            return true;
    return false;
}

/* "prod2" is one of several. */
static bool means_production(struct sv word)
{
    while (word.n && word.p[word.n - 1] >= '0' && word.p[word.n - 1] <= '9')
        word.n--;
    return sv_ieq(word, SV("prod")) || sv_ieq(word, SV("production"));
}

/* As a word of the name: prod.example.com, db-production.lan; not reproduction.lan. */
static bool says_production(struct sv host)
{
    static const char breaks[] = ".-_";
    size_t start = 0;
    for (size_t i = 0; i <= host.n; i++) {
        if (i < host.n && !strchr(breaks, host.p[i]))
            continue;
        if (means_production((struct sv){host.p + start, i - start}))
            return true;
        start = i + 1;
    }
    return false;
}

enum err guard_judge_name(const char *host, struct errinfo *ei)
{
    struct sv h = bare(sv_of(host));
    if (!says_production(h))
        return ERR_OK;
    return err_set(ei, ERR_SAFETY, "the host %s says that it is production: drivesim never runs against it", SHOWN(h));
}

enum err guard_judge(const char *host, struct errinfo *ei)
{
    struct sv h = bare(sv_of(host));
    enum err err = guard_judge_name(host, ei);
    if (err || guard_is_loopback(host) || is_allowed(h))
        return err;
    return err_set(ei, ERR_SAFETY,
                   "the host %s is not this machine: if it is a throwaway server, name it with --allow-host %s",
                   SHOWN(h), SHOWN(h));
}
