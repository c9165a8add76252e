#ifndef SERVER_OBJECTS_ZIP_H
#define SERVER_OBJECTS_ZIP_H
/* A ZIP archive written front to back into a stream (PKWARE APPNOTE 6.3.10, with ZIP64 where a size, an offset or the
 * count asks for it). Names are UTF-8, times are UTC. Layer 3; no I/O: each call appends the bytes to send to `out`.
 *
 * Written here and not with libarchive or minizip: contents are not worth compressing (drive files are mostly media and
 * archives), so what remains is some headers and a CRC, and a dependency would cost more than these lines. Contents go
 * as deflate's stored blocks, five bytes of overhead for 32 KiB: an entry whose CRC follows its content may not be
 * plain "stored" for readers that work from the front (java.util.zip, funzip). */
#include "base/buf.h"
#include "base/clock.h"

struct zip_entry {
    const char *name; /* '/' between the levels; a folder's gets its trailing '/' here */
    uint64_t size;
    struct wall modified;
    bool folder;
};

struct zip;
struct zip *zip_new(void);
void zip_free(struct zip **z);
/* One entry: begin, then exactly size bytes by zip_data in pieces of any length, then end. ERR_WRONG when the bytes are
 * more or fewer than announced, ERR_LIMIT when out or the directory (64 MiB: about half a million entries) is full. */
enum err zip_begin(struct zip *z, const struct zip_entry *entry, struct buf *out) WARN_UNUSED;
enum err zip_data(struct zip *z, const void *p, size_t n, struct buf *out) WARN_UNUSED;
enum err zip_end(struct zip *z, struct buf *out) WARN_UNUSED;
/* The directory, which ends the archive. It lives in z: send it, then zip_free. */
enum err zip_finish(struct zip *z, const struct buf **directory) WARN_UNUSED;
#endif
