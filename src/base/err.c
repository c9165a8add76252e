#include "base/err.h"
#include "base/secret.h"
#include "base/shortage.h"
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

#define WHOLE_MAX 1024 /* before it is cut: a secret must not be cut in two, and then be none */

/* A message that has to be cut must not end within a character. */
static void keep_message(struct errinfo *ei, char *whole)
{
    secret_hide_in(whole, WHOLE_MAX);
    size_t n = strlen(whole);
    if (n >= sizeof ei->msg)
        n = utf8_cut((struct sv){whole, n}, sizeof ei->msg - 2);
    memcpy(ei->msg, whole, n);
    ei->msg[n] = '\0';
}

enum err err_set(struct errinfo *ei, enum err code, const char *fmt, ...)
{
    char whole[WHOLE_MAX];
    va_list ap;

    if (!ei)
        return code;
    va_start(ap, fmt);
    vsnprintf(whole, sizeof whole, fmt, ap);
    va_end(ap);
    *ei = (struct errinfo){.code = code};
    keep_message(ei, whole);
    return code;
}

/* A connection that this machine had no port, descriptor or memory for says nothing about the other side. */
static enum err blame(enum err code, enum shortage s)
{
    static const bool others[ERR_COUNT] = {
        [ERR_RESOLVE] = true, [ERR_CONNECT] = true, [ERR_TLS] = true,     [ERR_RESET] = true, [ERR_CLOSED] = true,
        [ERR_PROTO] = true,   [ERR_DB] = true,      [ERR_DB_GONE] = true, [ERR_KV] = true,    [ERR_STORE] = true};
    shortage_note(s);
    return s != SHORTAGE_NONE && others[code] ? ERR_LOCAL : code;
}

enum err err_sys(struct errinfo *ei, enum err code, const char *fmt, ...)
{
    int saved = errno;
    char whole[WHOLE_MAX], text[128];
    va_list ap;

    if (code == ERR_IO && (saved == ENOSPC || saved == EDQUOT))
        code = ERR_FULL;
    code = blame(code, shortage_of(saved));
    if (!ei)
        return code;
    va_start(ap, fmt);
    int n = vsnprintf(whole, sizeof whole, fmt, ap);
    va_end(ap);
    if (n >= 0 && n < (int)sizeof whole)
        snprintf(whole + n, sizeof whole - (size_t)n, ": %s", strerror_r(saved, text, sizeof text));
    *ei = (struct errinfo){.code = code, .os_errno = saved};
    keep_message(ei, whole);
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
