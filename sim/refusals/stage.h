#ifndef SIM_REFUSALS_STAGE_H
#define SIM_REFUSALS_STAGE_H
/* The ground that refusals stand on: throwaway logins, files in every state, a quota of its own. Built before the first
 * row, cleared after the last. Layer 3. */
#include "drive/api/budget.h"
#include "sim/refusals/refusal.h"

struct refusal_stage_conf {
    int64_t max_upload_bytes;
    int64_t spend_max_us; /* how long spending a budget may take */
};
struct stage_stream {
    struct api_stream *stream; /* NULL: not open */
    void *attempt;
};
struct stage {
    struct cmd_ctx *ctx;
    struct refusal_stage_conf conf;
    struct api *admin, *logins[WHO_COUNT];   /* NULL: not to be had */
    char why[WHO_COUNT][160];                /* then why */
    struct httpc_peer *strangers[WHO_COUNT]; /* peers of those without a session; NULL for the others */
    char *emails[WHO_COUNT], *account_id;
    char things[THING_COUNT][DRIVE_ID_MAX + 1]; /* "": not to be had */
    char source[20];                            /* the strangers' address, "": the system's choice */
    char held_lock[DRIVE_ID_MAX + 1];
    bool own_account;
    struct mono lapses; /* when the lock has lapsed for sure */
    struct stage_stream streams[DRIVE_STREAMS_PER_LOGIN * 2];
    size_t n_streams;
    bool *stop;           /* set by an interruption */
    struct budget budget; /* of the clients that prepare, not of those that are to be refused */
};

/* refusals/stage.c. ERR_ENV with a sentence when even the ground is missing: no administrator, no bucket. */
MAY_YIELD enum err stage_build(struct stage *s, struct errinfo *ei) WARN_UNUSED;
/* Removes what it made; says what is left in left ("" for nothing). */
MAY_YIELD void stage_clear(struct stage *s, char *left, size_t n);
MAY_YIELD void stage_free(struct stage *s);
/* The peer that speaks for who; NULL with why. */
struct httpc_peer *stage_peer(struct stage *s, enum refusal_who who, const char **why);
/* What the account holds: a refusal must move none of it. */
struct holdings {
    bool known;
    int64_t used, files, folders;
    size_t listed;
};
MAY_YIELD void stage_holdings(struct stage *s, struct holdings *out);
MAY_YIELD bool stage_limit(struct stage *s, int64_t bytes, char *why, size_t n); /* -1: none */
/* refusals/raw.c */
MAY_YIELD void refusal_ask_then_next(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_ask_expecting(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD void refusal_ask_blindly(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);

/* refusals/spend.c */
MAY_YIELD bool refusal_spend_requests(struct stage *s, const struct refusal *f, char *why, size_t n);
MAY_YIELD bool refusal_spend_logins(struct stage *s, const struct refusal *f, char *why, size_t n);
MAY_YIELD void refusal_ask_login(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
MAY_YIELD bool refusal_take_streams(struct stage *s, const struct refusal *f, char *why, size_t n);
MAY_YIELD void refusal_give_streams(struct stage *s);
MAY_YIELD void refusal_ask_stream(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out);
#endif
