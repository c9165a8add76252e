#include "checks/evidence/journal.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sorted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct open_read {
    uint64_t seq;
    const char *file_id, *listed;
    int64_t sent_us;
};
struct reader {
    struct journal *j;
    size_t cap, cap_notes, cap_reads, cap_troubles;
    struct open_read *open; /* those that no outcome was read of yet */
    size_t n_open, cap_open;
    const char **strings; /* open addressing; NULL is free */
    size_t n_strings, mask;
};

/* ---- strings, each kept once ---- */

static const char **slot_of(const struct reader *rd, const char *s)
{
    size_t i = hash_str(s) & rd->mask;
    while (rd->strings[i] && strcmp(rd->strings[i], s) != 0)
        i = (i + 1) & rd->mask;
    return &rd->strings[i];
}

static void grow_strings(struct reader *rd)
{
    const char **old = rd->strings;
    size_t old_size = old ? rd->mask + 1 : 0;
    rd->mask = old ? rd->mask * 2 + 1 : 1023;
    rd->strings = mem_zalloc((rd->mask + 1) * sizeof(*rd->strings));
    for (size_t i = 0; i < old_size; i++)
        if (old[i])
            *slot_of(rd, old[i]) = old[i];
    mem_free(old);
}

static const char *keep(struct reader *rd, const char *s)
{
    if (!s[0])
        return "";
    if (!rd->strings || rd->n_strings * 2 > rd->mask)
        grow_strings(rd);
    const char **slot = slot_of(rd, s);
    if (!*slot) {
        *slot = arena_strdup(rd->j->mem, s);
        rd->n_strings++;
    }
    return *slot;
}

/* ---- records ---- */

static void *grow(void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 256;
    return mem_realloc_array(items, *cap, size);
}

static void on_intent(struct reader *rd, const struct ledger_record *r)
{
    struct journal *j = rd->j;
    bool copy = r->op == OP_COPY;
    if (r->op == OP_DOWNLOAD) {
        rd->open = grow(rd->open, rd->n_open, &rd->cap_open, sizeof(*rd->open));
        rd->open[rd->n_open++] =
            (struct open_read){r->seq, keep(rd, r->file_id), keep(rd, r->version_before), r->mono_us};
        return;
    }
    j->ops = grow(j->ops, j->n, &rd->cap, sizeof(*j->ops));
    j->ops[j->n++] = (struct journal_op){.seq = r->seq,
                                         .file_id = copy ? "" : keep(rd, r->file_id),
                                         .source_id = copy ? keep(rd, r->file_id) : "",
                                         .parent_id = keep(rd, r->parent_id),
                                         .other_id = keep(rd, r->other_id),
                                         .version_before = keep(rd, r->version_before),
                                         .version_after = "",
                                         .name = keep(rd, r->name),
                                         .old_name = keep(rd, r->old_name),
                                         .sent_us = r->mono_us,
                                         .told_us = INT64_MAX,
                                         .wall_us = r->wall_us,
                                         .content_key = r->content_key,
                                         .revision = r->revision,
                                         .parent_revision = r->parent_revision,
                                         .size = r->size,
                                         .app = r->app,
                                         .login = r->login,
                                         .op = r->op,
                                         .outcome = OUT_UNKNOWN};
}

static int by_seq(const void *a, const void *b)
{
    const struct journal_op *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Requests are numbered as they are recorded. */
static struct journal_op *find(struct journal_op *ops, size_t n, uint64_t seq)
{
    const struct journal_op key = {.seq = seq};
    return n > 0 ? bsearch(&key, ops, n, sizeof(key), by_seq) : NULL;
}

/* Whether the request is over with this answer. After a broken call or a server error it may still be carried out. */
static bool settles(enum outcome o)
{
    return o == OUT_OK || o == OUT_CONFLICT || o == OUT_REFUSED || o == OUT_THROTTLED || o == OUT_CLIENT;
}

static void on_outcome(struct reader *rd, const struct ledger_record *r)
{
    struct journal *j = rd->j;
    struct journal_op *o = find(j->ops, j->n, r->seq);
    if (!o || r->outcome >= OUT_COUNT)
        return;
    o->outcome = (enum outcome)r->outcome;
    if (settles(o->outcome))
        o->told_us = r->mono_us;
    o->file_id = r->file_id[0] ? keep(rd, r->file_id) : o->file_id;
    o->other_id = r->other_id[0] ? keep(rd, r->other_id) : o->other_id;
    if ((o->op == OP_MOVE || o->op == OP_COPY) && r->name[0])
        o->old_name = o->name;
    o->name = r->name[0] ? keep(rd, r->name) : o->name;
    o->parent_id = r->parent_id[0] ? keep(rd, r->parent_id) : o->parent_id;
    o->version_after = keep(rd, r->version_after);
}

/* What an app got to read, right or wrong; where nothing came there is nothing to judge. */
static void on_read(struct reader *rd, const struct ledger_record *r)
{
    struct journal *j = rd->j;
    size_t i = rd->n_open;
    while (i > 0 && rd->open[i - 1].seq != r->seq)
        i--;
    if (i == 0)
        return;
    struct open_read o = rd->open[i - 1];
    rd->open[i - 1] = rd->open[--rd->n_open];
    if (r->outcome != OUT_OK && r->outcome != OUT_WRONG)
        return;
    j->reads = grow(j->reads, j->n_reads, &rd->cap_reads, sizeof(*j->reads));
    j->reads[j->n_reads++] = (struct journal_read){.file_id = o.file_id,
                                                   .listed = o.listed,
                                                   .version = keep(rd, r->version_after),
                                                   .why = keep(rd, r->name),
                                                   .sent_us = o.sent_us,
                                                   .told_us = r->mono_us,
                                                   .wall_us = r->wall_us,
                                                   .key = r->content_key,
                                                   .revision = r->revision,
                                                   .parent_revision = r->parent_revision,
                                                   .size = r->size,
                                                   .app = r->app,
                                                   .login = r->login,
                                                   .outcome = (enum outcome)r->outcome};
}

static void on_trouble(struct reader *rd, const struct ledger_record *r)
{
    struct journal *j = rd->j;
    j->troubles = grow(j->troubles, j->n_troubles, &rd->cap_troubles, sizeof(*j->troubles));
    j->troubles[j->n_troubles++] = (struct journal_trouble){.file_id = keep(rd, r->file_id),
                                                            .why = keep(rd, r->name),
                                                            .from_us = r->mono_us - (int64_t)r->seq,
                                                            .to_us = r->mono_us,
                                                            .wall_us = r->wall_us,
                                                            .app = r->app,
                                                            .login = r->login,
                                                            .kind = r->kind,
                                                            .op = r->op,
                                                            .how = r->flags};
}

static void on_note(struct reader *rd, const struct ledger_record *r)
{
    struct journal *j = rd->j;
    j->notes = grow(j->notes, j->n_notes, &rd->cap_notes, sizeof(*j->notes));
    j->notes[j->n_notes++] = (struct journal_note){.file_id = keep(rd, r->file_id),
                                                   .at_us = r->mono_us,
                                                   .wall_us = r->wall_us,
                                                   .key = r->revision,
                                                   .versions = r->content_key,
                                                   .size = r->size,
                                                   .status = r->status,
                                                   .app = r->app,
                                                   .login = r->login,
                                                   .op = r->op,
                                                   .flags = r->flags};
}

static bool on_record(void *arg, const struct ledger_record *r)
{
    struct reader *rd = arg;
    if (r->kind == LEDGER_INTENT)
        on_intent(rd, r);
    else if (r->kind == LEDGER_OUTCOME && r->op == OP_DOWNLOAD)
        on_read(rd, r);
    else if (r->kind == LEDGER_OUTCOME)
        on_outcome(rd, r);
    else if (r->kind == LEDGER_NOTE)
        on_note(rd, r);
    else if (r->kind == LEDGER_UNANSWERED || r->kind == LEDGER_STOOD_STILL)
        on_trouble(rd, r);
    rd->j->n_apps = r->app >= rd->j->n_apps ? r->app + 1 : rd->j->n_apps;
    return true;
}

/* ---- run.json ---- */

static enum err read_run(struct journal *j, const char *run_dir, struct errinfo *ei)
{
    char path[512];
    struct buf text = BUF_INIT(16 << 20);
    snprintf(path, sizeof(path), "%s/run.json", run_dir);
    enum err e = file_read(path, &text, ERR_IO, ei);
    if (e == ERR_OK && json_parse(buf_cstr(&text), text.len, &j->run, ei) != ERR_OK)
        e = err_set(ei, ERR_PARSE, "%s cannot be read: it is damaged or was never completely written", path);
    buf_done(&text);
    return e;
}

/* "logins" and "login_accounts", a number a login. */
static void read_logins(struct journal *j)
{
    const struct json *list = json_get(j->run, "login_accounts"), *emails = json_get(j->run, "logins");
    size_t n_emails = 0;
    j->account_of = mem_zalloc((json_count(list) + 1) * sizeof(*j->account_of));
    for (const struct json *v = json_first(list); v; v = json_next(v)) {
        int64_t account = 0;
        if (json_i64(v, &account))
            j->account_of[j->n_logins++] = (uint32_t)account;
    }
    j->emails = arena_alloc(j->mem, (j->n_logins + json_count(emails) + 1) * sizeof(*j->emails));
    for (const struct json *v = json_first(emails); v; v = json_next(v))
        j->emails[n_emails++] = json_str(v) ? arena_strdup(j->mem, json_str(v)) : NULL;
}

enum err journal_read(const char *run_dir, struct journal **out, struct errinfo *ei)
{
    struct journal *j = mem_zalloc(sizeof(*j));
    struct reader rd = {.j = j};
    j->mem = arena_new(1 << 16);
    enum err e = ledger_read(run_dir, on_record, &rd, &j->end, ei);
    mem_free(rd.strings);
    mem_free(rd.open);
    if (e == ERR_OK)
        e = read_run(j, run_dir, ei);
    if (e == ERR_OK) {
        read_logins(j);
        j->finished = json_is_string(json_get(j->run, "ended"));
        j->foreign = json_bool(json_get(j->run, "foreign"), false);
        *out = j;
    } else {
        journal_free(&j);
    }
    return e;
}

const char *journal_damage(const struct journal *j)
{
    if (j->end.tail == LEDGER_DAMAGED)
        return "the ledger is damaged: records are missing from its middle";
    if (j->end.tail == LEDGER_TORN)
        return "the ledger is cut short: it ends within a record";
    if (j->end.tail == LEDGER_ENDLESS && j->finished)
        return "the ledger is cut short: the run ended, but the ledger's end is missing";
    return NULL;
}

void journal_free(struct journal **jp)
{
    struct journal *j = *jp;
    if (!j)
        return;
    arena_free(&j->mem);
    mem_free(j->ops);
    mem_free(j->notes);
    mem_free(j->reads);
    mem_free(j->troubles);
    mem_free(j->account_of);
    json_free(&j->run);
    MEM_FREE(*jp);
}

uint32_t journal_account(const struct journal *j, uint32_t login)
{
    return login < j->n_logins ? j->account_of[login] : 0;
}

char *journal_time(char dst[32], int64_t wall_us)
{
    char iso[40];
    wall_format(iso, sizeof(iso), (struct wall){wall_us});
    snprintf(dst, 32, "%.13s", iso + 11);
    return dst;
}
