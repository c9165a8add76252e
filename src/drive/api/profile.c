#include "drive/api/profile.h"
#include "base/json.h"
#include "base/mem.h"

/* Some servers put it into an object "user". */
char *profile_read_id(struct httpc_peer *peer)
{
    const struct http_req req = {.method = "GET", .path = "/api/profile"};
    struct http_resp resp;
    struct json *j = NULL;
    const char *id = NULL;
    if (httpc_perform(peer, &req, &resp, NULL) == ERR_OK && resp.status == 200 &&
        json_parse(buf_cstr(&resp.body), resp.body.len, &j, NULL) == ERR_OK) {
        id = json_str(json_get(j, "id"));
        if (!id)
            id = json_str(json_get(json_get(j, "user"), "id"));
    }
    char *copy = mem_strdup(id);
    json_free(&j);
    http_resp_done(&resp);
    return copy;
}
