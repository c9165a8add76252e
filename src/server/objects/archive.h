#ifndef SERVER_OBJECTS_ARCHIVE_H
#define SERVER_OBJECTS_ARCHIVE_H
/* Folders and selections as one ZIP, streamed: the list of what goes in is one snapshot, contents are read one after
 * the other. Layer 3. */
#include "server/http/http.h"

/* Answers with the live items of these ids and all below them, or with 404 when one of them is missing. filename is
 * without ".zip". */
MAY_YIELD void reply_archive(struct request *r, const char *const *ids, size_t n, const char *filename);
#endif
