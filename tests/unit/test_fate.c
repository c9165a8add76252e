#include "base/mem.h"
#include "checks/evidence/fate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* One item's history in a line, and where it may be seen afterwards. A history is made of words:
 *   R:new<old  rename    M:to<from  move    T  trash    U:name@folder  upload    C:name@folder  copy    S:before>after
 * save with "?" behind a request without an answer, "!" behind a refused one, and "|" where all before it was over.
 * Without a bar requests cross each other. */
#define OPS 8
struct history {
    struct journal_op op[OPS];
    const struct journal_op *ptr[OPS];
    char text[200];
    struct fate fate;
};

static char *cut(char *s, const char *at)
{
    char *p = s ? strpbrk(s, at) : NULL;
    if (!p)
        return NULL;
    *p = '\0';
    return p + 1;
}

static void read_word(struct journal_op *o, char *word)
{
    char end = word[strlen(word) - 1];
    o->outcome = end == '?' ? OUT_UNKNOWN : end == '!' ? OUT_CONFLICT : OUT_OK;
    if (end == '?' || end == '!')
        word[strlen(word) - 1] = '\0';
    char kind = word[0], *a = word[1] ? word + 2 : NULL, *b = cut(a, "<@>");
    o->op = kind == 'R'   ? OP_RENAME
            : kind == 'M' ? OP_MOVE
            : kind == 'T' ? OP_TRASH
            : kind == 'U' ? OP_UPLOAD
            : kind == 'C' ? OP_COPY
                          : OP_SAVE;
    if (kind == 'R') {
        o->name = a;
        o->old_name = b;
    } else if (kind == 'M') {
        o->other_id = a;
        o->parent_id = b;
    } else if (kind == 'U' || kind == 'C') {
        o->name = a;
        *(kind == 'U' ? &o->parent_id : &o->other_id) = b;
    } else if (kind == 'S') {
        o->version_before = a;
        o->version_after = o->outcome == OUT_OK ? b : "";
        o->revision = (uint64_t)b[0];
    }
}

static void read_history(struct history *h, const char *text, bool whole)
{
    memset(h, 0, sizeof(*h));
    snprintf(h->text, sizeof(h->text), "%s", text);
    int64_t now = 100;
    size_t n = 0;
    for (char *word = strtok(h->text, " "); word; word = strtok(NULL, " ")) {
        if (strcmp(word, "|") == 0) {
            now += 100;
            continue;
        }
        assert_true(n < OPS);
        h->op[n] = (struct journal_op){.seq = n + 1,
                                       .file_id = "f",
                                       .parent_id = "",
                                       .other_id = "",
                                       .version_before = "",
                                       .version_after = "",
                                       .name = "",
                                       .old_name = "",
                                       .source_id = "",
                                       .sent_us = now + (int64_t)n};
        read_word(&h->op[n], word);
        h->op[n].told_us = h->op[n].outcome == OUT_UNKNOWN ? INT64_MAX : now + 50;
        h->ptr[n] = &h->op[n];
        n++;
    }
    h->fate = (struct fate){.ops = h->ptr, .n = n, .whole = whole};
}

/* "name@folder", "trash", "gone", "name@folder;2" (in two listings), "name@folder;0" (in none). */
static struct item_seen read_seen(char *text)
{
    struct item_seen s = {.where = ITEM_LIVE, .size = -1, .listed = 1, .listings_tell = true, .has_trash = true};
    if (strcmp(text, "trash") == 0)
        s.where = ITEM_TRASHED;
    else if (strncmp(text, "gone", 4) == 0)
        s.where = ITEM_GONE;
    if (strcmp(text, "gone, no trash") == 0)
        s.has_trash = false;
    if (s.where != ITEM_LIVE)
        return s;
    char *times = cut(text, ";");
    s.listed = times ? (unsigned)(times[0] - '0') : 1;
    s.parent = cut(text, "@");
    s.name = text;
    return s;
}

static void test_fits(void **state)
{
    (void)state;
    static const struct {
        const char *history, *seen;
        bool fits, lax; /* lax: also when the ledger's end is missing */
    } rows[] = {
        /* renames */
        {"R:b<a", "b@F", true, true},
        {"R:b<a", "a@F", false, true},
        {"R:b<a | R:c<b", "c@F", true, true},
        {"R:b<a | R:c<b", "b@F", false, true}, /* an acknowledged one surely came later */
        {"R:b<a R:c<a", "b@F", true, true},    /* they crossed each other */
        {"R:b<a R:c<a", "a@F", false, true},
        {"R:b<a?", "a@F", true, true}, /* no answer: done or not, but nothing else */
        {"R:b<a?", "b@F", true, true},
        {"R:b<a?", "x@F", false, true},
        {"R:b<a? | R:c<a", "b@F", true, true}, /* it may have been carried out late */
        {"R:b<a! | R:c<a", "b@F", false, true},
        {"R:b<a", "trash", false, true}, /* nobody trashed it */
        {"R:b<a", "gone", false, false},
        /* moves */
        {"M:G<F", "a@G", true, true},
        {"M:G<F", "a@F", false, true},
        {"M:G<F", "a@G;2", false, false}, /* in both folders */
        {"M:G<F", "a@G;0", false, false}, /* in none */
        {"M:G<F?", "a@F", true, true},
        {"M:G<F?", "a@H", false, true},
        {"M:G<F | M:F<G", "a@F", true, true},
        {"M:G<F | M:F<G", "a@G", false, true},
        {"R:b<a M:G<F", "b (1)@G", true, true}, /* a taken name is numbered where it arrives */
        {"R:b<a", "b (1)@F", false, true},
        /* trash */
        {"T", "trash", true, true},
        {"T", "a@F", false, false},
        {"T", "gone", false, false},
        {"T", "gone, no trash", true, true},
        {"T?", "a@F", true, true},
        {"T?", "trash", true, true},
        {"T?", "gone", false, false},
        {"T!", "a@F", true, true},
        {"R:b<a T", "trash", true, true},
        /* what the run made */
        {"U:a@F", "a@F", true, true},
        {"U:a@F", "b@F", false, true},
        {"U:a@F", "a@G", false, true},
        {"U:a@F | R:b<a | M:G<F", "b@G", true, true},
        {"U:a@F", "gone", false, false},
        {"U:a@F", "a@F;0", false, false},
        {"U:a@F?", "gone", true, true},
        {"C:a@F", "a (2)@F", true, true},
        {"C:a@F", "b@F", false, true},
        {"C:a@F", "a@G", false, true},
        /* saves claim neither name nor place */
        {"S:1>2", "x@Y", true, true},
        {"S:1>2", "gone", false, false},
        {"S:1>2?", "gone", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct history h;
        struct fate_fault fault = {.op = NULL};
        char seen[40];
        snprintf(seen, sizeof(seen), "%s", rows[i].seen);
        struct item_seen s = read_seen(seen);
        read_history(&h, rows[i].history, true);
        bool fits = fate_fits(&h.fate, &s, &fault);
        if (fits != rows[i].fits)
            print_error("row %zu: %s -> %s\n", i, rows[i].history, rows[i].seen);
        assert_int_equal(fits, rows[i].fits);
        if (!fits) {
            assert_non_null(fault.op);
            assert_true(fault.told[0] && fault.seen[0]);
        }
        h.fate.whole = false;
        fits = fate_fits(&h.fate, &s, &fault);
        if (fits != rows[i].lax)
            print_error("row %zu, cut: %s -> %s\n", i, rows[i].history, rows[i].seen);
        assert_int_equal(fits, rows[i].lax);
    }
}

/* The source was called b and c meanwhile: the copy may be called so too, and nothing else. */
static void test_copy_of_renamed(void **state)
{
    (void)state;
    static const char *const names[] = {"b", "c"};
    static const struct {
        const char *history, *seen;
        bool fits;
    } rows[] = {
        {"C:a@F", "a@F", true},          {"C:a@F", "b@F", true},          {"C:a@F", "c (1)@F", true},
        {"C:a@F", "d@F", false},         {"C:a@F", "b@G", false},         {"C:a@F | R:e<b", "e@F", true},
        {"C:a@F | R:e<b", "b@F", false}, {"C:a@F | R:e<b?", "b@F", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct history h;
        struct fate_fault fault = {.op = NULL};
        char seen[40];
        snprintf(seen, sizeof(seen), "%s", rows[i].seen);
        struct item_seen s = read_seen(seen);
        read_history(&h, rows[i].history, true);
        h.fate.source_names = names;
        h.fate.n_source_names = ARRAY_LEN(names);
        if (fate_fits(&h.fate, &s, &fault) != rows[i].fits)
            fail_msg("row %zu: %s -> %s", i, rows[i].history, rows[i].seen);
    }
}

static void test_settled(void **state)
{
    (void)state;
    static const struct {
        const char *history, *seen; /* the first word is the one to be settled */
        enum fate_end end;
    } rows[] = {
        {"R:b<a?", "b@F", FATE_DONE},
        {"R:b<a?", "a@F", FATE_NOT_DONE},
        {"R:b<a? | R:c<a", "c@F", FATE_OVERTAKEN},
        {"R:b<a? | R:c<a", "b@F", FATE_DONE},
        {"M:G<F?", "a@G", FATE_DONE},
        {"M:G<F?", "a@F", FATE_NOT_DONE},
        {"M:G<F? | M:H<F", "a@H", FATE_OVERTAKEN},
        {"T?", "trash", FATE_DONE},
        {"T?", "a@F", FATE_NOT_DONE},
        {"T? | T", "trash", FATE_OVERTAKEN},
        {"T?", "gone, no trash", FATE_DONE},
        {"U:a@F?", "a@F", FATE_DONE},
        {"U:a@F?", "trash", FATE_DONE},
        {"U:a@F?", "gone", FATE_NOT_DONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct history h;
        char seen[40];
        snprintf(seen, sizeof(seen), "%s", rows[i].seen);
        struct item_seen s = read_seen(seen);
        read_history(&h, rows[i].history, true);
        enum fate_end end = fate_settle(&h.fate, &s, h.ptr[0]);
        if (end != rows[i].end)
            print_error("row %zu: %s -> %s\n", i, rows[i].history, rows[i].seen);
        assert_int_equal(end, rows[i].end);
    }
}

/* Which revisions may be there: "x" that of the save that became version x, "*" what was there before. */
static void test_contents(void **state)
{
    (void)state;
    static const struct {
        const char *history, *may;
    } rows[] = {
        {"S:1>2", "2"},           {"S:1>2 | S:2>3", "3"},   {"S:1>2 S:2>3", "3"}, /* made from it, whatever the clocks
                                                                                     say */
        {"S:1>2 S:1>3", "32"},    {"S:1>2 | S:5>6", "6"},   {"S:1>2?", "2*"},       {"S:1>2 | S:2>3?", "32"},
        {"S:1>2? | S:1>3", "32"}, {"S:1>2!", ""},           {"U:a@F | S:1>2", "2"}, {"C:a@F", "*"},
        {"C:a@F | S:1>2", "2"},   {"C:a@F | S:1>2?", "2*"}, {"R:b<a", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct history h;
        struct fate_contents c;
        char may[FATE_CONTENTS + 2] = "";
        read_history(&h, rows[i].history, true);
        fate_contents(&h.fate, &c);
        for (size_t k = 0; k < c.n; k++)
            may[k] = (char)c.of[k]->revision;
        if (c.claimed && c.other)
            strcat(may, "*");
        if (strcmp(may, rows[i].may) != 0)
            print_error("row %zu: %s\n", i, rows[i].history);
        assert_string_equal(may, rows[i].may);
        assert_int_equal(c.claimed, rows[i].may[0] != '\0');
        h.fate.whole = false;
        fate_contents(&h.fate, &c);
        assert_true(c.other); /* a later save may be among what is missing */
    }
}

/* More crossing saves than are kept: then anything that is whole may be there. */
static void test_many_contents(void **state)
{
    (void)state;
    struct journal_op op[FATE_CONTENTS + 3];
    const struct journal_op *ptr[FATE_CONTENTS + 3];
    struct fate_contents c;
    for (size_t i = 0; i < ARRAY_LEN(op); i++) {
        op[i] = (struct journal_op){.op = OP_SAVE,
                                    .outcome = OUT_OK,
                                    .seq = i,
                                    .version_before = "1",
                                    .version_after = "2",
                                    .sent_us = 1,
                                    .told_us = 1000};
        ptr[i] = &op[i];
    }
    fate_contents(&(struct fate){.ops = ptr, .n = ARRAY_LEN(ptr), .whole = true}, &c);
    assert_int_equal(c.n, FATE_CONTENTS);
    assert_true(c.other);
    assert_ptr_equal(c.of[0], ptr[ARRAY_LEN(ptr) - 1]);
}

static void test_twins(void **state)
{
    (void)state;
    static const struct {
        const char *name, *of;
        bool twin;
    } rows[] = {
        {"a.pdf", "a.pdf", true},
        {"a (1).pdf", "a.pdf", true},
        {"a (12).pdf", "a.pdf", true},
        {"a ().pdf", "a.pdf", false},
        {"a (x).pdf", "a.pdf", false},
        {"ab (1).pdf", "a.pdf", false},
        {"a (1)", "a", true},
        {"a (1).txt", "a.pdf", false},
        {"a (1) (1).pdf", "a (1).pdf", true},
        {"a b (3).pdf", "a b.pdf", true},
        {"a.pdf", "a (1).pdf", false},
        {"", "", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (fate_is_twin(rows[i].name, rows[i].of) != rows[i].twin)
            print_error("%s of %s\n", rows[i].name, rows[i].of);
        assert_int_equal(fate_is_twin(rows[i].name, rows[i].of), rows[i].twin);
    }
}

/* A copy of "a", asked for at 10 and answered at 20, that stands nowhere: what else was asked of "a". */
static void test_explained_copies(void **state)
{
    (void)state;
    static const struct {
        const char *what, *name;
        enum drive_op op;
        enum outcome outcome;
        int64_t sent_us;
        bool explains;
    } rows[] = {
        {"trashed long before", "", OP_TRASH, OUT_OK, 1, true},
        {"trashed while it was copied", "", OP_TRASH, OUT_OK, 15, true},
        {"perhaps trashed", "", OP_TRASH, OUT_TIMEOUT, 15, true},
        {"trashed afterwards", "", OP_TRASH, OUT_OK, 21, false},
        {"not trashed", "", OP_TRASH, OUT_CONFLICT, 15, false},
        {"called otherwise by then", "b", OP_RENAME, OUT_OK, 5, true},
        {"called so by then", "a", OP_RENAME, OUT_OK, 5, false},
        {"called otherwise afterwards", "b", OP_RENAME, OUT_OK, 21, false},
        {"saved", "", OP_SAVE, OUT_OK, 5, false},
        {"moved", "a", OP_MOVE, OUT_OK, 5, false},
    };
    const struct journal_op copy = {.op = OP_COPY, .name = "a", .sent_us = 10, .told_us = 20};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct journal_op o = {.op = (uint8_t)rows[i].op,
                                     .name = rows[i].name,
                                     .outcome = (uint8_t)rows[i].outcome,
                                     .sent_us = rows[i].sent_us,
                                     .told_us = rows[i].sent_us + 1};
        if (fate_explains_copy(&copy, &o) != rows[i].explains)
            print_error("%s\n", rows[i].what);
        assert_int_equal(fate_explains_copy(&copy, &o), rows[i].explains);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_copy_of_renamed),
        cmocka_unit_test(test_settled),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_many_contents),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_explained_copies),
    };
    return cmocka_run_group_tests_name("fate", tests, NULL, NULL);
}
