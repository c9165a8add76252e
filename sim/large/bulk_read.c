/* Looking around for bulk: how large something is, whether it is there. */
#include "base/mem.h"
#include "sim/large/impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AGAIN_US (500 * US_PER_MS)

char *bulk_totals_text(char *dst, size_t n, const struct bulk_totals *t)
{
    char bytes[32];
    snprintf(dst, n, "%s in %s, %s", COUNTED((uint64_t)t->files, "file"), COUNTED((uint64_t)t->folders, "folder"),
             str_bytes(bytes, sizeof(bytes), (uint64_t)t->bytes));
    return dst;
}

bool bulk_same(const struct bulk_totals *a, const struct bulk_totals *b)
{
    return a->files == b->files && a->folders == b->folders && a->bytes == b->bytes;
}

/* Whether a question is to be put again: the server was away, and not for too long. */
static MAY_YIELD bool ask_again(struct bulk *b, const struct api_result *r, struct mono began)
{
    return api_transient(r) && mono_diff(mono_now(), began) < JOB_AWAY_US && worker_sleep(b->w, AGAIN_US, PHASE_CUT);
}

/* Puts a question until it is answered or it makes no sense any more. */
#define ASK(b, r, question)                                                                                            \
    do {                                                                                                               \
        struct mono began_ = mono_now();                                                                               \
        do {                                                                                                           \
            struct call c_ = CALL(&(b)->app, CAUSE_SETUP);                                                             \
            do                                                                                                         \
                question;                                                                                              \
            while (call_again(&c_, r));                                                                                \
        } while (ask_again(b, r, began_));                                                                             \
    } while (0)

bool bulk_info(struct bulk *b, const char *id, struct bulk_totals *out, struct api_result *r)
{
    struct arena *mem = arena_new(4096);
    struct drive_file f;
    struct api_totals t = {-1, -1, -1};
    if (!(api_caps(b->app.api) & API_CAP_TOTALS)) {
        arena_free(&mem);
        return bulk_count(b, id, out, r);
    }
    ASK(b, r, api_info(b->app.api, id, mem, &f, &t, r));
    arena_free(&mem);
    *out = (struct bulk_totals){t.files, t.folders, t.bytes};
    return r->outcome == OUT_OK;
}

bool bulk_list(struct bulk *b, const char *id, size_t *n, char first[DRIVE_ID_MAX + 1], struct api_result *r)
{
    struct arena *mem = arena_new(4096);
    struct drive_listing l = {0};
    ASK(b, r, api_list(b->app.api, id, mem, &l, r));
    *n = r->outcome == OUT_OK ? l.n : 0;
    first[0] = '\0';
    if (*n)
        snprintf(first, DRIVE_ID_MAX + 1, "%s", l.items[0].id);
    arena_free(&mem);
    return r->outcome == OUT_OK || r->status == 404;
}

bool bulk_in_trash(struct bulk *b, const char *id, bool *there, struct api_result *r)
{
    struct arena *mem = arena_new(16 << 10);
    struct drive_listing l = {0};
    ASK(b, r, api_trash_list(b->app.api, mem, &l, r));
    *there = false;
    for (size_t i = 0; r->outcome == OUT_OK && i < l.n; i++)
        *there = *there || !id || strcmp(l.items[i].id, id) == 0;
    arena_free(&mem);
    return r->outcome == OUT_OK;
}

int64_t bulk_storage_used(struct bulk *b)
{
    struct api_storage s = {-1, -1, -1};
    struct api_result r;
    ASK(b, &r, api_storage(b->app.api, &s, &r));
    return r.outcome == OUT_OK ? s.used : -1;
}

/* ---- counting ---- */

struct to_visit {
    struct to_visit *next;
    char id[DRIVE_ID_MAX + 1];
};

static void add_entry(const struct drive_file *f, struct bulk_totals *t, struct to_visit **rest)
{
    if (!f->folder) {
        t->files++;
        t->bytes = drive_sum(t->bytes, f->size > 0 ? f->size : 0);
        return;
    }
    struct to_visit *v = mem_alloc(sizeof(*v));
    snprintf(v->id, sizeof(v->id), "%s", f->id);
    v->next = *rest;
    *rest = v;
    t->folders++;
}

bool bulk_count(struct bulk *b, const char *id, struct bulk_totals *out, struct api_result *r)
{
    struct arena *mem = arena_new(32 << 10);
    const struct drive_file top = {.id = id, .folder = true};
    struct to_visit *rest = NULL;
    bool ok = true;
    *out = (struct bulk_totals){0};
    add_entry(&top, out, &rest);
    out->folders = 0;
    while (rest) {
        struct to_visit *v = rest;
        struct drive_listing l = {0};
        rest = v->next;
        if (ok)
            ASK(b, r, api_list(b->app.api, v->id, mem, &l, r));
        ok = ok && r->outcome == OUT_OK;
        for (size_t i = 0; ok && i < l.n; i++)
            add_entry(&l.items[i], out, &rest);
        mem_free(v);
        arena_reset(mem);
    }
    arena_free(&mem);
    return ok;
}

/* ---- the source ---- */

static const char *fit_to_print(struct bulk *b, const char *name)
{
    char shown[124];
    return arena_strdup(b->mem, str_shown(shown, sizeof(shown), sv_of(name)));
}

static bool larger(const struct bulk_totals *a, const struct bulk_totals *b)
{
    int64_t x = drive_sum(a->files, a->folders), y = drive_sum(b->files, b->folders);
    return x != y ? x > y : a->bytes > b->bytes;
}

/* Info counts what is in the trash too, a copy leaves it out. */
static MAY_YIELD void leave_trash_out(struct bulk *b, struct api_result *r)
{
    bool any = false;
    if (bulk_in_trash(b, NULL, &any, r) && any)
        bulk_count(b, b->source, &b->size, r);
    else if (r->err != ERR_CANCELLED)
        r->outcome = OUT_OK; /* without a trash to look into, info has to do */
}

enum err bulk_choose(struct bulk *b, struct errinfo *ei)
{
    struct drive_listing top = {0};
    struct api_result r;
    ASK(b, &r, api_list(b->app.api, NULL, b->mem, &top, &r));
    b->size = (struct bulk_totals){-1, 0, -1};
    for (size_t i = 0; i < top.n && r.outcome == OUT_OK; i++) {
        struct bulk_totals t;
        const struct drive_file *f = &top.items[i];
        if (!f->folder)
            continue;
        if (!bulk_info(b, f->id, &t, &r) && r.status == 404)
            r.outcome = OUT_OK; /* gone since */
        else if (r.outcome == OUT_OK && (t.files < 0 || t.folders < 0 || t.bytes < 0) && !bulk_count(b, f->id, &t, &r))
            break;
        else if (r.outcome == OUT_OK && larger(&t, &b->size)) {
            b->size = t;
            b->source = f->id;
            b->name = fit_to_print(b, f->name);
        }
    }
    if (r.outcome == OUT_OK && b->source)
        leave_trash_out(b, &r);
    if (r.outcome != OUT_OK)
        return err_set(ei, r.err == ERR_CANCELLED ? ERR_INTERRUPTED : ERR_ENV,
                       "cannot look at the folders of %s: %d %s", b->app.login->email, r.status, r.reason);
    if (!b->source)
        return err_set(ei, ERR_ENV, "%s has no folder to copy: fill the server first with sim seed",
                       b->app.login->email);
    return ERR_OK;
}
