#ifndef DRIVE_STACK_FIXTURE_IMPL_H
#define DRIVE_STACK_FIXTURE_IMPL_H
/* What saving and loading of fixtures share. Internal to stack/. Layer 2. */
#include "drive/stack/env.h"
#include "drive/stack/fixture_db.h"
#include "drive/stack/impl.h"
#include "drive/stack/process.h"
#include "drive/stack/state.h"

struct fixture_place {
    const char *folder; /* of all fixtures: absolute, of the stack's arena */
    int lock_fd;        /* held while one is written or removed, shared while one is read; -1: none */
};
/* make: the folder too, where it is not there. ERR_ENV when there is none. */
enum err fixture_place_open(struct fixture_place *p, const struct stack *s, const char *dir, bool make,
                            struct errinfo *ei) WARN_UNUSED;
void fixture_place_close(struct fixture_place *p);

const char *fixture_mark(const struct stack *s); /* the file that lies there while a load puts things in place */

/* ERR_ENV when the stack is none that can be saved or loaded over. */
enum err fixture_ready(const struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* Stops its server and sees that nobody else is connected to the database. *was_up: for the one below. */
MAY_YIELD enum err fixture_still(struct stack *s, bool *was_up, struct errinfo *ei) WARN_UNUSED;
/* The server comes back, also after Ctrl-C. A failure takes err's place when that is ERR_OK. */
MAY_YIELD enum err fixture_go_on(struct stack *s, bool was_up, enum err err, struct errinfo *ei) WARN_UNUSED;

/* One of two things that are done at once has ended: with a failure the other need not go on. ei says which, in the
 * end.
 */
void fixture_end(struct stack *s, enum err err, struct errinfo *ei);
/* Of both, the failure that was not caused by the other's. */
enum err fixture_blame(const struct errinfo *a, const struct errinfo *b, struct errinfo *ei) WARN_UNUSED;

/* One of the calls of pack.h in a thread, while the loop runs. */
struct pack_call {
    enum { PACK_MAKE, PACK_UNFOLD, PACK_DIGEST } what;
    const char *file, *folder;
    uint64_t entries; /* to unfold: that it may hold */
    const struct stack *stack;
    struct pack_sum sum;
    enum err err;
    struct errinfo ei;
};
MAY_YIELD enum err fixture_pack(struct stack *s, struct pack_call *c, struct errinfo *ei) WARN_UNUSED;
#endif
