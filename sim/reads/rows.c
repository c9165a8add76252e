/* The table of reads: a new one is a new row. The SQL speaks of documented tables and columns alone, so that it is true
 * of any server with them. */
#include "base/mem.h"
#include "sim/reads/read.h"

/* clang-format off */
#define LIVE        " FROM files WHERE user_id = $1 AND deleted_at IS NULL"
#define IN          " AND parent_id IS NOT DISTINCT FROM nullif($2, '')"
#define ITEMS       "SELECT id, type = 'folder', NULL::float8" LIVE IN
#define ITEMS_BY(k) "SELECT id, type = 'folder', (" k ")::float8" LIVE IN
#define BY_SIZE     ITEMS_BY("CASE type WHEN 'folder' THEN NULL ELSE size END")
#define BY_TIME(c)  ITEMS_BY("extract(epoch FROM " c ")")
#define FALLING(c)  ITEMS_BY("-extract(epoch FROM " c ")")
#define FOLD(x)     "lower(normalize(" x ", NFC) COLLATE \"und-x-icu\")"
#define HITS        "SELECT id, false, NULL::float8" LIVE " AND position(" FOLD("$2") " IN " FOLD("name") ") > 0"
/* A word beginning with = is text as it stands. */
#define SEARCH(k, what_, q) {k, "search: " what_, "/api/files/search?limit=100&q={" q "}", READ_KIND_PAGE, TRUTH_SOME, 100, HITS, "account," q}
/* Totals that are stored count what is in the trash, totals that are counted when asked for leave it out. */
#define BELOW       "WITH RECURSIVE stored AS (SELECT count(*) > 0 AS any FROM information_schema.columns" \
                    " WHERE table_name = 'files' AND column_name = 'aggregate_size' AND table_schema = current_schema())," \
                    " t AS (SELECT id, type, size FROM files, stored WHERE parent_id = $2 AND user_id = $1 AND (stored.any OR deleted_at IS NULL)" \
                    " UNION ALL SELECT f.id, f.type, f.size FROM files f JOIN t ON f.parent_id = t.id, stored WHERE stored.any OR f.deleted_at IS NULL)"

const struct read reads[] = {
    {"list_small", "listing: a small folder", "/api/files?limit=200&parentId={small}", READ_KIND_PAGE, TRUTH_FIRST, 200, ITEMS, "account,small"},
    {"list_root", "listing: the top level", "/api/files?limit=200", READ_KIND_PAGE, TRUTH_FIRST, 200, ITEMS, "account,root"},
    {"list_hot", "listing: the largest folder, one page", "/api/files?limit=200&parentId={hot}", READ_KIND_PAGE, TRUTH_FIRST, 200, ITEMS, "account,hot"},
    {"list_hot_name_desc", "listing: by name, falling", "/api/files?limit=200&sortBy=name&order=desc&parentId={hot}", READ_KIND_PAGE, TRUTH_FIRST, 200, ITEMS, "account,hot"},
    {"list_hot_size", "listing: by size", "/api/files?limit=200&sortBy=size&order=asc&parentId={hot}", READ_KIND_PAGE, TRUTH_FIRST, 200, BY_SIZE, "account,hot"},
    {"list_hot_modified", "listing: by time of change, falling", "/api/files?limit=200&sortBy=modified&order=desc&parentId={hot}", READ_KIND_PAGE, TRUTH_FIRST, 200, FALLING("modified"), "account,hot"},
    {"list_hot_accessed", "listing: by last access", "/api/files?limit=200&sortBy=accessedAt&order=asc&parentId={hot}", READ_KIND_PAGE, TRUTH_FIRST, 200, BY_TIME("accessed_at"), "account,hot"},
    {"list_hot_pages", "listing: the largest folder, all pages of 50", "/api/files?limit=50&parentId={hot}", READ_KIND_PAGES, TRUTH_SORTED, 50, ITEMS, "account,hot"},
    {"list_hot_pages_size", "listing: all pages by size, falling", "/api/files?limit=50&sortBy=size&order=desc&parentId={hot}", READ_KIND_PAGES, TRUTH_SORTED, 50, ITEMS_BY("CASE type WHEN 'folder' THEN NULL ELSE -size END"), "account,hot"},
    {"list_hot_pages_modified", "listing: all pages by time of change", "/api/files?limit=50&sortBy=modified&order=asc&parentId={hot}", READ_KIND_PAGES, TRUTH_SORTED, 50, BY_TIME("modified"), "account,hot"},

    {"info_file", "info: a file", "/api/files/{file}/info", READ_KIND_OBJECT, TRUTH_FIELDS, 0, "SELECT size AS \"size\" FROM files WHERE user_id = $1 AND id = $2", "account,file"},
    {"info_folder", "info: a folder with its totals", "/api/files/{hot}/info", READ_KIND_OBJECT, TRUTH_FIELDS, 0,
     BELOW " SELECT coalesce(sum(size), 0) AS \"folderInfo.totalSize\", count(*) FILTER (WHERE type = 'file') AS \"folderInfo.fileCount\", count(*) FILTER (WHERE type = 'folder') AS \"folderInfo.folderCount\" FROM t", "account,hot"},

    SEARCH("search_1", "one letter", "one"),
    SEARCH("search_2", "two letters", "two"),
    SEARCH("search_3", "three letters", "three"),
    SEARCH("search_word", "a word of a name", "stem"),
    SEARCH("search_upper", "the word in capitals", "upper"),
    SEARCH("search_many", "a dot: nearly all", "=."),
    SEARCH("search_none", "no hit", "=zqxj-not-there"),
    SEARCH("search_none_2", "two letters, no hit", "=Ωж"),
    SEARCH("search_percent", "% as itself", "=%"),
    SEARCH("search_underscore", "_ as itself", "=_"),
    SEARCH("search_backslash", "\\ as itself", "=\\"),

    {"recent", "recent", "/api/files/recent?limit=100", READ_KIND_PAGE, TRUTH_FIRST, 100, "SELECT id, false, -extract(epoch FROM accessed_at)::float8" LIVE " AND type = 'file'", "account"},
    {"starred", "starred", "/api/files/starred?limit=200", READ_KIND_PAGES, TRUTH_SAME, 200, "SELECT id, false, NULL::float8" LIVE " AND starred", "account"},
    {"trash", "trash", "/api/files/trash?limit=200", READ_KIND_PAGES, TRUTH_SAME, 200,
     "SELECT f.id, false, NULL::float8 FROM files f LEFT JOIN files p ON p.id = f.parent_id WHERE f.user_id = $1 AND f.deleted_at IS NOT NULL AND (p.deleted_at IS NULL OR p.deleted_at <> f.deleted_at)", "account"},
    {"stats", "stats", "/api/files/stats", READ_KIND_OBJECT, TRUTH_FIELDS, 0,
     "SELECT count(*) FILTER (WHERE type = 'file') AS \"totalFiles\", count(*) FILTER (WHERE type = 'folder') AS \"totalFolders\", count(*) FILTER (WHERE starred) AS \"starredCount\", count(*) FILTER (WHERE shared) AS \"sharedCount\"" LIVE, "account"},
    {"storage", "storage use", "/api/user/storage", READ_KIND_OBJECT, TRUTH_FIELDS, 0, "SELECT coalesce(sum(size), 0) AS \"used\" FROM files WHERE user_id = $1 AND type = 'file'", "account"},
    {"changes_now", "changes from now on", "/api/files/changes?cursor={now}", READ_KIND_FEED, TRUTH_NONE, 0, NULL, NULL},
    {"changes_hour", "changes from an hour ago, a page", "/api/files/changes?cursor={hour}", READ_KIND_FEED, TRUTH_SAME, 0,
     "SELECT DISTINCT folder, true, NULL::float8 FROM changes, unnest(folders) AS folder WHERE account_id = $1 AND seq > split_part($2, '-', 2)::bigint", "account,hour"},
    {"changes_old", "changes from a cursor too old", "/api/files/changes?cursor={old}", READ_KIND_FEED, TRUTH_RESYNC, 0, NULL, NULL},
};
/* clang-format on */
const size_t n_reads = ARRAY_LEN(reads);
