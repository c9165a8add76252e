#include "server/faults.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *text;
} table[FAULT_COUNT] = {
#define X(sym, name, text) [FAULT_##sym] = {name, text},
    SERVER_FAULTS(X)
#undef X
};

static void list(FILE *out)
{
    fprintf(out, "faults that can be planted:\n");
    for (int i = 0; i < FAULT_COUNT; i++)
        fprintf(out, "  %-19s %s\n", table[i].name, table[i].text);
}

bool faults_help(const struct opt_list *args, FILE *out)
{
    for (size_t i = 0; i < args->n; i++)
        if (strcmp(args->items[i], "help") == 0) {
            list(out);
            return true;
        }
    return false;
}

/* The whole table, for whoever misspelt a name; the error's own text would be too long. */
static enum err unknown(const char *arg, struct errinfo *ei)
{
    list(stderr);
    return err_set(ei, ERR_USAGE, "--fault: '%s' is none of them; NAME or NAME=PROBABILITY", arg);
}

static enum err parse_one(struct faults *f, const char *arg, struct errinfo *ei)
{
    const char *eq = strchr(arg, '=');
    size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
    double p = 1;
    int i = 0;
    while (i < FAULT_COUNT && (strlen(table[i].name) != n || strncmp(table[i].name, arg, n) != 0))
        i++;
    if (i == FAULT_COUNT)
        return unknown(arg, ei);
    if (eq && (!sv_to_f64(sv_of(eq + 1), &p) || !(p > 0 && p <= 1)))
        return err_set(ei, ERR_USAGE, "--fault %s: a probability is above 0 and at most 1", arg);
    f->set |= 1u << i;
    f->p[i] = p;
    return ERR_OK;
}

enum err faults_parse(struct faults *out, const struct opt_list *args, struct errinfo *ei)
{
    _Static_assert(FAULT_COUNT <= 32, "a bit each");
    enum err e = ERR_OK;
    *out = (struct faults){.set = 0};
    rng_init(&out->rng, (uint64_t)wall_now().us, 1);
    for (size_t i = 0; i < args->n && e == ERR_OK; i++)
        e = parse_one(out, args->items[i], ei);
    return e;
}

bool faults_draw(struct faults *f, enum fault which)
{
    bool hit = rng_unit(&f->rng) < f->p[which];
    f->hits[which] += hit;
    return hit;
}

void faults_announce(const struct faults *f)
{
    for (int i = 0; i < FAULT_COUNT; i++)
        if (f->set >> i & 1)
            fprintf(stderr, "FAULT PLANTED: %s (probability %g): %s\n", table[i].name, f->p[i], table[i].text);
}

void faults_sum_up(const struct faults *f)
{
    for (int i = 0; i < FAULT_COUNT; i++)
        if (f->hits[i] > 0)
            fprintf(stderr, "fault %s struck %" PRIu64 " times\n", table[i].name, f->hits[i]);
}

/* libpq's "options" parameter, in either form of a connection string. */
char *faults_database_url(const struct faults *f, const char *url)
{
    struct buf b = BUF_INIT(16 << 10);
    bool uri = strstr(url, "://") != NULL;
    if (!f->set)
        return NULL;
    enum err e = buf_appendf(&b, "%s%s", url,
                             !uri                       ? " options='"
                             : strchr(url, '?') != NULL ? "&options="
                                                        : "?options=");
    for (int i = 0; i < FAULT_COUNT && e == ERR_OK; i++) {
        char setting[64];
        if (!(f->set >> i & 1))
            continue;
        snprintf(setting, sizeof(setting), "%s", table[i].name);
        for (char *c = setting; *c; c++)
            *c = *c == '-' ? '_' : *c;
        e = buf_appendf(&b, uri ? "-c%%20drive.%s%%3D%g%%20" : "-c drive.%s=%g ", setting, f->p[i]);
    }
    if (e == ERR_OK && !uri)
        e = buf_append_str(&b, "'");
    char *text = e == ERR_OK ? mem_strdup(buf_cstr(&b)) : NULL;
    buf_done(&b);
    return text;
}
