#ifndef DRIVE_RESULT_PLOT_H
#define DRIVE_RESULT_PLOT_H
/* Line plots as SVG, to stand in a page: axes with round numbers and units, each line named where it ends, shaded bands
 * and marked places behind the lines. Colours and strokes are classes, so that the page's style serves light, dark and
 * paper. A figure of its own carries title and description for those who do not see it. Layer 2, pure. */
#include "drive/result/markup.h"
#include <math.h>

#define PLOT_WIDTH    780
#define PLOT_HEIGHT   230
#define PLOT_GAP_MOST 2 /* points in a row without a value that a line crosses */

struct plot_line {
    const char *name;
    const double *x, *y; /* n of each; y NAN: nothing was measured there, a gap that a line
                          * crosses when it is a short one */
    size_t n;
    const char *class; /* "c1" … "c4", with " weak" or " dashed" behind it */
    bool dots;         /* each point is shown: few of them */
};
struct plot_band {
    double from, to;
    const char *name, *class; /* "ordered", "seen" */
};
struct plot_mark {
    double x;
    const char *name;
};
struct plot_tick {
    double x;
    const char *name;
};
enum plot_scale { PLOT_LINEAR, PLOT_LOG };
struct plot {
    const char *title, *unit, *x_unit; /* "ms", "s of the window" */
    double x_from, x_to;               /* equal: as the lines are */
    enum plot_scale scale;             /* of y; linear ones begin at 0 */
    const struct plot_line *lines;
    size_t n_lines;
    const struct plot_band *bands;
    size_t n_bands;
    const struct plot_mark *marks;
    size_t n_marks;
    const struct plot_tick *ticks; /* of x, in place of round numbers; NULL: those */
    size_t n_ticks;
};
/* Nothing at all when no line has a point. */
void plot_write(struct markup *m, const struct plot *p);

/* 1, 2 or 5 times a power of ten, at least `least`. least > 0. */
double plot_round_step(double least);
/* "0.5", "20", "1,500", "2.5 M": as short as an axis wants it. Returns dst. */
char *plot_number(char *dst, size_t n, double v);
#endif
