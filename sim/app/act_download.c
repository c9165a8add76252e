#include "sim/app/actions.h"
#include "sim/app/pick.h"
#include "sim/app/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A body that is judged while it comes, by what its own header says it is. */
struct reading {
    const char *ext;
    unsigned char head[CONTENT_HEAD_MAX];
    size_t head_n;
    uint64_t got;
    bool strict; /* it has to be ours */
    bool identified;
    struct content_check check;
};

static int on_body(void *arg, const char *p, size_t n)
{
    struct reading *rd = arg;
    rd->got += n;
    if (rd->identified)
        return content_check_feed(&rd->check, p, n) ? 0 : 1;
    size_t take = sizeof(rd->head) - rd->head_n < n ? sizeof(rd->head) - rd->head_n : n;
    memcpy(rd->head + rd->head_n, p, take);
    rd->head_n += take;
    struct content c;
    struct sv head = {(const char *)rd->head, rd->head_n};
    if (!content_identify(head, rd->ext, &c))
        return rd->strict && rd->head_n == sizeof(rd->head); /* not ours: no use in reading on */
    rd->identified = true;
    content_check_init(&rd->check, &c, 0);
    return content_check_feed(&rd->check, rd->head, rd->head_n) && content_check_feed(&rd->check, p + take, n - take)
               ? 0
               : 1;
}

/* Whether what was read is what was listed. Where no versions are told, a body that says itself that it is whole, or is
 * too short to say anything, may be a later one. */
static bool same_version(const struct reading *rd, const struct picked *t, const char *version)
{
    return strcmp(version, t->version) == 0 &&
           (version[0] || (!rd->identified && rd->got >= content_head_len(rd->ext)));
}

/* The verdict over the bytes; version: of what was read, "" when not told. */
static void judge_body(const struct reading *rd, const struct picked *t, const char *version, struct api_result *r)
{
    if (r->outcome != OUT_OK && r->outcome != OUT_WRONG)
        return;
    if (rd->identified && rd->check.wrong)
        call_wrong(r, "wrong byte at %" PRIu64 " of %" PRIu64, rd->check.wrong_at, rd->check.want.size);
    else if (rd->identified && !content_check_complete(&rd->check))
        call_wrong(r, "%" PRIu64 " bytes came of %" PRIu64, rd->got, rd->check.want.size);
    else if (rd->strict && !rd->identified && rd->got >= content_head_len(rd->ext))
        call_wrong(r, "the content is none that was ever written here");
    else if (r->outcome == OUT_OK && t->size >= 0 && (uint64_t)t->size != rd->got && same_version(rd, t, version))
        call_wrong(r, "%" PRIu64 " bytes came, %" PRId64 " are listed for this version", rd->got, t->size);
}

static void tell_read(struct action *x, const struct ledger_record *rec, const struct reading *rd, const char *version,
                      const struct api_result *r)
{
    struct ledger_record told = {0};
    if (r->outcome == OUT_OK || r->outcome == OUT_WRONG) {
        action_text(told.version_after, sizeof(told.version_after), version);
        action_text(told.name, sizeof(told.name), r->outcome == OUT_WRONG ? r->reason : "");
        if (rd->identified)
            action_content(&told, &rd->check.want);
    }
    told.size = rd->got; /* what came, whatever the header says */
    action_answer(x, rec, &told, r);
}

void action_download(struct action *x)
{
    struct app *a = x->app;
    struct picked t;
    struct api_result r;
    struct reading rd;
    struct ledger_record rec = {0};
    char version[DRIVE_ID_MAX + 1];
    if (!action_pick_file(x, x->plan->pick, &t)) {
        action_nothing_to_do(x);
        return;
    }
    action_intend(x, &rec, OP_DOWNLOAD, &t);
    struct call c = CALL(a, CAUSE_ACTION);
    do {
        memset(&rd, 0, sizeof(rd));
        rd.strict = !a->w->server.foreign;
        rd.ext = action_extension(x, t.name);
        version[0] = '\0';
        api_download(a->api, t.id, 0, 0, on_body, &rd, version, sizeof(version), &r);
    } while (call_again(&c, &r));
    judge_body(&rd, &t, version, &r);
    tell_read(x, &rec, &rd, version, &r);
    action_finish(x, &c, OP_DOWNLOAD, &r, &t);
}
