#ifndef SIM_MIX_CSV_H
#define SIM_MIX_CSV_H
/* Records of CSV (RFC 4180), one after the other in bounded memory: quoted fields may hold separators, doubled quotes
 * and line ends. The separator is the first of , ; tab | in the text. Layer 3. */
#include "base/buf.h"
#include "base/str.h"
#include <stdio.h>

#define CSV_FIELDS_MOST 64 /* of a record; what stands behind is passed over */
#define CSV_RECORD_MOST (1u << 20)

struct csv {
    FILE *f;          /* borrowed */
    const char *name; /* for messages */
    char sep;         /* 0: not known yet */
    struct buf text;
    size_t ends[CSV_FIELDS_MOST];
    unsigned n;      /* fields of the current record */
    uint64_t line;   /* where it begins */
    uint64_t behind; /* line ends read so far */
};
void csv_init(struct csv *c, FILE *f, const char *name);
void csv_done(struct csv *c);
/* The next record that is not empty. *more false: the text is over. ERR_USAGE with the line when it is no CSV, ERR_IO.
 */
enum err csv_next(struct csv *c, bool *more, struct errinfo *ei) WARN_UNUSED;
struct sv csv_field(const struct csv *c, unsigned i); /* trimmed; empty past the last; valid until the next record */
#endif
