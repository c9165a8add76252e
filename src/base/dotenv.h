#ifndef BASE_DOTENV_H
#define BASE_DOTENV_H
/* Files of NAME=value lines, as `.env` files are written: `export ` before the name is allowed, so are single or double
 * quotes around the value; lines without '=' and lines that start with '#' are passed over. No expansion. Layer 0. */
#include "base/str.h"
/* Calls set for each line. A file that does not exist is empty; one above 256 KiB, an unreadable one or an open quote
 * is ERR_USAGE with file and line. */
enum err dotenv_read(const char *file, void (*set)(void *arg, struct sv name, struct sv value), void *arg,
                     struct errinfo *ei) WARN_UNUSED;
#endif
