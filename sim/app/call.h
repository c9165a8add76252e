#ifndef SIM_APP_CALL_H
#define SIM_APP_CALL_H
/* Around every API call of an app: says why it is made, waits out a spent budget, renews an expired session, and notes
 * what the server turns out to lack. Used as
 *
 *     struct call c = CALL(a, CAUSE_ACTION);
 *     do
 *         api_rename(a->api, …, &r);
 *     while (call_again(&c, &r));
 *     call_record(&c, OP_RENAME, &r, due);
 *
 * What was waited is no latency: it moves the intended start. Layer 3. */
#include "sim/app/app.h"

struct call {
    struct app *app;
    enum cause cause;
    int64_t waited_us;
    unsigned tries;
    bool renewed;
};
#define CALL(app_, cause_)                                                                                             \
    {                                                                                                                  \
        .app = (app_), .cause = call_because((app_), (cause_))                                                         \
    }
/* What the app asks next is counted under that cause, which is returned. */
enum cause call_because(struct app *a, enum cause cause);
/* True when the call is to be made again. */
MAY_YIELD bool call_again(struct call *c, const struct api_result *r);
/* due us 0: no schedule of its own. */
void call_record(const struct call *c, enum drive_op op, const struct api_result *r, struct mono due);
/* The answer says that it was done, but it was done badly: the outcome becomes OUT_WRONG, with that reason. */
void call_wrong(struct api_result *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The server has the call, but not what it was asked about. */
bool call_is_404(const struct api_result *r);
#endif
