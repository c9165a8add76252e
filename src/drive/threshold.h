#ifndef DRIVE_THRESHOLD_H
#define DRIVE_THRESHOLD_H
/* One `--fail-on` expression: a path into the JSON of a result, a comparison, a number. Paths are looked up in the JSON
 * itself, so whatever is reported can be judged and nothing is named twice. Layer 2, private to result.c. */
#include "base/compare.h"
#include "base/json.h"

enum threshold_state { THRESHOLD_MET, THRESHOLD_MISSED, THRESHOLD_NO_SAMPLES };
struct threshold {
    char *text; /* as given */
    char path[128];
    enum compare compare;
    double want; /* in the unit of the figure */
    double found;
    enum threshold_state state;
    bool about_failures, count; /* count: 0 when the operation never came up */
};
/* sample: the JSON of a result in which everything is present; says which paths there are and their units. */
enum err threshold_parse(struct threshold *t, const char *expr, const struct json *sample,
                         struct errinfo *ei) WARN_UNUSED;
void threshold_judge(struct threshold *t, const struct json *doc);
#endif
