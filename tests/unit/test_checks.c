/* The checks that judge by a run's ledger and by the rows, on journals and trees made by hand: each is shown one world
 * in which all is well and others in which one thing is wrong, and must say exactly that. */
#include "unit.h"

#include "base/hash.h"
#include "base/map.h"
#include "checks/check.h"
#include "drive/schema.h"
#include "drive/target.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { END, ASKED, READ, SILENT, STILL, VIEW, STREAM };

/* What an app did or saw; times in ms of the run's clock. ASKED: a request and its answer. VIEW: of the folder `file`,
 * as the rows are, but without the row `other`, or with another version of the row `before`. */
struct event {
    enum kind kind;
    uint32_t app;
    uint8_t op;
    const char *file, *parent, *other, *before, *after, *name;
    int64_t from, to;
    enum outcome outcome;
    uint64_t revision;
    uint8_t flags;
};
struct world {
    const char *name;
    const struct check *check;
    struct event events[10];
    struct tree_row rows[6];
    enum check_status status;
    uint64_t wrong;
    const char *says; /* stands in the first detail, or in the summary when there is none */
};

#define FOLDER(id_, ...)                                                                                               \
    {                                                                                                                  \
        .id = id_, .name = id_, .account = "a", .folder = true, ##__VA_ARGS__                                          \
    }
#define FILE_(id_, p, v, ...)                                                                                          \
    {                                                                                                                  \
        .id = id_, .name = id_, .account = "a", .parent_id = p, .path = "k/" id_, .version = v, ##__VA_ARGS__          \
    }
#define SAVE(app_, f, b, a, rev, from_, to_)                                                                           \
    {                                                                                                                  \
        ASKED, .app = app_, .op = OP_SAVE, .file = f, .before = b, .after = a, .revision = rev, .from = from_,         \
               .to = to_                                                                                               \
    }
#define LOCK(app_, f, id, from_, to_)                                                                                  \
    {                                                                                                                  \
        ASKED, .app = app_, .op = OP_LOCK, .file = f, .other = id, .from = from_, .to = to_                            \
    }
#define UNLOCK(app_, f, id, from_, to_)                                                                                \
    {                                                                                                                  \
        ASKED, .app = app_, .op = OP_UNLOCK, .file = f, .other = id, .from = from_, .to = to_                          \
    }
#define READS(app_, f, v, rev, from_, to_)                                                                             \
    {                                                                                                                  \
        READ, .app = app_, .file = f, .after = v, .revision = rev, .from = from_, .to = to_                            \
    }
#define LATE(app_, op_, how, from_, to_)                                                                               \
    {                                                                                                                  \
        SILENT, .app = app_, .op = op_, .flags = how, .from = from_, .to = to_, .name = "why"                          \
    }

/* clang-format off */
static const struct world worlds[] = {
    /* ---- reads ---- */
    {"reads: nothing read", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 20)}, .status = CHECK_NOT_RUN, .says = "downloaded nothing"},
    {"reads: as written", &check_reads, {READS(0, "f", "1", 1, 0, 5), SAVE(0, "f", "1", "2", 77, 10, 20), READS(0, "f", "2", 77, 30, 40), READS(1, "f", "2", 77, 30, 40)},
     .says = "3 downloads, 2 of revisions that the run wrote, 1 after a write of the app's own, 0 wrong"},
    {"reads: damaged bytes", &check_reads, {{READ, .file = "f", .outcome = OUT_WRONG, .name = "wrong byte at 17 of 90", .to = 5}}, .status = CHECK_VIOLATED, .wrong = 1, .says = "wrong byte at 17"},
    {"reads: older than the own save", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 20), SAVE(0, "f", "2", "3", 99, 30, 40), READS(0, "f", "2", 77, 50, 60)},
     .status = CHECK_VIOLATED, .wrong = 1, .says = "older revision, 77"},
    {"reads: the seeded one after the own save", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 20), READS(0, "f", "1", 1, 50, 60)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "older revision, 1,"},
    {"reads: another app may not have heard yet", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 20), READS(1, "f", "1", 1, 30, 40)}, .wrong = 0},
    {"reads: asked before the save was answered", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 60), READS(0, "f", "1", 1, 50, 70)}, .wrong = 0},
    {"reads: a save of unknown outcome may come later", &check_reads,
     {{ASKED, .op = OP_SAVE, .file = "f", .before = "1", .revision = 55, .from = 5, .to = 9, .outcome = OUT_TIMEOUT}, SAVE(0, "f", "1", "2", 77, 10, 20), READS(0, "f", "3", 55, 30, 40)}, .wrong = 0},
    {"reads: what was refused", &check_reads, {{ASKED, .op = OP_SAVE, .file = "f", .before = "1", .revision = 55, .from = 5, .to = 9, .outcome = OUT_CONFLICT}, READS(1, "f", "2", 55, 30, 40)},
     .status = CHECK_VIOLATED, .wrong = 1, .says = "was refused (conflict)"},
    {"reads: under another version", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 20), READS(1, "f", "2", 77, 21, 22), READS(1, "f", "1", 77, 30, 40)},
     .status = CHECK_VIOLATED, .wrong = 1, .says = "came as version 1"},
    {"reads: an ETag that is no version", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 20), READS(1, "f", "e9", 77, 30, 40)}, .wrong = 0},
    {"reads: another file's bytes", &check_reads, {SAVE(0, "g", "4", "5", 33, 1, 2), SAVE(0, "f", "1", "2", 77, 10, 20), READS(1, "g", "5", 77, 30, 40)},
     .status = CHECK_VIOLATED, .wrong = 1, .says = "to another file, f"},
    {"reads: a copy holds what its source did", &check_reads, {SAVE(0, "f", "1", "2", 77, 10, 20), {ASKED, .op = OP_COPY, .file = "c", .from = 25, .to = 28}, READS(1, "c", "1", 77, 30, 40)}, .wrong = 0},

    /* ---- answers ---- */
    {"answers: all", &check_answers, {SAVE(0, "f", "1", "2", 77, 10, 20)}, .says = "1 writes and downloads answered, 0 requests"},
    {"answers: forgotten", &check_answers, {LATE(0, OP_LIST, LEDGER_TIMED_OUT, 100, 3100), SAVE(1, "f", "1", "2", 77, 2000, 2100)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "list of app 0 as a@load.test"},
    {"answers: nobody was answered", &check_answers, {SAVE(1, "f", "1", "2", 77, 10, 90), LATE(0, OP_LIST, LEDGER_TIMED_OUT, 100, 3100)}, .wrong = 0},
    {"answers: the server stopped at the beginning", &check_answers, {LATE(0, OP_LIST, LEDGER_TIMED_OUT, 100, 3100), SAVE(1, "f", "1", "2", 77, 200, 300)}, .wrong = 0},
    {"answers: hung up on", &check_answers, {SAVE(1, "f", "1", "2", 77, 1200, 1210), LATE(0, OP_UPLOAD, LEDGER_CLOSED, 100, 110)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "closed instead of an answer"},
    {"answers: the server was away", &check_answers, {SAVE(1, "f", "1", "2", 77, 1200, 1210), LATE(0, OP_UPLOAD, LEDGER_CLOSED, 100, 110), LATE(1, OP_LIST, LEDGER_NO_CONNECTION, 900, 901)}, .says = "1 others without an answer"},
    {"answers: streams broke off as well", &check_answers, {SAVE(1, "f", "1", "2", 77, 1200, 1210), LATE(0, OP_UPLOAD, LEDGER_CLOSED, 100, 110), {STREAM, .flags = LEDGER_STREAM_DOWN, .to = 130}}, .wrong = 0},
    {"answers: cut by the end of the run", &check_answers, {LATE(0, OP_LIST, LEDGER_CUT, 100, 3100), SAVE(1, "f", "1", "2", 77, 2000, 2100)}, .wrong = 0},
    {"answers: cut after a long wait", &check_answers, {LATE(0, OP_LIST, LEDGER_CUT, 100, 15100), SAVE(1, "f", "1", "2", 77, 9000, 9100)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "given up without an answer"},

    /* ---- versions ---- */
    {"versions: a chain", &check_versions, {SAVE(0, "f", "1", "2", 5, 1, 2), SAVE(1, "f", "2", "3", 7, 3, 4)}, .says = "2 acknowledged saves"},
    {"versions: two from one", &check_versions, {SAVE(0, "f", "1", "2", 5, 1, 2), SAVE(1, "f", "1", "3", 7, 3, 4)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "two saves from version 1"},
    {"versions: of two files", &check_versions, {SAVE(0, "f", "1", "2", 5, 1, 2), SAVE(1, "g", "1", "2", 7, 3, 4)}, .wrong = 0},

    /* ---- locks ---- */
    {"locks: one after the other", &check_locks, {LOCK(0, "f", "l1", 1, 2), UNLOCK(0, "f", "l1", 5, 6), LOCK(1, "f", "l2", 5, 7)}, .says = "2 locks held, 0 wrong"},
    {"locks: both at once", &check_locks, {LOCK(0, "f", "l1", 1, 2), LOCK(1, "f", "l2", 3, 4), UNLOCK(0, "f", "l1", 5, 6)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "lock l2"},
    {"locks: a save under another's", &check_locks, {LOCK(0, "f", "l1", 1, 2), SAVE(1, "f", "1", "2", 5, 3, 4), UNLOCK(0, "f", "l1", 5, 6)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "was accepted while app 0 held"},
    {"locks: none taken", &check_locks, {SAVE(0, "f", "1", "2", 5, 1, 2)}, .status = CHECK_NOT_RUN, .says = "no edit locks"},

    /* ---- changes ---- */
    {"changes: all there", &check_changes, {{ASKED, .op = OP_RENAME, .file = "f", .name = "f", .from = 1, .to = 2}, {ASKED, .op = OP_TRASH, .file = "g", .from = 3, .to = 4}},
     {FOLDER("d"), FILE_("f", "d", "1"), FILE_("g", "d", "1", .trashed = true)}, .says = "2 acknowledged changes"},
    {"changes: still in its place", &check_changes, {{ASKED, .op = OP_TRASH, .file = "g", .from = 3, .to = 4}}, {FOLDER("d"), FILE_("g", "d", "1")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "still where it was"},
    {"changes: another name", &check_changes, {{ASKED, .op = OP_RENAME, .file = "f", .name = "new", .from = 1, .to = 2}}, {FOLDER("d"), FILE_("f", "d", "1")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "called new"},
    {"changes: numbered by a move", &check_changes, {{ASKED, .op = OP_RENAME, .file = "f", .name = "new", .from = 1, .to = 2}, {ASKED, .op = OP_MOVE, .file = "f", .other = "d", .from = 3, .to = 4}},
     {FOLDER("d"), {.id = "f", .name = "new (1)", .account = "a", .parent_id = "d"}}, .says = "2 acknowledged changes"},
    {"changes: numbered by nobody", &check_changes, {{ASKED, .op = OP_RENAME, .file = "f", .name = "new", .from = 1, .to = 2}},
     {FOLDER("d"), {.id = "f", .name = "new (1)", .account = "a", .parent_id = "d"}}, .status = CHECK_VIOLATED, .wrong = 1, .says = "called new"},
    {"changes: gone for good", &check_changes, {{ASKED, .op = OP_UPLOAD, .file = "u", .parent = "d", .name = "u", .from = 1, .to = 2}}, {FOLDER("d")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "gone for good"},

    /* ---- convergence ---- */
    {"convergence: as the rows are", &check_convergence, {SAVE(0, "f", "1", "2", 5, 1, 2), {VIEW, .file = "d"}}, {FOLDER("d"), FILE_("f", "d", "2")}, .says = "1 view of folders, names and versions compared"},
    {"convergence: one is missing", &check_convergence, {{VIEW, .file = "d", .other = "g"}}, {FOLDER("d"), FILE_("f", "d", "2"), FILE_("g", "d", "2")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "sees 1 entry in folder d"},
    {"convergence: an old version", &check_convergence, {SAVE(0, "f", "1", "2", 5, 1, 2), {VIEW, .file = "d", .before = "f"}}, {FOLDER("d"), FILE_("f", "d", "2")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "one of another version"},
    {"convergence: rows count versions otherwise", &check_convergence, {SAVE(0, "f", "1", "e2", 5, 1, 2), {VIEW, .file = "d", .before = "f"}}, {FOLDER("d"), FILE_("f", "d", "2")}, .says = "names compared"},
    {"convergence: known to be out of date", &check_convergence, {{VIEW, .file = "d", .other = "f", .flags = 1}, {VIEW, .file = "e"}}, {FOLDER("d"), FOLDER("e"), FILE_("f", "d", "2")}, .says = "out of date"},

    /* ---- database ---- */
    {"aggregates: exact", &check_aggregates, {{END}}, {FOLDER("d", .agg_size = 7, .agg_files = 2, .agg_folders = 1), FOLDER("e", .parent_id = "d", .agg_size = 3, .agg_files = 1), FILE_("f", "e", "1", .size = 3), FILE_("g", "d", "1", .size = 4, .trashed = true)}, .says = "2 folders, 0 wrong"},
    {"aggregates: a byte too much", &check_aggregates, {{END}}, {FOLDER("d", .agg_size = 5, .agg_files = 1), FILE_("f", "d", "1", .size = 4)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "folder d"},
    {"storage: exact", &check_storage, {{END}}, {FILE_("f", NULL, "1", .size = 40), FILE_("g", NULL, "1", .size = 60, .trashed = true)}, .says = "1 account, 100 B, 0 wrong"},
    {"storage: a file too few", &check_storage, {{END}}, {FILE_("f", NULL, "1", .size = 40)}, .status = CHECK_VIOLATED, .wrong = 1, .says = "storage_used is 100"},
    {"structure: a tree", &check_structure, {{END}}, {FOLDER("d"), FOLDER("e", .parent_id = "d"), FILE_("f", "e", "1")}, .says = "3 entries, 0 wrong"},
    {"structure: a cycle", &check_structure, {{END}}, {FOLDER("d", .parent_id = "e"), FOLDER("e", .parent_id = "d")}, .status = CHECK_VIOLATED, .wrong = 2, .says = "is part of a cycle"},
    {"structure: no parent", &check_structure, {{END}}, {FILE_("f", "nowhere", "1")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "does not exist"},
    {"structure: in a file", &check_structure, {{END}}, {FILE_("f", NULL, "1"), FILE_("g", "f", "1")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "is a file"},
    {"structure: live in the trash", &check_structure, {{END}}, {FOLDER("d", .trashed = true), FILE_("g", "d", "1")}, .status = CHECK_VIOLATED, .wrong = 1, .says = "trashed folder"},
    {"structure: twins", &check_structure, {{END}}, {FOLDER("d"), FILE_("f", "d", "1"), {.id = "g", .name = "f", .account = "a", .parent_id = "d", .path = "k/g"}}, .status = CHECK_VIOLATED, .wrong = 1, .says = "two live entries"},
    {"drain: at rest", &check_drain, {{END}}, .says = "0 jobs queued, 0 reservations, "},
};
/* clang-format on */

static void text(char *dst, size_t n, const char *src)
{
    snprintf(dst, n, "%s", src ? src : "");
}

static void add_view(const struct world *w, const struct event *e, struct ledger_record *rec)
{
    for (size_t i = 0; i < 6 && w->rows[i].id; i++) {
        const struct tree_row *row = &w->rows[i];
        if (!row->parent_id || strcmp(row->parent_id, e->file) != 0 || (e->other && strcmp(row->id, e->other) == 0))
            continue;
        bool old = e->before && strcmp(row->id, e->before) == 0;
        rec->revision += ledger_entry_hash(row->id, row->name);
        rec->content_key += row->folder ? 0 : ledger_version_hash(row->id, hash_str(old ? "old" : row->version));
        rec->size++;
    }
}

static void add_event(struct ledger *l, const struct world *w, const struct event *e, uint64_t seq)
{
    static const uint8_t kinds[] = {[ASKED] = LEDGER_INTENT,      [READ] = LEDGER_INTENT, [SILENT] = LEDGER_UNANSWERED,
                                    [STILL] = LEDGER_STOOD_STILL, [VIEW] = LEDGER_NOTE,   [STREAM] = LEDGER_NOTE};
    struct ledger_record rec = {.kind = kinds[e->kind],
                                .op = e->op,
                                .app = e->app,
                                .login = e->app % 2,
                                .revision = e->revision,
                                .flags = e->flags,
                                .outcome = (uint8_t)e->outcome,
                                .mono_us = e->to * 1000,
                                .wall_us = e->to * 1000};
    text(rec.file_id, sizeof(rec.file_id), e->file);
    text(rec.name, sizeof(rec.name), e->name);
    rec.seq = (uint64_t)(e->to - e->from) * 1000;
    if (e->kind == READ)
        rec.op = OP_DOWNLOAD;
    if (e->kind == STREAM)
        rec.op = OP_STREAM;
    if (e->kind == VIEW) {
        rec.op = OP_LIST;
        add_view(w, e, &rec);
    }
    if (e->kind == ASKED || e->kind == READ) {
        rec.seq = seq;
        text(rec.parent_id, sizeof(rec.parent_id), e->parent);
        text(rec.other_id, sizeof(rec.other_id), e->other);
        text(rec.version_before, sizeof(rec.version_before), e->before);
        rec.mono_us = rec.wall_us = e->from * 1000;
        ledger_append(l, &rec);
        rec.kind = LEDGER_OUTCOME;
        text(rec.version_after, sizeof(rec.version_after), e->after);
        rec.mono_us = rec.wall_us = e->to * 1000;
    }
    ledger_append(l, &rec);
}

static void write_run_json(const char *dir)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/run.json", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"logins\": [\"a@load.test\", \"b@load.test\"], \"login_accounts\": [0, 0]}", f);
    fclose(f);
}

static void write_run(const char *dir, const struct world *w)
{
    struct ledger *l = NULL;
    struct errinfo ei = {0};
    assert_int_equal(ledger_create(&l, dir, &ei), ERR_OK);
    for (size_t i = 0; i < 10 && w->events[i].kind != END; i++)
        add_event(l, w, &w->events[i], i + 1);
    assert_int_equal(ledger_close(&l, &ei), ERR_OK);
    write_run_json(dir);
}

static struct tree *make_tree(const struct world *w)
{
    struct tree *t = tree_new(SCHEMA_AGGREGATES | SCHEMA_STORAGE_USED | SCHEMA_VERSION);
    struct tree_account *a = tree_add_account(t, "a", "a@load.test");
    a->used = 100;
    a->reserved = 0;
    for (size_t i = 0; i < 6 && w->rows[i].id; i++)
        tree_add(t, &w->rows[i]);
    tree_link(t);
    return t;
}

static void remove_run(const char *dir)
{
    static const char *const files[] = {"ledger.bin", "run.json"};
    char path[200];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void judge(const struct world *w)
{
    char dir[] = "/tmp/checks-XXXXXX";
    volatile int interrupts = 0;
    struct result result;
    struct target target = {0};
    struct cmd_ctx cmd = {.target = &target, .result = &result, .interrupts = &interrupts};
    struct check_ctx c = {.cmd = &cmd, .run_dir = dir};
    assert_non_null(mkdtemp(dir));
    write_run(dir, w);
    assert_int_equal(journal_read(dir, &c.journal, &c.journal_why), ERR_OK);
    c.tree = w->rows[0].id ? make_tree(w) : NULL;
    result_init(&result, "check");
    struct check_result *r = result_check(&result, w->check->name);
    w->check->run(&c, r);
    remove_run(dir);
    const char *said = r->n_detail ? r->detail[0] : r->summary;
    if (r->status != w->status || r->wrong != w->wrong || (w->says && !strstr(said, w->says)))
        fail_msg("%s: status %d, %u wrong: %s", w->name, (int)r->status, (unsigned)r->wrong, said);
    result_done(&result);
    tree_free(&c.tree);
    map_free(&c.others);
    journal_free(&c.journal);
}

static void test_worlds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++)
        judge(&worlds[i]);
}

/* What the answer tells of name and place counts; a ledger in which it told neither has what was asked for. */
static void test_told_places(void **state)
{
    (void)state;
    static const struct {
        enum drive_op op;
        const char *told_name, *told_parent, *name, *old_name, *parent;
    } rows[] = {
        {OP_MOVE, "", "", "f", "", "d"},           {OP_MOVE, "f (1)", "", "f (1)", "f", "d"},
        {OP_COPY, "", "", "f", "", "d"},           {OP_COPY, "f", "", "f", "f", "d"},
        {OP_COPY, "f (1)", "", "f (1)", "f", "d"}, {OP_RENAME, "", "", "f", "", "d"},
        {OP_RENAME, "", "e", "f", "", "e"},        {OP_UPLOAD, "f (1)", "", "f (1)", "", "d"},
    };
    char dir[] = "/tmp/checks-XXXXXX";
    struct errinfo ei = {0};
    struct ledger *l = NULL;
    struct journal *j = NULL;
    assert_non_null(mkdtemp(dir));
    write_run_json(dir);
    assert_int_equal(ledger_create(&l, dir, &ei), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ledger_record rec = {.kind = LEDGER_INTENT, .op = rows[i].op, .seq = i + 1};
        text(rec.name, sizeof(rec.name), "f");
        text(rec.parent_id, sizeof(rec.parent_id), "d");
        ledger_append(l, &rec);
        rec.kind = LEDGER_OUTCOME;
        text(rec.name, sizeof(rec.name), rows[i].told_name);
        text(rec.parent_id, sizeof(rec.parent_id), rows[i].told_parent);
        ledger_append(l, &rec);
    }
    assert_int_equal(ledger_close(&l, &ei), ERR_OK);
    assert_int_equal(journal_read(dir, &j, &ei), ERR_OK);
    assert_int_equal(j->n, ARRAY_LEN(rows));
    for (size_t i = 0; i < j->n; i++) {
        assert_string_equal(j->ops[i].name, rows[i].name);
        assert_string_equal(j->ops[i].old_name, rows[i].old_name);
        assert_string_equal(j->ops[i].parent_id, rows[i].parent);
    }
    journal_free(&j);
    remove_run(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds),
        cmocka_unit_test(test_told_places),
    };
    return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
