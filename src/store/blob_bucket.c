/* Bucket calls (create, list, multi-delete, probe) and copying. Small requests, signed here (SigV4) and sent by httpc.
 */
#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/blob_impl.h"
#include "store/s3sign.h"
#include "store/s3xml.h"
#include <stdio.h>
#include <string.h>

#define TIMEOUT_US        (15 * US_PER_S)
#define DELETE_TIMEOUT_US (60 * US_PER_S)  /* 1000 keys, and some stores delete them one by one */
#define COPY_TIMEOUT_US   (300 * US_PER_S) /* of up to 5 GiB, inside the store */
#define BATCH             1000
#define SINGLES           8 /* single deletes at once */
#define ATTEMPTS          3
#define PAUSE_US          (200 * US_PER_MS)

struct call {
    const char *method;
    const char *key; /* NULL: the bucket itself */
    const char *copy_source;
    const char *query; /* sorted, encoded, each name with '=' */
    struct sv body;
    int64_t timeout_us;
    bool no_retry; /* of a 5xx: the caller has another way */
};

static MAY_YIELD enum err send_once(struct blob *b, const struct call *c, struct http_resp *resp, struct errinfo *ei)
{
    char path[1400], target[4000], md5_line[64] = "", copy_line[1400] = "";
    const char *headers[6];
    size_t n = 0;
    struct s3sign_headers h;
    snprintf(path, sizeof path, "/%s%s%s", b->path_style ? b->bucket : "", b->path_style && c->key ? "/" : "",
             c->key ? c->key : "");
    if (c->copy_source)
        snprintf(copy_line, sizeof copy_line, "x-amz-copy-source: %s", c->copy_source);
    snprintf(target, sizeof target, "%s%s%s", path, c->query[0] ? "?" : "", c->query);
    struct s3sign sign = {.access_key = b->access_key,
                          .secret_key = b->secret_key,
                          .region = b->region,
                          .host = b->host_line,
                          .method = c->method,
                          .path = path,
                          .query = c->query,
                          .body = c->body,
                          .copy_source = c->copy_source,
                          .at = wall_now()};
    *resp = (struct http_resp){0};
    if (s3sign_make(&sign, &h))
        return err_set(ei, ERR_USAGE, "S3 store: keys or region are too long");
    if (c->body.n > 0) { /* multi-delete demands it */
        unsigned char sum[DIGEST_MD5_LEN];
        struct buf b64 = BUF_INIT(64);
        digest_md5(c->body.p, c->body.n, sum);
        enum err err = digest_base64(&b64, sum, sizeof sum);
        snprintf(md5_line, sizeof md5_line, "Content-MD5: %s", buf_cstr(&b64));
        buf_done(&b64);
        if (err)
            return err_set(ei, err, "S3 store: request too long");
    }
    headers[n++] = h.authorization;
    headers[n++] = h.date;
    headers[n++] = h.content_sha256;
    if (md5_line[0])
        headers[n++] = md5_line;
    if (copy_line[0])
        headers[n++] = copy_line;
    headers[n] = NULL;
    struct http_req req = {.method = c->method,
                           .path = target,
                           .headers = headers,
                           .body = c->body,
                           .content_type = c->body.n > 0 ? "application/xml" : NULL,
                           .timeout_us = c->timeout_us ? c->timeout_us : TIMEOUT_US};
    return httpc_perform(b->peer, &req, resp, ei);
}

static enum err transport_failure(const struct blob *b, const struct errinfo *cause, struct errinfo *ei)
{
    return err_set(ei, ERR_STORE, "object store at %s: %s", b->host, err_message(cause));
}

static enum err status_failure(const struct blob *b, const struct http_resp *r, struct errinfo *ei)
{
    struct s3xml_error e;
    s3xml_error_parse((struct sv){buf_cstr(&r->body), r->body.len}, &e);
    enum err err = err_set(ei, r->status == 404 ? ERR_NOTFOUND : ERR_STORE, "object store at %s: HTTP %d%s%s%s%s",
                           b->host, r->status, e.code[0] ? " " : "", e.code, e.message[0] ? ": " : "", e.message);
    if (ei)
        ei->http_status = r->status;
    return err;
}

/* ERR_OK when an answer came, whatever its status. A store that is busy or was restarted gets two more chances; one
 * that stays silent does not: the caller has waited long enough. The caller frees resp in any case. */
static MAY_YIELD enum err call(struct blob *b, const struct call *c, struct http_resp *resp, struct errinfo *ei)
{
    struct errinfo cause = {0};
    for (int attempt = 1;; attempt++) {
        enum err err = send_once(b, c, resp, &cause);
        bool passing = err ? err_retryable(err) && err != ERR_TIMEOUT
                           : !c->no_retry && (resp->status == 500 || resp->status == 503);
        if (!passing || attempt == ATTEMPTS)
            return err ? transport_failure(b, &cause, ei) : ERR_OK;
        LOGD("blob", "%s ?%s: %s, once more", c->method, c->query, err ? err_message(&cause) : "the store is busy");
        http_resp_done(resp);
        coro_sleep_until(b->loop, mono_add(mono_now(), PAUSE_US * attempt));
    }
}

static MAY_YIELD enum err call_ok(struct blob *b, const struct call *c, struct errinfo *ei)
{
    struct http_resp resp;
    enum err err = call(b, c, &resp, ei);
    if (!err && resp.status / 100 != 2)
        err = status_failure(b, &resp, ei);
    http_resp_done(&resp);
    return err;
}

static MAY_YIELD enum err bucket_head(struct blob *b, struct errinfo *ei)
{
    enum err err = call_ok(b, &(struct call){.method = "HEAD", .query = ""}, ei);
    return err == ERR_NOTFOUND ? err_set(ei, ERR_STORE, "bucket %s does not exist at %s", b->bucket, b->host) : err;
}

enum err blob_bucket_create(struct blob *b, struct errinfo *ei)
{
    char body[256] = "";
    struct http_resp resp;
    if (strcmp(b->region, "us-east-1") != 0)
        snprintf(body, sizeof body,
                 "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><LocationConstraint>%s"
                 "</LocationConstraint></CreateBucketConfiguration>",
                 b->region);
    enum err err = call(b, &(struct call){.method = "PUT", .query = "", .body = sv_of(body)}, &resp, ei);
    if (!err && resp.status == 409) /* it exists: fine when it is ours */
        err = bucket_head(b, ei);
    else if (!err && resp.status / 100 != 2)
        err = status_failure(b, &resp, ei);
    http_resp_done(&resp);
    return err == ERR_NOTFOUND ? ERR_STORE : err;
}

/* ---- copying ---- */

/* Not by libs3: it loses the body of an answer that follows a 100 Continue, and that body is where a copy that failed
 * late says so, under the status 200. */
enum err blob_copy(struct blob *b, const char *from, const char *to, struct errinfo *ei)
{
    char source[1400];
    struct http_resp resp;
    struct s3xml_error e;
    snprintf(source, sizeof source, "/%s/%s", b->bucket, from);
    if (!blob_key_valid(from) || !blob_key_valid(to))
        return err_set(ei, ERR_USAGE, "object keys are of A-Z a-z 0-9 / _ . - only");
    enum err err = call(
        b,
        &(struct call){.method = "PUT", .query = "", .key = to, .copy_source = source, .timeout_us = COPY_TIMEOUT_US},
        &resp, ei);
    if (!err && resp.status / 100 != 2) {
        err = status_failure(b, &resp, ei);
    } else if (!err && !strstr(buf_cstr(&resp.body), "CopyObjectResult")) {
        s3xml_error_parse((struct sv){buf_cstr(&resp.body), resp.body.len}, &e);
        err = err_set(ei, ERR_STORE, "object store at %s: the copy was not confirmed%s%s", b->host,
                      e.code[0] ? ": " : "", e.code);
    }
    http_resp_done(&resp);
    return err;
}

/* ---- listing ---- */

static enum err list_query(struct buf *q, const char *prefix, const char *token, int max_keys)
{
    enum err err = ERR_OK;
    if (token) {
        err = buf_append_str(q, "continuation-token=");
        err = err ? err : str_url_encode(q, sv_of(token), "");
        err = err ? err : buf_append_char(q, '&');
    }
    err = err ? err : buf_appendf(q, "encoding-type=url&list-type=2&max-keys=%d&prefix=", max_keys);
    return err ? err : str_url_encode(q, sv_of(prefix), "");
}

static MAY_YIELD enum err list_page(struct blob *b, const char *prefix, const char *token, int max_keys,
                                    struct s3xml_page *page, struct errinfo *ei)
{
    struct buf q = BUF_INIT(2000);
    struct http_resp resp = {0};
    enum err err = list_query(&q, prefix, token, max_keys);
    if (err) {
        err_set(ei, err, "S3 listing: prefix or continuation token too long");
        goto out;
    }
    err = call(b, &(struct call){.method = "GET", .query = buf_cstr(&q)}, &resp, ei);
    if (!err && resp.status != 200)
        err = status_failure(b, &resp, ei);
    if (!err && s3xml_page_parse((struct sv){buf_cstr(&resp.body), resp.body.len}, page))
        err = err_set(ei, ERR_STORE, "object store at %s: listing not understood", b->host);
out:
    buf_done(&q);
    http_resp_done(&resp);
    return err == ERR_NOTFOUND ? ERR_STORE : err;
}

enum err blob_list(struct blob *b, const char *prefix,
                   bool (*fn)(void *arg, const char *key, const struct blob_info *info), void *arg, struct errinfo *ei)
{
    char *token = NULL;
    bool more = true;
    enum err err = ERR_OK;
    while (more && !err) {
        struct s3xml_page page = {0};
        err = list_page(b, prefix, token, BATCH, &page, ei);
        if (err)
            break;
        more = page.truncated;
        for (size_t i = 0; i < page.n; i++) {
            struct blob_info info = {page.items[i].size, page.items[i].modified};
            if (!fn(arg, page.items[i].key, &info)) {
                more = false;
                break;
            }
        }
        if (more && (!page.next || (token && strcmp(token, page.next) == 0)))
            err = err_set(ei, ERR_STORE, "object store at %s: the listing is cut without a way to continue", b->host);
        mem_free(token);
        token = page.next;
        page.next = NULL;
        s3xml_page_done(&page);
    }
    mem_free(token);
    return err;
}

/* ---- deleting many ---- */

/* Keys are [A-Za-z0-9/_.-] only where we made them; a sweeper may meet others. */
static enum err xml_text(struct buf *out, const char *s)
{
    enum err err = ERR_OK;
    for (; *s && !err; s++) {
        if (*s == '&' || *s == '<' || *s == '>' || (unsigned char)*s < 0x20)
            err = buf_appendf(out, "&#%d;", (unsigned char)*s);
        else
            err = buf_append_char(out, *s);
    }
    return err;
}

static enum err delete_body(struct buf *out, const char *const *keys, size_t n)
{
    enum err err = buf_append_str(out, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>");
    for (size_t i = 0; i < n && !err; i++) {
        err = buf_append_str(out, "<Object><Key>");
        err = err ? err : xml_text(out, keys[i]);
        err = err ? err : buf_append_str(out, "</Key></Object>");
    }
    return err ? err : buf_append_str(out, "</Delete>");
}

struct singles {
    struct blob *b;
    const char *const *keys;
    size_t n, next, failed;
    enum err err; /* of the first that failed */
    struct errinfo ei;
};

static MAY_YIELD void delete_singles_worker(void *arg)
{
    struct singles *s = arg;
    while (s->next < s->n) {
        struct errinfo ei;
        enum err err = blob_delete(s->b, s->keys[s->next++], &ei);
        if (err && s->failed++ == 0) {
            s->err = err;
            s->ei = ei;
        }
    }
}

static MAY_YIELD enum err delete_singles(struct blob *b, const char *const *keys, size_t n, size_t *failed,
                                         struct errinfo *ei)
{
    struct singles s = {.b = b, .keys = keys, .n = n};
    struct group g = {0};
    for (size_t i = 0; i < SINGLES && i < n; i++)
        group_spawn(b->loop, &g, delete_singles_worker, &s);
    group_wait(b->loop, &g);
    *failed += s.failed;
    if (s.err && ei)
        *ei = s.ei;
    return s.err;
}

/* What a store answers that does not know the call, or not so many keys at once (cases.md C13). */
static bool means_unsupported(const struct http_resp *r)
{
    return r->status == 400 || r->status == 405 || r->status == 500 || r->status == 501;
}

static enum err batch_verdict(const struct blob *b, const struct http_resp *r, size_t *failed, struct errinfo *ei)
{
    struct s3xml_error first;
    size_t refused = 0;
    if (s3xml_delete_parse((struct sv){buf_cstr(&r->body), r->body.len}, &refused, &first))
        return err_set(ei, ERR_STORE, "object store at %s: answer to multi-delete not understood", b->host);
    *failed += refused;
    if (refused == 0)
        return ERR_OK;
    return err_set(ei, ERR_STORE, "object store at %s refused to delete %s, the first with %s%s%s", b->host,
                   COUNTED(refused, "object"), first.code, first.message[0] ? ": " : "", first.message);
}

static MAY_YIELD enum err delete_batch(struct blob *b, const char *const *keys, size_t n, size_t *failed,
                                       struct errinfo *ei)
{
    struct buf body = BUF_INIT(16 * 1024 * 1024);
    struct http_resp resp = {0};
    enum err err = delete_body(&body, keys, n);
    if (err) {
        err_set(ei, err, "multi-delete: keys too long");
        goto out;
    }
    struct call c = {.method = "POST",
                     .query = "delete=",
                     .body = {buf_cstr(&body), body.len},
                     .timeout_us = DELETE_TIMEOUT_US,
                     .no_retry = b->multi != MULTI_YES};
    size_t failed_before = *failed;
    err = call(b, &c, &resp, ei);
    b->delete_requests++;
    if (err) {
        *failed += n;
    } else if (resp.status == 200) {
        b->multi = MULTI_YES;
        err = batch_verdict(b, &resp, failed, ei);
        b->deleted += n - (*failed - failed_before < n ? *failed - failed_before : n);
    } else if (means_unsupported(&resp)) {
        LOGI("blob", "the store does not take multi-delete (HTTP %d): deleting one by one", resp.status);
        b->multi = MULTI_NO;
        err = delete_singles(b, keys, n, failed, ei);
    } else {
        err = status_failure(b, &resp, ei);
        *failed += n;
    }
out:
    buf_done(&body);
    http_resp_done(&resp);
    return err;
}

enum err blob_delete_many(struct blob *b, const char *const *keys, size_t n, size_t *failed, struct errinfo *ei)
{
    enum err first = ERR_OK;
    *failed = 0;
    for (size_t at = 0; at < n; at += BATCH) {
        size_t count = n - at < BATCH ? n - at : BATCH;
        struct errinfo here;
        enum err err = b->multi == MULTI_NO ? delete_singles(b, keys + at, count, failed, &here)
                                            : delete_batch(b, keys + at, count, failed, &here);
        if (err && !first) {
            first = err;
            if (ei)
                *ei = here;
        }
    }
    return first;
}

struct blob_deletes blob_deletes(const struct blob *b)
{
    return (struct blob_deletes){b->deleted, b->delete_requests,
                                 b->multi == MULTI_UNKNOWN ? -1 : b->multi == MULTI_YES};
}

bool blob_has_multi_delete(const struct blob *b)
{
    return b->multi == MULTI_YES;
}

/* ---- probe ---- */

struct probe {
    char key[64];
    char content[33];
};

static MAY_YIELD enum err probe_head(struct blob *b, struct probe *p, struct errinfo *ei)
{
    (void)p;
    return bucket_head(b, ei);
}

static MAY_YIELD enum err probe_list(struct blob *b, struct probe *p, struct errinfo *ei)
{
    struct s3xml_page page = {0};
    (void)p;
    enum err err = list_page(b, "", NULL, 1, &page, ei);
    s3xml_page_done(&page);
    return err;
}

static MAY_YIELD enum err probe_write(struct blob *b, struct probe *p, struct errinfo *ei)
{
    return blob_put(b, p->key, p->content, strlen(p->content), ei);
}

static MAY_YIELD enum err probe_read(struct blob *b, struct probe *p, struct errinfo *ei)
{
    struct buf got = BUF_INIT(4096);
    enum err err = blob_get(b, p->key, 0, 0, &got, ei);
    if (!err && strcmp(buf_cstr(&got), p->content) != 0)
        err = err_set(ei, ERR_STORE, "the store returned other bytes than it was given");
    buf_done(&got);
    return err;
}

static MAY_YIELD enum err probe_delete(struct blob *b, struct probe *p, struct errinfo *ei)
{
    return blob_delete(b, p->key, ei);
}

enum err blob_probe(struct blob *b, struct errinfo *ei)
{
    static const struct {
        const char *name;
        MAY_YIELD enum err (*run)(struct blob *b, struct probe *p, struct errinfo *ei);
    } steps[] = {{"head", probe_head},
                 {"list", probe_list},
                 {"write", probe_write},
                 {"read", probe_read},
                 {"delete", probe_delete}};
    struct probe p = {.key = "probe/"};
    digest_random_id(p.key + strlen(p.key), 16);
    digest_random_id(p.content, 32);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct errinfo why = {0};
        enum err err = steps[i].run(b, &p, &why);
        if (err)
            return err_set(ei, err == ERR_NOTFOUND ? ERR_STORE : err, "%s: %s", steps[i].name, err_message(&why));
    }
    return ERR_OK;
}
