#ifndef SIM_APP_WITNESS_H
#define SIM_APP_WITNESS_H
/* What apps saw, noted in the ledger for the checks: what came on their event streams, and their views at the end.
 * Nothing is noted when no ledger is kept. Layer 3. */
#include "drive/ledger.h"
#include "sim/app/app.h"

/* Who, when and of what kind: what every record of an app has. */
void witness_stamp(const struct app *a, struct ledger_record *rec, enum ledger_kind kind);
/* ev NULL unless what is LEDGER_EVENT. */
void witness_stream(struct app *a, enum ledger_stream what, const struct api_event *ev);
/* A request that ended without an answer, as r tells; any other is passed over. */
void witness_silence(struct app *a, enum drive_op op, const struct api_result *r);
/* A transaction that stood still for so long until now; what: see sim/run/stills.c. */
void witness_still(struct worker *w, int64_t age_us, const char *what);
/* The views of all apps, which are at rest; what several apps see alike is noted once. */
void witness_views(struct worker *w);
#endif
