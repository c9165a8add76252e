#include "sim/app/turn.h"
#include "base/log.h"
#include "drive/api/budget.h"
#include "sim/app/pace.h"

bool turn_again(struct turn *t, const char *email, const struct api_result *r)
{
    char text[32];
    if (r->outcome != OUT_THROTTLED || *t->stop)
        return false;
    int64_t wait = pace_throttle_wait_us(r->retry_after_us, t->tries++, &t->rng);
    struct mono until = mono_add(mono_now(), wait);
    LOGI(t->command, "%s: sign-in limited by the server: waiting %s", email, str_duration(text, sizeof(text), wait));
    return budget_wait(t->loop, until, NULL, t->stop);
}
