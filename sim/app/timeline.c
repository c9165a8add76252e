#include "sim/app/timeline.h"

#include <stdlib.h>
#include <string.h>

struct axis {
    struct outage *rows[METER_OUTAGES + METER_ORDERED];
    size_t n;
};

static int by_beginning(const void *a, const void *b)
{
    const struct outage *x = *(struct outage *const *)a, *y = *(struct outage *const *)b;
    return (x->since.us > y->since.us) - (x->since.us < y->since.us);
}

static struct axis axis_of(struct meter *m, bool ordered)
{
    struct axis a = {.n = 0};
    meter_look_at_outages(m, mono_now());
    for (unsigned i = 0; ordered && i < m->n_ordered; i++)
        a.rows[a.n++] = &m->ordered[i];
    for (unsigned i = 0; i < m->n_outages && i < METER_OUTAGES; i++)
        a.rows[a.n++] = &m->outages[i];
    qsort(a.rows, a.n, sizeof(a.rows[0]), by_beginning);
    return a;
}

static bool is_ordered(const struct meter *m, const struct outage *o)
{
    return o >= m->ordered && o < m->ordered + METER_ORDERED;
}

void timeline_tell(struct meter *m, FILE *out)
{
    struct axis a = axis_of(m, true);
    char from[40], line[200];
    for (size_t i = 0; i < a.n; i++) {
        struct outage *o = a.rows[i];
        if (o->told)
            continue;
        wall_format_seconds(from, sizeof(from), o->from);
        str_format(line, sizeof(line), "%s%s from %s for %.1f s%s", is_ordered(m, o) ? "ordered: " : "", o->what,
                   from + 11, (double)o->us / 1e6, o->over ? "" : " so far");
        fprintf(out, "%s\n", line);
        o->told = o->over;
    }
}

void timeline_print(struct meter *m, struct mono zero, FILE *out)
{
    struct axis a = axis_of(m, true);
    char line[200], failures[48];
    if (a.n)
        fprintf(out, "\noutages, by the second of the window\n");
    for (size_t i = 0; i < a.n; i++) {
        const struct outage *o = a.rows[i];
        bool ordered = is_ordered(m, o);
        failures[0] = '\0';
        if (o->failures)
            str_format(failures, sizeof(failures), ", %llu requests", (unsigned long long)o->failures);
        str_format(line, sizeof(line), "%8.1f s  for %6.1f s  %s%s%s%s", (double)mono_diff(o->since, zero) / 1e6,
                   (double)o->us / 1e6, ordered ? "ordered: " : "", o->what, failures,
                   o->over || ordered ? "" : ", to the end");
        fprintf(out, "%s\n", line);
    }
    if (m->n_outages > METER_OUTAGES)
        fprintf(out, "and %u more\n", m->n_outages - METER_OUTAGES);
}

static void write_row(const struct meter *m, const struct outage *o, struct mono zero, struct jsonw *w)
{
    char from[40];
    jsonw_f64(w, "at_seconds", (double)mono_diff(o->since, zero) / 1e6, 3);
    jsonw_f64(w, "seconds", (double)o->us / 1e6, 3);
    jsonw_str(w, "from", wall_format(from, sizeof(from), o->from));
    jsonw_str(w, "what", o->what);
    jsonw_bool(w, "ordered", is_ordered(m, o));
    jsonw_i64(w, "failures", (int64_t)o->failures);
}

void timeline_course(struct meter *m, struct mono zero, struct jsonw *w)
{
    struct axis a = axis_of(m, true);
    bool any = false;
    for (size_t i = 0; i < a.n; i++) {
        struct outage *o = a.rows[i];
        if (o->kept)
            continue;
        if (!any)
            jsonw_array(w, "outages");
        any = true;
        jsonw_object(w, NULL);
        write_row(m, o, zero, w);
        jsonw_bool(w, "over", o->over);
        jsonw_end_object(w);
        o->kept = o->over;
    }
    if (any)
        jsonw_end_array(w);
}

void timeline_result(struct meter *m, struct mono zero, struct result *r)
{
    struct axis a = axis_of(m, true);
    struct jsonw w;
    struct buf json = BUF_INIT(1 << 20);
    jsonw_init(&w, &json);
    jsonw_array(&w, NULL);
    for (size_t i = 0; i < a.n; i++) {
        const struct outage *o = a.rows[i];
        jsonw_object(&w, NULL);
        write_row(m, o, zero, &w);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    result_part(r, "timeline", &w);
}

int64_t timeline_outage_us(struct meter *m)
{
    struct axis a = axis_of(m, false);
    struct mono covered = {0};
    int64_t us = 0;
    for (size_t i = 0; i < a.n; i++) {
        struct mono from = a.rows[i]->since, to = mono_add(from, a.rows[i]->us);
        if (mono_before(from, covered))
            from = covered;
        if (!mono_before(from, to))
            continue;
        us += mono_diff(to, from);
        covered = to;
    }
    return us;
}
