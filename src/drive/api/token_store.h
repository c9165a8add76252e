#ifndef DRIVE_API_TOKEN_STORE_H
#define DRIVE_API_TOKEN_STORE_H
/* The sessions of our logins, and which logins there are not: known to all clients of a program, and kept between
 * programs, as servers limit sign-ins. Kept are those of @load.test logins alone, a private file (base/private_file.h)
 * for each server: in .sim/sessions where it is the stack of this folder, else in $XDG_STATE_HOME/drivesim or
 * ~/.local/state/drivesim, else nowhere. Nothing about that file is ever an error: whoever has no session signs in. An
 * entry can be used with the password alone that it was made with, of which the file holds a salted digest. Layer 2,
 * one loop's thread. */
#include "base/clock.h"
#include "base/str.h"

struct target;
struct token_store;

/* Borrowed from the store until its next call. */
struct kept_session {
    const char *token; /* NULL, when put: the server takes no such login with this password */
    struct wall since; /* when the server gave the token */
    unsigned caps;     /* what this program has learnt of its server: enum api_cap */
    bool locks_seen;   /* likewise: struct api */
};
struct token_store_view {
    const char *folder; /* NULL: nowhere */
    char why[200];      /* then, or when it is not read: a sentence */
    size_t usable, all; /* usable: with this password, now */
};

struct token_store *token_store_new(void);
void token_store_free(struct token_store **s); /* saves nothing */
/* From here on what is put is kept for target's server. Reads what was kept, unless afresh: then all sign in, and their
 * sessions take the place of those before. What is there but not ours alone is left unread, with one warning. */
void token_store_open(struct token_store *s, const struct target *target, bool afresh);
/* Adds the entries of such a file; those that do not hold together are left out. Returns how many are known then. */
size_t token_store_read(struct token_store *s, struct sv text);
/* Writes what has changed over what another program wrote meanwhile; of a login the newer session wins. */
void token_store_save(struct token_store *s);

/* The login's session when it was made with this password and is in the first half of its life (of 7 days where its
 * token does not tell): what comes after must not see it expire. False when there is none. */
bool token_store_find(struct token_store *s, const char *login, const char *password, struct kept_session *out);
/* The server took no such login a short while ago: within the window of limiters, which count such attempts as well. */
bool token_store_absent(struct token_store *s, const char *login, const char *password);
/* Notes that the server took it. True the first time for one that an earlier program made. */
bool token_store_take(struct token_store *s, const char *login);
void token_store_put(struct token_store *s, const char *login, const char *password, const struct kept_session *k);
/* The server gave a new token in place of one that may be known here. */
void token_store_renew(struct token_store *s, const char *old_token, const char *token, struct wall since);
bool token_store_keeps(struct token_store *s, struct sv token);  /* it is, or will be, in the file */
void token_store_drop(struct token_store *s, const char *token); /* signed out */
/* The server does not take it. It may be another server by now: what was absent may be there. */
void token_store_refused(struct token_store *s, const char *token);
void token_store_forget(struct token_store *s); /* all of them, and the file */
void token_store_look(struct token_store *s, const char *password, struct token_store_view *out);
#endif
