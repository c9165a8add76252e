#include "drive/api/scrape.h"
#include "base/str.h"
#include "net/httpc.h"

#include <string.h>

#define TEXT_MAX (4u << 20)

enum err scrape(struct httpc *h, const char *base_url, int64_t timeout_us, struct httpc_counters count, struct buf *out,
                struct errinfo *ei)
{
    struct httpc_peer *peer = NULL;
    struct http_resp resp;
    const struct http_req req = {.method = "GET", .path = "/metrics", .timeout_us = timeout_us};
    buf_init(out, TEXT_MAX);
    enum err e = httpc_peer_new(&peer, h, base_url, NULL, ei);
    if (e != ERR_OK)
        return e;
    httpc_peer_count(peer, count);
    e = httpc_perform(peer, &req, &resp, ei);
    if (e == ERR_OK && resp.status != 200)
        e = err_set(ei, ERR_NOTFOUND, "not offered: GET /metrics answers %d", resp.status);
    if (e == ERR_OK && (e = buf_append(out, resp.body.data, resp.body.len)) != ERR_OK)
        err_set(ei, e, "the server's /metrics is too long");
    http_resp_done(&resp);
    httpc_peer_free(&peer);
    return e;
}

bool scrape_value(const char *text, const char *name, double *out)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, n) == 0 && line[n] == ' ')
            return sv_to_f64((struct sv){line + n + 1, strcspn(line + n + 1, " \r\n")}, out);
    return false;
}
