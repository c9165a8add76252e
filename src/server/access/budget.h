#ifndef SERVER_ACCESS_BUDGET_H
#define SERVER_ACCESS_BUDGET_H
/* Budgets: so many calls in a fixed window that begins with its first call, counted in Redis, so that all processes on
 * one database share them. While Redis is away everything passes and the log says so. Layer 3. */
#include "server/http/http.h"

enum budget { BUDGET_REQUESTS, BUDGET_UPLOADS, BUDGET_LOGINS, BUDGET_STORAGE_TESTS, BUDGET_COUNT };
struct budget_use {
    enum budget budget;
    const char *key; /* whose: a login's id, an address, … */
};
/* Counts the request in each of them, in one round trip. The answer's RateLimit-* headers tell of the last one, or of
 * the one that is used up. False: it has been answered with 429. */
MAY_YIELD bool budget_take(struct request *r, const struct budget_use *uses, size_t n);
#endif
