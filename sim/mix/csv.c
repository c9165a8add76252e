#include "sim/mix/csv.h"
#include <errno.h>
#include <string.h>

void csv_init(struct csv *c, FILE *f, const char *name)
{
    *c = (struct csv){.f = f, .name = name};
    buf_init(&c->text, CSV_RECORD_MOST);
}

void csv_done(struct csv *c)
{
    buf_done(&c->text);
}

struct sv csv_field(const struct csv *c, unsigned i)
{
    size_t from = i ? c->ends[i - 1] : 0;
    return i < c->n ? sv_trim((struct sv){buf_cstr(&c->text) + from, c->ends[i] - from}) : (struct sv){"", 0};
}

static void end_field(struct csv *c)
{
    if (c->n < CSV_FIELDS_MOST)
        c->ends[c->n++] = c->text.len;
}

static bool is_separator(struct csv *c, int ch)
{
    if (!c->sep && ch > 0 && strchr(",;\t|", ch))
        c->sep = (char)ch;
    return c->sep && ch == c->sep;
}

/* Nothing but blanks since the field began. */
static bool at_start(const struct csv *c)
{
    size_t from = c->n ? c->ends[c->n - 1] : 0;
    return c->n < CSV_FIELDS_MOST && sv_trim((struct sv){buf_cstr(&c->text) + from, c->text.len - from}).n == 0;
}

static enum err wrong(const struct csv *c, const char *what, struct errinfo *ei)
{
    return err_set(ei, ERR_USAGE, "%s line %llu: %s", c->name, (unsigned long long)c->line, what);
}

static enum err put(struct csv *c, int ch, struct errinfo *ei)
{
    if (buf_append_char(&c->text, (char)ch))
        return wrong(c, "longer than 1 MiB: is a quote missing?", ei);
    if (c->line == 1 && c->n == 0 && sv_eq_cstr((struct sv){buf_cstr(&c->text), c->text.len}, "\xef\xbb\xbf"))
        buf_reset(&c->text); /* the mark that some programs begin UTF-8 with */
    return ERR_OK;
}

static const char no_text[] = "a byte of 0: this is no text in UTF-8";

/* What a byte outside of quotes, or one within, is to the record. */
enum step { MORE, QUOTE, END };

static enum err plain(struct csv *c, int ch, enum step *next, struct errinfo *ei)
{
    *next = MORE;
    if (ch == '\0')
        return wrong(c, no_text, ei);
    if (ch == '\n' || ch == EOF)
        *next = END;
    else if (ch == '"' && at_start(c))
        *next = QUOTE;
    else if (is_separator(c, ch))
        end_field(c);
    else if (c->n < CSV_FIELDS_MOST)
        return put(c, ch, ei);
    return ERR_OK;
}

static enum err quoted(struct csv *c, int ch, enum step *next, struct errinfo *ei)
{
    *next = QUOTE;
    if (ch == '\0')
        return wrong(c, no_text, ei);
    if (ch == EOF)
        return wrong(c, "a quote that is not closed", ei);
    if (ch == '\n')
        c->behind++;
    if (ch == '"') {
        int then = getc(c->f);
        if (then != '"') {
            ungetc(then, c->f);
            *next = MORE;
            return ERR_OK;
        }
    }
    return put(c, ch, ei);
}

/* Outside of quotes LF, CRLF and CR alone end a line. */
static int next_char(struct csv *c, enum step step)
{
    int ch = getc(c->f);
    if (ch != '\r' || step == QUOTE)
        return ch;
    int then = getc(c->f);
    if (then != '\n')
        ungetc(then, c->f);
    return '\n';
}

static enum err read_record(struct csv *c, bool *more, struct errinfo *ei)
{
    enum step step = MORE;
    enum err err = ERR_OK;
    int ch = EOF;
    buf_reset(&c->text);
    c->n = 0;
    c->line = c->behind + 1;
    while (!err && step != END) {
        ch = next_char(c, step);
        err = step == QUOTE ? quoted(c, ch, &step, ei) : plain(c, ch, &step, ei);
    }
    if (ch == '\n')
        c->behind++;
    end_field(c);
    *more = ch != EOF || c->text.len > 0 || c->n > 1;
    return err;
}

enum err csv_next(struct csv *c, bool *more, struct errinfo *ei)
{
    enum err err;
    do
        err = read_record(c, more, ei);
    while (!err && *more && c->n <= 1 && csv_field(c, 0).n == 0);
    if (!err && ferror(c->f))
        err = err_sys(ei, ERR_IO, "cannot read %s", c->name);
    return err;
}
