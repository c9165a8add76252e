#ifndef SERVER_OBJECTS_STORAGE_H
#define SERVER_OBJECTS_STORAGE_H
/* The bucket that holds file bodies: connected by the administrator, remembered in app_settings with its two keys
 * sealed under FILE_ENCRYPTION_KEY, connected again at each start. server->blob is set from then on. Layer 3. */
#include "server/server.h"

struct storage;
extern const struct server_part storage_part;

struct storage_settings {
    const char *endpoint, *region, *bucket, *access_key, *secret_key; /* region NULL: us-east-1 */
    bool path_style;
};
/* What is in force, its keys included; NULL when no bucket is connected. *version counts the changes, from 0. */
const struct storage_settings *storage_current(const struct server *s, int64_t *version);

/* Head, list, write, read and delete in the bucket. ERR_USAGE when the settings cannot be, ERR_STORE with the step that
 * failed and the store's reason. */
MAY_YIELD enum err storage_test(struct server *s, const struct storage_settings *want, struct errinfo *ei) WARN_UNUSED;

/* Another process may have connected another bucket meanwhile: reads what is saved and follows. */
MAY_YIELD enum err storage_refresh(struct server *s, struct errinfo *ei) WARN_UNUSED;
/* The same in the background, once a second at most: after a word from another process, or a failure that it may be the
 * reason of. */
void storage_look(struct server *s);

enum storage_outcome { STORAGE_SAVED, STORAGE_STALE, STORAGE_NOT_THE_SAME };
/* Tests, saves and connects. *out tells STALE when the saved version is not the one given, NOT_THE_SAME when files are
 * stored already and the other bucket does not hold them; then nothing has changed. */
MAY_YIELD enum err storage_save(struct server *s, const struct storage_settings *want, int64_t version,
                                enum storage_outcome *out, struct errinfo *ei) WARN_UNUSED;
#endif
