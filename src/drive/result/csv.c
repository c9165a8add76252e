/* One line an operation, under a line of names (RFC 4180 with LF). No cell needs quotes: keys and numbers alone. */
#include "base/mem.h"
#include "drive/result/impl.h"
#include <stdio.h>

static const char *const latencies[] = {"p50_ms", "p95_ms", "p99_ms", "max_ms"};

static enum err put_number(struct buf *out, const struct json *v, int decimals)
{
    double n;
    enum err e = buf_append_char(out, ',');
    return e || !json_f64(v, &n) ? e : buf_appendf(out, "%.*f", decimals, n);
}

/* "p95_ms p99_ms due_p99_ms": those that there are samples for, but too few. */
static enum err put_few(struct buf *out, const struct json *op)
{
    const char *sep = ",";
    uint64_t samples, needs;
    enum err e = ERR_OK;
    for (size_t i = 0; i < 2 * ARRAY_LEN(latencies) && !e; i++) {
        bool due = i >= ARRAY_LEN(latencies);
        const char *key = latencies[i % ARRAY_LEN(latencies)];
        if (!few_read(due ? json_get(op, "from_due") : op, key, &samples, &needs) || !samples)
            continue;
        e = buf_appendf(out, "%s%s%s", sep, due ? "due_" : "", key);
        sep = " ";
    }
    return e || sep[0] == ' ' ? e : buf_append_char(out, ',');
}

static enum err put_row(struct buf *out, const struct json *op)
{
    const struct json *outcomes = json_get(op, "outcomes"), *due = json_get(op, "from_due");
    enum err e = buf_append_str(out, json_key(op));
    if (!e)
        e = put_number(out, json_get(op, "ok"), 0);
    if (!e)
        e = put_number(out, json_get(op, "failed"), 0);
    for (unsigned o = 0; o < OUT_COUNT && !e; o++)
        if (o != OUT_OK)
            e = put_number(out, json_get(outcomes, outcome_key((enum outcome)o)), 0);
    for (size_t i = 0; i < 2 * ARRAY_LEN(latencies) && !e; i++)
        e = put_number(out, json_get(i < ARRAY_LEN(latencies) ? op : due, latencies[i % ARRAY_LEN(latencies)]), 3);
    if (!e)
        e = put_few(out, op);
    return e ? e : buf_append_char(out, '\n');
}

enum err rendering_csv(const struct doc *d, struct buf *out)
{
    enum err e = buf_append_str(out, "operation,ok,failed");
    for (unsigned o = 0; o < OUT_COUNT && !e; o++)
        if (o != OUT_OK)
            e = buf_appendf(out, ",%s", outcome_key((enum outcome)o));
    for (size_t i = 0; i < 2 * ARRAY_LEN(latencies) && !e; i++)
        e = buf_appendf(out, ",%s%s", i < ARRAY_LEN(latencies) ? "" : "due_", latencies[i % ARRAY_LEN(latencies)]);
    if (!e)
        e = buf_append_str(out, "," PERCENTILES_FEW "\n");
    for (const struct json *op = json_first(json_get(d->root, "operations")); op && !e; op = json_next(op))
        e = put_row(out, op);
    return e;
}
