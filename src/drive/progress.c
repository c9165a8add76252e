/* The one place that writes CR: only to a terminal. In a pipe every line is whole and leaves at once. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "drive/cmd.h"
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TTY_EVERY_US  (100 * US_PER_MS)
#define PIPE_EVERY_US (15 * US_PER_S)
#define WINDOW        16 /* the rate is that of the last so many seconds */

struct progress {
    FILE *out;
    bool tty, seconds;
    const char *what;
    uint64_t total, n;
    char bound[120];
    struct mono started, next_print;
    struct {
        struct mono at;
        uint64_t n;
    } marks[WINDOW]; /* one a second, a ring */
    unsigned n_marks;
    size_t width; /* of what stands on the terminal's line */
};

struct progress *progress_new(FILE *out, bool tty, const char *what, uint64_t total)
{
    struct progress *p = mem_zalloc(sizeof *p);
    struct mono now = mono_now();

    *p = (struct progress){.out = out, .tty = tty, .what = what, .total = total, .started = now};
    p->next_print = mono_add(now, tty ? 0 : PIPE_EVERY_US);
    p->marks[0].at = now;
    p->n_marks = 1;
    return p;
}

struct progress *progress_new_seconds(FILE *out, bool tty, const char *what, uint64_t total)
{
    struct progress *p = progress_new(out, tty, what, total);
    p->seconds = true;
    return p;
}

static double rate_of(const struct progress *p, struct mono now)
{
    unsigned oldest = p->n_marks > WINDOW ? p->n_marks % WINDOW : 0;
    int64_t us = mono_diff(now, p->marks[oldest].at);

    return us > 0 && p->n > p->marks[oldest].n ? (double)(p->n - p->marks[oldest].n) * 1e6 / (double)us : 0;
}

static const char *whole_seconds(char *dst, size_t n, uint64_t seconds)
{
    if (seconds >= 60)
        return str_duration(dst, n, (int64_t)seconds * US_PER_S);
    snprintf(dst, n, "%llu s", (unsigned long long)seconds);
    return dst;
}

/* "step 2 of 6, 50 sessions: 48 s of about 5 min 10 s; 50 of 50 in" */
static void compose_seconds(const struct progress *p, struct buf *line)
{
    char n[32], total[32];
    enum err err = buf_appendf(line, "%s: %s", p->what, whole_seconds(n, sizeof n, p->n));

    if (!err && p->total)
        err = buf_appendf(line, " of about %s", whole_seconds(total, sizeof total, p->total));
    if (!err && p->bound[0])
        err = buf_appendf(line, "; %s", p->bound);
    if (err)
        buf_reset(line);
}

static void compose(const struct progress *p, struct mono now, bool last, struct buf *line)
{
    char n[32], total[32], left[32];
    double rate = last ? (double)p->n * 1e6 / (double)(mono_diff(now, p->started) + 1) : rate_of(p, now);
    enum err err = buf_appendf(line, "%s %s", p->what, str_thousands(n, sizeof n, p->n));

    if (!err && p->total)
        err = buf_appendf(line, " of %s (%u %%)", str_thousands(total, sizeof total, p->total),
                          (unsigned)(p->n * 100 / p->total));
    if (!err && rate > 0)
        err = buf_appendf(line, rate < 10 ? ", %.1f/s" : ", %.0f/s", rate);
    if (!err && !last && rate > 0 && p->total > p->n)
        err = buf_appendf(line, ", %s left",
                          str_duration(left, sizeof left, (int64_t)((double)(p->total - p->n) / rate * 1e6)));
    if (!err && last)
        err = buf_appendf(line, " in %s", str_duration(left, sizeof left, mono_diff(now, p->started)));
    if (!err && p->bound[0])
        err = buf_appendf(line, "; %s", p->bound);
    if (err)
        buf_reset(line);
}

/* A line longer than the terminal would wrap, and a CR goes back to the start of its last row only. */
static size_t columns(FILE *out)
{
    struct winsize size;

    return ioctl(out == stderr ? STDERR_FILENO : STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20
               ? size.ws_col - 1u
               : 79;
}

static void print(struct progress *p, struct mono now, bool last)
{
    struct buf line = BUF_INIT(1024);

    if (p->seconds)
        compose_seconds(p, &line);
    else
        compose(p, now, last, &line);
    struct sv text = {buf_cstr(&line), line.len};
    if (p->tty) {
        if (!last)
            text.n = utf8_cut(text, columns(p->out));
        size_t width = utf8_length(text), pad = p->width > width ? p->width - width : 0;
        fprintf(p->out, "\r" SV_FMT "%*s%s", SV_ARG(text), (int)pad, "", last ? "\n" : "");
        p->width = width;
    } else {
        fprintf(p->out, SV_FMT "\n", SV_ARG(text));
    }
    fflush(p->out);
    buf_done(&line);
}

void progress_set(struct progress *p, uint64_t n, const char *bound)
{
    struct mono now = mono_now();

    p->n = n;
    snprintf(p->bound, sizeof p->bound, "%s", bound ? bound : "");
    if (mono_diff(now, p->marks[(p->n_marks - 1) % WINDOW].at) >= US_PER_S) {
        p->marks[p->n_marks % WINDOW].at = now;
        p->marks[p->n_marks % WINDOW].n = n;
        p->n_marks++;
    }
    if (!p->out || mono_before(now, p->next_print))
        return;
    print(p, now, false);
    p->next_print = mono_add(now, p->tty ? TTY_EVERY_US : PIPE_EVERY_US);
}

void progress_free(struct progress **p)
{
    if (!*p)
        return;
    if ((*p)->out)
        print(*p, mono_now(), true);
    MEM_FREE(*p);
}

void progress_drop(struct progress **p)
{
    if (*p && (*p)->out && (*p)->width) {
        fprintf((*p)->out, "\r%*s\r", (int)(*p)->width, "");
        fflush((*p)->out);
    }
    MEM_FREE(*p);
}
