#ifndef BASE_OWN_TREE_H
#define BASE_OWN_TREE_H
/* Folders that drivesim makes and may therefore remove, with all that is in them: each bears a mark, a file. This is
 * the one place of the program that removes a tree, and it removes none without its mark, follows no link, neither at
 * the top nor within, and leaves what is mounted in it alone. Layer 0, thread-safe. */
#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

#define OWN_TREE_MARK ".drivesim" /* the mark's name within its folder */

/* Makes the folder with its mark. One that is there already is fine when it bears the mark, or is empty; else
 * ERR_SAFETY with a sentence, likewise for a link. ERR_IO when it cannot be made. */
enum err own_tree_make(const char *path, mode_t mode, struct errinfo *ei) WARN_UNUSED;
/* mkdtemp with a mark that says whose it is (a path; NULL: nobody's); template as there. */
enum err own_tree_make_temporary(char *template, const char *owner, struct errinfo *ei) WARN_UNUSED;
/* Whether path is a folder with a mark that names this owner. */
bool own_tree_belongs(const char *path, const char *owner);
/* Marks a folder that the caller has just made, by other means. */
enum err own_tree_mark(const char *path, struct errinfo *ei) WARN_UNUSED;
/* ERR_NOTFOUND when nothing is there, ERR_SAFETY with a sentence when it is not a folder with the mark, ERR_IO. */
enum err own_tree_check(const char *path, struct errinfo *ei) WARN_UNUSED;
/* Removes it; fine when it is not there, or empty (then it stays, unless it has the mark). ERR_SAFETY as above, with
 * nothing removed; also when something is mounted within, which is left. ERR_IO. Interrupted, it can be called again.
 */
enum err own_tree_remove(const char *path, struct errinfo *ei) WARN_UNUSED;
/* Removes what has this name within a folder that bears the mark: a folder without one, a file, a link. */
enum err own_tree_remove_part(const char *path, const char *name, struct errinfo *ei) WARN_UNUSED;
#endif
