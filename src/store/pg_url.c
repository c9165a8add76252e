/* The doubtful decision: libpq itself is asked where it would go. Its parser alone (PQconninfoParse) knows neither
 * variables nor service files, and a second reading of those would one day differ from libpq's. */
#include "store/pg_url.h"
#include "base/file.h"
#include "base/secret.h"
#include "net/guard.h"
#include "store/pg_impl.h"
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE_FILE_MAX (1 << 20)
#define NO_PORT          "70000"
#define SYSTEM_FOLDER    "/etc/postgresql-common" /* where Debian's libpq looks */

/* "a,b": libpq tries one after the other. An empty one is the socket's folder that libpq was built with. */
static enum err judge_list(const char *list, struct errinfo *ei)
{
    struct sv rest = sv_of(list), word;
    char host[512];
    while (sv_split(&rest, ',', &word)) {
        word = sv_trim(word);
        if (word.n == 0 || word.p[0] == '/' || word.p[0] == '@')
            continue;
        if (word.n >= sizeof host)
            return err_set(ei, ERR_USAGE, "a host's name is too long");
        str_format(host, sizeof host, SV_FMT, SV_ARG(word));
        enum err err = guard_judge(host, ei);
        if (err)
            return err;
    }
    return ERR_OK;
}

/* ---- service files ---- */

/* libpq asks the LDAP server of such a line while it reads it. */
static enum err judge_file(const char *folder, const char *name, struct errinfo *ei)
{
    char path[4096];
    struct buf text = BUF_INIT(SERVICE_FILE_MAX);
    struct sv rest, line;
    enum err err = ERR_OK;
    str_format(path, sizeof path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    if (file_read(path, &text, ERR_ENV, NULL) == ERR_OK)
        for (rest = (struct sv){buf_cstr(&text), text.len}; !err && sv_split(&rest, '\n', &line);)
            if (sv_trim(line).n >= 4 && sv_ieq((struct sv){sv_trim(line).p, 4}, SV("ldap")))
                err = err_set(ei, ERR_SAFETY, "%s asks an LDAP server where the database is: name its host instead",
                              path);
    buf_done(&text);
    return err;
}

static enum err judge_service(const PQconninfoOption *said, struct errinfo *ei)
{
    const char *service = getenv("PGSERVICE"), *file = getenv("PGSERVICEFILE"), *home = getenv("HOME");
    const char *system = getenv("PGSYSCONFDIR");
    for (; said->keyword; said++)
        if (said->val && strcmp(said->keyword, "service") == 0)
            service = said->val;
    if (!service)
        return ERR_OK;
    enum err err = file ? judge_file(NULL, file, ei) : home ? judge_file(home, ".pg_service.conf", ei) : ERR_OK;
    return err ? err : judge_file(system ? system : SYSTEM_FOLDER, "pg_service.conf", ei);
}

/* ---- the whole ---- */

/* libpq quotes what it stumbled over, which may be any piece of a password. */
static enum err misread(const char *url, const char *why, struct errinfo *ei)
{
    struct sv text = sv_trim(sv_of(why)), line = {"", 0}, part;
    secret_add_url(url);
    if (strchr(url, '@') || secret_parts(sv_of(url), false, &part, 1) > 0)
        return err_set(ei, ERR_USAGE,
                       "database url not understood: it takes postgresql://user:password@host:port/database, with %%40 "
                       "for '@' and %%2F for '/' in the password");
    (void)sv_split(&text, '\n', &line);
    return err_set(ei, ERR_USAGE, "database url not understood: " SV_FMT, SV_ARG(sv_trim(line)));
}

/* As libpq marks what is not to be shown. */
static void hide_secrets(const PQconninfoOption *all)
{
    for (; all && all->keyword; all++)
        if (all->val && all->dispchar[0] == '*')
            secret_add(sv_of(all->val));
}

/* No port has that number, so that libpq reads all and then stops, before it looks up or dials anything. */
static PGconn *read_only(const char *url)
{
    static const char *const keys[] = {"dbname", "port", NULL};
    const char *const values[] = {url, NO_PORT, NULL};
    return PQconnectStartParams(keys, values, 1);
}

static enum err judge_places(const char *url, struct errinfo *ei)
{
    PGconn *c = read_only(url);
    PQconninfoOption *all = c ? PQconninfo(c) : NULL;
    enum err err = all ? ERR_OK : err_set(ei, ERR_USAGE, "database url not understood: out of memory");
    hide_secrets(all);                               /* those of variables and service files too */
    if (!err && !strstr(PQerrorMessage(c), NO_PORT)) /* it did not come as far as the port */
        err = misread(url, PQerrorMessage(c), ei);
    for (const PQconninfoOption *o = all; !err && o && o->keyword; o++)
        if (o->val && (strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "hostaddr") == 0))
            err = judge_list(o->val, ei);
    PQconninfoFree(all);
    PQfinish(c);
    return err;
}

/* libpq tells of a bad one only when it dials, and quotes it. */
static enum err judge_ports(const PQconninfoOption *said, struct errinfo *ei)
{
    for (; said->keyword; said++) {
        struct sv rest = sv_of(strcmp(said->keyword, "port") == 0 ? said->val : NULL), word;
        int64_t port;
        while (sv_split(&rest, ',', &word))
            if (sv_trim(word).n && (!sv_to_i64(sv_trim(word), &port) || port < 1 || port > 65535))
                return err_set(ei, ERR_USAGE, "database url not understood: its port is not a number from 1 to 65535");
    }
    return ERR_OK;
}

enum err pg_url_judge(const char *url, struct errinfo *ei)
{
    char *why = NULL;
    PQconninfoOption *said = PQconninfoParse(url, &why);
    if (!said) {
        enum err err = misread(url, why, ei);
        PQfreemem(why);
        return err;
    }
    enum err err = judge_ports(said, ei);
    if (!err)
        err = judge_service(said, ei);
    PQconninfoFree(said);
    return err ? err : judge_places(url, ei);
}
