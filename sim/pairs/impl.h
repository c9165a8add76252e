#ifndef SIM_PAIRS_IMPL_H
#define SIM_PAIRS_IMPL_H
/* Internal to `sim pairs`: the pool of couples and its queue (pairs.c), what one pair does (exchange.c), what is told
 * in the end (told.c). Layer 3. */
#include "sim/app/run_folders.h"
#include "sim/pairs/pairs.h"

struct due_pair { /* numbers from 0 */
    uint64_t number;
    struct mono due;
};
struct post { /* the receiver's letter box */
    const char *name;
    char id[DRIVE_ID_MAX + 1]; /* "": the sender has no answer yet */
    uint64_t events;           /* of the pair's file, since the stream was opened */
    struct mono last;          /* when the newest came */
    bool open, closed;
    struct api_result end; /* of the stream, once closed */
    struct done wake;
};
struct pairs;
struct couple { /* a worker of the pool: the connections of two apps */
    struct pairs *p;
    struct app sender, receiver;
    struct post post;
    struct mono sent; /* the message that is under way */
};
struct pairs {
    const struct pairs_conf *conf;
    struct worker *w;
    struct couple *couples;
    unsigned n; /* of couples that are initialised */
    struct run_folders folders;
    struct sem *streams;              /* of each login: the server's limit */
    struct due_pair *queue;           /* a ring */
    unsigned head, held;              /* where it begins, how many are in it */
    struct sem ready, room;           /* pairs in it, and places */
    uint64_t sent, succeeded, failed; /* pairs */
    uint64_t messages, errors;        /* well, and not */
    uint64_t saturated;               /* pairs that found the queue full */
    struct hist *delivery, *message;  /* us from the sending: to the event, to the bytes read */
    struct mono began, last_begun, last;
};

/* exchange.c: one pair from its stream's opening to its last message; counts how it went. */
MAY_YIELD void pairs_exchange(struct couple *c, const struct due_pair *pair);
/* told.c: prints what came of all, and adds its figures to the command's result. */
void pairs_report(const struct pairs *p);
#endif
