/* Reads of servers with another wire than TMA Cloud's: the same rows as far as they go, by the client's calls. */
#include "base/mem.h"
#include "sim/reads/read.h"

#include <stdio.h>
#include <string.h>

enum call { LIST, INFO, SEARCH, RECENT, TRASH, STATS, STORAGE, CHANGES };
static const struct by_call {
    const char *key; /* of the row */
    enum call call;
    enum read_word of; /* what it is asked about */
    unsigned cap;      /* 0: every server has it */
} calls[] = {
    {"list_small", LIST, READ_SMALL, 0},
    {"list_root", LIST, READ_ROOT, 0},
    {"list_hot", LIST, READ_HOT, 0},
    {"info_file", INFO, READ_FILE, 0},
    {"info_folder", INFO, READ_HOT, 0},
    {"search_word", SEARCH, READ_STEM, API_CAP_TMA_WIRE},
    {"recent", RECENT, READ_ROOT, API_CAP_RECENT},
    {"trash", TRASH, READ_ROOT, API_CAP_TRASH},
    {"stats", STATS, READ_ROOT, API_CAP_TOTALS},
    {"storage", STORAGE, READ_ROOT, API_CAP_STORAGE},
    {"changes_now", CHANGES, READ_NOW, API_CAP_FEED},
};

static const struct by_call *find(const struct reads_stage *s, const struct read *row)
{
    unsigned caps = api_caps(s->logins[0]);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (strcmp(calls[i].key, row->key) == 0 && (calls[i].cap & caps) == calls[i].cap)
            return &calls[i];
    return NULL;
}

const char *read_unfit(const struct reads_stage *s, const struct read *row)
{
    bool wire = api_caps(s->logins[0]) & API_CAP_TMA_WIRE;
    return wire || find(s, row) ? NULL : "not offered: a server of this kind has no such read";
}

static MAY_YIELD enum err ask(struct api *a, const struct by_call *c, const char *word, unsigned limit,
                              struct arena *mem, struct reading *out, struct api_result *r)
{
    struct api_totals totals;
    struct api_storage storage;
    struct api_changes changes;
    struct drive_file file;
    switch (c->call) {
    case LIST:
        return api_list(a, word[0] ? word : NULL, mem, &out->list, r);
    case INFO:
        return api_info(a, word, mem, &file, &totals, r);
    case SEARCH:
        return api_search(a, word, limit, mem, &out->list, r);
    case RECENT:
        return api_recent(a, limit, mem, &out->list, r);
    case TRASH:
        return api_trash_list(a, mem, &out->list, r);
    case STATS:
        return api_stats(a, &totals, r);
    case STORAGE:
        return api_storage(a, &storage, r);
    case CHANGES:
        return api_changes(a, word, mem, &changes, r);
    }
    return ERR_USAGE;
}

bool read_call(struct reads_stage *s, const struct read *row, struct arena *mem, struct reading *out)
{
    struct api *a = s->logins[s->turn++ % s->n_logins];
    const struct by_call *c = find(s, row);
    struct api_result r = {0};
    *out = (struct reading){.rows = 1};
    enum err e = c ? ask(a, c, s->words[c->of], (unsigned)row->limit, mem, out, &r) : ERR_NOTFOUND;
    out->status = r.status;
    out->us = mono_diff(r.done, r.sent);
    if (!c || c->call == LIST || out->list.n)
        out->rows = (int64_t)out->list.n;
    snprintf(out->reason, sizeof(out->reason), "%s", r.reason);
    return e == ERR_OK && r.outcome == OUT_OK;
}
