#include "server/objects/content_out.h"
#include "base/mem.h"
#include "server/objects/impl.h"

#include <stdio.h>
#include <string.h>

/* Reads a file's content, segment by segment. What fits into memory is fetched with one short call, so that a slow
 * client holds no thread; more comes through a pipe. */
struct content_reader {
    struct server *server;
    char key[CONTENT_KEY_MAX];
    struct seal *seal;
    struct seal_range range;
    uint64_t segments;  /* of the whole object */
    uint64_t done;      /* segments of the range that were opened */
    uint64_t left;      /* content bytes still to deliver */
    uint64_t raw_left;  /* sealed bytes still to take */
    bool first_waiting; /* the first piece was opened by content_open and not yet handed out */
    struct sv first;
    unsigned char *segment;
    struct buf whole; /* the sealed range, when it is small */
    size_t whole_at;
    bool piped;
    struct content_getting getting;
};

static MAY_YIELD enum err take_raw(struct content_reader *r, void *dst, size_t n)
{
    if (r->piped)
        return content_getting_read(&r->getting, dst, n);
    if (r->whole.len - r->whole_at < n)
        return ERR_WRONG;
    memcpy(dst, r->whole.data + r->whole_at, n);
    r->whole_at += n;
    return ERR_OK;
}

/* Opens the next segment of the range into r->segment. */
static MAY_YIELD enum err open_segment(struct content_reader *r, struct sv *piece, struct errinfo *ei)
{
    size_t n = r->raw_left < SEAL_SEALED_LEN ? (size_t)r->raw_left : SEAL_SEALED_LEN;
    uint64_t index = r->range.first + r->done;
    enum err e = take_raw(r, r->segment, n);
    if (e != ERR_OK)
        return err_set(ei, e, "object %s ended early", r->key);
    e = seal_segment_open(r->seal, index, index + 1 == r->segments, r->segment, n, ei);
    if (e != ERR_OK)
        return e;
    size_t skip = r->done == 0 ? r->range.skip : 0, have = n - SEAL_TAG_LEN - skip;
    r->done++;
    r->raw_left -= n;
    if (have > r->left)
        have = (size_t)r->left;
    r->left -= have;
    *piece = (struct sv){(char *)r->segment + skip, have};
    return ERR_OK;
}

/* The pipe ended before its time: says what the store said, not just that it ended. */
static MAY_YIELD enum err why_ended(struct content_reader *r, struct errinfo *ei)
{
    r->piped = false;
    enum err e = content_getting_end(&r->getting, ei);
    return e == ERR_OK ? err_set(ei, ERR_WRONG, "object %s is shorter than its file", r->key) : e;
}

static MAY_YIELD enum err fetch_small(struct content_reader *r, uint64_t offset, uint64_t length, struct errinfo *ei)
{
    struct blob *blob = NULL;
    enum err e = content_blob(r->server, &blob, ei);
    if (e == ERR_OK)
        e = content_store_err(blob_get(blob, r->key, offset, length, &r->whole, ei), ei);
    return e;
}

/* The header comes along when the range starts at the front; else it is a call of its own. */
static MAY_YIELD enum err fetch(struct content_reader *r, unsigned char header[SEAL_HEADER_LEN], struct errinfo *ei)
{
    bool front = r->range.first == 0;
    uint64_t offset = r->range.sealed_offset, length = r->range.sealed_length;
    enum err e = ERR_OK;
    if (front) {
        offset -= SEAL_HEADER_LEN;
        length += SEAL_HEADER_LEN;
    } else {
        e = fetch_small(r, 0, SEAL_HEADER_LEN, ei);
        if (e == ERR_OK)
            e = take_raw(r, header, SEAL_HEADER_LEN);
    }
    if (e != ERR_OK)
        return e;
    if (length <= CONTENT_MEMORY_LEN) {
        e = fetch_small(r, offset, length, ei);
    } else {
        content_getting_start(&r->getting, r->server, r->key, offset, length);
        r->piped = true;
    }
    if (e == ERR_OK && front)
        e = take_raw(r, header, SEAL_HEADER_LEN);
    return e == ERR_STORE && r->piped ? why_ended(r, ei) : e;
}

enum err content_open(struct server *s, const char *key, uint64_t size, uint64_t offset, uint64_t length,
                      struct content_reader **out, struct errinfo *ei)
{
    unsigned char header[SEAL_HEADER_LEN];
    struct content_reader *r = mem_zalloc(sizeof(*r));
    r->server = s;
    snprintf(r->key, sizeof(r->key), "%s", key);
    r->range =
        size == 0 ? (struct seal_range){0, 1, SEAL_HEADER_LEN, SEAL_TAG_LEN, 0} : seal_range_of(size, offset, length);
    r->segments = seal_segments(size);
    r->left = length;
    r->raw_left = r->range.sealed_length;
    r->segment = mem_alloc(SEAL_SEALED_LEN);
    buf_init(&r->whole, SEAL_HEADER_LEN + CONTENT_MEMORY_LEN);
    enum err e = fetch(r, header, ei);
    if (e == ERR_WRONG)
        e = err_set(ei, ERR_WRONG, "object %s is shorter than its file", key);
    if (e == ERR_OK)
        e = seal_open(&r->seal, &s->content->key, header, ei);
    if (e == ERR_OK)
        e = content_next(r, &r->first, ei);
    if (e != ERR_OK) {
        content_close(&r);
        return e;
    }
    r->first_waiting = true;
    *out = r;
    return ERR_OK;
}

enum err content_next(struct content_reader *r, struct sv *piece, struct errinfo *ei)
{
    if (r->first_waiting) {
        r->first_waiting = false;
        *piece = r->first;
        return ERR_OK;
    }
    *piece = (struct sv){"", 0};
    if (r->done == r->range.count)
        return ERR_OK;
    enum err e = open_segment(r, piece, ei);
    if (e != ERR_STORE || !r->piped)
        return e;
    /* The store's answer broke off, perhaps because the client paused for so long that the store gave us up: once for
     * each piece the rest is asked for anew. */
    e = why_ended(r, ei);
    if (e != ERR_STORE)
        return e;
    content_getting_start(&r->getting, r->server, r->key, r->range.sealed_offset + r->done * SEAL_SEALED_LEN,
                          r->raw_left);
    r->piped = true;
    e = open_segment(r, piece, ei);
    return e == ERR_STORE ? why_ended(r, ei) : e;
}

void content_close(struct content_reader **reader)
{
    struct content_reader *r = *reader;
    if (!r)
        return;
    if (r->piped) {
        enum err e = content_getting_end(&r->getting, NULL);
        (void)e; /* an early end is no failure */
    }
    seal_free(&r->seal);
    mem_free(r->segment);
    buf_done(&r->whole);
    mem_free(r);
    *reader = NULL;
}
