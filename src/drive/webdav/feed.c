/* A change feed made of ETags, as the desktop clients of Nextcloud and ownCloud do it: there a folder's ETag changes
 * with anything below it, so one request for the top's tells whether anything happened at all, and where it did, only
 * folders whose ETag changed are looked into, and of those only the ones that lead to an open folder. Open are the
 * folders that this client has listed. Plain WebDAV servers change a folder's ETag with its own entries at most; there
 * the feed is absent. A cloud whose ETags do not show this client's own writes loses it too. */
#include "drive/webdav/feed.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "drive/webdav/read.h"
#include <stdio.h>
#include <string.h>

#define KNOWN_MAX (64 * 1024) /* folders; with more open ones each change is a resync */
#define DEPTH_MAX 256
#define SHOWN_US  (2 * US_PER_S) /* an acknowledged write is in the top's ETag by then */

static const char wanted[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                             "<D:propfind xmlns:D=\"DAV:\" xmlns:oc=\"http://owncloud.org/ns\"><D:prop>"
                             "<D:resourcetype/><D:getetag/><oc:fileid/></D:prop></D:propfind>";

/* An open folder, or one above it. Two tags, since looking into a folder does not list it and listing it tells nothing
 * of what is deeper. */
struct known {
    uint64_t listed;        /* its ETag when it was listed; 0: not since it changed */
    uint64_t walked;        /* and when what is below was last looked through; 0: never */
    uint64_t visited, seen; /* walks in which it was looked into, and found in its folder */
    bool open, leads;       /* leads: an open one is below */
    bool news;              /* not told yet */
    char id[];              /* "": the top */
};
struct dav_feed {
    struct map *known;
    uint64_t walk;     /* counts the walks */
    char cursor[64];   /* the one that was told last */
    struct mono wrote; /* the first write that no ETag has shown yet; us 0: none */
    struct mono shown; /* when the top's ETag was last seen to be a new one: it may tell of all that was sent before */
    bool full;
};

uint64_t dav_feed_tag(const struct dav_item *item)
{
    return item->etag ? hash_str(item->etag) | 1 : 0;
}

static struct known *find(const struct dav_feed *f, const char *id)
{
    return map_get(f->known, sv_of(id ? id : ""));
}

/* NULL: no room. */
static struct known *known_of(struct dav_feed *f, const char *id)
{
    struct sv key = sv_of(id ? id : "");
    struct known *k = map_get(f->known, key);
    f->full |= !k && map_count(f->known) >= KNOWN_MAX;
    if (k || f->full)
        return k;
    k = mem_zalloc(sizeof *k + key.n + 1);
    memcpy(k->id, key.p, key.n);
    map_put(f->known, key, k);
    return k;
}

static bool free_known(void *arg, struct sv key, void *value)
{
    (void)arg, (void)key;
    mem_free(value);
    return false;
}

void dav_feed_free(struct dav_feed **f)
{
    if (!*f)
        return;
    map_filter((*f)->known, free_known, NULL);
    map_free(&(*f)->known);
    MEM_FREE(*f);
}

void dav_feed_listed(struct api *a, const char *folder, uint64_t tag)
{
    struct dav_feed *f = dav_of(a)->feed;
    struct known *k = f ? known_of(f, folder) : NULL;
    if (!k)
        return;
    k->open = true;
    k->listed = tag;
}

void dav_feed_wrote(struct api *a, struct mono sent)
{
    struct dav_feed *f = dav_of(a)->feed;
    if (f && f->wrote.us == 0 && mono_before(f->shown, sent))
        f->wrote = mono_now();
}

/* ---- what there is to follow ---- */

struct ids {
    struct known **items;
    size_t n, cap;
};

static void ids_add(struct ids *l, struct known *k)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->items = mem_realloc_array(l->items, l->cap, sizeof(struct known *));
    }
    l->items[l->n++] = k;
}

static bool gather_open(void *arg, struct sv key, void *value)
{
    struct known *k = value;
    (void)key;
    k->leads = false;
    if (k->open)
        ids_add(arg, k);
    return true;
}

static struct ids open_ones(struct dav_feed *f)
{
    struct ids open = {0};
    map_filter(f->known, gather_open, &open);
    return open;
}

/* Marks the way from the top to each open folder. */
static void mark_ways(struct api *a, struct dav_feed *f)
{
    struct ids open = open_ones(f);
    for (size_t i = 0; i < open.n; i++) {
        const char *id = open.items[i]->id;
        while (*id) {
            id = names_parent(a->names, id);
            struct known *above = known_of(f, id);
            if (!above || above->leads)
                break;
            above->leads = true;
            id = above->id;
        }
    }
    mem_free(open.items);
}

/* ---- the walk ---- */

struct walk {
    struct api *a;
    struct dav_feed *f;
    struct known *at; /* the folder that is being looked into */
    uint64_t own;     /* its ETag */
    struct ids queue;
};

static void on_entry(void *arg, const char *name, const struct dav_item *item)
{
    struct walk *w = arg;
    uint64_t tag = dav_feed_tag(item);
    if (!name) {
        w->own = tag;
        return;
    }
    if (!item->folder || !item->own_id)
        return;
    const char *parent = w->at->id[0] ? w->at->id : NULL;
    struct known *k = find(w->f, names_id(w->a->names, parent, name, item->own_id));
    if (!k)
        return;
    k->seen = w->f->walk;
    k->news |= k->open && (tag == 0 || tag != k->listed);
    if (k->leads && (tag == 0 || tag != k->walked))
        ids_add(&w->queue, k);
}

/* Depth 0: own alone. */
static MAY_YIELD enum err ask(struct walk *w, bool itself_alone, struct api_result *r)
{
    const struct dav_children c = {.xml = wanted, .itself_alone = itself_alone, .entry = on_entry, .arg = w};
    struct buf path;
    w->own = 0;
    if (!dav_path(w->a, w->at->id[0] ? w->at->id : NULL, true, &path, r))
        return ERR_OK;
    return dav_children(w->a, &path, &c, r);
}

/* A folder that went away while its parent was read is no failure: the parent's ETag has changed again. */
static MAY_YIELD enum err look_through(struct walk *w, struct api_result *r)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < w->queue.n && !err && r->outcome == OUT_OK; i++) {
        w->at = w->queue.items[i];
        err = ask(w, false, r);
        if (!err && r->status == 404 && i > 0) {
            w->at->news |= w->at->open;
            r->outcome = OUT_OK;
        } else if (!err && r->outcome == OUT_OK) {
            w->at->visited = w->f->walk;
            w->at->walked = w->own;
        }
    }
    return err;
}

static bool forget_visit(void *arg, struct sv key, void *value)
{
    struct known *k = value;
    (void)key;
    if (k->visited == *(const uint64_t *)arg)
        k->walked = 0;
    return true;
}

/* Looked into, its folder did not show it, or one above it: moved away or deleted. */
static bool is_gone(struct api *a, const struct dav_feed *f, const char *id)
{
    for (unsigned depth = 0; *id && depth < DEPTH_MAX; depth++) {
        const char *parent = names_parent(a->names, id);
        const struct known *k = find(f, id), *above = find(f, parent);
        if (k && above && above->visited == f->walk && k->seen != f->walk)
            return true;
        id = parent ? parent : "";
    }
    return false;
}

static void tell(struct api *a, struct dav_feed *f, struct arena *mem, struct api_changes *out)
{
    struct ids open = open_ones(f);
    out->folders = arena_alloc(mem, (open.n + 1) * sizeof *out->folders);
    for (size_t i = 0; i < open.n; i++) {
        struct known *k = open.items[i];
        bool gone = is_gone(a, f, k->id);
        if (k->news || gone)
            out->folders[out->n++] = k->id[0] ? arena_strdup(mem, k->id) : NULL;
        k->news = false;
        k->open = !gone; /* until it is listed again */
    }
    mem_free(open.items);
}

static void set_cursor(struct dav_feed *f, struct api_changes *out)
{
    snprintf(f->cursor, sizeof f->cursor, "etags-%llx", (unsigned long long)mono_now().us);
    snprintf(out->cursor, sizeof out->cursor, "%s", f->cursor);
}

static void note_shown(struct dav_feed *f)
{
    f->wrote.us = 0;
    f->shown = mono_now();
}

/* From here on. */
static MAY_YIELD enum err begin(struct api *a, bool lost, struct api_changes *out, struct api_result *r)
{
    struct dav *d = dav_of(a);
    if (!d->feed) {
        d->feed = mem_zalloc(sizeof *d->feed);
        d->feed->known = map_new();
    }
    struct walk w = {.a = a, .f = d->feed, .at = known_of(d->feed, NULL)};
    enum err err = ask(&w, true, r);
    if (err || r->outcome != OUT_OK)
        return err;
    if (!w.own) { /* no ETags, no feed */
        a->caps &= ~(unsigned)API_CAP_FEED;
        return api_absent(r, api_cap_text(API_CAP_FEED));
    }
    w.at->walked = w.own;
    out->resync = lost;
    set_cursor(d->feed, out);
    note_shown(d->feed);
    return ERR_OK;
}

static bool shows_writes(struct dav_feed *f, struct mono asked, bool changed)
{
    if (changed)
        note_shown(f);
    return f->wrote.us == 0 || mono_diff(asked, f->wrote) <= SHOWN_US;
}

enum err webdav_changes(struct api *a, const char *cursor, struct arena *mem, struct api_changes *out,
                        struct api_result *r)
{
    struct dav_feed *f = dav_of(a)->feed;
    bool fresh = !cursor || !*cursor;
    *out = (struct api_changes){.resync = false};
    if (!(a->caps & API_CAP_FEED))
        return api_absent(r, api_cap_text(API_CAP_FEED));
    if (fresh || !f || strcmp(cursor, f->cursor) != 0)
        return begin(a, !fresh, out, r);
    struct walk w = {.a = a, .f = f, .at = known_of(f, NULL)};
    struct mono asked = mono_now();
    f->walk++;
    enum err err = ask(&w, true, r);
    if (err || r->outcome != OUT_OK)
        return err;
    bool changed = w.own == 0 || w.own != w.at->walked;
    if (!shows_writes(f, asked, changed)) {
        a->caps &= ~(unsigned)API_CAP_FEED;
        return api_absent(r, api_cap_text(API_CAP_FEED));
    }
    if (changed) {
        w.at->news |= w.at->open && w.own != w.at->listed;
        mark_ways(a, f);
        ids_add(&w.queue, w.at);
        err = look_through(&w, r);
    }
    mem_free(w.queue.items);
    if (err || r->outcome != OUT_OK) { /* what was found stays news, what was not reached is looked for again */
        map_filter(f->known, forget_visit, &f->walk);
        return err;
    }
    tell(a, f, mem, out);
    out->resync = f->full;
    set_cursor(f, out);
    return ERR_OK;
}
