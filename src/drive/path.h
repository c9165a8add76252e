#ifndef DRIVE_PATH_H
#define DRIVE_PATH_H
/* Names: what the API allows (drive-api.md 3) and how a taken name is renamed. One policy for client, server and checks. Layer 2. */
#include "base/str.h"
/* NULL when allowed, else a static sentence saying which rule it breaks. Rules: valid UTF-8, not empty or only white space, no control characters, none of
 * / \ : * ? " < > |, not "." or "..", no U+FFFE/U+FFFF, no leading or trailing space and no trailing dot (some clients can't hold those). */
const char *path_name_problem_file(struct sv name);    /* up to 255 bytes */
const char *path_name_problem_folder(struct sv name);  /* up to 100 characters; also for renames */
/* "report.pdf", 1 -> "report (1).pdf"; the stem is cut between code points so that the result fits max_bytes. dst >= 256. */
void path_numbered(char *dst, size_t n, const char *name, unsigned number, size_t max_bytes);
struct sv path_extension(struct sv name);               /* "pdf", "" when none or a leading dot only */
#endif
