#ifndef BASE_UTF8_H
#define BASE_UTF8_H
/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF (table 3-7 of the Unicode
 * standard). Pure. Layer 0. */
#include "base/str.h"

size_t utf8_next(struct sv s);   /* bytes of the well-formed code point at the front; 0: none */
uint32_t utf8_code(struct sv s); /* that code point; s must begin with one */
bool utf8_valid(struct sv s);
bool utf8_has_controls(struct sv s); /* U+0000 to U+001F, U+007F to U+009F; s must be valid */
/* Appends s decoded as the WHATWG Encoding standard does it: each maximal part of a broken sequence is one U+FFFD. */
enum err utf8_append_repaired(struct buf *out, struct sv s) WARN_UNUSED;
size_t utf8_length(struct sv s);                /* code points; s must be valid */
size_t utf8_cut(struct sv s, size_t max_bytes); /* longest prefix of <= max_bytes that ends between code points */
#endif
