/* What the stack needs of this machine. Versions are asked of the programs themselves. */
#include "base/str.h"
#include "drive/stack/docker.h"
#include "drive/stack/impl.h"
#include "drive/stack/process.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_LIMIT_US (10 * US_PER_S)
#define NODE_LEAST   18

/* The first line that `program --version` prints, without the digest of the build that Redis adds. */
static MAY_YIELD bool version_of(struct stack *s, const char *program, char *dst, size_t n)
{
    const char *argv[] = {program, "--version", NULL};
    char text[256];
    int status = 1;
    enum err err = proc_ask(s->loop, argv, mono_add(mono_now(), ASK_LIMIT_US), text, sizeof text, &status, NULL);
    struct sv rest = sv_of(text), line = {"", 0};
    (void)!sv_split(&rest, '\n', &line);
    str_format(dst, n, SV_FMT, SV_ARG(sv_trim(line)));
    char *build = strstr(dst, " sha=");
    if (build)
        *build = '\0';
    return !err && status == 0;
}

static MAY_YIELD void need_program(struct stack *s, const struct part *p, struct stack_need *out)
{
    const char *program = part_program(p, s->mem);
    out->there = program && version_of(s, program, out->detail, sizeof out->detail);
    if (!program)
        str_format(out->detail, sizeof out->detail, "%s is not installed", p->ops->program);
}

/* redis-server is a link to a program that looks at its name, so it is asked by that name. */
static MAY_YIELD void need_in_path(struct stack *s, const char *program, struct stack_need *out)
{
    char path[512];
    out->there = proc_which(program, NULL, path, sizeof path) && version_of(s, path, out->detail, sizeof out->detail);
    if (!out->there && !out->detail[0])
        str_format(out->detail, sizeof out->detail, "%s is not installed", program);
}

static MAY_YIELD void need_node(struct stack *s, struct stack_need *out)
{
    int64_t major = 0;
    need_in_path(s, "node", out);
    struct sv rest = sv_of(out->detail), head;
    if (!out->there || !sv_starts(rest, SV("v")) || !sv_split(&rest, '.', &head))
        return;
    if (sv_to_i64((struct sv){head.p + 1, head.n - 1}, &major) && major < NODE_LEAST) {
        char found[32];
        str_format(found, sizeof found, "%.20s", out->detail);
        str_format(out->detail, sizeof out->detail, "%s is too old, %d is the least", found, NODE_LEAST);
        out->there = false;
    }
}

static void need_account(const struct stack *s, struct stack_need *out)
{
    struct account a;
    const struct account *as = NULL;
    struct errinfo ei;
    out->there = part_account(&s->parts[PART_POSTGRES], &a, &as, &ei) == ERR_OK;
    if (!out->there)
        str_format(out->detail, sizeof out->detail, "%s", err_message(&ei));
    else if (as)
        str_format(out->detail, sizeof out->detail, "running as root; Postgres runs as %s", as->name);
    else
        str_format(out->detail, sizeof out->detail, "this one will do");
}

size_t stack_needs(struct stack *s, struct stack_need out[STACK_NEEDS_MAX], bool *docker)
{
    size_t n = 0;
    *docker = stack_docker_answers(s);
    memset(out, 0, STACK_NEEDS_MAX * sizeof *out);
    out[n] = (struct stack_need){.name = "Postgres", .package = "postgresql"};
    need_program(s, &s->parts[PART_POSTGRES], &out[n++]);
    out[n] = (struct stack_need){.name = "Redis", .package = "redis-server"};
    need_in_path(s, "redis-server", &out[n++]);
    out[n] = (struct stack_need){.name = "Node.js", .package = "nodejs"};
    need_node(s, &out[n++]);
    out[n] = (struct stack_need){.name = "npm", .package = "npm"};
    need_in_path(s, "npm", &out[n++]);
    out[n] = (struct stack_need){.name = "S3 store", .command = "sim stack fetch"};
    out[n].there = stack_store_installed(out[n].detail, sizeof out[n].detail);
    n++;
    out[n] = (struct stack_need){.name = "account", .command = "sim stack up --account NAME"};
    need_account(s, &out[n++]);
    return n;
}
