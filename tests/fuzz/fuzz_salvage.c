/* The last bytes of a broken connection: whatever they are, the answer read from them lies within them. */
#include "fuzz.h"
#include "net/httpc_salvage.h"

#define BODY_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_resp r = {.headers = BUF_INIT(64 << 10), .body = BUF_INIT(BODY_MAX)};
    char *exact = mem_dup(data, size); /* an overrun is seen */
    bool found = httpc_salvage((struct sv){exact, size}, &r);
    mem_free(exact);
    MUST(found == (r.status != 0));
    MUST(!found || (r.status >= 200 && r.status <= 999));
    MUST(!found || (r.headers.len >= 4 && memcmp(r.headers.data + r.headers.len - 4, "\r\n\r\n", 4) == 0));
    MUST(!found || r.headers.len + r.body.len <= size);
    http_resp_done(&r);
    return 0;
}
