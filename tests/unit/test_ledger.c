#include "base/mem.h"
#include "drive/ledger.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char root[64], dir[128], file[160];
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof(*f));
    strcpy(f->root, "/tmp/ledger-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    snprintf(f->dir, sizeof(f->dir), "%s/runs/one", f->root);
    snprintf(f->file, sizeof(f->file), "%s/ledger.bin", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char path[160];
    unlink(f->file);
    rmdir(f->dir);
    snprintf(path, sizeof(path), "%s/runs", f->root);
    rmdir(path);
    assert_int_equal(rmdir(f->root), 0);
    mem_free(f);
    return 0;
}

static struct ledger_record record(uint64_t i)
{
    struct ledger_record r = {.kind = i % 2 ? LEDGER_OUTCOME : LEDGER_INTENT,
                              .op = OP_SAVE,
                              .outcome = OUT_OK,
                              .flags = 3,
                              .status = 200,
                              .app = (uint32_t)i,
                              .login = 7,
                              .seq = i / 2,
                              .mono_us = (int64_t)i * 1000,
                              .wall_us = -5,
                              .content_key = UINT64_MAX - i,
                              .revision = i,
                              .parent_revision = i - 1,
                              .size = i << 33};
    snprintf(r.file_id, sizeof(r.file_id), "file-%llu", (unsigned long long)i);
    strcpy(r.version_before, "v1");
    memset(r.name, 'n', i % (DRIVE_NAME_MAX + 1));
    return r;
}

static void write_records(const struct fixture *f, uint64_t n)
{
    struct ledger *l = NULL;
    struct errinfo ei;
    assert_int_equal(ledger_create(&l, f->dir, &ei), ERR_OK);
    for (uint64_t i = 0; i < n; i++) {
        struct ledger_record r = record(i);
        ledger_append(l, &r);
    }
    assert_int_equal(ledger_records(l), n);
    assert_int_equal(ledger_close(&l, &ei), ERR_OK);
    assert_null(l);
}

static bool compare_next(void *arg, const struct ledger_record *r)
{
    uint64_t *n = arg;
    struct ledger_record want = record((*n)++);
    assert_memory_equal(r, &want, sizeof(want));
    return true;
}

/* How many records come back, and whether the rest was torn. */
static uint64_t read_all(const struct fixture *f, bool *torn)
{
    uint64_t n = 0;
    struct errinfo ei;
    assert_int_equal(ledger_read(f->dir, compare_next, &n, torn, &ei), ERR_OK);
    return n;
}

static void test_round_trip(void **state)
{
    const struct fixture *f = *state;
    bool torn = true;
    write_records(f, 5000); /* many buffers */
    assert_int_equal(read_all(f, &torn), 5000);
    assert_false(torn);
}

static void test_empty(void **state)
{
    const struct fixture *f = *state;
    bool torn = true;
    write_records(f, 0);
    assert_int_equal(read_all(f, &torn), 0);
    assert_false(torn);
}

static bool stop_at_three(void *arg, const struct ledger_record *r)
{
    (void)r;
    return ++*(int *)arg < 3;
}

static void test_reader_may_stop(void **state)
{
    const struct fixture *f = *state;
    int n = 0;
    bool torn = true;
    write_records(f, 10);
    assert_int_equal(ledger_read(f->dir, stop_at_three, &n, &torn, NULL), ERR_OK);
    assert_int_equal(n, 3);
    assert_false(torn);
}

static void test_second_ledger_refused(void **state)
{
    const struct fixture *f = *state;
    struct ledger *l = NULL;
    struct errinfo ei;
    write_records(f, 1);
    assert_int_equal(ledger_create(&l, f->dir, &ei), ERR_IO);
    assert_null(l);
    assert_non_null(strstr(ei.msg, "--run-dir"));
}

/* Cut anywhere: whole records come back, and only a cut between two records is no tear. */
static void test_torn_tail_at_every_byte(void **state)
{
    const struct fixture *f = *state;
    write_records(f, 4);
    struct stat st;
    assert_int_equal(stat(f->file, &st), 0);
    uint64_t previous = 4;
    unsigned clean = 0;
    for (off_t cut = st.st_size - 1; cut >= 16; cut--) {
        bool torn = false;
        assert_int_equal(truncate(f->file, cut), 0);
        uint64_t n = read_all(f, &torn);
        assert_in_range(n, previous > 0 ? previous - 1 : 0, previous);
        clean += !torn;
        previous = n;
    }
    assert_int_equal(previous, 0);
    assert_int_equal(clean, 4); /* before each of the four records */
}

static void test_not_a_ledger(void **state)
{
    const struct fixture *f = *state;
    struct errinfo ei;
    bool torn;
    uint64_t n = 0;
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &torn, &ei), ERR_IO); /* absent */
    write_records(f, 1);
    int fd = open(f->file, O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 8), 1); /* another version */
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &torn, &ei), ERR_PARSE);
    assert_int_equal(pwrite(fd, "x", 1, 0), 1);
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &torn, &ei), ERR_PARSE);
    assert_int_equal(ftruncate(fd, 3), 0);
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &torn, &ei), ERR_PARSE);
    close(fd);
    assert_int_equal(n, 0);
}

/* One flipped bit anywhere in the middle record: the ones before it are delivered, never a wrong one. */
static void test_checksum(void **state)
{
    const struct fixture *f = *state;
    write_records(f, 3);
    struct stat st;
    assert_int_equal(stat(f->file, &st), 0);
    int fd = open(f->file, O_RDWR);
    for (off_t at = 16; at < st.st_size; at++) {
        unsigned char c, flipped;
        bool torn = false;
        assert_int_equal(pread(fd, &c, 1, at), 1);
        flipped = c ^ 0x10;
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        assert_in_range(read_all(f, &torn), 0, 2);
        assert_true(torn);
        assert_int_equal(pwrite(fd, &c, 1, at), 1);
    }
    close(fd);
}

/* A disk that fills up in mid-run (here: the file size limit): told at the flush, and what was written stands. */
static void test_full_disk(void **state)
{
    const struct fixture *f = *state;
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 100 << 10;
    signal(SIGXFSZ, SIG_IGN);
    struct ledger *l = NULL;
    struct errinfo ei = {0};
    assert_int_equal(ledger_create(&l, f->dir, &ei), ERR_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (uint64_t i = 0; i < 3000; i++) {
        struct ledger_record r = record(i);
        ledger_append(l, &r);
    }
    assert_int_not_equal(ledger_error(l, &ei), ERR_OK);
    assert_non_null(strstr(ei.msg, "ledger.bin"));
    uint64_t told = ledger_records(l);
    assert_int_not_equal(ledger_close(&l, &ei), ERR_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    bool torn = false;
    uint64_t n = read_all(f, &torn);
    assert_in_range(n, 1, 2999);
    assert_true(n >= told); /* nothing counted as kept is missing */
    assert_true(torn);
}

static void test_folder_cannot_be_made(void **state)
{
    (void)state;
    struct ledger *l = NULL;
    struct errinfo ei;
    assert_int_equal(ledger_create(&l, "/dev/null/run", &ei), ERR_IO);
    assert_int_equal(ledger_create(&l, "", &ei), ERR_USAGE);
    assert_null(l);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_round_trip),
        T(test_empty),
        T(test_reader_may_stop),
        T(test_second_ledger_refused),
        T(test_torn_tail_at_every_byte),
        T(test_not_a_ledger),
        T(test_checksum),
        T(test_full_disk),
        cmocka_unit_test(test_folder_cannot_be_made),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
