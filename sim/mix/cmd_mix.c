/* `sim mix`: the proportions of a real audit log, for `run --mix`. The doubtful decision is how to get them out of
 * production, where drivesim must never be: it does not go there. `sim mix sql` prints the question, whoever may ask it
 * there does, and what is imported is a dozen lines of counts that anybody can read before they leave the house. A
 * database is asked directly only where load may be aimed as well: on this machine, or on a host that is named. */
#include "base/file.h"
#include "drive/cmd.h"
#include "sim/mix/counts.h"
#include "sim/mix/query.h"
#include "store/pg_url.h"
#include <errno.h>
#include <string.h>

#define MIX_FILE_MOST (256u << 10)

struct mix_conf {
    const char *action, *file, *database, *out;
    struct mix_window window;
};

static const struct opt_pos pos[] = {
    {"action", OPT_STR, offsetof(struct mix_conf, action), 0, 0, false,
     "import: makes a file for `sim run --mix` out of counts\n"
     "sql: prints the query whose result can be imported"},
    {"counts", OPT_STR, offsetof(struct mix_conf, file), 0, 0, true,
     "import: CSV of the query's result, or an export of the log's\n"
     "column action; - reads stdin (default: asks DATABASE_URL)"},
    {0},
};
static const struct opt opts[] = {
    {"database", 0, "URL", OPT_STR, offsetof(struct mix_conf, database), 0, 0,
     "import: ask this PostgreSQL, which is only read\n(another machine's must be named with --allow-host)"},
    {"since", 0, "TIME", OPT_STR, offsetof(struct mix_conf, window.since), 0, 0,
     "count what was done from then on: 2026-11-01"},
    {"until", 0, "TIME", OPT_STR, offsetof(struct mix_conf, window.until), 0, 0, "count what was done before then"},
    {"out", 'o', "FILE", OPT_STR, offsetof(struct mix_conf, out), 0, 0, "import: where the mix goes (default: stdout)"},
    {0},
};

static bool imports(const struct mix_conf *c)
{
    return strcmp(c->action, "import") == 0;
}

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct mix_conf *c = arg;
    if (!imports(c) && strcmp(c->action, "sql") != 0)
        return err_set(ei, ERR_USAGE, "unknown action '%s': import or sql", SHOWN(sv_of(c->action)));
    if (!imports(c) && (c->file || c->database || c->out))
        return err_set(ei, ERR_USAGE, "mix sql asks nobody: it prints the query, and takes --since and --until");
    if (c->file && c->database)
        return err_set(ei, ERR_USAGE, "the counts come from a file or from --database, not from both");
    if (c->file && (c->window.since || c->window.until))
        return err_set(ei, ERR_USAGE, "--since and --until are for a database: a file's lines tell no time");
    enum err err = mix_query_judge(&c->window, ei);
    return !err && c->out ? file_replaceable(c->out, ERR_USAGE, ei) : err;
}

static enum err print_query(const struct mix_conf *c, FILE *out)
{
    struct buf text = BUF_INIT(16 << 10);
    enum err err = mix_query_text(&c->window, &text);
    if (!err)
        fprintf(out, "%s;\n", buf_cstr(&text));
    buf_done(&text);
    return err;
}

static enum err count_file(const char *name, struct mix_counts *counts, struct errinfo *ei)
{
    bool in = strcmp(name, "-") == 0;
    FILE *f = stdin;
    enum err err = in ? ERR_OK : file_open(name, &f, ERR_USAGE, ei);
    if (err)
        return err;
    err = mix_counts_read(counts, f, in ? "stdin" : name, ei);
    if (!in)
        fclose(f);
    return err;
}

static MAY_YIELD enum err count_database(struct cmd_ctx *ctx, const char *url, const struct mix_window *w,
                                         struct mix_counts *counts, struct errinfo *ei)
{
    struct errinfo why = {0};
    enum err err = pg_url_judge(url, &why);
    if (err == ERR_SAFETY)
        return err_set(ei, err, "%s; or run the query of `sim mix sql` there and import its CSV", err_message(&why));
    return mix_query_run(ctx->loop, url, w, counts, ei);
}

static enum err put_out(const struct mix_conf *c, struct cmd_ctx *ctx, const struct mix_counts *counts,
                        const struct buf *text, struct errinfo *ei)
{
    enum err err = c->out ? file_replace(c->out, text, ei) : ERR_OK;
    if (!err && !c->out)
        fputs(buf_cstr(text), ctx->out);
    uint64_t others = mix_counts_total(counts, false);
    if (err || ctx->common->quiet)
        return err;
    fprintf(stderr, "%s imported, %s without a counterpart left out%s\n",
            COUNTED(mix_counts_total(counts, true), "action"), COUNTED(others, "other"),
            others ? ": the comments name them" : "");
    if (c->out)
        fprintf(stderr, "next: sim run … --mix %s\n", c->out);
    return ERR_OK;
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct mix_conf *c = arg;
    struct mix_counts counts = {0};
    struct buf text = BUF_INIT(MIX_FILE_MOST);
    const char *url = c->database ? c->database : ctx->target->database_url;
    char from[200] = "an audit log";
    if (!imports(c))
        return print_query(c, ctx->out);
    if (!c->file && !url)
        return err_set(
            ei, ERR_USAGE,
            "say where the log is: a CSV file of counts (`sim mix sql` prints the query), or --database URL");
    enum err err = c->file ? count_file(c->file, &counts, ei) : count_database(ctx, url, &c->window, &counts, ei);
    if (c->file)
        str_format(from, sizeof from, "%s", strcmp(c->file, "-") ? SHOWN(sv_of(c->file)) : "stdin");
    else if (c->window.since || c->window.until)
        str_format(from, sizeof from, "an audit log, %s to %s", c->window.since ? c->window.since : "its beginning",
                   c->window.until ? c->window.until : "its end");
    if (!err)
        err = mix_counts_write(&counts, from, &text, ei);
    if (!err)
        err = put_out(c, ctx, &counts, &text, ei);
    mix_counts_done(&counts);
    buf_done(&text);
    return err;
}

const struct command cmd_mix = {
    .name = "mix",
    .summary = "derive the proportions of a run from a real audit log (counts alone leave its database)",
    .usage = "sim mix import [counts] [options]\n       sim mix sql [options]",
    .examples = "sim mix sql --since 2026-11-01 > mix.sql\n"
                "psql \"$DATABASE_URL\" --csv -f mix.sql > counts.csv\n"
                "sim mix import counts.csv --out team.mix\n"
                "sim run 50 300 2 180 --mix team.mix\n"
                "printf 'download,550\\nsave,260\\n' | sim mix import - > hand.mix\n"
                "sim mix import --database postgresql://me@127.0.0.1/copy_of_drive --out team.mix",
    .pos = pos,
    .opts = opts,
    .conf_size = sizeof(struct mix_conf),
    .verify = verify,
    .run = run,
};
