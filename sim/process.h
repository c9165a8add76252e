#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H
/* What the process is made before it becomes a command: its secrets out of sight, its standard descriptors and streams
 * as the program relies on them. Layer 3. */
#include <stdbool.h>

/* Called first of all, once. Returns the arguments to work with, ended by NULL and never freed; the ones given are
 * overwritten where they hold secrets. *no_stdout: it was closed. No core is left, and SIGPIPE is ignored. */
char **process_prepare(int argc, char **argv, bool *no_stdout);
#endif
