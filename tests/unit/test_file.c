/* Reading what somebody names, whatever it is. */
#include "base/file.h"
#include "base/str.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

static char folder[] = "/tmp/drivesim-file-XXXXXX";

static const char *at(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_files(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || mkfifo(at("pipe"), 0600) != 0)
        return -1;
    FILE *f = fopen(at("file"), "w");
    return f && fputs("0123456789", f) >= 0 && fclose(f) == 0 ? 0 : -1;
}

static int remove_files(void **state)
{
    (void)state;
    return unlink(at("pipe")) | unlink(at("file")) | rmdir(folder);
}

/* The writer is there before the reader, and leaves when all has been read. */
static pid_t write_into_pipe(void)
{
    int fd = open(at("pipe"), O_RDWR), left = 7;
    assert_int_equal(write(fd, "by pipe", 7), 7);
    pid_t pid = fork();
    while (pid == 0 && left > 0 && ioctl(fd, FIONREAD, &left) == 0)
        usleep(1000);
    if (pid == 0)
        _exit(left);
    close(fd);
    return pid;
}

static void await(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void what_a_path_names(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t most;
        const char *holds, *sentence;
        int os_errno;
    } rows[] = {
        {"file", 10, "0123456789", "", 0},
        {"file", 9, "", "is larger than 9 B", 0},
        {"none", 10, "", "cannot read", ENOENT},
        {"file/none", 10, "", "cannot read", ENOTDIR},
        {".", 10, "", "it is a folder, not a file", 0},
        {"/dev/zero", 10, "", "it is a device, not a file", 0},
        {"/dev/null", 0, "", "", 0},
        {"/dev/tty", 10, "", "cannot read", -1},
        {"pipe", 10, "", "nothing comes out of this pipe", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text = BUF_INIT(rows[i].most);
        struct errinfo ei = {0};
        enum err err = file_read(rows[i].path[0] == '/' ? rows[i].path : at(rows[i].path), &text, ERR_USAGE, &ei);
        bool fine = *rows[i].sentence ? err == ERR_USAGE && strstr(ei.msg, rows[i].sentence)
                                      : err == ERR_OK && strcmp(buf_cstr(&text), rows[i].holds) == 0;
        if (!fine || (err && rows[i].os_errno >= 0 && ei.os_errno != rows[i].os_errno))
            fail_msg("row %zu: %s, errno %d, %s", i, err_symbol(err), ei.os_errno, ei.msg);
        buf_done(&text);
    }
}

static void a_pipe_that_is_written_into(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(100);
    struct errinfo ei = {0};
    FILE *f = NULL;
    char line[20] = "";
    pid_t writer = write_into_pipe();
    if (file_read(at("pipe"), &text, ERR_USAGE, &ei) != ERR_OK)
        fail_msg("%s", ei.msg);
    assert_string_equal(buf_cstr(&text), "by pipe");
    buf_done(&text);
    await(writer);
    writer = write_into_pipe();
    if (file_open(at("pipe"), &f, ERR_USAGE, &ei) != ERR_OK)
        fail_msg("%s", ei.msg);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "by pipe");
    fclose(f);
    await(writer);
}

static void for_a_library(void **state)
{
    (void)state;
    struct errinfo ei = {0};
    assert_int_equal(file_readable(at("file"), ERR_ENV, &ei), ERR_OK);
    assert_int_equal(file_readable(at("none"), ERR_ENV, &ei), ERR_ENV);
    assert_int_equal(truncate(at("file"), (16 << 20) + 1), 0);
    assert_int_equal(file_readable(at("file"), ERR_ENV, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "is larger than 16.0 MiB"));
    assert_int_equal(file_readable(at("pipe"), ERR_ENV, &ei), ERR_ENV);
    assert_non_null(strstr(ei.msg, "it is a pipe, not a file"));
}

static void write_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void what_a_person_wrote(void **state)
{
    (void)state;
    static const struct {
        struct sv in;
        const char *out; /* NULL: refused */
    } rows[] = {
        {SV("a\r\nb"), "a\r\nb"},
        {SV("\xef\xbb\xbf"
            "a"),
         "a"},
        {SV("\xef\xbb\xbf"), ""},
        {SV(""), ""},
        {SV("\xff\xfe"
            "a\0b\0"),
         NULL},
        {SV("\xfe\xff\0a\0b"), NULL},
        {SV("a\0b\0"), NULL},
        {SV("\0a\0b"), NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text = BUF_INIT(100);
        struct errinfo ei = {0};
        write_bytes(at("text"), rows[i].in.p, rows[i].in.n);
        assert_int_equal(file_read_text(at("text"), &text, ERR_USAGE, &ei), rows[i].out ? ERR_OK : ERR_USAGE);
        if (rows[i].out)
            assert_string_equal(buf_cstr(&text), rows[i].out);
        else
            assert_non_null(strstr(ei.msg, "UTF-16: save it as UTF-8"));
        buf_done(&text);
    }
    assert_int_equal(unlink(at("text")), 0);
}

static void holds(const char *path, const char *want)
{
    struct buf text = BUF_INIT(100);
    assert_int_equal(file_read(path, &text, ERR_IO, NULL), ERR_OK);
    assert_string_equal(buf_cstr(&text), want);
    buf_done(&text);
}

static void replaced_whole(void **state)
{
    (void)state;
    struct errinfo ei = {0};
    struct stat st;
    char new_text[] = "new", link_to[300], file[300];
    const struct buf text = {new_text, 3, 0, 3};
    snprintf(file, sizeof(file), "%s", at("kept"));
    snprintf(link_to, sizeof(link_to), "%s", at("link"));
    assert_int_equal(file_replaceable(file, ERR_USAGE, &ei), ERR_OK);
    assert_int_equal(file_replace(file, &text, &ei), ERR_OK);
    holds(file, "new");
    write_bytes(file, "older", 5);
    assert_int_equal(chmod(file, 0640), 0);
    assert_int_equal(symlink("kept", link_to), 0);
    FILE *reader = fopen(file, "r"); /* has the old one to its end */
    assert_int_equal(file_replace(link_to, &text, &ei), ERR_OK);
    char line[10] = "";
    assert_non_null(fgets(line, sizeof(line), reader));
    assert_string_equal(line, "older");
    fclose(reader);
    holds(file, "new");
    assert_true(lstat(link_to, &st) == 0 && S_ISLNK(st.st_mode));
    assert_true(stat(file, &st) == 0 && (st.st_mode & 07777) == 0640);
    assert_int_equal(access(at("kept.new"), F_OK), -1);
    assert_int_equal(file_replace("/dev/null", &text, &ei), ERR_OK);
    assert_true(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    assert_int_equal(file_replaceable("/dev/null", ERR_USAGE, &ei), ERR_OK);
    assert_int_equal(file_replaceable(at("none/x"), ERR_USAGE, &ei), ERR_USAGE);
    assert_int_equal(file_replaceable("/tmp", ERR_USAGE, &ei), ERR_USAGE);
    assert_int_equal(file_replace(at("none/x"), &text, &ei), ERR_IO);
    assert_int_equal(unlink(link_to), 0);
    assert_int_equal(unlink(file), 0);
}

static void lines(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "[]"},         {"a", "[a]"},           {"a\n", "[a][]"},       {"a\r\nb", "[a][b]"},
        {"a\rb", "[a][b]"}, {"a\r\rb", "[a][][b]"}, {"a\n\rb", "[a][][b]"}, {"\r\n\r\n", "[][][]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sv rest = sv_of(rows[i][0]), line;
        struct buf out = BUF_INIT(100);
        while (file_line(&rest, &line))
            assert_int_equal(buf_appendf(&out, "[" SV_FMT "]", SV_ARG(line)), ERR_OK);
        assert_string_equal(buf_cstr(&out), rows[i][1]);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_path_names), cmocka_unit_test(a_pipe_that_is_written_into),
        cmocka_unit_test(for_a_library),     cmocka_unit_test(what_a_person_wrote),
        cmocka_unit_test(replaced_whole),    cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
