#ifndef BASE_ERR_H
#define BASE_ERR_H
/* Errors as values. One table (err.def) is both the enum and its texts; details travel in a struct errinfo that the
 * caller owns and may omit (NULL). It is set once, where the error is first known. Layer 0, no state, any thread. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define WARN_UNUSED       __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
/* Marks a function that may suspend the calling coroutine: hold no lock over it (style rule, checked by eye). */
#define MAY_YIELD

enum err {
#define ERR(sym, retry, status, text) ERR_##sym,
#include "base/err.def"
#undef ERR
    ERR_COUNT
};

struct errinfo {
    enum err code;
    int os_errno;     /* 0 when no system call failed */
    int http_status;  /* 0 when no answer came */
    char sqlstate[6]; /* "" when no database spoke */
    char msg[256];    /* for a person: lower case, no full stop; says what to do next where that is known */
};

/* Sets code and message (later fields zeroed; secrets hidden, cut where it does not fit) and returns code, so that
 * `return err_set(...)` reads well. ei may be NULL. */
enum err err_set(struct errinfo *ei, enum err code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* As err_set, and appends ": strerror(errno)"; keeps os_errno. ENOSPC/EDQUOT turn ERR_IO into ERR_FULL; an errno that
 * is a shortage of this machine (base/shortage.h) is counted, and turns what else would be the other side's doing into
 * ERR_LOCAL. */
enum err err_sys(struct errinfo *ei, enum err code, const char *fmt, ...) PRINTF_LIKE(3, 4);
const char *err_text(enum err code);   /* static */
const char *err_symbol(enum err code); /* static: "TIMEOUT" */
int err_exit_status(enum err code);
bool err_retryable(enum err code);
/* The message, or the code's text when no message was set. Never NULL. */
const char *err_message(const struct errinfo *ei);
#endif
