/* Nodes know their parent's node, so that a folder's move moves all below it at no cost; places ("parent id/name")
 * point to nodes. A dead node stays in the table of ids: what comes later at its place is somebody else. */
#include "drive/names.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 256
#define KEY_MAX   (64 * 1024)

struct node {
    struct node *parent; /* NULL: the root */
    const char *id, *name;
    bool dead, folder;
};
struct names {
    struct arena *mem;
    struct map *ids, *places;
};

struct names *names_new(void)
{
    struct names *n = mem_zalloc(sizeof *n);
    n->mem = arena_new(16 * 1024);
    n->ids = map_new();
    n->places = map_new();
    return n;
}

void names_free(struct names **n)
{
    if (!*n)
        return;
    map_free(&(*n)->ids);
    map_free(&(*n)->places);
    arena_free(&(*n)->mem);
    MEM_FREE(*n);
}

static struct node *node_of(const struct names *n, const char *id)
{
    return id ? map_get(n->ids, sv_of(id)) : NULL;
}

/* A name holds no slash, so that the key is unambiguous. */
static void place_key(struct buf *key, const struct node *parent, const char *name)
{
    buf_init(key, KEY_MAX);
    enum err err = buf_appendf(key, "%s/%s", parent ? parent->id : "", name);
    (void)err; /* a name beyond the limit is cut: no file system has one */
}

static struct node *at_place(const struct names *n, const struct node *parent, const char *name)
{
    struct buf key;
    place_key(&key, parent, name);
    struct node *found = map_get(n->places, (struct sv){buf_cstr(&key), key.len});
    buf_done(&key);
    return found;
}

static void put_place(struct names *n, struct node *node, const struct node *parent, const char *name)
{
    struct buf key;
    place_key(&key, parent, name);
    map_put(n->places, (struct sv){buf_cstr(&key), key.len}, node);
    buf_done(&key);
}

static void clear_place(struct names *n, const struct node *node, const struct node *parent, const char *name)
{
    struct buf key;
    place_key(&key, parent, name);
    struct sv k = {buf_cstr(&key), key.len};
    if (map_get(n->places, k) == node)
        map_take(n->places, k);
    buf_done(&key);
}

static bool is_at(const struct node *node, const struct node *parent, const char *name)
{
    return node->parent == parent && strcmp(node->name, name) == 0;
}

static void settle_at(struct names *n, struct node *node, struct node *parent, const char *name)
{
    if (!is_at(node, parent, name)) {
        clear_place(n, node, node->parent, node->name);
        node->parent = parent;
        node->name = arena_strdup(n->mem, name);
    }
    put_place(n, node, parent, name);
}

static struct node *add(struct names *n, const char *id, struct node *parent, const char *name)
{
    struct node *node = arena_alloc(n->mem, sizeof *node);
    if (parent)
        parent->folder = true;
    *node = (struct node){.parent = parent, .id = arena_strdup(n->mem, id), .name = arena_strdup(n->mem, name)};
    map_put(n->ids, sv_of(node->id), node);
    put_place(n, node, parent, name);
    return node;
}

/* Made of the place; the next number when that one was given before. */
static void fresh_id(const struct names *n, const struct node *parent, const char *name, char *dst, size_t size)
{
    uint64_t h = rng_mix64(hash_str(name) + 3 * (parent ? hash_str(parent->id) : 0));
    for (unsigned tries = 0;; tries++) {
        snprintf(dst, size, "p%016llx", (unsigned long long)rng_mix64(h + tries));
        if (!map_get(n->ids, sv_of(dst)))
            return;
    }
}

const char *names_id(struct names *n, const char *parent_id, const char *name, const char *own)
{
    struct node *parent = node_of(n, parent_id), *node = own ? node_of(n, own) : at_place(n, parent, name);
    char id[32];
    if (own && node && node->dead) { /* restored, or deleted by one of two requests that crossed */
        node->dead = false;
        settle_at(n, node, parent, name);
    }
    if (own && !node)
        return add(n, own, parent, name)->id;
    if (!node) {
        fresh_id(n, parent, name, id, sizeof id);
        node = add(n, id, parent, name);
    }
    if (!is_at(node, parent, name))
        settle_at(n, node, parent, name);
    return node->id;
}

static bool alive(const struct node *node)
{
    for (unsigned depth = 0; node && depth < DEPTH_MAX; node = node->parent, depth++) {
        if (node->dead)
            return false;
    }
    return true;
}

bool names_known(const struct names *n, const char *id)
{
    const struct node *node = node_of(n, id);
    return node && alive(node);
}

void names_note_folder(struct names *n, const char *id, bool folder)
{
    struct node *node = node_of(n, id);
    if (node)
        node->folder = folder;
}

bool names_is_folder(const struct names *n, const char *id)
{
    const struct node *node = node_of(n, id);
    return node && node->folder;
}

enum err names_path(const struct names *n, const char *id, struct buf *out)
{
    const struct node *chain[DEPTH_MAX];
    size_t depth = 0;
    const struct node *node = node_of(n, id);
    enum err err = ERR_OK;
    if (id && (!node || !alive(node)))
        return ERR_NOTFOUND;
    for (; node && depth < DEPTH_MAX; node = node->parent)
        chain[depth++] = node;
    if (node)
        return ERR_NOTFOUND; /* deeper than any tree: a move made a ring */
    for (size_t i = depth; i-- > 0 && !err;) {
        err = buf_append_str(out, chain[i]->name);
        if (!err && i > 0)
            err = buf_append_char(out, '/');
    }
    return err;
}

const char *names_name(const struct names *n, const char *id)
{
    const struct node *node = node_of(n, id);
    return node ? node->name : NULL;
}

const char *names_parent(const struct names *n, const char *id)
{
    const struct node *node = node_of(n, id);
    return node && node->parent ? node->parent->id : NULL;
}

void names_expect(struct names *n, const char *id, const char *parent, const char *name)
{
    struct node *node = node_of(n, id), *to = node_of(n, parent);
    if (node && !at_place(n, to, name))
        put_place(n, node, to, name);
}

void names_moved(struct names *n, const char *id, const char *parent, const char *name)
{
    struct node *node = node_of(n, id);
    if (node)
        settle_at(n, node, node_of(n, parent), name);
}

void names_not_moved(struct names *n, const char *id, const char *parent, const char *name)
{
    struct node *node = node_of(n, id), *to = node_of(n, parent);
    if (node && !is_at(node, to, name))
        clear_place(n, node, to, name);
}

void names_drop(struct names *n, const char *id)
{
    struct node *node = node_of(n, id);
    if (!node)
        return;
    clear_place(n, node, node->parent, node->name);
    node->dead = true;
}

void names_bind(struct names *n, const char *id, const char *parent, const char *name)
{
    struct node *node = node_of(n, id), *to = node_of(n, parent);
    if (node && !node->dead)
        settle_at(n, node, to, name);
    else if (!node)
        add(n, id, to, name);
}
