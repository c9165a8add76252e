#ifndef DRIVE_STACK_FIXTURE_DB_H
#define DRIVE_STACK_FIXTURE_DB_H
/* The database's part of a fixture: asked, saved, made beside the one in use, put in its place. Internal to
 * stack/. Layer 2; one loop's thread. */
#include "drive/stack/manifest.h"

struct stack;

/* Fills what the manifest says of the database in use: server's version, schema, counts. *others: how many users it
 * holds that drivesim did not make. */
MAY_YIELD enum err fixture_db_look(struct stack *s, struct manifest *m, int64_t *others,
                                   struct errinfo *ei) WARN_UNUSED;
/* ERR_ENV when the reference server keeps its files elsewhere than in the stack's store. */
MAY_YIELD enum err fixture_db_judge_bucket(struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* Waits a moment for connections to end; ERR_ENV when another program stays connected. */
MAY_YIELD enum err fixture_db_await_alone(struct stack *s, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err fixture_db_save(struct stack *s, const char *file, struct manifest *m,
                                   struct errinfo *ei) WARN_UNUSED;
/* ERR_ENV when the database in use has other tables than the fixture's rows. */
MAY_YIELD enum err fixture_db_judge_tables(struct stack *s, const struct manifest *m, struct errinfo *ei) WARN_UNUSED;
/* Beside the one in use, as this stack needs it: with its store's address, and as another history than the one before,
 * so that no client goes on with a place in that. */
MAY_YIELD enum err fixture_db_restore(struct stack *s, const char *file, const struct manifest *m,
                                      struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err fixture_db_swap(struct stack *s, struct errinfo *ei) WARN_UNUSED;  /* both or neither */
MAY_YIELD enum err fixture_db_clear(struct stack *s, struct errinfo *ei) WARN_UNUSED; /* drops all but the one in use */
#endif
