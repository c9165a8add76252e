/* Counts out of a text: what the query printed, in whatever form it was saved, or an export of the log itself. */
#include "sim/mix/counts.h"
#include "sim/mix/csv.h"
#include <inttypes.h>
#include <limits.h>

#define NONE UINT_MAX

struct columns {
    unsigned action, count, status; /* NONE: the text has none */
};

static unsigned column(const struct csv *c, const char *const *names)
{
    for (unsigned i = 0; i < c->n; i++)
        for (const char *const *name = names; *name; name++)
            if (sv_ieq(csv_field(c, i), sv_of(*name)))
                return i;
    return NONE;
}

/* True when this record is a header. */
static bool find_columns(const struct csv *c, struct columns *out)
{
    static const char *const action[] = {"action", NULL}, *const status[] = {"status", NULL};
    static const char *const count[] = {"actions", "count", "n", NULL};
    *out = (struct columns){column(c, action), column(c, count), column(c, status)};
    if (out->action != NONE)
        return true;
    *out = (struct columns){0, 1, NONE};
    return false;
}

/* Lines that psql draws around a table: "-----+------" and "(12 rows)". */
static bool is_frame(const struct csv *c)
{
    struct sv s = csv_field(c, 0);
    size_t n = 0;
    if (sv_starts(s, SV("#")) || (c->n == 1 && sv_starts(s, SV("(")) && sv_ends(s, SV(")"))))
        return true;
    while (n < s.n && (s.p[n] == '-' || s.p[n] == '+'))
        n++;
    return n == s.n && c->n == 1;
}

static enum err count_record(struct mix_counts *counts, const struct csv *c, const struct columns *at,
                             struct errinfo *ei)
{
    struct sv action = csv_field(c, at->action);
    uint64_t n = 1;
    if (action.n == 0)
        return err_set(ei, ERR_USAGE, "%s line %" PRIu64 ": no action is named", c->name, c->line);
    if (at->status != NONE && !sv_ieq(csv_field(c, at->status), SV("success"))) {
        counts->failed++;
        return ERR_OK;
    }
    if (at->count != NONE && !sv_to_u64(csv_field(c, at->count), &n))
        return err_set(ei, ERR_USAGE, "%s line %" PRIu64 ": %s needs its count, a whole number, behind it", c->name,
                       c->line, SHOWN(action));
    struct errinfo why = {0};
    enum err err = mix_counts_add(counts, action, n, &why);
    return err ? err_set(ei, ERR_USAGE, "%s line %" PRIu64 ": %s", c->name, c->line, err_message(&why)) : ERR_OK;
}

enum err mix_counts_read(struct mix_counts *counts, FILE *f, const char *name, struct errinfo *ei)
{
    struct csv c;
    struct columns at = {NONE, NONE, NONE};
    bool more = true, first = true;
    csv_init(&c, f, name);
    enum err err = csv_next(&c, &more, ei);
    for (; !err && more; err = csv_next(&c, &more, ei)) {
        if (is_frame(&c))
            continue;
        bool header = first && find_columns(&c, &at);
        first = false;
        if (!header && (err = count_record(counts, &c, &at, ei)))
            break;
    }
    csv_done(&c);
    return err;
}
