#ifndef DRIVE_TMA_TMA_H
#define DRIVE_TMA_TMA_H
/* Internal to the tma dialect (TMA Cloud's HTTP API): one request with its verdict. Layer 2. */
#include "base/json.h"
#include "drive/api/dialect.h"
#include "drive/wire.h"

#define TMA_PATH_MAX 4096
#define TMA_JSON_MAX (4 * 1024 * 1024)

struct tma_call {
    const char *method;
    struct buf *path; /* encoded, with the query; the call frees it */
    struct buf *json; /* the body; the call frees it; NULL: none */
    const struct http_part *parts;
    size_t n_parts;
    const char *headers[4];  /* NULL-terminated */
    uint64_t transfer_bytes; /* of a body either way: more time is allowed */
    bool write;              /* sent without an answer is UNKNOWN */
    enum api_cap cap;        /* the capability that this call is; 0: always there */
    bool bare;               /* names no resource: any 404 means that the call is absent */
    int (*sink)(void *arg, const char *p, size_t n);
    void *sink_arg;
};
/* Performs it and fills *r. ERR_OK when an answer came; resp is then the caller's to http_resp_done, as after an error.
 * A call whose capability is gone is not sent: ERR_OK with API_CODE_ABSENT. */
MAY_YIELD enum err tma_call(struct api *a, const struct tma_call *c, struct http_resp *resp, struct api_result *r);
/* The same for a JSON answer: *out is set on 2xx alone (json_free it), NULL else. A 2xx that is no JSON is ERR_PARSE.
 */
MAY_YIELD enum err tma_call_json(struct api *a, const struct tma_call *c, struct json **out, struct api_result *r);
/* The same for an answer that is a file, in mem; out NULL: not wanted. */
MAY_YIELD enum err tma_call_file(struct api *a, const struct tma_call *c, struct arena *mem, struct drive_file *out,
                                 struct api_result *r);
bool tma_is_absent(const struct api_result *r);

/* "/api/files/" id "/lock": any of them may be NULL; id is encoded. */
void tma_path(struct buf *path, const char *before, const char *id, const char *after);
void tma_query(struct buf *path, const char *name, const char *value); /* value NULL: nothing */
void tma_query_u(struct buf *path, const char *name, uint64_t value);

extern const struct api_dialect api_dialect_tma;
#endif
