/* Refusals of servers with another wire than TMA Cloud's: asked by the client's calls, on the same stage. */
#include "base/mem.h"
#include "sim/refusals/stage.h"

#include <stdio.h>
#include <string.h>

static void told(enum err e, const struct api_result *r, struct answer *out)
{
    *out = (struct answer){
        .err = e, .status = r->status, .retry_after_us = r->retry_after_us, .us = mono_diff(r->done, r->sent)};
    snprintf(out->reason, sizeof(out->reason), "%s", r->reason);
    snprintf(out->code, sizeof(out->code), "%s", r->code);
}

static MAY_YIELD void save(struct stage *s, enum refusal_thing file, const char *version, struct answer *out)
{
    struct arena *mem = arena_new(2048);
    const struct content c = {.key = 3, .revision = 3, .size = 2000, .ext = "bin"};
    struct drive_file made;
    struct api_result r;
    enum err e = api_replace(s->logins[WHO_OWNER], s->things[file], "file.bin", version, NULL, &c, mem, &made, &r);
    told(e, &r, out);
    arena_free(&mem);
}

void refusal_call_locked_save(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    (void)f, (void)nth;
    save(s, THING_LOCKED, NULL, out);
}

void refusal_call_stale(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    (void)f, (void)nth;
    save(s, THING_FILE, s->things[THING_STALE], out);
}

void refusal_call_locked_lock(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    struct api_lock lock;
    struct api_result r;
    (void)f, (void)nth;
    enum err e = api_lock(s->logins[WHO_OWNER], s->things[THING_LOCKED], 60, NULL, &lock, &r);
    told(e, &r, out);
}

void refusal_call_locked_delete(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    const char *id = s->things[THING_LOCKED];
    struct api_job job;
    struct api_result r;
    (void)f, (void)nth;
    enum err e = api_trash(s->logins[WHO_OWNER], &id, 1, &job, &r);
    told(e, &r, out);
}

void refusal_call_taken(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    struct arena *mem = arena_new(2048);
    struct drive_file made;
    struct api_result r;
    (void)f, (void)nth;
    enum err e = api_folder_create(s->logins[WHO_OWNER], s->things[THING_FOLDER], "child", mem, &made, &r);
    told(e, &r, out);
    arena_free(&mem);
}

void refusal_call_below_itself(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    const char *id = s->things[THING_CHILD]; /* {folder} holds a locked file, which is a reason of its own */
    struct api_result r;
    (void)f, (void)nth;
    enum err e = api_move(s->logins[WHO_OWNER], &id, 1, s->things[THING_CHILD], &r);
    told(e, &r, out);
}

static MAY_YIELD void sign_in(struct stage *s, const char *password, struct answer *out)
{
    const struct api_conf conf = api_conf_of(s->ctx);
    struct errinfo ei = {0};
    struct api *a = NULL;
    struct api_result r = {.retry_after_us = -1};
    enum err e = api_new(&a, &conf, &ei);
    if (e == ERR_OK)
        e = api_sign_in(a, s->emails[WHO_OWNER], password, &r);
    told(e, &r, out);
    api_free(&a);
}

void refusal_call_password(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    (void)f, (void)nth;
    sign_in(s, "not the password", out);
}

void refusal_call_nobody(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    (void)f, (void)nth;
    sign_in(s, NULL, out);
}
