/* Answers of reads against the rows of the truth. */
#include "sim/reads/read.h"
#include "unit.h"
#include <string.h>

/* Items as letters: capitals are folders. A row of the truth may carry a key: its digit, '-' for none. */
struct example {
    enum read_truth truth;
    int limit;
    const char *got, *rows, *keys, *problem; /* keys NULL: none; problem: a part of it, NULL: none */
};

static const char *name_of(struct arena *mem, char c)
{
    return arena_printf(mem, "%c", c);
}

static bool is_folder(char c)
{
    return c >= 'A' && c <= 'Z';
}

static const char *judge(struct arena *mem, const struct example *x, char *dst, size_t n)
{
    const struct read row = {.truth = x->truth, .limit = x->limit};
    struct drive_listing got = {arena_alloc(mem, 64 * sizeof(*got.items)), strlen(x->got)};
    struct truth_row *rows = arena_alloc(mem, 64 * sizeof(*rows));
    for (size_t i = 0; i < got.n; i++)
        got.items[i] = (struct drive_file){
            .id = name_of(mem, x->got[i]), .name = name_of(mem, x->got[i]), .folder = is_folder(x->got[i])};
    for (size_t i = 0; x->rows[i]; i++)
        rows[i] = (struct truth_row){.id = name_of(mem, x->rows[i]),
                                     .folder = is_folder(x->rows[i]),
                                     .has_key = x->keys != NULL && x->keys[i] != '-',
                                     .key = x->keys ? x->keys[i] - '0' : 0};
    return truth_list_problem(&row, &got, rows, strlen(x->rows), dst, n);
}

static void listings_are_held_against_rows(void **state)
{
    (void)state;
    static const struct example rows[] = {
        {TRUTH_SAME, 10, "abc", "cba", NULL, NULL},
        {TRUTH_SAME, 2, "abc", "cba", NULL, NULL},
        {TRUTH_SAME, 10, "", "", NULL, NULL},
        {TRUTH_SAME, 10, "ab", "abc", NULL, "2 rows came, 3 are right"},
        {TRUTH_SAME, 10, "abx", "abc", NULL, "x does not belong here"},
        {TRUTH_SAME, 10, "aab", "abc", NULL, "a stands twice"},
        {TRUTH_SOME, 2, "cb", "abc", NULL, NULL},
        {TRUTH_SOME, 2, "abc", "abc", NULL, "3 rows came, 2 are right"},
        {TRUTH_SOME, 2, "ax", "abc", NULL, "x does not belong here"},
        {TRUTH_SORTED, 10, "ABab", "abAB", NULL, NULL},
        {TRUTH_SORTED, 10, "BAba", "abAB", NULL, NULL},
        {TRUTH_SORTED, 10, "aAbB", "abAB", NULL, "the folder A stands behind a file"},
        {TRUTH_SORTED, 10, "acb", "abc", NULL, "names are out of order"},
        {TRUTH_SORTED, 10, "bca", "abc", "312", NULL},
        {TRUTH_SORTED, 10, "abc", "abc", "312", "out of order"},
        {TRUTH_SORTED, 10, "bac", "abc", "111", NULL},
        {TRUTH_SORTED, 10, "BCAba", "abABC", "21---", NULL},
        {TRUTH_SORTED, 10, "BCAab", "abABC", "21---", "out of order at place 5: b"},
        {TRUTH_FIRST, 2, "bc", "abc", "312", NULL},
        {TRUTH_FIRST, 2, "ba", "abc", "312", "c is missing"},
        {TRUTH_FIRST, 2, "Aa", "AaB", NULL, "B is missing"},
        {TRUTH_FIRST, 3, "ABa", "AaBb", NULL, NULL},
        {TRUTH_FIRST, 2, "ab", "abc", "111", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *mem = arena_new(4096);
        char text[200];
        const char *problem = judge(mem, &rows[i], text, sizeof text);
        if (!rows[i].problem)
            assert_null(problem);
        else
            assert_true(problem && strstr(problem, rows[i].problem));
        arena_free(&mem);
    }
}

static void paths_are_made_of_words(void **state)
{
    (void)state;
    static const struct {
        const char *path, *made; /* NULL: not to be had */
    } rows[] = {
        {"/api/files?limit=200&parentId={hot}", "/api/files?limit=200&parentId=H1"},
        {"/api/files/search?q={=%}", "/api/files/search?q=%25"},
        {"/api/files/search?q={=a b&c}", "/api/files/search?q=a%20b%26c"},
        {"/api/files/changes?cursor={hour}", NULL},
        {"/api/files/{unheard}", NULL},
    };
    struct reads_stage s = {0};
    assert_true(str_fit(s.words[READ_HOT], sizeof s.words[0], "H1"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct read row = {.path = rows[i].path};
        struct buf out = BUF_INIT(1000);
        bool ok = read_path(&s, &row, &out);
        assert_int_equal(ok, rows[i].made != NULL);
        if (ok)
            assert_string_equal(buf_cstr(&out), rows[i].made);
        buf_done(&out);
    }
}

static void every_row_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_reads; i++) {
        const struct read *row = &reads[i];
        assert_true(row->key && row->what && row->path);
        bool asks = row->truth != TRUTH_NONE && row->truth != TRUTH_RESYNC;
        assert_int_equal(asks, row->sql != NULL && row->words != NULL);
        if (row->kind == READ_KIND_PAGE)
            assert_true(row->limit > 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row->key, reads[k].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listings_are_held_against_rows),
        cmocka_unit_test(paths_are_made_of_words),
        cmocka_unit_test(every_row_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
