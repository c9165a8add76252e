#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H
/* Counters of the server, kept where things happen and printed by GET /metrics. Plain numbers, one thread. Layer 3. */
#include <stdint.h>

struct metrics {
    uint64_t accepted, refused_connections, requests, bytes_in, bytes_out, aborted, events_sent, resyncs, commits;
    uint64_t event_gaps, slow_streams;
    uint64_t turns_us; /* in which some account's one writer was at work */
    uint64_t by_status[600];
    uint64_t server_errors;        /* 5xx answers other than 503 */
    uint64_t connections, streams; /* now */
};
#endif
