#ifndef SIM_LARGE_IMPL_H
#define SIM_LARGE_IMPL_H
/* What the files bulk*.c share: the state of the scenario, and its looking around (bulk_read.c). Layer 3. */
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
