#ifndef SERVER_HTTP_HEAD_H
#define SERVER_HTTP_HEAD_H
/* One HTTP/1.x request head, parsed as its bytes come, and the chunked coding of its body: http-parser does the head,
 * this module adds what it leaves open (limits, Host, strict lengths, one transfer coding). Pure: fed from memory, so
 * that unit tests and fuzzing need no socket. The owner of http_parser.h for requests. Layer 3. */
#include "server/http/http.h"

#define HEAD_BYTES_MAX   (16 * 1024)
#define HEAD_HEADERS_MAX 100

struct head;
enum head_state { HEAD_MORE, HEAD_DONE, HEAD_BAD };
struct head_info { /* borrowed from the head */
    const char *method;
    struct sv path, query; /* origin-form; an absolute-form target is cut down to it */
    const struct http_header *headers;
    size_t n_headers;
    int64_t content_length; /* -1: chunked or none */
    bool chunked, keep_alive, http10, expect_100, expect_other;
};

struct head *head_new(void);
void head_free(struct head **h);
void head_reset(struct head *h); /* ready for the next request, memory kept */
/* Takes bytes of the head; *used tells how many. After HEAD_DONE the bytes behind them belong to the body. */
enum head_state head_feed(struct head *h, const char *p, size_t n, size_t *used);
bool head_started(const struct head *h); /* any byte but empty lines came */
const struct head_info *head_info(const struct head *h);
/* Why it is HEAD_BAD: the status to answer and a sentence. */
int head_problem_status(const struct head *h);
const char *head_problem(const struct head *h);
/* Decodes the chunked body: takes at most n bytes, writes at most n to dst. *end once its last byte (trailers included)
 * was taken. ERR_PROTO on a syntax error. */
enum err head_body(struct head *h, const char *p, size_t n, size_t *used, char *dst, size_t *got,
                   bool *end) WARN_UNUSED;
#endif
