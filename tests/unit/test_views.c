#include "base/mem.h"
#include "sim/app/views.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct drive_file file(const char *id, const char *name, const char *version, int64_t size)
{
    return (struct drive_file){.id = id, .name = name, .version = version, .size = size};
}

static struct drive_file folder(const char *id, const char *name)
{
    return (struct drive_file){.id = id, .name = name, .size = -1, .folder = true};
}

static void test_folders(void **state)
{
    (void)state;
    struct folders *f = folders_new();
    char id[32];
    assert_int_equal(folders_find(f, "nothing"), VIEW_NONE);
    for (int i = 0; i < 5000; i++) {
        snprintf(id, sizeof(id), "id%d", (i * 7919) % 5000);
        assert_int_equal(folders_add(f, id), i);
        assert_int_equal(folders_add(f, id), i);
    }
    folders_sort(f);
    assert_int_equal(folders_count(f), 5000);
    assert_string_equal(folders_id(f, 0), "id0");
    assert_string_equal(folders_id(f, 4999), "id999");
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(folders_find(f, folders_id(f, i)), i);
    folders_free(&f);
    assert_null(f);
}

static void test_choose(void **state)
{
    (void)state;
    struct rng r;
    uint32_t out[100], seen[50] = {0};
    rng_init(&r, 1, 2);
    for (int round = 0; round < 1000; round++) {
        folders_choose(&r, 50, 10, out);
        for (int i = 0; i < 10; i++) {
            assert_true(out[i] < 50 && (i == 0 || out[i] > out[i - 1]));
            seen[out[i]]++;
        }
    }
    for (int i = 0; i < 50; i++)
        assert_in_range(seen[i], 145, 255); /* 200 expected, 4.3 standard deviations */
    folders_choose(&r, 100, 100, out);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(out[i], i);
    folders_choose(&r, 0, 0, out);
}

struct two {
    struct folders *f;
    struct view a, b;
};

static int setup(void **state)
{
    struct two *t = mem_zalloc(sizeof(*t));
    const uint32_t three[] = {0, 1, 2}, last[] = {2};
    t->f = folders_new();
    folders_add(t->f, "docs");
    folders_add(t->f, "pics");
    folders_add(t->f, "misc");
    view_init(&t->a, t->f, three, 3);
    view_init(&t->b, t->f, last, 1);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct two *t = *state;
    view_done(&t->a);
    view_done(&t->b);
    assert_int_equal(folders_snapshots(t->f), 0); /* all given back */
    folders_free(&t->f);
    mem_free(t);
    return 0;
}

static void list_misc(struct view *v, const char *version)
{
    struct drive_file items[] = {folder("d1", "sub"), file("f1", "a.txt", version, 10), file("f2", "b", NULL, 0)};
    struct drive_listing l = {items, 3};
    view_list(v, view_find(v, "misc"), &l);
}

static void test_listing_is_kept_files_first(void **state)
{
    struct two *t = *state;
    struct view_item it;
    uint32_t at;
    assert_int_equal(view_find(&t->a, "misc"), 2);
    assert_int_equal(view_find(&t->b, "misc"), 0);
    assert_int_equal(view_find(&t->b, "docs"), VIEW_NONE);
    assert_int_equal(view_find(&t->b, "unheard of"), VIEW_NONE);
    assert_int_equal(view_items(&t->a, 2), 0);
    list_misc(&t->a, "v1");
    assert_int_equal(t->a.files, 2);
    assert_int_equal(view_items(&t->a, 2), 3);
    it = view_file(&t->a, 0, &at);
    assert_int_equal(at, 2);
    assert_string_equal(it.id, "f1");
    assert_string_equal(it.name, "a.txt");
    assert_string_equal(it.version, "v1");
    assert_int_equal(it.size, 10);
    it = view_file(&t->a, 1, &at);
    assert_string_equal(it.id, "f2");
    assert_null(it.version);
    assert_true(view_has(&t->a, 2, "d1", &it));
    assert_true(it.folder);
    assert_false(view_has(&t->a, 2, "f9", NULL));
}

static void test_equal_listings_are_shared(void **state)
{
    struct two *t = *state;
    list_misc(&t->a, "v1");
    list_misc(&t->b, "v1");
    assert_int_equal(folders_snapshots(t->f), 1);
    assert_ptr_equal(t->a.open[2].snap, t->b.open[0].snap);
    list_misc(&t->b, "v2"); /* each keeps what it was told */
    assert_int_equal(folders_snapshots(t->f), 2);
    uint32_t at;
    assert_string_equal(view_file(&t->a, 0, &at).version, "v1");
    assert_string_equal(view_file(&t->b, 0, &at).version, "v2");
    list_misc(&t->a, "v2");
    assert_int_equal(folders_snapshots(t->f), 1);
}

static void test_own_writes(void **state)
{
    struct two *t = *state;
    list_misc(&t->a, "v1");
    list_misc(&t->b, "v1");
    struct drive_file saved = file("f1", "a.txt", "v2", 12), added = file("f3", "c.txt", "v9", 5);
    view_put(&t->a, 2, &saved);
    view_put(&t->a, 2, &added);
    assert_int_equal(t->a.files, 3);
    assert_int_equal(t->a.open[2].changes, 2);
    uint32_t at;
    assert_string_equal(view_file(&t->a, 0, &at).version, "v2"); /* in its place */
    assert_true(view_has(&t->a, 2, "f3", NULL));
    assert_string_equal(view_file(&t->b, 0, &at).version, "v1"); /* the other app was told nothing */
    view_drop(&t->a, 2, "f1");
    view_drop(&t->a, 2, "never there");
    assert_int_equal(t->a.files, 2);
    struct drive_file sub = folder("d2", "new folder");
    view_put(&t->a, 2, &sub);
    assert_int_equal(t->a.files, 2);
    assert_int_equal(view_items(&t->a, 2), 4);
    view_gone(&t->a, 2);
    assert_int_equal(t->a.files, 0);
    assert_true(t->a.open[2].gone);
    list_misc(&t->a, "v1");
    assert_false(t->a.open[2].gone);
}

static void test_file_by_number_skips_empty_folders(void **state)
{
    struct two *t = *state;
    struct drive_file one = file("p1", "x.png", "v", 1), two = file("m1", "y", "v", 1);
    struct drive_listing none = {NULL, 0}, pics = {&one, 1}, misc = {&two, 1};
    uint32_t at;
    view_list(&t->a, 0, &none);
    view_list(&t->a, 1, &pics);
    view_list(&t->a, 2, &misc);
    assert_string_equal(view_file(&t->a, 0, &at).id, "p1");
    assert_int_equal(at, 1);
    assert_string_equal(view_file(&t->a, 1, &at).id, "m1");
    assert_int_equal(at, 2);
    view_list(&t->a, 1, &none);
    assert_string_equal(view_file(&t->a, 0, &at).id, "m1");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_choose),
        T(test_listing_is_kept_files_first),
        T(test_equal_listings_are_shared),
        T(test_own_writes),
        T(test_file_by_number_skips_empty_folders),
    };
    return cmocka_run_group_tests_name("views", tests, NULL, NULL);
}
