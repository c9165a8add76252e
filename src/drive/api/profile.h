#ifndef DRIVE_API_PROFILE_H
#define DRIVE_API_PROFILE_H
/* What a login's own profile tells where the wire is TMA Cloud's: asked by hand, since no other server has it.
 * Layer 2. */
#include "net/httpc.h"

/* The id of the account that the peer is signed in as; NULL: not told. The caller frees. */
MAY_YIELD char *profile_read_id(struct httpc_peer *peer);
#endif
