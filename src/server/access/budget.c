#include "server/access/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/server.h"
#include "store/kv.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int64_t window_s;
    size_t limit; /* in struct server_conf */
    const char *sentence;
} budgets[BUDGET_COUNT] = {
    [BUDGET_REQUESTS] = {"requests", 900, offsetof(struct server_conf, request_budget),
                         "Too many requests, please try again later."},
    [BUDGET_UPLOADS] = {"uploads", 1800, offsetof(struct server_conf, upload_budget),
                        "Too many file uploads, please try again later."},
    [BUDGET_LOGINS] = {"logins", 900, offsetof(struct server_conf, login_budget),
                       "Too many authentication attempts, please try again later."},
    [BUDGET_STORAGE_TESTS] = {"storage-tests", 900, offsetof(struct server_conf, storage_test_budget),
                              "Too many storage tests, please try again later."},
};

/* The window's end is set with its first call, in the same step: a counter without an end can't be left behind. */
static const char script[] = "local out = {} "
                             "for i, key in ipairs(KEYS) do "
                             "local n = redis.call('INCR', key) "
                             "if n == 1 then redis.call('PEXPIRE', key, ARGV[i]) end "
                             "out[2 * i - 1] = n out[2 * i] = redis.call('PTTL', key) end "
                             "return out";

static int64_t limit_of(const struct request *r, enum budget b)
{
    return *(const int64_t *)(const void *)((const char *)r->server->conf + budgets[b].limit);
}

static void complain(const struct errinfo *ei)
{
    static struct mono last;
    struct mono now = mono_now();
    if (last.us == 0 || mono_diff(now, last) > 10 * US_PER_S) {
        last = now;
        LOGW("budget", "budgets are not counted: %s", err_message(ei));
    }
}

static void count_line(char *dst, size_t n, int64_t value)
{
    snprintf(dst, n, "%lld", (long long)value);
}

/* Asks Redis; left_ms and used of each. False when it is away. */
static MAY_YIELD bool ask(struct request *r, const struct budget_use *uses, size_t n, int64_t *used, int64_t *left_ms)
{
    char keys[BUDGET_COUNT][512], windows[BUDGET_COUNT][24], count[24];
    struct sv argv[3 + 2 * BUDGET_COUNT] = {SV("EVAL"), {script, sizeof script - 1}};
    struct kv_reply reply = {0};
    struct errinfo ei;

    count_line(count, sizeof count, (int64_t)n);
    argv[2] = sv_of(count);
    for (size_t i = 0; i < n; i++) {
        snprintf(keys[i], sizeof keys[i], "drive:%s:budget:%s:%s", r->server->epoch, budgets[uses[i].budget].name,
                 uses[i].key);
        count_line(windows[i], sizeof windows[i], budgets[uses[i].budget].window_s * 1000);
        argv[3 + i] = sv_of(keys[i]);
        argv[3 + n + i] = sv_of(windows[i]);
    }
    if (kv_command(r->server->kv, 3 + 2 * n, argv, &reply, &ei) != ERR_OK) {
        complain(&ei);
        return false;
    }
    bool fine = reply.type == KV_ARRAY && reply.n_items == 2 * n;
    for (size_t i = 0; fine && i < n; i++) {
        used[i] = reply.items[2 * i].i;
        left_ms[i] = reply.items[2 * i + 1].i;
    }
    kv_reply_done(&reply);
    return fine;
}

static MAY_YIELD void refuse(struct request *r, enum budget b)
{
    struct buf json = BUF_INIT(1024);
    struct jsonw w;
    reply_header(r, "Retry-After", "%lld", (long long)r->rate.reset_s);
    jsonw_init(&w, &json);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "error", budgets[b].sentence);
    jsonw_end_object(&w);
    reply_json(r, 429, &json);
    buf_done(&json);
}

bool budget_take(struct request *r, const struct budget_use *uses, size_t n)
{
    struct budget_use limited[BUDGET_COUNT];
    int64_t used[BUDGET_COUNT], left_ms[BUDGET_COUNT];
    size_t k = 0;

    for (size_t i = 0; i < n && k < BUDGET_COUNT; i++)
        if (limit_of(r, uses[i].budget) > 0)
            limited[k++] = uses[i];
    if (k == 0 || !ask(r, limited, k, used, left_ms))
        return true;
    for (size_t i = 0; i < k; i++) {
        int64_t limit = limit_of(r, limited[i].budget);
        r->rate = (struct rate){
            .limit = limit,
            .remaining = used[i] < limit ? limit - used[i] : 0,
            .reset_s = left_ms[i] > 0 ? (left_ms[i] + 999) / 1000 : 1,
            .window_s = budgets[limited[i].budget].window_s,
        };
        if (used[i] > limit) {
            refuse(r, limited[i].budget);
            return false;
        }
    }
    return true;
}
