#include "base/mem.h"
#include "checks/evidence/others.h"
#include "checks/ledger/impl.h"
#include "checks/runner.h"

#include <inttypes.h>

const struct ledger_judged ledger_judged[LEDGER_JUDGED] = {
    {OP_SAVE, "saves", "saves"},
    {OP_UPLOAD, "uploads", "uploads"},
    {OP_RENAME, "renames", "renames"},
    {OP_MOVE, "moves", "moves"},
    {OP_TRASH, "trashes", "trashes"},
    {OP_COPY, "copies", "copies"},
    {OP_NEW_FOLDER, "new_folders", "new folders"},
};

/* ", 3 unknown settled as done"; "" when there were none. */
static char *unknown_text(char *dst, size_t n, const struct figures *f)
{
    static const char *const ends[] = {"as done", "as not done", "hidden by later changes"};
    char count[32];
    int at = 0;
    dst[0] = '\0';
    if (f->unknown == 0)
        return dst;
    at = snprintf(dst, n, ", %s unknown settled", str_thousands(count, sizeof(count), f->unknown));
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (f->ends[i] == f->unknown)
            snprintf(dst + at, n - (size_t)at, " %s", ends[i]);
    if (dst[at])
        return dst;
    const char *sep = ":";
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (f->ends[i] > 0) {
            at += snprintf(dst + at, n - (size_t)at, "%s %s %s", sep, str_thousands(count, sizeof(count), f->ends[i]),
                           ends[i]);
            sep = ",";
        }
    return dst;
}

static void tell(struct judge *k)
{
    char a[32], b[32], rest[160], others[100];
    struct figures all = {0};
    for (size_t i = 0; i < LEDGER_JUDGED; i++) {
        const struct figures *f = &k->figures[ledger_judged[i].op];
        all.acknowledged += f->acknowledged;
        all.found += f->found;
        all.unknown += f->unknown;
        for (size_t end = 0; end < ARRAY_LEN(f->ends); end++)
            all.ends[end] += f->ends[end];
        if (f->acknowledged || f->unknown)
            result_check_note(k->r, "%s: %s acknowledged, %s found%s", ledger_judged[i].text,
                              str_thousands(a, sizeof(a), f->acknowledged), str_thousands(b, sizeof(b), f->found),
                              unknown_text(rest, sizeof(rest), f));
    }
    check_summary(k->r, "%s acknowledged, %s found%s; %s looked at, %" PRIu64 " of them in the trash, %s read%s%s",
                  COUNTED(all.acknowledged, "change"), str_thousands(b, sizeof(b), all.found),
                  unknown_text(rest, sizeof(rest), &all), COUNTED(k->r->examined, "item"), k->trashed,
                  COUNTED(k->read, "file"),
                  journal_whole(k->j) ? "" : "; the run was cut short: its last moments are missing",
                  check_others_text(others, sizeof(others), k->others));
}

static void write_json(const struct judge *k, struct result *to)
{
    struct buf text = BUF_INIT(1 << 16);
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w, NULL);
    jsonw_i64(&w, "records", (int64_t)k->j->end.records);
    jsonw_bool(&w, "whole", journal_whole(k->j));
    jsonw_i64(&w, "items", (int64_t)k->r->examined);
    jsonw_i64(&w, "files_read", (int64_t)k->read);
    jsonw_i64(&w, "items_in_trash", (int64_t)k->trashed);
    for (size_t i = 0; i < LEDGER_JUDGED; i++) {
        const struct figures *f = &k->figures[ledger_judged[i].op];
        jsonw_object(&w, ledger_judged[i].key);
        jsonw_i64(&w, "acknowledged", (int64_t)f->acknowledged);
        jsonw_i64(&w, "found", (int64_t)f->found);
        jsonw_i64(&w, "unknown", (int64_t)f->unknown);
        jsonw_i64(&w, "done", (int64_t)f->ends[FATE_DONE]);
        jsonw_i64(&w, "not_done", (int64_t)f->ends[FATE_NOT_DONE]);
        jsonw_i64(&w, "overtaken", (int64_t)f->ends[FATE_OVERTAKEN]);
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
    result_part(to, "ledger", &w);
}

void ledger_report(struct judge *k)
{
    tell(k);
    write_json(k, k->c->cmd->result);
}

void checks_sample(struct result *r)
{
    struct check_result none = {0};
    const struct journal nothing = {0};
    write_json(&(struct judge){.r = &none, .j = &nothing}, r);
}
