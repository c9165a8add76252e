/* The dialect-free side of the client: life cycle, and one thin call for each row of the dialect's table. */
#include "drive/api/api.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/secret.h"
#include "drive/api/dialect.h"
#include "drive/api/scheme.h"
#include "drive/cmd.h"
#include "drive/limits.h"
#include "drive/wire.h"
#include "net/http_date.h"
#include <stdio.h>
#include <string.h>

#define DEFAULT_TIMEOUT_US (60 * US_PER_S)
#define DEFAULT_IDLE_US    (75 * US_PER_S)

const char *api_cap_text(enum api_cap cap)
{
    static const struct {
        enum api_cap cap;
        const char *text;
    } rows[] = {
        {API_CAP_LOCKS, "edit locks"},
        {API_CAP_VERSIONS, "versions"},
        {API_CAP_FEED, "change feed"},
        {API_CAP_PAGING, "paged listings"},
        {API_CAP_SUB_USERS, "sub-users"},
        {API_CAP_STORAGE_CONFIG, "storage configuration"},
        {API_CAP_JOBS, "jobs"},
        {API_CAP_BULK, "bulk upload"},
        {API_CAP_RANGES, "download ranges"},
        {API_CAP_EVENTS, "event stream"},
        {API_CAP_TRASH, "trash"},
        {API_CAP_RECENT, "recent files"},
        {API_CAP_SIGN_UP, "sign-up"},
        {API_CAP_STORAGE, "storage use"},
        {API_CAP_TOTALS, "totals of folders"},
        {API_CAP_TMA_WIRE, "TMA Cloud's API"},
        {API_CAP_BATCH, "batch requests"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].cap == cap)
            return rows[i].text;
    }
    return "?";
}

struct api_conf api_conf_of(const struct cmd_ctx *ctx)
{
    return (struct api_conf){.base_url = ctx->target->url,
                             .target = ctx->target,
                             .http = ctx->http,
                             .loop = ctx->loop,
                             .space = ctx->space,
                             .requests = ctx->requests,
                             .cause = ctx->cause};
}

static struct api *clients; /* all of the program's, which has one loop */

enum err api_new(struct api **out, const struct api_conf *conf, struct errinfo *ei)
{
    const struct scheme *row;
    struct http_url url;
    enum err err = scheme_of(conf->base_url, conf->target ? conf->target->dialect : NULL, &row, &url, ei);
    if (err)
        return err;
    struct api *a = mem_zalloc(sizeof *a);
    a->dialect = row->table;
    a->next = clients;
    a->link = &clients;
    if (a->next)
        a->next->link = &a->next;
    clients = a;
    a->http = conf->http;
    a->caps = a->dialect->caps;
    a->timeout_us = conf->timeout_us ? conf->timeout_us : DEFAULT_TIMEOUT_US;
    a->listing_most = conf->listing_most ? conf->listing_most : DRIVE_LISTING_MOST;
    a->stream_bytes_per_s = conf->stream_bytes_per_s;
    a->stream_idle_us = conf->stream_idle_us ? conf->stream_idle_us : DEFAULT_IDLE_US;
    a->app_version = mem_strdup(conf->app_version);
    a->own_space = conf->space ? NULL : api_space_new();
    a->space = conf->space ? conf->space : a->own_space;
    err = a->dialect->open(a, conf, &url, ei);
    http_url_done(&url);
    a->requests = conf->requests;
    a->budget = conf->budget;
    api_cause(a, conf->cause);
    if (!err && a->peer)
        httpc_peer_keep(a->peer, conf->keep);
    if (err)
        api_free(&a);
    else
        *out = a;
    return err;
}

void api_free(struct api **a)
{
    if (!*a)
        return;
    *(*a)->link = (*a)->next;
    if ((*a)->next)
        (*a)->next->link = (*a)->link;
    if ((*a)->dialect->close)
        (*a)->dialect->close(*a);
    if ((*a)->peer)
        httpc_peer_free(&(*a)->peer);
    api_space_free(&(*a)->own_space);
    secret_drop(sv_of((*a)->token));
    mem_free((*a)->token);
    mem_free((*a)->app_version);
    mem_free((*a)->tree);
    MEM_FREE(*a);
}

struct httpc_peer *api_peer(struct api *a)
{
    return a->peer;
}

void api_cancel(struct api *a)
{
    for (struct api *one = clients, *next; !a && one; one = next) {
        next = one->next;
        api_cancel(one);
    }
    if (!a)
        return;
    if (a->dialect->cancel)
        a->dialect->cancel(a);
    else if (a->peer)
        httpc_cancel(a->http, a->peer);
}

void api_cause(struct api *a, enum cause cause)
{
    a->sent = a->requests ? &a->requests[cause] : NULL;
    if (a->peer)
        httpc_peer_count(a->peer, (struct httpc_counters){a->sent, a->sent ? &a->requests[CAUSE_RECONNECT] : NULL});
}

void api_count(struct api *a)
{
    if (a->sent && !a->peer)
        ++*a->sent;
}

void api_set_tree(struct api *a, const char *tree)
{
    char *copy = mem_strdup(tree);
    mem_free(a->tree);
    a->tree = copy;
    a->names = map_get(a->space->trees, sv_of(tree));
    if (!a->names) {
        a->names = names_new();
        map_put(a->space->trees, sv_of(tree), a->names);
    }
}

const char *api_tree(const struct api *a)
{
    return a->tree ? a->tree : "";
}

void api_place(struct api *a, const char *id, const char *parent, const char *name)
{
    if (a->names && name)
        names_bind(a->names, id, parent, name);
    else if (a->names)
        names_drop(a->names, id);
}

const char *api_placed_name(const struct api *a, const char *id)
{
    return a->names ? names_name(a->names, id) : NULL;
}

unsigned api_caps(const struct api *a)
{
    return a->caps;
}

void api_set_caps(struct api *a, unsigned caps)
{
    a->caps = caps;
}

void api_set_token(struct api *a, struct sv token)
{
    struct buf cookie = BUF_INIT(16 * 1024);
    secret_add(token);
    secret_drop(sv_of(a->token));
    MEM_FREE(a->token);
    a->token_since = mono_now();
    if (!a->peer) {
        a->token = token.n ? mem_strndup(token.p, token.n) : NULL;
    } else if (token.n == 0) {
        httpc_peer_header(a->peer, "Cookie", NULL);
    } else if (buf_appendf(&cookie, WIRE_COOKIE "=" SV_FMT, SV_ARG(token)) == ERR_OK) {
        a->token = mem_strndup(token.p, token.n);
        httpc_peer_header(a->peer, "Cookie", buf_cstr(&cookie));
    }
    buf_done(&cookie);
}

struct sv api_session_token(const struct api *a)
{
    return sv_of(a->token);
}

struct mono api_session_part(const struct api *a, double part)
{
    int64_t life_us = wire_token_life_us(sv_of(a->token));
    return life_us < 0 ? MONO_NEVER : mono_add(a->token_since, (int64_t)(part * (double)life_us));
}

void api_share_session(struct api *to, const struct api *from)
{
    api_set_token(to, sv_of(from->token));
    to->token_since = from->token_since;
    to->caps = from->caps;
    to->locks_seen = from->locks_seen;
    if (from->tree)
        api_set_tree(to, from->tree);
    if (to->dialect->share)
        to->dialect->share(to, from);
}

void api_result_init(struct api_result *r)
{
    memset(r, 0, sizeof *r);
    r->outcome = OUT_OK;
    r->retry_after_us = -1;
}

/* Time is allowed again for each so many bytes. */
#define TRANSFER_STEP    (4 * 1024 * 1024)
#define TRANSFER_MOST_US (86400 * US_PER_S) /* a size is what a server says: it must not make a wait endless */

int64_t api_timeout_us(const struct api *a, uint64_t transfer_bytes)
{
    int64_t steps = 1 + (int64_t)(transfer_bytes / TRANSFER_STEP), most = TRANSFER_MOST_US / a->timeout_us;
    return a->timeout_us * (steps <= most ? steps : most > 0 ? most : 1);
}

void api_reason(struct api_result *r, const char *text)
{
    str_shown(r->reason, sizeof r->reason, sv_of(text));
}

#define HOUR_US (3600 * US_PER_S)

void api_wait_asked(struct api_result *r, const struct http_resp *resp)
{
    char text[sizeof r->reason], asked[32];
    int64_t us = http_wait_us(resp, wall_now());
    r->retry_after_us = us <= DRIVE_WAIT_MOST_US ? us : DRIVE_WAIT_MOST_US;
    if (us <= DRIVE_WAIT_MOST_US)
        return;
    if (r->outcome == OUT_THROTTLED)
        r->outcome = OUT_REFUSED;
    if (us < 48 * HOUR_US)
        str_format(asked, sizeof asked, "%d h", (int)(us / HOUR_US + 1)); /* not to the minute: one kind of reason */
    else
        str_duration(asked, sizeof asked, us);
    str_format(text, sizeof text, "the server asked to wait %s, and %d h at most is waited: %s", asked,
               (int)(DRIVE_WAIT_MOST_US / HOUR_US), r->reason);
    str_format(r->reason, sizeof r->reason, "%s", text);
}

void api_turn(struct api *a)
{
    if (!a->budget)
        return;
    struct mono from = mono_now();
    (void)!budget_turn(&a->budget->pace, a->budget->loop, a->budget->stop); /* when it is stopped its answer says so */
    a->budget->waited_us += mono_diff(mono_now(), from);
}

bool api_sat_out(struct api *a, const struct api_result *r)
{
    if (!a->budget || r->outcome != OUT_THROTTLED) {
        if (a->budget)
            a->budget->tries = 0;
        return false;
    }
    return budget_sit_out(a->budget, r->retry_after_us, r->reason);
}

enum err api_told(struct patience *p, struct api_result *r, enum err err)
{
    patience_told(p, r, mono_now());
    return err;
}

enum err api_wrong(struct api_result *r, const char *what)
{
    r->outcome = OUT_WRONG;
    r->err = ERR_PARSE;
    snprintf(r->reason, sizeof r->reason, "%s", what);
    return ERR_PARSE;
}

void api_no_answer(struct api_result *r, enum err err, bool may_be_done, const struct errinfo *ei)
{
    if (err == ERR_WRONG || err == ERR_LIMIT || err == ERR_PARSE)
        r->outcome = OUT_WRONG;
    else if (may_be_done)
        r->outcome = OUT_UNKNOWN;
    else if (err == ERR_CANCELLED)
        r->outcome = OUT_UNFINISHED;
    else
        r->outcome = err == ERR_LOCAL ? OUT_LOCAL : err == ERR_TIMEOUT ? OUT_TIMEOUT : OUT_TRANSPORT;
    r->err = err;
    api_reason(r, err_message(ei));
}

enum err api_absent(struct api_result *r, const char *what)
{
    api_result_init(r);
    r->outcome = OUT_CLIENT;
    r->status = 404;
    r->sent = r->done = mono_now();
    snprintf(r->code, sizeof r->code, "%s", API_CODE_ABSENT);
    snprintf(r->reason, sizeof r->reason, "this server has no %s", what);
    return ERR_OK;
}

enum err api_probe(struct api *a, struct api_result *r)
{
    return API_CALL(probe, r, r);
}

enum err api_claim(struct api *a, struct api_result *r)
{
    return API_CALL(claim, r, r);
}

enum err api_unclaim(struct api *a, struct api_locks_left *left, struct api_result *r)
{
    *left = (struct api_locks_left){0};
    return API_CALL(unclaim, r, left, r);
}

enum err api_signup_status(struct api *a, bool *enabled, struct api_result *r)
{
    return API_CALL(signup_status, r, enabled, r);
}

enum err api_signup_toggle(struct api *a, bool enabled, struct api_result *r)
{
    return API_CALL(signup_toggle, r, enabled, r);
}

enum err api_sub_user_create(struct api *a, const char *email, const char *password, const char *name, unsigned perms,
                             struct api_result *r)
{
    return API_CALL(sub_user_create, r, email, password, name, perms, r);
}

enum err api_sub_users(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r)
{
    *out = (struct api_users){0};
    return API_CALL(sub_users, r, mem, out, r);
}

enum err api_accounts_made(struct api *a, struct arena *mem, struct api_users *out, struct api_result *r)
{
    *out = (struct api_users){0};
    return API_CALL(accounts_made, r, mem, out, r);
}

enum err api_account_remove(struct api *a, const char *email, struct api_result *r)
{
    return API_CALL(account_remove, r, email, r);
}

enum err api_storage_config(struct api *a, const struct blob_conf *conf, struct api_result *r)
{
    return API_CALL(storage_config, r, conf, r);
}

enum err api_heartbeat(struct api *a, struct api_result *r)
{
    return API_CALL(heartbeat, r, r);
}

enum err api_storage(struct api *a, struct api_storage *out, struct api_result *r)
{
    *out = (struct api_storage){-1, -1, -1};
    return API_CALL(storage, r, out, r);
}

enum err api_list(struct api *a, const char *folder, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    *out = (struct drive_listing){0};
    return API_CALL(list, r, folder, mem, out, r);
}

enum err api_info(struct api *a, const char *id, struct arena *mem, struct drive_file *out, struct api_totals *totals,
                  struct api_result *r)
{
    return API_CALL(info, r, id, mem, out, totals, r);
}

enum err api_search(struct api *a, const char *q, unsigned limit, struct arena *mem, struct drive_listing *out,
                    struct api_result *r)
{
    *out = (struct drive_listing){0};
    return API_CALL(search, r, q, limit, mem, out, r);
}

enum err api_recent(struct api *a, unsigned limit, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    *out = (struct drive_listing){0};
    return API_CALL(recent, r, limit, mem, out, r);
}

enum err api_trash_list(struct api *a, struct arena *mem, struct drive_listing *out, struct api_result *r)
{
    *out = (struct drive_listing){0};
    return API_CALL(trash_list, r, mem, out, r);
}

enum err api_stats(struct api *a, struct api_totals *out, struct api_result *r)
{
    *out = (struct api_totals){-1, -1, -1};
    return API_CALL(stats, r, out, r);
}

enum err api_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out,
                     struct api_result *r)
{
    memset(out, 0, sizeof *out);
    return API_CALL(changes, r, cursor, mem, out, r);
}

enum err api_folder_create(struct api *a, const char *parent, const char *name, struct arena *mem,
                           struct drive_file *out, struct api_result *r)
{
    return API_CALL(folder_create, r, parent, name, mem, out, r);
}

enum err api_upload(struct api *a, const struct api_upload *u, struct arena *mem, struct drive_file *out,
                    struct api_result *r)
{
    return API_CALL(upload, r, u, mem, out, r);
}

enum err api_upload_bulk(struct api *a, const struct api_upload *u, size_t n, struct arena *mem,
                         struct drive_file *outs, struct api_result *r)
{
    return API_CALL(upload_bulk, r, u, n, mem, outs, r);
}

enum err api_replace(struct api *a, const char *id, const char *name, const char *version, const char *lock_id,
                     const struct content *c, struct arena *mem, struct drive_file *out, struct api_result *r)
{
    return API_CALL(replace, r, id, name, version, lock_id, c, mem, out, r);
}

enum err api_download(struct api *a, const char *id, uint64_t offset, uint64_t length,
                      int (*sink)(void *arg, const char *p, size_t n), void *arg, char *version_out, size_t version_n,
                      struct api_result *r)
{
    return API_CALL(download, r, id, offset, length, sink, arg, version_out, version_n, r);
}

enum err api_lock(struct api *a, const char *id, unsigned ttl_s, const char *renew_lock_id, struct api_lock *out,
                  struct api_result *r)
{
    return API_CALL(lock, r, id, ttl_s, renew_lock_id, out, r);
}

enum err api_unlock(struct api *a, const char *id, const char *lock_id, struct api_result *r)
{
    return API_CALL(unlock, r, id, lock_id, r);
}

enum err api_rename(struct api *a, const char *id, const char *name, struct arena *mem, struct drive_file *out,
                    struct api_result *r)
{
    return API_CALL(rename, r, id, name, mem, out, r);
}

enum err api_move(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_result *r)
{
    return API_CALL(move, r, ids, n, parent, r);
}

enum err api_copy(struct api *a, const char *const *ids, size_t n, const char *parent, struct api_job *job,
                  struct api_result *r)
{
    *job = (struct api_job){.count = -1, .items_done = -1, .items_total = -1};
    return API_CALL(copy, r, ids, n, parent, job, r);
}

enum err api_trash(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    *job = (struct api_job){.count = -1, .items_done = -1, .items_total = -1};
    return API_CALL(trash, r, ids, n, job, r);
}

enum err api_restore(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    *job = (struct api_job){.count = -1, .items_done = -1, .items_total = -1};
    return API_CALL(restore, r, ids, n, job, r);
}

enum err api_purge(struct api *a, const char *const *ids, size_t n, struct api_job *job, struct api_result *r)
{
    *job = (struct api_job){.count = -1, .items_done = -1, .items_total = -1};
    return API_CALL(purge, r, ids, n, job, r);
}

enum err api_job_poll(struct api *a, struct api_job *job, struct arena *mem, struct api_result *r)
{
    return API_CALL(job_poll, r, job, mem, r);
}

enum err api_stream_open(struct api_stream **out, struct api *a, struct api_stream_memory *memory,
                         const struct api_stream_ops *ops, void *arg, struct errinfo *ei)
{
    if (!a->dialect->stream_open)
        return err_set(ei, ERR_NOTFOUND, "this server has no event stream");
    return a->dialect->stream_open(out, a, memory, ops, arg, ei);
}

void api_stream_close(struct api_stream **s)
{
    if (*s)
        (*s)->dialect->stream_close(s);
}
