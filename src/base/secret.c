/* One sorted table of secrets serves as a trie: a text is read from each of its places, byte by byte in every way it
 * may be encoded, and narrows the range of those that begin so. That finds the longest, whatever its encoding, without
 * a list of encodings for each. */
#include "base/secret.h"
#include "base/mem.h"
#include "base/secret_int.h"
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define DIGITS_MIN    12
#define OWN_WORDS_MAX 64 /* nothing longer is looked for in the program's text */

struct secret {
    unsigned char *p;
    size_t n;
    unsigned uses;
};

static struct {
    pthread_mutex_t lock;
    struct secret *all; /* by bytes, a prefix before what goes on */
    size_t n, cap;
    bool begins[256]; /* whether one begins so */
    bool knows_program;
    atomic_bool any; /* what most calls need to know, without the lock */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the table ---- */

static int compare(struct sv a, const struct secret *b)
{
    int c = memcmp(a.p, b->p, a.n < b->n ? a.n : b->n);
    return c ? c : a.n < b->n ? -1 : a.n > b->n;
}

/* The place of value, or where it would have to stand. */
static size_t place_of(struct sv value, bool *there)
{
    size_t lo = 0, hi = state.n;
    *there = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare(value, &state.all[mid]);
        if (c == 0) {
            *there = true;
            return mid;
        }
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

struct needle {
    struct sv value;
    bool found;
};

/* By hand: what lies between the program's constants is no string, and a sanitizer's guards stand there. */
__attribute__((no_sanitize("address"))) static bool holds(const char *text, size_t n, struct sv value)
{
    for (size_t i = 0; i + value.n <= n; i++) {
        size_t k = 0;
        while (k < value.n && text[i + k] == value.p[k])
            k++;
        if (k == value.n)
            return true;
    }
    return false;
}

/* The first object is the program itself; its constants are mapped to be read alone. */
static int look_in_object(struct dl_phdr_info *o, size_t size, void *arg)
{
    struct needle *x = arg;
    (void)size;
    for (int i = 0; i < o->dlpi_phnum && !x->found; i++) {
        union {
            uintptr_t at;
            const char *text;
        } start = {o->dlpi_addr + o->dlpi_phdr[i].p_vaddr};
        if (o->dlpi_phdr[i].p_type == PT_LOAD && o->dlpi_phdr[i].p_flags == PF_R)
            x->found = holds(start.text, o->dlpi_phdr[i].p_memsz, x->value);
    }
    return 1;
}

static bool own_words(struct sv value)
{
    struct needle x = {value, false};
    if (state.knows_program && value.n <= OWN_WORDS_MAX)
        dl_iterate_phdr(look_in_object, &x);
    return x.found;
}

static bool is_number(struct sv value)
{
    size_t i = 0;
    while (i < value.n && memchr("0123456789.,:-+", value.p[i], 15))
        i++;
    return i == value.n;
}

static bool worth_looking_for(struct sv value)
{
    return !(is_number(value) && value.n < DIGITS_MIN) && !own_words(value);
}

static void insert(size_t at, struct sv value)
{
    if (state.n == state.cap) {
        state.cap = state.cap ? 2 * state.cap : 32;
        state.all = mem_realloc_array(state.all, state.cap, sizeof *state.all);
    }
    memmove(state.all + at + 1, state.all + at, (state.n - at) * sizeof *state.all);
    unsigned char *copy = mem_alloc(value.n);
    memcpy(copy, value.p, value.n);
    state.all[at] = (struct secret){copy, value.n, 1};
    state.n++;
    state.begins[copy[0]] = true;
    atomic_store(&state.any, true);
}

static void add_as_is(struct sv value)
{
    bool there;
    if (value.n < SECRET_MIN)
        return;
    if (value.n > SECRET_MAX)
        value.n = SECRET_MAX;
    pthread_mutex_lock(&state.lock);
    size_t at = place_of(value, &there);
    if (there)
        state.all[at].uses++;
    else if (worth_looking_for(value))
        insert(at, value);
    pthread_mutex_unlock(&state.lock);
}

void secret_drop(struct sv value)
{
    bool there;
    value = sv_trim(value);
    if (value.n < SECRET_MIN)
        return;
    pthread_mutex_lock(&state.lock);
    size_t at = place_of(value, &there);
    if (there && --state.all[at].uses == 0) {
        mem_free(state.all[at].p);
        state.n--;
        memmove(state.all + at, state.all + at + 1, (state.n - at) * sizeof *state.all);
    }
    pthread_mutex_unlock(&state.lock);
}

void secret_add(struct sv value)
{
    add_as_is(sv_trim(value)); /* blanks at its ends are not what it is known by */
}

/* ---- hiding ---- */

struct unit {
    size_t n; /* bytes of text; 0: not this one */
    unsigned char is;
};

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Digits of base up to (not with) an end; n: bytes after them. */
static bool number(struct sv s, size_t at, size_t digits, struct unit *u)
{
    unsigned v = 0;
    for (size_t i = 0; i < digits; i++) {
        int d = at + i < s.n ? hex(s.p[at + i]) : -1;
        if (d < 0)
            return false;
        v = v * 16 + (unsigned)d;
    }
    *u = (struct unit){at + digits, (unsigned char)v};
    return v < 256;
}

static bool entity(struct sv s, struct unit *u)
{
    static const struct {
        const char *text;
        char is;
    } named[] = {{"&amp;", '&'},  {"&lt;", '<'},  {"&gt;", '>'},    {"&quot;", '"'}, {"&apos;", '\''},
                 {"&#39;", '\''}, {"&#34;", '"'}, {"&#x27;", '\''}, {"&#x22;", '"'}, {"&#10;", '\n'}};
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (sv_starts(s, sv_of(named[i].text))) {
            *u = (struct unit){strlen(named[i].text), (unsigned char)named[i].is};
            return true;
        }
    return false;
}

static bool backslash(struct sv s, struct unit *u)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = s.n > 1 ? memchr(from, s.p[1], sizeof from - 1) : NULL;
    if (at) {
        *u = (struct unit){2, (unsigned char)to[at - from]};
        return true;
    }
    return s.n > 1 && ((s.p[1] == 'x' && number(s, 2, 2, u)) || (s.p[1] == 'u' && number(s, 2, 4, u) && u->is < 0x80));
}

/* Whether s may be the beginning of an encoding, of which more is to come. */
static bool unfinished(struct sv s)
{
    static const char quoted[] = "'\\''";
    size_t digits = s.p[0] == '%' ? 1 : s.n > 1 && (s.p[1] == 'x' || s.p[1] == 'u') ? 2 : 0;
    size_t whole = s.p[0] == '%' ? 3 : s.p[0] == '&' || (s.n > 1 && s.p[1] == 'u') ? 6 : 4, i = 1;
    if (!memchr("%&\\'", s.p[0], 4) || s.n >= whole)
        return false;
    if (s.p[0] == '\'')
        return memcmp(s.p, quoted, s.n) == 0;
    if (s.p[0] == '&') {
        while (i < s.n && ((s.p[i] >= 'a' && s.p[i] <= 'z') || hex(s.p[i]) >= 0 || s.p[i] == '#'))
            i++;
        return i == s.n;
    }
    for (i = digits ? digits : 1; i < s.n && hex(s.p[i]) >= 0;)
        i++;
    return i == s.n;
}

/* What stands at the front of s, read as an encoding of one byte. */
static struct unit coded(struct sv s)
{
    struct unit u = {0, 0};
    bool good = false;
    switch (s.p[0]) {
    case '%':
        good = number(s, 1, 2, &u);
        break;
    case '&':
        good = entity(s, &u);
        break;
    case '\\':
        good = backslash(s, &u);
        break;
    case '+':
        u = (struct unit){1, ' '};
        good = true;
        break;
    case '\'':
        u = (struct unit){4, '\''};
        good = sv_starts(s, SV("'\\''"));
        break;
    default:
        break;
    }
    return good ? u : (struct unit){0, 0};
}

struct range {
    size_t lo, hi;
};

/* Of those in r, which agree up to depth, the ones that go on with c. */
static struct range narrow(struct range r, size_t depth, unsigned char c)
{
    struct range out = {r.lo, r.hi};
    for (size_t hi = r.hi; out.lo < hi;) {
        size_t mid = out.lo + (hi - out.lo) / 2;
        if (state.all[mid].n <= depth || state.all[mid].p[depth] < c)
            out.lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t lo = out.lo; lo < out.hi;) {
        size_t mid = lo + (out.hi - lo) / 2;
        if (state.all[mid].p[depth] <= c)
            lo = mid + 1;
        else
            out.hi = mid;
    }
    return out;
}

/* The text, and whether more of it is to come. */
struct view {
    struct sv text;
    bool more;
    bool open; /* it ended within one */
};

/* A text that was cut ends within a secret: enough of it must have been there. */
static bool cut_here(const struct view *v, size_t at, struct range r, size_t depth)
{
    struct sv rest = {v->text.p + at, v->text.n - at};
    bool at_end = rest.n == 0 && !v->more && depth * 2 >= state.all[r.lo].n;
    return depth >= SECRET_MIN && (at_end || sv_starts(rest, SV("…")));
}

/* Where the longest ends whose first `depth` bytes, those of r, ended at `at`; 0: none does. */
static size_t longest(struct view *v, size_t at, struct range r, size_t depth)
{
    size_t best = 0;
    while (r.lo < r.hi) {
        if (state.all[r.lo].n == depth) {
            best = at;
            if (++r.lo == r.hi)
                break;
        }
        if (depth && cut_here(v, at, r, depth))
            best = at;
        if (at >= v->text.n) {
            v->open = v->more;
            break;
        }
        struct sv rest = {v->text.p + at, v->text.n - at};
        struct unit u = coded(rest);
        struct range by_code = u.n ? narrow(r, depth, u.is) : (struct range){0, 0};
        struct range as_is = narrow(r, depth, (unsigned char)rest.p[0]);
        if (v->more && !u.n && unfinished(rest))
            v->open = true;
        if (by_code.lo < by_code.hi && as_is.lo < as_is.hi) {
            size_t end = longest(v, at + u.n, by_code, depth + 1);
            best = end > best ? end : best;
        } else if (by_code.lo < by_code.hi) {
            as_is = by_code;
            at += u.n - 1;
        }
        at++;
        r = as_is;
        depth++;
    }
    return best;
}

static bool may_begin(char c)
{
    return state.begins[(unsigned char)c] || memchr("%&\\+'", c, 5);
}

/* Appends what is sure, and tells how much of the text that was: a run of secrets that may go on is held back whole. */
static enum err hide_locked(struct buf *out, struct view *v, size_t *done)
{
    enum err err = ERR_OK;
    size_t from = 0, run = SIZE_MAX, covered = 0, i = 0;
    v->open = false;
    for (; i < v->text.n && !err; i++) {
        if (run != SIZE_MAX && i >= covered) {
            err = buf_append_str(out, SECRET_MARK);
            from = i;
            run = SIZE_MAX;
        }
        size_t end = may_begin(v->text.p[i]) ? longest(v, i, (struct range){0, state.n}, 0) : 0;
        if (v->open)
            break;
        if (end > i && run == SIZE_MAX) {
            err = err ? err : buf_append(out, v->text.p + from, i - from);
            run = i;
        }
        covered = end > covered ? end : covered;
    }
    *done = v->open && run != SIZE_MAX ? run : i;
    if (!err && run == SIZE_MAX)
        err = buf_append(out, v->text.p + from, i - from);
    else if (!err && !v->open)
        err = buf_append_str(out, SECRET_MARK);
    return err;
}

enum err secret_hide_begun(struct buf *out, struct sv text, bool more, size_t *done)
{
    struct view v = {text, more, false};
    *done = text.n;
    pthread_mutex_lock(&state.lock);
    enum err err = state.n ? hide_locked(out, &v, done) : buf_append(out, text.p, text.n);
    pthread_mutex_unlock(&state.lock);
    return err;
}

enum err secret_hide(struct buf *out, struct sv text)
{
    size_t done;
    return secret_hide_begun(out, text, false, &done);
}

void secret_hide_in(char *text, size_t size)
{
    struct buf told = BUF_INIT(SECRET_TEXT_MAX);
    if (atomic_load(&state.any) && secret_hide(&told, sv_of(text)) == ERR_OK)
        str_format(text, size, "%s", buf_cstr(&told));
    buf_done(&told);
}

void secret_learn_program(void)
{
    state.knows_program = true;
}
