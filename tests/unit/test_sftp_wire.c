#include "net/sftp_wire.h"
#include "unit.h"
#include <string.h>

static struct sv bytes(const char *p, size_t n)
{
    return (struct sv){p, n};
}
#define BYTES(lit) bytes(lit, sizeof(lit) - 1)

static void a_request_reads_back(void **state)
{
    (void)state;
    struct sftp_out o;
    struct sftp_packet p;
    size_t used = 0;
    sftp_out_begin(&o, SFTP_T_WRITE, 0x01020304);
    sftp_out_text(&o, SV("handle"));
    sftp_out_u64(&o, UINT64_C(0x0102030405060708));
    sftp_out_u32(&o, 4);
    sftp_out_end(&o, 4);
    assert_int_equal(o.err, ERR_OK);
    assert_false(sftp_packet_take(bytes(o.bytes.data, o.bytes.len), &p, &used)); /* its data follows */
    assert_int_equal(buf_append(&o.bytes, "data", 4), ERR_OK);
    assert_true(sftp_packet_take(bytes(o.bytes.data, o.bytes.len), &p, &used));
    assert_int_equal(used, o.bytes.len);
    assert_int_equal(p.type, SFTP_T_WRITE);
    assert_int_equal(p.id, 0x01020304);
    struct sftp_in in = {.rest = p.body};
    assert_true(sv_eq(sftp_in_text(&in), SV("handle")));
    assert_true(sftp_in_u64(&in) == UINT64_C(0x0102030405060708));
    assert_true(sv_eq(sftp_in_text(&in), SV("data")));
    assert_true(!in.bad && in.rest.n == 0);
    sftp_out_done(&o);
}

/* What comes in any pieces; what cannot be a packet is type 0 and not waited for. */
static void packets(void **state)
{
    (void)state;
    const struct {
        struct sv bytes;
        bool whole;
        uint8_t type;
        uint32_t id;
        size_t used;
    } rows[] = {
        {BYTES(""), false, 0, 0, 0},
        {BYTES("\0\0\0"), false, 0, 0, 0},
        {BYTES("\0\0\0\x05\x65\0\0\0"), false, 0, 0, 0},
        {BYTES("\0\0\0\x05\x65\0\0\0\x07"), true, SFTP_T_STATUS, 7, 9},
        {BYTES("\0\0\0\x05\x65\0\0\0\x07more"), true, SFTP_T_STATUS, 7, 9},
        {BYTES("\0\0\0\x05\x02\0\0\0\x03"), true, SFTP_T_VERSION, 0, 9}, /* has no id */
        {BYTES("\0\0\0\0more"), true, 0, 0, 8},
        {BYTES("\0\0\0\x04\x65\0\0\0more"), true, 0, 0, 8}, /* no room for its id */
        {BYTES("\0\x04\0\x01\x65\0\0\0"), true, 0, 0, 8},   /* longer than any may be */
        {BYTES("SSH-"), true, 0, 0, 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sftp_packet p;
        size_t used = 0;
        bool whole = sftp_packet_take(rows[i].bytes, &p, &used);
        if (whole != rows[i].whole || (whole && (p.type != rows[i].type || p.id != rows[i].id || used != rows[i].used)))
            fail_msg("row %zu: %d type %u id %u used %zu", i, whole, p.type, p.id, used);
    }
}

static void attributes(void **state)
{
    (void)state;
    const struct {
        struct sv bytes;
        bool ok, folder, file;
        int64_t size, mtime; /* -1: not told */
    } rows[] = {
        {BYTES("\0\0\0\0"), true, false, true, -1, -1},
        {BYTES("\0\0\0\x0f"
               "\0\0\0\x01\0\0\0\0"
               "\0\0\0\x01\0\0\0\x02"
               "\0\0\x81\xa4"
               "\0\0\0\x09\0\0\0\x0a"),
         true, false, true, INT64_C(1) << 32, 10},
        {BYTES("\0\0\0\x04\0\0\x41\xed"), true, true, false, -1, -1},
        {BYTES("\0\0\0\x04\0\0\xa1\xff"), true, false, false, -1, -1}, /* a link */
        {BYTES("\x80\0\0\x01"
               "\0\0\0\0\0\0\0\x05"
               "\0\0\0\x01"
               "\0\0\0\x01x"
               "\0\0\0\x01y"),
         true, false, true, 5, -1},
        {BYTES("\0\0\0\x01\0\0\0"), false, false, true, -1, -1},
        {BYTES("\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff"), true, false, true, -1, -1}, /* no file is so large */
        {BYTES("\x80\0\0\0\xff\xff\xff\xff"), false, false, true, -1, -1}, /* more extensions than bytes */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sftp_in in = {.rest = rows[i].bytes};
        struct sftp_attrs a = sftp_in_attrs(&in);
        int64_t size = a.has_size ? (int64_t)a.size : -1, mtime = a.has_times ? (int64_t)a.mtime_s : -1;
        if (in.bad == rows[i].ok || sftp_attrs_is_folder(&a) != rows[i].folder ||
            sftp_attrs_is_file(&a) != rows[i].file || size != rows[i].size || mtime != rows[i].mtime)
            fail_msg("row %zu", i);
    }
}

/* What a folder lists, up to the first that is none. */
static void entries(void **state)
{
    (void)state;
#define REST "\0\0\0\0\0\0\0\0" /* no long name, no attributes */
    const struct {
        struct sv bytes;
        const char *name; /* NULL: it is none */
    } rows[] = {
        {BYTES("\0\0\0\x01x" REST), "x"},
        {BYTES("\0\0\0\x02.." REST), ".."},
        {BYTES("\0\0\0\x01x\0\0\0\x04-rw-\0\0\0\x04\0\0\x81\xa4"), "x"},
        {BYTES("\0\0\0\0" REST), NULL},
        {BYTES("\0\0\0\x04../x" REST), NULL},
        {BYTES("\0\0\0\x03x\0y" REST), NULL},
        {BYTES("\0\0\0\x01x\0\0\0\0\0\0\0"), NULL}, /* cut off */
    };
#undef REST
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sftp_in in = {.rest = rows[i].bytes};
        struct sftp_attrs a;
        struct sv name;
        bool is = sftp_in_entry(&in, &name, &a);
        if (is != (rows[i].name != NULL) || in.bad == is || (is && !sv_eq_cstr(name, rows[i].name)))
            fail_msg("row %zu", i);
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    struct sftp_in in = {.rest = BYTES("\0\0\0\x05hell")};
    assert_int_equal(sftp_in_text(&in).n, 0);
    assert_true(in.bad);
    assert_int_equal(sftp_in_u32(&in), 0);
    in = (struct sftp_in){.rest = BYTES("\xff\xff\xff\xff")};
    assert_int_equal(sftp_in_text(&in).n, 0);
    assert_true(in.bad);
}

static void a_request_has_a_limit(void **state)
{
    (void)state;
    struct sftp_out o;
    char *text = mem_alloc(70000);
    memset(text, 'x', 70000);
    sftp_out_begin(&o, SFTP_T_STAT, 1);
    sftp_out_text(&o, bytes(text, 70000));
    sftp_out_u32(&o, 1);
    sftp_out_end(&o, 0);
    assert_int_equal(o.err, ERR_LIMIT);
    sftp_out_done(&o);
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reads_back),
        cmocka_unit_test(packets),
        cmocka_unit_test(attributes),
        cmocka_unit_test(entries),
        cmocka_unit_test(nothing_is_read_beyond_the_end),
        cmocka_unit_test(a_request_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
