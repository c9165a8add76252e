#ifndef DRIVE_RESULT_SERIES_H
#define DRIVE_RESULT_SERIES_H
/* A command's figures along time: a line of JSON a stretch of it, each with its counters and the values of its
 * histograms, so that stretches can be added to longer ones and a percentile of the sum is one of all samples. Written
 * as the command goes on, each line at once: what a killed command leaves can be read. The first line says whose it is.
 * Layer 2, one writer. */
#include "base/clock.h"
#include "base/json.h"
#include "drive/stats.h"

#define SERIES_FILE "intervals.jsonl"

struct series;
struct series_owner {
    const char *command, *target, *arguments; /* "": not known */
    int64_t seed;
};
struct series_span {
    struct mono from, to;
    const char
        *phase; /* "arrival", "window", "drain", a ramp's "step"; what is told as second 0 is the first window's */
};

/* dir: the folder of a run, or NULL to keep it in memory. zero: of the seconds in it. ERR_IO when it cannot be written.
 */
enum err series_new(struct series **out, const char *dir, const struct series_owner *owner, struct mono zero,
                    struct errinfo *ei) WARN_UNUSED;
void series_free(struct series **s);
/* Begins a stretch with its counters; the caller adds members of its own, then ends it. A stretch that cannot be
 * written is the last one: it is said once, in the log. */
struct jsonw *series_begin(struct series *s, const struct series_span *span, const struct stats *stats);
void series_end(struct series *s);
struct mono series_zero(const struct series *s);
/* Appends all lines. */
enum err series_text(const struct series *s, struct buf *out, struct errinfo *ei) WARN_UNUSED;
bool series_empty(const struct series *s); /* NULL-safe */

/* Adds the counters of a line to `into`. */
void series_read(const struct json *line, struct stats *into);
#endif
