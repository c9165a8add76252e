#ifndef BASE_SECRET_INT_H
#define BASE_SECRET_INT_H
/* What the files of secret share: the table and the search (secret.c), the reading of lines (secret_parts.c), the
 * streams (secret_stream.c). Layer 0. */
#include "base/secret.h"

#define SECRET_MAX      (16 * 1024) /* bytes of one: what is longer is known by its beginning */
#define SECRET_TEXT_MAX (512u << 20)

/* As secret_hide for a text of which more is to come: *done tells how much of it was settled. The rest may be the
 * beginning of a secret and is to be given again, in front of what follows. */
enum err secret_hide_begun(struct buf *out, struct sv text, bool more, size_t *done) WARN_UNUSED;
#endif
