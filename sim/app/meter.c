#include "sim/app/meter.h"
#include "base/mem.h"
#include "base/shortage.h"

#include <string.h>

#define GAP_US      (3 * US_PER_S) /* answers of one kind with less between them are one outage */
#define SILENT_US   (3 * US_PER_S)
#define RECOVERY_US (10 * US_PER_S) /* after an ordered outage, until clients and pools have found back */
#define LARGE_BYTES (1 << 20)       /* a transfer of more may take its time */

void meter_init(struct meter *m, struct stats *total)
{
    memset(m, 0, sizeof(*m));
    stats_init(&m->interval);
    m->total = total;
    const struct api_result one = {.outcome = OUT_OK};
    struct stats *before = mem_zalloc(sizeof(*before)); /* what the command counted so far */
    stats_merge(before, m->total);
    for (int op = 0; op < OP_COUNT; op++)
        stats_record(&m->interval, (enum drive_op)op, &one, (struct mono){0});
    stats_merge(m->total, &m->interval);
    stats_reset(m->total);
    stats_merge(m->total, before);
    stats_reset(&m->interval);
    stats_done(before);
    mem_free(before);
}

void meter_done(struct meter *m)
{
    stats_done(&m->interval);
}

uint64_t meter_requests(const struct meter *m)
{
    return stats_requests(m->total) + stats_requests(&m->interval);
}

static void outage_reason(struct meter *m, enum drive_op op, const struct api_result *r)
{
    char text[sizeof(r->reason) + 64];
    if (r->status)
        str_format(text, sizeof(text), "%d %s (an outage was ordered)", r->status, r->reason);
    else
        str_format(text, sizeof(text), "%s (an outage was ordered)", r->reason);
    stats_reason_add(&m->interval, op, text);
}

/* What the end of the run cut says so: "cancelled" alone would not tell by whom. */
void meter_record(struct meter *m, enum drive_op op, const struct api_result *r, struct mono due)
{
    struct api_result own;
    if (r->err == ERR_CANCELLED || outcome_is_failure(r->outcome)) {
        own = *r;
        if (r->err == ERR_CANCELLED)
            str_format(own.reason, sizeof(own.reason), "not finished when the run ended");
        meter_excuse(m, &own);
        r = &own;
    }
    stats_record(&m->interval, op, r, due);
    if (r->outcome == OUT_OUTAGE)
        outage_reason(m, op, r);
    if (r->outcome == OUT_LOCAL)
        stats_reason_add(&m->interval, op, r->reason);
}

/* ---- outages that are seen ---- */

static struct mono end_of(const struct outage *o)
{
    return mono_add(o->since, o->us);
}

/* NULL when there is no room to keep it. */
static struct outage *begin(struct meter *m, const char *what, struct mono since, struct wall from)
{
    if (m->n_outages++ >= METER_OUTAGES)
        return NULL;
    struct outage *o = &m->outages[m->n_outages - 1];
    *o = (struct outage){.since = since, .from = from};
    str_format(o->what, sizeof(o->what), "%s", what);
    return o;
}

static unsigned kept(const struct meter *m)
{
    return m->n_outages < METER_OUTAGES ? m->n_outages : METER_OUTAGES;
}

/* A single reset is the business of one connection. It takes a refused connection, with no answer to anybody since the
 * first failure, to call the server unreachable; the outage then counts from that first failure. */
static void note_failure(struct meter *m, const struct api_result *r, struct mono now)
{
    if (m->first_failure.us == 0) {
        m->first_failure = now;
        m->first_failure_wall = wall_now();
    }
    if (!m->down && r->err == ERR_CONNECT) {
        m->down = true;
        m->unreachable = begin(m, "server unreachable", m->first_failure, m->first_failure_wall);
    }
    if (m->unreachable) {
        m->unreachable->us = mono_diff(now, m->unreachable->since);
        m->unreachable->failures++;
    }
}

static void note_reached(struct meter *m, struct mono now)
{
    if (m->unreachable) {
        m->unreachable->us = mono_diff(now, m->unreachable->since);
        m->unreachable->over = true;
    }
    m->unreachable = NULL;
    m->down = false;
    m->first_failure.us = 0;
}

/* Nobody had an answer since the last one, or since this request was sent: then it was not its own slowness. */
static void note_silence(struct meter *m, const struct api_result *r, struct mono now)
{
    if (m->down || m->answered.us == 0 || r->sent.us == 0 || r->bytes_up + r->bytes_down > LARGE_BYTES)
        return;
    struct mono from = mono_later(r->sent, m->answered);
    int64_t us = mono_diff(now, from) - (shortage_away_us() - m->away_us); /* in which nobody here listened */
    struct outage *o = us < SILENT_US ? NULL : begin(m, "no answer", from, (struct wall){wall_now().us - us});
    if (o) {
        o->us = us;
        o->over = true;
    }
}

/* 502, 503, 504: something behind the server is away. */
static void note_unready(struct meter *m, const struct api_result *r, struct mono now)
{
    char what[sizeof(m->outages[0].what)];
    struct outage *o = NULL;
    str_format(what, sizeof(what), "%d %s", r->status, r->code[0] ? r->code : r->reason);
    for (unsigned i = 0; i < kept(m); i++)
        if (!m->outages[i].over && strcmp(m->outages[i].what, what) == 0)
            o = &m->outages[i];
    if (!o || mono_diff(now, end_of(o)) > GAP_US) {
        if (o)
            o->over = true;
        o = begin(m, what, now, wall_now());
    }
    if (o) {
        o->us = mono_diff(now, o->since);
        o->failures++;
    }
}

void meter_reach(struct meter *m, const struct api_result *r)
{
    struct mono now = mono_now();
    bool cut = r->err == ERR_CLOSED || r->err == ERR_RESET || r->err == ERR_TIMEOUT;
    if (r->status != 0 && !cut) {
        note_silence(m, r, now);
        note_reached(m, now);
        if (r->status >= 502 && r->status <= 504)
            note_unready(m, r, now);
        m->answered = now;
        m->away_us = shortage_away_us();
    } else if (r->err != ERR_CANCELLED && r->err != ERR_LOCAL) {
        note_failure(m, r, now);
    }
}

void meter_look_at_outages(struct meter *m, struct mono now)
{
    if (m->unreachable)
        m->unreachable->us = mono_diff(now, m->unreachable->since);
    for (unsigned i = 0; i < kept(m); i++)
        if (&m->outages[i] != m->unreachable && mono_diff(now, end_of(&m->outages[i])) > GAP_US)
            m->outages[i].over = true;
    for (unsigned i = 0; i < m->n_ordered; i++)
        if (!m->ordered[i].over)
            m->ordered[i].us = mono_diff(now, m->ordered[i].since);
}

/* ---- outages that are ordered ---- */

unsigned meter_order(struct meter *m, const char *what)
{
    struct outage *o = &m->ordered[m->n_ordered];
    *o = (struct outage){.since = mono_now(), .from = wall_now()};
    str_format(o->what, sizeof(o->what), "%s", what);
    return m->n_ordered++;
}

void meter_order_over(struct meter *m, unsigned order)
{
    struct outage *o = &m->ordered[order];
    o->us = mono_diff(mono_now(), o->since);
    o->over = true;
}

/* What is cut short, not answered, or answered "not now". A refusal or wrong content is no outage's doing. */
static bool outages_do_that(const struct api_result *r)
{
    bool unready = r->status >= 502 && r->status <= 504;
    bool cut = r->outcome == OUT_TIMEOUT || r->outcome == OUT_TRANSPORT || r->outcome == OUT_UNKNOWN;
    return r->err != ERR_CANCELLED && (cut || (r->outcome == OUT_SERVER && unready));
}

void meter_excuse(const struct meter *m, struct api_result *r)
{
    if (m->n_ordered == 0 || !outages_do_that(r))
        return;
    struct mono ended = r->done.us ? r->done : mono_now(), began = r->sent.us ? r->sent : ended;
    for (unsigned i = 0; i < m->n_ordered; i++) {
        const struct outage *o = &m->ordered[i];
        bool before = mono_before(ended, o->since);
        bool after = o->over && mono_before(mono_add(end_of(o), RECOVERY_US), began);
        if (!before && !after)
            r->outcome = OUT_OUTAGE;
    }
}

/* ---- streams, intervals ---- */

void meter_stream_up(struct meter *m)
{
    m->streams_up++;
    if (m->streams_up > m->streams_peak)
        m->streams_peak = m->streams_up;
}

void meter_stream_down(struct meter *m)
{
    m->streams_up--;
}

void meter_next_interval(struct meter *m)
{
    stats_merge(m->total, &m->interval);
    stats_reset(&m->interval);
}
