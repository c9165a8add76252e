#ifndef CHECKS_EVIDENCE_LOOK_H
#define CHECKS_EVIDENCE_LOOK_H
/* For the reader of a violation: a request or a query with which to look at the item oneself, or its path where a
 * server knows things by their paths. Layer 3. */
#include "checks/check.h"

enum look {
    LOOK_INFO,    /* what is told of it */
    LOOK_CONTENT, /* its bytes */
    LOOK_ROW,
    LOOK_HISTORY, /* who did what to it */
    LOOK_FOLDER,  /* a folder's listing */
    LOOK_LOCK,    /* its edit lock, asked for */
    LOOK_SAVE,    /* its replacement without the lock */
};
#define LOOK_MAX 512
/* For the end of a detail, after "look: ". */
char *look_at(const struct check_ctx *c, enum look how, const char *id, char dst[LOOK_MAX]);
#endif
