#ifndef DRIVE_THRESHOLD_H
#define DRIVE_THRESHOLD_H
/* One `--fail-on` expression: a path into the JSON of a result, a comparison, a number. Paths are looked up in the JSON
 * itself, so whatever is reported can be judged and nothing is named twice. Layer 2, private to result.c. */
#include "base/compare.h"
#include "base/json.h"

/* NOT_JUDGED: there is a figure, or would be, but it says nothing; why tells the reason. */
enum threshold_state { THRESHOLD_MET, THRESHOLD_MISSED, THRESHOLD_NO_SAMPLES, THRESHOLD_NOT_JUDGED };
struct threshold {
    char *text; /* as given */
    char path[128];
    enum compare compare;
    double want; /* in the unit of the figure */
    double found;
    enum threshold_state state;
    char why[300];              /* of NOT_JUDGED: "3 samples, it needs 100" */
    bool time, rate;            /* a figure that the generator has a part in, when it was late or the limit */
    uint64_t needs;             /* samples, of a percentile and its like; 0: it is none */
    bool about_failures, count; /* count: 0 when the operation never came up */
};
/* sample: the JSON of a result in which everything is present; says which paths there are and their units. */
enum err threshold_parse(struct threshold *t, const char *expr, const struct json *sample,
                         struct errinfo *ei) WARN_UNUSED;
/* found, or why not, as a person reads it: "10.5", "no samples", "could not be judged: 3 samples, it needs 100". */
char *threshold_found(const struct threshold *t, char *dst, size_t n);
const char *threshold_key(enum threshold_state state); /* "met", "missed", "not_judged"; static */
void threshold_judge(struct threshold *t, const struct json *doc);
#endif
