#ifndef DRIVE_STACK_FIXTURE_H
#define DRIVE_STACK_FIXTURE_H
/* Snapshots of a stack: a folder each with the database's rows (COPY's text), the store's files (pack.h) and a
 * manifest, in .sim/fixtures of the stack's folder or anywhere else. A fixture is data, whoever wrote it: nothing in it
 * is ever run, and the tables that its rows come into are those that the stack has. Redis is left out: it holds budgets
 * and what is on its way, and a loaded stack begins without either. Layer 2; one loop's thread. */
#include "drive/stack/seeded.h"
#include "drive/stack/stack.h"

#define FIXTURE_NAME_MAX 64
struct fixture_info {
    char name[FIXTURE_NAME_MAX + 1], version[80], made[32]; /* made: ISO 8601 */
    uint64_t folders, files, bytes;                         /* of the database's rows */
    uint64_t objects, size;                                 /* size: of the fixture on disk */
    bool is_seeded;
    struct stack_seeded seeded;
};
/* ERR_USAGE unless it is letters, digits, '.', '_' and '-', and begins with a letter or a digit. */
enum err fixture_judge_name(const char *name, struct errinfo *ei) WARN_UNUSED;
const char *fixture_folder(const struct stack *s, const char *dir); /* dir NULL: the stack's own; the stack owns it */

/* The stack was opened to be changed. Its server is stopped meanwhile and comes back, whatever happens. An older
 * fixture of that name is replaced in the end when force is set, else it is ERR_USAGE. Nothing half is left behind. */
MAY_YIELD enum err fixture_save(struct stack *s, const char *dir, const char *name, bool force,
                                struct fixture_info *out, struct errinfo *ei) WARN_UNUSED;
/* Puts the stack into the state of the fixture: until its last step the stack is as before. ERR_ENV when the fixture is
 * damaged, another's or does not fit, ERR_SAFETY when the stack holds users that drivesim did not make. */
MAY_YIELD enum err fixture_load(struct stack *s, const char *dir, const char *name, struct fixture_info *out,
                                struct errinfo *ei) WARN_UNUSED;
/* Each in the order of their names; why: what is wrong with it (info holds the name alone), else NULL. */
enum err fixture_each(const struct stack *s, const char *dir,
                      void (*fn)(void *arg, const struct fixture_info *info, const char *why), void *arg,
                      struct errinfo *ei) WARN_UNUSED;
/* Whether the stack's own folder holds any; if not, the folder is gone. */
bool fixture_tidy(const struct stack *s);
/* ERR_ENV when a load was cut short in its last step: rows and objects may be of two states. */
enum err fixture_judge_whole(const struct stack *s, struct errinfo *ei) WARN_UNUSED;
enum err fixture_remove(const struct stack *s, const char *dir, const char *name, struct errinfo *ei) WARN_UNUSED;
#endif
