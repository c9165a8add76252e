#ifndef SIM_READS_READ_H
#define SIM_READS_READ_H
/* Internal to `sim reads`: one read is one row (reads/rows.c): a request, and the SQL that says what its answer must
 * hold. Requests are made by hand, so that sorting and page size can be asked for (reads/ask.c); the truth is looked up
 * in the documented tables, never by what the server asks itself (reads/truth.c). Layer 3. */
#include "base/json.h"
#include "drive/api/api.h"
#include "drive/api/budget.h"
#include "drive/api/patience.h"
#include "drive/cmd.h"
#include "store/pg.h"

/* What paths and truths name as {word}. */
/* clang-format off */
#define READ_WORDS(X) \
    X(ACCOUNT, "account") \
    X(ROOT, "root") /* "" */ \
    X(HOT, "hot") /* the folder with the most files */ \
    X(SMALL, "small") /* a folder with a few */ \
    X(FILE, "file") /* a file in the hot folder */ \
    X(ONE, "one") /* a letter, two, three of that file's name, and its first word */ \
    X(TWO, "two") \
    X(THREE, "three") \
    X(STEM, "stem") \
    X(UPPER, "upper") /* the word in capitals */ \
    X(NOW, "now") /* cursors of the change feed */ \
    X(HOUR, "hour") \
    X(OLD, "old")
/* clang-format on */
enum read_word {
#define X(sym, word) READ_##sym,
    READ_WORDS(X)
#undef X
        READ_WORD_COUNT
};

/* PAGE: one page. PAGES: all of them. OBJECT: fields. FEED: changes; the first page is timed. */
enum read_kind { READ_KIND_PAGE, READ_KIND_PAGES, READ_KIND_OBJECT, READ_KIND_FEED };
/* How the answer is held against the rows of the SQL. SAME: these ids and no others. FIRST: as many as the limit, in
 * the order of the key. SOME: as many as the limit, each of them one of the rows. SORTED: all of them, in order.
 * FIELDS: each column is the figure of that name. RESYNC: the answer is "list again". NONE: nothing to compare. */
enum read_truth { TRUTH_NONE, TRUTH_SAME, TRUTH_FIRST, TRUTH_SOME, TRUTH_SORTED, TRUTH_FIELDS, TRUTH_RESYNC };

struct read {
    const char *key, *what, *path;
    enum read_kind kind;
    enum read_truth truth;
    int limit;         /* rows that a page has at most */
    const char *sql;   /* id, and for an order folder (boolean) and key (a number that never falls, or NULL) */
    const char *words; /* its parameters, separated by commas */
};
extern const struct read reads[];
extern const size_t n_reads;

struct reads_stage {
    struct cmd_ctx *ctx;
    struct api **logins; /* all of one account; requests take turns */
    size_t n_logins, turn;
    struct pg_pool *pg; /* NULL: no database, why in pg_why */
    struct errinfo pg_why;
    char words[READ_WORD_COUNT][DRIVE_NAME_MAX + 1]; /* "": not to be had, but for the root */
    char folder[DRIVE_ID_MAX + 1];                   /* of our own: starred and trashed files */
    struct budget budget;
    struct patience patience; /* with the requests made by hand */
    unsigned silent;          /* requests in a row that nothing answered */
    bool unpaged; /* listings come whole and in an order of the server's own, and searches are its own too */
    bool *stop;
};
#define READS_SILENT "the server no longer answers"
/* reads/stage.c */
/* After each call: whether anything answered it. */
void reads_heard(struct reads_stage *s, bool answered);
/* Too many in a row were not answered: each may have waited a minute, and there are thousands to come. */
bool reads_silent(const struct reads_stage *s);
MAY_YIELD enum err reads_stage_build(struct reads_stage *s, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD void reads_stage_clear(struct reads_stage *s, char *left, size_t n);
MAY_YIELD void reads_stage_free(struct reads_stage *s);

/* One answer, in the arena it was read with. */
struct reading {
    int status; /* of the last page; 0: none came */
    char reason[200];
    int64_t us; /* from the first send to the last byte, pages and all, without waits for a budget */
    struct drive_listing list;
    const char **folders; /* of a feed; NULL: the top level */
    size_t n_folders;
    struct json *object; /* of the last page of an object or a feed; json_free it */
    int64_t rows;
};
/* reads/ask.c. False: the row names a thing that is not to be had. */
bool read_path(const struct reads_stage *s, const struct read *row, struct buf *out);
/* whole: all pages of a feed, whose time is that of the first one. False: no usable answer, out->reason says why. */
MAY_YIELD bool read_ask(struct reads_stage *s, const struct read *row, bool whole, struct arena *mem,
                        struct reading *out);
void reading_done(struct reading *r);
/* reads/call.c: the row by a client's call. NULL, or why this server has no such read. */
const char *read_unfit(const struct reads_stage *s, const struct read *row);
MAY_YIELD bool read_call(struct reads_stage *s, const struct read *row, struct arena *mem, struct reading *out);
const char *read_word(const struct reads_stage *s, struct sv word); /* NULL: no such word */

/* reads/truth.c: NULL when the answer holds; else what is wrong, in dst. *checked: it was compared with rows. */
MAY_YIELD const char *read_compare(struct reads_stage *s, const struct read *row, const struct reading *got,
                                   bool *checked, char *dst, size_t n);
/* The rows of the truth, taken apart from a database so that comparing is pure. */
struct truth_row {
    const char *id;
    bool folder, has_key;
    double key;
};
const char *truth_list_problem(const struct read *row, const struct drive_listing *got, const struct truth_row *rows,
                               size_t n_rows, char *dst, size_t n);
/* What holds of a listing that comes whole instead of the row's own truth. */
struct read truth_unpaged(const struct read *row);
#endif
