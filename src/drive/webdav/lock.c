/* Edit locks. Each has an owner text of its own: where the answer to a LOCK is lost, lockdiscovery tells whether it was
 * granted all the same, and with which token, so that it can be let go. The same texts tell, when our folder is to be
 * deleted, which of the locks in it are ours. */
#include "drive/webdav/lock.h"
#include "base/digest.h"
#include "base/mem.h"
#include "drive/webdav/read.h"
#include <stdio.h>
#include <string.h>

#define OWNER        "drivesim"
#define SETTLE_TRIES 3 /* to ask what became of a lock, and to let it go */
#define LOCKS_MAX    1000
#define FOLDERS_MAX  1000000

static const char lock_body[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                                "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>"
                                "<D:locktype><D:write/></D:locktype><D:owner>%s</D:owner></D:lockinfo>";
static const char wanted[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                             "<D:propfind xmlns:D=\"DAV:\"><D:prop><D:resourcetype/><D:lockdiscovery/>"
                             "</D:prop></D:propfind>";

static bool is_token(struct sv s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == '>')
            return false;
    return s.n > 0 && s.n <= DRIVE_ID_MAX;
}

/* "<opaquelocktoken:…>" without its brackets, which one server in the field leaves out; false: none, or too long. */
static bool token_of(struct sv header, char dst[DRIVE_ID_MAX + 1])
{
    struct sv token = header;
    if (header.n > 2 && header.p[0] == '<' && header.p[header.n - 1] == '>')
        token = (struct sv){header.p + 1, header.n - 2};
    if (is_token(token))
        snprintf(dst, DRIVE_ID_MAX + 1, SV_FMT, SV_ARG(token));
    return is_token(token);
}

/* Takes the path over. */
static MAY_YIELD enum err unlock(struct api *a, struct buf *path, const char *token, struct api_result *r)
{
    char header[DRIVE_ID_MAX + 32];
    snprintf(header, sizeof header, "Lock-Token: <%s>", token);
    return dav_perform(a, &(struct dav_call){.method = "UNLOCK", .path = path, .headers = {header}, .write = true}, r);
}

/* ---- a lock whose answer was lost ---- */

struct sought {
    const char *owner;
    char token[DRIVE_ID_MAX + 1];
};

static bool on_sought(void *arg, const struct dav_item *item)
{
    struct sought *s = arg;
    if (item->lock_token && item->lock_owner && strcmp(item->lock_owner, s->owner) == 0 &&
        is_token(sv_of(item->lock_token)))
        snprintf(s->token, sizeof s->token, "%s", item->lock_token);
    return true;
}

static MAY_YIELD enum err find_token(struct api *a, const char *id, struct sought *s)
{
    struct api_result r;
    struct buf path;
    const struct dav_call c = {
        .method = "PROPFIND", .path = &path, .headers = {"Depth: 0"}, .xml = wanted, .item = on_sought, .arg = s};
    return dav_path(a, id, false, &path, &r) ? dav_perform(a, &c, &r) : ERR_OK;
}

/* If the server granted it, it is let go: it would keep others from the file until it lapses. */
static MAY_YIELD void settle(struct api *a, const char *id, const char *owner)
{
    struct sought s = {.owner = owner};
    struct api_result r;
    unsigned tries = 0;
    while (find_token(a, id, &s) && ++tries < SETTLE_TRIES)
        continue;
    while (s.token[0] && tries++ < SETTLE_TRIES) {
        if (!webdav_unlock(a, id, s.token, &r))
            break;
    }
}

/* ---- the calls ---- */

/* A lock on a name that does not exist makes an empty file: it was deleted meanwhile, so that one goes again. */
static MAY_YIELD void undo_new_file(struct api *a, const char *id, const char *token, struct api_result *r)
{
    struct buf path;
    char header[DRIVE_ID_MAX + 32];
    struct api_result ignored;
    snprintf(header, sizeof header, "If: (<%s>)", token);
    if (dav_path(a, id, false, &path, &ignored)) {
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
    return !dav_path(a, id, false, &path, &r) || (dav_look(a, &path, &look, &r) == ERR_OK && r.status == 404);
}

/* What the answer to a new lock means; token: as it came. */
static MAY_YIELD enum err judge_lock(struct api *a, const char *id, struct sv token, struct api_lock *out,
                                     struct api_result *r)
{
    enum err err = ERR_OK;
    if (r->outcome == OUT_OK && !token_of(token, out->id)) {
        err = api_wrong(r, "the lock was granted without a token that can be used");
    } else if (r->status == 201) {
        undo_new_file(a, id, out->id, r);
        out->id[0] = '\0';
    } else if ((r->status == 412 || r->status == 409) && is_missing(a, id)) {
        dav_missing(r);
    }
    return err;
}

enum err webdav_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id, struct api_lock *out,
                     struct api_result *r)
{
    struct http_resp resp = {0};
    struct buf path;
    char timeout[40], refreshed[DRIVE_ID_MAX + 32], owner[40], body[sizeof lock_body + sizeof owner], nonce[17];
    *out = (struct api_lock){.id = ""};
    if (!(a->caps & API_CAP_LOCKS))
        return api_absent(r, api_cap_text(API_CAP_LOCKS));
    if (!dav_path(a, id, false, &path, r))
        return ERR_OK;
    unsigned ttl = ttl_s ? ttl_s : 120;
    snprintf(timeout, sizeof timeout, "Timeout: Second-%u", ttl);
    struct dav_call c = {.method = "LOCK", .path = &path, .headers = {timeout}, .write = true, .resp = &resp};
    digest_random_id(nonce, sizeof nonce - 1);
    snprintf(owner, sizeof owner, OWNER " %s", nonce);
    snprintf(body, sizeof body, lock_body, owner);
    if (renew_lock_id) {
        snprintf(refreshed, sizeof refreshed, "If: (<%s>)", renew_lock_id);
        c.headers[1] = refreshed;
    } else {
        c.headers[1] = "Depth: 0";
        c.headers[2] = "If-Match: *"; /* of a file that is there, where the server cares */
        c.xml = body;
    }
    enum err err = dav_perform(a, &c, r);
    if (!err && strcmp(r->code, API_CODE_ABSENT) == 0)
        a->caps &= ~(unsigned)API_CAP_LOCKS;
    else if (!err && renew_lock_id)
        snprintf(out->id, sizeof out->id, "%s", r->outcome == OUT_OK ? renew_lock_id : "");
    else if (!err)
        err = judge_lock(a, id, http_resp_header(&resp, "Lock-Token"), out, r);
    if (!err && r->outcome == OUT_OK)
        out->expires = (struct wall){wall_now().us + (int64_t)ttl * US_PER_S};
    http_resp_done(&resp);
    if (!renew_lock_id && (r->outcome == OUT_UNKNOWN || r->outcome == OUT_WRONG))
        settle(a, id, owner);
    return err;
}

enum err webdav_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r)
{
    struct buf path;
    if (!dav_path(a, id, false, &path, r))
        return ERR_OK;
    enum err err = unlock(a, &path, lock_id, r);
    if (!err && (r->status == 409 || r->status == 412 || r->status == 400 || r->status == 403)) {
        r->outcome = OUT_CONFLICT;
        r->status = 409;
        snprintf(r->code, sizeof r->code, "LOCK_LOST");
    }
    return err;
}

/* ---- those in the way when our folder is to be deleted ---- */

struct found_lock {
    char *path, *token, *owner; /* path: encoded */
    int64_t left_us;            /* until it lapses; -1: never, or not told */
};
struct search {
    char **folders; /* encoded, with a slash behind; those from `next` on are still to be looked into */
    size_t n_folders, next;
    struct found_lock *locks; /* of the folder that is looked into */
    size_t n_locks;
    const char *here; /* not owned */
};

static int64_t timeout_us(const char *text)
{
    struct sv rest = sv_of(text), seconds = {0};
    int64_t s;
    if (!text || !sv_starts(rest, SV("Second-")))
        return -1;
    seconds = (struct sv){rest.p + strlen("Second-"), rest.n - strlen("Second-")};
    return sv_to_i64(seconds, &s) && s >= 0 && s <= INT32_MAX ? s * US_PER_S : -1;
}

static char *below(const struct search *s, const char *name, bool folder)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    enum err err = buf_append_str(&path, s->here);
    if (!err && name)
        err = str_url_encode(&path, sv_of(name), "");
    if (!err && name && folder)
        err = buf_append_char(&path, '/');
    char *text = err ? NULL : buf_take(&path, NULL); /* too long to be asked for: not looked at */
    buf_done(&path);
    return text;
}

static void on_entry(void *arg, const char *name, const struct dav_item *item)
{
    struct search *s = arg;
    char *path = below(s, name, item->folder);
    if (!path)
        return;
    bool known = s->next > 1 && !name; /* told with what is above it, but for the first */
    if (item->lock_token && is_token(sv_of(item->lock_token)) && s->n_locks < LOCKS_MAX && !known) {
        s->locks = mem_realloc_array(s->locks, s->n_locks + 1, sizeof *s->locks);
        s->locks[s->n_locks++] =
            (struct found_lock){mem_strdup(path), mem_strdup(item->lock_token),
                                mem_strdup(item->lock_owner ? item->lock_owner : ""), timeout_us(item->lock_timeout)};
    }
    if (name && item->folder && s->n_folders < FOLDERS_MAX) {
        s->folders = mem_realloc_array(s->folders, s->n_folders + 1, sizeof *s->folders);
        s->folders[s->n_folders++] = path;
        path = NULL;
    }
    mem_free(path);
}

/* Ours goes; whose it is otherwise, and how long, is noted. */
static MAY_YIELD void let_go(struct api *a, const struct found_lock *l, struct api_locks_left *left)
{
    struct buf path = BUF_INIT(DAV_PATH_MAX);
    struct api_result r;
    bool ours = sv_starts(sv_of(l->owner), SV(OWNER));
    if (ours && buf_append_str(&path, l->path) == ERR_OK) {
        if (unlock(a, &path, l->token, &r) == ERR_OK && r.outcome == OUT_OK) {
            left->released++;
            return;
        }
    }
    if (left->left++ == 0) {
        struct buf text = BUF_INIT(sizeof left->first - 1);
        enum err err = str_escape(&text, sv_of(l->path + strlen(dav_of(a)->root)), 100);
        if (!err)
            err = buf_append_str(&text, ", held by ");
        if (!err)
            err = str_escape(&text, sv_of(l->owner[0] ? l->owner : "somebody"), 60);
        (void)err; /* it fits */
        snprintf(left->first, sizeof left->first, "%s", buf_cstr(&text));
        buf_done(&text);
    }
    if (left->longest_us >= 0)
        left->longest_us = l->left_us < 0 ? -1 : l->left_us > left->longest_us ? l->left_us : left->longest_us;
}

static void forget_locks(struct search *s)
{
    for (size_t i = 0; i < s->n_locks; i++) {
        mem_free(s->locks[i].path);
        mem_free(s->locks[i].token);
        mem_free(s->locks[i].owner);
    }
    s->n_locks = 0;
}

void dav_locks_release(struct api *a, struct api_locks_left *left)
{
    struct search s = {0};
    const struct dav_children c = {.xml = wanted, .entry = on_entry, .arg = &s};
    struct api_result r;
    enum err err = ERR_OK;
    *left = (struct api_locks_left){0};
    s.folders = mem_alloc(sizeof *s.folders);
    s.here = dav_of(a)->root;
    s.folders[s.n_folders++] = below(&s, "", true);
    while (!err && s.next < s.n_folders && s.folders[s.next]) {
        struct buf path = BUF_INIT(DAV_PATH_MAX);
        s.here = s.folders[s.next++];
        err = buf_append_str(&path, s.here);
        if (!err)
            err = dav_children(a, &path, &c, &r);
        for (size_t i = 0; i < s.n_locks; i++)
            let_go(a, &s.locks[i], left);
        forget_locks(&s);
    }
    for (size_t i = 0; i < s.n_folders; i++)
        mem_free(s.folders[i]);
    mem_free(s.folders);
    mem_free(s.locks);
}
