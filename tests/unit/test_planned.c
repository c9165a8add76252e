/* The planned tree: exact counts at every scale, the same for the same seed, names that every server and client holds.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "drive/path.h"
#include "seed/planned.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

static struct planned make(double scale, uint64_t seed, unsigned account)
{
    struct planned t;
    struct planned_conf c = {.scale = scale, .bytes_scale = 1, .seed = seed, .account = account};
    planned_make(&t, &c);
    return t;
}

static void counts_are_exact(void **state)
{
    (void)state;
    static const struct {
        double scale;
        uint32_t folders, files, hot_folders, hot_files;
        unsigned depth; /* at least */
    } rows[] = {
        {0.001, 2, 17, 1, 3, 1},     {0.01, 22, 168, 1, 34, 3},      {0.05, 110, 839, 1, 168, 4},
        {0.1, 219, 1679, 2, 336, 5}, {1, 2194, 16787, 22, 3357, 10}, {2, 4388, 33574, 44, 6715, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint64_t seed = 1; seed < 4; seed++) {
            struct planned t = make(rows[i].scale, seed, 0);
            uint32_t files = 0, hot = 0, hot_files = 0, largest = 0, smallest_hot = UINT32_MAX;
            for (uint32_t k = 0; k < t.counts.folders; k++) {
                const struct planned_folder *d = &t.folders[k];
                assert_true(d->parent == SHAPE_ROOT ? d->depth == 1
                                                    : d->parent < k && d->depth == t.folders[d->parent].depth + 1);
                assert_in_range(d->depth, 1, SHAPE_DEPTH_MAX);
                assert_int_equal(d->first_file, files);
                files += d->n_files;
                hot += d->hot;
                hot_files += d->hot ? d->n_files : 0;
                if (d->hot && d->n_files < smallest_hot)
                    smallest_hot = d->n_files;
                if (!d->hot && d->n_files > largest)
                    largest = d->n_files;
            }
            assert_int_equal(t.counts.folders, rows[i].folders);
            assert_int_equal(files, rows[i].files);
            assert_int_equal(hot, rows[i].hot_folders);
            assert_int_equal(hot_files, rows[i].hot_files);
            assert_true(t.depth >= rows[i].depth);
            if (rows[i].scale > 0.005) /* the busiest folders are the hot ones */
                assert_true(largest < smallest_hot);
            planned_done(&t);
        }
    }
}

static void same_seed_same_manifest(void **state)
{
    (void)state;
    char first[65], again[65], other[65], both[65];
    struct planned a = make(0.1, 1, 0), b = make(0.1, 1, 0), c = make(0.1, 2, 0);
    planned_manifest(&a, NULL, 1, true, first);
    planned_manifest(&b, NULL, 1, true, again);
    planned_manifest(&c, NULL, 1, true, other);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    planned_done(&b);
    struct planned two[2] = {a, make(0.1, 1, 1)}, swapped[2] = {two[1], two[0]};
    planned_manifest(two, NULL, 2, true, both);
    planned_manifest(swapped, NULL, 2, true, again); /* the order of accounts does not matter */
    assert_string_equal(both, again);
    assert_string_not_equal(both, first);
    assert_string_not_equal(two[0].folders[0].name, two[1].folders[1].name);
    planned_done(&two[0]);
    planned_done(&two[1]);
    planned_done(&c);
}

/* The manifest of what a server holds is the plan's exactly when all of it is there unchanged. */
static void manifest_of_found(void **state)
{
    (void)state;
    char want[65], got[65];
    struct planned t = make(0.01, 1, 0);
    struct found f;
    found_init(&f, &t);
    for (uint32_t i = 0; i < t.counts.folders; i++)
        f.folder_ids[i] = "id";
    for (uint32_t i = 0; i < t.counts.files; i++)
        f.files[i] = (struct found_file){
            .state = FOUND_YES, .size = (int64_t)t.files[i].size, .modified_us = t.files[i].modified_s * 1000000};
    planned_manifest(&t, NULL, 1, true, want);
    planned_manifest(&t, &f, 1, true, got);
    assert_string_equal(got, want);
    f.files[7].size++;
    planned_manifest(&t, &f, 1, true, got);
    assert_string_not_equal(got, want);
    f.files[7].size--;

    f.files[7].modified_us += 1000;
    planned_manifest(&t, &f, 1, true, got);
    assert_string_not_equal(got, want);
    planned_manifest(&t, &f, 1, false, got);
    planned_manifest(&t, NULL, 1, false, want);
    assert_string_equal(got, want);
    f.files[9].state = FOUND_NO;
    planned_manifest(&t, &f, 1, false, got);
    assert_string_not_equal(got, want);
    found_done(&f);
    planned_done(&t);
}

/* No combining mark that a normaliser would merge into the letter before it, and no loose Hangul parts. */
static void assert_composed(const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        if ((p[0] == 0xCC) || (p[0] == 0xCD && p[1] < 0xB0))
            fail_msg("combining mark in \"%s\"", name);
        if (p[0] == 0xE1 && p[1] >= 0x84 && p[1] <= 0x87)
            fail_msg("loose Hangul in \"%s\"", name);
    }
}

static int by_folded(const void *a, const void *b)
{
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_are_valid_and_unique(void **state)
{
    (void)state;
    struct planned t = make(1, 3, 0);
    const char **in = mem_alloc((t.counts.folders + t.counts.files) * sizeof *in);
    size_t foreign = 0, long_ones = 0, spaces = 0;
    for (uint32_t i = 0; i < t.counts.folders; i++) {
        size_t n = 0;
        assert_null(path_name_problem_folder(sv_of(t.folders[i].name)));
        assert_composed(t.folders[i].name);
        for (uint32_t k = i + 1; k < t.counts.folders; k++) {
            if (t.folders[k].parent == i)
                in[n++] = t.folders[k].name;
        }
        for (uint32_t k = 0; k < t.folders[i].n_files; k++)
            in[n++] = t.files[t.folders[i].first_file + k].name;
        qsort(in, n, sizeof *in, by_folded);
        for (size_t k = 1; k < n; k++)
            assert_true(strcasecmp(in[k - 1], in[k]) != 0);
        assert_int_equal(planned_lookup(&t, t.folders[i].parent, t.folders[i].name), i);
    }
    for (uint32_t i = 0; i < t.counts.files; i++) {
        const struct planned_file *f = &t.files[i];
        assert_null(path_name_problem_file(sv_of(f->name)));
        assert_composed(f->name);
        assert_true(sv_eq_cstr(path_extension(sv_of(f->name)), f->ext));
        assert_true(f->key != 0);
        assert_int_equal(planned_lookup(&t, f->folder, f->name), i | PLANNED_FILE);
        foreign += utf8_length(sv_of(f->name)) != strlen(f->name);
        long_ones += strlen(f->name) > 100;
        spaces += strchr(f->name, ' ') != NULL;
    }
    assert_true(foreign > t.counts.files / 10);
    assert_true(long_ones > t.counts.files / 100);
    assert_true(spaces > t.counts.files / 4);
    assert_int_equal(planned_lookup(&t, 0, "no such name"), PLANNED_NONE);
    mem_free(in);
    planned_done(&t);
}

/* What is too long for a server loses its end, everything else is as it was. */
static void names_are_cut_to_fit(void **state)
{
    (void)state;
    struct planned whole = make(0.2, 3, 0), cut;
    struct planned_conf c = whole.conf;
    size_t shorter = 0;
    c.name_max = 100;
    planned_make(&cut, &c);
    for (uint32_t i = 0; i < cut.counts.files; i++) {
        const struct planned_file *a = &whole.files[i], *b = &cut.files[i];
        assert_true(strlen(b->name) <= 100);
        assert_null(path_name_problem_file(sv_of(b->name)));
        assert_int_equal(planned_lookup(&cut, b->folder, b->name), i | PLANNED_FILE);
        if (strlen(a->name) > 100)
            shorter++;
        else
            assert_string_equal(a->name, b->name);
        assert_true(a->key == b->key && a->size == b->size);
    }
    assert_true(shorter > 5);
    planned_done(&whole);
    planned_done(&cut);
}

static void sizes_follow_the_preset(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed < 4; seed++) {
        struct planned t = make(1, seed, 0);
        size_t over = 0, empty = 0;
        for (uint32_t i = 0; i < t.counts.files; i++) {
            over += t.files[i].size > 1000000;
            empty += t.files[i].size == 0;
        }
        assert_in_range(t.bytes, 950ull << 20, 1100ull << 20); /* about 1 GiB */
        assert_in_range(over, 1, t.counts.files / 50);
        assert_in_range(empty, 1, t.counts.files / 100);
        planned_done(&t);
    }
    struct planned small;
    planned_make(&small, &(struct planned_conf){.scale = 0.1, .bytes_scale = 0.01, .preset = SHAPE_DESKTOP, .seed = 1});
    assert_true(small.bytes < 8 << 20);
    planned_done(&small);
}

static void distributions(void **state)
{
    (void)state;
    double expected[SHAPE_DEPTH_MAX + 1], sum = 0, share[SHAPE_DEPTH_MAX + 1], shares = 0;
    shape_depth_expected(2194, expected);
    shape_file_depth_target(10, share);
    for (unsigned d = 1; d <= SHAPE_DEPTH_MAX; d++) {
        sum += expected[d];
        shares += share[d];
    }
    assert_true(sum > 2193.9 && sum < 2194.1);
    assert_true(shares > 0.999 && shares < 1.001);
    /* Files a folder: the share of folders up to n follows P(n); files by depth follow the Poisson histogram. */
    struct planned t = make(1, 5, 0);
    double at_most[151] = {0}, p = 0, by_depth[SHAPE_DEPTH_MAX + 1] = {0};
    for (uint32_t i = 0; i < t.counts.folders; i++) {
        by_depth[t.folders[i].depth] += t.folders[i].n_files / (double)t.counts.files;
        for (unsigned n = t.folders[i].n_files; n < 151; n++)
            at_most[n] += 1.0 / t.counts.folders;
    }
    for (unsigned n = 0; n < 60; n++) {
        p += shape_files_probability(n);
        if (at_most[n] < p - 0.05 || at_most[n] > p + 0.05)
            fail_msg("folders with at most %u files: %f, not %f", n, at_most[n], p);
    }
    for (unsigned d = 1; d <= SHAPE_DEPTH_MAX; d++)
        assert_true(by_depth[d] > share[d] - 0.03 && by_depth[d] < share[d] + 0.03);
    planned_done(&t);
}

static void emails(void **state)
{
    (void)state;
    char e[64];
    planned_owner_email(e, 0);
    assert_string_equal(e, "owner@load.test");
    planned_owner_email(e, 1);
    assert_string_equal(e, "owner-2@load.test");
    planned_user_email(e, 0, 0);
    assert_string_equal(e, "user-1@load.test");
    planned_user_email(e, 1, 0);
    assert_string_equal(e, "owner-2-user-1@load.test");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact),     cmocka_unit_test(same_seed_same_manifest),
        cmocka_unit_test(manifest_of_found),    cmocka_unit_test(names_are_valid_and_unique),
        cmocka_unit_test(names_are_cut_to_fit), cmocka_unit_test(sizes_follow_the_preset),
        cmocka_unit_test(distributions),        cmocka_unit_test(emails),
    };
    return cmocka_run_group_tests_name("seed tree", tests, NULL, NULL);
}
