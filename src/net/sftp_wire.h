#ifndef NET_SFTP_WIRE_H
#define NET_SFTP_WIRE_H
/* The packets of SFTP version 3 (draft-ietf-secsh-filexfer-02), the one that servers speak, with OpenSSH's extensions
 * (its PROTOCOL file). Reading never trusts a length; writing is sticky about errors. Layer 1, pure. */
#include "base/buf.h"
#include "base/str.h"

enum sftp_type {
    SFTP_T_INIT = 1,
    SFTP_T_VERSION = 2,
    SFTP_T_OPEN = 3,
    SFTP_T_CLOSE = 4,
    SFTP_T_READ = 5,
    SFTP_T_WRITE = 6,
    SFTP_T_LSTAT = 7,
    SFTP_T_FSETSTAT = 10,
    SFTP_T_OPENDIR = 11,
    SFTP_T_READDIR = 12,
    SFTP_T_REMOVE = 13,
    SFTP_T_MKDIR = 14,
    SFTP_T_RMDIR = 15,
    SFTP_T_REALPATH = 16,
    SFTP_T_STAT = 17,
    SFTP_T_RENAME = 18,
    SFTP_T_STATUS = 101,
    SFTP_T_HANDLE = 102,
    SFTP_T_DATA = 103,
    SFTP_T_NAME = 104,
    SFTP_T_ATTRS = 105,
    SFTP_T_EXTENDED = 200,
    SFTP_T_EXTENDED_REPLY = 201
};
enum { SFTP_READ = 1, SFTP_WRITE = 2, SFTP_CREATE = 8, SFTP_TRUNCATE = 16, SFTP_EXCLUSIVE = 32 }; /* of OPEN */
#define SFTP_PACKET_MAX (256u * 1024) /* what OpenSSH takes and sends at most */
#define SFTP_HANDLE_MAX 256

struct sftp_attrs { /* what the server told */
    bool has_size, has_mode, has_times;
    uint64_t size;
    uint32_t mode, mtime_s;
};
bool sftp_attrs_is_folder(const struct sftp_attrs *a);
bool sftp_attrs_is_file(const struct sftp_attrs *a); /* a regular one, or of a kind that was not told */

/* What is left of a packet. After a read beyond its end bad is set, and everything reads as empty. */
struct sftp_in {
    struct sv rest;
    bool bad;
};
uint32_t sftp_in_u32(struct sftp_in *in);
uint64_t sftp_in_u64(struct sftp_in *in);
struct sv sftp_in_text(struct sftp_in *in);          /* borrowed from the packet */
struct sftp_attrs sftp_in_attrs(struct sftp_in *in); /* a size beyond INT64_MAX is none */
/* The next entry of a listing, "." and ".." as well; its name is borrowed. False, and bad, when it is cut off or its
 * name is none (empty, or with a slash or a zero byte): a path made of that would lead out of the folder. */
bool sftp_in_entry(struct sftp_in *in, struct sv *name, struct sftp_attrs *a);

/* One packet at the front of bytes. False: not all of it is there yet. *used is its length with the length field; a
 * packet that cannot be has type 0. VERSION has no id: 0. */
struct sftp_packet {
    uint8_t type;
    uint32_t id;
    struct sv body; /* what follows the id */
};
bool sftp_packet_take(struct sv bytes, struct sftp_packet *out, size_t *used);

struct sftp_out {
    struct buf bytes;
    enum err err; /* the first failure */
};
void sftp_out_begin(struct sftp_out *o, enum sftp_type type, uint32_t id); /* id is left out of INIT, where it is 3 */
void sftp_out_u32(struct sftp_out *o, uint32_t v);
void sftp_out_u64(struct sftp_out *o, uint64_t v);
void sftp_out_text(struct sftp_out *o, struct sv s);
void sftp_out_times(struct sftp_out *o, uint32_t mtime_s); /* attributes: access and modification time alone */
/* Puts the packet's length in, counting `follows` bytes that the caller sends after it. */
void sftp_out_end(struct sftp_out *o, size_t follows);
void sftp_out_done(struct sftp_out *o);
#endif
