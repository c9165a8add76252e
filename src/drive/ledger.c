/* The ledger's file: a 16-byte head (magic, version, zero), then records of u16 length, payload, u32 CRC-32 over both.
 * Writing stays on the loop's thread: a 64 KiB append to the page cache costs some 20 us a few times a second, which is
 * less than handing it to a thread would. */
#include "drive/ledger.h"
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
#define HEAD_LEN    16
#define BUFFER      (64u << 10)
#define FIXED_LEN   70
#define N_STRINGS   6
#define PAYLOAD_MAX (FIXED_LEN + N_STRINGS * 256)
#define RECORD_MAX  (2 + PAYLOAD_MAX + 4)

struct ledger {
    int fd;
    size_t len;
    uint64_t records, buffered; /* buffered: of records, those not yet written */
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

static unsigned char *put(unsigned char *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *p++ = (unsigned char)(v >> (8 * i));
    return p;
}

static uint64_t get(const unsigned char **p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t) * (*p)++ << (8 * i);
    return v;
}

/* The string fields in file order: one table for writing and reading. */
static const struct {
    size_t offset, size;
} strings[N_STRINGS] = {
#define FIELD(f)                                                                                                       \
    {                                                                                                                  \
        offsetof(struct ledger_record, f), sizeof(((struct ledger_record *)0)->f)                                      \
    }
    FIELD(file_id), FIELD(parent_id), FIELD(other_id), FIELD(version_before), FIELD(version_after), FIELD(name),
#undef FIELD
};

static size_t encode(const struct ledger_record *r, unsigned char *out)
{
    unsigned char *p = out + 2;
    *p++ = r->kind;
    *p++ = r->op;
    *p++ = r->outcome;
    *p++ = r->flags;
    p = put(p, r->status, 2);
    p = put(p, r->app, 4);
    p = put(p, r->login, 4);
    const uint64_t wide[] = {
        r->seq, (uint64_t)r->mono_us, (uint64_t)r->wall_us, r->content_key, r->revision, r->parent_revision, r->size};
    for (size_t i = 0; i < ARRAY_LEN(wide); i++)
        p = put(p, wide[i], 8);
    for (size_t i = 0; i < N_STRINGS; i++) {
        const char *s = (const char *)r + strings[i].offset;
        size_t n = strnlen(s, strings[i].size - 1);
        *p++ = (unsigned char)n;
        memcpy(p, s, n);
        p += n;
    }
    put(out, (uint64_t)(p - out - 2), 2);
    return (size_t)(put(p, crc32_of(out, (size_t)(p - out)), 4) - out);
}

/* False when the payload does not add up: then the checksum held by chance. */
static bool decode(const unsigned char *p, size_t n, struct ledger_record *r)
{
    const unsigned char *end = p + n;
    memset(r, 0, sizeof(*r));
    if (n < FIXED_LEN)
        return false;
    r->kind = *p++;
    r->op = *p++;
    r->outcome = *p++;
    r->flags = *p++;
    r->status = (uint16_t)get(&p, 2);
    r->app = (uint32_t)get(&p, 4);
    r->login = (uint32_t)get(&p, 4);
    r->seq = get(&p, 8);
    r->mono_us = (int64_t)get(&p, 8);
    r->wall_us = (int64_t)get(&p, 8);
    r->content_key = get(&p, 8);
    r->revision = get(&p, 8);
    r->parent_revision = get(&p, 8);
    r->size = get(&p, 8);
    for (size_t i = 0; i < N_STRINGS; i++) {
        if (p == end)
            return false;
        size_t len = *p++;
        if (len >= strings[i].size || len > (size_t)(end - p))
            return false;
        memcpy((char *)r + strings[i].offset, p, len);
        p += len;
    }
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
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return err_sys(ei, ERR_IO, "cannot make the run folder %s", path);
        if (c == '\0')
            return ERR_OK;
        *p = c;
    }
}

/* Writes all or keeps the first error. */
static void write_out(struct ledger *l, const unsigned char *p, size_t n)
{
    while (n > 0 && l->error.code == ERR_OK) {
        ssize_t w = write(l->fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0) {
            err_sys(&l->error, ERR_IO, "cannot write the ledger %s", l->path);
            return;
        }
        p += w;
        n -= (size_t)w;
    }
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
    l->fd = open(l->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (l->fd < 0) {
        e = errno == EEXIST ? err_set(ei, ERR_IO, "%s is there already: give another --run-dir", l->path)
                            : err_sys(ei, ERR_IO, "cannot create the ledger %s", l->path);
        mem_free(l);
        return e;
    }
    memcpy(l->buf, MAGIC, MAGIC_LEN);
    put(l->buf + MAGIC_LEN, LEDGER_VERSION, 4);
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

void ledger_append(struct ledger *l, const struct ledger_record *r)
{
    if (l->error.code != ERR_OK)
        return;
    if (sizeof(l->buf) - l->len < RECORD_MAX)
        flush(l);
    l->len += encode(r, l->buf + l->len);
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
    enum err e = ledger_flush(l, ei);
    if (close(l->fd) != 0 && e == ERR_OK)
        e = err_sys(ei, ERR_IO, "cannot close the ledger %s", l->path);
    mem_free(l);
    return e;
}

/* One record. false at the end of what can be trusted; *torn tells whether that is short of the file's end. */
static bool read_record(FILE *f, unsigned char *raw, struct ledger_record *r, bool *torn)
{
    size_t n = fread(raw, 1, 2, f);
    if (n == 0)
        return false;
    *torn = true;
    const unsigned char *p = raw;
    size_t len = n == 2 ? (size_t)get(&p, 2) : 0;
    if (len < FIXED_LEN || len > PAYLOAD_MAX || fread(raw + 2, 1, len + 4, f) != len + 4)
        return false;
    p = raw + 2 + len;
    if (get(&p, 4) != crc32_of(raw, 2 + len) || !decode(raw + 2, len, r))
        return false;
    *torn = false;
    return true;
}

enum err ledger_read(const char *dir, bool (*fn)(void *arg, const struct ledger_record *r), void *arg, bool *torn,
                     struct errinfo *ei)
{
    char path[512];
    if (snprintf(path, sizeof(path), "%s/ledger.bin", dir) >= (int)sizeof(path))
        return err_set(ei, ERR_USAGE, "the run folder's name is too long");
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_sys(ei, ERR_IO, "cannot open the ledger %s", path);
    unsigned char raw[RECORD_MAX];
    struct ledger_record r;
    enum err e = ERR_OK;
    *torn = false;
    if (fread(raw, 1, HEAD_LEN, f) != HEAD_LEN || memcmp(raw, MAGIC, MAGIC_LEN) != 0) {
        e = err_set(ei, ERR_PARSE, "%s is no ledger", path);
        goto out;
    }
    const unsigned char *p = raw + MAGIC_LEN;
    if (get(&p, 4) != LEDGER_VERSION) {
        e = err_set(ei, ERR_PARSE, "%s is a ledger of another version", path);
        goto out;
    }
    while (read_record(f, raw, &r, torn))
        if (!fn(arg, &r))
            break;
    if (ferror(f))
        e = err_sys(ei, ERR_IO, "cannot read the ledger %s", path);
out:
    fclose(f);
    return e;
}
