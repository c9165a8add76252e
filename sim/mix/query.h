#ifndef SIM_MIX_QUERY_H
#define SIM_MIX_QUERY_H
/* The one question that is asked of an audit log: how often each action stands in it. What comes back is a line an
 * action and three figures, whatever the log's size. Layer 3; one loop's thread. */
#include "net/coro.h"
#include "sim/mix/counts.h"

struct mix_window {
    const char *since, *until; /* times as PostgreSQL reads them; NULL: no bound */
};
/* ERR_USAGE when a time could be anything but a time. */
enum err mix_query_judge(const struct mix_window *w, struct errinfo *ei) WARN_UNUSED;
/* Appends the query with the window in it, judged before. */
enum err mix_query_text(const struct mix_window *w, struct buf *out) WARN_UNUSED;
/* Asks it in a transaction that can only read. ERR_ENV when there is no audit log. */
MAY_YIELD enum err mix_query_run(struct loop *l, const char *url, const struct mix_window *w, struct mix_counts *counts,
                                 struct errinfo *ei) WARN_UNUSED;
#endif
