/* `sim report`: a run that is over in any of the forms that its own end could have had, without the server. */
#include "base/mem.h"
#include "drive/cmd.h"

#include <dirent.h>
#include <string.h>

#define RUNS "runs"

struct report_conf {
    const char *run;
};

static const struct opt_pos pos[] = {
    {"run", OPT_STR, offsetof(struct report_conf, run), 0, 0, true,
     "folder of a run, or a file that --json wrote\n(default: the newest of " RUNS "/)"},
    {0},
};

/* Their names begin with when they began; "-2" comes after none, "-10" after "-2". */
static enum err newest(char *dst, size_t n, struct errinfo *ei)
{
    DIR *dir = opendir(RUNS);
    char best[256] = "";
    if (!dir)
        return err_set(ei, ERR_USAGE,
                       "there is no folder " RUNS " here: name a run's folder, or call it where the run was made");
    for (const struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] != '.' && strverscmp(d->d_name, best) > 0)
            str_format(best, sizeof(best), "%s", d->d_name);
    closedir(dir);
    if (!best[0])
        return err_set(ei, ERR_USAGE, "the folder " RUNS " is empty: name a run's folder");
    str_format(dst, n, RUNS "/%s", best);
    return ERR_OK;
}

static bool any_form(const struct cmd_common *c)
{
    for (unsigned i = 0; i < RENDERING_COUNT; i++)
        if (c->files[i])
            return true;
    return c->fail_on.n > 0;
}

static enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct report_conf *conf = arg;
    char path[300];
    const char *from = conf->run;
    enum err e = ERR_OK;
    if (!from)
        e = newest(path, sizeof(path), ei);
    from = from ? from : path;
    if (e == ERR_OK)
        e = doc_load(from, &ctx->result->shown, ei);
    if (e != ERR_OK)
        return e;
    const struct doc *d = ctx->result->shown;
    if (!d->summary.len && !any_form(ctx->common))
        return err_set(ei, ERR_USAGE, "%s keeps no summary: say what to make of it, such as --html page.html", from);
    fprintf(ctx->out, "%s of %s\n%s", doc_string(d, "command"), from, buf_cstr(&d->summary));
    return ERR_OK;
}

const struct command cmd_report = {
    .name = "report",
    .summary = "render a run that is over again: page, JUnit, Prometheus, HDR log, JSON, CSV",
    .usage = "sim report [run] [options]",
    .examples = "sim report\n"
                "sim report --html run.html\n"
                "sim report runs/20261130T101500Z-1 --junit run.xml --prometheus run.prom --hdr run.hlog\n"
                "sim report http.json --html http.html",
    .pos = pos,
    .conf_size = sizeof(struct report_conf),
    .flags = CMD_NO_LOOP,
    .run = run,
};
