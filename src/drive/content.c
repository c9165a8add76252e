/* Content by position: byte i of a body depends on (key, revision, i) alone. The key stream is splitmix64 of a counter
 * rather than a cipher, since it has to be incompressible and unique, not secret, and a generator that makes gigabytes
 * must not measure itself. */
#include "drive/content.h"
#include "base/digest.h"
#include <endian.h>
#include <string.h>
#include <strings.h>

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
static const char tag[8] = {'D', 'S', 'I', 'M', 'B', 'O', 'D', 'Y'};

struct kind {
    const char *ext, *mime, *magic;
    size_t magic_n;
};
/* The first member of a ZIP, stored: what tells an office document from a plain archive is its name. */
#define ZIP_HEAD(len) "PK\x03\x04\x14\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0" len "\0\0\0"
#define OLE           "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"
#define K(ext, mime, magic)                                                                                            \
    {                                                                                                                  \
        ext, mime, magic, sizeof(magic) - 1                                                                            \
    }
static const struct kind kinds[] = {
    K("pdf", "application/pdf", "%PDF-1.7\n%\xE2\xE3\xCF\xD3\n"),
    K("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
      ZIP_HEAD("\x11") "word/document.xml"),
    K("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ZIP_HEAD("\x0F") "xl/workbook.xml"),
    K("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation",
      ZIP_HEAD("\x14") "ppt/presentation.xml"),
    K("odt", "application/vnd.oasis.opendocument.text",
      ZIP_HEAD("\x08") "mimetypeapplication/vnd.oasis.opendocument.text"),
    K("ods", "application/vnd.oasis.opendocument.spreadsheet",
      ZIP_HEAD("\x08") "mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
    K("doc", "application/msword", OLE),
    K("xls", "application/vnd.ms-excel", OLE),
    K("msg", "application/vnd.ms-outlook", OLE),
    K("jpg", "image/jpeg", "\xFF\xD8\xFF\xE0\0\x10JFIF\0\x01\x01\0\0\x48\0\x48\0\0"),
    K("png", "image/png",
      "\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\x04\0\0\0\x03\0\x08\x06\0\0\0\xBA\xBA\x15\x0D\x7F\xFF\xFF\xFFIDAT"),
    K("gif", "image/gif", "GIF89a"),
    K("tif", "image/tiff", "II*\0"),
    K("heic", "image/heic",
      "\0\0\0\x18"
      "ftypheic\0\0\0\0mif1heic"),
    K("psd", "image/vnd.adobe.photoshop", "8BPS\0\x01\0\0\0\0\0\0"),
    K("svg", "image/svg+xml", "<svg xmlns=\"http://www.w3.org/2000/svg\">\n"),
    K("mp4", "video/mp4",
      "\0\0\0\x18"
      "ftypmp42\0\0\0\0mp42isom"),
    K("mov", "video/quicktime",
      "\0\0\0\x14"
      "ftypqt  \0\0\0\0qt  "),
    K("mp3", "audio/mpeg", "ID3\x04\0\0\0\0\0\0"),
    K("wav", "audio/wav", "RIFF\xFF\xFF\xFF\xFFWAVE"),
    K("zip", "application/zip", ZIP_HEAD("\x08") "data.bin"),
    K("7z", "application/x-7z-compressed", "7z\xBC\xAF\x27\x1C\0\x04"),
    K("gz", "application/gzip", "\x1F\x8B\x08\0\0\0\0\0\0\xFF"),
    K("dwg", "image/vnd.dwg", "AC1032"),
    K("rtf", "application/rtf", "{\\rtf1\\ansi "),
    K("xml", "application/xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"),
    K("html", "text/html", "<!DOCTYPE html>\n"),
    K("eml", "message/rfc822", "From: "),
    K("txt", "text/plain", ""),
    K("md", "text/markdown", ""),
    K("csv", "text/csv", ""),
    K("log", "text/plain", ""),
    K("json", "application/json", "{\""),
    K("sql", "application/sql", "-- "),
};
#undef K
static const struct kind unknown = {"", "application/octet-stream", "", 0};

static const struct kind *kind_of(const char *ext)
{
    for (size_t i = 0; ext && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcasecmp(kinds[i].ext, ext) == 0)
            return &kinds[i];
    }
    return &unknown;
}

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t stream_base(const struct content *c)
{
    return mix(mix(c->key + GOLDEN) ^ (c->revision * GOLDEN + 1));
}

static void put64(unsigned char *dst, uint64_t v)
{
    v = htole64(v);
    memcpy(dst, &v, 8);
}

static uint64_t get64(const unsigned char *src)
{
    uint64_t v;
    memcpy(&v, src, 8);
    return le64toh(v);
}

static uint64_t header_sum(const unsigned char *h)
{
    uint64_t sum = GOLDEN;
    for (size_t i = 0; i < CONTENT_HEADER_LEN - 8; i += 8)
        sum = mix(sum ^ get64(h + i)) + GOLDEN;
    return sum;
}

/* tag, key, revision, parent revision, size, two words of filler, checksum. Nothing of the extension: kinds that share
 * a magic have equal bodies, so that a rename from .txt to .md keeps the body right. */
static void header_make(const struct content *c, unsigned char h[CONTENT_HEADER_LEN])
{
    memcpy(h, tag, 8);
    put64(h + 8, c->key);
    put64(h + 16, c->revision);
    put64(h + 24, c->parent_revision);
    put64(h + 32, c->size);
    put64(h + 40, mix(stream_base(c)));
    put64(h + 48, stream_base(c));
    put64(h + 56, header_sum(h));
}

static bool header_read(const unsigned char *h, struct content *out)
{
    if (memcmp(h, tag, 8) != 0 || get64(h + 56) != header_sum(h))
        return false;
    out->key = get64(h + 8);
    out->revision = get64(h + 16);
    out->parent_revision = get64(h + 24);
    out->size = get64(h + 32);
    return true;
}

static void stream_fill(uint64_t base, uint64_t offset, unsigned char *dst, size_t n)
{
    uint64_t i = offset / 8;
    size_t skip = offset % 8;
    unsigned char word[8];
    if (skip) {
        size_t take = 8 - skip < n ? 8 - skip : n;
        put64(word, mix(base + i++ * GOLDEN));
        memcpy(dst, word + skip, take);
        dst += take;
        n -= take;
    }
    for (; n >= 8; dst += 8, n -= 8)
        put64(dst, mix(base + i++ * GOLDEN));
    if (n) {
        put64(word, mix(base + i * GOLDEN));
        memcpy(dst, word, n);
    }
}

void content_fill(const struct content *c, uint64_t offset, void *dst, size_t n)
{
    const struct kind *k = kind_of(c->ext);
    if (c->literal.p) {
        memcpy(dst, c->literal.p + offset, n);
        return;
    }
    size_t head_n = k->magic_n + CONTENT_HEADER_LEN, from_head = 0;
    if (offset < head_n) {
        unsigned char head[CONTENT_HEAD_MAX];
        memcpy(head, k->magic, k->magic_n);
        header_make(c, head + k->magic_n);
        from_head = head_n - (size_t)offset < n ? head_n - (size_t)offset : n;
        memcpy(dst, head + offset, from_head);
    }
    stream_fill(stream_base(c), offset + from_head, (unsigned char *)dst + from_head, n - from_head);
}

size_t content_head_len(const char *ext)
{
    return kind_of(ext)->magic_n + CONTENT_HEADER_LEN;
}

size_t content_magic(const char *ext, const char **magic)
{
    const struct kind *k = kind_of(ext);
    *magic = k->magic;
    return k->magic_n;
}

static bool identify_as(struct sv head, const struct kind *k, struct content *out)
{
    return head.n >= k->magic_n + CONTENT_HEADER_LEN && memcmp(head.p, k->magic, k->magic_n) == 0 &&
           header_read((const unsigned char *)head.p + k->magic_n, out);
}

bool content_identify(struct sv head, const char *ext, struct content *out)
{
    struct content c = {.ext = ext};
    if (identify_as(head, kind_of(ext), &c)) {
        *out = c;
        return true;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        c.ext = kinds[i].ext;
        if (identify_as(head, &kinds[i], &c)) {
            *out = c;
            return true;
        }
    }
    return false;
}

void content_check_init(struct content_check *k, const struct content *c, uint64_t offset)
{
    *k = (struct content_check){.want = *c, .offset = offset};
}

static bool check_fail(struct content_check *k, uint64_t at)
{
    k->wrong = true;
    k->wrong_at = at;
    return false;
}

bool content_check_feed(struct content_check *k, const void *p, size_t n)
{
    const unsigned char *got = p;
    unsigned char want[4096];
    while (n && !k->wrong) {
        if (k->offset >= k->want.size)
            return check_fail(k, k->want.size);
        size_t step = n < sizeof want ? n : sizeof want;
        if (step > k->want.size - k->offset)
            step = (size_t)(k->want.size - k->offset);
        content_fill(&k->want, k->offset, want, step);
        if (memcmp(got, want, step) != 0) {
            size_t i = 0;
            while (got[i] == want[i])
                i++;
            return check_fail(k, k->offset + i);
        }
        got += step;
        n -= step;
        k->offset += step;
    }
    return !k->wrong;
}

bool content_check_complete(const struct content_check *k)
{
    return !k->wrong && k->offset == k->want.size;
}

void content_sha1(const struct content *c, unsigned char out[20])
{
    unsigned char chunk[4096], sum[DIGEST_SHA256_LEN];
    struct digest *d = digest_new_sha1();
    for (uint64_t at = 0; at < c->size;) {
        size_t n = c->size - at < sizeof chunk ? (size_t)(c->size - at) : sizeof chunk;
        content_fill(c, at, chunk, n);
        digest_update(d, chunk, n);
        at += n;
    }
    digest_final(d, sum);
    memcpy(out, sum, DIGEST_SHA1_LEN);
    digest_free(&d);
}

const char *content_mime(const char *ext)
{
    return kind_of(ext)->mime;
}

int64_t content_pull(const struct content *c, uint64_t *taken, uint64_t offset, char *dst, size_t cap)
{
    uint64_t left = offset < c->size ? c->size - offset : 0;
    size_t n = left < cap ? (size_t)left : cap;
    content_fill(c, offset, dst, n);
    if (taken)
        *taken += n;
    return (int64_t)n;
}
