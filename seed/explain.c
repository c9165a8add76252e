/* seed --explain: what was drawn beside what was asked for, so that nobody has to take the word "production-shaped". */
#include "base/mem.h"
#include "base/utf8.h"
#include "drive/cmd.h"
#include "seed/seed.h"
#include <math.h>
#include <string.h>

#define BAR 32

/* One line: label, made, target, and a bar of made with the target marked. */
static void row(FILE *out, const char *label, double made, double target, double scale)
{
    char bar[BAR + 2], a[32], b[32];
    size_t n = scale > 0 ? (size_t)(made / scale * BAR + 0.5) : 0, mark = (size_t)(target / scale * BAR + 0.5);
    memset(bar, ' ', BAR + 1);
    bar[BAR + 1] = '\0';
    memset(bar, '#', n < BAR ? n : BAR);
    if (scale > 0 && target >= 0)
        bar[mark < BAR ? mark : BAR] = '|';
    fprintf(out, "  %-12s %9s %9s  %s\n", label, str_thousands(a, sizeof a, (uint64_t)(made + 0.5)),
            target >= 0 ? str_thousands(b, sizeof b, (uint64_t)(target + 0.5)) : "-", bar);
}

static void head(FILE *out, const char *title, const char *source)
{
    fprintf(out, "\n%s (%s)\n  %-12s %9s %9s\n", title, source, "", "made", "target");
}

struct histogram {
    const char *labels[16];
    double made[16], target[16];
    size_t n;
};

static void print_histogram(FILE *out, const struct histogram *h)
{
    double most = 1;
    for (size_t i = 0; i < h->n; i++) {
        most = h->made[i] > most ? h->made[i] : most;
        most = h->target[i] > most ? h->target[i] : most;
    }
    for (size_t i = 0; i < h->n; i++)
        row(out, h->labels[i], h->made[i], h->target[i], most);
}

static void explain_counts(const struct planned *t, FILE *out)
{
    struct shape_counts c = shape_counts_of(t->conf.scale);
    uint32_t files = 0, hot = 0, hot_files = 0;
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        files += t->folders[i].n_files;
        hot += t->folders[i].hot;
        hot_files += t->folders[i].hot ? t->folders[i].n_files : 0;
    }
    head(out, "counts", "exact at every scale");
    row(out, "folders", t->counts.folders, c.folders, t->counts.folders);
    row(out, "files", files, c.files, files);
    row(out, "hot folders", hot, c.hot_folders, t->counts.folders);
    row(out, "their files", hot_files, c.hot_files, files);
    fprintf(out, "  %-12s %9u %9u\n", "deepest", t->depth, SHAPE_DEPTH_MAX);
}

static void explain_depths(const struct planned *t, FILE *out)
{
    static const char *const labels[] = {"", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"};
    double folders[SHAPE_DEPTH_MAX + 1], share[SHAPE_DEPTH_MAX + 1];
    struct histogram by_folder = {.n = SHAPE_DEPTH_MAX}, by_file = {.n = SHAPE_DEPTH_MAX};
    shape_depth_expected(t->counts.folders, folders);
    shape_file_depth_target(t->depth, share);
    for (unsigned d = 1; d <= SHAPE_DEPTH_MAX; d++) {
        by_folder.labels[d - 1] = by_file.labels[d - 1] = labels[d];
        by_folder.target[d - 1] = folders[d];
        by_file.target[d - 1] = share[d] * t->counts.files;
    }
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        by_folder.made[t->folders[i].depth - 1]++;
        by_file.made[t->folders[i].depth - 1] += t->folders[i].n_files;
    }
    head(out, "folders by depth", "parent drawn by its subfolders + 2, cut at 10: expected value");
    print_histogram(out, &by_folder);
    head(out, "files by depth", "Poisson, mean 6.49, cut at the deepest folder");
    print_histogram(out, &by_file);
}

static void explain_files_a_folder(const struct planned *t, FILE *out)
{
    static const struct {
        const char *label;
        unsigned from, to;
    } bins[] = {{"none", 0, 0},    {"1", 1, 1},         {"2-3", 2, 3},
                {"4-7", 4, 7},     {"8-15", 8, 15},     {"16-31", 16, 31},
                {"32-63", 32, 63}, {"64-127", 64, 127}, {"128 and more", 128, UINT32_MAX}};
    struct histogram h = {.n = ARRAY_LEN(bins)};
    uint32_t ordinary = t->counts.folders - t->counts.hot_folders;
    double below = 0;
    for (size_t b = 0; b < ARRAY_LEN(bins); b++) {
        h.labels[b] = bins[b].label;
        for (unsigned n = bins[b].from; n <= bins[b].to && bins[b].to != UINT32_MAX; n++)
            h.target[b] += shape_files_probability(n) * ordinary;
        if (bins[b].to == UINT32_MAX)
            h.target[b] = ordinary - below + t->counts.hot_folders;
        below += h.target[b];
        for (uint32_t i = 0; i < t->counts.folders; i++)
            h.made[b] += t->folders[i].n_files >= bins[b].from && t->folders[i].n_files <= bins[b].to;
    }
    head(out, "files a folder", "P(n) = k (n + 2.36)^-2, its tail cut so that the total is exact; hot folders apart");
    print_histogram(out, &h);
}

static void explain_sizes(const struct planned *t, FILE *out)
{
    static const struct {
        const char *label;
        double to;
    } bins[] = {{"empty", 0},           {"to 1 KiB", 1 << 10},  {"to 4 KiB", 1 << 12},
                {"to 16 KiB", 1 << 14}, {"to 64 KiB", 1 << 16}, {"to 256 KiB", 1 << 18},
                {"to 1 MiB", 1 << 20},  {"to 4 MiB", 1 << 22},  {"larger", INFINITY}};
    struct histogram h = {.n = ARRAY_LEN(bins)};
    double files = t->counts.files, filled = files * (1 - 1 / 200.0), before = 0;
    h.target[0] = files / 200;
    for (size_t b = 0; b < ARRAY_LEN(bins); b++) {
        h.labels[b] = bins[b].label;
        if (b > 0) {
            double below = isinf(bins[b].to) ? 1 : shape_size_below(t->conf.preset, t->conf.bytes_scale, bins[b].to);
            h.target[b] = filled * (below - before);
            before = below;
        }
        for (uint32_t i = 0; i < t->counts.files; i++) {
            double size = (double)t->files[i].size;
            h.made[b] += size <= bins[b].to && (b == 0 || size > bins[b - 1].to);
        }
    }
    head(out, "file sizes",
         t->conf.preset == SHAPE_DRIVE ? "lognormal, median 12.5 KiB, capped at 16 MiB"
                                       : "lognormal, mu 9.48, sigma 2.4566, capped at 64 MiB");
    print_histogram(out, &h);
}

static void explain_names(const struct planned *t, FILE *out)
{
    double foreign = 0, spaces = 0, longs = 0, files = t->counts.files;
    size_t longest = 0;
    for (uint32_t i = 0; i < t->counts.files; i++) {
        size_t n = strlen(t->files[i].name);
        foreign += utf8_length(sv_of(t->files[i].name)) != n;
        spaces += strchr(t->files[i].name, ' ') != NULL;
        longs += n > 100;
        longest = n > longest ? n : longest;
    }
    fprintf(out,
            "\nnames: %.0f %% with letters beyond ASCII, %.0f %% with spaces, %.1f %% over 100 bytes, longest %zu\n",
            100 * foreign / files, 100 * spaces / files, 100 * longs / files, longest);
}

/* The figures of the plan, as those of what is made stand in the JSON. */
static void add_plan(const struct planned *t, struct tree_summary *sum)
{
    sum->known = true;
    sum->folders += t->counts.folders;
    sum->bytes += t->bytes;
    sum->depth = t->depth > sum->depth ? t->depth : sum->depth;
    for (uint32_t i = 0; i < t->counts.folders; i++) {
        const struct planned_folder *d = &t->folders[i];
        sum->files += d->n_files;
        sum->hot_folders += d->hot;
        sum->hot_files += d->hot ? d->n_files : 0;
    }
}

static void explain(const struct planned *t, FILE *out)
{
    char manifest[65], bytes[32];
    planned_manifest(t, NULL, 1, true, manifest);
    fprintf(out, "\n%s, scale %g, seed %llu: %s, manifest %s\n", t->email, t->conf.scale,
            (unsigned long long)t->conf.seed, str_bytes(bytes, sizeof bytes, t->bytes), manifest);
    explain_counts(t, out);
    explain_depths(t, out);
    explain_files_a_folder(t, out);
    explain_sizes(t, out);
    explain_names(t, out);
}

void seed_explain(struct seeder *s)
{
    struct tree_summary *sum = &s->ctx->result->tree;
    for (size_t i = 0; i < s->n_accounts; i++) {
        explain(&s->trees[i], s->ctx->out);
        add_plan(&s->trees[i], sum);
    }
    planned_manifest(s->trees, NULL, s->n_accounts, true, sum->manifest_sha256);
}
