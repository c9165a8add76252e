#ifndef SIM_ARGUMENTS_H
#define SIM_ARGUMENTS_H
/* A command line as a result may tell it: what a secret can stand in is told without it. Layer 3, pure. */
#include <stddef.h>

/* argv[1] to argv[argc-1] into dst, words with blanks in quotes, cut with "…" where it does not fit. A password in a
 * URL and the value of a header line become "***"; control bytes are shown as \xNN. Returns dst. */
char *arguments_tell(char *dst, size_t n, int argc, char *const *argv);
#endif
