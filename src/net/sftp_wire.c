#include "net/sftp_wire.h"

#include <string.h>
#include <sys/stat.h>

#define OUT_MAX (64u * 1024)
enum { HAS_SIZE = 1, HAS_OWNER = 2, HAS_MODE = 4, HAS_TIMES = 8 };
#define HAS_MORE 0x80000000u

bool sftp_attrs_is_folder(const struct sftp_attrs *a)
{
    return a->has_mode && S_ISDIR(a->mode);
}

bool sftp_attrs_is_file(const struct sftp_attrs *a)
{
    return !a->has_mode || (a->mode & S_IFMT) == 0 || S_ISREG(a->mode);
}

/* ---- reading ---- */

static struct sv take(struct sftp_in *in, size_t n)
{
    if (in->bad || n > in->rest.n) {
        *in = (struct sftp_in){.bad = true};
        return (struct sv){NULL, 0};
    }
    struct sv got = {in->rest.p, n};
    in->rest.p += n;
    in->rest.n -= n;
    return got;
}

static uint64_t number(struct sv bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes.n; i++)
        v = v << 8 | (uint8_t)bytes.p[i];
    return v;
}

uint32_t sftp_in_u32(struct sftp_in *in)
{
    return (uint32_t)number(take(in, 4));
}

uint64_t sftp_in_u64(struct sftp_in *in)
{
    return number(take(in, 8));
}

struct sv sftp_in_text(struct sftp_in *in)
{
    return take(in, sftp_in_u32(in));
}

struct sftp_attrs sftp_in_attrs(struct sftp_in *in)
{
    uint32_t has = sftp_in_u32(in);
    struct sftp_attrs a = {
        .has_size = has & HAS_SIZE, .has_mode = (has & HAS_MODE) != 0, .has_times = (has & HAS_TIMES) != 0};
    if (has & HAS_SIZE)
        a.size = sftp_in_u64(in);
    a.has_size = a.has_size && a.size <= INT64_MAX;
    if (has & HAS_OWNER)
        (void)take(in, 8);
    if (has & HAS_MODE)
        a.mode = sftp_in_u32(in);
    if (has & HAS_TIMES) {
        (void)take(in, 4);
        a.mtime_s = sftp_in_u32(in);
    }
    for (uint32_t n = has & HAS_MORE ? sftp_in_u32(in) : 0; n > 0 && !in->bad; n--) {
        (void)sftp_in_text(in);
        (void)sftp_in_text(in);
    }
    return in->bad ? (struct sftp_attrs){0} : a;
}

bool sftp_in_entry(struct sftp_in *in, struct sv *name, struct sftp_attrs *a)
{
    *name = sftp_in_text(in);
    (void)sftp_in_text(in); /* as ls would show it */
    *a = sftp_in_attrs(in);
    if (in->bad || name->n == 0 || memchr(name->p, '/', name->n) || memchr(name->p, '\0', name->n))
        *in = (struct sftp_in){.bad = true};
    return !in->bad;
}

bool sftp_packet_take(struct sv bytes, struct sftp_packet *out, size_t *used)
{
    struct sftp_in in = {.rest = bytes};
    if (bytes.n < 4)
        return false;
    uint32_t n = sftp_in_u32(&in);
    *out = (struct sftp_packet){0};
    *used = bytes.n;
    if (n == 0 || n > SFTP_PACKET_MAX)
        return true;
    if (in.rest.n < n)
        return false;
    *used = 4 + (size_t)n;
    in.rest.n = n;
    uint8_t type = (uint8_t)number(take(&in, 1));
    if (type != SFTP_T_VERSION)
        out->id = sftp_in_u32(&in);
    if (!in.bad) {
        out->type = type;
        out->body = in.rest;
    }
    return true;
}

/* ---- writing ---- */

static void put(struct sftp_out *o, const void *p, size_t n)
{
    if (o->err == ERR_OK)
        o->err = buf_append(&o->bytes, p, n);
}

static void put_number(struct sftp_out *o, uint64_t v, size_t n)
{
    unsigned char be[8];
    for (size_t i = 0; i < n; i++)
        be[i] = (unsigned char)(v >> (8 * (n - 1 - i)));
    put(o, be, n);
}

void sftp_out_begin(struct sftp_out *o, enum sftp_type type, uint32_t id)
{
    *o = (struct sftp_out){.bytes = BUF_INIT(OUT_MAX)};
    put_number(o, 0, 4);
    put_number(o, type, 1);
    put_number(o, id, 4); /* of INIT it is the version that stands here */
}

void sftp_out_u32(struct sftp_out *o, uint32_t v)
{
    put_number(o, v, 4);
}

void sftp_out_u64(struct sftp_out *o, uint64_t v)
{
    put_number(o, v, 8);
}

void sftp_out_text(struct sftp_out *o, struct sv s)
{
    put_number(o, s.n, 4);
    put(o, s.p, s.n);
}

void sftp_out_times(struct sftp_out *o, uint32_t mtime_s)
{
    put_number(o, HAS_TIMES, 4);
    put_number(o, mtime_s, 4);
    put_number(o, mtime_s, 4);
}

void sftp_out_end(struct sftp_out *o, size_t follows)
{
    if (o->err != ERR_OK)
        return;
    uint64_t n = o->bytes.len - 4 + follows;
    for (size_t i = 0; i < 4; i++)
        o->bytes.data[i] = (char)(n >> (8 * (3 - i)));
}

void sftp_out_done(struct sftp_out *o)
{
    buf_done(&o->bytes);
}
