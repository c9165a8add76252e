#ifndef SIM_APP_TURN_H
#define SIM_APP_TURN_H
/* Waiting until a limiter that refused a sign-in lets the next one through; an interruption ends the wait. Layer 3. */
#include "base/rng.h"
#include "drive/api/api.h"

struct turn {
    struct loop *loop;
    const bool *stop; /* set by an interruption */
    const char *command;
    struct rng rng;
    unsigned tries;
};
/* After the answer to a sign-in of that login: true when it was put off and its time has come. */
MAY_YIELD bool turn_again(struct turn *t, const char *email, const struct api_result *r);
#endif
