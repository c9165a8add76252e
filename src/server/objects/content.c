#include "base/digest.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/events/presence.h"
#include "server/objects/impl.h"

#include <stdio.h>
#include <string.h>

/* ---- what is in flight ---- */

#define DOUBT_US (30 * US_PER_S)

/* Never many (one an upload, a few a bulk upload), so a list does. */
struct in_flight {
    struct in_flight *next;
    struct mono until; /* MONO_NEVER: until it is settled */
    char key[CONTENT_KEY_MAX];
};

void content_new_key(struct server *s, const char *account_id, char key[CONTENT_KEY_MAX])
{
    char unique[17];
    digest_random_id(unique, 16);
    memcpy(unique, presence_id(s), PRESENCE_MARK_LEN); /* 58^11 names are left */
    snprintf(key, CONTENT_KEY_MAX, "%s/%s", account_id, unique);
    struct in_flight *f = mem_alloc(sizeof(*f));
    memcpy(f->key, key, CONTENT_KEY_MAX);
    f->until = MONO_NEVER;
    f->next = s->content->in_flight;
    s->content->in_flight = f;
}

void content_settle(struct server *s, const char *key)
{
    for (struct in_flight **at = &s->content->in_flight; *at; at = &(*at)->next)
        if (strcmp((*at)->key, key) == 0) {
            struct in_flight *f = *at;
            *at = f->next;
            mem_free(f);
            return;
        }
}

bool content_in_flight(struct server *s, const char *key)
{
    struct mono now = mono_now();
    for (struct in_flight *f = s->content->in_flight; f; f = f->next)
        if (strcmp(f->key, key) == 0 && mono_before(now, f->until))
            return true;
    return false;
}

void content_doubt(struct server *s, struct content_object *o)
{
    for (struct in_flight *f = s->content->in_flight; f; f = f->next)
        if (strcmp(f->key, o->key) == 0)
            f->until = mono_add(mono_now(), DOUBT_US);
    o->key[0] = '\0';
}

/* Doubts that are over are forgotten on the way. */
bool content_in_doubt(struct server *s)
{
    struct mono now = mono_now();
    bool any = false;
    for (struct in_flight **at = &s->content->in_flight; *at;) {
        struct in_flight *f = *at;
        if (mono_before(now, f->until)) {
            any = any || mono_before(f->until, MONO_NEVER);
            at = &f->next;
        } else {
            *at = f->next;
            mem_free(f);
        }
    }
    return any;
}

/* The store may have it all the same, whole or in part: the sweeper looks, and soon. */
void content_put_failed(struct server *s, const char *key)
{
    content_settle(s, key);
    s->content->left_behind = true;
}

void content_keep(struct server *s, struct content_object *o)
{
    content_settle(s, o->key);
    o->key[0] = '\0';
}

void content_drop(struct server *s, struct content_object *o)
{
    if (!o->key[0])
        return;
    const char *key = o->key;
    content_delete(s, &key, 1);
    content_settle(s, o->key);
    o->key[0] = '\0';
}

void content_delete(struct server *s, const char *const *keys, size_t n)
{
    struct blob *blob = NULL;
    struct errinfo ei;
    size_t failed = 0;
    if (n == 0)
        return;
    enum err e = content_blob(s, &blob, &ei);
    if (e == ERR_OK && n == 1)
        e = blob_delete(blob, keys[0], &ei);
    else if (e == ERR_OK)
        e = blob_delete_many(blob, keys, n, &failed, &ei);
    if (e == ERR_OK)
        return;
    s->content->left_behind = true;
    LOGW("content", "%zu of %s, the first %s, not deleted yet: %s; the sweeper tries again", failed > 0 ? failed : n,
         COUNTED(n, "object"), keys[0], err_message(&ei));
}

bool content_take_left_behind(struct server *s)
{
    bool left = s->content->left_behind;
    s->content->left_behind = false;
    return left;
}

/* ---- the store ---- */

enum err content_blob(struct server *s, struct blob **out, struct errinfo *ei)
{
    if (!s->blob)
        return err_set(ei, ERR_STORE, "no bucket is connected");
    *out = s->blob;
    return ERR_OK;
}

enum err content_store_err(enum err e, struct errinfo *ei)
{
    if (e == ERR_OK || e == ERR_NOTFOUND)
        return e;
    enum err shown = e == ERR_CANCELLED ? ERR_TIMEOUT : ERR_STORE;
    if (ei)
        ei->code = shown;
    return shown;
}

/* ---- objects in pieces ---- */

static void put_in_coroutine(void *arg)
{
    struct content_putting *p = arg;
    p->err = blob_put_stream(p->blob, p->key, p->size, p->pipe, &p->ei);
}

void content_putting_start(struct content_putting *p, struct server *s, const char *account_id, uint64_t size)
{
    *p = (struct content_putting){.server = s, .size = size};
    sem_take(s->loop, &s->content->puts, 1);
    content_new_key(s, account_id, p->key);
    p->pipe = wpipe_new(s->loop, CONTENT_PIPE_LEN);
    p->err = content_blob(s, &p->blob, &p->ei);
    if (p->err == ERR_OK)
        group_spawn(s->loop, &p->group, put_in_coroutine, p);
    else
        wpipe_close_read(p->pipe);
}

enum err content_putting_write(struct content_putting *p, const void *data, size_t n)
{
    if (n == 0)
        return ERR_OK;
    if (wpipe_write(p->pipe, data, n) != ERR_OK) {
        p->broken = true;
        return ERR_STORE;
    }
    p->written += n;
    return ERR_OK;
}

enum err content_putting_end(struct content_putting *p, enum err cause, struct errinfo *ei)
{
    wpipe_close_write(p->pipe, cause == ERR_OK ? ERR_OK : ERR_CANCELLED);
    group_wait(p->server->loop, &p->group);
    wpipe_free(&p->pipe);
    sem_give(&p->server->content->puts, 1);
    bool tell = cause == ERR_OK || p->broken;
    enum err e = tell ? content_store_err(p->err, &p->ei) : cause;
    if (tell && e != ERR_OK && ei)
        *ei = p->ei;
    if (e != ERR_OK)
        content_put_failed(p->server, p->key);
    return e;
}

static void get_in_coroutine(void *arg)
{
    struct content_getting *g = arg;
    g->err = blob_get_stream(g->blob, g->key, g->offset, g->length, g->pipe, &g->ei);
}

void content_getting_start(struct content_getting *g, struct server *s, const char *key, uint64_t offset,
                           uint64_t length)
{
    *g = (struct content_getting){.server = s, .key = key, .offset = offset, .length = length};
    sem_take(s->loop, &s->content->gets, 1);
    g->pipe = wpipe_new(s->loop, CONTENT_PIPE_LEN);
    g->err = content_blob(s, &g->blob, &g->ei);
    if (g->err == ERR_OK)
        group_spawn(s->loop, &g->group, get_in_coroutine, g);
    else
        wpipe_close_write(g->pipe, g->err);
}

enum err content_getting_read(struct content_getting *g, void *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t got = 0;
        enum err e = wpipe_read(g->pipe, (char *)data + at, n - at, &got);
        if (e != ERR_OK || got == 0)
            return ERR_STORE;
        at += got;
    }
    return ERR_OK;
}

enum err content_getting_end(struct content_getting *g, struct errinfo *ei)
{
    wpipe_close_read(g->pipe);
    group_wait(g->server->loop, &g->group);
    wpipe_free(&g->pipe);
    sem_give(&g->server->content->gets, 1);
    enum err e = content_store_err(g->err, &g->ei);
    if (e != ERR_OK && ei)
        *ei = g->ei;
    return e;
}

/* ---- the part ---- */

static enum err content_start(struct server *s, struct errinfo *ei)
{
    struct content *c = mem_zalloc(sizeof(*c));
    enum err e = seal_key_parse(&c->key, s->conf->file_encryption_key, ei);
    if (e != ERR_OK) {
        mem_free(c);
        return e;
    }
    c->memory_max = s->conf->upload_memory_bytes;
    sem_init_coro(&c->memory, c->memory_max);
    /* A transfer in pieces holds a thread as long as it lasts: what is left is for the short calls. */
    int64_t streams = s->store_threads < 8 ? 1 : (int64_t)s->store_threads * 3 / 8;
    sem_init_coro(&c->puts, streams);
    sem_init_coro(&c->gets, streams);
    s->content = c;
    return ERR_OK;
}

static void content_stop(struct server *s)
{
    struct content *c = s->content;
    while (c->in_flight) {
        struct in_flight *f = c->in_flight;
        c->in_flight = f->next;
        mem_free(f);
    }
    explicit_bzero(&c->key, sizeof(c->key));
    MEM_FREE(s->content);
}

const struct server_part content_part = {"content", content_start, content_stop};
