/* Edit locks and saves. A save is conditional on the version that was listed; a condition that fails is looked into
 * before it is called a conflict, since servers have tags that no condition can hold with: weak ones (some are weak
 * for a second after a change), and those of a compressed body. */
#include "base/mem.h"
#include "drive/webdav/cloud.h"
#include <stdio.h>
#include <string.h>

#define TRIES_MAX 5
#define AGAIN_US  (400 * US_PER_MS) /* five of them outlast the second in which a tag may be weak */

static const char lock_body[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                                "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>"
                                "<D:locktype><D:write/></D:locktype><D:owner>drivesim</D:owner></D:lockinfo>";

/* ---- locks ---- */

/* "<opaquelocktoken:…>" without its brackets; false: none, or too long. */
static bool token_of(struct sv header, char *dst, size_t n)
{
    if (header.n < 3 || header.p[0] != '<' || header.p[header.n - 1] != '>' || header.n - 2 >= n)
        return false;
    snprintf(dst, n, SV_FMT, (int)(header.n - 2), header.p + 1);
    return true;
}

static MAY_YIELD enum err unlock(struct api *a, const char *id, const char *token, struct api_result *r)
{
    struct buf path;
    char header[DRIVE_ID_MAX + 32];
    snprintf(header, sizeof header, "Lock-Token: <%s>", token);
    if (!dav_path(a, id, false, &path, r))
        return ERR_OK;
    return dav_perform(a, &(struct dav_call){.method = "UNLOCK", .path = &path, .headers = {header}, .write = true}, r);
}

/* A lock on a name that does not exist makes an empty file: it was deleted meanwhile, so that one goes again. */
static MAY_YIELD void undo_new_file(struct api *a, const char *id, const char *token, struct api_result *r)
{
    struct buf path;
    char header[DRIVE_ID_MAX + 32];
    struct api_result ignored;
    snprintf(header, sizeof header, "If: (<%s>)", token);
    if (dav_path(a, id, false, &path, &ignored)) {
        a->extra++;
        (void)!dav_perform(a, &(struct dav_call){.method = "DELETE", .path = &path, .headers = {header}, .write = true},
                           &ignored);
    }
    dav_missing(r);
}

static MAY_YIELD bool is_missing(struct api *a, const char *id)
{
    struct dav_look look;
    struct api_result r;
    struct buf path;
    a->extra++;
    return !dav_path(a, id, false, &path, &r) || (dav_look(a, &path, &look, &r) == ERR_OK && r.status == 404);
}

enum err webdav_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id, struct api_lock *out,
                     struct api_result *r)
{
    struct http_resp resp = {0};
    struct buf path;
    char timeout[40], refreshed[DRIVE_ID_MAX + 32];
    *out = (struct api_lock){.id = ""};
    if (!(a->caps & API_CAP_LOCKS))
        return api_absent(r, api_cap_text(API_CAP_LOCKS));
    if (!dav_path(a, id, false, &path, r))
        return ERR_OK;
    unsigned ttl = ttl_s ? ttl_s : 120;
    snprintf(timeout, sizeof timeout, "Timeout: Second-%u", ttl);
    struct dav_call c = {.method = "LOCK", .path = &path, .headers = {timeout}, .write = true, .resp = &resp};
    if (renew_lock_id) {
        snprintf(refreshed, sizeof refreshed, "If: (<%s>)", renew_lock_id);
        c.headers[1] = refreshed;
    } else {
        c.headers[1] = "Depth: 0";
        c.headers[2] = "If-Match: *"; /* of a file that is there, where the server cares */
        c.xml = lock_body;
    }
    enum err err = dav_perform(a, &c, r);
    struct sv token = http_resp_header(&resp, "Lock-Token");
    if (!err && strcmp(r->code, API_CODE_ABSENT) == 0) {
        a->caps &= ~(unsigned)API_CAP_LOCKS;
    } else if (!err && r->outcome == OUT_OK && renew_lock_id) {
        snprintf(out->id, sizeof out->id, "%s", renew_lock_id);
    } else if (!err && r->outcome == OUT_OK && !token_of(token, out->id, sizeof out->id)) {
        err = api_wrong(r, "the lock was granted without a token that can be used");
    } else if (!err && r->status == 201) {
        undo_new_file(a, id, out->id, r);
        out->id[0] = '\0';
    } else if (!err && (r->status == 412 || r->status == 409) && is_missing(a, id)) {
        dav_missing(r);
    }
    if (!err && r->outcome == OUT_OK)
        out->expires = (struct wall){wall_now().us + (int64_t)ttl * US_PER_S};
    http_resp_done(&resp);
    return err;
}

enum err webdav_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r)
{
    enum err err = unlock(a, id, lock_id, r);
    if (!err && (r->status == 409 || r->status == 412 || r->status == 400 || r->status == 403)) {
        r->outcome = OUT_CONFLICT;
        r->status = 409;
        snprintf(r->code, sizeof r->code, "LOCK_LOST");
    }
    return err;
}

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
    a->extra++;
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
    a->extra++;
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
        a->extra++;
        s.stripped = gzip && !s.stripped;
        coro_sleep_until(dav_of(a)->loop, mono_add(mono_now(), AGAIN_US));
    }
    r->sent = first;
    if (err || r->outcome != OUT_OK)
        return err;
    struct api_result look;
    a->extra++;
    if (webdav_info(a, id, mem, out, NULL, &look) || look.outcome != OUT_OK) {
        const char *own = names_name(a->names, id), *parent = names_parent(a->names, id);
        *out = (struct drive_file){.id = arena_strdup(mem, id), .size = (int64_t)content->size};
        out->name = arena_strdup(mem, own ? own : "");
        out->parent_id = parent ? arena_strdup(mem, parent) : NULL;
    }
    return ERR_OK;
}
