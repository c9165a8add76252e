#ifndef BASE_DOTENV_H
#define BASE_DOTENV_H
/* Files of NAME=value lines, as `.env` files are written: `export ` before the name is allowed, so are single or double
 * quotes around the value, and a comment behind it; a byte order mark, lines without '=' and lines that start with '#'
 * are passed over. No expansion. Layer 0. */
#include "base/str.h"
/* slot tells where the value of a name goes: what stood there is freed, the new one is the caller's to mem_free (NULL
 * when it is empty); NULL for a line of another program, which is passed over whatever it holds. A file that does not
 * exist is empty; one above 256 KiB, an unreadable one, an open quote or text behind a closed one in a value of ours is
 * ERR_USAGE with file and line. */
enum err dotenv_read(const char *file, char **(*slot)(void *arg, struct sv name), void *arg,
                     struct errinfo *ei) WARN_UNUSED;
#endif
