#ifndef CHECKS_LEDGER_IMPL_H
#define CHECKS_LEDGER_IMPL_H
/* Internal to the check of a run's ledger: what its files share. ledger.c takes the journal apart into items and finds
 * out what each of them is called; item.c judges one item; figures.c tells what came of all. Layer 3. */
#include "base/map.h"
#include "checks/evidence/asker.h"
#include "checks/evidence/fate.h"
#include "checks/evidence/places.h"

/* The operations that are judged, in the order of the report. */
struct ledger_judged {
    enum drive_op op;
    const char *key, *text;
};
#define LEDGER_JUDGED 7
extern const struct ledger_judged ledger_judged[LEDGER_JUDGED];

struct figures { /* of one operation; ends: of its requests without an answer */
    uint64_t acknowledged, found, unknown, ends[FATE_OVERTAKEN + 1];
};
struct act { /* one change that the run made, or may have made */
    const struct journal_op *o;
    const char *id; /* of the item that it is about; "": not told, and not found out */
    uint32_t account;
    enum fate_end end; /* of one without an answer */
};
struct judge {
    struct check_ctx *c;
    struct check_result *r;
    const struct journal *j;
    struct act *acts; /* by account, item, time */
    size_t n, next;
    struct asker *asker;
    struct places *places;
    struct map *made;    /* ids that a request made for certain */
    struct map *touched; /* "folder/name" of what somebody renamed, moved or trashed */
    struct figures figures[OP_COUNT];
    uint64_t trashed;      /* items that were found in the trash */
    uint64_t read;         /* whose bytes were read */
    uint64_t others;       /* that somebody else changed too */
    struct errinfo cannot; /* why reading back is impossible; code OK: possible */
};

/* The changes of a copy's source are [*from, the result) of k->acts, which are sorted; none for other operations. */
size_t ledger_source_changes(const struct judge *k, uint32_t account, const struct journal_op *o, size_t *from);
/* Looks at one item, whose changes are acts[0 … n - 1]: complains of what cannot be, counts the rest, and settles the
 * ends of those without an answer. An error is that the item cannot be looked at. */
MAY_YIELD enum err ledger_judge_item(struct judge *k, struct act *acts, size_t n, struct errinfo *ei) WARN_UNUSED;
/* The check's summary and notes, and the result's part "ledger". */
void ledger_report(struct judge *k);
#endif
