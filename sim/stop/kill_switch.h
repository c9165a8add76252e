#ifndef SIM_STOP_KILL_SWITCH_H
#define SIM_STOP_KILL_SWITCH_H
/* What makes `sim stop` reach every generator. While a command makes load, a file of its process stands in a folder of
 * this user's ($TMPDIR or /tmp, drivesim-UID), and SIGUSR1 stops it; where the target's Redis is given it also listens
 * on a channel there, and its connection bears its name, so that others of the run see it from their machines and see
 * it go. A generator that was killed leaves a file behind, which the next look removes. Layer 3; one loop's thread. */
#include "drive/cmd.h"
#include "drive/proc.h"

#include <signal.h>

#define KILL_SWITCH_CHANNEL "drivesim:stop" /* the message: struct kill_switch_aim, as text */
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
/* It loads this URL, not TMA_URL. k may be NULL. */
void kill_switch_target(struct kill_switch *k, const char *url);

struct generator {
    struct proc proc; /* start 0: of another machine */
    char host[65], command[24];
    char run[256];                    /* its folder, of another machine its name alone; "" : none, or not yet */
    char place[TARGET_PLACE_MAX + 1]; /* target_place of what it loads; "": not known */
    char folder[512];                 /* that it was started in; "" of another machine */
};
/* Who is to end. With run, a run's folder or its own name, those of that run; else with place those that load it; else
 * with folder those started there; else all. */
struct kill_switch_aim {
    const char *run, *place, *folder;
};
char *kill_switch_folder(char *dst, size_t n); /* the working folder, as a generator tells it; "": unknown */
/* Those of this user on this machine; how many of at most max. */
size_t kill_switch_here(struct generator *out, size_t max);
/* The name of a generator's Redis connection, and back; false: it is none. */
char *kill_switch_client_name(const struct generator *g, char *dst, size_t n);
bool kill_switch_parse_name(struct sv name, struct generator *out);
const char *kill_switch_own_name(const char *run); /* "20261130T112828Z-1" of a folder; borrowed */
bool kill_switch_meant(const struct generator *g, const struct kill_switch_aim *aim);
/* For the channel: a run's own name, "@" and a place, or "*"; "" when no other machine is meant. And back. */
char *kill_switch_message(const struct kill_switch_aim *aim, char *dst, size_t n);
struct kill_switch_aim kill_switch_aim_of(const char *message); /* borrows from it */
#endif
