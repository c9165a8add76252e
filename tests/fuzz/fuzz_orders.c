/* What people order in words of our own: steps and lines of a ramp, outages, big files, mixes, faults. Every reader
 * sees every input; what is taken lies within its bounds, a refusal says why. */
#include "base/str.h"
#include "fuzz.h"
#include "server/faults.h"
#include "sim/app/mix.h"
#include "sim/app/storm.h"
#include "sim/ramp/line.h"
#include "sim/ramp/plan.h"
#include "sim/run/chaos.h"
#include "sim/run/inject.h"

static void must_say_why(enum err e, const struct errinfo *ei)
{
    MUST(e == ERR_OK || ei->msg[0]);
}

static void read_ramp(const char *text)
{
    struct ramp_steps steps = {0};
    struct ramp_work work = {0};
    struct errinfo ei = {0};
    double v = 0;
    enum err e = ramp_parse_steps(text, &steps, &ei);
    must_say_why(e, &ei);
    MUST(e || (steps.n >= 1 && steps.n <= RAMP_STEPS_MAX));
    for (unsigned i = 0; !e && i < steps.n; i++)
        MUST(steps.sessions[i] >= 1 && steps.sessions[i] <= RAMP_SESSIONS_MAX);
    e = ramp_parse_rate(text, &v, &ei);
    must_say_why(e, &ei);
    MUST(e || (v >= 0 && v - v == 0 && ramp_due_us(v, RAMP_SESSIONS_MAX) >= 0));
    e = ramp_parse_link(text, &v, &ei);
    must_say_why(e, &ei);
    MUST(e || (v > 0 && v - v == 0));
    e = ramp_parse_work(text, &work, &ei);
    must_say_why(e, &ei);
    MUST(e || work.bytes >= 0);
    for (int whole = 0; whole <= 1; whole++) {
        struct ramp_line l = {0};
        char shown[64];
        e = ramp_line_parse(whole ? "--expect" : "--stop-on", text, whole, &l, &ei);
        must_say_why(e, &ei);
        if (!e) {
            MUST(l.want - l.want == 0 && ramp_line_value(&l, l.want, shown, sizeof(shown))[0]);
            (void)ramp_line_holds(&l, 1);
        }
    }
}

/* No stack is near: an outage that is well said is refused for that (ERR_ENV). */
static void read_run(const char *text)
{
    static struct target target;
    static struct cmd_ctx ctx = {.target = &target};
    static struct cmd_common common = {.quiet = true};
    static struct worker w = {.ctx = &ctx, .conf = {.window_us = 60 * US_PER_S}};
    struct inject in;
    struct errinfo ei = {0};
    char shown[200];
    double share;
    ctx.common = &common;
    enum err e = inject_init(&in, &w, text, -1, -1, &ei);
    must_say_why(e, &ei);
    if (!e)
        MUST(in.bigfiles.at_us >= 0 && in.bigfiles.at_us < w.conf.window_us &&
             inject_text(&in, shown, sizeof(shown))[0]);
    if (storm_parse_share(text, &share))
        MUST(share >= 0 && share <= 1);
}

static void read_mix(const char *text, size_t n)
{
    struct mix m;
    struct errinfo ei = {0};
    struct rng rng;
    enum err e = mix_parse(&m, "mix", (struct sv){text, n}, &ei);
    must_say_why(e, &ei);
    if (e)
        return;
    rng_init(&rng, 1, 1);
    for (int i = 0; i < 20; i++) {
        enum drive_op op = mix_draw(&m, &rng);
        MUST(op < OP_COUNT && mix_is_action(op) && m.weight[op] > 0);
    }
}

static void read_fault(const char *text)
{
    struct faults f;
    struct errinfo ei = {0};
    struct opt_list one = {&text, 1};
    enum err e = faults_parse(&f, &one, &ei);
    must_say_why(e, &ei);
    for (int i = 0; !e && i < FAULT_COUNT; i++)
        MUST(!(f.set >> i & 1) || (f.p[i] > 0 && f.p[i] <= 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 2048)
        return 0;
    char *text = mem_strndup((const char *)data, size);
    read_ramp(text);
    read_run(text);
    read_mix(text, strlen(text));
    if (strncmp(text, "hang=", 5) == 0) /* an unknown name has the whole table printed */
        read_fault(text);
    mem_free(text);
    return 0;
}
