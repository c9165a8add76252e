#include "base/json.h"
#include "base/recycle.h"
#include "base/utf8.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#define DEPTH_MAX 64
#define EXACT_MAX 9007199254740992.0 /* 2^53: a double holds every whole number up to here */

/* struct json is a cJSON under another name: the type never leaves this file. */
static const cJSON *in(const struct json *v)
{
    return (const cJSON *)v;
}

static const struct json *out_of(const cJSON *v)
{
    return (const struct json *)v;
}

static pthread_once_t hooks_once = PTHREAD_ONCE_INIT;

static void set_hooks(void)
{
    cJSON_Hooks hooks = {recycle_alloc, recycle_free};

    cJSON_InitHooks(&hooks);
}

/* What is looked at: all other bytes are passed over. */
static const bool outside[256] = {['\0'] = true, ['"'] = true, ['['] = true, ['{'] = true, [']'] = true, ['}'] = true};
static const bool in_strings[256] = {['\0'] = true, ['"'] = true, ['\\'] = true};

/* What cJSON would get wrong is refused before it sees the text: nesting (it recurses) and \u0000 (it ends the string
 * there, so that two different names would read as one). */
static const char *problem(const char *text, size_t n)
{
    unsigned depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (!(in_string ? in_strings : outside)[(unsigned char)c])
            continue;
        if (c == '\0')
            return "holds a NUL byte";
        if (!in_string) {
            in_string = c == '"';
            if ((c == '[' || c == '{') && ++depth > DEPTH_MAX)
                return "nested deeper than 64 levels";
            if ((c == ']' || c == '}') && depth)
                depth--;
        } else if (c == '\\') {
            if (n - i > 5 && memcmp(text + i, "\\u0000", 6) == 0)
                return "holds \\u0000";
            i++;
        } else if (c == '"') {
            in_string = false;
        }
    }
    return NULL;
}

static bool only_space(const char *p, const char *end)
{
    while (p < end && strchr(" \t\r\n", *p))
        p++;
    return p == end;
}

enum err json_parse(const char *text, size_t n, struct json **out, struct errinfo *ei)
{
    const char *why = n ? problem(text, n) : "empty", *end = NULL;
    cJSON *root;

    if (why)
        return err_set(ei, ERR_PARSE, "JSON: %s", why);
    pthread_once(&hooks_once, set_hooks);
    root = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (!root)
        return err_set(ei, ERR_PARSE, "JSON: malformed near byte %zu", end ? (size_t)(end - text) : 0);
    if (!only_space(end, text + n)) {
        cJSON_Delete(root);
        return err_set(ei, ERR_PARSE, "JSON: more follows after byte %zu", (size_t)(end - text));
    }
    *out = (struct json *)root;
    return ERR_OK;
}

void json_free(struct json **root)
{
    cJSON_Delete((cJSON *)*root);
    *root = NULL;
}

const struct json *json_get(const struct json *obj, const char *key)
{
    return out_of(cJSON_GetObjectItemCaseSensitive(in(obj), key));
}

const struct json *json_first(const struct json *container)
{
    return container ? out_of(in(container)->child) : NULL;
}

const struct json *json_next(const struct json *item)
{
    return item ? out_of(in(item)->next) : NULL;
}

const char *json_key(const struct json *item)
{
    return item ? in(item)->string : NULL;
}

size_t json_count(const struct json *container)
{
    size_t n = 0;

    for (const struct json *item = json_first(container); item; item = json_next(item))
        n++;
    return n;
}

bool json_is_null(const struct json *v)
{
    return !v || cJSON_IsNull(in(v));
}

bool json_is_array(const struct json *v)
{
    return cJSON_IsArray(in(v));
}

bool json_is_object(const struct json *v)
{
    return cJSON_IsObject(in(v));
}

bool json_is_string(const struct json *v)
{
    return cJSON_IsString(in(v));
}

bool json_is_number(const struct json *v)
{
    return cJSON_IsNumber(in(v));
}

bool json_is_bool(const struct json *v)
{
    return cJSON_IsBool(in(v));
}

const char *json_str(const struct json *v)
{
    return json_is_string(v) ? in(v)->valuestring : NULL;
}

bool json_bool(const struct json *v, bool fallback)
{
    return cJSON_IsBool(in(v)) ? cJSON_IsTrue(in(v)) : fallback;
}

bool json_i64(const struct json *v, int64_t *out)
{
    if (json_is_string(v))
        return sv_to_i64(sv_of(in(v)->valuestring), out);
    if (!json_is_number(v))
        return false;
    double d = in(v)->valuedouble;
    if (!(fabs(d) <= EXACT_MAX) || d != floor(d))
        return false;
    *out = (int64_t)d;
    return true;
}

bool json_f64(const struct json *v, double *out)
{
    if (!json_is_number(v) || !isfinite(in(v)->valuedouble))
        return false;
    *out = in(v)->valuedouble;
    return true;
}

void jsonw_init(struct jsonw *w, struct buf *out)
{
    *w = (struct jsonw){.out = out};
}

static void put(struct jsonw *w, const char *p, size_t n)
{
    if (!w->err)
        w->err = buf_append(w->out, p, n);
}

static void put_char(struct jsonw *w, char c)
{
    put(w, &c, 1);
}

/* How many bytes at the start stand for themselves: nearly all of them, so they are copied at once. */
static size_t plain_run(struct sv v)
{
    size_t n = 0;
    while (n < v.n && v.p[n] >= 0x20 && v.p[n] < 0x7F && v.p[n] != '"' && v.p[n] != '\\')
        n++;
    return n;
}

static void put_quoted(struct jsonw *w, struct sv v)
{
    static const char hex[] = "0123456789abcdef";
    static const char short_from[] = "\"\\\b\f\n\r\t", short_to[] = "\"\\bfnrt";

    put_char(w, '"');
    while (v.n && !w->err) {
        size_t run = plain_run(v);
        put(w, v.p, run);
        v = (struct sv){v.p + run, v.n - run};
        if (!v.n)
            break;
        size_t len = utf8_next(v);
        unsigned char c = (unsigned char)v.p[0];
        const char *at = c ? strchr(short_from, c) : NULL;
        if (!len)
            put(w, "\xEF\xBF\xBD", 3);
        else if (at)
            put(w, (char[]){'\\', short_to[at - short_from]}, 2);
        else if (c < 0x20 || c == 0x7F)
            put(w, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
        else
            put(w, v.p, len);
        len += !len;
        v = (struct sv){v.p + len, v.n - len};
    }
    put_char(w, '"');
}

/* Comma and key before a value. */
static void start(struct jsonw *w, const char *key)
{
    if (w->comma)
        put_char(w, ',');
    w->comma = true;
    if (key) {
        put_quoted(w, sv_of(key));
        put_char(w, ':');
    }
}

static void open_container(struct jsonw *w, const char *key, char c)
{
    start(w, key);
    put_char(w, c);
    w->depth++;
    w->comma = false;
}

static void close_container(struct jsonw *w, char c)
{
    put_char(w, c);
    w->depth--;
    w->comma = true;
}

void jsonw_object(struct jsonw *w, const char *key)
{
    open_container(w, key, '{');
}

void jsonw_array(struct jsonw *w, const char *key)
{
    open_container(w, key, '[');
}

void jsonw_end_object(struct jsonw *w)
{
    close_container(w, '}');
}

void jsonw_end_array(struct jsonw *w)
{
    close_container(w, ']');
}

void jsonw_str(struct jsonw *w, const char *key, const char *v)
{
    if (v)
        jsonw_sv(w, key, sv_of(v));
    else
        jsonw_null(w, key);
}

void jsonw_sv(struct jsonw *w, const char *key, struct sv v)
{
    start(w, key);
    put_quoted(w, v);
}

void jsonw_raw(struct jsonw *w, const char *key, struct sv json)
{
    start(w, key);
    put(w, json.p, json.n);
}

void jsonw_i64(struct jsonw *w, const char *key, int64_t v)
{
    char text[24];

    jsonw_raw(w, key, (struct sv){text, (size_t)str_format(text, sizeof text, "%lld", (long long)v)});
}

/* Fixed decimals, trailing zeros dropped: 12.500 is 12.5. */
void jsonw_f64(struct jsonw *w, const char *key, double v, int decimals)
{
    char text[352]; /* DBL_MAX has 309 digits before the point */
    struct sv s = {text, 0};

    if (!isfinite(v)) {
        jsonw_null(w, key);
        return;
    }
    if (decimals < 0)
        decimals = 0;
    s.n = (size_t)str_format(text, sizeof text, "%.*f", decimals > 17 ? 17 : decimals, v);
    while (decimals > 0 && s.n && text[s.n - 1] == '0')
        s.n--;
    if (s.n && text[s.n - 1] == '.')
        s.n--;
    if (sv_eq(s, SV("-0")))
        s = SV("0");
    jsonw_raw(w, key, s);
}

void jsonw_measured(struct jsonw *w, const char *key, double v, int decimals)
{
    jsonw_f64(w, key, v < 0 ? NAN : v, decimals);
}

void jsonw_bool(struct jsonw *w, const char *key, bool v)
{
    jsonw_raw(w, key, v ? SV("true") : SV("false"));
}

void jsonw_null(struct jsonw *w, const char *key)
{
    jsonw_raw(w, key, SV("null"));
}
