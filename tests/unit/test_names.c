/* Ids for servers without any. */
#include "drive/names.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

static const char *path_of(const struct names *n, const char *id)
{
    static char text[512];
    struct buf b = BUF_INIT(400);
    enum err err = names_path(n, id, &b);
    snprintf(text, sizeof text, "%s", err ? "(none)" : buf_cstr(&b));
    buf_done(&b);
    return text;
}

static void ids_stay_when_paths_change(void **state)
{
    (void)state;
    struct names *n = names_new();
    const char *a = names_id(n, NULL, "a", NULL), *b = names_id(n, a, "b", NULL), *f = names_id(n, b, "f.txt", NULL);
    assert_string_equal(names_id(n, b, "f.txt", NULL), f);
    assert_string_equal(path_of(n, f), "a/b/f.txt");
    assert_string_equal(path_of(n, NULL), "");
    names_moved(n, b, NULL, "c"); /* all below moves along */
    assert_string_equal(path_of(n, f), "c/f.txt");
    assert_string_equal(names_id(n, NULL, "c", NULL), b);
    assert_string_not_equal(names_id(n, a, "b", NULL), b); /* somebody else at the old place */
    assert_string_equal(names_name(n, b), "c");
    assert_null(names_parent(n, b));
    assert_string_equal(names_parent(n, f), b);
    names_free(&n);
}

static void folders_are_known(void **state)
{
    (void)state;
    struct names *n = names_new();
    const char *a = names_id(n, NULL, "a", NULL), *b = names_id(n, NULL, "b", NULL);
    assert_false(names_is_folder(n, a));
    (void)names_id(n, a, "f.txt", NULL); /* something is in it */
    assert_true(names_is_folder(n, a));
    names_note_folder(n, b, true);
    assert_true(names_is_folder(n, b));
    names_note_folder(n, b, false); /* somebody put a file there */
    assert_false(names_is_folder(n, b));
    assert_false(names_is_folder(n, NULL));
    names_note_folder(n, "nobody", true);
    assert_false(names_is_folder(n, "nobody"));
    names_free(&n);
}

static void another_process_gives_the_same_ids(void **state)
{
    (void)state;
    struct names *n = names_new(), *m = names_new();
    const char *a = names_id(n, NULL, "a", NULL);
    assert_string_equal(names_id(m, NULL, "a", NULL), a);
    const char *f = names_id(n, a, "f", NULL);
    names_id(m, a, "other", NULL);
    assert_string_equal(names_id(m, a, "f", NULL), f);
    names_bind(m, f, NULL, "g"); /* as the ledger of the first one tells */
    assert_string_equal(path_of(m, f), "g");
    assert_string_equal(names_id(m, NULL, "g", NULL), f);
    names_free(&n);
    names_free(&m);
}

static void the_dead_do_not_come_back(void **state)
{
    (void)state;
    struct names *n = names_new();
    const char *d = names_id(n, NULL, "d", NULL), *f = names_id(n, d, "f", NULL);
    names_drop(n, f);
    assert_string_equal(path_of(n, f), "(none)");
    assert_false(names_known(n, f));
    assert_string_not_equal(names_id(n, d, "f", NULL), f);
    const char *g = names_id(n, d, "g", NULL);
    names_drop(n, d); /* and all below */
    assert_false(names_known(n, g));
    assert_string_equal(path_of(n, "never given"), "(none)");
    names_free(&n);
}

static void a_move_under_way(void **state)
{
    (void)state;
    struct names *n = names_new();
    const char *f = names_id(n, NULL, "old", NULL);
    names_expect(n, f, NULL, "new");
    assert_string_equal(path_of(n, f), "old");
    assert_string_equal(names_id(n, NULL, "new", NULL), f); /* a listing shows it before its answer comes */
    assert_string_equal(path_of(n, f), "new");
    names_moved(n, f, NULL, "new");
    assert_string_equal(path_of(n, f), "new");
    names_expect(n, f, NULL, "newer"); /* refused: the name is free for others */
    names_not_moved(n, f, NULL, "newer");
    assert_string_not_equal(names_id(n, NULL, "newer", NULL), f);
    names_expect(n, f, NULL, "unknown"); /* never answered: the listing decides */
    assert_string_equal(names_id(n, NULL, "new", NULL), f);
    assert_string_equal(names_id(n, NULL, "unknown", NULL), f);
    assert_string_equal(path_of(n, f), "unknown");
    names_free(&n);
}

static void ids_of_the_server(void **state)
{
    (void)state;
    struct names *n = names_new();
    assert_string_equal(names_id(n, NULL, "a", "00000042oc"), "00000042oc");
    const char *d = names_id(n, NULL, "d", "7");
    assert_string_equal(names_id(n, d, "b", "00000042oc"), "00000042oc"); /* moved by somebody else */
    assert_string_equal(path_of(n, "00000042oc"), "d/b");
    assert_string_equal(names_id(n, NULL, "a", "43"), "43");
    names_free(&n);
}

/* A folder in a folder in it: no server has such a thing, but answers may be anything. */
static void a_ring_has_no_path(void **state)
{
    (void)state;
    struct names *n = names_new();
    const char *a = names_id(n, NULL, "a", NULL), *b = names_id(n, a, "b", NULL);
    names_moved(n, a, b, "a");
    assert_string_equal(path_of(n, b), "(none)");
    names_free(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_stay_when_paths_change), cmocka_unit_test(another_process_gives_the_same_ids),
        cmocka_unit_test(the_dead_do_not_come_back),  cmocka_unit_test(a_move_under_way),
        cmocka_unit_test(ids_of_the_server),          cmocka_unit_test(a_ring_has_no_path),
        cmocka_unit_test(folders_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
