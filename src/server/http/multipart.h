#ifndef SERVER_HTTP_MULTIPART_H
#define SERVER_HTTP_MULTIPART_H
/* multipart/form-data (RFC 7578, RFC 2046 5.1), streamed: parts in order, content in pieces, memory bounded whatever
 * the body. Names: in name and filename `%22`, `%0D` and `%0A` (any case of the letters) are decoded, as browsers
 * encode just these (WHATWG HTML, multipart/form-data encoding); every other '%' and every backslash stands for itself,
 * and a quote ends the value. So a literal "%22" in a name cannot be told from a quote and arrives as one. Directories
 * ("a/b", not "a\b") are stripped from filename. filename* is ignored (RFC 7578 4.2 forbids it). Layer 3. */
#include "server/http/http.h"

struct multipart;
struct multipart_part {
    struct sv name, filename, type; /* in the request's arena, NUL-terminated */
    bool has_filename;
};
/* ERR_PARSE: not multipart/form-data, or no usable boundary. Freed with the request. */
MAY_YIELD enum err multipart_open(struct request *r, struct multipart **out, struct errinfo *ei) WARN_UNUSED;
/* The next part, what is left of the current one being dropped; *end after the last. Errors as in req_read, and
 * ERR_PARSE, ERR_LIMIT (part head above 16 KiB, more than 20,000 parts) with a sentence. */
MAY_YIELD enum err multipart_next(struct multipart *m, struct multipart_part *out, bool *end,
                                  struct errinfo *ei) WARN_UNUSED;
/* The part's content; *got 0 at its end. A body that ends before the closing boundary is ERR_PARSE, never a short part.
 */
MAY_YIELD enum err multipart_read(struct multipart *m, char *dst, size_t cap, size_t *got,
                                  struct errinfo *ei) WARN_UNUSED;
/* The whole part as text, for fields: ERR_LIMIT above max. */
MAY_YIELD enum err multipart_text(struct multipart *m, size_t max, struct sv *out, struct errinfo *ei) WARN_UNUSED;
/* How many content bytes the current part holds if it is the last and the body ends with "CRLF--boundary--CRLF", as
 * clients write it: exact for them, known from Content-Length before the content is read; -1 when chunked. A check, not
 * a promise: what multipart_read delivers decides. */
int64_t multipart_bytes_left(const struct multipart *m);

/* The parser itself, fed from memory: what the above and the fuzz target share. */
enum mp_event { MP_MORE, MP_PART, MP_DATA, MP_PART_END, MP_END, MP_ERROR };
struct mp_parser;
struct mp_parser *mp_new(struct sv boundary); /* 1 to 70 bytes */
void mp_free(struct mp_parser **p);
/* Takes bytes from *in (advancing it) until something happened. MP_PART: heads are in mp_head; MP_DATA: *data borrows
 * from *in's memory or the parser's, until the next call; MP_ERROR: mp_problem tells. */
enum mp_event mp_feed(struct mp_parser *p, struct sv *in, struct sv *data);
struct sv mp_head(const struct mp_parser *p); /* the part's header lines, each ended by CRLF */
const char *mp_problem(const struct mp_parser *p);
enum err mp_problem_code(const struct mp_parser *p);
size_t mp_tail_len(const struct mp_parser *p); /* length of CRLF--boundary--CRLF */
/* Takes a part's header lines apart, into mem. False when Content-Disposition is missing or not form-data. */
bool mp_part_parse(struct arena *mem, struct sv head, struct multipart_part *out);
/* The boundary parameter of a Content-Type; false when it is no multipart/form-data with one. */
bool mp_boundary(struct sv content_type, struct sv *out);
#endif
