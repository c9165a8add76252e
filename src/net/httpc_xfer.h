#ifndef NET_HTTPC_XFER_H
#define NET_HTTPC_XFER_H
/* One request under way, shared by httpc_req.c (its life), httpc_setup.c (its options) and httpc_callbacks.c (its
 * bytes). A struct xfer stands in the frame of httpc_perform; a request_handle is lent to it by the pool while libcurl
 * works. Layer 1. */
#include "net/httpc_peer.h"

struct request_handle {
    struct transfer t;
    struct request_handle *next;
    struct origin *origin;      /* whose URL is set */
    bool is_get, is_fresh;      /* set so by the last request */
    bool is_last;               /* its connection is closed after it */
    bool traces;                /* likewise, by the head that is being read */
    unsigned idle_max_s;        /* likewise; 0: libcurl's own */
    struct header_set *headers; /* whose nodes are used */
    struct curl_slist *nodes;   /* room for the header list */
    size_t nodes_n;
    struct curl_slist *resolve;
    curl_mime *mime;
    struct pull *pulls;
    char content_type[200];
    char error[CURL_ERROR_SIZE];
};

struct pull { /* a part of a multipart body */
    struct xfer *x;
    const struct http_part *part;
    uint64_t offset;
};

struct xfer {
    struct xfer *next, **at; /* in its peer's list */
    struct httpc_peer *peer;
    const struct http_req *req;
    struct http_resp *resp;
    struct errinfo *ei;
    struct httpc_counters count;   /* the peer's when it was called */
    struct request_handle *handle; /* while libcurl has it */
    struct task start, cancel;
    struct timer timer;
    struct done done;
    struct mono deadline;   /* of the whole, counted from the first start */
    struct mono connect_by; /* before it is sent */
    int64_t away_us;        /* shortage_away_us() when these times were set */
    struct mono moved_at;   /* when bytes were last seen to move */
    uint64_t moved;
    uint64_t body_sent; /* of req.body, handed to libcurl */
    struct sock *sock;  /* of an upload */
    struct buf raw;     /* what its broken connection still held */
    enum err err;       /* why we ended it ourselves */
    enum err result;    /* for the caller */
    unsigned attempts;  /* times that the request was about to be sent */
    bool opened;        /* on a connection made for it */
    bool blocked;       /* libcurl wanted to replay it */
    bool fresh;         /* takes no kept connection */
    bool expect_100;    /* until a server does not know it */
    bool pulled;        /* body bytes were taken from the caller */
    bool head_done;     /* of the final answer */
    bool cut;           /* refused early: no more of the body */
};

/* httpc_callbacks.c */
void httpc_callbacks_set(struct request_handle *hd);
bool httpc_first_header_is_unsafe(void); /* with this libcurl, unless it is traced */
void httpc_trace(struct request_handle *hd, bool on);
size_t httpc_on_part_wanted(char *dst, size_t size, size_t n, void *pull);
void httpc_unwatch_upload(struct xfer *x);

/* httpc_setup.c */
bool httpc_has_body(const struct http_req *req);
uint64_t httpc_body_size(const struct http_req *req); /* without parts */
enum err httpc_request_valid(const struct http_req *req, struct errinfo *ei) WARN_UNUSED;
struct request_handle *httpc_handle_take(struct httpc *h); /* NULL: libcurl cannot */
void httpc_handle_give(struct request_handle *hd);
void httpc_handle_setup(struct request_handle *hd, struct xfer *x);
#endif
