#ifndef CHECKS_EVIDENCE_PROBE_H
#define CHECKS_EVIDENCE_PROBE_H
/* A file of the run on which a check tries what must be refused. What is sent is what the file holds already: where a
 * server takes it, nothing is lost. Layer 3. */
#include "checks/check.h"
#include "drive/api/api.h"
#include "drive/content.h"

struct probe {
    const char *file_id, *name;  /* borrowed from the journal and the tree */
    const struct journal_op *by; /* the request of the run that led to it */
    struct content content;
    char ext[16]; /* what content.ext points to */
};
/* The file of the login's last acknowledged `op` that is still there and whose content says what it is. False: there is
 * none among the last few, or the server does not answer. Takes the journal and the tree. */
MAY_YIELD bool probe_choose(struct check_ctx *c, struct api *api, enum drive_op op, uint32_t login, struct probe *p);
#endif
