#include "checks/evidence/probe.h"
#include "drive/path.h"

#include <string.h>

#define TRIES 8 /* files that were trashed since, or are not ours, are passed over */

struct head {
    char bytes[CONTENT_HEAD_MAX];
    size_t n;
};

static int on_head(void *arg, const char *p, size_t n)
{
    struct head *h = arg;
    size_t take = sizeof(h->bytes) - h->n < n ? sizeof(h->bytes) - h->n : n;
    memcpy(h->bytes + h->n, p, take);
    h->n += take;
    return 0;
}

/* By its first bytes; false when they are none of ours. */
static MAY_YIELD bool identify(struct check_ctx *c, struct api *api, const struct tree_node *row, struct probe *p)
{
    struct head head = {.n = 0};
    struct api_result r;
    struct sv ext = path_extension(sv_of(row->name));
    str_format(p->ext, sizeof(p->ext), SV_FMT, SV_ARG(ext));
    enum err e = api_download(api, p->file_id, 0, CONTENT_HEAD_MAX, on_head, &head, NULL, 0, &r);
    c->silent |= r.outcome == OUT_TIMEOUT;
    if (e != ERR_OK || r.outcome != OUT_OK || !content_identify((struct sv){head.bytes, head.n}, p->ext, &p->content))
        return false;
    return p->content.size == (uint64_t)row->size;
}

bool probe_choose(struct check_ctx *c, struct api *api, enum drive_op op, uint32_t login, struct probe *p)
{
    const struct journal *j = c->journal;
    int tries = 0;
    for (size_t i = j->n; i-- > 0 && tries < TRIES && !c->silent;) {
        const struct journal_op *o = &j->ops[i];
        bool led = o->op == op && o->login == login && journal_acked(o);
        uint32_t at = led ? tree_find(c->tree, o->file_id) : TREE_NONE;
        if (at == TREE_NONE || c->tree->nodes[at].trashed)
            continue;
        *p = (struct probe){.file_id = o->file_id, .name = c->tree->nodes[at].name, .by = o};
        tries++;
        if (identify(c, api, &c->tree->nodes[at], p))
            return true;
    }
    return false;
}
