#ifndef NET_HTTPC_SALVAGE_H
#define NET_HTTPC_SALVAGE_H
/* The answer to an upload, read off a connection that broke while the body was being sent. Layer 1, no state. */
#include "net/httpc.h"

/* False, with resp's status untouched, when raw holds no whole head of a final answer. */
bool httpc_salvage(struct sv raw, struct http_resp *resp);
#endif
