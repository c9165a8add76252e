/* What an object store answers: a page of a listing, an error, the end of a deletion, by the first byte. Whatever it
 * is, each is whole or refused, and what is told of it can be shown. */
#include "fuzz.h"
#include "store/s3xml.h"

static void read_page(struct sv xml)
{
    struct s3xml_page page = {0};
    if (s3xml_page_parse(xml, &page) == ERR_OK) {
        for (size_t i = 0; i < page.n; i++)
            MUST(page.items[i].key);
        MUST(!page.next || page.next[0]);
    }
    s3xml_page_done(&page);
}

static void read_error(struct sv xml)
{
    struct s3xml_error e;
    s3xml_error_parse(xml, &e);
    MUST(memchr(e.code, '\0', sizeof(e.code)) && memchr(e.message, '\0', sizeof(e.message)));
}

static void read_delete(struct sv xml)
{
    struct s3xml_error first = {{0}, {0}};
    size_t failed = 0;
    if (s3xml_delete_parse(xml, &failed, &first) == ERR_OK)
        MUST(memchr(first.code, '\0', sizeof(first.code)) && failed <= xml.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct sv) = {read_page, read_error, read_delete};
    if (size == 0)
        return 0;
    char *exact = mem_dup(data + 1, size - 1);
    readers[data[0] % ARRAY_LEN(readers)]((struct sv){exact, size - 1});
    mem_free(exact);
    return 0;
}
