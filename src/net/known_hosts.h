#ifndef NET_KNOWN_HOSTS_H
#define NET_KNOWN_HOSTS_H
/* OpenSSH's files of known hosts, and what they say of a host and the key that it shows: the same as ssh would. No
 * input or output. Layer 1. */
#include "base/str.h"

enum known_mark { KNOWN_PLAIN, KNOWN_AUTHORITY, KNOWN_REVOKED };
struct known_line {
    enum known_mark mark;
    struct sv names, type; /* of the text */
    struct sv key;         /* the blob */
    const char *file;
    unsigned line;
};
struct known_hosts {
    struct known_line *lines;
    size_t n, cap;
    struct arena *mem;
};
void known_hosts_init(struct known_hosts *k);
void known_hosts_done(struct known_hosts *k);
/* Adds a file's lines after those of the files before; what ssh would pass over is passed over. Both are copied. */
void known_hosts_add(struct known_hosts *k, const char *file, struct sv text);

/* The lines that are of one host. A host on another port than SSH's own is another host, "[host]:port"; only where
 * nothing is known of that one, a key that the bare host has will do. */
struct known_place {
    const struct known_line **own, **bare;
    size_t n_own, n_bare;
};
void known_place_find(struct known_place *p, const struct known_hosts *k, const char *host, int port);
void known_place_done(struct known_place *p);
/* Whether a key of this type ("ssh-ed25519") is known of it, and not revoked. */
bool known_place_has(const struct known_place *p, const char *type);

enum known_verdict {
    KNOWN_OK,
    KNOWN_NEW,     /* nothing is known of this host */
    KNOWN_CHANGED, /* other keys are */
    KNOWN_BAD      /* this one is revoked */
};
struct known_finding {
    enum known_verdict verdict;
    const struct known_line
        *line;      /* that says so; of KNOWN_NEW a certificate authority's, where that is all; or NULL */
    bool same_type; /* CHANGED: a key of the type that is shown is among the others */
};
struct known_finding known_place_judge(const struct known_place *p, struct sv key);

/* "host", or "[host]:port"; IPv6 addresses with or without brackets; in lower case. */
void known_name(char *dst, size_t n, const char *host, int port);
#endif
