#ifndef SIM_LARGE_IMPL_H
#define SIM_LARGE_IMPL_H
/* What the files bulk*.c share: the state of the scenario, its three steps (bulk_steps.c), and its looking around
 * (bulk_read.c). Layer 3. */
#include "sim/app/errand.h"
#include "sim/app/run_folders.h"
#include "sim/large/bulk.h"

struct bulk_totals {
    int64_t files, folders, bytes; /* below a folder, itself not counted; -1: not told */
};
struct bulk {
    const struct bulk_conf *conf;
    struct worker *w;
    struct app app;
    struct arena *mem;         /* of what lives as long as the scenario */
    const char *source, *name; /* id, and its name fit to be printed */
    struct bulk_totals size;
    struct bulk_totals seen; /* of the copy, when it was last looked at */
    bool counted;            /* and by its listings */
    int64_t used;            /* storage use before, -1: not known */
    struct run_folders folders;
    const char *place;           /* id of the folder that the copy is made in */
    char copy[DRIVE_ID_MAX + 1]; /* "": not known */
};

/* What is seen of a step from the outside; NOTHING: it cannot be looked at. */
enum bulk_seen { SEEN_DONE, SEEN_NOT, SEEN_IN_PART, SEEN_TWICE, SEEN_NOTHING };
struct bulk_step {
    const char *figures, *what, *doing; /* section of the JSON, words of the table, of the progress */
    enum drive_op op;
    MAY_YIELD void (*ask)(struct bulk *b, struct api_job *job, struct api_result *r);
    MAY_YIELD enum bulk_seen (*look)(struct bulk *b);               /* is it done? */
    MAY_YIELD void (*verify)(struct bulk *b, struct api_result *r); /* r becomes WRONG when it was done badly */
    bool tried, done, unknown; /* unknown: its time was over, or the answer was lost */
    int64_t items, request_us, queue_us, work_us, total_us;
};
enum { BULK_COPY, BULK_TRASH, BULK_PURGED, BULK_STEPS };
extern const struct bulk_step bulk_steps[BULK_STEPS]; /* bulk_steps.c; op is bulk_conf's */
#define BULK_PURGE_KEY "bulk_purge"                   /* section of the JSON */

void bulk_tell(const struct bulk *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Every one of these asks again while the server is away, for half a minute. False: with the reason in r. */
MAY_YIELD bool bulk_info(struct bulk *b, const char *id, struct bulk_totals *out, struct api_result *r);
/* How many entries a folder lists, and the first one's id; a folder that is gone has none. */
MAY_YIELD bool bulk_list(struct bulk *b, const char *id, size_t *n, char first[DRIVE_ID_MAX + 1], struct api_result *r);
MAY_YIELD bool bulk_in_trash(struct bulk *b, const char *id, bool *there, struct api_result *r);
MAY_YIELD int64_t bulk_storage_used(struct bulk *b); /* -1: not told */
/* Counts what is listed in a folder and below, which leaves out what is in the trash. */
MAY_YIELD bool bulk_count(struct bulk *b, const char *id, struct bulk_totals *out, struct api_result *r);
/* The largest folder of the top level, by what info says is in it. */
MAY_YIELD enum err bulk_choose(struct bulk *b, struct errinfo *ei) WARN_UNUSED;
/* "335 files in 44 folders, 19.3 MiB" */
char *bulk_totals_text(char *dst, size_t n, const struct bulk_totals *t);
bool bulk_same(const struct bulk_totals *a, const struct bulk_totals *b);
#endif
