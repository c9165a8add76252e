#ifndef NET_SFTP_INT_H
#define NET_SFTP_INT_H
/* Shared by src/net/sftp*.c alone: requests under way. Layer 1. */
#include "net/sftp.h"

struct sftp {
    struct loop *loop;
    struct ssh *ssh;
    struct sftp_call *waiting; /* in no order */
    struct buf in;             /* the packet that is not whole yet */
    uint32_t next_id;
    unsigned exts;
    int64_t timeout_us;
    enum err broken; /* the connection's end; ERR_OK while it lives */
    struct errinfo why;
};

/* One request. It stands on its caller's stack until it was awaited or forgotten. */
struct sftp_call {
    struct sftp_call *next, **at; /* at NULL: not under way */
    struct done done;
    uint32_t id;
    enum sftp_type type; /* of the answer */
    struct buf body;     /* what follows its id */
};

/* Sends what o holds, which begins with sftp_begin, and `more` after it; frees o. An error comes out of await. */
void sftp_begin(struct sftp *s, struct sftp_call *c, struct sftp_out *o, enum sftp_type type);
void sftp_send(struct sftp *s, struct sftp_out *o, struct sv more);
MAY_YIELD enum err sftp_await(struct sftp *s, struct sftp_call *c, struct errinfo *ei) WARN_UNUSED;
void sftp_forget(struct sftp_call *c); /* frees the answer; fine in any state */
/* Of an answered call: its status into r (OK when the answer is of the type wanted), PROTO when it is neither. */
enum err sftp_judge(const struct sftp_call *c, enum sftp_type wanted, struct sftp_reply *r,
                    struct errinfo *ei) WARN_UNUSED;
/* Sends, awaits and judges in one. */
MAY_YIELD enum err sftp_ask(struct sftp *s, struct sftp_call *c, struct sftp_out *o, enum sftp_type wanted,
                            struct sftp_reply *r, struct errinfo *ei) WARN_UNUSED;

/* An open file or folder. */
struct sftp_handle {
    char bytes[SFTP_HANDLE_MAX];
    size_t n; /* 0: none */
};
MAY_YIELD enum err sftp_open_file(struct sftp *s, const char *path, unsigned flags, struct sftp_handle *out,
                                  struct sftp_reply *r, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err sftp_close_handle(struct sftp *s, struct sftp_handle *h, struct sftp_reply *r,
                                     struct errinfo *ei) WARN_UNUSED;
enum err sftp_read_handle(const struct sftp_call *c, struct sftp_handle *out, struct errinfo *ei) WARN_UNUSED;
struct sv sftp_handle_sv(const struct sftp_handle *h);
void sftp_extended(struct sftp *s, struct sftp_call *c, struct sftp_out *o, const char *name);
#endif
