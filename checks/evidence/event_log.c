#include "checks/evidence/event_log.h"
#include "base/mem.h"
#include "base/sorted.h"

#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT_US                                                                                                   \
    (5 * US_PER_S) /* what was answered this shortly before a stream's end may have been on its way                    \
                    */

/* ---- streams ---- */

static int64_t last_time(const struct journal *j)
{
    int64_t last = 0;
    for (size_t i = 0; i < j->n; i++)
        last = j->ops[i].sent_us > last ? j->ops[i].sent_us : last;
    for (size_t i = 0; i < j->n_notes; i++)
        last = j->notes[i].at_us > last ? j->notes[i].at_us : last;
    return last;
}

static void note_stream(struct event_log *l, const struct journal *j, const struct journal_note *n, int64_t *up_us,
                        int64_t last_us)
{
    struct event_stream *s = &l->streams[n->app];
    s->login = n->login;
    s->account = journal_account(j, n->login);
    switch (n->flags) {
    case LEDGER_STREAM_UP:
        if (s->first_up_us == INT64_MAX)
            s->first_up_us = n->at_us;
        s->slow = n->size > 0;
        s->until_us = last_us - IN_FLIGHT_US; /* unless its end is told: a run that was killed */
        *up_us = n->at_us;
        break;
    case LEDGER_STREAM_DOWN:
        s->until_us = n->at_us - IN_FLIGHT_US;
        break;
    case LEDGER_STREAM_END:
        s->until_us = INT64_MAX;
        break;
    case LEDGER_RESYNC:
        s->resync_us = n->at_us;
        break;
    default:
        break;
    }
}

static void collect(struct event_log *l, const struct journal *j)
{
    int64_t *up_us = mem_zalloc((j->n_apps + 1) * sizeof(*up_us)), last_us = last_time(j);
    for (uint32_t i = 0; i < j->n_apps; i++)
        l->streams[i] =
            (struct event_stream){.app = i, .account = UINT32_MAX, .first_up_us = INT64_MAX, .resync_us = -1};
    for (size_t i = 0; i < j->n_notes; i++) {
        const struct journal_note *n = &j->notes[i];
        if (n->op != OP_STREAM)
            continue;
        if (n->flags != LEDGER_EVENT)
            note_stream(l, j, n, &up_us[n->app], last_us);
        else if (n->file_id[0])
            l->events[l->n++] =
                (struct event){.note = n, .up_us = up_us[n->app], .account = journal_account(j, n->login)};
    }
    mem_free(up_us);
}

/* ---- order ---- */

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_file_op(const struct event *x, const struct event *y)
{
    int c = strcmp(x->note->file_id, y->note->file_id);
    return c ? c : (x->note->status > y->note->status) - (x->note->status < y->note->status);
}

/* The numbers that orders go by. */
static uint64_t app_of(const struct event *e)
{
    return e->note->app;
}

static uint64_t account_of(const struct event *e)
{
    return e->account;
}

static uint64_t identity_of(const struct event *e)
{
    return e->note->key;
}

static uint64_t number_of(const struct event *e)
{
    return e->note->size;
}

/* By one of them, file, operation, another of them. */
static int compare(const void *a, const void *b, uint64_t (*first)(const struct event *),
                   uint64_t (*last)(const struct event *))
{
    const struct event *x = *(const struct event *const *)a, *y = *(const struct event *const *)b;
    int c = by_number(first(x), first(y));
    if (c == 0)
        c = by_file_op(x, y);
    return c ? c : by_number(last(x), last(y));
}

static int by_app(const void *a, const void *b)
{
    return compare(a, b, app_of, identity_of);
}

static int by_change(const void *a, const void *b)
{
    return compare(a, b, account_of, identity_of);
}

static int by_order(const void *a, const void *b)
{
    return compare(a, b, account_of, number_of);
}

typedef int order_fn(const void *a, const void *b);

static int then_as_heard(const void *a, const void *b, void *order)
{
    const struct event *x = *(const struct event *const *)a, *y = *(const struct event *const *)b;
    int c = (*(order_fn **)order)(a, b);
    return c ? c : (x > y) - (x < y);
}

/* Equal ones stay in the order in which they were heard. */
static void sort(const struct event **events, size_t n, order_fn *order)
{
    qsort_r(events, n, sizeof(*events), then_as_heard, &order);
}

static void mark_repeated(struct event_log *l)
{
    for (size_t i = 1; i < l->n; i++)
        if (by_app(&l->by_app[i - 1], &l->by_app[i]) == 0)
            l->events[l->by_app[i] - l->events].repeated = true;
}

static void find_published(struct event_log *l)
{
    sort(l->published, l->n, by_change);
    for (size_t i = 0; i < l->n; i++)
        if (i == 0 || by_change(&l->published[i], &l->published[l->n_published - 1]) != 0)
            l->published[l->n_published++] = l->published[i];
    sort(l->published, l->n_published, by_order);
}

/* A slow reader has not read all that was sent to it: it should have what came before the last that it has. */
static void judge_slow_by_their_last(struct event_log *l, uint32_t n_apps)
{
    for (uint32_t i = 0; i < n_apps; i++)
        if (l->streams[i].slow)
            l->streams[i].until_us = -1;
    for (size_t i = 0; i < l->n; i++) {
        const struct event *e = &l->events[i];
        struct event_stream *s = &l->streams[e->note->app];
        if (!s->slow)
            continue;
        size_t first =
            sorted_place(&e, l->published, l->n_published, sizeof(e), by_order); /* that anybody heard of it */
        if (first < l->n_published && by_change(&l->published[first], &e) == 0) {
            int64_t heard = l->published[first]->note->at_us - IN_FLIGHT_US;
            s->until_us = heard > s->until_us ? heard : s->until_us;
        }
    }
}

struct event_log *event_log_new(const struct journal *j)
{
    struct event_log *l = mem_zalloc(sizeof(*l));
    l->streams = mem_zalloc((j->n_apps + 1) * sizeof(*l->streams));
    l->events = mem_alloc((j->n_notes + 1) * sizeof(*l->events));
    collect(l, j);
    l->by_app = mem_alloc((l->n + 1) * sizeof(*l->by_app));
    l->published = mem_alloc((l->n + 1) * sizeof(*l->published));
    for (size_t i = 0; i < l->n; i++)
        l->by_app[i] = l->published[i] = &l->events[i];
    sort(l->by_app, l->n, by_app);
    mark_repeated(l);
    find_published(l);
    judge_slow_by_their_last(l, j->n_apps);
    return l;
}

void event_log_free(struct event_log **lp)
{
    struct event_log *l = *lp;
    mem_free(l->by_app);
    mem_free(l->published);
    mem_free(l->events);
    mem_free(l->streams);
    MEM_FREE(*lp);
}

/* ---- look-ups ---- */

const struct event_stream *event_log_stream(const struct event_log *l, uint32_t app)
{
    return &l->streams[app];
}

const struct event *event_log_find(const struct event_log *l, uint32_t app, const struct event *published)
{
    struct journal_note wanted = *published->note;
    wanted.app = app;
    const struct event key = {.note = &wanted}, *at = &key;
    size_t i = sorted_place(&at, l->by_app, l->n, sizeof(at), by_app);
    return i < l->n && by_app(&l->by_app[i], &at) == 0 ? l->by_app[i] : NULL;
}

size_t event_log_published(const struct event_log *l, uint32_t account, const char *file_id, uint8_t op,
                           const struct event *const **first)
{
    const struct journal_note note = {.file_id = file_id, .status = op};
    const struct event key = {.note = &note, .account = account}, *at = &key;
    size_t low = sorted_place(&at, l->published, l->n_published, sizeof(at), by_order), high = low;
    while (high < l->n_published && l->published[high]->account == account && by_file_op(l->published[high], at) == 0)
        high++;
    *first = &l->published[low];
    return high - low;
}
