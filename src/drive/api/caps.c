#include "drive/api/caps.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>

/* What is done instead; otherwise: where the server lacks the second one too (0: there is none). of_tma: only a server
 * that signs up accounts, as TMA Cloud does, is expected to have it. */
static const struct {
    enum api_cap cap;
    const char *instead;
    unsigned second;
    const char *otherwise;
    bool of_tma;
} rows[] = {
    {API_CAP_SIGN_UP, "the given logins sign in", 0, NULL, false},
    {API_CAP_SUB_USERS, "owners alone sign in", 0, NULL, true},
    {API_CAP_LOCKS, "saves by version alone", API_CAP_VERSIONS, "saves without either, the last one stays", false},
    {API_CAP_VERSIONS, "saves unconditionally", 0, NULL, false},
    {API_CAP_FEED, "folders named in events, all of them each minute", API_CAP_EVENTS,
     "each app lists all its open folders once a minute", false},
    {API_CAP_EVENTS, "minute checks alone", 0, NULL, false},
    {API_CAP_PAGING, "each listing comes whole", 0, NULL, true},
    {API_CAP_STORAGE_CONFIG, "the server keeps a store of its own", 0, NULL, true},
    {API_CAP_JOBS, "long work is done within its request", 0, NULL, true},
    {API_CAP_BULK, "files are uploaded one by one", 0, NULL, true},
    {API_CAP_RANGES, "downloads come whole", 0, NULL, false},
    {API_CAP_TRASH, "deleted for good at once", 0, NULL, false},
    {API_CAP_RECENT, "that read is left out", 0, NULL, true},
    {API_CAP_STORAGE, "it does not report how much is in use", 0, NULL, false},
    {API_CAP_TOTALS, "folders are counted entry by entry", 0, NULL, false},
    {API_CAP_TMA_WIRE, "refusals and reads ask only what its protocol can express", 0, NULL, true},
    {API_CAP_BATCH, "one item a request", 0, NULL, true},
};

/* Worth telling: absent, and not a matter of course on a server of its kind. */
static bool told(size_t row, unsigned all)
{
    return !(all & rows[row].cap) && (!rows[row].of_tma || (all & API_CAP_SIGN_UP));
}

unsigned caps_ask(struct api *a)
{
    struct api_result r;
    (void)!api_probe(a, &r); /* whoever does not answer now will tell by failing later */
    return api_caps(a);
}

const char *caps_instead(enum api_cap cap, unsigned all)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].cap == cap)
            return rows[i].second && !(all & rows[i].second) ? rows[i].otherwise : rows[i].instead;
    return NULL;
}

char *caps_fallbacks(unsigned all, char *dst, size_t n)
{
    struct buf b = BUF_INIT(n);
    enum err e = ERR_OK;
    for (size_t i = 0; i < ARRAY_LEN(rows) && e == ERR_OK; i++)
        if (told(i, all))
            e = buf_appendf(&b, "%sno %s: %s", b.len ? "; " : "", api_cap_text(rows[i].cap),
                            caps_instead(rows[i].cap, all));
    str_format(dst, n, "%s", buf_cstr(&b));
    buf_done(&b);
    return dst;
}

void caps_tell(struct cmd_ctx *ctx, unsigned all)
{
    struct result *r = ctx->result;
    r->caps_known = true;
    r->caps = all;
    caps_fallbacks(all, r->note, sizeof(r->note));
    for (size_t i = 0; i < ARRAY_LEN(rows) && !ctx->common->quiet; i++)
        if (told(i, all))
            fprintf(ctx->out, "server: no %s: %s\n", api_cap_text(rows[i].cap), caps_instead(rows[i].cap, all));
}
