#ifndef SIM_STOP_KILL_SWITCH_H
#define SIM_STOP_KILL_SWITCH_H
/* What makes `sim stop` reach every generator. While a command makes load, a file of its process stands in a folder of
 * this user's ($TMPDIR or /tmp, drivesim-UID), and SIGUSR1 stops it; where the target's Redis is given it also listens
 * on a channel there, and its connection bears its name, so that others of the run see it from their machines and see
 * it go. A generator that was killed leaves a file behind, which the next look removes. Layer 3; one loop's thread. */
#include "drive/cmd.h"
#include "drive/proc.h"

#include <signal.h>

#define KILL_SWITCH_CHANNEL "drivesim:stop" /* the message: a run folder's own name, or * for all */
#define KILL_SWITCH_SIGNAL  SIGUSR1
#define KILL_SWITCH_MAX     256 /* generators looked at at once */

struct kill_switch;
/* on_stop runs on the loop's stack, each time that it is asked for. Without a folder or Redis it does without and
 * warns. */
void kill_switch_arm(struct kill_switch **out, struct cmd_ctx *ctx, const char *command, void (*on_stop)(void *arg),
                     void *arg);
void kill_switch_disarm(struct kill_switch **k); /* just before the loop goes */
/* From now on it is found by its run folder too. k may be NULL. */
void kill_switch_name(struct kill_switch *k, const char *run_dir);

struct generator {
    struct proc proc; /* start 0: of another machine */
    char host[65], command[24];
    char run[256]; /* its folder, of another machine its name alone; "" : none, or not yet */
};
/* Those of this user on this machine; how many of at most max. */
size_t kill_switch_here(struct generator *out, size_t max);
/* The name of a generator's Redis connection, and back; false: it is none. */
char *kill_switch_client_name(const struct generator *g, char *dst, size_t n);
bool kill_switch_parse_name(struct sv name, struct generator *out);
const char *kill_switch_own_name(const char *run); /* "20261130T112828Z-1" of a folder; borrowed */
/* Whether `run`, a folder or its own name, is this one's; NULL: any. */
bool kill_switch_meant(const struct generator *g, const char *run);
#endif
