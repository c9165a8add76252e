/* What stands where: the title above, the unit below it, names of the lines to the right of their last point, pushed
 * apart where they would cover each other. */
#include "drive/result/plot.h"
#include "base/mem.h"
#include <string.h>

#define LEFT       58
#define RIGHT      150
#define TOP        40
#define BOTTOM     38
#define X_TICKS    8
#define Y_TICKS    4
#define LOG_TICKS  6
#define NAMES_MOST 16
#define NAME_PITCH 13.0

struct frame {
    double x0, x1, y0, y1; /* of the data; y as it is drawn, so its logarithm on a log scale */
    bool log;
};

double plot_round_step(double least)
{
    double power = pow(10, floor(log10(least)));
    static const double steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i] * power >= least * (1 - 1e-9))
            return steps[i] * power;
    return 10 * power;
}

char *plot_number(char *dst, size_t n, double v)
{
    double size = fabs(v);
    char whole[32];
    if (size >= 1e6)
        str_format(dst, n, "%.4g M", v / 1e6);
    else if (size >= 1000)
        str_format(dst, n, "%s%s", v < 0 ? "-" : "", str_thousands(whole, sizeof(whole), (uint64_t)(size + 0.5)));
    else
        str_format(dst, n, "%.4g", v);
    return dst;
}

/* ---- places ---- */

static double px(const struct frame *f, double x)
{
    return LEFT + (x - f->x0) / (f->x1 - f->x0) * (PLOT_WIDTH - LEFT - RIGHT);
}

static double py(const struct frame *f, double y)
{
    double at = f->log ? log10(y) : y;
    return PLOT_HEIGHT - BOTTOM - (at - f->y0) / (f->y1 - f->y0) * (PLOT_HEIGHT - TOP - BOTTOM);
}

/* A zero has no place on a log scale. */
static bool shown(const struct plot *p, double y)
{
    return isfinite(y) && (p->scale == PLOT_LINEAR || y > 0);
}

static bool measure(const struct plot *p, struct frame *f)
{
    bool any = false;
    *f = (struct frame){.x0 = p->x_from, .x1 = p->x_to, .log = p->scale == PLOT_LOG};
    bool own = !(p->x_from < p->x_to);
    for (size_t k = 0; k < p->n_lines; k++)
        for (size_t i = 0; i < p->lines[k].n; i++) {
            double x = p->lines[k].x[i], y = p->lines[k].y[i];
            if (!shown(p, y))
                continue;
            y = f->log ? log10(y) : y;
            if (own) {
                f->x0 = !any || x < f->x0 ? x : f->x0;
                f->x1 = !any || x > f->x1 ? x : f->x1;
            }
            f->y0 = !any || y < f->y0 ? y : f->y0;
            f->y1 = !any || y > f->y1 ? y : f->y1;
            any = true;
        }
    if (!(f->x1 > f->x0))
        f->x1 = f->x0 + 1;
    return any;
}

/* The largest step that is not above v. */
static double step_below(double v)
{
    double power = pow(10, floor(log10(v)));
    return v >= 5 * power ? 5 * power : v >= 2 * power ? 2 * power : power;
}

/* Whole steps: a linear axis from 0 to the first one above all, a log axis from decade to decade or, where that would
 * be much too wide, to the next 2 or 5. */
static double fit(struct frame *f)
{
    if (f->log) {
        f->y0 = log10(step_below(pow(10, f->y0)));
        f->y1 = log10(plot_round_step(pow(10, f->y1) * 1.001));
        if (!(f->y1 > f->y0))
            f->y1 = f->y0 + 1;
        return 0;
    }
    double step = plot_round_step(f->y1 > 0 ? f->y1 / Y_TICKS : 0.25);
    f->y0 = 0;
    f->y1 = step * ceil((f->y1 > 0 ? f->y1 : 1) / step - 1e-9);
    return step;
}

/* ---- axes ---- */

static void put_label(struct markup *m, double x, double y, const char *anchor, const char *text)
{
    markup_putf(m, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    markup_text(m, text);
    markup_put(m, "</text>");
}

static void put_y_tick(struct markup *m, const struct frame *f, double v)
{
    char text[40];
    markup_putf(m, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, py(f, v), PLOT_WIDTH - RIGHT);
    put_label(m, LEFT - 7, py(f, v) + 4, "end", plot_number(text, sizeof(text), v));
}

static void put_y_axis(struct markup *m, const struct frame *f, double step)
{
    static const double within[] = {1, 2, 5};
    size_t use = f->y1 - f->y0 > 2.2 ? 1 : ARRAY_LEN(within);
    for (double v = 0; !f->log && v <= f->y1 * (1 + 1e-9); v += step)
        put_y_tick(m, f, v);
    int every = f->y1 - f->y0 > LOG_TICKS ? (int)ceil((f->y1 - f->y0) / LOG_TICKS) : 1;
    for (int power = (int)floor(f->y0); f->log && power <= (int)ceil(f->y1); power += every)
        for (size_t i = 0; i < use; i++) {
            double v = within[i] * pow(10, power);
            if (log10(v) >= f->y0 - 1e-9 && log10(v) <= f->y1 + 1e-9)
                put_y_tick(m, f, v);
        }
}

static void put_x_axis(struct markup *m, const struct plot *p, const struct frame *f)
{
    double step = plot_round_step((f->x1 - f->x0) / X_TICKS);
    const double y = PLOT_HEIGHT - BOTTOM;
    char text[40];
    markup_putf(m, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>", LEFT, y, PLOT_WIDTH - RIGHT);
    for (size_t i = 0; p->ticks && i < p->n_ticks; i++) {
        markup_putf(m, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", px(f, p->ticks[i].x), y);
        if (i == 0) /* leaves room for the next, which may be near */
            put_label(m, px(f, p->ticks[i].x) + 10, y + 16, "end", p->ticks[i].name);
        else
            put_label(m, px(f, p->ticks[i].x), y + 16, "middle", p->ticks[i].name);
    }
    for (double v = ceil(f->x0 / step) * step; !p->ticks && v <= f->x1 + step * 1e-9; v += step) {
        markup_putf(m, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", px(f, v), y);
        put_label(m, px(f, v), y + 16, "middle", plot_number(text, sizeof(text), fabs(v) < step / 1e6 ? 0 : v));
    }
    put_label(m, PLOT_WIDTH - RIGHT, y + 32, "end", p->x_unit);
}

/* ---- behind the lines ---- */

static void put_bands(struct markup *m, const struct plot *p, const struct frame *f)
{
    for (size_t i = 0; i < p->n_bands; i++) {
        double from = fmax(p->bands[i].from, f->x0), to = fmin(p->bands[i].to, f->x1);
        if (from > f->x1 || to < f->x0)
            continue;
        markup_putf(m, "<rect class=\"band %s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
                    p->bands[i].class, px(f, from), TOP, fmax(px(f, to) - px(f, from), 1.5),
                    PLOT_HEIGHT - TOP - BOTTOM);
        markup_text(m, p->bands[i].name);
        markup_put(m, "</title></rect>");
    }
}

static void put_marks(struct markup *m, const struct plot *p, const struct frame *f)
{
    for (size_t i = 0; i < p->n_marks; i++) {
        double x = px(f, p->marks[i].x);
        bool right = x > (PLOT_WIDTH - RIGHT) * 0.75;
        if (p->marks[i].x < f->x0 || p->marks[i].x > f->x1)
            continue;
        markup_putf(m, "<path class=\"mark\" d=\"M%.1f %dV%d\"/>", x, TOP, PLOT_HEIGHT - BOTTOM);
        put_label(m, right ? x - 4 : x + 4, TOP + 10 + 13.0 * (double)(i % 3), right ? "end" : "start",
                  p->marks[i].name);
    }
}

/* ---- lines ---- */

/* The next point that can be shown, if it is near enough for a line to go there; else n. */
static size_t next_of(const struct plot *p, const struct plot_line *l, size_t i)
{
    for (size_t k = i + 1; k < l->n && k <= i + 1 + PLOT_GAP_MOST; k++)
        if (shown(p, l->y[k]))
            return k;
    return l->n;
}

static void put_dot(struct markup *m, const struct plot_line *l, size_t i, const struct frame *f)
{
    markup_putf(m, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>", l->class, px(f, l->x[i]),
                py(f, l->y[i]), l->dots ? "3" : "2");
}

/* A point that no line reaches is a dot. */
static void put_line(struct markup *m, const struct plot *p, const struct plot_line *l, const struct frame *f)
{
    bool joined = false;
    markup_putf(m, "<path class=\"line %s\" d=\"", l->class);
    for (size_t i = 0; i < l->n; i++)
        if (shown(p, l->y[i])) {
            markup_putf(m, "%c%.1f %.1f", joined ? 'L' : 'M', px(f, l->x[i]), py(f, l->y[i]));
            joined = next_of(p, l, i) < l->n;
        }
    markup_put(m, "\"/>");
    joined = false;
    for (size_t i = 0; i < l->n; i++)
        if (shown(p, l->y[i])) {
            bool goes_on = next_of(p, l, i) < l->n;
            if (l->dots || (!joined && !goes_on))
                put_dot(m, l, i, f);
            joined = goes_on;
        }
}

struct name {
    const struct plot_line *line;
    double y;
};

/* Where its last point is. */
static bool name_of(const struct plot *p, const struct plot_line *l, const struct frame *f, struct name *out)
{
    for (size_t i = l->n; i-- > 0;)
        if (shown(p, l->y[i])) {
            *out = (struct name){l, py(f, l->y[i])};
            return true;
        }
    return false;
}

static void put_names(struct markup *m, const struct plot *p, const struct frame *f)
{
    struct name names[NAMES_MOST], one;
    size_t n = 0;
    for (size_t k = 0; k < p->n_lines && n < NAMES_MOST; k++) {
        if (!name_of(p, &p->lines[k], f, &one))
            continue;
        size_t at = n++;
        for (; at > 0 && names[at - 1].y > one.y; at--)
            names[at] = names[at - 1];
        names[at] = one;
    }
    for (size_t i = 1; i < n; i++)
        names[i].y = fmax(names[i].y, names[i - 1].y + NAME_PITCH);
    double below = n ? names[n - 1].y - (PLOT_HEIGHT - BOTTOM) : 0;
    for (size_t i = n; i-- > 0 && below > 0;) {
        double most = PLOT_HEIGHT - BOTTOM - NAME_PITCH * (double)(n - 1 - i);
        names[i].y = fmin(names[i].y, most);
    }
    for (size_t i = 0; i < n; i++) {
        markup_putf(m, "<text class=\"name %s\" x=\"%d\" y=\"%.1f\">", names[i].line->class, PLOT_WIDTH - RIGHT + 8,
                    names[i].y + 4);
        markup_text(m, names[i].line->name);
        markup_put(m, "</text>");
    }
}

/* What a reader who does not see it is told: each line, with its last and its largest value. */
static void put_description(struct markup *m, const struct plot *p)
{
    char last_text[40], most_text[40];
    markup_put(m, "<desc>");
    for (size_t k = 0; k < p->n_lines; k++) {
        double last = NAN, most = NAN;
        for (size_t i = 0; i < p->lines[k].n; i++)
            if (shown(p, p->lines[k].y[i])) {
                last = p->lines[k].y[i];
                most = isnan(most) ? last : fmax(most, last);
            }
        if (isnan(last))
            continue;
        markup_text(m, p->lines[k].name);
        markup_putf(m, ": %s at the end, ", plot_number(last_text, sizeof(last_text), last));
        markup_putf(m, "%s at most; ", plot_number(most_text, sizeof(most_text), most));
    }
    markup_put(m, "in ");
    markup_text(m, p->unit);
    markup_put(m, "</desc>");
}

void plot_write(struct markup *m, const struct plot *p)
{
    struct frame f;
    if (!measure(p, &f))
        return;
    double step = fit(&f);
    markup_putf(m, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">",
                PLOT_WIDTH, PLOT_HEIGHT);
    markup_element(m, "title", p->title);
    put_description(m, p);
    put_bands(m, p, &f);
    put_y_axis(m, &f, step);
    put_x_axis(m, p, &f);
    put_marks(m, p, &f);
    for (size_t k = 0; k < p->n_lines; k++)
        put_line(m, p, &p->lines[k], &f);
    put_names(m, p, &f);
    markup_putf(m, "<text class=\"title\" x=\"0\" y=\"14\">");
    markup_text(m, p->title);
    markup_put(m, "</text>");
    put_label(m, 0, 30, "start", p->unit);
    markup_put(m, "</svg>\n");
}
