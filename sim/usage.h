#ifndef SIM_USAGE_H
#define SIM_USAGE_H
/* What the program says about itself: the list of commands, a command's help, the sentence about a mistake. Commands
 * come as the table of main.c, ended by NULL. Layer 3. */
#include "drive/cmd.h"

extern const struct opt usage_common_opts[]; /* those of every command */
void usage_print_overview(const struct command *const *commands, FILE *out);
void usage_print_help(const struct command *cmd, FILE *out);
const struct command *usage_find(const struct command *const *commands, const char *name); /* NULL: none */
/* "there is no command 'rnu'; did you mean 'run'"; returns the exit status. */
int usage_unknown(const struct command *const *commands, const char *name);
/* "sim COMMAND: sentence" on stderr, escaped; command may be NULL. */
void usage_complain(const char *command, const char *sentence);
/* ERR_USAGE for a word of --trace that names no module with debug lines. */
enum err usage_judge_trace(const char *spec, struct errinfo *ei) WARN_UNUSED;
#endif
