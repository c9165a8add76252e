#ifndef SIM_OUTPUTS_H
#define SIM_OUTPUTS_H
/* The files in which a command's result is left: those that its options name, in any of the forms of
 * drive/result/rendering.h, and what stays in the folder of a run, so that `sim report` can make every form again.
 * Layer 3. */
#include "drive/result/rendering.h"

struct output {
    const char *file; /* NULL: not asked for; "-": stdout */
    int fd;           /* of what is no file: a pipe, a device; -1: none open */
    bool older;       /* a file was there before */
};
struct outputs {
    struct output of[RENDERING_COUNT];
    bool no_stdout; /* it was closed when the program began */
};
void outputs_init(struct outputs *o, bool no_stdout);
/* Of a command line that could not be read: it may still have named its files. Those found go into files. */
void outputs_find(const char *files[RENDERING_COUNT], int argc, char **argv);
/* Looks at all that are named, before the work: a run of an hour must not end in "no such folder". ERR_USAGE for the
 * first that cannot be written, or of which two are one; the others will be. */
enum err outputs_open(struct outputs *o, const char *const files[RENDERING_COUNT], struct errinfo *ei) WARN_UNUSED;
bool outputs_take_stdout(const struct outputs *o);
/* Writes all of them, each aside and then in its place, so that an older file stays until the new one is whole; when
 * the command was refused before it began, an older file stays for good. Each failure is complained of, none keeps the
 * others from being written. The first comes back. r->reader_gone is set when that of stdout has gone. */
enum err outputs_write(struct outputs *o, struct result *r, bool refused, void (*complain)(const struct errinfo *),
                       struct errinfo *ei) WARN_UNUSED;
#endif
