/* What one command alone reports row by row: the reads, the refusals, the stages of a plain request. A table each, made
 * of an object of the JSON whose members are the rows. */
#include "base/mem.h"
#include "drive/result/html.h"
#include <string.h>

#define COLUMNS 12

struct shown_rows {
    const char *key, *title, *caption; /* key: of the object */
    size_t texts;                      /* so many columns in front are text */
    struct column {
        const char *name, *path; /* path "": the row's own key; it is there in every row of the table */
        int decimals;
    } columns[COLUMNS];
};
static const struct shown_rows tables[] = {
    {"reads",
     "Reads",
     "In ms, alone and beside apps at work; the answer as compared with the database",
     2,
     {{"read", "what", 0},
      {"answer", "answer", 0},
      {"rows", "rows", 0},
      {"alone p50", "alone.p50_ms", 1},
      {"p95", "alone.p95_ms", 1},
      {"p99", "alone.p99_ms", 1},
      {"slowest", "alone.max_ms", 1},
      {"load p50", "load.p50_ms", 1},
      {"p95", "load.p95_ms", 1},
      {"p99", "load.p99_ms", 1},
      {"slowest", "load.max_ms", 1}}},
    {"refusals",
     "Refusals",
     "What was asked for, and how it was refused; times in ms",
     3,
     {{"asked for", "asked", 0},
      {"verdict", "verdict", 0},
      {"reason that arrived", "reason", 0},
      {"expected", "expected_status", 0},
      {"status", "status", 0},
      {"tries", "tries", 0},
      {"ok", "ok", 0},
      {"p50", "p50_ms", 1},
      {"p95", "p95_ms", 1},
      {"slowest", "max_ms", 1}}},
    {"http",
     "Stages of a request",
     "In ms",
     1,
     {{"stage", "", 0},
      {"least", "min", 3},
      {"mean", "mean", 3},
      {"deviation", "sd", 3},
      {"p50", "p50", 3},
      {"p90", "p90", 3},
      {"p95", "p95", 3},
      {"p99", "p99", 3},
      {"slowest", "p100", 3}}},
};

/* "alone.p50_ms": the object that holds it, and its last name. */
static const struct json *holder_of(const struct json *row, const char *path, const char **key)
{
    const char *dot = strchr(path, '.');
    char first[40];
    *key = dot ? dot + 1 : path;
    if (!dot)
        return row;
    str_format(first, sizeof(first), "%.*s", (int)(dot - path), path);
    return json_get(row, first);
}

static const struct json *cell_of(const struct json *row, const char *path)
{
    const char *key;
    const struct json *holder = holder_of(row, path, &key);
    return json_get(holder, key);
}

/* "from_due_ms" is "from due". */
static void put_key(struct markup *m, const char *key)
{
    struct sv k = sv_of(key);
    char text[80];
    str_format(text, sizeof(text), "%.*s", (int)(sv_ends(k, SV("_ms")) ? k.n - 3 : k.n), key);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    html_cell(m, text);
}

static void put_row(struct markup *m, const struct shown_rows *t, const struct json *row)
{
    markup_put(m, "<tr>");
    for (size_t i = 0; i < COLUMNS && t->columns[i].name; i++) {
        const struct column *c = &t->columns[i];
        const char *name;
        const struct json *holder = holder_of(row, c->path, &name), *cell = json_get(holder, name);
        if (!c->path[0])
            put_key(m, json_key(row));
        else if (i < t->texts)
            html_cell(m, json_str(cell) ? json_str(cell) : "");
        else
            html_percentile(m, holder, name, c->decimals);
    }
    markup_put(m, "</tr>\n");
}

static bool is_row(const struct shown_rows *t, const struct json *v)
{
    const char *path = t->columns[0].path[0] ? t->columns[0].path : t->columns[1].path;
    return json_is_object(v) && json_key(v) && cell_of(v, path);
}

static void put_table(struct markup *m, const struct shown_rows *t, const struct json *rows)
{
    const char *names[COLUMNS];
    size_t n = 0;
    const struct json *row = json_first(rows);
    while (row && !is_row(t, row))
        row = json_next(row);
    if (!row)
        return;
    while (n < COLUMNS && t->columns[n].name) {
        names[n] = t->columns[n].name;
        n++;
    }
    markup_put(m, "<section><h2>");
    markup_text(m, t->title);
    markup_put(m, "</h2>\n");
    html_table(m, t->caption, names, n, t->texts);
    for (; row; row = json_next(row))
        if (is_row(t, row))
            put_row(m, t, row);
    html_table_end(m);
    markup_put(m, HTML_FEW "</section>\n");
}

/* ---- figures ---- */

/* What every command tells of itself, or what stands elsewhere on the page. */
static bool is_common(const char *key)
{
    static const char *const common[] = {"causes", "apps",    "generator", "sessions", "server",
                                         "events", "outages", "verdict",   "error",    "capabilities"};
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        if (strcmp(key, common[i]) == 0)
            return true;
    return false;
}

/* A section of figures holds numbers alone. */
static bool is_section(const struct json *v)
{
    const struct json *figure = json_first(v);
    if (!json_is_object(v) || !json_key(v) || is_common(json_key(v)) || !figure)
        return false;
    while (figure && (json_is_number(figure) || strcmp(json_key(figure), PERCENTILES_FEW) == 0))
        figure = json_next(figure);
    return !figure;
}

static void put_section(struct markup *m, const struct json *section)
{
    double n;
    for (const struct json *figure = json_first(section); figure; figure = json_next(figure)) {
        if (!json_f64(figure, &n))
            continue;
        markup_put(m, "<tr>");
        put_key(m, json_key(section));
        put_key(m, json_key(figure));
        uint64_t samples, needs;
        markup_putf(m, "<td class=\"n\">%s%.10g</td></tr>\n",
                    few_read(section, json_key(figure), &samples, &needs) ? "~" : "", n);
    }
}

/* Of a command that makes figures, they are what it was called for. */
static void put_figures(struct markup *m, const struct doc *d)
{
    static const char *const names[] = {"of", "figure", "value"};
    bool any = false;
    for (const struct json *v = json_first(d->root); v; v = json_next(v)) {
        if (!is_section(v))
            continue;
        if (!any) {
            markup_put(m, "<section><h2>Figures</h2>\n");
            html_table(m, "What this command measured", names, ARRAY_LEN(names), 2);
        }
        put_section(m, v);
        any = true;
    }
    if (!any)
        return;
    html_table_end(m);
    markup_put(m, "</section>\n");
}

void html_rows(struct markup *m, const struct doc *d)
{
    put_figures(m, d);
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        put_table(m, &tables[i], json_get(d->root, tables[i].key));
}
