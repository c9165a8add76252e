#ifndef DRIVE_API_BUDGET_H
#define DRIVE_API_BUDGET_H
/* Budgets of requests that a server's limiter says are spent: who waits for one is told of, and goes on at the pace
 * that the budget bears, rather than to spend the next one in a burst and wait again. Layer 2; one loop's thread. */
#include "base/clock.h"
#include "net/coro.h"

/* Somebody waits until then: told in the log at once, with what the server said ("": nothing), and again each minute
 * while anybody does, for all that wait together. A wait of less than 1 s is told of nowhere. For a wait that was told
 * of already reason is NULL. Each begin has its end. */
void budget_wait_begin(struct loop *l, struct mono until, const char *reason);
void budget_wait_end(void);
/* The whole of it: waits until then, or until *stop (set by an interruption; NULL: nothing ends it). False then. */
MAY_YIELD bool budget_wait(struct loop *l, struct mono until, const char *reason, const bool *stop);

/* One who asks again and again. */
struct budget_pace { /* {0}: at full speed */
    struct mono since, next;
    uint64_t asked;
    int64_t gap_us; /* between two requests; 0: none */
};
/* Before each request: its turn. False: *stop. */
MAY_YIELD bool budget_turn(struct budget_pace *p, struct loop *l, const bool *stop);
/* A 429 that asks for a wait until then: what was asked since the last one, over that time and the wait, is the budget.
 */
void budget_spent(struct budget_pace *p, struct mono until);

/* What the clients of a command share that waits out what it is refused for a spent budget, call by call (api_conf). */
struct budget {
    struct loop *loop;
    const bool *stop; /* set by an interruption, which ends the wait */
    struct budget_pace pace;
    int64_t waited_us;
    unsigned tries;
};
/* A 429 that asks for retry_after_us (-1: does not say) was waited out. False: *stop. */
MAY_YIELD bool budget_sit_out(struct budget *b, int64_t retry_after_us, const char *reason);
#endif
