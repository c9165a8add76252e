#ifndef SIM_PAIRS_PAIRS_H
#define SIM_PAIRS_PAIRS_H
/* Pairs of apps on one account: the sender writes a small file, the receiver waits on its event stream for the event
 * and reads the file. Pairs become due at a rate, wait in a queue, and are taken by workers, each with the connections
 * of two apps. Layer 3. */
#include "sim/app/worker.h"

struct pairs_conf {
    double per_s;
    uint64_t total;
    int64_t ramp_us;     /* the rate rises evenly from 0 over this time; 0: at once */
    uint64_t bytes;      /* of a message */
    struct sv payload;   /* p set: these bytes instead of content that proves itself */
    int64_t exchange_us; /* how long a pair goes on; 0: one message */
    int64_t interval_us; /* between the starts of its messages */
    int64_t duration_us; /* no new pair after it; 0: none */
    int64_t timeout_us;  /* of a message: without its event by then it is lost */
    unsigned workers, queue;
    FILE *out; /* progress and words; NULL: none */
    bool tty;
};
/* How many workers and places in the queue a rate asks for: twice and four times the pairs of a second, and as many
 * workers more as pairs go on at the same time. */
unsigned pairs_workers(const struct pairs_conf *c);
unsigned pairs_queue(const struct pairs_conf *c);
/* When pair i is due after the start. With a ramp of r seconds the number of pairs that began grows as rate*t*t/(2r),
 * so pair i of the ramp is due at sqrt(2*r*i/rate). */
int64_t pairs_due_us(const struct pairs_conf *c, uint64_t i);
/* ERR_ENV when the server has no event stream, or too few logins for the pairs that go on at once. */
MAY_YIELD enum err pairs_run(struct worker *w, const struct pairs_conf *conf, struct errinfo *ei) WARN_UNUSED;
void pairs_sample(struct result *r);
#endif
