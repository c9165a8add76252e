/* JSON: what is accepted can be walked, written again and read back as the same. */
#include "base/json.h"
#include "base/utf8.h"
#include "fuzz.h"

static void write_again(const struct json *v, struct jsonw *w, const char *key, unsigned depth)
{
    double d;
    int64_t i;

    MUST(depth <= 65);
    if (json_is_object(v) || json_is_array(v)) {
        bool object = json_is_object(v);
        (object ? jsonw_object : jsonw_array)(w, key);
        for (const struct json *c = json_first(v); c; c = json_next(c))
            write_again(c, w, object ? json_key(c) : NULL, depth + 1);
        (object ? jsonw_end_object : jsonw_end_array)(w);
    } else if (json_is_string(v)) {
        jsonw_str(w, key, json_str(v));
        (void)json_i64(v, &i);
    } else if (json_i64(v, &i)) {
        jsonw_i64(w, key, i);
    } else if (json_f64(v, &d)) {
        jsonw_f64(w, key, d, 6);
    } else if (json_is_bool(v)) {
        jsonw_bool(w, key, json_bool(v, false));
    } else {
        jsonw_null(w, key);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = BUF_INIT(16 << 20), again = BUF_INIT(16 << 20);
    struct json *j = NULL;
    struct jsonw w;

    if (json_parse((const char *)data, size, &j, NULL))
        return 0;
    jsonw_init(&w, &text);
    write_again(j, &w, NULL, 0);
    json_free(&j);
    if (!w.err) {
        MUST(utf8_valid((struct sv){text.data, text.len}));
        MUST(json_parse(text.data, text.len, &j, NULL) == ERR_OK);
        jsonw_init(&w, &again);
        write_again(j, &w, NULL, 0);
        MUST(!w.err && again.len == text.len && memcmp(again.data, text.data, text.len) == 0);
        json_free(&j);
    }
    buf_done(&text);
    buf_done(&again);
    return 0;
}
