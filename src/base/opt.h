#ifndef BASE_OPT_H
#define BASE_OPT_H
/* The command line as tables: positional arguments and options fill a struct at given offsets. Parsing never exits and
 * never prints: it returns ERR_USAGE with a sentence that names the argument and what it takes. Layer 0. */
#include "base/str.h"
#include <stddef.h>
#include <stdio.h>

enum opt_type {
    OPT_FLAG,     /* bool, no value */
    OPT_INT,      /* int64_t within [min,max] */
    OPT_NUM,      /* double within [min,max], '.' whatever the locale */
    OPT_DURATION, /* int64_t microseconds: 500ms, 30s, 5min, 2h; a bare number is seconds */
    OPT_SIZE,     /* int64_t bytes: 512, 64KiB, 200MiB, 1GiB */
    OPT_STR,      /* const char *, borrowed from argv */
    OPT_LIST      /* struct opt_list: may be repeated */
};
struct opt_list {
    const char **items;
    size_t n;
}; /* the array is owned by the list: opt_done frees it */
/* The words of a list whose items are each "a,b": struct opt_words w = {list}; while (opt_words_next(&w, &word)) … */
struct opt_words {
    const struct opt_list *list;
    size_t at;
    struct sv rest;
};
bool opt_words_next(struct opt_words *w, struct sv *word); /* word: trimmed, borrowed from the list */
struct opt {
    const char *name; /* "json": given as --json FILE or --json=FILE; at a time: --bulk@30 */
    char letter;      /* 'n' for -n, or 0 */
    const char *arg;  /* "FILE"; NULL for a flag */
    enum opt_type type;
    size_t offset;    /* offsetof(struct …_conf, field) */
    double min, max;  /* both 0: no bounds; in the field's unit (us, bytes); max 1e300: none above */
    const char *help; /* may have several lines */
};
struct opt_pos {        /* a positional argument */
    const char *name;   /* "apps" */
    enum opt_type type; /* INT NUM DURATION SIZE STR; LIST takes all that remain */
    size_t offset;
    double min, max;
    bool optional;
    const char *help;
};
struct opt_table {
    const struct opt_pos *pos;
    const struct opt *opts;
    size_t offset;
}; /* each array ends with {0} */
/* Fills base (already holding the defaults) from argv[1..argc). Several tables may share one line: each table's offsets
 * are relative to (char *)base + offset of the table. *help is set, and nothing else judged, when -h or --help stands
 * anywhere before "--". */
enum err opt_parse(int argc, char **argv, const struct opt_table *tables, size_t n, void *base, bool *help,
                   struct errinfo *ei) WARN_UNUSED;
void opt_done(const struct opt_table *tables, size_t n, void *base);
/* Aligned help text for the tables' positionals and options. */
void opt_print_help(FILE *out, const struct opt_table *tables, size_t n);
/* Edit distance between two short words: letters put in, left out, changed, or two swapped (optimal string alignment).
 */
size_t opt_distance(const char *a, const char *b);
/* What a word that is no name was meant to be: the nearest of the names tried, at most two slips away, one where the
 * word is short. guess: "; did you mean 'save'?" behind a sentence, or "". */
struct opt_guess {
    char word[48], name[64]; /* name "": none is near */
    size_t distance;
    char guess[96];
};
void opt_guess_init(struct opt_guess *g, struct sv word);
void opt_guess_try(struct opt_guess *g, const char *name);
const char *opt_guess_text(struct opt_guess *g); /* lasts as long as g */
/* As options of those types take them. ERR_USAGE says only that it is none. */
enum err opt_parse_duration(struct sv s, int64_t *us) WARN_UNUSED;
enum err opt_parse_size(struct sv s, int64_t *bytes) WARN_UNUSED;
#endif
