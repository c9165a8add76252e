#ifndef SERVER_OBJECTS_CONTENT_OUT_H
#define SERVER_OBJECTS_CONTENT_OUT_H
/* An object's content on its way out, opened piece by piece. Layer 3; the loop's thread. */
#include "base/str.h"
#include "server/server.h"

/* Reads [offset, offset + length) of an object whose content is size bytes long. The first piece is fetched and checked
 * before this returns: ERR_NOTFOUND when the object is missing, ERR_WRONG when it was altered or cut. */
struct content_reader;
MAY_YIELD enum err content_open(struct server *s, const char *key, uint64_t size, uint64_t offset, uint64_t length,
                                struct content_reader **out, struct errinfo *ei) WARN_UNUSED;
/* The next piece, valid until the next call; empty at the end. */
MAY_YIELD enum err content_next(struct content_reader *r, struct sv *piece, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD void content_close(struct content_reader **r);
#endif
