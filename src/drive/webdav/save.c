/* Saves. A save is conditional on the version that was listed; a condition that fails is looked into
 * before it is called a conflict, since servers have tags that no condition can hold with: weak ones (some are weak
 * for a second after a change), and those of a compressed body. */
#include "base/mem.h"
#include "drive/webdav/cloud.h"
#include "drive/webdav/lock.h"
#include "drive/webdav/read.h"
#include "drive/webdav/write.h"
#include <stdio.h>
#include <string.h>

#define TRIES_MAX 5
#define AGAIN_US  (400 * US_PER_MS) /* five of them outlast the second in which a tag may be weak */

/* ---- saves ---- */

struct save {
    const char *id, *version, *lock_id; /* version as it was listed */
    const struct content *content;
    const char *sum; /* a header; NULL: none */
    bool stripped;   /* its "-gzip" left out this time */
};

static MAY_YIELD enum err put(struct api *a, const struct save *s, struct api_result *r)
{
    struct buf path;
    char match[DRIVE_ID_MAX + 32], lock[DRIVE_ID_MAX + 32];
    size_t n = 0, length = s->version ? strlen(s->version) - (s->stripped ? strlen("-gzip") : 0) : 0;
    if (!dav_path(a, s->id, false, &path, r))
        return ERR_OK;
    struct dav_call c = {
        .method = "PUT", .path = &path, .content = s->content, .transfer_bytes = s->content->size, .write = true};
    if (s->version) {
        snprintf(match, sizeof match, "If-Match: \"%.*s\"", (int)length, s->version);
        c.headers[n++] = match;
    } else {
        c.headers[n++] = "If-Match: *"; /* a save makes no file */
    }
    if (s->lock_id) {
        snprintf(lock, sizeof lock, "If: (<%s>)", s->lock_id);
        c.headers[n++] = lock;
    }
    c.headers[n++] = s->sum;
    return dav_perform(a, &c, r);
}

static void conflict(struct api_result *r, const char *code, const char *why)
{
    r->outcome = OUT_CONFLICT;
    r->status = 412;
    snprintf(r->code, sizeof r->code, "%s", code);
    snprintf(r->reason, sizeof r->reason, "%s", why);
}

/* A refresh tells: not every server shows its locks. */
static MAY_YIELD bool still_held(struct api *a, const struct save *s)
{
    struct api_lock lock;
    struct api_result r;
    return webdav_lock(a, s->id, 0, s->lock_id, &lock, &r) == ERR_OK && r.outcome == OUT_OK;
}

/* Why a condition failed. True: the version is the listed one all the same, so that it may hold another time. */
static MAY_YIELD bool may_hold(struct api *a, const struct save *s, bool last, struct api_result *r)
{
    struct dav_look look;
    struct api_result asked;
    struct buf path;
    if (!dav_path(a, s->id, false, &path, r))
        return false;
    if (dav_look(a, &path, &look, &asked) || asked.outcome != OUT_OK) {
        if (asked.status == 404)
            dav_missing(r);
        return false;
    }
    if (s->version && strcmp(look.version, s->version) != 0) {
        conflict(r, "VERSION_CONFLICT", "it was changed since it was listed");
        return false;
    }
    if (!last)
        return true;
    if (s->lock_id && !still_held(a, s)) {
        conflict(r, "LOCK_LOST", "the lock has lapsed");
        return false;
    }
    r->outcome = OUT_CLIENT;
    snprintf(r->code, sizeof r->code, "NO_VALIDATOR");
    snprintf(r->reason, sizeof r->reason, "no usable strong validator: If-Match never holds with the tag %s\"%.60s\"",
             look.weak ? "W/" : "", look.version);
    return false;
}

enum err webdav_replace(struct api *a, const char *id, const char *name, const char *version, const char *lock_id,
                        const struct content *content, struct arena *mem, struct drive_file *out, struct api_result *r)
{
    char sum[DAV_CHECKSUM_MAX];
    struct save s = {.id = id, .version = version, .lock_id = lock_id, .content = content};
    bool gzip = version && sv_ends(sv_of(version), SV("-gzip"));
    struct mono first = {0};
    enum err err = ERR_OK;
    (void)name;
    s.sum = dav_checksum_header(a, content, sum);
    for (unsigned tries = 1;; tries++) {
        err = put(a, &s, r);
        first = first.us ? first : r->sent;
        if (err || r->status != 412 || !may_hold(a, &s, tries == TRIES_MAX, r))
            break;
        s.stripped = gzip && !s.stripped;
        coro_sleep_until(dav_of(a)->loop, mono_add(mono_now(), AGAIN_US));
    }
    r->sent = first;
    if (err || r->outcome != OUT_OK)
        return err;
    struct api_result look;
    if (webdav_info(a, id, mem, out, NULL, &look) || look.outcome != OUT_OK) {
        const char *own = names_name(a->names, id), *parent = names_parent(a->names, id);
        *out = (struct drive_file){.id = arena_strdup(mem, id), .size = (int64_t)content->size};
        out->name = arena_strdup(mem, own ? own : "");
        out->parent_id = arena_strdup(mem, parent);
    }
    return ERR_OK;
}
