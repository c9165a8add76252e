#ifndef DRIVE_PATH_H
#define DRIVE_PATH_H
/* Names: what the API allows (drive-api.md 3) and how a taken name is renamed. One policy for client, server and
 * checks, and one for every protocol. Pure. Layer 2.
 *
 * The policy: valid UTF-8; not empty, nor of white space and invisible characters alone (nor these and a dot or two);
 * no control characters (U+0000-001F, U+007F-009F); none of / \ : * ? " < > |; not "." or ".."; neither U+FFFE nor
 * U+FFFF (XML cannot carry them); no leading or trailing space, no trailing dot and no Windows device name, with or
 * without an extension (some clients can't hold those). */
#include "base/str.h"

/* NULL when allowed, else a static sentence saying which rule the name breaks. */
const char *path_name_problem_file(struct sv name);   /* up to 255 bytes */
const char *path_name_problem_folder(struct sv name); /* up to 100 characters; also for renames */
/* "report.pdf", 1 -> "report (1).pdf"; the stem is cut between code points so that the result fits max_bytes, which is
 * at most n - 1 and at least 16. dst is NUL-terminated. */
void path_numbered(char *dst, size_t n, const char *name, unsigned number, size_t max_bytes);
struct sv path_extension(struct sv name); /* "pdf", "" when there is none or a leading dot only */
#endif
