#ifndef SEED_ENTRY_H
#define SEED_ENTRY_H
/* How the seeder comes in: sign-ins and sign-ups within the server's limiter, whose measure is told once it is known.
 * Internal to seed/. Layer 3. */
#include "drive/api/api.h"
#include "seed/seed.h"

/* Asks until the limiter lets it through. name NULL: signs in, else signs up with that name. r as the last answer. */
MAY_YIELD void entry_ask(struct seeder *s, struct seed_login *l, const char *name, struct api_result *r);
/* Signs up; when the account came to be meanwhile, by another seeder or by a try whose answer was lost, signs in. */
MAY_YIELD void entry_new(struct seeder *s, struct seed_login *l, const char *name, struct api_result *r);
/* Ends the work: that login cannot come in. */
void entry_failed(struct seeder *s, const struct seed_login *l, const struct api_result *r);
/* Makes the one folder that all work stays in, where the server is not ours alone. A failure ends the work. */
MAY_YIELD void entry_claim(struct seeder *s, struct seed_login *l);
/* Counts a call and says whether it ended well. */
bool entry_well(struct seeder *s, enum drive_op op, const struct api_result *r);
bool entry_absent(const struct api_result *r); /* the server has no such call */

/* given.c: on a server whose logins were given (target.h): signs them in and puts each to its tree. */
MAY_YIELD void seed_given_logins(struct seeder *s);
#endif
