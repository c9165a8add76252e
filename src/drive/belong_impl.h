#ifndef DRIVE_BELONG_IMPL_H
#define DRIVE_BELONG_IMPL_H
/* What belong.c (who proves, and what comes of it) and belong_parts.c, belong_redis.c (where a part shows the marker)
 * share. */
#include "base/map.h"
#include "drive/api/api.h"
#include "drive/belong.h"
#include "net/work.h"
#include "store/blob.h"
#include "store/kv.h"
#include "store/pg.h"

enum belong_part { BELONG_DATABASE, BELONG_REDIS, BELONG_STORE, BELONG_COUNT };
#define MARKER_MAX   48
#define MARKER_BYTES 64

struct listener { /* of Redis, and of the server's own event stream */
    bool up, heard;
    struct done changed;
};
struct proof {
    const struct cmd_ctx *ctx;
    struct api *api;
    struct pg_pool *pg; /* NULL: not given; likewise the others */
    struct kv *kv;
    struct work *work;
    struct blob *blob;
    struct arena *mem;
    char name[MARKER_MAX]; /* of this round's folder */
    struct drive_file folder, file;
    char bytes[MARKER_BYTES]; /* of the file */
    struct map *keys_before;  /* of the bucket below the account, where no row tells the key; NULL: not listed */
    char *account_id;
    struct listener redis, stream;
    bool open[BELONG_COUNT];  /* still to be proven */
    bool wrong[BELONG_COUNT]; /* another server's */
    char why[BELONG_COUNT][160];
};

/* Connects to the database and Redis, where given, and to the bucket. ERR_ENV with the variable's name when it is not
 * to be had. */
MAY_YIELD enum err belong_reach(struct proof *p, bool shows_inside, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err belong_reach_store(struct proof *p, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD void belong_part_ways(struct proof *p);
void belong_new_name(struct proof *p); /* random, of a marker to be */
/* What can be proven without making anything; deletes: and is sure enough for that. */
MAY_YIELD void belong_ask_quietly(struct proof *p, bool deletes);
/* Each when the marker is there: sets open, wrong, why of its part. */
MAY_YIELD void belong_ask_database(struct proof *p);
MAY_YIELD void belong_ask_store(struct proof *p);
MAY_YIELD void belong_ask_redis(struct proof *p);
/* Before the marker is made; stream: the server's own is listened to as well, to know whether it told of it. */
MAY_YIELD void belong_listen(struct proof *p, bool stream, struct api_stream **out);
/* Why a part is not proven, or whose it is. */
void belong_note(struct proof *p, enum belong_part part, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* As long as the server asks to wait: the same call again. */
MAY_YIELD bool belong_again(struct proof *p, const struct api_result *r);
#endif
