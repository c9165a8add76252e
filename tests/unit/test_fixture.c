/* What a fixture says of itself: read back as it was written, and refused when anything of it is not. */
#include "drive/stack/manifest.h"
#include "unit.h"
#include <string.h>

static const char *files_columns[] = {"id text", "na\"me text"};
static struct manifest_table tables[] = {
    {.schema = "public", .name = "files", .columns = files_columns, .n_columns = 2, .rows = 380, .bytes = 70},
    {.schema = "jo\nbs", .name = "queue; --", .columns = files_columns, .n_columns = 1, .rows = 1, .bytes = 30}};
static struct manifest_sequence sequences[] = {{"public", "s", INT64_MAX, true}, {"public", "t", -7, false}};

static struct manifest sample(void)
{
    struct manifest m = {
        .info = {.version = "v1-3-gabc",
                 .made = "2026-11-30T18:00:00Z",
                 .folders = 44,
                 .files = 336,
                 .bytes = 22323918,
                 .objects = 1008,
                 .is_seeded = true,
                 .seeded = {.seed = 7,
                            .sub_users = 2,
                            .accounts = 3,
                            .scale = 0.02,
                            .bytes_scale = 0.5,
                            .preset = "drive",
                            .folders = 44,
                            .files = 336,
                            .bytes = 22323918}},
        .postgres = 15,
        .own_server = true,
        .database = {.size = 100},
        .objects = {.size = 2000},
        .entries = 1011,
        .tables = tables,
        .n_tables = 2,
        .sequences = sequences,
        .n_sequences = 2,
    };
    m.info.size = 2100;
    memset(m.schema, 'a', sizeof m.schema - 1);
    memset(m.file_key, 'b', sizeof m.file_key - 1);
    memset(m.s3_secret, 'c', sizeof m.s3_secret - 1);
    memset(m.database.sha256, 'd', sizeof m.database.sha256 - 1);
    memset(m.objects.sha256, 'e', sizeof m.objects.sha256 - 1);
    memset(m.info.seeded.manifest_sha256, 'f', sizeof m.info.seeded.manifest_sha256 - 1);
    return m;
}

static struct buf text_of(const struct manifest *m)
{
    struct buf b = BUF_INIT(64 << 10);
    assert_int_equal(manifest_text(m, &b), ERR_OK);
    return b;
}

static void test_there_and_back(void **state)
{
    (void)state;
    for (int seeded = 0; seeded < 2; seeded++) {
        struct manifest m = sample(), again;
        m.info.is_seeded = seeded;
        if (!seeded)
            m.info.seeded = (struct stack_seeded){0};
        struct buf b = text_of(&m);
        assert_int_equal(manifest_parse(&again, (struct sv){b.data, b.len}, NULL), ERR_OK);
        assert_memory_equal(&again.info.seeded, &m.info.seeded, sizeof m.info.seeded);
        struct buf c = text_of(&again);
        assert_string_equal(b.data, c.data);
        assert_int_equal(again.info.size, 2100);
        assert_int_equal(again.entries, 1011);
        assert_int_equal(again.n_tables, 2);
        assert_string_equal(again.tables[0].columns[1], "na\"me text");
        assert_string_equal(again.tables[1].schema, "jo\nbs");
        assert_true(again.sequences[0].last == INT64_MAX && again.sequences[0].called);
        assert_true(again.sequences[1].last == -7 && !again.sequences[1].called);
        manifest_done(&again);
        assert_null(again.mem);
        buf_done(&b);
        buf_done(&c);
    }
}

static void test_another_format_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "damaged"},
        {"{\"drivesim_fixture\":1", "damaged"},
        {"{}", "not one of drivesim's"},
        {"[]", "not one of drivesim's"},
        {"{\"drivesim_fixture\":1}", "format 1, whose dump could run commands: seed a stack anew"},
        {"{\"drivesim_fixture\":3}", "format 3, this program knows 2"},
        {"{\"drivesim_fixture\":-1}", "format -1, this program knows 2"},
        {"{\"drivesim_fixture\":2}", "not whole"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct manifest m;
        struct errinfo ei = {0};
        assert_int_equal(manifest_parse(&m, sv_of(rows[i].text), &ei), ERR_ENV);
        assert_non_null(strstr(ei.msg, rows[i].says));
    }
}

/* Each field in turn under another name, or with another kind of value. */
static void test_every_field_counts(void **state)
{
    (void)state;
    static const char *const fields[] = {"version",        "made",    "folders",       "files",     "bytes",
                                         "objects_stored", "seeded",  "postgres",      "size",      "file_key",
                                         "database",       "objects", "schema_sha256", "s3_secret", "sha256",
                                         "own_server",     "entries", "tables",        "schema",    "name",
                                         "rows",           "columns", "last",          "called",    "sequences"};
    struct manifest m = sample(), read;
    struct buf b = text_of(&m);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        char key[40];
        str_format(key, sizeof key, "\"%s\":", fields[i]);
        char *at = strstr(b.data, key);
        assert_non_null(at);
        if (strcmp(fields[i], "seeded") != 0) { /* may be absent */
            at[1] ^= 1;
            assert_int_equal(manifest_parse(&read, (struct sv){b.data, b.len}, NULL), ERR_ENV);
            at[1] ^= 1;
        }
        char *value = at + strlen(key), was = *value;
        *value = was == '"' ? '7' : was == '{' ? '[' : '"';
        assert_int_equal(manifest_parse(&read, (struct sv){b.data, b.len}, NULL), ERR_ENV);
        *value = was;
    }
    char *digit = strstr(b.data, "aaaa");
    *digit = 'g';
    assert_int_equal(manifest_parse(&read, (struct sv){b.data, b.len}, NULL), ERR_ENV);
    buf_done(&b);
}

/* What would be written where it does not belong, or shown to a terminal as it is. */
static void test_what_does_not_add_up(void **state)
{
    (void)state;
    static const struct {
        const char *was, *is;
    } rows[] = {
        {"\"bytes\":70", "\"bytes\":71"}, /* more or less text than the file has */
        {"\"bytes\":70", "\"bytes\":69"},
        {"\"bytes\":70", "\"bytes\":\"9223372036854775807\""},
        {"\"bytes\":70", "\"bytes\":-1"},
        {"\"rows\":380", "\"rows\":1e300"},
        {"\"rows\":380", "\"rows\":0.5"},
        {"[\"id text\"]", "[]"},
        {"[\"id text\"]", "[7]"},
        {"[\"id text\"]", "{\"a\":\"id text\"}"},
        {"v1-3-gabc", "\\u001b[2J"},
        {"\"preset\":\"drive\"", "\"preset\":\"\\u001b[2J\""},
        {"\"manifest_sha256\":\"f", "\"manifest_sha256\":\"\xff"},
        {"2026-11-30T18:00:00Z", "2026\\u0007"},
        {"2026-11-30T18:00:00Z", "2026\\nNAME"},
        {"\"9223372036854775807\"", "\"9223372036854775808\""},
    };
    struct manifest m = sample(), read;
    struct buf b = text_of(&m);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf other = BUF_INIT(64 << 10);
        const char *at = strstr(b.data, rows[i].was);
        assert_non_null(at);
        assert_int_equal(
            buf_appendf(&other, "%.*s%s%s", (int)(at - b.data), b.data, rows[i].is, at + strlen(rows[i].was)), ERR_OK);
        assert_int_equal(manifest_parse(&read, (struct sv){other.data, other.len}, NULL), ERR_ENV);
        assert_null(read.mem);
        buf_done(&other);
    }
    buf_done(&b);
}

static void test_names_are_plain(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum err err;
    } rows[] = {{"base", ERR_OK},     {"v1.2_rc-3", ERR_OK},     {"9", ERR_OK},      {"", ERR_USAGE},
                {".base", ERR_USAGE}, {"..", ERR_USAGE},         {"a/b", ERR_USAGE}, {"-f", ERR_USAGE},
                {"a b", ERR_USAGE},   {"caf\xc3\xa9", ERR_USAGE}};
    char longest[FIXTURE_NAME_MAX + 2] = "";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(fixture_judge_name(rows[i].name, NULL), rows[i].err);
    memset(longest, 'a', sizeof longest - 1);
    assert_int_equal(fixture_judge_name(longest, NULL), ERR_USAGE);
    longest[FIXTURE_NAME_MAX] = '\0';
    assert_int_equal(fixture_judge_name(longest, NULL), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),     cmocka_unit_test(test_another_format_is_told),
        cmocka_unit_test(test_every_field_counts), cmocka_unit_test(test_what_does_not_add_up),
        cmocka_unit_test(test_names_are_plain),
    };
    return cmocka_run_group_tests_name("fixture", tests, NULL, NULL);
}
