#include "sim/ramp/cause.h"
#include "base/mem.h"

#define LINK_FULL 0.85

struct sign {
    enum watch_figure figure;
    double least;
    double growth; /* times the figure at the step on track; 0: however much that was */
    const char *what;
};
/* Memory first: what swaps is slow in all else. */
static const struct sign signs[] = {
    {WATCH_SWAP, 16, 0, "memory"},
    {WATCH_CPU, 85, 0, "the processors"},
    {WATCH_PROC_CPU, 95, 0, "one processor: the server's process fills it"},
    {WATCH_STORE_CPU, 95, 0, "one processor: the object store's process fills it"},
    {WATCH_DISK_WRITE, 20, 2, "the disk"},
    {WATCH_DISK_AWAIT, 20, 2, "the disk"},
    {WATCH_DISK_QUEUE, 4, 2, "the disk"},
    {WATCH_PG_WAITING, 1, 1.5, "locks in Postgres"},
};

static bool shows(const struct sign *s, const struct watch_values *on, const struct watch_values *off)
{
    double before = on ? on->v[s->figure] : WATCH_UNKNOWN;
    double now = off->v[s->figure];
    return now >= s->least && (s->growth <= 0 || before < 0 || now >= s->growth * before);
}

static void name(struct buf *text, const char *what, enum watch_figure f, double now, double before)
{
    char amount[64];
    int decimals = watch_decimals(f);
    enum err e =
        buf_appendf(text, "%s%s: %s", text->len ? "; " : "", what, watch_amount(f, now, amount, sizeof(amount)));
    if (e == ERR_OK && before >= 0)
        e = buf_appendf(text, " (%.*f before)", decimals, before);
    if (e != ERR_OK)
        return; /* the first ones are what matters */
}

static bool all_unknown(const struct watch_values *v)
{
    for (size_t i = 0; i < WATCH_COUNT; i++)
        if (v->v[i] >= 0)
            return false;
    return true;
}

char *ramp_cause(const struct watch_values *on, const struct watch_values *off, double link_mb_per_s, bool *known,
                 char *dst, size_t n)
{
    struct buf text = BUF_INIT(1024);
    const char *last = "";
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        const struct sign *s = &signs[i];
        if (s->what == last || !shows(s, on, off))
            continue;
        last = s->what;
        name(&text, s->what, s->figure, off->v[s->figure], on ? on->v[s->figure] : WATCH_UNKNOWN);
    }
    if (link_mb_per_s > 0 && off->v[WATCH_NET] >= LINK_FULL * link_mb_per_s)
        name(&text, "the network", WATCH_NET, off->v[WATCH_NET], on ? on->v[WATCH_NET] : WATCH_UNKNOWN);
    *known = text.len > 0;
    if (*known)
        str_format(dst, n, "%s", buf_cstr(&text));
    else if (all_unknown(off))
        str_format(dst, n, "not known: the server was not watched (--watch)");
    else
        str_format(dst, n, "none of the machine's resources: a lock, a pool or a pause in the server");
    buf_done(&text);
    return dst;
}
