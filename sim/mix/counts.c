/* Weights are the counts themselves, not rounded shares: what was imported can be seen in the file, and adds up. */
#include "sim/mix/counts.h"
#include "base/mem.h"
#include "sim/app/mix.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ACTIONS_MOST 1000
#define SUM_MOST     UINT64_C(1000000000000000)
#define WEIGHT_MOST  1e9 /* as --mix takes it */

/* TMA Cloud's names (v2 and v3) for what an app does. What it never does by itself is not here: sharing, stars,
 * documents opened in the browser, ZIPs of several files, restoring and deleting for good. */
static const struct {
    const char *action;
    enum drive_op op;
} known[] = {
    {"file.download", OP_DOWNLOAD},  {"file.update", OP_SAVE},         {"file.upload", OP_UPLOAD},
    {"file.upload.bulk", OP_UPLOAD}, {"file.delete", OP_TRASH},        {"file.rename", OP_RENAME},
    {"file.copy", OP_COPY},          {"folder.create", OP_NEW_FOLDER}, {"file.move", OP_MOVE},
};

void mix_counts_done(struct mix_counts *c)
{
    mem_free(c->rows);
    *c = (struct mix_counts){0};
}

enum drive_op mix_counts_op(struct sv action)
{
    char key[64];
    enum drive_op op;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (sv_eq_cstr(action, known[i].action))
            return known[i].op;
    str_format(key, sizeof key, SV_FMT, SV_ARG(action)); /* an app's own name for it, written by hand */
    return drive_op_parse(key, &op) && mix_is_action(op) ? op : OP_COUNT;
}

enum err mix_counts_actions(struct buf *out)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(known) && !err; i++)
        err = buf_appendf(out, "%s'%s'", i ? ", " : "", known[i].action);
    return err;
}

/* Where a figure goes that is no action's; NULL when it is one's. */
static uint64_t *figure(struct mix_counts *c, struct sv action)
{
    const struct {
        const char *name;
        uint64_t *at;
    } all[] = {{COUNT_USERS, &c->users}, {COUNT_USER_HOURS, &c->user_hours}, {COUNT_BUSIEST_HOUR, &c->busiest_hour}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (sv_eq_cstr(action, all[i].name))
            return all[i].at;
    return NULL;
}

enum err mix_counts_add(struct mix_counts *c, struct sv action, uint64_t n, struct errinfo *ei)
{
    char shown[sizeof c->rows->action];
    uint64_t *other = figure(c, action);
    if (n > SUM_MOST - c->sum)
        return err_set(ei, ERR_LIMIT, "the counts add up to more than any log holds");
    c->sum += n;
    if (other) {
        *other += n;
        return ERR_OK;
    }
    str_shown(shown, sizeof shown, action);
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->rows[i].action, shown) != 0)
            continue;
        c->rows[i].n += n;
        return ERR_OK;
    }
    if (c->n == ACTIONS_MOST)
        return err_set(ei, ERR_LIMIT, "more than %d different actions: this is no column of an audit log's actions",
                       ACTIONS_MOST);
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 32;
        c->rows = mem_realloc(c->rows, c->cap * sizeof *c->rows);
    }
    struct action_count *row = &c->rows[c->n++];
    *row = (struct action_count){.op = mix_counts_op(action), .n = n};
    memcpy(row->action, shown, sizeof shown);
    return ERR_OK;
}

uint64_t mix_counts_total(const struct mix_counts *c, bool of_apps)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->n; i++)
        if ((c->rows[i].op != OP_COUNT) == of_apps)
            sum += c->rows[i].n;
    return sum;
}

static int more_often_first(const void *a, const void *b)
{
    const struct action_count *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    return strcmp(x->action, y->action);
}

/* ---- the file ---- */

static enum err write_weights(const struct mix_counts *c, struct buf *out)
{
    uint64_t of[OP_COUNT] = {0}, most = 0, sum = mix_counts_total(c, true);
    enum err err = ERR_OK;
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].op != OP_COUNT)
            of[c->rows[i].op] += c->rows[i].n;
    for (int op = 0; op < OP_COUNT; op++)
        most = of[op] > most ? of[op] : most;
    const double scale = (double)most > WEIGHT_MOST ? WEIGHT_MOST / (double)most : 1;
    char line[80];
    for (int op = 0; op < OP_COUNT && !err; op++) {
        if (of[op] == 0)
            continue;
        str_format(line, sizeof line, "%s %.12g", drive_op_key(op), (double)of[op] * scale);
        char share[16];
        str_format(share, sizeof share, "%.1f", 100.0 * (double)of[op] / (double)sum);
        err = buf_appendf(out, "%-24s # %5s %%", line, share);
        for (size_t i = 0; i < c->n && !err; i++)
            if (c->rows[i].op == (enum drive_op)op)
                err = buf_appendf(out, ", %s", c->rows[i].action);
        if (!err)
            err = buf_append_char(out, '\n');
    }
    return err;
}

static enum err write_left_out(const struct mix_counts *c, struct buf *out)
{
    char n[32];
    enum err err = ERR_OK;
    uint64_t others = mix_counts_total(c, false);
    if (others)
        err = buf_appendf(out, "# left out, as an app does nothing of the kind: %s\n",
                          str_thousands(n, sizeof n, others));
    for (size_t i = 0; i < c->n && !err; i++)
        if (c->rows[i].op == OP_COUNT)
            err = buf_appendf(out, "#   %-32s %12s\n", c->rows[i].action, str_thousands(n, sizeof n, c->rows[i].n));
    if (c->failed && !err)
        err = buf_appendf(out, "# not counted, as they did not succeed: %s\n", str_thousands(n, sizeof n, c->failed));
    return err;
}

/* What to give `run` as its actions a minute: how often somebody acted in an hour in which they acted at all. */
static enum err write_rate(const struct mix_counts *c, struct buf *out)
{
    char rate[32], busy[32];
    if (c->user_hours == 0)
        return ERR_OK;
    str_format(rate, sizeof rate, "%.3g", (double)mix_counts_total(c, true) / (double)c->user_hours / 60);
    enum err err = buf_appendf(out, "# %s; %s actions a minute each, in the hours in which they acted at all:\n",
                               COUNTED(c->users, "user"), rate);
    if (!err)
        err = buf_appendf(out, "#   sim run <apps> <open folders> %s <seconds> --mix FILE\n", rate);
    str_format(busy, sizeof busy, "%.3g", (double)c->busiest_hour / 60);
    if (!err && c->busiest_hour)
        err = buf_appendf(out, "# the busiest hour had %s, %s a minute of all users together\n",
                          COUNTED(c->busiest_hour, "action"), busy);
    return err;
}

enum err mix_counts_write(struct mix_counts *c, const char *from, struct buf *out, struct errinfo *ei)
{
    uint64_t acts = mix_counts_total(c, true);
    if (c->n)
        qsort(c->rows, c->n, sizeof *c->rows, more_often_first);
    if (acts == 0 && mix_counts_total(c, false) == 0)
        return err_set(ei, ERR_USAGE, "%s holds no action", from);
    if (acts == 0)
        return err_set(ei, ERR_USAGE, "%s holds no action that an app does: the most frequent is %s", from,
                       c->rows[0].action);
    enum err err = buf_appendf(out, "# a mix for `sim run --mix`: %s of %s\n", COUNTED(acts, "action"), from);
    if (!err)
        err = write_weights(c, out);
    if (!err)
        err = write_left_out(c, out);
    if (!err)
        err = write_rate(c, out);
    return err ? err_set(ei, err, "the mix is too long") : ERR_OK;
}
