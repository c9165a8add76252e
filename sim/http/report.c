/* Percentiles are by nearest rank and end in the exact slowest one: a table whose last line is an estimate is none. */
#include "sim/http/report.h"
#include "base/mem.h"
#include "base/percentiles.h"

#include <stdio.h>

enum { T_CONNECT, T_PROCESSING, T_WAITING, T_TOTAL, T_FROM_DUE, T_COUNT };
static const struct {
    const char *text, *key;
} times[T_COUNT] = {
    [T_CONNECT] = {"Connect:", "connect"},    [T_PROCESSING] = {"Processing:", "processing"},
    [T_WAITING] = {"Waiting:", "waiting"},    [T_TOTAL] = {"Total:", "total"},
    [T_FROM_DUE] = {"From due:", "from_due"},
};
static const struct {
    const char *text, *key;
} failures[STRESS_FAILURES] = {
    [STRESS_CONNECT] = {"Connect", "connect"},
    [STRESS_SEND] = {"Write", "write"},
    [STRESS_RECEIVE] = {"Receive", "receive"},
    [STRESS_TIMEOUT] = {"Timeout", "timeout"},
    [STRESS_PROTOCOL] = {"Protocol", "protocol"},
    [STRESS_UNFINISHED] = {"Unfinished", "unfinished"},
    [STRESS_LOCAL] = {NULL, "local"},
};
static const struct percentile ranks[] = {{"p50", 50}, {"p66", 66}, {"p75", 75}, {"p80", 80},  {"p90", 90},
                                          {"p95", 95}, {"p98", 98}, {"p99", 99}, {"p100", 100}};

struct http_report {
    unsigned connections;
    double rate;
    uint64_t ended[STRESS_FAILURES], failed, non_2xx, kept, retried, other_lengths, sent, received, body;
    uint64_t first_length;
    struct hist *time[T_COUNT];
};

struct http_report *http_report_new(unsigned connections, double rate)
{
    struct http_report *r = mem_zalloc(sizeof *r);
    r->connections = connections;
    r->rate = rate;
    for (unsigned t = 0; t < T_COUNT; t++)
        r->time[t] = hist_new();
    return r;
}

void http_report_free(struct http_report **r)
{
    if (!*r)
        return;
    for (unsigned t = 0; t < T_COUNT; t++)
        hist_free(&(*r)->time[t]);
    MEM_FREE(*r);
}

void http_report_add(struct http_report *r, const struct stress_sample *s)
{
    r->ended[s->failure]++;
    r->sent += s->bytes_sent;
    r->received += s->bytes_received;
    r->retried += s->retried;
    if (s->failure != STRESS_ANSWERED) {
        r->failed += s->failure != STRESS_LOCAL;
        return;
    }
    if (r->ended[STRESS_ANSWERED] == 1)
        r->first_length = s->body_bytes;
    r->body += s->body_bytes;
    r->other_lengths += s->body_bytes != r->first_length;
    r->non_2xx += s->status / 100 != 2;
    r->kept += s->kept;
    hist_record(r->time[T_CONNECT], s->connect_us);
    hist_record(r->time[T_PROCESSING], s->total_us - s->connect_us);
    hist_record(r->time[T_WAITING], s->wait_us);
    hist_record(r->time[T_TOTAL], s->total_us);
    if (r->rate > 0) /* in a closed loop nothing is due: one is sent when another has ended */
        hist_record(r->time[T_FROM_DUE], s->from_due_us);
}

uint64_t http_report_ended(const struct http_report *r)
{
    return r->ended[STRESS_ANSWERED] + r->ended[STRESS_LOCAL] + r->failed;
}

static double per_second(uint64_t n, int64_t us)
{
    return us > 0 ? (double)n * 1e6 / (double)us : 0;
}

static void line(FILE *out, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void line(FILE *out, const char *name, const char *fmt, ...)
{
    char value[400];
    va_list ap;
    va_start(ap, fmt);
    str_vformat(value, sizeof value, fmt, ap);
    va_end(ap);
    fprintf(out, "%-24s%s\n", name, value);
}

static void print_failures(const struct http_report *r, FILE *out)
{
    const char *sep = "   (";
    line(out, "Failed requests:", "%llu", (unsigned long long)r->failed);
    for (unsigned f = 0; r->failed && f < STRESS_FAILURES; f++) {
        if (!failures[f].text || !r->ended[f])
            continue;
        fprintf(out, "%s%s: %llu", sep, failures[f].text, (unsigned long long)r->ended[f]);
        sep = ", ";
    }
    if (r->failed)
        fputs(")\n", out);
    if (r->ended[STRESS_LOCAL])
        line(out, "Not sent:", "%llu (this machine ran short)", (unsigned long long)r->ended[STRESS_LOCAL]);
    line(out, "Write errors:", "%llu", (unsigned long long)r->ended[STRESS_SEND]);
    if (r->non_2xx)
        line(out, "Non-2xx responses:", "%llu", (unsigned long long)r->non_2xx);
    if (r->other_lengths)
        line(out, "Other lengths:", "%llu", (unsigned long long)r->other_lengths);
    if (r->retried)
        line(out, "Reconnects:", "%llu", (unsigned long long)r->retried);
}

/* What a rate of so many at once means for one of them (Little's law), and for the row of all. */
static void print_rates(const struct http_report *r, int64_t took_us, FILE *out)
{
    uint64_t n = r->ended[STRESS_ANSWERED];
    double each = n ? (double)took_us / 1e3 / (double)n : 0;
    line(out, "Requests per second:", "%.2f [#/sec] (mean)", per_second(n, took_us));
    if (r->rate > 0)
        line(out, "Rate asked:", "%.2f [#/sec]", r->rate);
    else if (n)
        line(out, "Time per request:", "%.3f [ms] (mean)", each * r->connections);
    if (n)
        line(out, "Time per request:", "%.3f [ms] (mean, across all concurrent requests)", each);
    line(out, "Transfer rate:", "%.2f [Kbytes/sec] received", per_second(r->received, took_us) / 1024);
    if (r->sent > r->received)
        line(out, "", "%.2f [Kbytes/sec] sent", per_second(r->sent, took_us) / 1024);
}

static void print_times(const struct http_report *r, FILE *out)
{
    char row[160], cell[32];
    fprintf(out, "\nConnection Times (ms)\n%-12s%10s%10s%10s%10s%10s\n", "", "min", "mean", "[+/-sd]", "median", "max");
    for (unsigned t = 0; t < T_COUNT; t++) {
        const struct hist *h = r->time[t];
        if (t == T_FROM_DUE && r->rate <= 0)
            continue;
        str_format(row, sizeof row, "%-12s%10.3f%10.3f%10.3f%10s%10.3f", times[t].text, hist_percentile_ms(h, 0),
                   hist_mean(h) / 1e3, hist_stddev(h) / 1e3, hist_cell(h, 50, US_PER_MS, 3, cell, sizeof cell),
                   hist_percentile_ms(h, 100));
        fprintf(out, "%s\n", row);
    }
    fprintf(out, "\nPercentage of the requests served within a certain time (ms)\n");
    const struct hist *h = r->time[r->rate > 0 ? T_FROM_DUE : T_TOTAL];
    for (size_t i = 0; i < ARRAY_LEN(ranks); i++) {
        str_format(row, sizeof row, "%4.0f%% %10s%s", ranks[i].pct,
                   hist_cell(h, ranks[i].pct, US_PER_MS, 3, cell, sizeof cell),
                   ranks[i].pct < 100 ? "" : " (longest request)");
        fprintf(out, "%s\n", row);
    }
    if (r->rate > 0)
        fprintf(out, "(from when each request was due, so that a stall cannot hide those that had to wait)\n");
    else
        fprintf(out,
                "(from when each request was sent: it is sent when another has ended, so a stall holds the next ones\n"
                "back and their wait is not in these times; with --rate it is)\n");
    if (!hist_carries(h, 99))
        fprintf(out, "%s\n", HIST_FEW);
}

void http_report_print(const struct http_report *r, const struct http_report_head *head, const struct stress_info *info,
                       int64_t took_us, FILE *out)
{
    fputc('\n', out);
    if (info->known && info->server[0])
        line(out, "Server Software:", "%s", info->server);
    line(out, "Server Hostname:", "%s", head->host);
    line(out, "Server Port:", "%d", head->port);
    fprintf(out, "\n%-24s%s\n", "Document Path:", head->path);
    if (info->known)
        line(out, "Document Length:", "%llu bytes", (unsigned long long)info->body_bytes);
    fputc('\n', out);
    line(out, "Concurrency Level:", "%u", r->connections);
    line(out, "Time taken for tests:", "%.3f seconds", (double)took_us / 1e6);
    line(out, "Complete requests:", "%llu", (unsigned long long)r->ended[STRESS_ANSWERED]);
    print_failures(r, out);
    if (r->kept)
        line(out, "Keep-Alive requests:", "%llu", (unsigned long long)r->kept);
    line(out, "Total transferred:", "%llu bytes", (unsigned long long)r->received);
    if (r->sent > r->received)
        line(out, "Total sent:", "%llu bytes", (unsigned long long)r->sent);
    line(out, "HTML transferred:", "%llu bytes", (unsigned long long)r->body);
    print_rates(r, took_us, out);
    if (r->ended[STRESS_ANSWERED])
        print_times(r, out);
}

static void write_times(const struct http_report *r, struct jsonw *w)
{
    for (unsigned t = 0; t < T_COUNT; t++) {
        const struct hist *h = r->time[t];
        bool any = hist_count(h) > 0;
        char key[32];
        str_format(key, sizeof key, "%s_ms", times[t].key);
        jsonw_object(w, key);
        jsonw_measured(w, "min", hist_percentile_ms(h, 0), 3);
        jsonw_measured(w, "mean", any ? hist_mean(h) / 1e3 : -1, 3);
        jsonw_measured(w, "sd", any ? hist_stddev(h) / 1e3 : -1, 3);
        percentiles_write(w, h, ranks, ARRAY_LEN(ranks));
        jsonw_end_object(w);
    }
}

void http_report_fill(const struct http_report *r, const struct stress_info *info, int64_t took_us, struct result *out)
{
    struct buf json = BUF_INIT(1u << 20);
    struct jsonw w;
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "concurrency", r->connections);
    jsonw_i64(&w, "complete", (int64_t)r->ended[STRESS_ANSWERED]);
    jsonw_i64(&w, "failed", (int64_t)r->failed);
    jsonw_object(&w, "failures");
    for (unsigned f = 0; f < STRESS_FAILURES; f++)
        if (failures[f].key)
            jsonw_i64(&w, failures[f].key, (int64_t)r->ended[f]);
    jsonw_end_object(&w);
    jsonw_i64(&w, "write_errors", (int64_t)r->ended[STRESS_SEND]);
    jsonw_i64(&w, "non_2xx", (int64_t)r->non_2xx);
    jsonw_i64(&w, "other_lengths", (int64_t)r->other_lengths);
    jsonw_i64(&w, "keep_alive", (int64_t)r->kept);
    jsonw_i64(&w, "reconnects", (int64_t)r->retried);
    jsonw_i64(&w, "bytes_sent", (int64_t)r->sent);
    jsonw_i64(&w, "bytes_received", (int64_t)r->received);
    jsonw_i64(&w, "body_bytes", (int64_t)r->body);
    jsonw_i64(&w, "document_bytes", (int64_t)info->body_bytes);
    jsonw_str(&w, "server", info->known ? info->server : NULL);
    jsonw_f64(&w, "seconds", (double)took_us / 1e6, 3);
    jsonw_f64(&w, "requests_per_s", per_second(r->ended[STRESS_ANSWERED], took_us), 2);
    jsonw_f64(&w, "received_kb_per_s", per_second(r->received, took_us) / 1024, 2);
    write_times(r, &w);
    jsonw_end_object(&w);
    result_part(out, "http", &w);
}
