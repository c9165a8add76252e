#ifndef SEED_SEED_H
#define SEED_SEED_H
/* The seeder at work: accounts with their logins, the planned trees beside what the server was found to hold, and the
 * crew that fills the gap. Internal to seed/. One loop's thread. Layer 3.
 *
 * Nothing here repeats a write whose fate is unknown: such an entry is left, and after the round the server is asked
 * what it holds. A seeder that was killed is in the same position, so resuming is the first such question. */
#include "drive/cmd.h"
#include "net/coro.h"
#include "seed/planned.h"
#include "seed/pulse.h"

struct seed_conf {
    int64_t sub_users;
    double scale;
    int64_t accounts;
    const char *preset;
    double bytes_scale;
    bool explain;
    int64_t jobs;     /* 0: measured */
    int64_t name_max; /* bytes; 0: what the server is known to take */
};

struct seed_login {
    char email[64];
    struct api *api;
    unsigned account; /* index */
    unsigned in_flight;
    bool signed_in;
    struct mono blocked_until; /* a budget is spent until then */
    struct mono window_start;  /* of the requests counted below */
    unsigned window_requests;
};
struct seed_account {
    struct seed_login *logins; /* [0] is the owner */
    size_t n_logins;
};

struct api_result;

struct seeder {
    struct cmd_ctx *ctx;
    const struct seed_conf *conf;
    struct stats *stats;
    struct seed_account *accounts;
    struct planned *trees; /* one an account */
    struct found *founds;  /* one an account */
    size_t n_accounts;
    bool own_sub_users; /* false: the server has none, each login is an account of its own */
    bool no_bulk;       /* the server takes files one by one */
    bool times_kept;    /* the server returns the modification times it was told */
    bool stop;          /* interrupted, or fatal is set: make no more work */
    enum err fatal;
    struct errinfo why;
    struct mono last_ok;
    struct mono budget_back; /* somebody waits for a budget that comes back then */
    struct pulse pulse;
    uint64_t unsettled; /* writes of this round whose fate is unknown */
    uint64_t failed;    /* entries of this round left for the next */
    uint64_t twins_undone, contents_checked;
    uint64_t folders_made, files_made;
    struct mono signin_next;                          /* not before then */
    unsigned signins_ok, signins_kept, signins_total; /* kept: logins that needed none */
    struct mono signins_since;
};

/* Ends the work with this error; the first one stays. */
void seed_fail(struct seeder *s, enum err err, const char *fmt, ...) PRINTF_LIKE(3, 4);
void seed_say(struct seeder *s, const char *fmt, ...) PRINTF_LIKE(2, 3); /* a line for people */

/* accounts.c */
MAY_YIELD void seed_accounts(struct seeder *s);
void seed_accounts_free(struct seeder *s);

/* budget.c: which login asks, and what its answer means */
/* The least busy login of the account whose budget lasts; waits when none is left. NULL when the work has stopped. */
MAY_YIELD struct seed_login *seed_login_take(struct seeder *s, unsigned account);
/* How long so many more requests have to wait for budgets, without those that may go at once. */
int64_t seed_budget_wait_us(const struct seeder *s, unsigned account, uint64_t requests);
void seed_count(struct seeder *s, enum drive_op op, const struct api_result *r); /* a call made without them */
/* Counts the call. True when it is to be made again (throttled, or certainly not done): after a wait, if one is due. */
MAY_YIELD bool seed_login_give(struct seeder *s, struct seed_login *l, enum drive_op op, const struct api_result *r);

/* scan.c: what the server holds; fills founds anew */
MAY_YIELD void seed_scan(struct seeder *s, const char *what);
bool seed_complete(const struct seeder *s); /* every planned entry was found */

/* load_api.c: makes what founds lack */
MAY_YIELD void seed_load_folders(struct seeder *s);
MAY_YIELD void seed_load_files(struct seeder *s);
uint64_t seed_requests_left(const struct seeder *s, unsigned account); /* to make what is missing, and to look at it */

/* twins.c: second copies of our own files, "report (1).pdf", left by requests that outlived their seeder */
MAY_YIELD bool seed_remove(struct seeder *s, unsigned account, const char *id); /* for good */
MAY_YIELD void seed_remove_twins(struct seeder *s); /* those found whose bytes prove that they are ours */

/* verify.c */
/* Reads the file's first 256 KiB. True when its bytes are those planned for file, of whatever revision unless first is
 * set. *r tells why it could not be read. */
MAY_YIELD bool seed_reads_as(struct seeder *s, unsigned account, const char *id, uint32_t file, bool first,
                             struct api_result *r);
MAY_YIELD void seed_verify_content(struct seeder *s); /* of some files, by reading them */
void seed_summarise(struct seeder *s);                /* fills result->tree, says what differs */

/* explain.c: what is planned against its targets, and into result->tree; asks no server */
void seed_explain(struct seeder *s);
#endif
