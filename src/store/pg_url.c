#include "store/pg_url.h"
#include "base/str.h"
#include "store/pg_impl.h"
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

struct search {
    bool (*far)(void *arg, const char *host);
    void *arg;
    char *dst;
    size_t n;
};

/* "a,b": libpq tries one after the other. An empty one is the socket's folder that libpq was built with. */
static void search_list(const struct search *s, const char *list)
{
    struct sv rest = sv_of(list), word;
    char host[256];
    while (!s->dst[0] && sv_split(&rest, ',', &word)) {
        str_format(host, sizeof host, SV_FMT, SV_ARG(word));
        if (host[0] && host[0] != '/' && host[0] != '@' && s->far(s->arg, host))
            str_format(s->dst, s->n, "%s", host);
    }
}

enum err pg_url_find_host(const char *url, bool (*far)(void *arg, const char *host), void *arg, char *dst, size_t n,
                          struct errinfo *ei)
{
    const struct search s = {far, arg, dst, n};
    bool said = false;
    enum err err = pg_url_check(url, ei);
    PQconninfoOption *all = err ? NULL : PQconninfoParse(url, NULL);
    dst[0] = '\0';
    for (const PQconninfoOption *o = all; o && o->keyword; o++) {
        if (!o->val || !o->val[0] || (strcmp(o->keyword, "host") != 0 && strcmp(o->keyword, "hostaddr") != 0))
            continue;
        said = true;
        search_list(&s, o->val);
    }
    PQconninfoFree(all);
    if (!err && !said)
        search_list(&s, getenv("PGHOST"));
    return err;
}
