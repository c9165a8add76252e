#ifndef NET_GUARD_H
#define NET_GUARD_H
/* Which hosts may be dialled. Asked by whatever opens a connection, before the name is looked up, so that no caller can
 * go round it: net/dial.c, net/httpc_peer.c, store/pg_url.c, store/kv.c, store/blob.c, and whoever starts a program
 * that dials. `make lint` knows who may open one. One answer for the whole process. Layer 1. */
#include "base/opt.h"

/* Besides this machine: hosts by their exact names, each item of the list "a" or "a,b" (--allow-host). Borrowed for as
 * long as the process dials; NULL: none. */
void guard_allow(const struct opt_list *hosts);
/* ERR_SAFETY with a sentence unless host is this machine or allowed; whoever says that it is production never is. */
enum err guard_judge(const char *host, struct errinfo *ei) WARN_UNUSED;
/* ERR_SAFETY when "prod" or "production" is a word of the name (numbered ones too): for names that are aliases, or that
 * stand below a host which is judged by itself. */
enum err guard_judge_name(const char *host, struct errinfo *ei) WARN_UNUSED;
/* True when host is this machine by its form alone: localhost, 127.0.0.0/8, ::1. */
bool guard_is_loopback(const char *host);
#endif
