/* The file of kept sessions, which a user, an editor or another version may have touched: whatever is read can be put
 * into a header, and reading it twice changes nothing. */
#include "drive/api/token_store.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct token_store *s = token_store_new();
    struct token_store_view v;
    struct kept_session k;
    size_t n = token_store_read(s, (struct sv){(const char *)data, size});
    MUST(token_store_read(s, (struct sv){(const char *)data, size}) == n);
    token_store_look(s, "password", &v);
    MUST(v.usable <= v.all && v.all <= n && !v.folder);
    if (token_store_find(s, "owner@load.test", "password", &k))
        MUST(k.token[0] && !strpbrk(k.token, "; \t\r\n"));
    token_store_save(s);
    token_store_forget(s);
    MUST(token_store_read(s, (struct sv){"", 0}) == 0);
    token_store_free(&s);
    return 0;
}
