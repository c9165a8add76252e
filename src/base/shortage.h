#ifndef BASE_SHORTAGE_H
#define BASE_SHORTAGE_H
/* What this machine denied this process: local ports, open files, memory, time to run. Counted for the whole process
 * where it is first known (err_sys counts what a system call said), so that a shortage of ours is never taken for the
 * server's failure. Layer 0, any thread. */
#include <stdint.h>

enum shortage { SHORTAGE_PORTS, SHORTAGE_FILES, SHORTAGE_MEMORY, SHORTAGE_COUNT, SHORTAGE_NONE = SHORTAGE_COUNT };
/* What an errno of socket(2), connect(2), bind(2), accept(2), open(2) and their like is short of. */
enum shortage shortage_of(int os_errno);
void shortage_note(enum shortage s); /* NONE is fine: nothing is counted */
uint64_t shortage_count(enum shortage s);

/* Time in which the process did not get to run although it had something to do (stopped, frozen, blocked, not
 * scheduled), as far as its loop can tell. */
void shortage_away(int64_t us);
int64_t shortage_away_us(void);
#endif
