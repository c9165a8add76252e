#ifndef DRIVE_NAMES_H
#define DRIVE_NAMES_H
/* Ids for servers that have none. A WebDAV or SFTP server knows an entry by its path alone, and a path ends with the
 * first rename; apps, views, ledger and checks want one name for one entry. So a tree's entries get ids when they are
 * first seen, made of the path they had then (a fresh process makes the same ones), and keep them while this process
 * moves them about: what a desktop client keeps in its local database. An id that is dead is never given again.
 * Strings returned live as long as the registry. Layer 2, one thread. */
#include "base/buf.h"
#include "base/str.h"

struct names;
struct names *names_new(void);
void names_free(struct names **n);

/* The id of what is called `name` in folder `parent` (NULL: the tree's root), new or not. own: an id that the server
 * itself gives, or NULL; an entry known by it that turns up elsewhere has been moved there. */
const char *names_id(struct names *n, const char *parent, const char *name, const char *own);
bool names_known(const struct names *n, const char *id); /* and alive */
/* As it was last seen; an entry that has others below it is a folder without being told. */
void names_note_folder(struct names *n, const char *id, bool folder);
bool names_is_folder(const struct names *n, const char *id);
/* "Projects/2024/a b.pdf", each name as it is, no slash at the ends; "" for NULL, the root. ERR_NOTFOUND: unknown, or
 * dead, or below what is dead. */
enum err names_path(const struct names *n, const char *id, struct buf *out) WARN_UNUSED;
const char *names_name(const struct names *n, const char *id);   /* NULL: unknown */
const char *names_parent(const struct names *n, const char *id); /* NULL: the root, or unknown */

/* A move is announced before it is asked for, so that a listing which shows it before its own answer comes knows who
 * that is; then it is told how it ended. Unknown: not told, and the next listing that shows either place decides. */
void names_expect(struct names *n, const char *id, const char *parent, const char *name);
void names_moved(struct names *n, const char *id, const char *parent, const char *name);
void names_not_moved(struct names *n, const char *id, const char *parent, const char *name);
void names_drop(struct names *n, const char *id); /* deleted: it and all below */
/* As an earlier process left it (its ledger tells): id stands at this place. */
void names_bind(struct names *n, const char *id, const char *parent, const char *name);
#endif
