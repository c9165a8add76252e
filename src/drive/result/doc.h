#ifndef DRIVE_RESULT_DOC_H
#define DRIVE_RESULT_DOC_H
/* What every rendering but the text is made from: the JSON of a result and its course along time (result/series.h). It
 * comes from a command that has just ended, from the folder of a run, also of one that was killed, or from a file that
 * --json wrote. Layer 2. */
#include "base/json.h"
#include "drive/result/result.h"

#define DOC_RESULT_FILE  "result.json"
#define DOC_SUMMARY_FILE "summary.txt"

struct doc_span {
    double at, seconds; /* at: its begin, in seconds from the measured window's */
    const char *phase;
    const struct json *line; /* see series_read */
};
struct doc {
    struct buf text;     /* the result as JSON, byte for byte */
    struct json *root;   /* the same, read */
    struct buf summary;  /* for people; "" when none was kept */
    struct json **lines; /* owned */
    struct doc_span *spans;
    size_t n_lines, n_spans;
};
/* Of a command that ended now. Its course is one stretch where it kept none. */
enum err doc_of_result(const struct result *r, struct doc **out, struct errinfo *ei) WARN_UNUSED;
/* path: a run's folder, or a file with a result as JSON. ERR_USAGE with a sentence when it is neither. */
enum err doc_load(const char *path, struct doc **out, struct errinfo *ei) WARN_UNUSED;
void doc_free(struct doc **d);
/* The counters of all stretches, added to `into`. */
void doc_stats(const struct doc *d, struct stats *into);
/* A number by its path in the result, "tree.files"; `missing` when it is not there. */
double doc_number(const struct doc *d, const char *path, double missing);
const char *doc_string(const struct doc *d, const char *key); /* "" when it is not there */
#endif
