#ifndef SIM_APP_STREAM_H
#define SIM_APP_STREAM_H
/* An app's event stream: opened, held, opened again when it ends. Its callbacks only note what came; requests are made
 * by the app's lanes. After an end the app waits for 1 s, doubled with each failure in a row up to 30 s, of which the
 * second half is drawn at random, and never less than what the server asked for (`retry:`, Retry-After) plus a tenth;
 * a stream that held for 5 s starts anew at 1 s. It says what it saw last (Last-Event-ID). Layer 3. */
#include "drive/ledger.h"
#include "sim/app/app.h"

#define SLOW_BYTES_PER_S 64 /* what a slow reader takes: an event in some seconds */

void stream_init(struct app *a); /* before any other call; opens nothing */
/* Opens it, unless it is open, the run drains, or the server has none; from then on it comes back by itself. Returns at
 * once: what became of it is counted when it is known. */
void stream_open(struct app *a);
/* The stream had been refused because its session had expired: renewed tells whether there
 * is a new one now. Opened again, after a wait where there is none or it was refused twice in a row. */
void stream_renewed(struct app *a, bool renewed);
/* Ends it for good; the ledger notes it as `how`. */
void stream_close(struct app *a, enum ledger_stream how);
/* As a proxy's restart would: ends now and is opened again after the usual wait. False when there was none. */
bool stream_break(struct app *a);
/* It has been open for seconds, and not even the first frame came: something on the way holds them back. */
bool stream_is_silent(const struct app *a, struct mono now);
#endif
