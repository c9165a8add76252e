/* HdrHistogram's interval log, format 1.3, with histograms in its V2 encoding: a line an operation a stretch of time,
 * its tag the operation's key, with ".due" behind for the times since they were due. Values are nanoseconds, as the
 * log's own tools expect, to three significant digits: finer than our buckets (1/256), so that what is lost is what was
 * lost when they were recorded. No packaged C library writes this format, hence ours:
 * https://github.com/HdrHistogram/HdrHistogram (V2CompressedHistogram, HistogramLogWriter). */
#include "base/digest.h"
#include "base/mem.h"
#include "drive/result/impl.h"
#include "drive/result/series.h"
#include <string.h>
#include <zlib.h>

#define COOKIE            0x1c849313u /* V2, word size as the format has it */
#define COOKIE_COMPRESSED 0x1c849314u
#define DIGITS            3
#define HALF_BITS         10 /* 2,048 values in the first bucket: the power of two above 2 x 10^DIGITS */
#define HALF              (1u << HALF_BITS)
#define NS_PER_US         1000
#define HEADER            40

struct encoder {
    struct buf counts;
    uint64_t next; /* index that comes next */
    enum err err;
};

static uint64_t index_of(uint64_t v)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | (2 * HALF - 1)), bucket = bits - HALF_BITS - 1;
    return ((uint64_t)bucket << HALF_BITS) + (v >> bucket);
}

/* ZigZag, then seven bits a byte, low ones first. A count of ours never needs the format's ninth byte. */
static void put_number(struct encoder *e, int64_t n)
{
    uint64_t z = (uint64_t)n << 1 ^ (uint64_t)(n >> 63);
    do {
        char c = (char)((z & 0x7f) | (z > 0x7f ? 0x80 : 0));
        if (!e->err)
            e->err = buf_append_char(&e->counts, c);
        z >>= 7;
    } while (z);
}

struct pending { /* values of one index are added up before they are written */
    struct encoder e;
    uint64_t index, n;
};

static void flush(struct pending *p)
{
    if (!p->n)
        return;
    if (p->index > p->e.next)
        put_number(&p->e, -(int64_t)(p->index - p->e.next));
    put_number(&p->e, (int64_t)p->n);
    p->e.next = p->index + 1;
    p->n = 0;
}

static void add(void *arg, int64_t us, uint64_t n)
{
    struct pending *p = arg;
    uint64_t index = index_of((uint64_t)us * NS_PER_US);
    if (index != p->index)
        flush(p);
    p->index = index;
    p->n += n;
}

static void put_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void put_u64(unsigned char *p, uint64_t v)
{
    put_u32(p, (uint32_t)(v >> 32));
    put_u32(p + 4, (uint32_t)v);
}

/* The uncompressed form: header, then the counts. */
static enum err encode(const struct hist *h, struct buf *out)
{
    static const double ratio = 1;
    struct pending p = {.n = 0};
    unsigned char header[HEADER] = {0};
    uint64_t highest = 2 * HALF, bits;
    buf_init(&p.e.counts, 16u << 20);
    hist_each(h, add, &p);
    flush(&p);
    while (highest <= (uint64_t)hist_max(h) * NS_PER_US)
        highest *= 2;
    memcpy(&bits, &ratio, sizeof(bits));
    put_u32(header, COOKIE);
    put_u32(header + 4, (uint32_t)p.e.counts.len);
    put_u32(header + 12, DIGITS);
    put_u64(header + 16, 1);
    put_u64(header + 24, highest - 1);
    put_u64(header + 32, bits);
    enum err e = p.e.err ? p.e.err : buf_append(out, header, sizeof(header));
    if (!e)
        e = buf_append(out, p.e.counts.data, p.e.counts.len);
    buf_done(&p.e.counts);
    return e;
}

static enum err put_histogram(const struct hist *h, struct buf *out)
{
    struct buf plain = BUF_INIT(16u << 20), packed = BUF_INIT(17u << 20);
    enum err e = encode(h, &plain);
    uLongf n = compressBound(plain.len);
    if (!e)
        e = buf_reserve(&packed, n + 8);
    if (!e && compress((Bytef *)packed.data + 8, &n, (const Bytef *)plain.data, plain.len) != Z_OK)
        e = ERR_LIMIT;
    if (!e) {
        put_u32((unsigned char *)packed.data, COOKIE_COMPRESSED);
        put_u32((unsigned char *)packed.data + 4, (uint32_t)n);
        e = digest_base64(out, packed.data, n + 8);
    }
    buf_done(&plain);
    buf_done(&packed);
    return e;
}

static enum err put_line(struct buf *out, const struct doc_span *span, double zero, const char *key, const char *kind,
                         const struct hist *h)
{
    if (!h || !hist_count(h))
        return ERR_OK;
    enum err e = buf_appendf(out, "Tag=%s%s,%.3f,%.3f,%.3f,", key, kind, span->at - zero, span->seconds,
                             (double)hist_max(h) / 1e3);
    if (!e)
        e = put_histogram(h, out);
    return e ? e : buf_append_char(out, '\n');
}

/* Operations without a schedule are due when they are sent: one set of lines does for them. */
static bool has_schedule(const struct doc *d, enum drive_op op)
{
    for (size_t i = 0; i < d->n_spans; i++)
        if (json_get(json_get(json_get(d->spans[i].line, "operations"), drive_op_key(op)), "from_due_us"))
            return true;
    return false;
}

static enum err put_span(struct buf *out, const struct doc_span *span, double zero, const bool scheduled[OP_COUNT])
{
    struct stats *s = mem_alloc(sizeof(*s));
    enum err e = ERR_OK;
    stats_init(s);
    series_read(span->line, s);
    for (unsigned op = 0; op < OP_COUNT && !e; op++) {
        e = put_line(out, span, zero, drive_op_key((enum drive_op)op), "", s->op[op].from_send);
        if (!e && scheduled[op])
            e = put_line(out, span, zero, drive_op_key((enum drive_op)op), ".due", s->op[op].from_due);
    }
    stats_done(s);
    mem_free(s);
    return e;
}

/* A comment: whatever reads the log computes percentiles of any number of samples. */
static enum err put_few(struct buf *out, const struct doc *d)
{
    static const struct percentile rows[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}};
    struct stats *all = mem_zalloc(sizeof(*all));
    enum err e = ERR_OK;
    doc_stats(d, all);
    for (unsigned op = 0; op < OP_COUNT; op++) {
        const struct hist *h = all->op[op].from_send;
        uint64_t n = h ? hist_count(h) : 0;
        bool any = false;
        for (size_t i = 0; i < ARRAY_LEN(rows) && n && !e; i++) {
            if (hist_carries(h, rows[i].pct))
                continue;
            e = any ? buf_appendf(out, ", %s", rows[i].key)
                    : buf_appendf(out, "#[Too few samples in all: %s (%llu) for %s", drive_op_key((enum drive_op)op),
                                  (unsigned long long)n, rows[i].key);
            any = true;
        }
        if (any && !e)
            e = buf_append_str(out, "]\n");
    }
    stats_done(all);
    mem_free(all);
    return e;
}

static enum err put_head(const struct doc *d, struct buf *out)
{
    const char *from = d->n_spans ? json_str(json_get(d->spans[0].line, "from")) : NULL;
    struct wall start = {0};
    double s = from && wall_parse(from, &start) ? (double)start.us / 1e6 : 0;
    enum err e = buf_appendf(out, "#[Logged by drivesim %s, sim %s]\n#[Histogram log format version 1.3]\n",
                             doc_string(d, "drivesim"), doc_string(d, "command"));
    if (!e)
        e = buf_appendf(out, "#[StartTime: %.3f (seconds since epoch), %s]\n#[BaseTime: %.3f (seconds since epoch)]\n",
                        s, from ? from : "-", s);
    if (!e)
        e = put_few(out, d);
    return e ? e
             : buf_append_str(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
                                   "\"Interval_Compressed_Histogram\"\n");
}

enum err rendering_hdr(const struct doc *d, struct buf *out)
{
    bool scheduled[OP_COUNT];
    enum err e = put_head(d, out);
    for (unsigned op = 0; op < OP_COUNT; op++)
        scheduled[op] = has_schedule(d, (enum drive_op)op);
    for (size_t i = 0; i < d->n_spans && !e; i++)
        e = put_span(out, &d->spans[i], d->spans[0].at, scheduled);
    return e;
}
