#ifndef DRIVE_API_ACCOUNTS_H
#define DRIVE_API_ACCOUNTS_H
/* The calls by which accounts come and go. Results and errors as in session.h. Layer 2. */
#include "drive/api/session.h"

MAY_YIELD enum err api_sign_up(struct api *a, const char *email, const char *password, const char *name,
                               struct api_result *r);
MAY_YIELD enum err api_signup_status(struct api *a, bool *enabled, struct api_result *r);
MAY_YIELD enum err api_signup_toggle(struct api *a, bool enabled, struct api_result *r);
MAY_YIELD enum err api_sub_user_create(struct api *a, const char *email, const char *password, const char *name,
                                       unsigned perms, struct api_result *r);
/* The account's sub-users, for its owner alone; in the arena. */
MAY_YIELD enum err api_sub_users(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r);
/* By an administrator's given login: the accounts that it made for us, and one of them taken away with all it holds. */
MAY_YIELD enum err api_accounts_made(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r);
MAY_YIELD enum err api_account_remove(struct api *a, const char *email, struct api_result *r);
#endif
