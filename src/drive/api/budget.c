#include "drive/api/budget.h"
#include "base/log.h"
#include "base/str.h"
#include "net/loop.h"

#define LEAST_US   US_PER_S        /* shorter ones are not worth a line */
#define AGAIN_US   (60 * US_PER_S) /* between two lines about the same */
#define ASKED_MIN  20              /* fewer tell more of what others asked than of the budget */
#define MARGIN_PCT 5
#define FIRST_US   US_PER_S /* where the server does not say how long; then twice as long each time */
#define MOST_US    (30 * US_PER_S)

static struct {
    struct timer timer;
    struct loop *loop; /* NULL: nobody waits */
    struct mono until; /* the latest of all that wait */
    struct mono told;  /* when the last line was; us 0: never */
    unsigned waiting;
} notice;

static void tell(const char *how, const char *reason)
{
    char left[32], at[32];
    int64_t us = mono_diff(notice.until, mono_now());
    struct wall until = {wall_now().us + us};
    bool said = reason && *reason;
    notice.told = mono_now();
    LOGW("budget", "%s: waiting %s, until %s; an interruption ends it%s%s%s", how,
         str_duration(left, sizeof left, us > 0 ? us : 0), wall_format_seconds(at, sizeof at, until), said ? " (" : "",
         said ? SHOWN(sv_of(reason)) : "", said ? ")" : "");
}

static void on_timer(struct timer *t)
{
    tell("the server's budget is still spent", NULL);
    loop_timer_set(notice.loop, t, mono_add(mono_now(), AGAIN_US));
}

void budget_wait_begin(struct loop *l, struct mono until, const char *reason)
{
    struct mono now = mono_now();
    bool quiet = !reason || mono_diff(until, now) < LEAST_US;
    bool later = mono_diff(until, notice.until) > AGAIN_US / 2; /* than what was told */
    if (mono_before(notice.until, until))
        notice.until = until;
    if (!notice.waiting++) {
        notice.loop = l;
        notice.until = until;
        notice.timer.fn = on_timer;
        loop_timer_set(l, &notice.timer, mono_add(now, AGAIN_US));
    }
    if (!quiet && (!notice.told.us || later || mono_diff(now, notice.told) > AGAIN_US / 2))
        tell("the server's budget is spent", reason);
}

void budget_wait_end(void)
{
    if (--notice.waiting)
        return;
    loop_timer_stop(&notice.timer);
    notice.loop = NULL;
}

bool budget_wait(struct loop *l, struct mono until, const char *reason, const bool *stop)
{
    static const bool never = false;
    budget_wait_begin(l, until, reason);
    bool on = coro_sleep_unless(l, until, stop ? stop : &never);
    budget_wait_end();
    return on;
}

bool budget_turn(struct budget_pace *p, struct loop *l, const bool *stop)
{
    struct mono now = mono_now();
    if (p->since.us == 0)
        p->since = now;
    p->asked++;
    if (p->gap_us == 0)
        return !*stop;
    struct mono at = mono_before(p->next, now) ? now : p->next; /* what was missed is not made up for */
    p->next = mono_add(at, p->gap_us);
    return coro_sleep_unless(l, at, stop);
}

void budget_spent(struct budget_pace *p, struct mono until)
{
    int64_t window_us = mono_diff(until, p->since);
    if (p->asked >= ASKED_MIN && window_us > 0)
        p->gap_us = window_us / (int64_t)p->asked * (100 + MARGIN_PCT) / 100;
    p->since = p->next = until;
    p->asked = 0;
}

bool budget_sit_out(struct budget *b, int64_t retry_after_us, const char *reason)
{
    int64_t step = FIRST_US << (b->tries < 10 ? b->tries : 10);
    int64_t wait = retry_after_us > 0 ? retry_after_us + FIRST_US / 10 : step < MOST_US ? step : MOST_US;
    struct mono from = mono_now(), until = mono_add(from, wait);
    if (*b->stop)
        return false;
    b->tries++;
    budget_spent(&b->pace, until);
    bool on = budget_wait(b->loop, until, reason, b->stop);
    b->waited_us += mono_diff(mono_now(), from);
    return on;
}
