/* A plain list of words and numbers rather than JSON: it is written by hand, and `mix import` writes it from a log. */
#include "sim/app/mix.h"
#include "base/file.h"
#include "base/opt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MIX_FILE_MAX (64u << 10)

bool mix_is_action(enum drive_op op)
{
    return drive_op_weight(op) > 0;
}

void mix_default(struct mix *m)
{
    for (int op = 0; op < OP_COUNT; op++)
        m->weight[op] = drive_op_weight(op);
}

double mix_share(const struct mix *m, enum drive_op op)
{
    double sum = 0;
    for (int i = 0; i < OP_COUNT; i++)
        sum += m->weight[i];
    return sum > 0 ? m->weight[op] / sum : 0;
}

enum drive_op mix_draw(const struct mix *m, struct rng *r)
{
    return (enum drive_op)rng_weighted(r, m->weight, OP_COUNT);
}

static enum err unknown_operation(const char *name, unsigned line, struct sv word, struct errinfo *ei)
{
    struct buf known = BUF_INIT(1024);
    enum err e = ERR_OK;
    struct opt_guess near;
    opt_guess_init(&near, word);
    for (int op = 0; op < OP_COUNT && e == ERR_OK; op++)
        if (mix_is_action(op)) {
            opt_guess_try(&near, drive_op_key(op));
            e = buf_appendf(&known, "%s%s", known.len ? ", " : ": ", drive_op_key(op));
        }
    e = err_set(ei, ERR_USAGE, "%s line %u: %s is not an action%s", name, line, SHOWN(word),
                near.name[0] ? opt_guess_text(&near) : buf_cstr(&known));
    buf_done(&known);
    return e;
}

/* "download 55", "download = 55" or "download: 55". */
static enum err parse_line(struct mix *m, const char *name, unsigned line, struct sv text, struct errinfo *ei)
{
    size_t n = 0;
    if (memchr(text.p, '\0', text.n))
        return err_set(ei, ERR_USAGE, "%s line %u: a byte of 0: this is no text", name, line);
    while (n < text.n && !strchr(" \t=:", text.p[n]))
        n++;
    struct sv word = {text.p, n}, number = {text.p + n, text.n - n};
    while (number.n && strchr(" \t=:", number.p[0]))
        number = (struct sv){number.p + 1, number.n - 1};
    char key[32] = "";
    if (word.n < sizeof(key))
        memcpy(key, word.p, word.n);
    enum drive_op op;
    double weight;
    if (!drive_op_parse(key, &op) || !mix_is_action(op))
        return unknown_operation(name, line, word, ei);
    if (!sv_to_f64(number, &weight) || !(weight >= 0) || weight > 1e9)
        return err_set(ei, ERR_USAGE, "%s line %u: %s needs a weight of 0 or more", name, line, key);
    if (m->weight[op] != 0)
        return err_set(ei, ERR_USAGE, "%s line %u: %s is there twice", name, line, key);
    m->weight[op] = weight;
    return ERR_OK;
}

enum err mix_parse(struct mix *m, const char *name, struct sv text, struct errinfo *ei)
{
    memset(m, 0, sizeof(*m));
    struct sv line;
    double sum = 0;
    for (unsigned no = 1; file_line(&text, &line); no++) {
        const char *comment = line.n ? memchr(line.p, '#', line.n) : NULL;
        if (comment)
            line.n = (size_t)(comment - line.p);
        line = sv_trim(line);
        if (line.n == 0)
            continue;
        enum err e = parse_line(m, name, no, line, ei);
        if (e != ERR_OK)
            return e;
    }
    for (int op = 0; op < OP_COUNT; op++)
        sum += m->weight[op];
    if (!(sum > 0))
        return err_set(ei, ERR_USAGE, "%s gives no action a weight", name);
    return ERR_OK;
}

enum err mix_load(struct mix *m, const char *file, struct errinfo *ei)
{
    struct buf text = BUF_INIT(MIX_FILE_MAX);
    enum err e = file_read_text(file, &text, ERR_USAGE, ei);
    if (e == ERR_OK)
        e = mix_parse(m, file, (struct sv){buf_cstr(&text), text.len}, ei);
    buf_done(&text);
    return e;
}
