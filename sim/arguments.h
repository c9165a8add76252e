#ifndef SIM_ARGUMENTS_H
#define SIM_ARGUMENTS_H
/* A command line, and the secrets in it: each is registered with secret.h, and left out by its place wherever the line
 * is told. Layer 3. */
#include <stddef.h>

/* Registers the secrets of argv[0] to argv[argc-1] and returns a copy of it that ends with NULL and is never freed. The
 * words that hold some are overwritten at once, so that a list of processes shows "***". Called first of all. */
char **arguments_guard(int argc, char **argv);
/* argv[1] to argv[argc-1] into dst, words with blanks in quotes, cut with "…" where it does not fit. The value of a
 * header, the user part of a URL and the values of its query become "***"; control bytes are shown as \xNN. Returns
 * dst. */
char *arguments_tell(char *dst, size_t n, int argc, char *const *argv);
#endif
