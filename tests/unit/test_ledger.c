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
    memset(r.old_name, 'o', i % 7 == 0 ? DRIVE_NAME_MAX : 0);
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

/* How many records come back, and how the file ends. */
static uint64_t read_all(const struct fixture *f, enum ledger_tail *tail)
{
    uint64_t n = 0;
    struct ledger_end end;
    struct errinfo ei;
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &end, &ei), ERR_OK);
    assert_int_equal(end.records, n);
    *tail = end.tail;
    return n;
}

static void test_round_trip(void **state)
{
    const struct fixture *f = *state;
    enum ledger_tail tail;
    write_records(f, 5000); /* many buffers */
    assert_int_equal(read_all(f, &tail), 5000);
    assert_int_equal(tail, LEDGER_WHOLE);
}

static void test_empty(void **state)
{
    const struct fixture *f = *state;
    enum ledger_tail tail;
    write_records(f, 0);
    assert_int_equal(read_all(f, &tail), 0);
    assert_int_equal(tail, LEDGER_WHOLE);
}

static bool stop_at_three(void *arg, const struct ledger_record *r)
{
    (void)r;
    return ++*(int *)arg < 3;
}

static void test_reader_may_stop(void **state)
{
    const struct fixture *f = *state;
    struct ledger_end end;
    int n = 0;
    write_records(f, 10);
    assert_int_equal(ledger_read(f->dir, stop_at_three, &n, &end, NULL), ERR_OK);
    assert_int_equal(n, 3);
    assert_int_equal(end.records, 3);
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

/* An event is what there is most of: it must stay small. */
static void test_events_are_compact(void **state)
{
    const struct fixture *f = *state;
    struct ledger *l = NULL;
    struct errinfo ei;
    struct stat st;
    assert_int_equal(ledger_create(&l, f->dir, &ei), ERR_OK);
    for (unsigned i = 0; i < 1000; i++) {
        struct ledger_record r = {.kind = LEDGER_NOTE,
                                  .op = OP_STREAM,
                                  .app = i % 150,
                                  .login = i % 10,
                                  .mono_us = mono_now().us + 600 * US_PER_S,
                                  .wall_us = wall_now().us + 600 * US_PER_S,
                                  .file_id = "abcdefghijkmnopq",
                                  .revision = UINT64_MAX - i};
        ledger_append(l, &r);
    }
    assert_int_equal(ledger_close(&l, &ei), ERR_OK);
    assert_int_equal(stat(f->file, &st), 0);
    assert_in_range(st.st_size, 1000 * 30, 1000 * 56);
}

/* Killed: what was flushed stands, and that there is no end is told. */
static void test_never_closed(void **state)
{
    const struct fixture *f = *state;
    struct ledger *l = NULL;
    struct errinfo ei;
    enum ledger_tail tail;
    assert_int_equal(ledger_create(&l, f->dir, &ei), ERR_OK);
    for (uint64_t i = 0; i < 3; i++) {
        struct ledger_record r = record(i);
        ledger_append(l, &r);
    }
    assert_int_equal(read_all(f, &tail), 0); /* not yet on its way */
    assert_int_equal(ledger_flush(l, &ei), ERR_OK);
    assert_int_equal(read_all(f, &tail), 3);
    assert_int_equal(tail, LEDGER_ENDLESS);
    assert_int_equal(ledger_close(&l, &ei), ERR_OK);
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
    for (off_t cut = st.st_size - 1; cut >= 32; cut--) {
        enum ledger_tail tail;
        assert_int_equal(truncate(f->file, cut), 0);
        uint64_t n = read_all(f, &tail);
        assert_in_range(n, previous > 0 ? previous - 1 : 0, previous);
        assert_true(tail == LEDGER_ENDLESS || tail == LEDGER_TORN);
        clean += tail == LEDGER_ENDLESS;
        previous = n;
    }
    assert_int_equal(previous, 0);
    assert_int_equal(clean, 5); /* before each of the four records, and before the end */
}

/* A piece taken out of the middle, whole records or not, and anything behind the end. */
static void test_damaged(void **state)
{
    const struct fixture *f = *state;
    unsigned char bytes[8192];
    write_records(f, 6);
    int fd = open(f->file, O_RDWR);
    ssize_t size = read(fd, bytes, sizeof(bytes));
    assert_in_range(size, 100, sizeof(bytes) - 1);
    enum ledger_tail tail;
    size_t first = 2 + (size_t)(bytes[32] | bytes[33] << 8) + 4;
    const struct {
        size_t from, n;
    } cuts[] = {{32, first}, {32, 1}, {40, 60}, {32 + first, 5}};
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        size_t rest = (size_t)size - cuts[i].from - cuts[i].n;
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, bytes, cuts[i].from, 0), cuts[i].from);
        assert_int_equal(pwrite(fd, bytes + cuts[i].from + cuts[i].n, rest, (off_t)cuts[i].from), rest);
        struct ledger_end end;
        int n = 100;
        assert_int_equal(ledger_read(f->dir, stop_at_three, &n, &end, NULL), ERR_OK);
        n = -100; /* all of them */
        assert_int_equal(ledger_read(f->dir, stop_at_three, &n, &end, NULL), ERR_OK);
        assert_int_equal(end.tail, LEDGER_DAMAGED);
    }
    assert_int_equal(pwrite(fd, bytes, (size_t)size, 0), size);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(read_all(f, &tail), 6);
    assert_int_equal(tail, LEDGER_WHOLE);
    assert_int_equal(pwrite(fd, "x", 1, size), 1);
    assert_int_equal(read_all(f, &tail), 6);
    assert_int_equal(tail, LEDGER_DAMAGED);
    close(fd);
}

static void test_not_a_ledger(void **state)
{
    const struct fixture *f = *state;
    struct errinfo ei;
    struct ledger_end end;
    uint64_t n = 0;
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &end, &ei), ERR_IO); /* absent */
    write_records(f, 1);
    int fd = open(f->file, O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 8), 1); /* another version */
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &end, &ei), ERR_ENV);
    assert_int_equal(pwrite(fd, "x", 1, 0), 1);
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &end, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "is no ledger"));
    assert_int_equal(ftruncate(fd, 0), 0); /* a full disk or a kill leaves such ones */
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &end, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "cut short"));
    assert_int_equal(ftruncate(fd, 3), 0);
    assert_int_equal(ledger_read(f->dir, compare_next, &n, &end, &ei), ERR_ENV);
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
    for (off_t at = 32; at < st.st_size; at++) {
        unsigned char c, flipped;
        enum ledger_tail tail;
        assert_int_equal(pread(fd, &c, 1, at), 1);
        flipped = c ^ 0x10;
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        assert_in_range(read_all(f, &tail), 0, 3);
        assert_true(tail == LEDGER_TORN || tail == LEDGER_DAMAGED);
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
    enum ledger_tail tail;
    uint64_t n = read_all(f, &tail);
    assert_in_range(n, 1, 2999);
    assert_true(n >= told); /* nothing counted as kept is missing */
    assert_int_equal(tail, LEDGER_TORN);
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
        T(test_events_are_compact),
        T(test_never_closed),
        T(test_torn_tail_at_every_byte),
        T(test_damaged),
        T(test_not_a_ledger),
        T(test_checksum),
        T(test_full_disk),
        cmocka_unit_test(test_folder_cannot_be_made),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
