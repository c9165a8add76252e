#ifndef SEED_PULSE_H
#define SEED_PULSE_H
/* What is busy while the crew works: the machine's processors, this program, and, where the server tells (/metrics of
 * the reference server, on this machine), the turns of the accounts' writers. Names the resource that sets the pace.
 * Layer 3. */
#include "drive/health.h"
#include "net/httpc.h"

struct pulse {
    struct httpc_peer *peer; /* NULL: the server does not tell */
    struct health health;
    bool server; /* the two below are known */
    double commits, turns_us;
};
struct pulse_change {
    double machine, own;   /* shares: of all processors, -1: not known; of one */
    double turns, commits; /* of the time, accounts added up; a second. -1: not known */
};
/* url: of the server; its metrics are asked for on loopback alone. count: of that. */
void pulse_init(struct pulse *p, struct httpc *http, const char *url, struct httpc_counters count);
void pulse_done(struct pulse *p);
/* What happened since the last call, or since pulse_init. */
MAY_YIELD struct pulse_change pulse_take(struct pulse *p);
/* "one account commits one write at a time: 212 commits/s". calls: requests a second; accounts: how many are written.
 */
void pulse_name(const struct pulse_change *c, size_t accounts, double calls, char *dst, size_t n);
#endif
