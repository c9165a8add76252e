#ifndef CHECKS_EVIDENCE_READBACK_H
#define CHECKS_EVIDENCE_READBACK_H
/* One file read back, every byte compared with each content that it may have, and with what its own header says it is.
 * Layer 3. */
#include "checks/evidence/asker.h"
#include "checks/evidence/fate.h"

enum readback_verdict {
    READ_MATCHES, /* which: one of the run's writes */
    READ_OTHER,   /* whole, but none of them: what was there before */
    READ_UNKNOWN, /* nothing that proves itself: a file that is none of ours */
    READ_WRONG,
    READ_GONE, /* the server answers that there is no such file */
};
struct readback {
    enum readback_verdict verdict;
    const struct journal_op *which;
    uint64_t bytes, revision; /* revision: what its header says, 0 without one */
    char why[200];            /* READ_WRONG: what came instead */
};
/* name: as the file is called now, for what its extension promises; NULL: not known. ERR_ENV: it could not be asked. */
MAY_YIELD enum err readback(struct asker *a, uint32_t account, const char *id, const char *name,
                            const struct fate_contents *want, struct readback *out, struct errinfo *ei) WARN_UNUSED;
#endif
