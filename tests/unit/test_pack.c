/* A folder packed and unfolded is the same; whatever else is in a pack is refused and makes nothing outside. */
#include "base/buf.h"
#include "base/str.h"
#include "drive/pack.h"
#include "unit.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utime.h>

#define MANY 100

static char root[64];

static int gone(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int setup(void **state)
{
    (void)state;
    str_format(root, sizeof root, "/tmp/drivesim-pack-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return nftw(root, gone, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *name)
{
    static char path[4][256];
    static unsigned i;
    i = (i + 1) % 4;
    str_format(path[i], sizeof path[i], "%s/%s", root, name);
    return path[i];
}

static void spew(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static struct buf slurp(const char *name)
{
    struct buf b = BUF_INIT(16 << 20);
    char chunk[4096];
    size_t n;
    FILE *f = fopen(at(name), "r");
    assert_non_null(f);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        assert_int_equal(buf_append(&b, chunk, n), ERR_OK);
    fclose(f);
    return b;
}

static void make_folder(void)
{
    static char big[(3u << 20) + 17];
    const struct utimbuf old = {.actime = 1000, .modtime = 86400};
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 7 + (i >> 9));
    assert_int_equal(mkdir(at("in"), 0700), 0);
    assert_int_equal(mkdir(at("in/a"), 0700), 0);
    assert_int_equal(mkdir(at("in/empty"), 0700), 0);
    spew("in/a/big", big, sizeof big);
    spew("in/a/none", "", 0);
    spew("in/caf\xc3\xa9 1", "x", 1);
    assert_int_equal(utime(at("in/a/none"), &old), 0);
}

static void assert_same(const char *a, const char *b)
{
    struct buf x = slurp(a), y = slurp(b);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(buf_cstr(&x), buf_cstr(&y), x.len);
    buf_done(&x);
    buf_done(&y);
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct pack_sum made, read, again, plain;
    struct errinfo ei = {0};
    struct stat st;
    make_folder();
    assert_int_equal(pack_make(at("in"), at("p"), NULL, &made, &ei), ERR_OK);
    assert_int_equal(made.files, 3);
    assert_int_equal(made.entries, 5);
    assert_int_equal(made.bytes, (3u << 20) + 18);
    assert_int_equal(pack_unfold(at("p"), at("out"), MANY, NULL, &read, &ei), ERR_OK);
    assert_memory_equal(&read, &made, sizeof read);
    assert_same("in/a/big", "out/a/big");
    assert_same("in/caf\xc3\xa9 1", "out/caf\xc3\xa9 1");
    assert_int_equal(stat(at("out/a/none"), &st), 0);
    assert_int_equal(st.st_mtime, 86400);
    assert_int_equal(stat(at("out/empty"), &st), 0);
    assert_int_equal(pack_digest(at("p"), NULL, &plain, &ei), ERR_OK);
    assert_memory_equal(plain.sha256, made.sha256, sizeof plain.sha256);
    assert_int_equal(plain.size, made.size);
    assert_int_equal(pack_make(at("out"), at("p2"), NULL, &again, &ei), ERR_OK);
    assert_int_equal(again.files, made.files);
    assert_int_equal(pack_make(at("in"), at("p"), NULL, &again, &ei), ERR_IO); /* it is there */
    assert_int_equal(pack_unfold(at("p"), at("out"), MANY, NULL, &again, &ei), ERR_IO);
}

/* Cut after any byte, or with any one byte changed where it says what is what: refused, or another digest. */
static void test_a_damaged_one_is_known(void **state)
{
    (void)state;
    struct pack_sum made, read;
    struct errinfo ei = {0};
    assert_int_equal(mkdir(at("in"), 0700), 0);
    assert_int_equal(mkdir(at("in/d"), 0700), 0);
    spew("in/d/f", "hello", 5);
    assert_int_equal(pack_make(at("in"), at("p"), NULL, &made, &ei), ERR_OK);
    struct buf b = slurp("p");
    char out[32];
    for (size_t n = 0; n < b.len; n++) {
        str_format(out, sizeof out, "cut%zu", n);
        spew("q", b.data, n);
        assert_int_equal(pack_unfold(at("q"), at(out), MANY, NULL, &read, &ei), ERR_PARSE);
    }
    for (size_t n = 0; n < b.len; n++) {
        str_format(out, sizeof out, "bit%zu", n);
        b.data[n] ^= 0x41;
        spew("q", b.data, b.len);
        b.data[n] ^= 0x41;
        enum err err = pack_unfold(at("q"), at(out), MANY, NULL, &read, &ei);
        assert_true(err == ERR_PARSE || err == ERR_IO || memcmp(read.sha256, made.sha256, sizeof made.sha256) != 0);
    }
    assert_int_equal(buf_append_char(&b, 'x'), ERR_OK);
    spew("q", b.data, b.len);
    assert_int_equal(pack_unfold(at("q"), at("more"), MANY, NULL, &read, &ei), ERR_PARSE);
    buf_done(&b);
}

static void test_nothing_is_made_outside(void **state)
{
    (void)state;
    static const char *const paths[] = {"../x", "/tmp/drivesim-pack-x", "a/../../x", "..", ".", "a//b", "a/", "",
                                        "./x"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct buf b = BUF_INIT(4096);
        struct pack_sum read;
        struct errinfo ei = {0};
        char out[32];
        unsigned char head[19] = {'F', (unsigned char)strlen(paths[i]), 0, 1};
        str_format(out, sizeof out, "out%zu", i);
        assert_int_equal(buf_append_str(&b, "DSPACK1\n"), ERR_OK);
        assert_int_equal(buf_append(&b, head, sizeof head), ERR_OK);
        assert_int_equal(buf_append_str(&b, paths[i]), ERR_OK);
        assert_int_equal(buf_append_char(&b, '!'), ERR_OK);
        spew("p", b.data, b.len);
        assert_int_equal(pack_unfold(at("p"), at(out), MANY, NULL, &read, &ei), ERR_PARSE);
        assert_non_null(strstr(ei.msg, "leads elsewhere"));
        assert_int_not_equal(access(at("x"), F_OK), 0);
        buf_done(&b);
    }
    assert_int_not_equal(access("/tmp/drivesim-pack-x", F_OK), 0);
}

static void test_what_is_no_file_is_not_packed(void **state)
{
    (void)state;
    struct pack_sum made;
    struct errinfo ei = {0};
    assert_int_equal(mkdir(at("in"), 0700), 0);
    assert_int_equal(symlink("/etc/passwd", at("in/link")), 0);
    assert_int_equal(pack_make(at("in"), at("p"), NULL, &made, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "neither a file nor a folder"));
    assert_int_equal(pack_make(at("none"), at("p2"), NULL, &made, &ei), ERR_IO);
}

/* Twenty bytes that cost a block of the disk each. */
static void test_no_more_than_it_should_hold(void **state)
{
    (void)state;
    struct pack_sum made, read;
    struct errinfo ei = {0};
    make_folder();
    assert_int_equal(pack_make(at("in"), at("p"), NULL, &made, &ei), ERR_OK);
    assert_int_equal(pack_unfold(at("p"), at("few"), made.entries - 1, NULL, &read, &ei), ERR_PARSE);
    assert_non_null(strstr(ei.msg, "more than it should"));
    assert_int_equal(pack_unfold(at("p"), at("all"), made.entries, NULL, &read, &ei), ERR_OK);
}

static void test_a_pack_is_a_plain_file(void **state)
{
    (void)state;
    struct pack_sum sum;
    struct errinfo ei = {0};
    make_folder();
    assert_int_equal(pack_make(at("in"), at("p"), NULL, &sum, &ei), ERR_OK);
    assert_int_equal(symlink("p", at("link")), 0);
    assert_int_equal(symlink("/dev/zero", at("zero")), 0);
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    static const char *const names[] = {"link", "zero", "fifo", "in"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_not_equal(pack_unfold(at(names[i]), at("out"), MANY, NULL, &sum, &ei), ERR_OK);
        assert_int_not_equal(pack_digest(at(names[i]), NULL, &sum, &ei), ERR_OK);
    }
}

static void test_it_stops_when_told(void **state)
{
    (void)state;
    const atomic_bool stop = true;
    struct pack_sum made;
    struct errinfo ei = {0};
    make_folder();
    assert_int_equal(pack_make(at("in"), at("p"), &stop, &made, &ei), ERR_INTERRUPTED);
}

int main(void)
{
#define ROW(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        ROW(test_there_and_back),          ROW(test_a_damaged_one_is_known),
        ROW(test_nothing_is_made_outside), ROW(test_what_is_no_file_is_not_packed),
        ROW(test_it_stops_when_told),      ROW(test_no_more_than_it_should_hold),
        ROW(test_a_pack_is_a_plain_file),
    };
    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
