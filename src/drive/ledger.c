/* The ledger's file: a 32-byte head, then records of u16 length, payload, u32 CRC-32 over both. A payload is kind and
 * operation, a byte each, a mask of the fields that follow, and those: numbers as base-128 varints, times as
 * differences from the head's clocks, so that a record needs no other one to be read.
 *
 * Writing stays on the loop's thread: a 64 KiB append to the page cache costs some 20 us a few times a second, which is
 * less than handing it to a thread would. */
#include "drive/ledger.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC       "DSLEDGER"
#define MAGIC_LEN   8
#define HEAD_LEN    32
#define BUFFER      (64u << 10)
#define VARINT_MAX  10
#define PAYLOAD_MIN 3
#define PAYLOAD_MAX (2 + (1 + N_FIELDS) * VARINT_MAX + 5 * (DRIVE_ID_MAX + 1) + 2 * (DRIVE_NAME_MAX + 1))
#define RECORD_MAX  (2 + PAYLOAD_MAX + 4)
#define KIND_END    0          /* the last record: seq is how many stand before it */
#define SALVAGE_MAX (1u << 20) /* so far records are looked for behind a damage */

struct ledger {
    int fd;
    size_t len;
    uint64_t records, buffered; /* buffered: of records, those not yet written */
    int64_t mono_us, offset_us; /* of the head: its time, and wall clock less monotonic */
    struct errinfo error;       /* the first one */
    char path[512];
    unsigned char buf[BUFFER];
};

/* CRC-32 (ISO 3309, reflected 0x04C11DB7), by nibbles: a table of 16 words. */
static uint32_t crc32_of(const unsigned char *p, size_t n)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc = table[(crc ^ p[i]) & 15] ^ (crc >> 4);
        crc = table[(crc ^ (p[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

/* ---- fields ---- */

enum how { NUMBER, FIXED, TEXT }; /* FIXED: eight bytes, for hashes, which a varint would make longer */
/* The fields in file order, one bit of the mask each: one table for writing and reading. New ones go to the end. */
static const struct field {
    uint16_t offset, size;
    enum how how;
} fields[] = {
#define FIELD(f, how)                                                                                                  \
    {                                                                                                                  \
        offsetof(struct ledger_record, f), sizeof(((struct ledger_record *)0)->f), how                                 \
    }
    FIELD(outcome, NUMBER),     FIELD(flags, NUMBER),      FIELD(status, NUMBER),  FIELD(app, NUMBER),
    FIELD(login, NUMBER),       FIELD(seq, NUMBER),        FIELD(mono_us, NUMBER), FIELD(wall_us, NUMBER),
    FIELD(file_id, TEXT),       FIELD(parent_id, TEXT),    FIELD(other_id, TEXT),  FIELD(version_before, TEXT),
    FIELD(version_after, TEXT), FIELD(content_key, FIXED), FIELD(revision, FIXED), FIELD(parent_revision, FIXED),
    FIELD(size, NUMBER),        FIELD(name, TEXT),         FIELD(old_name, TEXT),
#undef FIELD
};
#define N_FIELDS ARRAY_LEN(fields)

static unsigned char *put(unsigned char *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *p++ = (unsigned char)(v >> (8 * i));
    return p;
}

static uint64_t get(const unsigned char *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static unsigned char *put_varint(unsigned char *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (unsigned char)(v | 0x80);
    *p++ = (unsigned char)v;
    return p;
}

/* False when it does not end before end, or is no 64-bit number. */
static bool get_varint(const unsigned char **p, const unsigned char *end, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char c = *(*p)++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *out = v;
            return shift < 63 || c <= 1;
        }
    }
    return false;
}

/* Small numbers of either sign become small ones without: 0 -1 1 -2 … */
static uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)((v >> 1) ^ (~(v & 1) + 1));
}

static uint64_t load(const void *p, size_t size)
{
    uint64_t v = 0;
    memcpy(&v, p, size);
    return v;
}

/* Little-endian machines only, as load() reads a field of any width by its first bytes. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the ledger's fields are read in place");

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* The clocks as they stand in the file: small as long as nobody sets the wall clock. */
static void clocks_to_file(struct ledger_record *r, int64_t mono_us, int64_t offset_us)
{
    r->wall_us = (int64_t)zigzag(minus(minus(r->wall_us, r->mono_us), offset_us));
    r->mono_us = (int64_t)zigzag(minus(r->mono_us, mono_us));
}

static void clocks_from_file(struct ledger_record *r, int64_t mono_us, int64_t offset_us)
{
    r->mono_us = plus(unzigzag((uint64_t)r->mono_us), mono_us);
    r->wall_us = plus(plus(unzigzag((uint64_t)r->wall_us), offset_us), r->mono_us);
}

static unsigned char *put_field(unsigned char *p, const struct field *f, const void *at)
{
    if (f->how == TEXT) {
        size_t n = strnlen(at, f->size - 1u);
        *p++ = (unsigned char)n;
        memcpy(p, at, n);
        return p + n;
    }
    uint64_t v = load(at, f->size);
    return f->how == FIXED ? put(p, v, 8) : put_varint(p, v);
}

static size_t encode(const struct ledger_record *r, unsigned char *out)
{
    unsigned char *p = out + 2;
    uint64_t mask = 0;
    const char *base = (const char *)r;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (fields[i].how == TEXT ? base[fields[i].offset] != '\0' : load(base + fields[i].offset, fields[i].size) != 0)
            mask |= UINT64_C(1) << i;
    *p++ = r->kind;
    *p++ = r->op;
    p = put_varint(p, mask);
    for (size_t i = 0; i < N_FIELDS; i++)
        if (mask >> i & 1)
            p = put_field(p, &fields[i], base + fields[i].offset);
    put(out, (uint64_t)(p - out - 2), 2);
    return (size_t)(put(p, crc32_of(out, (size_t)(p - out)), 4) - out);
}

static bool get_field(const unsigned char **p, const unsigned char *end, const struct field *f, void *at)
{
    uint64_t v;
    if (f->how == TEXT) {
        size_t n = *p < end ? *(*p)++ : SIZE_MAX;
        if (n >= f->size || n > (size_t)(end - *p))
            return false;
        memcpy(at, *p, n);
        *p += n;
        return true;
    }
    if (f->how == FIXED) {
        if (end - *p < 8)
            return false;
        v = get(*p, 8);
        *p += 8;
    } else if (!get_varint(p, end, &v)) {
        return false;
    }
    if (f->size < 8 && v >> (8 * f->size) != 0)
        return false;
    memcpy(at, &v, f->size);
    return true;
}

/* False when the payload does not add up: then the checksum held by chance, or a newer version wrote it. */
static bool decode(const unsigned char *p, size_t n, struct ledger_record *r)
{
    const unsigned char *end = p + n;
    uint64_t mask;
    memset(r, 0, sizeof(*r));
    r->kind = *p++;
    r->op = *p++;
    if (!get_varint(&p, end, &mask) || mask >> N_FIELDS != 0)
        return false;
    for (size_t i = 0; i < N_FIELDS; i++)
        if ((mask >> i & 1) && !get_field(&p, end, &fields[i], (char *)r + fields[i].offset))
            return false;
    return p == end;
}

uint64_t ledger_entry_hash(const char *id, const char *name)
{
    return rng_mix64(hash_str(id) + 3 * hash_str(name));
}

uint64_t ledger_version_hash(const char *id, uint64_t version)
{
    return rng_mix64(hash_str(id) + 5 * version);
}

enum err ledger_make_folder(const char *dir, struct errinfo *ei)
{
    char path[512];
    if (!str_fit(path, sizeof(path) - 16, dir) || dir[0] == '\0')
        return err_set(ei, ERR_USAGE, "the run folder's name is empty or too long");
    for (char *p = path + 1;; p++) {
        char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return err_sys(ei, ERR_IO, "cannot make the run folder %s", path);
        if (c == '\0')
            return ERR_OK;
        *p = c;
    }
}

/* Writes all or keeps the first error. */
static void write_out(struct ledger *l, const unsigned char *p, size_t n)
{
    if (l->error.code == ERR_OK && !file_write_all(l->fd, (struct sv){(const char *)p, n}))
        err_sys(&l->error, ERR_IO, "cannot write the ledger %s", l->path);
}

static void flush(struct ledger *l)
{
    write_out(l, l->buf, l->len);
    if (l->error.code != ERR_OK)
        l->records -= l->buffered;
    l->len = 0;
    l->buffered = 0;
}

enum err ledger_create(struct ledger **out, const char *dir, struct errinfo *ei)
{
    enum err e = ledger_make_folder(dir, ei);
    if (e != ERR_OK)
        return e;
    struct ledger *l = mem_zalloc(sizeof(*l));
    snprintf(l->path, sizeof(l->path), "%s/ledger.bin", dir);
    l->fd = open(l->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (l->fd < 0) {
        e = errno == EEXIST ? err_set(ei, ERR_IO, "%s exists already: give another --run-dir", l->path)
                            : err_sys(ei, ERR_IO, "cannot create the ledger %s", l->path);
        mem_free(l);
        return e;
    }
    l->mono_us = mono_now().us;
    l->offset_us = wall_now().us - l->mono_us;
    memcpy(l->buf, MAGIC, MAGIC_LEN);
    put(l->buf + MAGIC_LEN, LEDGER_VERSION, 4);
    put(l->buf + MAGIC_LEN + 8, (uint64_t)l->mono_us, 8);
    put(l->buf + MAGIC_LEN + 16, (uint64_t)l->offset_us, 8);
    l->len = HEAD_LEN;
    e = ledger_flush(l, ei); /* a disk that is full now is told before the run */
    if (e != ERR_OK) {
        unlink(l->path);
        close(l->fd);
        mem_free(l);
        return e;
    }
    *out = l;
    return ERR_OK;
}

static void append(struct ledger *l, const struct ledger_record *r)
{
    if (sizeof(l->buf) - l->len < RECORD_MAX)
        flush(l);
    l->len += encode(r, l->buf + l->len);
}

void ledger_append(struct ledger *l, const struct ledger_record *r)
{
    struct ledger_record shifted = *r;
    if (l->error.code != ERR_OK)
        return;
    clocks_to_file(&shifted, l->mono_us, l->offset_us);
    append(l, &shifted);
    if (l->error.code != ERR_OK)
        return;
    l->records++;
    l->buffered++;
}

enum err ledger_flush(struct ledger *l, struct errinfo *ei)
{
    if (l->error.code == ERR_OK)
        flush(l);
    return ledger_error(l, ei);
}

enum err ledger_error(const struct ledger *l, struct errinfo *ei)
{
    if (l->error.code != ERR_OK && ei)
        *ei = l->error;
    return l->error.code;
}

uint64_t ledger_records(const struct ledger *l)
{
    return l->records;
}

enum err ledger_close(struct ledger **lp, struct errinfo *ei)
{
    struct ledger *l = *lp;
    *lp = NULL;
    append(l, &(struct ledger_record){.kind = KIND_END, .seq = l->records});
    enum err e = ledger_flush(l, ei);
    if (close(l->fd) != 0 && e == ERR_OK)
        e = err_sys(ei, ERR_IO, "cannot close the ledger %s", l->path);
    mem_free(l);
    return e;
}

/* ---- reading ---- */

struct reader {
    FILE *f;
    int64_t mono_us, offset_us;
    unsigned char raw[RECORD_MAX];
    size_t have; /* of raw, after a record that could not be read */
};

/* The record at the front of p, of which there are n bytes; its length, 0 when there is none. */
static size_t record_at(const unsigned char *p, size_t n, struct ledger_record *r)
{
    size_t len = n >= 2 ? (size_t)get(p, 2) : 0;
    if (len < PAYLOAD_MIN || len > PAYLOAD_MAX || n < 2 + len + 4)
        return 0;
    return get(p + 2 + len, 4) == crc32_of(p, 2 + len) && decode(p + 2, len, r) ? 2 + len + 4 : 0;
}

/* The next record's length; 0 at the end of what can be trusted, and then rd->have bytes of something else follow. */
static size_t read_record(struct reader *rd, struct ledger_record *r)
{
    rd->have = fread(rd->raw, 1, 2, rd->f);
    size_t len = rd->have == 2 ? (size_t)get(rd->raw, 2) : 0;
    if (len < PAYLOAD_MIN || len > PAYLOAD_MAX)
        return 0;
    rd->have += fread(rd->raw + 2, 1, len + 4, rd->f);
    return record_at(rd->raw, rd->have, r);
}

/* Whether any record stands behind the byte where reading ended. */
static bool records_follow(struct reader *rd, uint64_t at)
{
    unsigned char *p = mem_alloc(SALVAGE_MAX);
    struct ledger_record r;
    bool found = false;
    if (fseek(rd->f, (long)(at + 1), SEEK_SET) == 0) {
        size_t n = fread(p, 1, SALVAGE_MAX, rd->f);
        for (size_t i = 0; i < n && !found; i++)
            found = record_at(p + i, n - i, &r) > 0;
    }
    mem_free(p);
    return found;
}

static enum err read_head(struct reader *rd, const char *path, struct errinfo *ei)
{
    size_t n = fread(rd->raw, 1, HEAD_LEN, rd->f);
    if (memcmp(rd->raw, MAGIC, n < MAGIC_LEN ? n : MAGIC_LEN) != 0)
        return err_set(ei, ERR_ENV, "%s is no ledger", path);
    if (n < HEAD_LEN)
        return err_set(ei, ERR_ENV, "the ledger %s is cut short: it ends within its head", path);
    if (get(rd->raw + MAGIC_LEN, 4) != LEDGER_VERSION)
        return err_set(ei, ERR_ENV, "%s is a ledger of another version", path);
    rd->mono_us = (int64_t)get(rd->raw + MAGIC_LEN + 8, 8);
    rd->offset_us = (int64_t)get(rd->raw + MAGIC_LEN + 16, 8);
    return ERR_OK;
}

/* The records up to the first that is none, or until fn has enough. */
static void read_records(struct reader *rd, bool (*fn)(void *arg, const struct ledger_record *r), void *arg,
                         struct ledger_end *end)
{
    struct ledger_record r;
    size_t len;
    while ((len = read_record(rd, &r)) > 0) {
        end->at += len;
        if (r.kind == KIND_END) { /* nothing may be missing before it, nothing stand behind it */
            bool last = fread(rd->raw, 1, 1, rd->f) == 0;
            end->tail = last && r.seq == end->records ? LEDGER_WHOLE : LEDGER_DAMAGED;
            return;
        }
        clocks_from_file(&r, rd->mono_us, rd->offset_us);
        end->records++;
        if (!fn(arg, &r))
            return;
    }
    if (rd->have > 0)
        end->tail = records_follow(rd, end->at) ? LEDGER_DAMAGED : LEDGER_TORN;
}

enum err ledger_read(const char *dir, bool (*fn)(void *arg, const struct ledger_record *r), void *arg,
                     struct ledger_end *end, struct errinfo *ei)
{
    char path[512];
    *end = (struct ledger_end){.tail = LEDGER_ENDLESS, .at = HEAD_LEN};
    if (snprintf(path, sizeof(path), "%s/ledger.bin", dir) >= (int)sizeof(path))
        return err_set(ei, ERR_USAGE, "the run folder's name is too long");
    struct reader *rd = mem_zalloc(sizeof(*rd));
    enum err e = ERR_OK;
    rd->f = fopen(path, "rbe");
    if (!rd->f) {
        e = err_sys(ei, ERR_IO, "cannot open the ledger %s", path);
        goto out;
    }
    e = read_head(rd, path, ei);
    if (e == ERR_OK)
        read_records(rd, fn, arg, end);
    if (e == ERR_OK && ferror(rd->f))
        e = err_sys(ei, ERR_IO, "cannot read the ledger %s", path);
out:
    if (rd->f)
        fclose(rd->f);
    mem_free(rd);
    return e;
}
