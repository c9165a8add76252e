/* One look is one query of pg_stat_activity five times a second. A transaction counts when two looks in a row found it
 * and it is older than a starved processor makes it; backend_xid tells that it writes, or locks rows. */
#include "sim/run/stills.h"
#include "base/mem.h"
#include "sim/app/witness.h"
#include "store/pg.h"

#include <stdio.h>
#include <string.h>

#define LOOK_EACH_US (200 * US_PER_MS)
#define OLD_US       (500 * US_PER_MS)
#define WAIT_US      (2 * US_PER_S) /* for a database that does not answer any more */
#define KEPT         16

struct seen {
    char key[64]; /* backend and begin of its transaction */
    bool noted;
};
struct stills {
    struct worker *w; /* NULL: the run is over, and what hangs in a query frees the rest */
    struct loop *loop;
    struct pg_pool *pg;
    struct done stop, ended;
    struct seen last[KEPT]; /* of the look before */
    size_t n;
};

/* Client: it waits for the server to go on. Two seconds of that for a server that makes several statements of one
 * write.
 */
static const char sql[] =
    "SELECT pid || ' ' || xact_start, (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint,"
    " format('backend %s, %s %s: %s', pid, wait_event_type, wait_event, left(regexp_replace(query, '\\s+', ' ', 'g'), "
    "90))"
    " FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    " AND backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND"
    " CASE state WHEN 'active' THEN wait_event_type IN ('Timeout', 'Extension')"
    " ELSE clock_timestamp() - state_change > interval '2 s' END LIMIT 16";

static struct seen *find(struct seen *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return &list[i];
    return NULL;
}

static void compare(struct stills *s, const struct pg_result *res)
{
    struct seen now[KEPT];
    size_t n = 0;
    for (int i = 0; i < pg_rows(res) && n < KEPT; i++) {
        struct seen *k = &now[n++];
        int64_t age_us = pg_i64(res, i, 1);
        snprintf(k->key, sizeof(k->key), "%s", pg_str(res, i, 0));
        const struct seen *before = find(s->last, s->n, k->key);
        k->noted = before && (before->noted || age_us >= OLD_US);
        if (k->noted && !before->noted && s->w)
            witness_still(s->w, age_us, pg_str(res, i, 2));
    }
    memcpy(s->last, now, n * sizeof(*now));
    s->n = n;
}

static void look(void *arg)
{
    struct stills *s = arg;
    do {
        struct pg_result *res = NULL;
        struct errinfo ei;
        if (pg_run(s->pg, sql, 0, NULL, &res, &ei) == ERR_OK)
            compare(s, res);
        else
            s->n = 0; /* the database is away: the report tells that elsewhere */
        pg_result_free(&res);
    } while (!done_wait_until(s->loop, &s->stop, mono_add(mono_now(), LOOK_EACH_US)));
    pg_pool_free(&s->pg);
    if (s->w)
        done_set(&s->ended);
    else
        mem_free(s);
}

enum err stills_new(struct stills **out, struct worker *w, struct errinfo *ei)
{
    const char *url = w->ctx->target->database_url;
    *out = NULL;
    if (!w->ledger.file || !url)
        return ERR_OK;
    struct stills *s = mem_zalloc(sizeof(*s));
    s->w = w;
    s->loop = w->loop;
    enum err e = pg_pool_new(&s->pg, w->loop, url, 1, ei);
    if (e != ERR_OK) {
        mem_free(s);
        return e;
    }
    coro_spawn(w->loop, look, s);
    *out = s;
    return ERR_OK;
}

void stills_free(struct stills **sp)
{
    struct stills *s = *sp;
    if (!s)
        return;
    *sp = NULL;
    done_set(&s->stop);
    if (done_wait_until(s->loop, &s->ended, mono_add(mono_now(), WAIT_US)))
        mem_free(s);
    else
        s->w = NULL;
}
