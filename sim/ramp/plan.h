#ifndef SIM_RAMP_PLAN_H
#define SIM_RAMP_PLAN_H
/* What a ramp was asked for, as people write it: steps, rates, what a session does. And its arithmetic: when each
 * session is due, what would be expected if nothing but the link were in the way. Layer 3, pure. */
#include "base/err.h"
#include <stddef.h>

#define RAMP_STEPS_MAX    64
#define RAMP_SESSIONS_MAX 20000

struct ramp_steps {
    unsigned n, sessions[RAMP_STEPS_MAX];
};
/* "25,50,100" in the order given, "25:400:x2", "25:400:50" or "25:400:+50" (the end is a step of its own when it is not
 * hit), "100". */
enum err ramp_parse_steps(const char *text, struct ramp_steps *out, struct errinfo *ei) WARN_UNUSED;
/* "5/s", "300/min", "900/h", "5"; "0": all at once. */
enum err ramp_parse_rate(const char *text, double *per_s, struct errinfo *ei) WARN_UNUSED;
/* "110MB/s", "1Gbit/s", "12.5MiB/s": bytes a second. */
enum err ramp_parse_link(const char *text, double *bytes_per_s, struct errinfo *ei) WARN_UNUSED;

enum ramp_session { RAMP_SIGN_IN, RAMP_UPLOAD, RAMP_APPS };
struct ramp_work {
    enum ramp_session kind;
    int64_t bytes; /* of an upload */
};
/* "sign-in" or "login", "upload:50MiB", "upload" (1 MiB), "apps" or "mix". */
enum err ramp_parse_work(const char *text, struct ramp_work *out, struct errinfo *ei) WARN_UNUSED;

/* When the i-th of a step's sessions begins, from the step's start; and the last of n. */
int64_t ramp_due_us(double per_s, unsigned i);

/* What a step did: bytes of uploads a second, actions of apps a second, or, of sign-ins, sessions that were let in.
 * < 0: not measured. */
struct ramp_measure {
    unsigned sessions;
    double rate, p95_s; /* p95: of an upload */
};
/* If the first step's rate for each session and the link were the only limits (the lower of the two, ramp/knee.h); the
 * time of an upload by the link alone, else as in the first step. link_bytes_per_s 0: no link is known. */
struct ramp_measure ramp_expect(const struct ramp_measure *first, unsigned sessions, double link_bytes_per_s,
                                int64_t bytes);
#endif
