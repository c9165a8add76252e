/* Answers against rows. What the database holds is asked in our own words (reads/rows.c); comparing is pure. */
#include "base/map.h"
#include "base/mem.h"
#include "sim/reads/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- listings ---- */

static bool is_ordered(enum read_truth t)
{
    return t == TRUTH_FIRST || t == TRUTH_SORTED;
}

/* In a listing by another key, those that have none (folders, by size) may stand as the server likes. */
static bool is_by_name(const struct truth_row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].has_key)
            return false;
    return true;
}

/* Names by bytes or by letters alone, rising or falling: which of them is the server's business. */
struct name_order {
    bool bytes_up, bytes_down, letters_up, letters_down;
};

static void note_names(struct name_order *o, const char *a, const char *b)
{
    int bytes = strcmp(a, b), letters = strcasecmp(a, b);
    o->bytes_up = o->bytes_up && bytes <= 0;
    o->bytes_down = o->bytes_down && bytes >= 0;
    o->letters_up = o->letters_up && letters <= 0;
    o->letters_down = o->letters_down && letters >= 0;
}

static const char *order_problem(const struct drive_listing *got, const struct truth_row *const *rows, bool by_name,
                                 char *dst, size_t n)
{
    struct name_order names = {true, true, true, true};
    for (size_t i = 1; i < got->n; i++) {
        const struct truth_row *a = rows[i - 1], *b = rows[i];
        const char *name = got->items[i].name;
        if (b->folder && !a->folder) {
            str_format(dst, n, "the folder %s stands behind a file", name);
            return dst;
        }
        if (a->folder != b->folder) {
            names = (struct name_order){true, true, true, true};
            continue;
        }
        if (a->has_key && b->has_key && b->key < a->key) {
            str_format(dst, n, "out of order at place %zu: %s", i + 1, name);
            return dst;
        }
        if (!by_name)
            continue;
        note_names(&names, got->items[i - 1].name, name);
        if (!names.bytes_up && !names.bytes_down && !names.letters_up && !names.letters_down) {
            str_format(dst, n, "names are out of order at place %zu: %s", i + 1, name);
            return dst;
        }
    }
    return NULL;
}

/* A page must hold what comes first: nothing left out may belong before its last item. */
static const char *left_out(const struct truth_row *rows, size_t n_rows, const struct truth_row *last,
                            const struct map *seen, char *dst, size_t n)
{
    for (size_t i = 0; i < n_rows; i++) {
        const struct truth_row *r = &rows[i];
        bool before = r->folder != last->folder ? r->folder : r->has_key && last->has_key && r->key < last->key;
        if (before && !map_get(seen, sv_of(r->id))) {
            str_format(dst, n, "%s is missing, although it comes before the last one shown", r->id);
            return dst;
        }
    }
    return NULL;
}

const char *truth_list_problem(const struct read *row, const struct drive_listing *got, const struct truth_row *rows,
                               size_t n_rows, char *dst, size_t n)
{
    bool bounded = row->truth == TRUTH_FIRST || row->truth == TRUTH_SOME;
    size_t want = bounded && n_rows > (size_t)row->limit ? (size_t)row->limit : n_rows;
    struct map *known = map_new(), *seen = map_new();
    const struct truth_row **of = mem_zalloc((got->n + 1) * sizeof(*of));
    const char *problem = NULL;
    union {
        const struct truth_row *in;
        void *out;
    } p;
    for (size_t i = 0; i < n_rows; i++) {
        p.in = &rows[i];
        map_put(known, sv_of(rows[i].id), p.out);
    }
    if (got->n != want) {
        str_format(dst, n, "%zu rows came, %zu are right", got->n, want);
        problem = dst;
    }
    for (size_t i = 0; i < got->n && !problem; i++) {
        struct sv id = sv_of(got->items[i].id);
        of[i] = map_get(known, id);
        if (!of[i] || map_get(seen, id)) {
            str_format(dst, n, of[i] ? "%s stands twice" : "%s does not belong here", got->items[i].id);
            problem = dst;
        } else {
            p.in = of[i];
            map_put(seen, id, p.out);
        }
    }
    if (!problem && is_ordered(row->truth))
        problem = order_problem(got, of, is_by_name(rows, n_rows), dst, n);
    if (!problem && row->truth == TRUTH_FIRST && got->n > 0)
        problem = left_out(rows, n_rows, of[got->n - 1], seen, dst, n);
    map_free(&known);
    map_free(&seen);
    mem_free(of);
    return problem;
}

/* ---- figures ---- */

/* "folderInfo.totalSize" within the object. */
static const struct json *figure(const struct json *j, const char *name)
{
    struct sv rest = sv_of(name), word;
    char key[64];
    while (j && sv_split(&rest, '.', &word)) {
        snprintf(key, sizeof(key), SV_FMT, SV_ARG(word));
        j = json_get(j, key);
    }
    return j;
}

static const char *field_problem(const struct reading *got, const char *name, int64_t want, char *dst, size_t n)
{
    int64_t is;
    const struct json *v = figure(got->object, name);
    if (!json_i64(v, &is)) {
        str_format(dst, n, "%s is missing", name);
        return dst;
    }
    if (is == want)
        return NULL;
    str_format(dst, n, "%s is %" PRId64 ", the rows say %" PRId64, name, is, want);
    return dst;
}

/* The columns' names, in order, as the SQL quotes them. */
static const char *fields_problem(const struct read *row, const struct reading *got, const struct pg_result *res,
                                  char *dst, size_t n)
{
    const char *at = row->sql, *problem = NULL;
    if (pg_rows(res) != 1)
        return "the database does not know it";
    for (int col = 0; !problem && (at = strstr(at, "AS \"")); col++) {
        char name[64];
        const char *end = strchr(at + 4, '"');
        snprintf(name, sizeof(name), "%.*s", (int)(end - at - 4), at + 4);
        problem = field_problem(got, name, pg_i64(res, 0, col), dst, n);
        at = end;
    }
    return problem;
}

/* ---- the whole ---- */

static struct truth_row *take_rows(const struct pg_result *res, size_t *n)
{
    struct truth_row *rows = mem_zalloc(((size_t)pg_rows(res) + 1) * sizeof(*rows));
    *n = (size_t)pg_rows(res);
    for (size_t i = 0; i < *n; i++) {
        int r = (int)i;
        rows[i] = (struct truth_row){
            .id = pg_str(res, r, 0), .folder = pg_bool(res, r, 1), .has_key = !pg_is_null(res, r, 2)};
        if (rows[i].has_key && !sv_to_f64(sv_of(pg_str(res, r, 2)), &rows[i].key))
            rows[i].has_key = false;
    }
    return rows;
}

/* Folders of a feed as a listing, so that they are compared like one; the top level is "". */
static struct drive_listing as_listing(const struct reading *got)
{
    struct drive_listing l = {mem_zalloc((got->n_folders + 1) * sizeof(*l.items)), 0};
    for (size_t i = 0; i < got->n_folders; i++) {
        const char *id = got->folders[i] ? got->folders[i] : "";
        bool twice = false; /* two pages may name the same folder */
        for (size_t k = 0; k < l.n && !twice; k++)
            twice = strcmp(l.items[k].id, id) == 0;
        if (!twice)
            l.items[l.n++] = (struct drive_file){.id = id, .name = id, .folder = true};
    }
    return l;
}

static const char *against(const struct read *row, const struct reading *got, const struct pg_result *res, char *dst,
                           size_t n)
{
    size_t n_rows;
    if (row->truth == TRUTH_FIELDS)
        return fields_problem(row, got, res, dst, n);
    struct truth_row *rows = take_rows(res, &n_rows);
    struct drive_listing folders = row->kind == READ_KIND_FEED ? as_listing(got) : (struct drive_listing){0};
    const char *problem =
        truth_list_problem(row, row->kind == READ_KIND_FEED ? &folders : &got->list, rows, n_rows, dst, n);
    mem_free(folders.items);
    mem_free(rows);
    return problem;
}

struct read truth_unpaged(const struct read *row)
{
    struct read whole = *row;
    if (row->truth == TRUTH_FIRST || row->truth == TRUTH_SORTED)
        whole.truth = TRUTH_SAME;
    else if (row->truth == TRUTH_SOME)
        whole.truth = TRUTH_NONE;
    return whole;
}

const char *read_compare(struct reads_stage *s, const struct read *paged, const struct reading *got, bool *checked,
                         char *dst, size_t n)
{
    const struct read own = s->unpaged ? truth_unpaged(paged) : *paged, *row = &own;
    const char *params[8];
    int k = 0;
    struct sv rest = sv_of(row->words), word;
    struct pg_result *res = NULL;
    struct errinfo ei = {0};
    *checked = row->truth == TRUTH_RESYNC;
    if (row->truth == TRUTH_RESYNC)
        return json_bool(json_get(got->object, "resync"), false) ? NULL : "it does not ask to list everything again";
    if (row->truth == TRUTH_NONE || !s->pg)
        return NULL;
    struct arena *mem = arena_new(1024);
    while (k < (int)ARRAY_LEN(params) && sv_split(&rest, ',', &word))
        params[k++] = word.n > 0 && word.p[0] == '=' ? arena_strndup(mem, word.p + 1, word.n - 1) : read_word(s, word);
    enum err e = pg_run(s->pg, row->sql, k, params, &res, &ei);
    const char *problem = NULL;
    *checked = e == ERR_OK;
    if (e == ERR_OK)
        problem = against(row, got, res, dst, n);
    else if (e != ERR_DB) { /* a table or column that this server has not: not compared */
        str_format(dst, n, "the database could not be asked: %s", err_message(&ei));
        problem = dst;
    }
    pg_result_free(&res);
    arena_free(&mem);
    return problem;
}
