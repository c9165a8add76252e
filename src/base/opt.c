#include "base/opt.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a positional and an option have in common once found: how to read a value and where it goes. */
struct slot {
    const char *label; /* "--json" or "<apps>" */
    enum opt_type type;
    void *field;
    double min, max;
};

static bool bounded(const struct slot *s)
{
    return s->min != 0 || s->max != 0;
}

struct unit {
    const char *name;
    double factor;
};

static const struct unit duration_units[] = {{"us", 1},   {"ms", 1e3},   {"s", 1e6},     {"min", 60e6},
                                             {"m", 60e6}, {"h", 3600e6}, {"d", 86400e6}, {NULL, 0}};
static const struct unit size_units[] = {{"B", 1},
                                         {"KiB", 1024},
                                         {"MiB", 1048576},
                                         {"GiB", 1073741824},
                                         {"TiB", 1099511627776},
                                         {"K", 1024},
                                         {"M", 1048576},
                                         {"G", 1073741824},
                                         {"kB", 1e3},
                                         {"KB", 1e3},
                                         {"MB", 1e6},
                                         {"GB", 1e9},
                                         {"TB", 1e12},
                                         {NULL, 0}};

/* A non-negative number with a unit; bare is the factor without one. */
static enum err parse_scaled(struct sv s, const struct unit *units, double bare, int64_t *out)
{
    size_t digits = 0;
    if (s.n == 0)
        return ERR_USAGE;
    while (digits < s.n && memchr("0123456789.", s.p[digits], 11))
        digits++;
    struct sv unit = {s.p + digits, s.n - digits};
    double v, factor = unit.n ? 0 : bare;

    for (; units->name && unit.n; units++)
        if (sv_eq_cstr(unit, units->name))
            factor = units->factor;
    if (factor == 0 || !sv_to_f64((struct sv){s.p, digits}, &v))
        return ERR_USAGE;
    v = round(v * factor);
    if (v >= 0x1p63)
        return ERR_USAGE;
    *out = (int64_t)v;
    return ERR_OK;
}

enum err opt_parse_duration(struct sv s, int64_t *us)
{
    return parse_scaled(s, duration_units, 1e6, us);
}

enum err opt_parse_size(struct sv s, int64_t *bytes)
{
    return parse_scaled(s, size_units, 1, bytes);
}

static const char *format_bound(char *dst, size_t n, enum opt_type type, double v)
{
    if (type == OPT_DURATION)
        return str_duration(dst, n, (int64_t)v);
    if (type == OPT_SIZE)
        return str_bytes(dst, n, (uint64_t)v);
    str_format(dst, n, type == OPT_INT ? "%.0f" : "%.10g", v);
    return dst;
}

static const char *type_text(enum opt_type type)
{
    switch (type) {
    case OPT_INT:
        return "a whole number";
    case OPT_NUM:
        return "a number";
    case OPT_DURATION:
        return "a time such as 500ms, 30s, 5min or 2h";
    case OPT_SIZE:
        return "a size such as 512, 64KiB or 200MiB";
    default:
        return "a value";
    }
}

static enum err refuse(const struct slot *s, const char *value, struct errinfo *ei)
{
    char low[40], high[40], range[96] = "";

    if (s->max >= 1e300)
        str_format(range, sizeof range, " of at least %s", format_bound(low, sizeof low, s->type, s->min));
    else if (bounded(s))
        str_format(range, sizeof range, " from %s to %s", format_bound(low, sizeof low, s->type, s->min),
                   format_bound(high, sizeof high, s->type, s->max));
    return err_set(ei, ERR_USAGE, "%s takes %s%s, not \"%s\"", s->label, type_text(s->type), range,
                   SHOWN(sv_of(value)));
}

static enum err store_number(const struct slot *s, const char *value, struct errinfo *ei)
{
    int64_t whole = 0;
    double num = 0;
    bool good;

    switch (s->type) {
    case OPT_INT:
        good = sv_to_i64(sv_of(value), &whole);
        break;
    case OPT_NUM:
        good = sv_to_f64(sv_of(value), &num);
        break;
    case OPT_DURATION:
        good = opt_parse_duration(sv_of(value), &whole) == ERR_OK;
        break;
    default:
        good = opt_parse_size(sv_of(value), &whole) == ERR_OK;
        break;
    }
    double judged = s->type == OPT_NUM ? num : (double)whole;
    if (!good || (bounded(s) && (judged < s->min || judged > s->max)))
        return refuse(s, value, ei);
    if (s->type == OPT_NUM)
        *(double *)s->field = num;
    else
        *(int64_t *)s->field = whole;
    return ERR_OK;
}

static enum err store(const struct slot *s, const char *value, struct errinfo *ei)
{
    struct opt_list *list = s->field;

    switch (s->type) {
    case OPT_FLAG:
        *(bool *)s->field = true;
        return ERR_OK;
    case OPT_STR:
        *(const char **)s->field = value;
        return ERR_OK;
    case OPT_LIST:
        list->items = mem_realloc_array(list->items, list->n + 1, sizeof *list->items);
        list->items[list->n++] = value;
        return ERR_OK;
    default:
        return store_number(s, value, ei);
    }
}

struct parser {
    const struct opt_table *tables;
    size_t n;
    void *base;
    struct errinfo *ei;
    int argc, at; /* at: the next argument */
    char **argv;
    char label[64];
};

static void *field_at(const struct parser *p, size_t table, size_t offset)
{
    return (char *)p->base + p->tables[table].offset + offset;
}

static const struct opt *find_opt(struct parser *p, struct sv name, char letter, struct slot *slot)
{
    for (size_t t = 0; t < p->n; t++)
        for (const struct opt *o = p->tables[t].opts; o && o->name; o++)
            if (letter ? o->letter == letter : sv_eq_cstr(name, o->name)) {
                if (letter)
                    str_format(p->label, sizeof p->label, "-%c", letter);
                else
                    str_format(p->label, sizeof p->label, "--%s", o->name);
                *slot = (struct slot){p->label, o->type, field_at(p, t, o->offset), o->min, o->max};
                return o;
            }
    return NULL;
}

size_t opt_distance(const char *a, const char *b)
{
    size_t rows[3][64], n = strlen(b);

    if (n >= ARRAY_LEN(rows[0]))
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    size_t i = 0;
    for (; a[i]; i++) {
        size_t *last = rows[i % 3], *row = rows[(i + 1) % 3], *before = rows[(i + 2) % 3];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = last[j] + (a[i] != b[j]);
            best = last[j + 1] + 1 < best ? last[j + 1] + 1 : best;
            best = row[j] + 1 < best ? row[j] + 1 : best;
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] && before[j - 1] + 1 < best)
                best = before[j - 1] + 1;
            row[j + 1] = best;
        }
    }
    return rows[i % 3][n];
}

void opt_guess_init(struct opt_guess *g, struct sv word)
{
    *g = (struct opt_guess){.distance = word.n < 4 ? 2 : 3};
    str_format(g->word, sizeof g->word, SV_FMT, (int)utf8_cut(word, sizeof g->word - 1), word.p);
}

void opt_guess_try(struct opt_guess *g, const char *name)
{
    size_t distance = opt_distance(g->word, name);

    if (distance >= g->distance || distance >= strlen(name)) /* a name of two letters is not near to any other */
        return;
    g->distance = distance;
    str_format(g->name, sizeof g->name, "%s", name);
}

const char *opt_guess_text(struct opt_guess *g)
{
    if (g->name[0])
        str_format(g->guess, sizeof g->guess, "; did you mean '%s'?", g->name);
    return g->guess;
}

static enum err unknown_opt(struct parser *p, struct sv name)
{
    struct opt_guess g;

    opt_guess_init(&g, name);
    for (size_t t = 0; t < p->n; t++)
        for (const struct opt *o = p->tables[t].opts; o && o->name; o++)
            opt_guess_try(&g, o->name);
    return err_set(p->ei, ERR_USAGE, g.name[0] ? "unknown option --%s; did you mean --%s?" : "unknown option --%s",
                   SHOWN(name), g.name);
}

/* The value that follows an option: glued to it (value set) or the next argument. */
static enum err take_value(struct parser *p, const struct opt *o, const struct slot *slot, const char *value)
{
    if (!value && p->at < p->argc && strncmp(p->argv[p->at], "--", 2) != 0)
        value = p->argv[p->at++];
    if (!value)
        return err_set(p->ei, ERR_USAGE, "%s needs %s", slot->label, o->arg ? o->arg : "a value");
    return store(slot, value, p->ei);
}

static enum err parse_long(struct parser *p, const char *text)
{
    struct sv name = {text, strcspn(text, "=@")};
    const char *equals = text[name.n] ? text + name.n : NULL;
    struct slot slot;
    const struct opt *o = find_opt(p, name, 0, &slot);

    if (!o)
        return unknown_opt(p, name);
    if (o->type != OPT_FLAG)
        return take_value(p, o, &slot, equals ? equals + 1 : NULL);
    if (equals)
        return err_set(p->ei, ERR_USAGE, "--%s takes no value", o->name);
    return store(&slot, NULL, p->ei);
}

/* "-kc16": flags may share a dash, a value may be glued to its letter. */
static enum err parse_letters(struct parser *p, const char *text)
{
    for (; *text; text++) {
        struct slot slot;
        const struct opt *o = find_opt(p, SV(""), *text, &slot);
        if (!o && (unsigned char)*text > ' ' && (unsigned char)*text < 0x7F)
            return err_set(p->ei, ERR_USAGE, "unknown option -%c", *text);
        if (!o)
            return err_set(p->ei, ERR_USAGE, "unknown option -\\x%02x", (unsigned char)*text);
        if (o->type != OPT_FLAG)
            return take_value(p, o, &slot, text[1] ? text + 1 : NULL);
        enum err err = store(&slot, NULL, p->ei);
        if (err)
            return err;
    }
    return ERR_OK;
}

static bool looks_negative(const char *arg)
{
    return arg[0] == '-' && ((arg[1] >= '0' && arg[1] <= '9') || arg[1] == '.');
}

static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1] && !looks_negative(arg);
}

/* The positionals of all tables are one row. index counts within it. */
static const struct opt_pos *find_pos(struct parser *p, size_t index, struct slot *slot)
{
    for (size_t t = 0; t < p->n; t++)
        for (const struct opt_pos *pos = p->tables[t].pos; pos && pos->name; pos++) {
            if (index && pos->type != OPT_LIST) {
                index--;
                continue;
            }
            str_format(p->label, sizeof p->label, "<%s>", pos->name);
            *slot = (struct slot){p->label, pos->type, field_at(p, t, pos->offset), pos->min, pos->max};
            return pos;
        }
    return NULL;
}

static enum err store_positional(struct parser *p, size_t index, const char *arg)
{
    struct slot slot;

    if (find_pos(p, index, &slot))
        return store(&slot, arg, p->ei);
    return err_set(p->ei, ERR_USAGE, "unexpected argument \"%s\"", SHOWN(sv_of(arg)));
}

static bool help_wanted(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

/* The help may be of several lines; an error is one, and the first says what it is. */
static enum err err_missing(const struct opt_pos *pos, struct errinfo *ei)
{
    return err_set(ei, ERR_USAGE, "missing <%s>: %.*s", pos->name, (int)strcspn(pos->help, "\n"), pos->help);
}

enum err opt_parse(int argc, char **argv, const struct opt_table *tables, size_t n, void *base, bool *help,
                   struct errinfo *ei)
{
    struct parser p = {.tables = tables, .n = n, .base = base, .ei = ei, .argc = argc, .at = 1, .argv = argv};
    size_t given = 0;
    bool only_positionals = false;
    struct slot slot;

    *help = help_wanted(argc, argv);
    if (*help)
        return ERR_OK;
    while (p.at < argc) {
        const char *arg = argv[p.at++];
        enum err err = ERR_OK;
        if (only_positionals || !is_option(arg))
            err = store_positional(&p, given++, arg);
        else if (strcmp(arg, "--") == 0)
            only_positionals = true;
        else
            err = arg[1] == '-' ? parse_long(&p, arg + 2) : parse_letters(&p, arg + 1);
        if (err)
            return err;
    }
    const struct opt_pos *missing = find_pos(&p, given, &slot);
    if (missing && !missing->optional && (missing->type != OPT_LIST || !((struct opt_list *)slot.field)->n))
        return err_missing(missing, ei);
    return ERR_OK;
}

bool opt_words_next(struct opt_words *w, struct sv *word)
{
    while (!sv_split(&w->rest, ',', word)) {
        if (w->at == w->list->n)
            return false;
        w->rest = sv_of(w->list->items[w->at++]);
    }
    *word = sv_trim(*word);
    return true;
}

void opt_done(const struct opt_table *tables, size_t n, void *base)
{
    for (size_t t = 0; t < n; t++) {
        char *fields = (char *)base + tables[t].offset;
        for (const struct opt *o = tables[t].opts; o && o->name; o++)
            if (o->type == OPT_LIST) {
                struct opt_list *list = (void *)(fields + o->offset);
                MEM_FREE(list->items);
                list->n = 0;
            }
        for (const struct opt_pos *pos = tables[t].pos; pos && pos->name; pos++)
            if (pos->type == OPT_LIST) {
                struct opt_list *list = (void *)(fields + pos->offset);
                MEM_FREE(list->items);
                list->n = 0;
            }
    }
}

#define HELP_COLUMN 26

static void print_row(FILE *out, const char *left, const char *help)
{
    const char *line = help;
    bool own_line = strlen(left) > HELP_COLUMN - 2;

    fprintf(out, "  %-*s", own_line ? 0 : HELP_COLUMN, left);
    if (own_line)
        fprintf(out, "\n  %*s", HELP_COLUMN, "");
    for (const char *end; (end = strchr(line, '\n')); line = end + 1)
        fprintf(out, "%.*s\n  %*s", (int)(end - line), line, HELP_COLUMN, "");
    fprintf(out, "%s\n", line);
}

void opt_print_help(FILE *out, const struct opt_table *tables, size_t n)
{
    char left[96];

    for (size_t t = 0; t < n; t++)
        for (const struct opt_pos *pos = tables[t].pos; pos && pos->name; pos++) {
            str_format(left, sizeof left, pos->optional ? "[%s]%s" : "<%s>%s", pos->name,
                       pos->type == OPT_LIST ? "…" : "");
            print_row(out, left, pos->help);
        }
    for (size_t t = 0; t < n; t++)
        for (const struct opt *o = tables[t].opts; o && o->name; o++) {
            char letter[6] = "    ";
            if (o->letter)
                str_format(letter, sizeof letter, "-%c, ", o->letter);
            str_format(left, sizeof left, "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
            print_row(out, left, o->help);
        }
}
