#ifndef SERVER_META_IMPL_H
#define SERVER_META_IMPL_H
/* What meta.c and meta/keep.c share. Layer 3. */
#include "net/coro.h"
#include "server/meta/meta.h"

struct meta_slot;
struct touch;
struct unsure;
struct meta {
    struct meta_slot *slots[256]; /* accounts that are being written to, hashed */
    struct touch *touches;        /* reads to be noted, newest first */
    size_t n_touches;
    struct unsure *unsure; /* accounts whose last write nobody saw the end of */
    struct done wake;      /* the keeper has something to do */
    struct group keeper;
    bool stopping;
};

/* The account's streams will be told to resync once Postgres answers. */
void meta_unsure(struct server *s, const char *account_id);

void meta_keeper_start(struct server *s);
/* Notes what is still to be noted, as far as Postgres answers. */
MAY_YIELD void meta_keeper_stop(struct server *s);
#endif
