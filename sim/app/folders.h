#ifndef SIM_APP_FOLDERS_H
#define SIM_APP_FOLDERS_H
/* The folders of one account as all its apps share them: each is numbered once, and what a listing of it said becomes
 * an immutable snapshot that all who saw the very same one hold. One thread. Layer 3. */
#include "base/rng.h"
#include "drive/model.h"

#define VIEW_NONE UINT32_MAX

struct folders;
struct folders *folders_new(void);
void folders_free(struct folders **f);                          /* after all views of it */
uint32_t folders_add(struct folders *f, const char *id);        /* the number of a folder, new or not */
uint32_t folders_find(const struct folders *f, const char *id); /* VIEW_NONE when unknown */
const char *folders_id(const struct folders *f, uint32_t folder);
uint32_t folders_count(const struct folders *f);
/* Numbers the folders in the order of their ids, so that a choice by a seed does not depend on the order in which they
 * were found. Before the first view. */
void folders_sort(struct folders *f);
/* Draws n different ones of total, ascending, into out; n <= total. */
void folders_choose(struct rng *r, uint32_t total, uint32_t n, uint32_t *out);

struct snap;
struct view_item { /* borrowed from a snapshot: valid until the view changes or the coroutine yields */
    const char *id, *name;
    const char *version; /* NULL: the server has none */
    int64_t size;        /* -1: unknown */
    bool folder;
};
/* What the listing says, counted as one more holder's. */
struct snap *snap_take(struct folders *f, uint32_t folder, const struct drive_listing *l);
void snap_give(struct folders *f, struct snap *s); /* NULL: nothing */
uint32_t snap_items(const struct snap *s);         /* NULL: 0; files come before folders */
uint32_t snap_files(const struct snap *s);         /* of them; NULL: 0 */
struct view_item snap_item(const struct snap *s, uint32_t k);
size_t folders_snapshots(const struct folders *f); /* alive */
#endif
