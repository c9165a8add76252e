#ifndef SERVER_OBJECTS_CONTENT_H
#define SERVER_OBJECTS_CONTENT_H
/* File bodies between clients and the object store: sealed on the way in, opened on the way out, a few hundred KiB in
 * memory each whatever their size. Layer 3; the loop's thread.
 *
 * The order of a write: the body goes first, into a new object under a new key; then one short database call names it;
 * then the object that a replaced row named before is deleted. So a failure, or a crash, at any instant leaves rows
 * that are right and at worst an object that no row names. Until content_keep or content_drop such an object is "in
 * flight" and the sweeper leaves it alone.
 *
 * Ways in: up to 256 KiB are gathered in memory and put at once. More goes straight through when the size is known and
 * the client is not slow; otherwise it is sealed into an unlinked temporary file first, for the store wants the size
 * beforehand and gives up on a sender that pauses. All uploads together stay below UPLOAD_MEMORY_MB: beyond it they
 * wait and the clients' sockets fill. */
#include "base/str.h"
#include "server/server.h"

struct content; /* the part: the key, the budgets, what is in flight */
extern const struct server_part content_part;

#define CONTENT_KEY_MAX    96
#define CONTENT_MEMORY_MAX 262144 /* bodies up to here are gathered in memory */

/* A body as it comes: at most cap bytes into dst; *got 0 at its end. */
struct content_source {
    MAY_YIELD enum err (*read)(void *arg, char *dst, size_t cap, size_t *got, struct errinfo *ei);
    void *arg;
};
struct content_object {
    char key[CONTENT_KEY_MAX]; /* "" when there is none */
    uint64_t size;             /* of the content */
};

/* Takes in a body for a new object of the account, up to its end. expected is its size where known, else -1; it may be
 * wrong, which costs a second pass inside the store. More than max bytes: ERR_LIMIT. The source's own errors pass
 * through; a failing store is ERR_STORE, a full temporary disk ERR_FULL. */
struct content_body;
MAY_YIELD enum err content_receive(struct server *s, const char *account_id, const struct content_source *src,
                                   int64_t expected, uint64_t max, struct content_body **out,
                                   struct errinfo *ei) WARN_UNUSED;
uint64_t content_body_size(const struct content_body *body);
/* Gets what was received into the store and frees it, also when it fails: then nothing is left. Another coroutine may
 * do this while the next body is received. */
MAY_YIELD enum err content_put(struct content_body **body, struct content_object *out, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD void content_discard(struct content_body **body);

/* A row names the object now. */
void content_keep(struct server *s, struct content_object *o);
/* Whether a row names it is not to be known yet (sweeper_doubt): it stays in flight for half a minute. */
void content_doubt(struct server *s, struct content_object *o);
bool content_in_doubt(struct server *s); /* any object is */
/* No row does: deletes it. When that fails, logs it; the sweeper will find it. */
MAY_YIELD void content_drop(struct server *s, struct content_object *o);
/* Deletes objects that no row names any more. Failures are logged and left to the sweeper. */
MAY_YIELD void content_delete(struct server *s, const char *const *keys, size_t n);
bool content_take_left_behind(struct server *s); /* whether any failed since this was asked last */

/* "<account>/<16 letters>", the first of them this server's (PRESENCE_MARK_LEN), the others random; marked in flight;
 * content_settle takes the mark off. */
void content_new_key(struct server *s, const char *account_id, char key[CONTENT_KEY_MAX]);
void content_settle(struct server *s, const char *key);
bool content_in_flight(struct server *s, const char *key);
#endif
