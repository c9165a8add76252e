#include "drive/api/caps.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>

/* unversioned: the text where the server tells no versions either; NULL: the same. */
static const struct {
    enum api_cap cap;
    const char *instead, *unversioned;
} rows[] = {
    {API_CAP_SIGN_UP, "the given logins sign in", NULL},
    {API_CAP_SUB_USERS, "owners alone sign in", NULL},
    {API_CAP_LOCKS, "saves by version alone", "saves without any, the last one stays"},
    {API_CAP_VERSIONS, "saves unconditionally", NULL},
    {API_CAP_FEED, "folders named in events, all of them each minute", NULL},
    {API_CAP_EVENTS, "minute checks alone", NULL},
    {API_CAP_PAGING, "each listing comes whole", NULL},
    {API_CAP_STORAGE_CONFIG, "the server keeps a store of its own", NULL},
    {API_CAP_JOBS, "long work ends with its call", NULL},
    {API_CAP_BULK, "uploads one by one", NULL},
    {API_CAP_RANGES, "downloads come whole", NULL},
    {API_CAP_TRASH, "deleted for good at once", NULL},
    {API_CAP_RECENT, "that read is left out", NULL},
    {API_CAP_STORAGE, "nobody tells what is in use", NULL},
    {API_CAP_TOTALS, "folders are counted entry by entry", NULL},
    {API_CAP_TMA_WIRE, "refusals and reads by the client's calls alone", NULL},
    {API_CAP_BATCH, "one item a call", NULL},
};

/* Worth telling: absent, and not a matter of course. Where the logins are given nobody expects sub-users. */
static bool told(size_t row, unsigned all)
{
    return !(all & rows[row].cap) && (rows[row].cap != API_CAP_SUB_USERS || (all & API_CAP_SIGN_UP));
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
            return rows[i].unversioned && !(all & API_CAP_VERSIONS) ? rows[i].unversioned : rows[i].instead;
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
