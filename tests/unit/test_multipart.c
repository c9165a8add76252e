/* Multipart bodies: the same parts at every split of the bytes, the rule for names, and what is refused. */
#include "server/http/multipart.h"
#include "unit.h"
#include <string.h>

#define CD "Content-Disposition: form-data; name="

/* What a body came to: "name|filename|content;" for each part, then "end", "open" or "error". */
struct verdict {
    char text[2048];
    size_t n;
    bool done;
};

static void note(struct verdict *o, struct sv s)
{
    assert_true(o->n + s.n < sizeof o->text);
    memcpy(o->text + o->n, s.p, s.n);
    o->n += s.n;
    o->text[o->n] = '\0';
}

static void note_part(struct verdict *o, struct mp_parser *p)
{
    struct arena *mem = arena_new(512);
    struct multipart_part part;
    if (mp_part_parse(mem, mp_head(p), &part)) {
        note(o, part.name);
        note(o, SV("|"));
        note(o, part.has_filename ? part.filename : SV("-"));
        note(o, SV("|"));
    } else {
        note(o, SV("?|"));
    }
    arena_free(&mem);
}

static void feed(struct verdict *o, struct mp_parser *p, struct sv in)
{
    struct sv data;
    while (!o->done) {
        switch (mp_feed(p, &in, &data)) {
        case MP_MORE:
            return;
        case MP_PART:
            note_part(o, p);
            break;
        case MP_DATA:
            assert_true(data.n > 0);
            note(o, data);
            break;
        case MP_PART_END:
            note(o, SV(";"));
            break;
        case MP_END:
            note(o, SV("end"));
            o->done = true;
            break;
        case MP_ERROR:
            note(o, SV("error"));
            o->done = true;
            break;
        }
    }
}

static const struct {
    const char *body, *outcome;
} bodies[] = {
    {"--B\r\n" CD "\"a\"\r\n\r\nhello\r\n--B--\r\n", "a|-|hello;end"},
    {"--B\r\n" CD "\"a\"\r\n\r\nhello\r\n--B--", "a|-|hello;end"},
    {"--B\r\n" CD "\"a\"\r\n\r\n\r\n--B--\r\n", "a|-|;end"},
    {"--B\r\n" CD "\"a\"\r\n\r\n--B--\r\n", "a|-|;end"}, /* no content, and the blank line's CRLF is the delimiter's */
    {"--B\r\n" CD "\"a\"\r\n\r\n1\r\n--B\r\n" CD
     "\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\n2\r\n3\r\n--B--\r\n",
     "a|-|1;f|x.txt|2\r\n3;end"},
    {"preamble\r\n--B\r\n" CD "\"a\"\r\n\r\nx\r\n--B--\r\nepilogue\r\n--B\r\n", "a|-|x;end"},
    {"--B \t\r\n" CD "\"a\"\r\n\r\nx\r\n--B-- \r\n", "a|-|x;end"},
    {"--B\r\n" CD "\"a\"\r\n\r\n\r\r\n--\r\n-B\r\n--A\r\n--B--\r\n", "a|-|\r\r\n--\r\n-B\r\n--A;end"},
    {"--B\r\n" CD "\"a\"\r\n\r\n--B\r\n\r\n--B--\r\n", "a|-|;?|;end"},
    {"--B\r\n" CD "\"a\"\r\n\r\nx--B--\r\n--B--\r\n", "a|-|x--B--;end"},
    {"--B\r\n" CD "\"a\"\r\n\r\nx\n--B--\n\r\n--B--\r\n", "a|-|x\n--B--\n;end"},
    {"--B--\r\n", "end"},
    {"--BX\r\n", "error"},
    {"--B\r\n" CD "\"a\"\r\n\r\nx\r\n--B-x", "a|-|x;error"},
    {"--B\r\r\n", "error"},
    {"--B\r\n" CD "\"a\"\r\n\r\nx\r\n--B", "a|-|x;"},
    {"--B\r\n" CD "\"a\"\r\n\r\nx\r\n--", "a|-|x"},
    {"", ""},
};

static void test_bodies_at_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct sv all = sv_of(bodies[i].body);
        for (size_t a = 0; a <= all.n; a++) {
            for (size_t b = a; b <= all.n; b += 1 + all.n / 16) {
                struct mp_parser *p = mp_new(SV("B"));
                struct verdict o = {"", 0, false};
                feed(&o, p, (struct sv){all.p, a});
                feed(&o, p, (struct sv){all.p + a, b - a});
                feed(&o, p, (struct sv){all.p + b, all.n - b});
                if (strcmp(o.text, bodies[i].outcome) != 0)
                    fail_msg("body %zu cut at %zu and %zu: \"%s\" instead of \"%s\"", i, a, b, o.text,
                             bodies[i].outcome);
                mp_free(&p);
            }
        }
    }
}

static const struct {
    const char *head, *name, *filename; /* name NULL: refused; filename NULL: none */
} parts[] = {
    {CD "\"a\"\r\n", "a", NULL},
    {"content-disposition:form-data;name=a;filename=b.txt\r\n", "a", "b.txt"},
    {CD "\"f\"; filename=\"%22foo.jpg\"\r\n", "f", "\"foo.jpg"},
    {CD "\"f\"; filename=\"a\\b.txt\"\r\n", "f", "a\\b.txt"},
    {CD "\"f\"; filename=\"a\\\\.txt\"\r\n", "f", "a\\\\.txt"},
    {CD "\"f\"; filename=\"100%0Applejuice.pdf\"\r\n", "f", "100\npplejuice.pdf"},
    {CD "\"f\"; filename=\"100%0applejuice.pdf\"\r\n", "f", "100\npplejuice.pdf"},
    {CD "\"f\"; filename=\"100%250Applejuice.pdf\"\r\n", "f", "100%250Applejuice.pdf"},
    {CD "\"f\"; filename=\"%0D%0A%41%\"\r\n", "f", "\r\n%41%"},
    {CD "\"f\"; filename=\"test(1).txt\"\r\n", "f", "test(1).txt"},
    {CD "\"f\"; filename=\"a;b=c.txt\"\r\n", "f", "a;b=c.txt"},
    {CD "\"f\"; filename=\"\xf0\x9f\x8c\x8d.txt\"\r\n", "f", "\xf0\x9f\x8c\x8d.txt"},
    {CD "\"f\"; filename=\"../../x.txt\"\r\n", "f", "x.txt"},
    {CD "\"f\"; filename=\"\"\r\n", "f", ""},
    {CD "\"f\"; filename*=UTF-8''x.txt\r\n", "f", NULL},
    {CD "\"f\"; filename=\"\\\"foo.jpg\"\r\n", NULL, NULL}, /* the quote ends the value: not what older curl meant */
    {CD "\"f\"; filename=\"open\r\n", NULL, NULL},
    {"Content-Disposition: form-data\r\n", NULL, NULL},
    {"Content-Disposition: attachment; name=\"a\"\r\n", NULL, NULL},
    {"Content-Type: text/plain\r\n", NULL, NULL},
    {"\r\n", NULL, NULL},
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct arena *mem = arena_new(512);
        struct multipart_part out;
        bool fine = mp_part_parse(mem, sv_of(parts[i].head), &out);
        if (fine != (parts[i].name != NULL))
            fail_msg("head %zu: %s", i, fine ? "taken" : "refused");
        if (fine) {
            assert_true(sv_eq_cstr(out.name, parts[i].name));
            assert_int_equal(out.has_filename, parts[i].filename != NULL);
            if (parts[i].filename && !sv_eq_cstr(out.filename, parts[i].filename))
                fail_msg("head %zu: \"" SV_FMT "\"", i, SV_ARG(out.filename));
        }
        arena_free(&mem);
    }
}

static const struct {
    const char *type, *boundary; /* NULL: refused */
} types[] = {
    {"multipart/form-data; boundary=abc", "abc"},
    {"Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b:c\"", "a b:c"},
    {"multipart/form-data; boundary=1234567890123456789012345678901234567890123456789012345678901234567890",
     "1234567890123456789012345678901234567890123456789012345678901234567890"},
    {"multipart/form-data; boundary=12345678901234567890123456789012345678901234567890123456789012345678901", NULL},
    {"multipart/form-data; boundary=", NULL},
    {"multipart/form-data; boundary=\"\"", NULL},
    {"multipart/form-data; boundary=\"open", NULL},
    {"multipart/form-data", NULL},
    {"multipart/mixed; boundary=abc", NULL},
    {"application/json", NULL},
    {NULL, NULL},
};

static void test_boundaries(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct sv out, type = types[i].type ? sv_of(types[i].type) : (struct sv){NULL, 0};
        assert_int_equal(mp_boundary(type, &out), types[i].boundary != NULL);
        if (types[i].boundary)
            assert_true(sv_eq_cstr(out, types[i].boundary));
    }
}

static void test_long_head(void **state)
{
    (void)state;
    struct mp_parser *p = mp_new(SV("B"));
    static char text[17 * 1024];
    struct sv data, in = {text, sizeof text};
    memset(text, 'x', sizeof text);
    memcpy(text, "--B\r\n", 5);
    assert_int_equal(mp_feed(p, &in, &data), MP_ERROR);
    assert_int_equal(mp_problem_code(p), ERR_LIMIT);
    assert_int_equal(mp_feed(p, &in, &data), MP_ERROR);
    mp_free(&p);
    assert_null(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies_at_every_split),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_long_head),
    };
    return cmocka_run_group_tests_name("multipart", tests, NULL, NULL);
}
