#include "sim/app/delivery.h"
#include "base/hash.h"
#include "base/mem.h"
#include "sim/app/app.h"

#include <string.h>

#define BUCKETS     1024
#define CHANGES_MAX 8192
#define PENDING_MAX 4096
#define FORGET_US   (120 * US_PER_S)
#define PARTNER_US  (20 * US_PER_S) /* an event so much older is of another change: one without an answer */

struct early { /* what an app got before the change was acknowledged */
    uint32_t app;
    bool shown;
};
struct change {
    struct change *next;     /* of the same bucket */
    struct change *younger;  /* in the order of their coming */
    uint64_t key, identity;  /* file and operation; identity 0: no event of it yet */
    struct mono noted, told; /* told us 0: not acknowledged yet */
    uint32_t by;             /* app, once told */
    uint32_t refs;           /* the table's, and one each pending */
    uint32_t n_early;
    struct early *early;
};
struct delivery { /* of one account */
    struct change *buckets[BUCKETS], *oldest, **youngest;
    uint32_t n;
};
struct delivery_pending {
    struct change *change;
    uint32_t at; /* open folder */
    struct mono heard;
};

static void release(struct change *c)
{
    if (--c->refs > 0)
        return;
    mem_free(c->early);
    mem_free(c);
}

static void forget_oldest(struct delivery *d)
{
    struct change *c = d->oldest, **at = &d->buckets[c->key % BUCKETS];
    d->oldest = c->younger;
    if (!d->oldest)
        d->youngest = &d->oldest;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    d->n--;
    release(c);
}

static struct delivery *of_account(struct account *account)
{
    if (!account->delivery) {
        account->delivery = mem_zalloc(sizeof(*account->delivery));
        account->delivery->youngest = &account->delivery->oldest;
    }
    return account->delivery;
}

void delivery_free(struct delivery **dp)
{
    struct delivery *d = *dp;
    while (d && d->oldest)
        forget_oldest(d);
    MEM_FREE(*dp);
}

static struct change *add(struct delivery *d, uint64_t key)
{
    struct mono now = mono_now();
    while (d->oldest && (d->n >= CHANGES_MAX || mono_diff(now, d->oldest->noted) > FORGET_US))
        forget_oldest(d);
    struct change *c = mem_zalloc(sizeof(*c)), **at = &d->buckets[key % BUCKETS];
    c->key = key;
    c->noted = now;
    c->refs = 1;
    while (*at) /* at the end: those of one file are found oldest first */
        at = &(*at)->next;
    *at = c;
    *d->youngest = c;
    d->youngest = &c->younger;
    d->n++;
    return c;
}

static uint64_t key_of(enum drive_op op, const char *file_id)
{
    return rng_mix64(hash_str(file_id) + (uint64_t)op);
}

uint64_t delivery_identity(const struct api_event *ev)
{
    return ev->cursor[0] ? hash_str(ev->cursor) | 1 : rng_mix64((uint64_t)ev->at.us) | 1;
}

static void record(struct worker *w, enum drive_op op, struct mono from, struct mono to)
{
    struct api_result r = {.outcome = OUT_OK, .sent = from, .done = mono_later(to, from)};
    meter_record(&w->meter, op, &r, (struct mono){0});
}

/* ---- acknowledgement and event, whichever comes first ---- */

static struct change *seen_before_told(struct delivery *d, uint64_t key, struct mono now)
{
    for (struct change *c = d->buckets[key % BUCKETS]; c; c = c->next)
        if (c->key == key && c->identity && c->told.us == 0 && mono_diff(now, c->noted) < PARTNER_US)
            return c;
    return NULL;
}

void delivery_told(struct app *a, enum drive_op op, const char *file_id)
{
    struct delivery *d = of_account(a->login->account);
    struct mono now = mono_now();
    uint64_t key = key_of(op, file_id);
    struct change *c = seen_before_told(d, key, now);
    if (!c)
        c = add(d, key);
    c->told = now;
    c->by = a->index;
    for (uint32_t i = 0; i < c->n_early; i++) {
        if (c->early[i].app == a->index)
            continue;
        record(a->w, OP_EVENT, now, now);
        if (c->early[i].shown)
            record(a->w, OP_EVENT_VISIBLE, now, now);
    }
    MEM_FREE(c->early);
    c->n_early = 0;
}

static struct change *change_of(struct delivery *d, uint64_t key, uint64_t identity)
{
    struct change *unseen = NULL;
    for (struct change *c = d->buckets[key % BUCKETS]; c; c = c->next) {
        if (c->key == key && c->identity == identity)
            return c;
        if (c->key == key && c->identity == 0 && !unseen)
            unseen = c;
    }
    if (!unseen)
        unseen = add(d, key);
    unseen->identity = identity;
    return unseen;
}

static void note_early(struct change *c, uint32_t app)
{
    c->early = mem_realloc_array(c->early, c->n_early + 1, sizeof(*c->early));
    c->early[c->n_early++] = (struct early){.app = app};
}

static bool expect_in(struct app *a, const char *folder_id, struct change *c, struct mono now)
{
    struct deliveries *p = &a->deliveries;
    uint32_t at = folder_id ? view_find(&a->view, folder_id) : VIEW_NONE;
    if (at == VIEW_NONE || !a->view.open[at].snap || p->n == PENDING_MAX)
        return false;
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 8;
        p->items = mem_realloc_array(p->items, p->cap, sizeof(*p->items));
    }
    p->items[p->n++] = (struct delivery_pending){c, at, now};
    c->refs++;
    return true;
}

void delivery_event(struct app *a, const struct api_event *ev)
{
    struct mono now = mono_now();
    if (!ev->file_id || ev->op == OP_COUNT || a->stream.bytes_per_s)
        return;
    struct change *c = change_of(of_account(a->login->account), key_of(ev->op, ev->file_id), delivery_identity(ev));
    if (c->told.us == 0)
        note_early(c, a->index);
    else if (c->by != a->index)
        record(a->w, OP_EVENT, c->told, now);
    if ((c->told.us == 0 || c->by != a->index) && !expect_in(a, ev->parent_id, c, now))
        expect_in(a, ev->old_parent_id, c, now);
}

/* ---- until it can be seen ---- */

static void show(struct app *a, struct change *c)
{
    if (c->told.us && c->by != a->index)
        record(a->w, OP_EVENT_VISIBLE, c->told, mono_now());
    for (uint32_t i = 0; c->told.us == 0 && i < c->n_early; i++)
        c->early[i].shown |= c->early[i].app == a->index;
}

void delivery_shown(struct app *a, uint32_t at, struct mono asked)
{
    struct deliveries *p = &a->deliveries;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        struct delivery_pending *it = &p->items[i];
        bool here = at == VIEW_NONE ? !a->view.open[it->at].dirty : it->at == at;
        if (!here || mono_before(asked, it->heard)) {
            p->items[kept++] = *it;
            continue;
        }
        show(a, it->change);
        release(it->change);
    }
    p->n = kept;
}

void deliveries_done(struct app *a)
{
    for (uint32_t i = 0; i < a->deliveries.n; i++)
        release(a->deliveries.items[i].change);
    MEM_FREE(a->deliveries.items);
    a->deliveries.n = a->deliveries.cap = 0;
}
