/* The one policy for names. It is stricter than most servers' so that a tree made here can be held by every client. */
#include "drive/path.h"
#include "base/utf8.h"
#include "drive/model.h"
#include <stdio.h>
#include <string.h>

static const char barred[] = "/\\:*?\"<>|";
static const char *const devices[] = {"CON",  "PRN",  "AUX",  "NUL",  "COM1", "COM2", "COM3", "COM4",
                                      "COM5", "COM6", "COM7", "COM8", "COM9", "LPT1", "LPT2", "LPT3",
                                      "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9"};

static bool is_device(struct sv name)
{
    struct sv stem = name;
    const char *dot = memchr(name.p, '.', name.n);
    if (dot)
        stem.n = (size_t)(dot - name.p);
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        if (sv_ieq(stem, sv_of(devices[i])))
            return true;
    }
    return false;
}

static const char *bad_byte(struct sv name)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c < 0x20 || c == 0x7f)
            return "a name must not contain control characters";
        if (strchr(barred, c))
            return "a name must not contain any of / \\ : * ? \" < > |";
        /* U+FFFE and U+FFFF are EF BF BE and EF BF BF. */
        if (c == 0xef && i + 2 < name.n && (unsigned char)name.p[i + 1] == 0xbf && (unsigned char)name.p[i + 2] >= 0xbe)
            return "a name must not contain U+FFFE or U+FFFF";
    }
    return NULL;
}

static const char *name_problem(struct sv name)
{
    if (sv_trim(name).n == 0)
        return "a name must not be empty";
    if (!utf8_valid(name))
        return "a name must be valid UTF-8";
    const char *bad = bad_byte(name);
    if (bad)
        return bad;
    if (sv_eq_cstr(name, ".") || sv_eq_cstr(name, ".."))
        return "a name must not be . or ..";
    if (name.p[0] == ' ' || name.p[name.n - 1] == ' ')
        return "a name must not start or end with a space";
    if (name.p[name.n - 1] == '.')
        return "a name must not end with a dot";
    if (is_device(name))
        return "a name must not be a reserved device name such as CON or AUX";
    return NULL;
}

const char *path_name_problem_file(struct sv name)
{
    if (name.n > DRIVE_NAME_MAX)
        return "a file's name must have at most 255 bytes";
    return name_problem(name);
}

const char *path_name_problem_folder(struct sv name)
{
    const char *problem = name_problem(name);
    if (problem)
        return problem;
    if (utf8_length(name) > DRIVE_FOLDER_NAME_MAX)
        return "a name must have at most 100 characters";
    return NULL;
}

struct sv path_extension(struct sv name)
{
    for (size_t i = name.n; i > 1; i--) {
        if (name.p[i - 1] == '.')
            return (struct sv){name.p + i, name.n - i};
    }
    return (struct sv){"", 0};
}

void path_numbered(char *dst, size_t n, const char *name, unsigned number, size_t max_bytes)
{
    struct sv whole = sv_of(name), ext = path_extension(whole);
    char suffix[16];
    size_t suffix_n = (size_t)snprintf(suffix, sizeof suffix, " (%u)", number);
    size_t tail_n = ext.n ? ext.n + 1 : 0;
    /* An "extension" that leaves no room for a stem is no extension. */
    if (suffix_n + tail_n + 1 > max_bytes)
        tail_n = 0;
    struct sv stem = {whole.p, whole.n - tail_n};
    size_t room = max_bytes - suffix_n - tail_n;
    if (stem.n > room)
        stem.n = utf8_cut(stem, room);
    snprintf(dst, n, SV_FMT "%s" SV_FMT, SV_ARG(stem), suffix, (int)tail_n, whole.p + whole.n - tail_n);
}
