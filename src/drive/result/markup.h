#ifndef DRIVE_RESULT_MARKUP_H
#define DRIVE_RESULT_MARKUP_H
/* XML and HTML onto a buf. Whatever somebody else may have written goes in by markup_text or as an attribute's value
 * and can be no tag there; the first failure stays. Layer 2. */
#include "base/buf.h"
#include "base/str.h"

struct markup {
    struct buf *out;
    enum err err;
};
void markup_init(struct markup *m, struct buf *out);
void markup_put(struct markup *m, const char *raw);                         /* our own words, tags included */
void markup_putf(struct markup *m, const char *fmt, ...) PRINTF_LIKE(2, 3); /* the same, with numbers */
/* Escaped; control characters and what is no UTF-8 are shown as \xNN, as in the text report. NULL is "". */
void markup_text(struct markup *m, const char *text);
void markup_attribute(struct markup *m, const char *name, const char *value); /* ` name="value"` */
void markup_element(struct markup *m, const char *tag, const char *text);     /* <tag>text</tag> */
#endif
