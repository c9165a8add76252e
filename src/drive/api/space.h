#ifndef DRIVE_API_SPACE_H
#define DRIVE_API_SPACE_H
/* What all clients of one program know together: of servers without ids, which id is where; of logins, their sessions,
 * which may outlive the program (token_store.h). Layer 2, one loop's thread. */
#include "drive/api/token_store.h"

struct api_space;
struct api_space *api_space_new(void);
void api_space_free(struct api_space **s); /* after all clients; saves nothing */
/* Before the first sign-in: the sessions of target's logins are kept from program to program. afresh: those that were
 * kept before are not used. */
void api_space_keep(struct api_space *s, const struct target *target, bool afresh);
void api_space_save(struct api_space *s);   /* what was learnt since, for the next program */
void api_space_forget(struct api_space *s); /* all sessions, here and for the next program */
/* How many logins went on with a session of an earlier program, and how many sessions were begun. */
void api_space_tally(const struct api_space *s, unsigned *kept, unsigned *signed_in);
/* An api_enter with these was answered with 401 within the last 15 minutes, perhaps by an earlier program: for those
 * who count logins until one is not there, as limiters count such attempts too. */
bool api_space_lacks(const struct api_space *s, const char *email, const char *password);
/* The session is there for the next program: whoever is done with it must not sign it out. */
bool api_space_keeps(const struct api_space *s, struct sv token);
void api_space_look(struct api_space *s, const char *password, struct token_store_view *out);
#endif
