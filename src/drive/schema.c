#include "drive/schema.h"
#include "base/mem.h"

uint64_t schema_sealed_size(uint64_t content_size)
{
    uint64_t segments = content_size / SEAL_SEGMENT_LEN + (content_size % SEAL_SEGMENT_LEN != 0);
    if (segments == 0)
        segments = 1;
    return SEAL_HEADER_LEN + content_size + segments * SEAL_TAG_LEN;
}

/* One row: whether each thing is there, in the order of enum schema_bit, after whether `files` is. */
static const char probe_sql[] =
    "WITH c AS (SELECT table_name || '.' || column_name AS n FROM information_schema.columns"
    "  WHERE table_schema = current_schema())"
    " SELECT EXISTS (SELECT FROM c WHERE n = 'files.parent_id'),"
    " EXISTS (SELECT FROM c WHERE n = 'files.aggregate_size'),"
    " EXISTS (SELECT FROM c WHERE n = 'users.storage_used'),"
    " EXISTS (SELECT FROM c WHERE n = 'storage_reservations.bytes'),"
    " EXISTS (SELECT FROM pg_proc WHERE proname = 'reconcile_folder_aggregates'),"
    " EXISTS (SELECT FROM c WHERE n = 'users.parent_user_id'),"
    " EXISTS (SELECT FROM c WHERE n = 'files.version'),"
    " (SELECT count(*) = 3 FROM c WHERE n IN ('jobs.status', 'jobs.kind', 'jobs.done')),"
    " (SELECT count(*) = 4 FROM c WHERE n IN ('locks.lock_id', 'locks.file_id', 'locks.holder_name', "
    "'locks.expires_at'))";

enum err schema_probe(struct pg *c, unsigned *mask, struct errinfo *ei)
{
    struct pg_result *r = NULL;
    enum err e = pg_query(c, probe_sql, 0, NULL, &r, ei);
    if (e != ERR_OK)
        return e;
    if (!pg_bool(r, 0, 0)) {
        e = err_set(ei, ERR_DB,
                    "the database has no table 'files': DATABASE_URL does not name a drive server's database");
    } else {
        *mask = 0;
        for (int i = 0; i < 8; i++)
            if (pg_bool(r, 0, i + 1))
                *mask |= 1u << i;
    }
    pg_result_free(&r);
    return e;
}
