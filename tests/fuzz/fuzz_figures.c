/* Figures that others write: /proc of a machine that ssh shows us, a server's /metrics. */
#include "base/str.h"
#include "drive/api/scrape.h"
#include "fuzz.h"
#include "sim/watch/host.h"

static void read_host(struct sv text)
{
    struct host_counters first = {0}, now = {0};
    struct watch_values v;
    for (int i = 0; i < WATCH_COUNT; i++)
        v.v[i] = WATCH_UNKNOWN;
    if (!host_parse(text, &now))
        return;
    host_figures(&first, &now, &first, 1000000, &v);
    host_figures(&now, &first, &now, 1000000, &v); /* as after a restart */
    for (int i = 0; i < WATCH_COUNT; i++)
        MUST(v.v[i] == WATCH_UNKNOWN || (v.v[i] >= 0 && v.v[i] - v.v[i] == 0));
}

static void read_metrics(const char *text)
{
    double v;
    if (scrape_value(text, "drive_x", &v))
        MUST(v == v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = mem_dup(data, size), *z = mem_strndup((const char *)data, size);
    struct sv text = {exact, size};
    read_host(text);
    read_metrics(z);
    mem_free(exact);
    mem_free(z);
    return 0;
}
