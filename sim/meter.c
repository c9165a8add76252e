#include "sim/meter.h"

#include <string.h>

void meter_init(struct meter *m, struct stats *total)
{
    memset(m, 0, sizeof(*m));
    stats_init(&m->interval);
    m->total = total;
    const struct api_result one = {.outcome = OUT_OK};
    for (int op = 0; op < OP_COUNT; op++)
        stats_record(&m->interval, (enum drive_op)op, &one, (struct mono){0});
    stats_merge(m->total, &m->interval);
    stats_reset(m->total);
    stats_reset(&m->interval);
}

void meter_done(struct meter *m)
{
    stats_done(&m->interval);
}

void meter_requests(struct meter *m, enum cause cause, uint64_t n)
{
    m->interval.requests += n;
    m->interval.by_cause[cause] += n;
}

/* What the end of the run cut says so: "cancelled" alone would not tell by whom. */
void meter_record(struct meter *m, enum drive_op op, const struct api_result *r, struct mono due)
{
    struct api_result cut;
    if (r->err == ERR_CANCELLED) {
        cut = *r;
        str_format(cut.reason, sizeof(cut.reason), "not finished when the run ended");
        r = &cut;
    }
    stats_record(&m->interval, op, r, due);
}

static void note_outage(struct meter *m, struct mono now)
{
    m->down = true;
    m->down_since = m->first_failure;
    if (m->n_outages < METER_OUTAGES)
        m->outages[m->n_outages] =
            (struct outage){.from = m->first_failure_wall, .us = mono_diff(now, m->first_failure)};
    m->n_outages++;
}

/* A single reset is the business of one connection. It takes a refused connection, with no answer to anybody since the
 * first failure, to call the server unreachable; the outage then counts from that first failure. */
void meter_reach(struct meter *m, const struct api_result *r)
{
    struct mono now = mono_now();
    if (r->status != 0 && r->err != ERR_CLOSED && r->err != ERR_RESET) {
        if (m->down && m->n_outages <= METER_OUTAGES)
            m->outages[m->n_outages - 1].us = mono_diff(now, m->down_since);
        m->down = false;
        m->first_failure.us = 0;
        return;
    }
    if (r->err == ERR_CANCELLED)
        return;
    if (m->first_failure.us == 0) {
        m->first_failure = now;
        m->first_failure_wall = wall_now();
    }
    if (!m->down && r->err == ERR_CONNECT)
        note_outage(m, now);
}

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

int64_t meter_outage_us(const struct meter *m, struct mono now)
{
    return m->down ? mono_diff(now, m->down_since) : 0;
}
