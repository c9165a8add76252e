#ifndef SIM_RUN_STILLS_H
#define SIM_RUN_STILLS_H
/* Watches the database during a run for writing transactions that stand still: open, holding what they have locked, and
 * waiting for nothing that is the machine's (no processor, no disk, no other's lock). Each is noted once in the ledger.
 * A server that is merely slow, or on a busy machine, is never found here. Layer 3. */
#include "sim/app/worker.h"

struct stills;
/* Begins to look, where the run has a ledger and the database is known; *out NULL where not. */
enum err stills_new(struct stills **out, struct worker *w, struct errinfo *ei) WARN_UNUSED;
/* Before the ledger is closed. Does not wait long for a database that hangs. */
MAY_YIELD void stills_free(struct stills **s);
#endif
