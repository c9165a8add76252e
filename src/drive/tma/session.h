#ifndef DRIVE_TMA_SESSION_H
#define DRIVE_TMA_SESSION_H
/* Internal to the tma dialect: accounts and sessions. All are rows of its table; api/dialect.h says what each is to do.
 * Layer 2. */
#include "drive/tma/tma.h"

MAY_YIELD enum err tma_probe(struct api *a, struct api_result *r);
MAY_YIELD enum err tma_sign_up(struct api *a, const char *email, const char *password, const char *name,
                               struct api_result *r);
MAY_YIELD enum err tma_sign_in(struct api *a, const char *email, const char *password, struct api_result *r);
MAY_YIELD enum err tma_sign_out(struct api *a, struct api_result *r);
MAY_YIELD enum err tma_prove_session(struct api *a, const char *email, struct api_result *r);
MAY_YIELD enum err tma_signup_status(struct api *a, bool *enabled, struct api_result *r);
MAY_YIELD enum err tma_signup_toggle(struct api *a, bool enabled, struct api_result *r);
MAY_YIELD enum err tma_sub_user_create(struct api *a, const char *email, const char *password, const char *name,
                                       unsigned perms, struct api_result *r);
MAY_YIELD enum err tma_sub_users(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r);
MAY_YIELD enum err tma_storage_config(struct api *a, const struct blob_conf *conf, struct api_result *r);
MAY_YIELD enum err tma_heartbeat(struct api *a, struct api_result *r);
MAY_YIELD enum err tma_storage(struct api *a, struct api_storage *out, struct api_result *r);
#endif
