#ifndef DRIVE_STACK_PROCESS_H
#define DRIVE_STACK_PROCESS_H
/* The processes of a native part: its own one, and whatever that left behind. Layer 2. */
#include "drive/account.h"
#include "drive/stack/impl.h"

bool part_alive(const struct part *p);
bool part_listens(const struct part *p); /* its own process does, on its port */
/* The real path of what it runs, as /proc tells it; NULL: not installed. */
const char *part_program(const struct part *p, struct arena *mem);
void part_note_program(struct part *p); /* what its process runs now: by that the others are found */
/* *as: NULL when the part may run as us. */
enum err part_account(const struct part *p, struct account *a, const struct account **as,
                      struct errinfo *ei) WARN_UNUSED;
/* A tool of a part (initdb, npm), its output in the part's log. ERR_ENV when it fails. */
MAY_YIELD enum err part_tool(struct part *p, const char *const *argv, const char *cwd, const struct account *as,
                             int64_t limit_us, struct errinfo *ei) WARN_UNUSED;
/* Ends all its processes: by the signal, after the grace by SIGKILL. */
MAY_YIELD enum err part_end(struct part *p, int signo, int64_t grace_us, struct errinfo *ei) WARN_UNUSED;
/* Stops all its processes and returns when they stand still, or lets them go on. */
MAY_YIELD enum err part_halt(const struct part *p, bool halt, struct errinfo *ei) WARN_UNUSED;
/* Keeps all its processes from making any file longer than that; UINT64_MAX: as long as the system lets them. */
enum err part_limit_files(const struct part *p, uint64_t most, struct errinfo *ei) WARN_UNUSED;
#endif
