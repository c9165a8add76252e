/* The tma dialect's one way to make a request, and its table. The verdict is formed here alone, so that every call
 * tells outcomes apart in the same way: in particular a write that may have been done is never called failed. */
#include "drive/tma/tma.h"
#include "base/mem.h"
#include "drive/tma/events.h"
#include "drive/tma/read.h"
#include "drive/tma/session.h"
#include "drive/tma/transfer.h"
#include "drive/tma/write.h"
#include <stdio.h>
#include <string.h>

void tma_path(struct buf *path, const char *before, const char *id, const char *after)
{
    buf_init(path, TMA_PATH_MAX);
    /* An id too long for the path leaves it cut: the server then answers 404, as for any id that it never gave. */
    enum err err = buf_append_str(path, before);
    if (!err && id)
        err = str_url_encode(path, sv_of(id), "");
    if (!err && after)
        err = buf_append_str(path, after);
    (void)err;
}

void tma_query(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    char sep = path->len && memchr(path->data, '?', path->len) ? '&' : '?';
    enum err err = buf_appendf(path, "%c%s=", sep, name);
    if (!err)
        err = str_url_encode(path, sv_of(value), "");
    (void)err;
}

void tma_query_u(struct buf *path, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    tma_query(path, name, text);
}

enum err tma_call_file(struct api *a, const struct tma_call *c, struct arena *mem, struct drive_file *out,
                       struct api_result *r)
{
    struct json *j;
    struct drive_file f;
    enum err err = tma_call_json(a, c, &j, r);
    if (j && !wire_file(j, mem, &f))
        err = api_wrong(r, "the answer is not a file");
    else if (j && out)
        *out = f;
    json_free(&j);
    return err;
}

bool tma_is_absent(const struct api_result *r)
{
    return strcmp(r->code, API_CODE_ABSENT) == 0;
}

/* Absent: the path is none of the server's (405, or 404 with a page instead of a sentence). */
static bool answer_is_absent(const struct tma_call *c, const struct http_resp *resp, bool readable, const char *code)
{
    if (resp->status == 405 || resp->status == 501)
        return true;
    return resp->status == 404 && (c->bare || !readable || strcmp(code, "FRONTEND_NOT_BUILT") == 0);
}

static void refused(struct api *a, const struct tma_call *c, const struct http_resp *resp, struct api_result *r)
{
    struct sv body = {buf_cstr(&resp->body), resp->body.len};
    bool readable = wire_error(body, r->reason, sizeof r->reason, r->code);
    if (!readable)
        snprintf(r->reason, sizeof r->reason, "HTTP %d without a reason", resp->status);
    if (answer_is_absent(c, resp, readable, r->code)) {
        snprintf(r->code, sizeof r->code, "%s", API_CODE_ABSENT);
        a->caps &= ~(unsigned)c->cap;
    }
    if (resp->status != 429)
        return;
    api_wait_asked(r, resp);
}

struct taking {
    struct api *a;
    struct mono sent;
};

static void take_cookie(void *arg, struct sv header)
{
    const struct taking *t = arg;
    struct sv value;
    if (wire_set_cookie(header, WIRE_COOKIE, &value) && !(t->a->token && sv_eq_cstr(value, t->a->token)))
        api_renew_token(t->a, value, t->sent);
}

static void verdict(struct api *a, const struct tma_call *c, enum err err, const struct http_resp *resp,
                    const struct errinfo *ei, struct api_result *r)
{
    r->err = err;
    r->status = resp->status;
    r->sent = resp->sent;
    r->done = resp->done;
    r->bytes_up = resp->bytes_up;
    r->bytes_down = resp->bytes_down;
    r->retries = resp->retries;
    if (err) {
        api_no_answer(r, err, c->write && resp->request_sent, ei);
        return;
    }
    http_resp_each_header(resp, "Set-Cookie", take_cookie, &(struct taking){a, resp->sent});
    r->outcome = outcome_of_status(resp->status);
    if (r->outcome != OUT_OK)
        refused(a, c, resp, r);
}

enum err tma_call(struct api *a, const struct tma_call *c, struct http_resp *resp, struct api_result *r)
{
    struct errinfo ei = {0};
    enum err err = ERR_OK;
    api_result_init(r);
    if (c->cap && !(a->caps & (unsigned)c->cap)) {
        memset(resp, 0, sizeof *resp);
        err = api_absent(r, api_cap_text(c->cap));
        goto out;
    }
    struct http_req req = {
        .method = c->method,
        .path = buf_cstr(c->path),
        .headers = c->headers[0] ? c->headers : NULL,
        .body = c->json ? (struct sv){buf_cstr(c->json), c->json->len} : (struct sv){"", 0},
        .parts = c->parts,
        .n_parts = c->n_parts,
        .timeout_us = api_timeout_us(a, c->transfer_bytes),
        .stall_us = a->timeout_us,
        .sink = c->sink,
        .sink_arg = c->sink_arg,
    };
    err = httpc_perform(a->peer, &req, resp, &ei);
    verdict(a, c, err, resp, &ei, r);
out:
    buf_done(c->path);
    if (c->json)
        buf_done(c->json);
    return err;
}

enum err tma_call_json(struct api *a, const struct tma_call *c, struct json **out, struct api_result *r)
{
    struct http_resp resp;
    *out = NULL;
    enum err err = tma_call(a, c, &resp, r);
    if (!err && r->outcome == OUT_OK && json_parse(buf_cstr(&resp.body), resp.body.len, out, NULL))
        err = api_wrong(r, "the answer is not the JSON that was asked for");
    http_resp_done(&resp);
    return err;
}

static enum err tma_open(struct api *a, const struct api_conf *conf, const struct http_url *url, struct errinfo *ei)
{
    (void)url;
    enum err err = httpc_peer_new(&a->peer, conf->http, conf->base_url, conf->source_addr, ei);
    if (err)
        return err;
    httpc_peer_header(a->peer, WIRE_CSRF_HEADER, WIRE_CSRF_VALUE);
    httpc_peer_header(a->peer, WIRE_DESKTOP_HEADER, WIRE_DESKTOP_VALUE);
    return ERR_OK;
}

const struct api_dialect api_dialect_tma = {
    .name = "tma",
    .caps = API_CAP_ALL,
    .open = tma_open,
    .probe = tma_probe,
    .sign_up = tma_sign_up,
    .sign_in = tma_sign_in,
    .sign_out = tma_sign_out,
    .prove_session = tma_prove_session,
    .signup_status = tma_signup_status,
    .signup_toggle = tma_signup_toggle,
    .sub_user_create = tma_sub_user_create,
    .sub_users = tma_sub_users,
    .storage_config = tma_storage_config,
    .heartbeat = tma_heartbeat,
    .storage = tma_storage,
    .list = tma_list,
    .info = tma_info,
    .search = tma_search,
    .recent = tma_recent,
    .trash_list = tma_trash_list,
    .stats = tma_stats,
    .changes = tma_changes,
    .folder_create = tma_folder_create,
    .upload = tma_upload,
    .upload_bulk = tma_upload_bulk,
    .replace = tma_replace,
    .download = tma_download,
    .lock = tma_lock,
    .unlock = tma_unlock,
    .rename = tma_rename,
    .move = tma_move,
    .copy = tma_copy,
    .trash = tma_trash,
    .restore = tma_restore,
    .purge = tma_purge,
    .job_poll = tma_job_poll,
    .stream_open = tma_stream_open,
    .stream_close = tma_stream_close,
};
