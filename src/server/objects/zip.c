#include "server/objects/zip.h"

#include "base/mem.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define DIRECTORY_MAX (64u << 20)
#define BLOCK_LEN     32768 /* of a stored deflate block: at most 65,535 */
/* Contents from here on get 8-byte sizes, the blocks' overhead included. The unit test sets it low. */
#ifndef LARGE
#define LARGE (UINT64_C(3) << 30)
#endif
#define LIMIT32 UINT64_C(0xffffffff)
#define LIMIT16 UINT64_C(0xffff)

enum { SIG_LOCAL = 0x04034b50, SIG_DESCRIPTOR = 0x08074b50, SIG_CENTRAL = 0x02014b50 };
enum { SIG_END64 = 0x06064b50, SIG_LOCATOR64 = 0x07064b50, SIG_END = 0x06054b50 };
enum { VERSION_20 = 20, VERSION_45 = 45, MADE_BY_UNIX = 3 << 8, FLAG_DESCRIPTOR = 1 << 3, FLAG_UTF8 = 1 << 11 };
enum { METHOD_STORED = 0, METHOD_DEFLATED = 8, EXTRA_ZIP64 = 0x0001, EXTRA_TIMESTAMP = 0x5455 };

struct zip {
    struct buf directory;
    uint64_t offset, entries; /* bytes sent so far; entries closed */
    /* the entry being written */
    char *name;
    uint64_t start, size, packed, taken; /* packed: bytes of the deflate stream so far; taken: of the content */
    struct wall modified;
    bool folder;
    uint32_t crc;
};

/* CRC-32 (reflected 0xedb88320), eight bytes a step: Kounavis and Berry's slicing. */
static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        crc_table[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
        for (int i = 0; i < 256; i++)
            crc_table[t][i] = crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 0xff];
}

static uint32_t crc_update(uint32_t crc, const unsigned char *p, size_t n)
{
    crc = ~crc;
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = crc_table[7][low & 0xff] ^ crc_table[6][low >> 8 & 0xff] ^ crc_table[5][low >> 16 & 0xff] ^
              crc_table[4][low >> 24] ^ crc_table[3][p[4]] ^ crc_table[2][p[5]] ^ crc_table[1][p[6]] ^
              crc_table[0][p[7]];
    }
    for (; n > 0; p++, n--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 0xff];
    return ~crc;
}

struct zip *zip_new(void)
{
    pthread_once(&crc_once, crc_make_tables);
    struct zip *z = mem_zalloc(sizeof(*z));
    buf_init(&z->directory, DIRECTORY_MAX);
    return z;
}

void zip_free(struct zip **z)
{
    if (!*z)
        return;
    buf_done(&(*z)->directory);
    mem_free((*z)->name);
    mem_free(*z);
    *z = NULL;
}

/* A record under construction: little-endian fields behind each other. The longest holds 56 bytes and the extras. */
struct record {
    unsigned char bytes[128];
    size_t n;
};

static void put(struct record *r, uint64_t v, int width)
{
    for (int i = 0; i < width; i++)
        r->bytes[r->n++] = (unsigned char)(v >> (8 * i));
}

static void put16(struct record *r, uint64_t v)
{
    put(r, v, 2);
}

static void put32(struct record *r, uint64_t v)
{
    put(r, v, 4);
}

static void put64(struct record *r, uint64_t v)
{
    put(r, v, 8);
}

static uint64_t capped(uint64_t v, uint64_t limit)
{
    return v < limit ? v : limit;
}

/* DOS date and time (two seconds fine, 1980 to 2107); the exact second stands in the extra field. */
static void put_dos_time(struct record *r, struct wall t)
{
    time_t s = (time_t)(t.us / US_PER_S);
    struct tm tm;
    if (!gmtime_r(&s, &tm) || tm.tm_year < 80 || tm.tm_year > 207)
        tm = (struct tm){.tm_year = 80, .tm_mday = 1};
    put16(r, (unsigned)(tm.tm_hour << 11 | tm.tm_min << 5 | tm.tm_sec / 2));
    put16(r, (unsigned)((tm.tm_year - 80) << 9 | (tm.tm_mon + 1) << 5 | tm.tm_mday));
}

static void put_timestamp(struct record *r, struct wall t)
{
    int64_t s = t.us / US_PER_S;
    bool fits = s >= INT32_MIN && s <= INT32_MAX;
    put16(r, EXTRA_TIMESTAMP);
    put16(r, 5);
    put(r, 1, 1); /* the modification time only */
    put32(r, (uint64_t)(fits ? s : 0));
}

static bool is_large(const struct zip *z)
{
    return z->size >= LARGE;
}

static unsigned flags_of(const struct zip *z)
{
    return FLAG_UTF8 | (z->folder ? 0 : FLAG_DESCRIPTOR);
}

static unsigned method_of(const struct zip *z)
{
    return z->folder ? METHOD_STORED : METHOD_DEFLATED;
}

static enum err send_record(struct zip *z, const struct record *r, struct buf *out)
{
    z->offset += r->n;
    return buf_append(out, r->bytes, r->n);
}

static enum err send_local_header(struct zip *z, struct buf *out)
{
    struct record r = {.n = 0}, extra = {.n = 0};
    if (is_large(z)) { /* announces 8-byte sizes in the descriptor */
        put16(&extra, EXTRA_ZIP64);
        put16(&extra, 16);
        put64(&extra, 0);
        put64(&extra, 0);
    }
    put_timestamp(&extra, z->modified);
    put32(&r, SIG_LOCAL);
    put16(&r, is_large(z) ? VERSION_45 : VERSION_20);
    put16(&r, flags_of(z));
    put16(&r, method_of(z));
    put_dos_time(&r, z->modified);
    put32(&r, 0); /* the CRC and the sizes follow the content */
    put32(&r, is_large(z) ? LIMIT32 : 0);
    put32(&r, is_large(z) ? LIMIT32 : 0);
    put16(&r, strlen(z->name));
    put16(&r, extra.n);
    enum err e = send_record(z, &r, out);
    if (e == ERR_OK)
        e = buf_append_str(out, z->name);
    z->offset += strlen(z->name);
    return e == ERR_OK ? send_record(z, &extra, out) : e;
}

enum err zip_begin(struct zip *z, const struct zip_entry *entry, struct buf *out)
{
    mem_free(z->name); /* of an entry given up halfway */
    z->name = NULL;
    size_t n = strlen(entry->name);
    if (n >= LIMIT16)
        return ERR_LIMIT;
    z->name = mem_alloc(n + 2);
    memcpy(z->name, entry->name, n + 1);
    if (entry->folder && (n == 0 || z->name[n - 1] != '/'))
        memcpy(z->name + n, "/", 2);
    z->start = z->offset;
    z->folder = entry->folder;
    z->size = z->folder ? 0 : entry->size;
    z->packed = z->taken = 0;
    z->modified = entry->modified;
    z->crc = 0;
    return send_local_header(z, out);
}

/* RFC 1951, 3.2.4: a stored block that starts at a byte's border, as here they all do. */
static enum err send_block(struct zip *z, const unsigned char *p, size_t n, bool last, struct buf *out)
{
    struct record r = {.n = 0};
    put(&r, last, 1);
    put16(&r, n);
    put16(&r, ~n);
    z->packed += r.n + n;
    z->offset += n;
    enum err e = send_record(z, &r, out);
    return e == ERR_OK && n > 0 ? buf_append(out, p, n) : e;
}

enum err zip_data(struct zip *z, const void *p, size_t n, struct buf *out)
{
    if (n > z->size - z->taken)
        return ERR_WRONG;
    z->crc = crc_update(z->crc, p, n);
    for (const unsigned char *at = p; n > 0;) {
        size_t take = n < BLOCK_LEN ? n : BLOCK_LEN;
        z->taken += take;
        enum err e = send_block(z, at, take, z->taken == z->size, out);
        if (e != ERR_OK)
            return e;
        at += take;
        n -= take;
    }
    return ERR_OK;
}

static enum err send_descriptor(struct zip *z, struct buf *out)
{
    struct record r = {.n = 0};
    int width = is_large(z) ? 8 : 4;
    put32(&r, SIG_DESCRIPTOR);
    put32(&r, z->crc);
    put(&r, z->packed, width);
    put(&r, z->size, width);
    return send_record(z, &r, out);
}

static enum err add_to_directory(struct zip *z)
{
    struct record r = {.n = 0}, extra = {.n = 0};
    bool wide = is_large(z) || z->start >= LIMIT32;
    if (wide) { /* APPNOTE 4.5.3: only the fields that are all ones below, in this order */
        put16(&extra, EXTRA_ZIP64);
        put16(&extra, is_large(z) ? 24 : 8);
        if (is_large(z)) {
            put64(&extra, z->size);
            put64(&extra, z->packed);
        }
        put64(&extra, z->start);
    }
    put_timestamp(&extra, z->modified);
    put32(&r, SIG_CENTRAL);
    put16(&r, MADE_BY_UNIX | VERSION_45);
    put16(&r, wide ? VERSION_45 : VERSION_20);
    put16(&r, flags_of(z));
    put16(&r, method_of(z));
    put_dos_time(&r, z->modified);
    put32(&r, z->crc);
    put32(&r, is_large(z) ? LIMIT32 : z->packed);
    put32(&r, is_large(z) ? LIMIT32 : z->size);
    put16(&r, strlen(z->name));
    put16(&r, extra.n);
    put16(&r, 0); /* comment */
    put16(&r, 0); /* disk */
    put16(&r, 0); /* internal attributes */
    put32(&r, (z->folder ? UINT64_C(040755) : UINT64_C(0100644)) << 16 | (z->folder ? 0x10 : 0));
    put32(&r, wide ? LIMIT32 : z->start);
    enum err e = buf_append(&z->directory, r.bytes, r.n);
    if (e == ERR_OK)
        e = buf_append_str(&z->directory, z->name);
    return e == ERR_OK ? buf_append(&z->directory, extra.bytes, extra.n) : e;
}

enum err zip_end(struct zip *z, struct buf *out)
{
    enum err e = z->taken == z->size ? ERR_OK : ERR_WRONG;
    if (e == ERR_OK && !z->folder && z->size == 0)
        e = send_block(z, NULL, 0, true, out);
    if (e == ERR_OK && !z->folder)
        e = send_descriptor(z, out);
    if (e == ERR_OK)
        e = add_to_directory(z);
    z->entries++;
    MEM_FREE(z->name);
    return e;
}

static void put_end64(struct record *r, const struct zip *z, uint64_t length)
{
    put32(r, SIG_END64);
    put64(r, 44); /* bytes of this record after this field */
    put16(r, MADE_BY_UNIX | VERSION_45);
    put16(r, VERSION_45);
    put32(r, 0);
    put32(r, 0);
    put64(r, z->entries);
    put64(r, z->entries);
    put64(r, length);
    put64(r, z->offset);
    put32(r, SIG_LOCATOR64);
    put32(r, 0);
    put64(r, z->offset + length);
    put32(r, 1);
}

enum err zip_finish(struct zip *z, const struct buf **directory)
{
    struct record r = {.n = 0};
    uint64_t length = z->directory.len;
    if (z->entries >= LIMIT16 || z->offset >= LIMIT32 || length >= LIMIT32)
        put_end64(&r, z, length);
    put32(&r, SIG_END);
    put16(&r, 0);
    put16(&r, 0);
    put16(&r, capped(z->entries, LIMIT16));
    put16(&r, capped(z->entries, LIMIT16));
    put32(&r, capped(length, LIMIT32));
    put32(&r, capped(z->offset, LIMIT32));
    put16(&r, 0);
    *directory = &z->directory;
    return buf_append(&z->directory, r.bytes, r.n);
}
