#ifndef DRIVE_STACK_FIXTURE_ROWS_H
#define DRIVE_STACK_FIXTURE_ROWS_H
/* The rows of a database in a file, and from there into the same tables of another one. Internal to stack/. Layer 2;
 * one loop's thread. */
#include "drive/stack/manifest.h"
#include "store/pg.h"

struct stack;

/* Writes all rows into file, which must not be there, and what they are into m. ERR_ENV when the database holds what
 * rows cannot say: large objects. */
MAY_YIELD enum err fixture_rows_save(struct pg *c, struct stack *s, const char *file, struct manifest *m,
                                     struct errinfo *ei) WARN_UNUSED;

/* How a fixture's rows get into a database: statements whose every name is the catalog's. The stack's arena owns it. */
struct fixture_plan {
    const char **names;  /* of the tables, quoted, in the manifest's order; NULL-terminated */
    const char **copies; /* COPY … FROM STDIN, one a table */
    const char **grants; /* what a role of this name needs for them; NULL-terminated */
    const char **sequences;
};
/* ERR_ENV with what differs, unless the database has the tables, columns and sequences of the manifest, no more. */
MAY_YIELD enum err fixture_rows_plan(struct pg *c, struct stack *s, const struct manifest *m, const char *role,
                                     struct fixture_plan *out, struct errinfo *ei) WARN_UNUSED;
/* ERR_ENV when a table does not take its rows. */
MAY_YIELD enum err fixture_rows_load(struct pg *c, const struct stack *s, const char *file, const struct manifest *m,
                                     const struct fixture_plan *plan, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err fixture_rows_count_on(struct pg *c, const struct manifest *m, const struct fixture_plan *plan,
                                         struct errinfo *ei) WARN_UNUSED; /* the sequences */
#endif
