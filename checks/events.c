/* Every acknowledged change reached every event stream of its account: each app whose stream was up when the change was
 * asked for, and stayed up to the end, has as many events of that file as changes were acknowledged, unless it was told
 * to list everything anew. And none came later than a few seconds after the answer. */
#include "base/hash.h"
#include "base/hist.h"
#include "base/mem.h"
#include "checks/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LATE_US (5 * US_PER_S)

struct stream {
    int64_t up, down; /* of the app's one stream; up INT64_MAX: none */
    uint32_t ups, account;
    bool resynced;
};
struct judge {
    const struct journal *j;
    struct check_result *r;
    struct stream *streams;             /* by app */
    const struct journal_note **events; /* by app, file, time */
    size_t n;
    const struct journal_op **changes; /* by file, time */
    size_t n_changes;
    struct hist *lag;
    uint64_t pairs, lost, late, skipped;
};

static bool publishes(const struct journal_op *o)
{
    return o->op == OP_UPLOAD || o->op == OP_SAVE || o->op == OP_RENAME || o->op == OP_TRASH || o->op == OP_COPY ||
           o->op == OP_NEW_FOLDER;
}

static void note_stream(struct judge *k, const struct journal_note *n)
{
    struct stream *s = &k->streams[n->app];
    s->account = journal_account(k->j, n->login);
    if (n->flags == LEDGER_STREAM_UP) {
        s->ups++;
        s->up = n->at_us;
        s->down = INT64_MAX;
    } else if (n->flags == LEDGER_STREAM_DOWN) {
        s->down = n->at_us;
    } else if (n->flags == LEDGER_RESYNC) {
        s->resynced = true;
    }
}

static int by_app_file_time(const void *a, const void *b)
{
    const struct journal_note *x = *(const struct journal_note *const *)a, *y = *(const struct journal_note *const *)b;
    if (x->app != y->app)
        return x->app < y->app ? -1 : 1;
    int c = strcmp(x->file_id, y->file_id);
    return c ? c : (x->at_us > y->at_us) - (x->at_us < y->at_us);
}

static int by_file_time(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    int c = strcmp(x->file_id, y->file_id);
    return c ? c : (x->seq > y->seq) - (x->seq < y->seq);
}

static void collect(struct judge *k)
{
    for (uint32_t i = 0; i < k->j->n_apps; i++)
        k->streams[i].up = INT64_MAX;
    for (size_t i = 0; i < k->j->n_notes; i++) {
        const struct journal_note *n = &k->j->notes[i];
        if (n->op == OP_STREAM && n->flags != LEDGER_EVENT)
            note_stream(k, n);
        else if (n->op == OP_STREAM && n->file_id[0])
            k->events[k->n++] = n;
    }
    for (size_t i = 0; i < k->j->n; i++)
        if (publishes(&k->j->ops[i]) && journal_acked(&k->j->ops[i]) && k->j->ops[i].file_id[0])
            k->changes[k->n_changes++] = &k->j->ops[i];
    qsort(k->events, k->n, sizeof(*k->events), by_app_file_time);
    qsort(k->changes, k->n_changes, sizeof(*k->changes), by_file_time);
}

/* The first event of the app about the file at or after a time; NULL when there is none. Those that follow in the array
 * are later ones, as long as app and file stay the same. */
static const struct journal_note *const *first_event(const struct judge *k, uint32_t app, const char *file, int64_t at)
{
    const struct journal_note key = {.app = app, .file_id = file, .at_us = at}, *wanted = &key;
    size_t low = 0, high = k->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_app_file_time(&k->events[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool fits = low < k->n && k->events[low]->app == app && strcmp(k->events[low]->file_id, file) == 0;
    return fits ? &k->events[low] : NULL;
}

static size_t count_events(const struct judge *k, const struct journal_note *const *e)
{
    const struct journal_note *const *end = k->events + k->n, *const *at = e;
    while (e && at < end && (*at)->app == (*e)->app && strcmp((*at)->file_id, (*e)->file_id) == 0)
        at++;
    return e ? (size_t)(at - e) : 0;
}

static void report(struct judge *k, uint32_t app, const struct journal_op *o, size_t had, size_t due)
{
    char at[32];
    check_detail(k->r,
                 "app %" PRIu32
                 " had %zu events of %zu acknowledged changes of file %s: one of them is the %s of app %" PRIu32
                 " at %s; look: SELECT seq, type, at FROM changes WHERE data->>'id' = '%s'",
                 app, had, due, o->file_id, drive_op_text((enum drive_op)o->op), o->app, journal_time(at, o->wall_us),
                 o->file_id);
}

/* The changes [from, to) are those of one file. */
static void judge_pair(struct judge *k, uint32_t app, size_t from, size_t to)
{
    const struct stream *s = &k->streams[app];
    size_t due = 0, first = to;
    for (size_t i = from; i < to; i++)
        if (k->changes[i]->sent_us >= s->up) {
            due++;
            first = first == to ? i : first;
        }
    if (due == 0)
        return;
    const struct journal_op *o = k->changes[first];
    const struct journal_note *const *e = first_event(k, app, o->file_id, o->sent_us);
    size_t had = count_events(k, e);
    k->pairs += due;
    if (had < due) {
        k->lost += due - had;
        report(k, app, o, had, due);
    } else if (due == 1) { /* only then it is clear which event is whose */
        int64_t lag = (*e)->at_us - o->told_us;
        hist_record(k->lag, lag > 0 ? lag : 0);
        if (lag > LATE_US) {
            char at[32];
            k->late++;
            check_detail(k->r,
                         "app %" PRIu32 " heard of the %s of file %s by app %" PRIu32 " at %s %.1f s after its answer",
                         app, drive_op_text((enum drive_op)o->op), o->file_id, o->app, journal_time(at, o->wall_us),
                         (double)lag / 1e6);
        }
    }
}

static void judge_app(struct judge *k, uint32_t app)
{
    const struct stream *s = &k->streams[app];
    if (s->ups != 1 || s->resynced || s->down == INT64_MAX) {
        k->skipped += s->ups > 0;
        return;
    }
    for (size_t from = 0, to; from < k->n_changes; from = to) {
        for (to = from + 1; to < k->n_changes && strcmp(k->changes[to]->file_id, k->changes[from]->file_id) == 0;)
            to++;
        if (journal_account(k->j, k->changes[from]->login) == s->account)
            judge_pair(k, app, from, to);
    }
    k->r->examined++;
}

static void run(struct check_ctx *c, struct check_result *r)
{
    struct judge k = {.j = check_journal(c, r), .r = r};
    if (!k.j)
        return;
    k.streams = mem_zalloc((k.j->n_apps + 1) * sizeof(*k.streams));
    k.events = mem_alloc((k.j->n_notes + 1) * sizeof(*k.events));
    k.changes = mem_alloc((k.j->n + 1) * sizeof(*k.changes));
    k.lag = hist_new();
    collect(&k);
    for (uint32_t app = 0; app < k.j->n_apps; app++)
        judge_app(&k, app);
    if (r->examined == 0)
        check_not_run(r, "%s",
                      target_logins_given(c->cmd->target)
                          ? "not offered: a server of this kind has no event stream"
                          : "no event stream was up from its start to the end of the run");
    else
        check_summary(r,
                      "%" PRIu64 " acknowledged changes due on %" PRIu64 " streams, %" PRIu64 " lost, %" PRIu64
                      " late; p50 %.0f, p99 %.0f, slowest %.0f ms after the answer%s",
                      k.pairs, r->examined, k.lost, k.late, (double)hist_percentile(k.lag, 50) / 1e3,
                      (double)hist_percentile(k.lag, 99) / 1e3, (double)hist_max(k.lag) / 1e3,
                      k.skipped ? "; streams that were opened again or resynced are left out" : "");
    hist_free(&k.lag);
    mem_free(k.streams);
    mem_free(k.events);
    mem_free(k.changes);
}

const struct check check_events = {"events", "every acknowledged change of a run reached every stream of its account",
                                   run};
