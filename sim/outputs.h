#ifndef SIM_OUTPUTS_H
#define SIM_OUTPUTS_H
/* The files in which a command's result is left: those that its options name, in any of the forms of
 * drive/result/rendering.h, and what stays in the folder of a run, so that `sim report` can make every form again.
 * Layer 3. */
#include "drive/result/rendering.h"

struct output {
    const char *file; /* NULL: not asked for; "-": stdout */
    int fd;           /* -1: none open */
};
struct outputs {
    struct output of[RENDERING_COUNT];
    bool no_stdout; /* it was closed when the program began */
};
void outputs_init(struct outputs *o, bool no_stdout);
/* Of a command line that could not be read: it may still have named its files. Those found go into files. */
void outputs_find(const char *files[RENDERING_COUNT], int argc, char **argv);
/* Opens all that are named, before the work: a run of an hour must not end in "no such folder". An empty file says that
 * no result came. ERR_USAGE for the first that cannot be opened, or of which two are one; the others are open then. */
enum err outputs_open(struct outputs *o, const char *const files[RENDERING_COUNT], struct errinfo *ei) WARN_UNUSED;
bool outputs_take_stdout(const struct outputs *o);
/* Writes and closes all of them; each failure is complained of, none keeps the others from being written. The first
 * comes back. r->reader_gone is set when that of stdout has gone. */
enum err outputs_write(struct outputs *o, struct result *r, void (*complain)(const struct errinfo *),
                       struct errinfo *ei) WARN_UNUSED;
#endif
