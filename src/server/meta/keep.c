/* The keeper: one coroutine for what is done beside the requests. Reads are noted many at once and without waiting for
 * the account's writes; a write whose end nobody saw is followed by a `resync`. */
#include "base/log.h"
#include "base/mem.h"
#include "server/events/events.h"
#include "server/meta/impl.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GATHER_US       US_PER_S /* reads are noted this late at most */
#define RETRY_US        (500 * US_PER_MS)
#define TOUCHES_MAX     20000 /* beyond it, while Postgres is away, reads go unnoted */
#define TOUCHES_AT_ONCE 1000

struct touch {
    struct touch *next;
    struct wall at;
    char user_id[DRIVE_ID_MAX + 1], account_id[DRIVE_ID_MAX + 1], file_id[DRIVE_ID_MAX + 1];
};
struct unsure {
    struct unsure *next;
    char account_id[DRIVE_ID_MAX + 1];
};

/* ---- reads ---- */

void meta_touch(struct server *s, const struct meta_who *who, const char *file_id)
{
    struct meta *m = s->meta;
    if (m->n_touches >= TOUCHES_MAX)
        return;
    struct touch *t = mem_zalloc(sizeof *t);
    t->at = wall_now();
    snprintf(t->user_id, sizeof t->user_id, "%s", who->user_id);
    snprintf(t->account_id, sizeof t->account_id, "%s", who->account_id);
    snprintf(t->file_id, sizeof t->file_id, "%s", file_id);
    t->next = m->touches;
    m->touches = t;
    if (m->n_touches++ == 0)
        done_set(&m->wake);
}

/* The array parameters of one call. */
struct columns {
    const char *users[TOUCHES_AT_ONCE], *accounts[TOUCHES_AT_ONCE], *files[TOUCHES_AT_ONCE], *at[TOUCHES_AT_ONCE];
    char at_text[TOUCHES_AT_ONCE][24];
    size_t n;
};

static void columns_fill(struct columns *c, const struct touch *t)
{
    for (c->n = 0; t && c->n < TOUCHES_AT_ONCE; t = t->next, c->n++) {
        c->users[c->n] = t->user_id;
        c->accounts[c->n] = t->account_id;
        c->files[c->n] = t->file_id;
        snprintf(c->at_text[c->n], sizeof c->at_text[0], "%" PRId64, t->at.us);
        c->at[c->n] = c->at_text[c->n];
    }
}

static MAY_YIELD enum err columns_send(struct server *s, const struct columns *c)
{
    static const char sql[] = "SELECT drive_audit_downloads($1, $2, $3, $4), drive_touch($3, $4)";
    struct buf arrays[4];
    const char *const *from[] = {c->users, c->accounts, c->files, c->at};
    const char *params[4];
    enum err err = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
        buf_init(&arrays[i], 1 << 20);
        if (!err)
            err = pg_array(&arrays[i], from[i], c->n);
        params[i] = buf_cstr(&arrays[i]);
    }
    if (!err)
        err = pg_run(s->pg, sql, 4, params, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++)
        buf_done(&arrays[i]);
    return err;
}

static void touches_drop(struct meta *m, struct touch *t)
{
    while (t) {
        struct touch *next = t->next;
        mem_free(t);
        m->n_touches--;
        t = next;
    }
}

/* False when Postgres did not take them: they are kept for the next try. */
static MAY_YIELD bool touches_flush(struct server *s)
{
    struct meta *m = s->meta;
    struct columns *c = mem_alloc(sizeof *c);
    bool ok = true;
    while (ok && m->touches) {
        struct touch *batch = m->touches, **cut = &m->touches;
        for (size_t i = 0; *cut && i < TOUCHES_AT_ONCE; i++)
            cut = &(*cut)->next;
        struct touch *rest = *cut;
        *cut = NULL;
        m->touches = rest;
        columns_fill(c, batch);
        ok = columns_send(s, c) == ERR_OK;
        if (ok) {
            touches_drop(m, batch);
        } else {
            *cut = m->touches; /* more may have come meanwhile */
            m->touches = batch;
        }
    }
    mem_free(c);
    return ok;
}

/* ---- writes whose end nobody saw ---- */

void meta_unsure(struct server *s, const char *account_id)
{
    struct meta *m = s->meta;
    for (struct unsure *u = m->unsure; u; u = u->next)
        if (strcmp(u->account_id, account_id) == 0)
            return;
    struct unsure *u = mem_zalloc(sizeof *u);
    snprintf(u->account_id, sizeof u->account_id, "%s", account_id);
    u->next = m->unsure;
    m->unsure = u;
    done_set(&m->wake);
}

/* Postgres answers again: what the write left is there to be listed. */
static MAY_YIELD bool tell_resync(struct server *s, const char *account_id)
{
    if (pg_run(s->pg, "SELECT 1", 0, NULL, NULL, NULL) != ERR_OK)
        return false;
    if (!s->stopping)
        events_resync(s, account_id);
    return true;
}

static MAY_YIELD bool unsure_settle(struct server *s)
{
    struct meta *m = s->meta;
    while (m->unsure) {
        struct unsure *u = m->unsure; /* the newest stays first while we ask: others are added before it */
        if (!tell_resync(s, u->account_id))
            return false;
        for (struct unsure **at = &m->unsure; *at; at = &(*at)->next) {
            if (*at == u) {
                *at = u->next;
                break;
            }
        }
        mem_free(u);
    }
    return true;
}

/* ---- the keeper ---- */

static void keeper(void *arg)
{
    struct server *s = arg;
    struct meta *m = s->meta;
    while (!m->stopping) {
        done_wait(s->loop, &m->wake);
        if (!m->stopping)
            done_wait_until(s->loop, &m->wake, mono_add(mono_now(), m->unsure ? RETRY_US : GATHER_US));
        bool done = (s->stopping || unsure_settle(s)) && touches_flush(s);
        if (!done && !m->stopping)
            done_set(&m->wake);
    }
}

void meta_keeper_start(struct server *s)
{
    group_spawn(s->loop, &s->meta->keeper, keeper, s);
}

void meta_keeper_stop(struct server *s)
{
    struct meta *m = s->meta;
    m->stopping = true;
    done_set(&m->wake);
    group_wait(s->loop, &m->keeper);
    touches_drop(m, m->touches);
    while (m->unsure) {
        struct unsure *next = m->unsure->next;
        mem_free(m->unsure);
        m->unsure = next;
    }
}
