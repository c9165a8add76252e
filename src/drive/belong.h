#ifndef DRIVE_BELONG_H
#define DRIVE_BELONG_H
/* Proof that the database, Redis and bucket that were given are those of the server that TMA_URL names, before anything
 * is judged by them or deleted from them. Something is made through the server under a name that nobody can have had
 * before, and looked for where it has to show: rows, ids, epochs and keys that are there already prove nothing, since
 * stacks made from one fixture have them all. First what leaves no trace: a heartbeat's version as a row of the
 * database, a login that nobody has as a limiter's key of Redis, the bucket that the server says it keeps. What does
 * not show so: a folder as a row, its making as a message of Redis, a file in it as an object, and then the folder is
 * removed for good. Layer 2. */
#include "drive/cmd.h"

struct api;

struct belong {
    char parts[80]; /* "DATABASE_URL, REDIS_URL": what could not be proven; "": all that was given is */
    char why[160];  /* the first one's reason */
};
/* api: signed in to an account of ours; NULL: one is looked for. deletes: the bucket takes more than the server's word.
 * What was proven is not proven again (target->proven).
 * ERR_ENV with a sentence that names the part: it was given and is not to be had, or it is another server's, which
 * takes a contradiction: what the server shows now is not there. That the server does not do as it said (a lost upload,
 * an event that never came) is none: another marker is tried, and then *out says that it is unproven. Parts that a
 * server of the target's kind does not show are not asked, except that Redis, which then serves `sim stop` alone, has
 * to answer. */
MAY_YIELD enum err belong_prove(const struct cmd_ctx *ctx, struct api *api, bool deletes, struct belong *out,
                                struct errinfo *ei) WARN_UNUSED;
/* The same, and prints what is unproven. */
MAY_YIELD enum err belong_prove_saying(const struct cmd_ctx *ctx, struct api *api, struct errinfo *ei) WARN_UNUSED;
#endif
