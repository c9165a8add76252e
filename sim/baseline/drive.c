/* The same through the drive: eight apps of the seeded accounts, in a folder of their own that is removed for good. */
#include "drive/belong.h"
#include "sim/app/call.h"
#include "sim/app/run_folders.h"
#include "sim/app/solo.h"
#include "sim/baseline/baseline.h"

#include <stdio.h>
#include <string.h>

struct lane { /* one app with the file that it saves */
    struct app app;
    const char *folder; /* its id */
    char id[DRIVE_ID_MAX + 1], large[DRIVE_ID_MAX + 1], version[DRIVE_ID_MAX + 1];
    uint64_t made, revision;
};
struct drive {
    struct baseline *b;
    struct worker *w;
    struct lane lanes[BASE_LANES];
    unsigned n;
    struct run_folders folders;
};

static bool verdict(struct lane *l, struct call *c, enum drive_op op, const struct api_result *r, struct errinfo *ei)
{
    call_record(c, op, r, (struct mono){0});
    if (r->outcome == OUT_OK)
        return true;
    err_set(ei, ERR_HTTP, "%s of %s: %d %s", drive_op_text(op), l->app.login->email, r->status, r->reason);
    return false;
}

static MAY_YIELD bool upload(struct lane *l, uint64_t bytes, char *id, struct errinfo *ei)
{
    struct arena *mem = arena_new(4096);
    struct drive_file made = {0};
    struct api_result r;
    char name[60];
    snprintf(name, sizeof(name), "base-%u-%llu.bin", l->app.index, (unsigned long long)++l->made);
    const struct content c = {
        .key = rng_mix64(l->app.w->run_key ^ l->app.index) + l->made, .revision = 1, .size = bytes, .ext = "bin"};
    const struct api_upload u = {.parent_id = l->folder, .name = name, .content = &c, .modified = wall_now()};
    struct call call = CALL(&l->app, CAUSE_ACTION);
    app_take_session(&l->app);
    do
        api_upload(l->app.api, &u, mem, &made, &r);
    while (call_again(&call, &r));
    if (r.outcome == OUT_OK) {
        snprintf(id, DRIVE_ID_MAX + 1, "%s", made.id);
        if (id == l->id) {
            str_fit(l->version, sizeof(l->version), made.version ? made.version : "");
            l->revision = 1;
        }
    }
    arena_free(&mem);
    return verdict(l, &call, OP_UPLOAD, &r, ei);
}

static MAY_YIELD bool download(struct lane *l, const char *id, struct errinfo *ei)
{
    struct api_result r;
    struct call call = CALL(&l->app, CAUSE_ACTION);
    app_take_session(&l->app);
    do
        api_download(l->app.api, id, 0, 0, NULL, NULL, NULL, 0, &r);
    while (call_again(&call, &r));
    return verdict(l, &call, OP_DOWNLOAD, &r, ei);
}

static struct lane *lane_of(struct beat *k, unsigned lane)
{
    return &((struct drive *)k->arg)->lanes[lane];
}

static MAY_YIELD bool up_small(struct beat *k, unsigned lane, struct errinfo *ei)
{
    return upload(lane_of(k, lane), BASE_SMALL, lane_of(k, lane)->id, ei);
}

static MAY_YIELD bool down_small(struct beat *k, unsigned lane, struct errinfo *ei)
{
    return download(lane_of(k, lane), lane_of(k, lane)->id, ei);
}

static MAY_YIELD bool up_large(struct beat *k, unsigned lane, struct errinfo *ei)
{
    return upload(lane_of(k, lane), BASE_LARGE, lane_of(k, lane)->large, ei);
}

static MAY_YIELD bool down_large(struct beat *k, unsigned lane, struct errinfo *ei)
{
    return download(lane_of(k, lane), lane_of(k, lane)->large, ei);
}

static MAY_YIELD bool save(struct beat *k, unsigned lane, struct errinfo *ei)
{
    struct lane *l = lane_of(k, lane);
    struct arena *mem = arena_new(4096);
    struct drive_file made = {0};
    struct api_result r;
    char name[60];
    snprintf(name, sizeof(name), "base-%u-%llu.bin", l->app.index, (unsigned long long)l->made);
    const struct content c = {.key = l->app.w->run_key ^ l->app.index,
                              .revision = l->revision + 1,
                              .parent_revision = l->revision,
                              .size = BASE_SMALL,
                              .ext = "bin"};
    struct call call = CALL(&l->app, CAUSE_ACTION);
    app_take_session(&l->app);
    do
        api_replace(l->app.api, l->id, name, l->version[0] ? l->version : NULL, NULL, &c, mem, &made, &r);
    while (call_again(&call, &r));
    if (r.outcome == OUT_OK) {
        l->revision++;
        str_fit(l->version, sizeof(l->version), made.version ? made.version : "");
    }
    arena_free(&mem);
    return verdict(l, &call, OP_SAVE, &r, ei);
}

static const struct beat_row rows[] = {
    {BASE_DRIVE_PUT, BASE_LANES, up_small, 1},
    {BASE_DRIVE_GET, BASE_LANES, down_small, 1},
    {BASE_DRIVE_SAVE, BASE_LANES, save, 1},
    {BASE_DRIVE_UP, 1, up_large, BASE_LARGE / 1e6},
    {BASE_DRIVE_DOWN, 1, down_large, BASE_LARGE / 1e6},
};

static MAY_YIELD enum err prepare(struct drive *d, struct errinfo *ei)
{
    struct worker *w = d->w;
    run_folders_init(&d->folders, w, "Baseline");
    for (; d->n < BASE_LANES; d->n++) {
        struct lane *l = &d->lanes[d->n];
        enum err e = app_init_bare(&l->app, w, d->n, 0, ei);
        if (e != ERR_OK)
            return e;
        if ((e = run_folders_make(&d->folders, &l->app, ei)) != ERR_OK) {
            app_done(&l->app);
            return e;
        }
        l->folder = run_folders_id(&d->folders, &l->app);
    }
    return ERR_OK;
}

static MAY_YIELD enum err body(struct worker *w, struct server_watch *watch, const void *arg, struct errinfo *ei)
{
    struct drive *d = mem_zalloc(sizeof(*d));
    (void)watch;
    d->b = *(struct baseline *const *)arg;
    d->w = w;
    enum err e = prepare(d, ei);
    if (e == ERR_OK)
        e = beat_rows(d->b, rows, ARRAY_LEN(rows), d, ei);
    if (!run_folders_remove(&d->folders, "baseline") && e == ERR_OK)
        e = err_set(ei, ERR_ENV, "not all of the folders \"%s\" could be removed", d->folders.name);
    for (unsigned i = 0; i < d->n; i++)
        app_done(&d->lanes[i].app);
    run_folders_done(&d->folders);
    mem_free(d);
    return e;
}

enum err baseline_drive(struct baseline *b, struct errinfo *ei)
{
    const struct solo s = {.apps = BASE_LANES, .timeout_us = 60 * US_PER_S, .body = body, .arg = &b};
    if (!b->ctx->target->url)
        return err_set(ei, ERR_USAGE, "TMA_URL is not set");
    enum err e = target_require_url(b->ctx->target, ei);
    if (e == ERR_OK)
        e = target_probe(b->ctx, ei);
    if (e == ERR_OK) /* the probe has said that it is the right server: sessions of earlier commands may be used */
        api_space_keep(b->ctx->space, b->ctx->target, b->ctx->common->fresh_sign_in);
    if (e == ERR_OK && b->beside) /* else nothing of it is a share of theirs */
        e = belong_prove_saying(b->ctx, NULL, ei);
    return e == ERR_OK ? solo_run(&s, b->ctx, ei) : e;
}
