#ifndef SERVER_HTTP_REPLY_H
#define SERVER_HTTP_REPLY_H
/* Answers. Each request is answered exactly once; an unanswered one becomes a 500 and is logged. Layer 3. */
#include "base/buf.h"
#include "base/str.h"
#include "net/coro.h"

struct request;

/* Before the status. Names and values must hold no CR or LF: such a header is dropped and logged. */
void reply_header(struct request *r, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
MAY_YIELD void reply_json(struct request *r, int status, const struct buf *json);
/* {"message": sentence, "error": code}; code NULL leaves "error" out. */
MAY_YIELD void reply_message(struct request *r, int status, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* A failed call as an answer: ERR_DB_GONE, ERR_KV and ERR_STORE are 503 with a sentence, anything else a logged 500. */
MAY_YIELD void reply_error(struct request *r, const struct errinfo *ei);
/* A failed req_read as an answer: 400, 408, 413, or 499 for the log when the client left. */
MAY_YIELD void reply_body_error(struct request *r, enum err err);
MAY_YIELD void reply_text(struct request *r, int status, const char *content_type, struct sv body);
MAY_YIELD void reply_empty(struct request *r, int status);
/* A streamed body: length -1 is chunked. reply_write fails with ERR_CLOSED when the client left: stop then. */
MAY_YIELD enum err reply_begin(struct request *r, int status, const char *content_type, int64_t length) WARN_UNUSED;
MAY_YIELD enum err reply_write(struct request *r, const void *p, size_t n) WARN_UNUSED;
/* complete false cuts the connection, so that the client notices; so do fewer bytes than promised. */
MAY_YIELD void reply_end(struct request *r, bool complete);
#endif
