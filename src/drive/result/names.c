/* What a command reports beside the figures of every command, read off a sample of its result. */
#include "base/mem.h"
#include "drive/result/result.h"
#include <string.h>

#define WIDTH  110
#define INDENT 4

struct lines { /* words, broken between two of them */
    FILE *out;
    size_t column;
};

static void put(struct lines *l, const char *prefix, const char *word)
{
    size_t n = strlen(prefix) + strlen(word);

    if (l->column + n + 1 > WIDTH) {
        fprintf(l->out, "\n%*s", INDENT, "");
        l->column = INDENT;
    }
    l->column += n + 1;
    fprintf(l->out, " %s%s", prefix, word);
}

static void begin(struct lines *l, const char *text)
{
    l->column = (size_t)fprintf(l->out, "  %s", text);
}

static bool seen_before(const struct result *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(r->figures[k].section, r->figures[i].section) == 0)
            return true;
    return false;
}

static void print_section(const struct result *r, const char *section, struct lines *l)
{
    char name[64];

    snprintf(name, sizeof name, "%s.", section);
    begin(l, name);
    for (size_t i = 0; i < r->n_figures; i++)
        if (strcmp(r->figures[i].section, section) == 0)
            put(l, "", r->figures[i].key);
    fputc('\n', l->out);
}

/* "rows", "alone.p50_ms": the numbers of a row and of what is in it. */
static void put_numbers(struct lines *l, const struct json *row, const char *prefix)
{
    char below[64];

    for (const struct json *v = json_first(row); v; v = json_next(v)) {
        snprintf(below, sizeof below, "%s%s.", prefix, json_key(v));
        if (strcmp(json_key(v), PERCENTILES_FEW) == 0)
            continue;
        if (json_is_object(v))
            put_numbers(l, v, below);
        else if (json_is_number(v) || (json_is_null(v) && strstr(below, "_ms"))) /* a time without samples */
            put(l, prefix, json_key(v));
    }
}

/* A part is a table, each member a row of the same figures, or it holds its figures itself. */
static void print_part(const struct result_part *p, struct lines *l)
{
    struct json *part = NULL;
    char name[64];

    if (json_parse(p->json, strlen(p->json), &part, NULL))
        return;
    bool table = json_is_object(json_first(part));
    snprintf(name, sizeof name, table ? "%s.ROW." : "%s.", p->key);
    begin(l, name);
    put_numbers(l, table ? json_first(part) : part, "");
    fputc('\n', l->out);
    if (table)
        begin(l, "  ROW:");
    for (const struct json *row = json_first(part); row && table; row = json_next(row))
        put(l, "", json_key(row));
    if (table)
        fputc('\n', l->out);
    json_free(&part);
}

void result_print_names(void (*sample)(struct result *r), FILE *out)
{
    struct lines l = {out, 0};
    struct result *r = mem_alloc(sizeof(*r));

    result_init(r, "sample");
    sample(r);
    for (size_t i = 0; i < r->n_figures; i++)
        if (!seen_before(r, i))
            print_section(r, r->figures[i].section, &l);
    for (size_t i = 0; i < r->n_parts; i++)
        print_part(&r->parts[i], &l);
    result_done(r);
    mem_free(r);
}
