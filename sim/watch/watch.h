#ifndef SIM_WATCH_WATCH_H
#define SIM_WATCH_WATCH_H
/* The server watched while load runs: its machine (by /proc, here or over ssh), its processes, Postgres and Redis by
 * their own statistics. A sample a second, on the run's time axis; the newest, the averages of a lap, and the worst of
 * the whole. Nothing is installed on the other machine: ssh runs a loop of cat. One loop's thread. Layer 3. */
#include "drive/cmd.h"
#include "sim/watch/figures.h"

struct watch;
/* Whether what is one of those that watch_new takes, before anything is there: ERR_USAGE. */
enum err watch_judge(const char *what, struct errinfo *ei) WARN_UNUSED;
/* what: "local", "pid:N", "docker:NAME", "ssh:[USER@]HOST[:PORT]"; NULL: this machine when the server is on it, else
 * only services. Also watches the Postgres and Redis of the target, where given. ERR_USAGE for what is none of these,
 * ERR_ENV with a sentence when it cannot be watched (waited for, at most 15 s). */
MAY_YIELD enum err watch_new(struct watch **out, struct cmd_ctx *ctx, const char *what, struct errinfo *ei) WARN_UNUSED;
/* From now on each sample is a line of this CSV file. */
enum err watch_log(struct watch *w, const char *file, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD void watch_free(struct watch **w);
const struct watch_values *watch_latest(const struct watch *w);
/* Who asks for laps; each asks for its own, whatever the others do. */
enum watch_lap { WATCH_LAP_REPORT, WATCH_LAP_INTERVAL, WATCH_LAP_WINDOW, WATCH_LAPS };
/* The samples since the same one last asked, put together (watch_fold). */
void watch_lap(struct watch *w, enum watch_lap which, struct watch_values *out);
void watch_whole(const struct watch *w, struct watch_values *out); /* the same since the beginning */
/* As the JSON's "watch": of the stretch that the command's other figures are of. */
void watch_result(const struct watch_values *v, struct result *r);
/* The option of every command that watches; it fills a const char *. */
#define WATCH_OPT(type, field)                                                                                         \
    {                                                                                                                  \
        "watch", 0, "WHAT", OPT_STR, offsetof(type, field), 0, 0,                                                      \
            "the server's machine: local, pid:N, docker:NAME or\nssh:[USER@]HOST[:PORT], by --ssh-key and "            \
            "--known-hosts\n(default: local for a server on this "                                                     \
            "machine; "                                                                                                \
            "Postgres and\nRedis are asked where their URLs are set)"                                                  \
    }
/* Why samples stopped coming ("ssh to h ended: …"); "" while they come. */
const char *watch_problem(const struct watch *w);
#endif
