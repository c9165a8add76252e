/* Figures that others write: /proc of a machine that ssh shows us, a server's /metrics, a store's answers in XML. */
#include "base/str.h"
#include "drive/api/scrape.h"
#include "fuzz.h"
#include "sim/watch/host.h"
#include "store/s3xml.h"

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

static void read_store(struct sv xml)
{
    struct s3xml_page page = {0};
    struct s3xml_error first = {0};
    size_t failed = 0;
    if (s3xml_page_parse(xml, &page) == ERR_OK)
        for (size_t i = 0; i < page.n; i++)
            MUST(page.items[i].key && page.items[i].key[0]);
    s3xml_page_done(&page);
    s3xml_error_parse(xml, &first);
    MUST(strlen(first.code) < sizeof(first.code) && strlen(first.message) < sizeof(first.message));
    if (s3xml_delete_parse(xml, &failed, &first) == ERR_OK)
        MUST(strlen(first.code) < sizeof(first.code));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = mem_dup(data, size), *z = mem_strndup((const char *)data, size);
    struct sv text = {exact, size};
    read_host(text);
    read_metrics(z);
    read_store(text);
    mem_free(exact);
    mem_free(z);
    return 0;
}
