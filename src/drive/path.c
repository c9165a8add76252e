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
        if (strchr(barred, c))
            return "a name must not contain any of / \\ : * ? \" < > |";
        /* U+FFFE and U+FFFF are EF BF BE and EF BF BF. */
        if (c == 0xef && i + 2 < name.n && (unsigned char)name.p[i + 1] == 0xbf && (unsigned char)name.p[i + 2] >= 0xbe)
            return "a name must not contain U+FFFE or U+FFFF";
    }
    return NULL;
}

/* White space and what Unicode calls default-ignorable (zero width, bidi controls, fillers, tags): nobody sees them. */
static bool is_invisible(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {' ', ' '},         {0xA0, 0xA0},     {0xAD, 0xAD},     {0x34F, 0x34F},     {0x61C, 0x61C},
        {0x115F, 0x1160},   {0x1680, 0x1680}, {0x17B4, 0x17B5}, {0x180B, 0x180F},   {0x2000, 0x200F},
        {0x2028, 0x202F},   {0x205F, 0x206F}, {0x3000, 0x3000}, {0x3164, 0x3164},   {0xFE00, 0xFE0F},
        {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
        {0xE0000, 0xE0FFF},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

/* Nothing to see, or what looks like "." or "..": the name is valid UTF-8. */
static bool shows_nothing(struct sv name)
{
    size_t dots = 0;
    while (name.n) {
        size_t len = utf8_next(name);
        if (*name.p == '.')
            dots++;
        else if (!is_invisible(utf8_code(name)))
            return false;
        name = (struct sv){name.p + len, name.n - len};
    }
    return dots <= 2;
}

static const char *name_problem(struct sv name)
{
    if (sv_trim(name).n == 0)
        return "a name must not be empty";
    if (!utf8_valid(name))
        return "a name must be valid UTF-8";
    if (utf8_has_controls(name))
        return "a name must not contain control characters";
    const char *bad = bad_byte(name);
    if (bad)
        return bad;
    if (sv_eq_cstr(name, ".") || sv_eq_cstr(name, ".."))
        return "a name must not be . or ..";
    if (shows_nothing(name))
        return "a name must show something: this one is of white space and invisible characters alone";
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
