#include "sim/app/storm.h"
#include "sim/app/stream.h"
#include "sim/app/worker.h"

#include <inttypes.h>
#include <stdio.h>

bool storm_parse_share(const char *text, double *share)
{
    struct sv v = sv_of(text);
    double scale = sv_ends(v, SV("%")) ? 100 : 1;
    v.n -= scale > 1;
    if (!sv_to_f64(v, share))
        return false;
    *share /= scale;
    return *share >= 0 && *share <= 1;
}

void storm_begin(struct worker *w, FILE *out)
{
    struct stream_tally *t = &w->streams;
    t->storm_from = mono_now();
    t->replayed_before = t->replayed;
    t->resyncs_before = t->resyncs;
    t->out = out;
    for (uint32_t i = 0; i < w->fleet.n; i++)
        t->broken += stream_break(&w->fleet.apps[i]);
    if (out)
        fprintf(out, "storm: %" PRIu32 " event streams broken at once\n", t->broken);
}

void storm_back(struct worker *w)
{
    struct stream_tally *t = &w->streams;
    char line[120];
    if (++t->back < t->broken || t->storm_over.us)
        return;
    t->storm_over = mono_now();
    str_format(line, sizeof(line), "storm: all %" PRIu32 " event streams are back after %.1f s", t->broken,
               (double)mono_diff(t->storm_over, t->storm_from) / 1e6);
    if (t->out)
        fprintf(t->out, "%s\n", line);
}

static void storm_rows(const struct stream_tally *t, struct result *r)
{
    result_figure(r, "storm", "streams_broken", t->broken, 0);
    result_figure(r, "storm", "back", t->back, 0);
    if (t->storm_over.us)
        result_figure(r, "storm", "seconds_until_all_back", (double)mono_diff(t->storm_over, t->storm_from) / 1e6, 3);
    result_figure(r, "storm", "refused_429", (double)t->refused_in_storm, 0);
    result_figure(r, "storm", "events_replayed", (double)(t->replayed - t->replayed_before), 0);
    result_figure(r, "storm", "resyncs", (double)(t->resyncs - t->resyncs_before), 0);
}

void storm_figures(const struct worker *w, struct result *r)
{
    double slow = 0;
    for (uint32_t i = 0; i < w->fleet.n; i++)
        slow += w->fleet.apps[i].stream.bytes_per_s > 0;
    if (w->conf.slow_readers > 0) {
        result_figure(r, "slow_readers", "apps", slow, 0);
        result_figure(r, "slow_readers", "streams_ended", (double)w->streams.slow_ended, 0);
    }
    if (w->streams.storm_from.us)
        storm_rows(&w->streams, r);
}
