#ifndef LIVE_H
#define LIVE_H
/* What the tests of clients on real servers (tests/sys/live_*.c) share: the server is named by the environment. */
#include "unit.h"

#include <stdlib.h>

static inline char *env(const char *name)
{
    char *v = getenv(name);
    if (!v || !*v)
        fail_msg("%s is not set", name);
    return v;
}
#endif
