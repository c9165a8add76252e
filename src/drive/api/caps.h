#ifndef DRIVE_API_CAPS_H
#define DRIVE_API_CAPS_H
/* What a server has and what takes the place of the rest (drive-api.md 9): asked once before the work begins, told at
 * its head, kept in its result. That something is absent is never a failure. Layer 2. */
#include "drive/api/api.h"
#include "drive/cmd.h"

/* Asks a signed-in login's server what can be asked without making anything. Returns the capabilities that are left; a
 * server that does not answer changes nothing. */
MAY_YIELD unsigned caps_ask(struct api *a);
/* What is done without it: "saves go by version alone"; NULL: nothing that people need to know. all: what it has. */
const char *caps_instead(enum api_cap cap, unsigned all);
/* "no edit locks: saves by version alone; no change feed: …" into dst, as much as fits; "" when nothing lacks. */
char *caps_fallbacks(unsigned all, char *dst, size_t n);
/* One line a lack, unless quiet; and into the command's result, as its note and as what it has. */
void caps_tell(struct cmd_ctx *ctx, unsigned all);
#endif
