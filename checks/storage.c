/* Storage use of each account = the bytes of all its files, trashed ones included; at rest nothing is reserved, and no
 * account has grown beyond its limit meanwhile (one may be above it because the limit was lowered). */
#include "checks/evidence/told.h"
#include "drive/schema.h"
#include "net/coro.h"

#include <inttypes.h>

#define REST_US (2 * US_PER_S) /* drain.c has waited for our own: another client may be at work */

/* What the account has reserved once that has been given the time to end; -1 when it can't be told. */
static MAY_YIELD int64_t still_reserved(struct check_ctx *c, const char *account)
{
    struct mono until = mono_add(mono_now(), REST_US);
    int64_t bytes = -1;
    do {
        struct pg_result *res = NULL;
        struct errinfo ei;
        coro_sleep_until(c->cmd->loop, mono_add(mono_now(), US_PER_S / 4));
        if (pg_run(c->pg, "SELECT storage_reserved FROM users WHERE id = $1", 1, &account, &res, &ei) == ERR_OK)
            bytes = pg_rows(res) == 1 ? pg_i64(res, 0, 0) : 0;
        pg_result_free(&res);
    } while (bytes != 0 && !mono_passed(until));
    return bytes;
}

enum err check_read_overrun(struct pg_pool *pg, int64_t *out, struct errinfo *ei)
{
    struct pg_result *res = NULL;
    enum err e = pg_run(pg,
                        "SELECT coalesce(sum(greatest(storage_used - storage_limit, 0)), 0)::bigint FROM users"
                        " WHERE storage_limit IS NOT NULL",
                        0, NULL, &res, ei);
    if (e == ERR_OK)
        *out = pg_i64(res, 0, 0);
    pg_result_free(&res);
    return e;
}

static MAY_YIELD void judge_limits(struct check_ctx *c, struct check_result *r)
{
    int64_t now = 0;
    struct errinfo ei;
    if (!c->since || !c->since->known_overrun || check_read_overrun(c->pg, &now, &ei) != ERR_OK)
        return;
    if (now > c->since->overrun)
        check_detail(
            r,
            "accounts use %" PRId64 " bytes beyond their storage limits, %" PRId64
            " when the command began; look: SELECT id, storage_used, storage_limit FROM users WHERE storage_used"
            " > storage_limit",
            now, c->since->overrun);
}

static MAY_YIELD void run(struct check_ctx *c, struct check_result *r)
{
    const struct tree *t = check_rows(c, r);
    if (!t)
        return;
    if (!(t->schema & SCHEMA_STORAGE_USED)) {
        told_storage(c, t, r);
        return;
    }
    int64_t total = 0;
    for (uint32_t i = 0; i < t->n_accounts; i++) {
        const struct tree_account *a = &t->accounts[i];
        r->examined++;
        total = drive_sum(total, a->sum_size);
        if (a->used != a->sum_size)
            check_detail(r,
                         "account %s (%s): storage_used is %" PRId64 ", its %" PRIu32 " files add up to %" PRId64
                         " (%+" PRId64 "); look: SELECT storage_used FROM users WHERE id = '%s'",
                         a->id, a->email, a->used, a->files, a->sum_size, drive_difference(a->used, a->sum_size),
                         a->id);
        if (a->reserved != a->reservations)
            check_detail(r,
                         "account %s (%s): storage_reserved is %" PRId64 ", its reservations add up to %" PRId64
                         "; look: SELECT * FROM storage_reservations WHERE user_id = '%s'",
                         a->id, a->email, a->reserved, a->reservations, a->id);
        else if (a->reserved != 0 && still_reserved(c, a->id) != 0)
            check_detail(r,
                         "account %s (%s): %" PRId64
                         " bytes are still reserved at rest; look: SELECT * FROM storage_reservations",
                         a->id, a->email, a->reserved);
    }
    judge_limits(c, r);
    char text[32];
    check_summary(r, "%s, %s, %" PRIu64 " wrong", COUNTED(r->examined, "account"),
                  str_bytes(text, sizeof(text), (uint64_t)total), r->wrong);
}

const struct check check_storage = {"storage", "storage use of each account against the sum of its files", run};
