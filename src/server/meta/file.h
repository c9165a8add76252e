#ifndef SERVER_META_FILE_H
#define SERVER_META_FILE_H
/* A row of the table files: as selects name it, as handlers see it, as the wire shows it. Layer 3. */
#include "server/http/http.h"
#include "store/pg.h"

struct meta_file {
    const char *id, *name, *mime_type, *parent_id, *path; /* NULL where the row has NULL */
    int64_t size;                                         /* -1: a folder */
    int64_t version;
    struct wall modified, accessed;
    bool folder, starred, shared;
};

/* The columns of a file row as selects name them, and reading them back from column `first` on. */
#define META_FILE_COLUMNS                                                                                              \
    " id, name, type, size, mime_type, parent_id, starred, shared, drive_us(modified), drive_us(accessed_at),"         \
    " version, path "
#define META_FILE_COLUMN_COUNT 12
/* Strings are borrowed from the result. */
struct meta_file meta_file_of(const struct pg_result *res, int row, int first);
/* The same row with its strings in mem. */
struct meta_file meta_file_keep(struct arena *mem, struct meta_file f);
/* The file object of the wire; key NULL inside an array or at the top. */
void meta_file_json(struct jsonw *w, const char *key, const struct meta_file *f);
/* The fields only, into an object that is open. */
void meta_file_fields(struct jsonw *w, const struct meta_file *f);
/* Answers with the one file object. */
MAY_YIELD void meta_reply_file(struct request *r, int status, const struct meta_file *f);

/* A live file or folder of the account. ERR_NOTFOUND when there is none, trashed and foreign ones included. */
MAY_YIELD enum err meta_find(struct server *s, const char *account_id, const char *id, struct arena *mem,
                             struct meta_file *out, struct errinfo *ei) WARN_UNUSED;
#endif
