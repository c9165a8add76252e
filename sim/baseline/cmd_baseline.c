/* `sim baseline`: what each layer gives on its own, and what is left of it in the layer above. */
#include "sim/baseline/baseline.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct baseline_options {
    struct opt_list only;
    const char *dir, *iperf;
    int64_t each_us;
};
static const struct opt opts[] = {
    {"only", 0, "LAYERS", OPT_LIST, offsetof(struct baseline_options, only), 0, 0,
     "only these layers, of disk,network,postgres,redis,store,drive"},
    {"time", 0, "TIME", OPT_DURATION, offsetof(struct baseline_options, each_us), 1e5, 6e8,
     "how long each figure is measured (default 3 s)"},
    {"dir", 0, "DIR", OPT_STR, offsetof(struct baseline_options, dir), 0, 0,
     "a folder on the disk to measure (default: this one)"},
    {"iperf", 0, "HOST[:PORT]", OPT_STR, offsetof(struct baseline_options, iperf), 0, 0,
     "where iperf3 -s runs (default: on this machine, started by us)"},
    {0},
};
static const struct baseline_options defaults = {.dir = ".", .each_us = 3 * US_PER_S};

static const struct {
    const char *name;
    MAY_YIELD enum err (*measure)(struct baseline *b, struct errinfo *ei);
} layers[LAYER_COUNT] = {
    [LAYER_DISK] = {"disk", baseline_disk},
    [LAYER_NETWORK] = {"network", baseline_network},
    [LAYER_POSTGRES] = {"postgres", baseline_postgres},
    [LAYER_REDIS] = {"redis", baseline_redis},
    [LAYER_STORE] = {"store", baseline_store},
    [LAYER_DRIVE] = {"drive", baseline_drive},
};
static const struct {
    enum base_layer layer;
    const char *key, *text, *unit;
    enum base_row below;
} rows[BASE_COUNT] = {
#define X(sym, layer, key, text, unit, below) [BASE_##sym] = {LAYER_##layer, key, text, unit, BASE_##below},
    BASE_ROWS(X)
#undef X
};

bool baseline_stopped(const struct baseline *b)
{
    return *b->ctx->interrupts > 0;
}

void baseline_set(struct baseline *b, enum base_row row, double value)
{
    b->value[row] = value;
    b->known[row] = true;
}

/* ---- beats ---- */

struct beat_lane {
    struct beat *k;
    unsigned number;
};

static void beat_lane(void *arg)
{
    struct beat_lane *l = arg;
    struct beat *k = l->k;
    struct errinfo why = {0};
    while (!k->failed && !baseline_stopped(k->b) && !mono_passed(k->until)) {
        if (k->once(k, l->number, &why)) {
            k->done++;
        } else if (!k->failed) {
            k->failed = true;
            k->why = why;
        }
    }
}

/* The rate per second; 0 when not one was done. */
static MAY_YIELD double beat_run(struct beat *k, unsigned lanes)
{
    struct beat_lane each[BASE_LANES];
    struct group g = {0};
    struct mono from = mono_now();
    k->until = mono_add(from, k->b->each_us);
    for (unsigned i = 0; i < lanes; i++) {
        each[i] = (struct beat_lane){k, i};
        group_spawn(k->b->ctx->loop, &g, beat_lane, &each[i]);
    }
    group_wait(k->b->ctx->loop, &g);
    int64_t us = mono_diff(mono_now(), from);
    return us > 0 ? (double)k->done * 1e6 / (double)us : 0;
}

enum err beat_rows(struct baseline *b, const struct beat_row *each, size_t n, void *arg, struct errinfo *ei)
{
    for (size_t i = 0; i < n && !baseline_stopped(b); i++) {
        struct beat k = {.b = b, .arg = arg, .once = each[i].once};
        double rate = beat_run(&k, each[i].lanes);
        if (k.failed)
            return err_set(ei, k.why.code, "%s", err_message(&k.why));
        baseline_set(b, each[i].row, rate * each[i].each);
    }
    return ERR_OK;
}

/* ---- the table ---- */

/* What is left of the layer below, as a share; -1: it rests on nothing, or that was not measured. */
static double share(const struct baseline *b, enum base_row row)
{
    enum base_row below = rows[row].below;
    return below != row && b->known[row] && b->known[below] && b->value[below] > 0 ? b->value[row] / b->value[below]
                                                                                   : -1;
}

static bool asked_for(const struct opt_list *only, const char *name)
{
    struct opt_words words = {.list = only};
    struct sv one;
    while (opt_words_next(&words, &one))
        if (sv_eq_cstr(one, name))
            return true;
    return only->n == 0;
}

static void print_table(const struct baseline *b, const struct opt_list *only, FILE *out)
{
    char value[32], part[64], line[200];
    fprintf(out, "%-9s %-38s %12s       %s\n", "layer", "figure", "value", "of the layer below");
    for (unsigned i = 0; i < BASE_COUNT; i++) {
        const struct baseline *known = b->known[i] ? b : NULL;
        if (!asked_for(only, layers[rows[i].layer].name))
            continue;
        double s = share(b, (enum base_row)i);
        str_format(value, sizeof(value), b->value[i] < 100 ? "%.1f" : "%.0f", b->value[i]);
        part[0] = '\0';
        if (s >= 0)
            str_format(part, sizeof(part), "%.*f x %s: %s", s < 0.1 ? 3 : 2, s, layers[rows[rows[i].below].layer].name,
                       rows[rows[i].below].text);
        str_format(line, sizeof(line), "%-9s %-38s %12s %-5s %s", layers[rows[i].layer].name, rows[i].text,
                   known ? value : "-", known ? rows[i].unit : "", part);
        size_t n = strlen(line);
        while (n && line[n - 1] == ' ')
            n--;
        fprintf(out, "%.*s\n", (int)n, line);
    }
    for (unsigned l = 0; l < LAYER_COUNT; l++)
        if (b->why[l][0])
            fprintf(out, "%s: %s\n", layers[l].name, b->why[l]);
}

/* The link where the most is lost: the row that reaches the smallest share of the layer it rests on; BASE_COUNT: none
 * was measured together with what is below it. */
static enum base_row slowest_row(const struct baseline *b)
{
    enum base_row slowest = BASE_COUNT;
    for (unsigned i = 0; i < BASE_COUNT; i++) {
        double s = share(b, (enum base_row)i);
        if (s >= 0 && (slowest == BASE_COUNT || s < share(b, slowest)))
            slowest = (enum base_row)i;
    }
    return slowest;
}

static char *slowest_text(const struct baseline *b, enum base_row row, char *dst, size_t n)
{
    double s = share(b, row);
    str_format(dst, n, "%s, %s: %.1f %s, %.*f %% of %s, %s", layers[rows[row].layer].name, rows[row].text,
               b->value[row], rows[row].unit, s < 0.1 ? 1 : 0, s * 100, layers[rows[rows[row].below].layer].name,
               rows[rows[row].below].text);
    return dst;
}

static void print_slowest(const struct baseline *b, FILE *out)
{
    char line[300] = "not known, since no layer was measured together with one above it";
    enum base_row slowest = slowest_row(b);
    if (slowest != BASE_COUNT)
        slowest_text(b, slowest, line, sizeof(line));
    fprintf(out, "slowest link: %s\n", line);
}

/* The table for machines: what was measured, each with its share of what it rests on; and the slowest link. */
static void write_json(const struct baseline *b, struct result *r)
{
    struct buf json = BUF_INIT(64u << 10), sentence = BUF_INIT(1024);
    struct jsonw w;
    char text[300];
    jsonw_init(&w, &json);
    jsonw_array(&w, NULL);
    for (unsigned i = 0; i < BASE_COUNT; i++) {
        if (!b->known[i])
            continue;
        double s = share(b, (enum base_row)i);
        jsonw_object(&w, NULL);
        jsonw_str(&w, "layer", layers[rows[i].layer].name);
        jsonw_str(&w, "figure", rows[i].key);
        jsonw_str(&w, "text", rows[i].text);
        jsonw_f64(&w, "value", b->value[i], 1);
        jsonw_str(&w, "unit", rows[i].unit);
        jsonw_measured(&w, "ratio", s, 4);
        jsonw_str(&w, "of", s >= 0 ? rows[rows[i].below].key : NULL);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    result_part(r, "layers", &w);
    enum base_row slowest = slowest_row(b);
    jsonw_init(&w, &sentence);
    jsonw_str(&w, NULL, slowest == BASE_COUNT ? NULL : slowest_text(b, slowest, text, sizeof(text)));
    result_part(r, "slowest_link", &w);
}

/* ---- the run ---- */

static enum err verify(void *arg, struct errinfo *ei)
{
    const struct baseline_options *o = arg;
    struct opt_words words = {.list = &o->only};
    struct sv one;
    while (opt_words_next(&words, &one)) {
        struct opt_guess near;
        bool there = false;
        opt_guess_init(&near, one);
        for (unsigned l = 0; l < LAYER_COUNT; l++) {
            there = there || sv_eq_cstr(one, layers[l].name);
            opt_guess_try(&near, layers[l].name);
        }
        if (!there)
            return err_set(
                ei, ERR_USAGE,
                "--only takes disk, network, postgres, redis, store and drive, separated by commas, not \"%s\"%s",
                SHOWN(one), opt_guess_text(&near));
    }
    if (o->dir && access(o->dir, W_OK | X_OK) != 0)
        return err_sys(ei, ERR_USAGE, "--dir %s", o->dir);
    return baseline_judge_iperf(o->iperf, ei);
}

static void on_interrupt(void *arg)
{
    struct baseline *b = arg;
    if (b->tool.pid)
        proc_kill_session(&b->tool);
}

static MAY_YIELD enum err run(void *arg, struct cmd_ctx *ctx, struct errinfo *ei)
{
    const struct baseline_options *o = arg;
    struct baseline b = {.ctx = ctx, .each_us = o->each_us, .dir = o->dir, .iperf = o->iperf};
    enum err e = ERR_OK;
    for (unsigned l = LAYER_POSTGRES; l <= LAYER_STORE; l++)
        b.beside = b.beside || asked_for(&o->only, layers[l].name);
    for (unsigned l = 0; l < LAYER_COUNT; l++) {
        struct errinfo why = {0};
        if (!asked_for(&o->only, layers[l].name))
            continue;
        if (baseline_stopped(&b)) {
            str_fit(b.why[l], sizeof(b.why[l]), "not measured: interrupted");
            continue;
        }
        if (!ctx->common->quiet)
            fprintf(ctx->out, "measuring %s\n", layers[l].name);
        ctx->on_interrupt_arg = &b;
        ctx->on_interrupt = on_interrupt;
        enum err one = layers[l].measure(&b, &why);
        if (baseline_stopped(&b))
            str_fit(b.why[l], sizeof(b.why[l]), "not measured to the end: interrupted");
        if (one == ERR_OK || baseline_stopped(&b))
            continue;
        str_format(b.why[l], sizeof(b.why[l]), "not measured: %s", err_message(&why));
        if (e == ERR_OK &&
            (one != ERR_USAGE || o->only.n)) /* a layer that is not there was not asked for, unless by name */
            e = err_set(ei, one == ERR_SAFETY ? one : ERR_ENV, "%s: %s", layers[l].name, err_message(&why));
    }
    ctx->on_interrupt = NULL;
    fputc('\n', ctx->out);
    print_table(&b, &o->only, ctx->out);
    print_slowest(&b, ctx->out);
    write_json(&b, ctx->result);
    for (unsigned i = 0; i < BASE_COUNT; i++)
        if (b.known[i])
            result_figure(ctx->result, "baseline", rows[i].key, b.value[i], 1);
    return e;
}

static void sample(struct result *r)
{
    for (unsigned i = 0; i < BASE_COUNT; i++)
        result_figure(r, "baseline", rows[i].key, 1, 1);
}

const struct command cmd_baseline = {
    .name = "baseline",
    .summary = "disk, network, Postgres, Redis, store and drive, layer by layer; names the slowest link",
    .usage = "sim baseline [--only LAYERS] [options]",
    .examples = "sim baseline\n"
                "sim baseline --only disk,postgres --time 10s --dir /var/lib/postgresql\n"
                "sim baseline --iperf staging.internal --allow-host staging.internal\n"
                "sim baseline --fail-on 'baseline.drive_saves_per_s>50' --json baseline.json",
    .opts = opts,
    .conf_size = sizeof(struct baseline_options),
    .defaults = &defaults,
    .flags = CMD_LOADS,
    .verify = verify,
    .run = run,
    .sample = sample,
};
