#include "checks/evidence/readback.h"
#include "base/arena.h"
#include "drive/content.h"
#include "drive/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct reading {
    const char *ext;
    struct content_check self; /* against what its own header says; that is then compared with what was written */
    unsigned char head[CONTENT_HEAD_MAX];
    size_t head_n;
    uint64_t got;
    bool identified;
};

/* The head is gathered until it can be read; what follows is compared as it comes. */
static int on_bytes(void *arg, const char *p, size_t n)
{
    struct reading *rd = arg;
    struct content is;
    rd->got += n;
    if (rd->identified) {
        content_check_feed(&rd->self, p, n);
        return 0;
    }
    size_t take = sizeof(rd->head) - rd->head_n < n ? sizeof(rd->head) - rd->head_n : n;
    memcpy(rd->head + rd->head_n, p, take);
    rd->head_n += take;
    if (!content_identify((struct sv){(const char *)rd->head, rd->head_n}, rd->ext, &is))
        return 0;
    rd->identified = true;
    content_check_init(&rd->self, &is, 0);
    content_check_feed(&rd->self, rd->head, rd->head_n);
    content_check_feed(&rd->self, p + take, n - take);
    return 0;
}

static bool whole(const struct reading *rd)
{
    return rd->identified && content_check_complete(&rd->self) && rd->got == rd->self.want.size;
}

/* ext: which the file's name promises. A body without a header is compared byte for byte: it is a short one. */
static bool matches(const struct reading *rd, const struct journal_op *o)
{
    const struct content *is = &rd->self.want;
    unsigned char want[CONTENT_HEAD_MAX];
    if (rd->identified)
        return whole(rd) && is->key == o->content_key && is->revision == o->revision &&
               is->parent_revision == o->parent_revision && is->size == o->size;
    if (rd->got != o->size || rd->got > sizeof(want))
        return false;
    const struct content made = {.key = o->content_key,
                                 .revision = o->revision,
                                 .parent_revision = o->parent_revision,
                                 .size = o->size,
                                 .ext = rd->ext};
    content_fill(&made, 0, want, (size_t)o->size);
    return memcmp(want, rd->head, (size_t)o->size) == 0;
}

static void judge(const struct reading *rd, const struct fate_contents *want, struct readback *out)
{
    const struct journal_op *last = want->n ? want->of[0] : NULL;
    const struct content *is = &rd->self.want;
    out->bytes = rd->got;
    out->revision = rd->identified ? is->revision : 0;
    for (size_t i = 0; i < want->n; i++)
        if (matches(rd, want->of[i])) {
            out->verdict = READ_MATCHES;
            out->which = want->of[i];
            return;
        }
    if (!rd->identified) {
        bool short_one = rd->got < content_head_len(rd->ext);
        out->verdict = short_one && want->other ? READ_OTHER : READ_UNKNOWN;
        snprintf(out->why, sizeof(out->why), "%" PRIu64 " bytes of something else came back", rd->got);
        return;
    }
    out->verdict = whole(rd) ? READ_OTHER : READ_WRONG;
    snprintf(out->why, sizeof(out->why), "it holds %s revision %" PRIu64 " (%" PRIu64 " of %" PRIu64 " bytes)",
             last && is->key == last->content_key && is->revision == last->revision ? "a damaged" : "another one,",
             is->revision, rd->got, is->size);
}

enum err readback(struct asker *a, uint32_t account, const char *id, const char *name, const struct fate_contents *want,
                  struct readback *out, struct errinfo *ei)
{
    struct arena *mem = arena_new(1024);
    struct sv ext = path_extension(sv_of(name ? name : want->n ? want->of[0]->name : ""));
    const char *promised = ext.n ? arena_strndup(mem, ext.p, ext.n) : "";
    struct reading rd;
    struct api_result r;
    struct asking q = {0};
    enum err e = ERR_OK;
    *out = (struct readback){.verdict = READ_GONE};
    do {
        rd = (struct reading){.ext = promised};
        api_download(asker_api(a, account, &q), id, 0, 0, on_bytes, &rd, NULL, 0, &r);
    } while (asker_again(a, &q, &r));
    if (r.outcome == OUT_OK || r.outcome == OUT_WRONG)
        judge(&rd, want, out);
    else if (r.outcome == OUT_TRANSPORT && r.status == 200) /* each time, while the server lets itself be asked */
        snprintf(out->why, sizeof(out->why), "its answer breaks off after %" PRIu64 " bytes", rd.got);
    else if (r.outcome == OUT_TRANSPORT || r.outcome == OUT_TIMEOUT || r.outcome == OUT_UNFINISHED ||
             r.outcome == OUT_LOCAL || r.outcome == OUT_THROTTLED || r.status == 401 ||
             (r.status >= 502 && r.status <= 504)) /* nobody is let in, its store is away: no word of the file */
        e = err_set(ei, ERR_ENV, "the server could not be asked for file %s: %s", id, r.reason);
    else
        snprintf(out->why, sizeof(out->why), "the server answers %d %.150s", r.status, r.reason);
    arena_free(&mem);
    return e;
}
