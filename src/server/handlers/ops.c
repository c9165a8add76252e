/* Operations: liveness, and counters as Prometheus text (exposition format 0.0.4). */
#include "base/log.h"
#include "server/http/route.h"
#include "server/server.h"
#include "store/blob.h"
#include "store/kv.h"
#include "store/pg.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static MAY_YIELD void get_health(struct request *r)
{
    struct buf out = BUF_INIT(1024);
    struct jsonw w;
    char at[32];

    jsonw_init(&w, &out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "status", "ok");
    jsonw_str(&w, "timestamp", wall_format(at, sizeof at, wall_now()));
    jsonw_f64(&w, "uptime", (double)mono_diff(mono_now(), r->server->started) / US_PER_S, 3);
    jsonw_str(&w, "environment", r->server->conf->app_env);
    jsonw_end_object(&w);
    reply_json(r, 200, &out);
    buf_done(&out);
}

/* "VmRSS:    1234 kB" of /proc/self/status, in bytes. */
static int64_t memory_of(const char *name)
{
    char line[256];
    int64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    size_t n = strlen(name);
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && line[n] == ':') {
            const char *digits = line + n + 1 + strspn(line + n + 1, " \t");
            if (sv_to_i64((struct sv){digits, strspn(digits, "0123456789")}, &kib))
                break;
        }
    if (f)
        fclose(f);
    return kib * 1024;
}

struct metric {
    const char *name, *type, *help;
    int64_t (*value)(const struct server *s);
};

#define OF_COUNTER(field)                                                                                              \
    static int64_t value_##field(const struct server *s)                                                               \
    {                                                                                                                  \
        return (int64_t)s->metrics.field;                                                                              \
    }
OF_COUNTER(accepted)
OF_COUNTER(refused_connections)
OF_COUNTER(requests)
OF_COUNTER(bytes_in)
OF_COUNTER(bytes_out)
OF_COUNTER(aborted)
OF_COUNTER(events_sent)
OF_COUNTER(resyncs)
OF_COUNTER(event_gaps)
OF_COUNTER(slow_streams)
OF_COUNTER(commits)
OF_COUNTER(turns_us)
OF_COUNTER(server_errors)
OF_COUNTER(connections)
OF_COUNTER(streams)

static int64_t value_rss(const struct server *s)
{
    (void)s;
    return memory_of("VmRSS");
}

static int64_t value_peak_rss(const struct server *s)
{
    (void)s;
    return memory_of("VmHWM");
}

static int64_t value_coroutines(const struct server *s)
{
    (void)s;
    return (int64_t)coro_count();
}

static int64_t value_pg_open(const struct server *s)
{
    return s->pg ? pg_pool_open(s->pg) : 0;
}

static int64_t value_pg_waiting(const struct server *s)
{
    return s->pg ? pg_pool_waiting(s->pg) : 0;
}

static int64_t value_redis_up(const struct server *s)
{
    return s->kv && kv_up(s->kv);
}

static int64_t value_deleted(const struct server *s)
{
    return s->blob ? (int64_t)blob_deletes(s->blob).keys : 0;
}

static int64_t value_delete_requests(const struct server *s)
{
    return s->blob ? (int64_t)blob_deletes(s->blob).requests : 0;
}

static int64_t value_multi_delete(const struct server *s)
{
    return s->blob ? blob_deletes(s->blob).multi : -1;
}

static int64_t value_lag(const struct server *s)
{
    int64_t p99 = hist_percentile(loop_lag(s->loop), 99);
    return p99 < 0 ? 0 : p99;
}

static const struct metric metrics[] = {
    {"process_resident_memory_bytes", "gauge", "Resident memory.", value_rss},
    {"drive_peak_resident_memory_bytes", "gauge", "The most resident memory since the start.", value_peak_rss},
    {"drive_connections", "gauge", "Client connections open now, streams included.", value_connections},
    {"drive_streams", "gauge", "Event streams open now.", value_streams},
    {"drive_coroutines", "gauge", "Coroutines alive: requests and background work.", value_coroutines},
    {"drive_connections_accepted_total", "counter", "Client connections accepted.", value_accepted},
    {"drive_connections_refused_total", "counter", "Connections answered 503 at the limit.", value_refused_connections},
    {"drive_requests_total", "counter", "Requests whose head was complete.", value_requests},
    {"drive_requests_aborted_total", "counter", "Requests whose client left before the answer.", value_aborted},
    {"drive_server_errors_total", "counter", "Answers that say that the server is at fault: 5xx but 503.",
     value_server_errors},
    {"drive_received_bytes_total", "counter", "Bytes read from clients.", value_bytes_in},
    {"drive_sent_bytes_total", "counter", "Bytes written to clients.", value_bytes_out},
    {"drive_events_sent_total", "counter", "Event frames queued to streams.", value_events_sent},
    {"drive_resyncs_sent_total", "counter", "Resync frames queued to streams.", value_resyncs},
    {"drive_event_gaps_total", "counter", "Times that an event ran ahead of others, which were then read.",
     value_event_gaps},
    {"drive_slow_streams_dropped_total", "counter", "Streams ended because their client did not read.",
     value_slow_streams},
    {"drive_commits_total", "counter", "Changes committed to accounts.", value_commits},
    {"drive_account_turns_microseconds_total", "counter",
     "Time in which an account's one writer was at work, added up.", value_turns_us},
    {"drive_postgres_connections", "gauge", "Database connections open now.", value_pg_open},
    {"drive_postgres_waiting", "gauge", "Requests waiting for a database connection.", value_pg_waiting},
    {"drive_redis_up", "gauge", "1 while Redis is connected.", value_redis_up},
    {"drive_store_deleted_objects_total", "counter", "Objects deleted from the store.", value_deleted},
    {"drive_store_delete_requests_total", "counter", "Requests that it took.", value_delete_requests},
    {"drive_store_multi_delete", "gauge", "1: the store deletes in batches, 0: one by one, -1: not known yet.",
     value_multi_delete},
    {"drive_loop_lag_p99_microseconds", "gauge", "How late timers fire, 99th percentile since the start.", value_lag},
};

static MAY_YIELD void get_metrics(struct request *r)
{
    struct buf out = BUF_INIT(64 * 1024);
    const struct server *s = r->server;
    enum err err = ERR_OK;

    for (size_t i = 0; i < sizeof metrics / sizeof *metrics && !err; i++) {
        const struct metric *m = &metrics[i];
        err = buf_appendf(&out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRId64 "\n", m->name, m->help, m->name, m->type,
                          m->name, m->value(s));
    }
    if (!err)
        err =
            buf_append_str(&out, "# HELP drive_answers_total Answers by status.\n# TYPE drive_answers_total counter\n");
    for (int status = 100; status < 600 && !err; status++)
        if (s->metrics.by_status[status])
            err = buf_appendf(&out, "drive_answers_total{status=\"%d\"} %" PRIu64 "\n", status,
                              s->metrics.by_status[status]);
    if (err)
        LOGW("http", "the metrics were cut: %s", err_text(err));
    reply_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", (struct sv){buf_cstr(&out), out.len});
    buf_done(&out);
}

const struct route routes_ops[] = {
    {"GET", "/health", 0, ROUTE_PUBLIC | ROUTE_NO_BUDGET, get_health},
    {"GET", "/metrics", 0, ROUTE_PUBLIC | ROUTE_NO_BUDGET | ROUTE_LOOPBACK, get_metrics},
    {0},
};
