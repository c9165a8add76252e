#ifndef BASE_STR_H
#define BASE_STR_H
/* Borrowed strings (pointer and length) and the text helpers that several layers need. Locale-free. Layer 0. */
#include "base/buf.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct sv {
    const char *p;
    size_t n;
}; /* not NUL-terminated */
#define SV(lit)   ((struct sv){"" lit, sizeof(lit) - 1})
#define SV_FMT    "%.*s"
#define SV_ARG(s) (int)(s).n, (s).p

struct sv sv_of(const char *s); /* NULL gives {"" ,0} */
bool sv_eq(struct sv a, struct sv b);
bool sv_eq_cstr(struct sv a, const char *b);
bool sv_ieq(struct sv a, struct sv b); /* ASCII case folded */
bool sv_starts(struct sv s, struct sv prefix);
bool sv_ends(struct sv s, struct sv suffix);
struct sv sv_trim(struct sv s); /* ASCII white space */
/* Cuts the part before sep off *rest into *head; false when *rest is exhausted. "a,b" gives "a" then "b". */
bool sv_split(struct sv *rest, char sep, struct sv *head);
bool sv_to_i64(struct sv s, int64_t *out); /* whole string, base 10, no '+', no overflow */
bool sv_to_u64(struct sv s, uint64_t *out);
bool sv_to_f64(struct sv s, double *out); /* '.' whatever the locale; no inf/nan/hex */

enum err str_url_encode(struct buf *out, struct sv s,
                        const char *keep) WARN_UNUSED;             /* RFC 3986 unreserved + keep stay */
enum err str_url_decode(struct buf *out, struct sv s) WARN_UNUSED; /* %XX once; '+' stays; bad % is ERR_PARSE */
/* Appends s with control bytes, ESC and invalid UTF-8 shown as \xNN, cut to max_bytes with "…": for logs and reports
 * of text that somebody else wrote. */
enum err str_escape(struct buf *out, struct sv s, size_t max_bytes) WARN_UNUSED;
/* The same into a fixed dst, as much of s as fits with the "…"; never fails. n at least 8. Returns dst. SHOWN is the
 * same for a word of a sentence, in memory that lasts as long as the block. */
char *str_shown(char *dst, size_t n, struct sv s);
#define SHOWN_LEN 84
#define SHOWN(s)  str_shown((char[SHOWN_LEN]){""}, SHOWN_LEN, (s))
/* snprintf with '.' as the decimal point whatever the locale. */
int str_format(char *dst, size_t n, const char *fmt, ...) PRINTF_LIKE(3, 4);
int str_vformat(char *dst, size_t n, const char *fmt, va_list ap) PRINTF_LIKE(3, 0);
/* Copies src when it fits whole, NUL included; else dst becomes "" and the answer false. */
bool str_fit(char *dst, size_t n, const char *src);
/* "1.5 GiB", "812 B"; and "16,787". Write into dst (size >= 32) and return it. */
char *str_bytes(char *dst, size_t n, uint64_t bytes);
char *str_thousands(char *dst, size_t n, uint64_t value);
/* "1 file", "16,787 files", "2 entries": the last word of noun gets its regular plural. COUNTED is the same in memory
 * that lasts as long as the block. */
char *str_count(char *dst, size_t n, uint64_t value, const char *noun);
#define COUNTED_LEN          96
#define COUNTED(value, noun) str_count((char[COUNTED_LEN]){""}, COUNTED_LEN, (value), (noun))
char *str_duration(char *dst, size_t n, int64_t us); /* "850 ms", "12.3 s", "4 min 10 s", "3 days" */
#endif
