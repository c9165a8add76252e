#include "base/err.h"
#include "base/utf8.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *symbol, *text;
    int exit_status;
    bool retry;
};

static const struct row rows[ERR_COUNT] = {
#define ERR(sym, retry, status, text) [ERR_##sym] = {#sym, text, status, retry},
#include "base/err.def"
#undef ERR
};

static const struct row *row_of(enum err code)
{
    static const struct row unknown = {"UNKNOWN", "unknown error", 1, false};
    return (unsigned)code < ERR_COUNT ? &rows[code] : &unknown;
}

/* A message that had to be cut must not end within a character. */
static void finish_message(struct errinfo *ei, int wanted)
{
    if (wanted >= (int)sizeof ei->msg) {
        struct sv whole = {ei->msg, sizeof ei->msg - 1};
        ei->msg[utf8_cut(whole, sizeof ei->msg - 2)] = '\0';
    }
}

enum err err_set(struct errinfo *ei, enum err code, const char *fmt, ...)
{
    va_list ap;

    if (!ei)
        return code;
    *ei = (struct errinfo){.code = code};
    va_start(ap, fmt);
    finish_message(ei, vsnprintf(ei->msg, sizeof ei->msg, fmt, ap));
    va_end(ap);
    return code;
}

enum err err_sys(struct errinfo *ei, enum err code, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    if (code == ERR_IO && (saved == ENOSPC || saved == EDQUOT))
        code = ERR_FULL;
    if (!ei)
        return code;
    *ei = (struct errinfo){.code = code, .os_errno = saved};
    va_start(ap, fmt);
    int n = vsnprintf(ei->msg, sizeof ei->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && n < (int)sizeof ei->msg) {
        char text[128];
        size_t room = sizeof ei->msg - (size_t)n;
        n += snprintf(ei->msg + n, room, ": %s", strerror_r(saved, text, sizeof text));
    }
    finish_message(ei, n);
    errno = saved;
    return code;
}

const char *err_text(enum err code)
{
    return row_of(code)->text;
}

const char *err_symbol(enum err code)
{
    return row_of(code)->symbol;
}

int err_exit_status(enum err code)
{
    return row_of(code)->exit_status;
}

bool err_retryable(enum err code)
{
    return row_of(code)->retry;
}

const char *err_message(const struct errinfo *ei)
{
    if (!ei)
        return err_text(ERR_OK);
    return ei->msg[0] ? ei->msg : err_text(ei->code);
}
