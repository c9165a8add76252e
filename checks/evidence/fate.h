#ifndef CHECKS_EVIDENCE_FATE_H
#define CHECKS_EVIDENCE_FATE_H
/* What may be true of one item (a file or folder) after all that a run's apps asked for, and whether what is seen fits.
 * Of requests that crossed each other any may have come last; one that was answered before another was sent may not;
 * one without an answer may be carried out at any time, or never. So there is a set of names, folders and contents that
 * the item may have, and what is seen outside of it is wrong for certain. Pure. Layer 3. */
#include "checks/evidence/journal.h"

struct fate {
    const struct journal_op *const *ops; /* all that touched the item, in the order of their requests */
    size_t n;
    bool whole;                      /* nothing that came later is missing from the ledger */
    const char *const *source_names; /* of a copy: what its source was renamed to before the copy had ended */
    size_t n_source_names;
};

enum item_where { ITEM_LIVE, ITEM_TRASHED, ITEM_GONE };
struct item_seen {
    enum item_where where;
    const char *name, *parent; /* NULL: not shown */
    int64_t size;              /* -1: not shown */
    unsigned listed;           /* in how many folders' listings it stands */
    bool listings_tell;        /* those of all folders that it may be in were read */
    bool has_trash;            /* what is trashed can be seen there */
};

/* One thing that is wrong: what op's app was told, and what is seen instead. */
struct fate_fault {
    const struct journal_op *op;
    char told[DRIVE_NAME_MAX + 40], seen[DRIVE_NAME_MAX + 60];
};
/* False: what is seen cannot be. Place and name only: for contents see below. */
bool fate_fits(const struct fate *f, const struct item_seen *seen, struct fate_fault *out);

/* What became of a request without an answer. OVERTAKEN: later changes hide it. */
enum fate_end { FATE_DONE, FATE_NOT_DONE, FATE_OVERTAKEN };
enum fate_end fate_settle(const struct fate *f, const struct item_seen *seen, const struct journal_op *o);

#define FATE_CONTENTS 8
struct fate_contents {
    const struct journal_op *of[FATE_CONTENTS]; /* uploads and saves that may have come last, the latest first */
    size_t n;
    bool claimed; /* somebody wrote, or may have: the bytes are to be looked at */
    bool other;   /* what was there before, or what a copy was made of, may be there as well */
};
void fate_contents(const struct fate *f, struct fate_contents *out);

/* A request without an answer, as people count them; journal_maybe is wider. */
bool fate_unknown(const struct journal_op *o);
bool fate_makes(const struct journal_op *o); /* upload, copy, new folder: the item is there since then */
/* The folder that an upload, copy or new folder was to appear in. */
const char *fate_folder_of(const struct journal_op *o);
/* `o`, asked of the copy's source, may have come before the copy was made: then it is called otherwise, or there is
 * none. TMA Cloud v2 says that all went well also where it passed over a source that lay in the trash by then. */
bool fate_explains_copy(const struct journal_op *copy, const struct journal_op *o);
/* "a (1).pdf" and "a.pdf" are twins of "a.pdf": what a taken name becomes. */
bool fate_is_twin(const char *name, const char *of);
#endif
