/* What the program says about itself. */
#include "sim/usage.h"
#include "base/mem.h"
#include "base/version.h"
#include <string.h>

const struct opt usage_common_opts[] = {
#define X(sym, key, help) {#key, 0, "FILE", OPT_STR, offsetof(struct cmd_common, files[RENDERING_##sym]), 0, 0, help},
    RENDERINGS(X)
#undef X
        {"fail-on", 0, "COND", OPT_LIST, offsetof(struct cmd_common, fail_on), 0, 0,
         "status 1 unless COND holds: 'save.p99<200ms', 'failed==0',\n"
         "any number of the JSON by its path (units may be left\nout); may be repeated"},
    {"seed", 0, "N", OPT_INT, offsetof(struct cmd_common, seed), 0, 9007199254740992.0,
     "the same number plans the same work (default 1)"},
    {"allow-host", 0, "HOST", OPT_LIST, offsetof(struct cmd_common, allow_hosts), 0, 0,
     "allow a server, database, Redis or store that is not on this\nmachine, by its exact name; may be repeated, or "
     "name "
     "several:\nA,B"},
    {"dialect", 0, "NAME", OPT_STR, offsetof(struct cmd_common, dialect), 0, 0,
     "how to speak to the server, where the URL's scheme does not\nsay it"},
    {"users", 0, "FILE", OPT_STR, offsetof(struct cmd_common, users_file), 0, 0,
     "logins for a server without sign-up, a line each:\nuser:password"},
    {"ssh-key", 0, "FILE", OPT_STR, offsetof(struct cmd_common, ssh_key), 0, 0,
     "private key to sign in with at sftp://; its passphrase is\ntaken from TMA_LOAD_SSH_PASSPHRASE"},
    {"known-hosts", 0, "FILE", OPT_STR, offsetof(struct cmd_common, known_hosts), 0, 0,
     "host keys that are trusted at sftp://, this file's\nalone (default: ssh's, ~/.ssh/known_hosts first)"},
    {"cafile", 0, "FILE", OPT_STR, offsetof(struct cmd_common, cafile), 0, 0, "trust the certificates of FILE"},
    {"cacert", 0, "FILE", OPT_STR, offsetof(struct cmd_common, cafile), 0, 0, "the same, as curl calls it"},
    {"fresh-sign-in", 0, NULL, OPT_FLAG, offsetof(struct cmd_common, fresh_sign_in), 0, 0,
     "sign in anew: use no session that an earlier command left"},
    {"insecure", 0, NULL, OPT_FLAG, offsetof(struct cmd_common, insecure), 0, 0,
     "accept any certificate and any host key"},
    {"quiet", 'q', NULL, OPT_FLAG, offsetof(struct cmd_common, quiet), 0, 0,
     "no progress and no reports; the summary stays"},
    {"no-color", 0, NULL, OPT_FLAG, offsetof(struct cmd_common, no_color), 0, 0,
     "no colours (NO_COLOR in the environment does it too)"},
    {"log-level", 0, "LEVEL", OPT_STR, offsetof(struct cmd_common, log_level), 0, 0, "error, warn, info or debug"},
    {"trace", 0, "MODULES", OPT_STR, offsetof(struct cmd_common, trace), 0, 0,
     "debug lines of these: blob, check, events, http, httpc, kv,\npg, proc, server, ssh, stack or all; -pg: but not "
     "of "
     "this"},
    {0},
};

/* The modules that have debug lines: a lint test compares. */
static const char *const traced[] = {"blob", "check", "events", "http", "httpc", "kv",
                                     "pg",   "proc",  "server", "ssh",  "stack", "all"};

static const char exit_text[] =
    "exit status: 0 healthy, 1 a check, a threshold or an operation failed, 2 usage, 3 the environment is\n"
    "not ready or the target was refused for safety, 4 a stop condition of a ramp was met, 130 interrupted,\n"
    "141 whoever read the output went away\n";

void usage_print_overview(const struct command *const *commands, FILE *out)
{
    fprintf(
        out,
        "drivesim %s: fills a throwaway drive server, runs desktop apps against it, proves that it kept its word\n\n"
        "usage: sim COMMAND [arguments] [options]\n\ncommands:\n",
        drivesim_version);
    for (; *commands; commands++)
        fprintf(out, "  %-10s %s\n", (*commands)->name, (*commands)->summary);
    fprintf(out,
            "\n'sim COMMAND --help' shows a command's arguments, options and examples; 'sim --version' the version\n"
            "\nThe server is named by TMA_URL, its parts by DATABASE_URL, REDIS_URL and TMA_LOAD_S3_*: from the "
            "environment,\n"
            "then .env, then a stack of 'sim stack up' in this folder\n\n%s",
            exit_text);
}

static void print_indented(FILE *out, const char *lines)
{
    struct sv rest = sv_of(lines), line;

    while (sv_split(&rest, '\n', &line)) {
        if (sv_starts(line, SV("  ")))
            line = (struct sv){line.p + 2, line.n - 2};
        if (sv_trim(line).n)
            fprintf(out, "  " SV_FMT "\n", SV_ARG(line));
    }
}

void usage_print_help(const struct command *cmd, FILE *out)
{
    const struct opt_table own = {cmd->pos, cmd->opts, 0}, common = {NULL, usage_common_opts, 0};

    fprintf(out, "usage: %s\n\n%s\n", cmd->usage, cmd->summary);
    if ((cmd->pos && cmd->pos->name) || (cmd->opts && cmd->opts->name)) {
        fputc('\n', out);
        opt_print_help(out, &own, 1);
    }
    fprintf(out, "\noptions of every command:\n");
    opt_print_help(out, &common, 1);
    if (cmd->sample) {
        fprintf(out, "\nfigures of its own, for --fail-on and in the JSON:\n");
        result_print_names(cmd->sample, out);
    }
    if (cmd->examples) {
        fprintf(out, "\nexamples:\n");
        print_indented(out, cmd->examples);
    }
    fprintf(out, "\n%s", exit_text);
}

const struct command *usage_find(const struct command *const *commands, const char *name)
{
    for (; *commands; commands++)
        if (strcmp((*commands)->name, name) == 0)
            return (*commands);
    return NULL;
}

enum err usage_judge_trace(const char *spec, struct errinfo *ei)
{
    struct sv rest = sv_of(spec), word;

    while (sv_split(&rest, ',', &word)) {
        struct opt_guess near;
        bool known = false;
        if (sv_starts(word, SV("-")))
            word = (struct sv){word.p + 1, word.n - 1};
        opt_guess_init(&near, word);
        for (size_t i = 0; i < ARRAY_LEN(traced); i++) {
            known = known || sv_eq_cstr(word, traced[i]);
            opt_guess_try(&near, traced[i]);
        }
        if (!known)
            return err_set(ei, ERR_USAGE, "--trace: no module is called '%s'%s", SHOWN(word),
                           near.name[0] ? opt_guess_text(&near) : "; --help names them");
    }
    return ERR_OK;
}

/* One sentence on stderr, whoever wrote its words. */
void usage_complain(const char *command, const char *sentence)
{
    struct buf line = BUF_INIT(4096);
    enum err err = buf_appendf(&line, command ? "sim %s: " : "sim: ", command);

    if (!err && !str_escape(&line, sv_of(sentence), 1000))
        fprintf(stderr, "%s\n", line.data);
    buf_done(&line);
}

int usage_unknown(const struct command *const *commands, const char *name)
{
    struct buf text = BUF_INIT(1024);
    struct opt_guess near;

    if (name[0] == '-') {
        usage_complain(NULL, "options come after the command: sim COMMAND [arguments] [options]");
        return err_exit_status(ERR_USAGE);
    }
    opt_guess_init(&near, sv_of(name));
    for (; *commands; commands++)
        opt_guess_try(&near, (*commands)->name);
    enum err err = buf_append_str(&text, "there is no command '");
    if (!err)
        err = str_escape(&text, sv_of(name), 60);
    if (!err)
        err = buf_appendf(&text, "'%s", near.name[0] ? opt_guess_text(&near) : "; 'sim --help' lists them");
    if (!err)
        usage_complain(NULL, buf_cstr(&text));
    buf_done(&text);
    return err_exit_status(ERR_USAGE);
}
