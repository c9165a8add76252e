/* Every acknowledged change reached every event stream of its account, once, in the order of the account's changes, and
 * soon. A change that an app did not hear of is lost, unless that app was told to list everything after the change had
 * been asked for. A stream that ended and was opened again is judged as one: what happened in between has to be
 * repeated, or covered by a resync.
 *
 * Changes and events are put together by file and operation, the last with the last and so on back: an event cannot be
 * older than the request that it tells of. What was sent without an answer may or may not have one, and is left out. */
#include "base/hist.h"
#include "base/mem.h"
#include "checks/evidence/event_log.h"
#include "checks/evidence/others.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LATE_US (5 * US_PER_S)

struct judge {
    struct check_ctx *c;
    const struct journal *j;
    struct check_result *r;
    uint64_t others; /* events that may be of somebody else's change */
    struct event_log *log;
    struct event_summary sum;
    bool silent[OP_COUNT]; /* kinds of change that the server does not announce */
    struct hist *lag;
    uint64_t streams;
};

static bool publishes(const struct journal_op *o)
{
    return o->op == OP_UPLOAD || o->op == OP_SAVE || o->op == OP_RENAME || o->op == OP_TRASH || o->op == OP_COPY ||
           o->op == OP_NEW_FOLDER || o->op == OP_MOVE;
}

static const char *email_of(const struct judge *k, uint32_t login)
{
    const char *email = login < k->j->n_logins ? k->j->emails[login] : NULL;
    return email ? email : "?";
}

/* ---- one change, one app ---- */

#define NAMED_MOST 5

/* The apps that one change failed in one way: a complaint a change, however many apps there are. */
struct apps {
    uint32_t n;
    char named[300]; /* the first of them */
    int64_t worst_us;
};

static void apps_add(const struct judge *k, struct apps *c, const struct event_stream *s, int64_t late_us)
{
    size_t at = strlen(c->named);
    if (c->n++ < NAMED_MOST)
        snprintf(c->named + at, sizeof(c->named) - at, "%sapp %" PRIu32 " (%s)", at ? ", " : "", s->app,
                 email_of(k, s->login));
    c->worst_us = late_us > c->worst_us ? late_us : c->worst_us;
}

/* "app 3 (ann@load.test)", "10 of 10 apps" */
static const char *apps_text(const struct apps *c, uint32_t of, char *dst, size_t n)
{
    if (c->n == 1)
        snprintf(dst, n, "%s", c->named);
    else
        snprintf(dst, n, "%" PRIu32 " of %" PRIu32 " apps", c->n, of);
    return dst;
}

/* ": app 3 (ann@load.test), app 4 (…) and 8 more"; "" where there is one, or all of them. */
static const char *apps_names(const struct apps *c, uint32_t of, char *dst, size_t n)
{
    char more[40] = "";
    bool some = c->n > 1 && c->n < of;
    if (c->n > NAMED_MOST)
        snprintf(more, sizeof(more), " and %" PRIu32 " more", c->n - NAMED_MOST);
    snprintf(dst, n, "%s%s%s", some ? ": " : "", some ? c->named : "", some ? more : "");
    return dst;
}

static void report_lost(struct judge *k, const struct apps *c, uint32_t of, const struct journal_op *o)
{
    char at[32], who[320], names[360];
    if (c->n == 0)
        return;
    check_detail(k->r,
                 "%s never got the event of the %s of file %s by app %" PRIu32
                 " at %s%s; look: SELECT seq, type, at FROM changes WHERE data->>'id' = '%s'",
                 apps_text(c, of, who, sizeof(who)), drive_op_text((enum drive_op)o->op), o->file_id, o->app,
                 journal_time(at, o->wall_us), apps_names(c, of, names, sizeof(names)), o->file_id);
}

static void report_late(struct judge *k, const struct apps *c, uint32_t of, const struct journal_op *o)
{
    char at[32], who[320], names[360];
    if (c->n == 0)
        return;
    check_detail(k->r,
                 "%s heard of the %s of file %s by app %" PRIu32
                 " at %s %s%.1f s after its answer%s; look: SELECT seq, type, at FROM changes WHERE data->>'id' = '%s'",
                 apps_text(c, of, who, sizeof(who)), drive_op_text((enum drive_op)o->op), o->file_id, o->app,
                 journal_time(at, o->wall_us), c->n > 1 ? "up to " : "", (double)c->worst_us / 1e6,
                 apps_names(c, of, names, sizeof(names)), o->file_id);
}

/* Of one change: how many apps were to hear of it, and which did not, or late. */
struct heard {
    uint32_t of;
    struct apps lost, late;
};

static MAY_YIELD void judge_change(struct judge *k, const struct event_stream *s, const struct journal_op *o,
                                   const struct event *published, struct heard *h)
{
    if (o->sent_us < s->first_up_us || o->told_us > s->until_us)
        return;
    const struct event *e = published ? event_log_find(k->log, s->app, published) : NULL;
    h->of++;
    k->sum.expected++;
    k->sum.seen += e != NULL;
    if (!e && s->resync_us >= o->sent_us) {
        k->sum.resynced++;
    } else if (!e) {
        k->sum.lost++;
        apps_add(k, &h->lost, s, 0);
    } else if (!s->slow) {
        /* While the stream was down nobody could tell it. */
        int64_t from = e->up_us > o->told_us ? e->up_us : o->told_us, lag = e->note->at_us - from;
        if (lag > LATE_US && check_changed_by_others(k->c, o->file_id)) { /* theirs may be the later event */
            k->others++;
            return;
        }
        hist_record(k->lag, lag > 0 ? lag : 0);
        if (lag > LATE_US && s->resync_us < o->sent_us) { /* else it listed everything meanwhile */
            k->sum.late++;
            apps_add(k, &h->late, s, e->note->at_us - o->told_us);
        }
    }
}

/* ---- changes and what was published of them ---- */

static int by_file_op_time(const void *a, const void *b)
{
    const struct journal_op *x = *(const struct journal_op *const *)a, *y = *(const struct journal_op *const *)b;
    int c = strcmp(x->file_id, y->file_id);
    if (c == 0)
        c = (x->op > y->op) - (x->op < y->op);
    return c ? c : (x->sent_us > y->sent_us) - (x->sent_us < y->sent_us);
}

/* The changes [from, to) are of one file and one operation. */
static MAY_YIELD void judge_changes(struct judge *k, const struct journal_op **changes, size_t from, size_t to)
{
    const struct event *const *published = NULL;
    uint32_t account = journal_account(k->j, changes[from]->login);
    size_t left = event_log_published(k->log, account, changes[from]->file_id, changes[from]->op, &published);
    for (size_t i = to; i-- > from;) {
        const struct journal_op *o = changes[i];
        const struct event *at = NULL;
        if (left > 0 && published[left - 1]->note->at_us >= o->sent_us)
            at = published[--left];
        struct heard h = {.of = 0};
        for (uint32_t app = 0; app < k->j->n_apps; app++) {
            const struct event_stream *s = event_log_stream(k->log, app);
            if (s->account == account)
                judge_change(k, s, o, at, &h);
        }
        report_lost(k, &h.lost, h.of, o);
        report_late(k, &h.late, h.of, o);
    }
}

/* A stream whose events carry no number promises less: there may be kinds of change that it never announces. Those of
 * which nobody ever heard are left out, and told. Returns how many changes are left. */
static size_t leave_silent_out(struct judge *k, const struct journal_op **changes, size_t n)
{
    bool heard[OP_COUNT] = {false}, numbered = k->log->n == 0;
    size_t left = 0;
    for (size_t i = 0; i < k->log->n; i++) {
        const struct journal_note *note = k->log->events[i].note;
        numbered = numbered || note->size > 0;
        if (note->status < OP_COUNT)
            heard[note->status] = true;
    }
    for (size_t i = 0; i < n; i++) {
        k->silent[changes[i]->op] = !numbered && !heard[changes[i]->op];
        if (!k->silent[changes[i]->op])
            changes[left++] = changes[i];
    }
    return left;
}

static MAY_YIELD void judge_all_changes(struct judge *k)
{
    const struct journal_op **changes = mem_alloc((k->j->n + 1) * sizeof(*changes));
    size_t n = 0;
    for (size_t i = 0; i < k->j->n; i++)
        if (publishes(&k->j->ops[i]) && journal_acked(&k->j->ops[i]) && k->j->ops[i].file_id[0])
            changes[n++] = &k->j->ops[i];
    n = leave_silent_out(k, changes, n);
    qsort(changes, n, sizeof(*changes), by_file_op_time);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && changes[to]->op == changes[from]->op &&
                            strcmp(changes[to]->file_id, changes[from]->file_id) == 0;)
            to++;
        judge_changes(k, changes, from, to);
    }
    mem_free(changes);
}

/* ---- each stream by itself ---- */

static void report_turn(struct judge *k, const struct event *e, const char *how)
{
    char at[32];
    const struct event_stream *s = event_log_stream(k->log, e->note->app);
    check_detail(k->r,
                 "app %" PRIu32 " (%s) got an event of file %s (%s, number %" PRIu64 ") %s, at %s;"
                 " look: SELECT seq, type, at FROM changes WHERE data->>'id' = '%s'",
                 s->app, email_of(k, s->login), e->note->file_id, drive_op_text((enum drive_op)e->note->status),
                 e->note->size, how, journal_time(at, e->note->wall_us), e->note->file_id);
}

static void judge_turns(struct judge *k)
{
    uint64_t *highest = mem_zalloc((k->j->n_apps + 1) * sizeof(*highest));
    for (size_t i = 0; i < k->log->n; i++) {
        const struct event *e = &k->log->events[i];
        uint64_t *top = &highest[e->note->app], number = e->note->size;
        if (e->repeated) {
            k->sum.duplicate++;
            report_turn(k, e, "once more");
        } else if (number && number < *top) {
            k->sum.out_of_order++;
            report_turn(k, e, "after one of a higher number");
        }
        if (number > *top)
            *top = number;
    }
    mem_free(highest);
}

/* "; not announced by this server: trash", "" for none. */
static const char *silent_text(const struct judge *k, char *dst, size_t n)
{
    struct buf b = BUF_INIT(n);
    enum err e = ERR_OK;
    for (int op = 0; op < OP_COUNT && e == ERR_OK; op++)
        if (k->silent[op])
            e = buf_appendf(&b, "%s%s",
                            b.len ? ", " : "; not announced by this server: ", drive_op_text((enum drive_op)op));
    str_format(dst, n, "%s", buf_cstr(&b));
    buf_done(&b);
    return dst;
}

static void sum_up(struct judge *k)
{
    const struct event_summary *s = &k->sum;
    char text[60] = "", p99[60] = "", silent[100], others[100] = "", expected[32], seen[32];
    if (s->resynced)
        snprintf(text, sizeof(text), ", %" PRIu64 " covered by a resync", s->resynced);
    if (hist_count(k->lag) > 0)
        str_format(p99, sizeof(p99), "; %s %.0f ms after the answer", hist_carries(k->lag, 99) ? "p99" : "slowest",
                   (double)hist_percentile(k->lag, hist_carries(k->lag, 99) ? 99 : 100) / 1e3);
    if (k->others)
        snprintf(others, sizeof(others), "; not timed, as somebody else changed the item too: %" PRIu64, k->others);
    check_summary(k->r,
                  "%s expected on %s, %s seen, %" PRIu64 " lost, %" PRIu64 " duplicate, %" PRIu64
                  " out of order, %" PRIu64 " late%s%s%s%s",
                  str_thousands(expected, sizeof(expected), s->expected), COUNTED(k->streams, "stream"),
                  str_thousands(seen, sizeof(seen), s->seen), s->lost, s->duplicate, s->out_of_order, s->late, text,
                  p99, silent_text(k, silent, sizeof(silent)), others);
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    struct judge k = {.c = c, .j = check_journal(c, r), .r = r, .sum = {.known = true}};
    if (!k.j)
        return;
    k.lag = hist_new();
    k.log = event_log_new(k.j);
    for (uint32_t app = 0; app < k.j->n_apps; app++)
        k.streams += event_log_stream(k.log, app)->first_up_us != INT64_MAX;
    judge_all_changes(&k);
    judge_turns(&k);
    r->examined = k.sum.expected;
    if (k.streams == 0) {
        check_not_run(r, "%s",
                      !target_shows_inside(c->cmd->target) ? "not offered: a server of this kind has no event stream"
                                                           : "no event stream was up in that run");
    } else {
        sum_up(&k);
        c->cmd->result->events = k.sum;
    }
    event_log_free(&k.log);
    hist_free(&k.lag);
}

const struct check check_events = {
    "events", "every acknowledged change of a run reached every stream of its account, once and in order", run};
