#include "checks/journal.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct reader {
    struct journal *j;
    size_t cap, cap_notes, cap_reads, cap_troubles;
};

/* Room for one more of n. */
static void *grown(void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 256;
    return mem_realloc_array(items, *cap, size);
}

static const char *keep(struct journal *j, const char *s)
{
    return s[0] ? arena_strdup(j->mem, s) : "";
}

static void on_intent(struct reader *rd, const struct ledger_record *r)
{
    struct journal *j = rd->j;
    j->ops = grown(j->ops, j->n, &rd->cap, sizeof(*j->ops));
    j->ops[j->n++] = (struct journal_op){.seq = r->seq,
                                         .file_id = keep(j, r->file_id),
                                         .parent_id = keep(j, r->parent_id),
                                         .other_id = keep(j, r->other_id),
                                         .version_before = keep(j, r->version_before),
                                         .version_after = "",
                                         .name = keep(j, r->name),
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

/* Requests are numbered as they are recorded. */
static struct journal_op *find(struct journal *j, uint64_t seq)
{
    size_t low = 0, high = j->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (j->ops[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < j->n && j->ops[low].seq == seq ? &j->ops[low] : NULL;
}

static void on_outcome(struct reader *rd, const struct ledger_record *r)
{
    struct journal_op *o = find(rd->j, r->seq);
    if (!o)
        return;
    o->outcome = (enum outcome)r->outcome;
    o->told_us = r->mono_us;
    if (strcmp(r->file_id, o->file_id) != 0)
        o->file_id = keep(rd->j, r->file_id);
    if (strcmp(r->other_id, o->other_id) != 0)
        o->other_id = keep(rd->j, r->other_id);
    if (strcmp(r->name, o->name) != 0)
        o->name = keep(rd->j, r->name);
    o->version_after = keep(rd->j, r->version_after);
}

static void on_read(struct reader *rd, const struct ledger_record *r)
{
    struct journal *j = rd->j;
    j->reads = grown(j->reads, j->n_reads, &rd->cap_reads, sizeof(*j->reads));
    j->reads[j->n_reads++] = (struct journal_read){.file_id = keep(j, r->file_id),
                                                   .listed = keep(j, r->version_before),
                                                   .version = keep(j, r->version_after),
                                                   .why = keep(j, r->name),
                                                   .sent_us = r->mono_us - (int64_t)r->seq,
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
    j->troubles = grown(j->troubles, j->n_troubles, &rd->cap_troubles, sizeof(*j->troubles));
    j->troubles[j->n_troubles++] = (struct journal_trouble){.file_id = keep(j, r->file_id),
                                                            .why = keep(j, r->name),
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
    if (r->op == OP_DOWNLOAD) {
        on_read(rd, r);
        return;
    }
    j->notes = grown(j->notes, j->n_notes, &rd->cap_notes, sizeof(*j->notes));
    j->notes[j->n_notes++] = (struct journal_note){.file_id = keep(j, r->file_id),
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
    else if (r->kind == LEDGER_OUTCOME)
        on_outcome(rd, r);
    else if (r->kind == LEDGER_NOTE)
        on_note(rd, r);
    else if (r->kind == LEDGER_UNANSWERED || r->kind == LEDGER_STOOD_STILL)
        on_trouble(rd, r);
    rd->j->n_apps = r->app >= rd->j->n_apps ? r->app + 1 : rd->j->n_apps;
    return true;
}

/* run.json: "login_accounts", a number a login. */
static enum err read_accounts(struct journal *j, const char *run_dir, struct errinfo *ei)
{
    char path[512], chunk[4096];
    struct buf text = BUF_INIT(16 << 20);
    struct json *run = NULL;
    size_t n;
    snprintf(path, sizeof(path), "%s/run.json", run_dir);
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_sys(ei, ERR_IO, "cannot open %s", path);
    enum err e = ERR_OK;
    while (e == ERR_OK && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        e = buf_append(&text, chunk, n);
    fclose(f);
    if (e == ERR_OK)
        e = json_parse(buf_cstr(&text), text.len, &run, ei);
    const struct json *list = e == ERR_OK ? json_get(run, "login_accounts") : NULL;
    j->account_of = mem_zalloc((json_count(list) + 1) * sizeof(*j->account_of));
    for (const struct json *v = json_first(list); v; v = json_next(v)) {
        int64_t account = 0;
        if (json_i64(v, &account))
            j->account_of[j->n_logins++] = (uint32_t)account;
    }
    const struct json *emails = e == ERR_OK ? json_get(run, "logins") : NULL;
    j->emails = arena_alloc(j->mem, (j->n_logins + json_count(emails) + 1) * sizeof(*j->emails));
    size_t n_emails = 0;
    for (const struct json *v = json_first(emails); v; v = json_next(v))
        j->emails[n_emails++] = json_str(v) ? arena_strdup(j->mem, json_str(v)) : NULL;
    json_free(&run);
    buf_done(&text);
    return e;
}

enum err journal_read(const char *run_dir, struct journal **out, struct errinfo *ei)
{
    struct journal *j = mem_zalloc(sizeof(*j));
    struct reader rd = {.j = j};
    j->mem = arena_new(1 << 16);
    enum err e = ledger_read(run_dir, on_record, &rd, &j->torn, ei);
    if (e == ERR_OK)
        e = read_accounts(j, run_dir, ei);
    if (e != ERR_OK)
        journal_free(&j);
    *out = j;
    return e;
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
