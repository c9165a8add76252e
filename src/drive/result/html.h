#ifndef DRIVE_RESULT_HTML_H
#define DRIVE_RESULT_HTML_H
/* Shared by the files that make the page: one a part of it. Layer 2. */
#include "drive/result/doc.h"
#include "drive/result/markup.h"

extern const char html_style[];
/* Cells of a table; a number that is not there is a dash. */
void html_cell(struct markup *m, const char *text);
void html_number(struct markup *m, const struct json *v, int decimals);
/* A member of the object; "~" stands before a percentile that its samples do not carry. */
void html_percentile(struct markup *m, const struct json *object, const char *key, int decimals);
#define HTML_FEW "<p>" HIST_FEW "</p>\n"
/* A row of names; those behind the first `texts` stand over numbers. */
void html_table(struct markup *m, const char *caption, const char *const *names, size_t n, size_t texts);
void html_table_end(struct markup *m);
const char *html_text_of(const struct json *object, const char *key); /* "" when it has no such text */

/* Parts, each with its heading; nothing when there is nothing to show. */
void html_course(struct markup *m, const struct doc *d);
void html_percentiles(struct markup *m, const struct doc *d);
void html_ramp(struct markup *m, const struct doc *d);
void html_rows(struct markup *m, const struct doc *d);
/* The operations whose latencies are worth a plot, most telling first; at most `most`. */
size_t html_chosen(const struct stats *s, enum drive_op *out, size_t most);
#endif
