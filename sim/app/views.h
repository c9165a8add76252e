#ifndef SIM_APP_VIEWS_H
#define SIM_APP_VIEWS_H
/* What apps believe the tree looks like: an app's view is a pointer to a snapshot (folders.h) for each folder it has
 * open. So a view stays what its app was really told, at 24 bytes a folder. An app's own writes change its view by a
 * new snapshot. Nothing here keeps a pointer over a yield: look items up again, or copy them. One thread. Layer 3. */
#include "drive/model.h"
#include "sim/app/folders.h"

struct view_folder {
    uint32_t folder;   /* its number in struct folders */
    uint32_t changes;  /* own writes applied so far: a listing asked for before one of them is stale */
    struct snap *snap; /* NULL: not listed yet */
    bool dirty;        /* known to have changed, to be listed again */
    bool gone;         /* no longer there */
};
struct view {
    struct folders *folders;
    struct view_folder *open; /* ascending by folder */
    uint32_t n;
    uint64_t files; /* in all snapshots */
};
void view_init(struct view *v, struct folders *f, const uint32_t *folders, uint32_t n);
void view_done(struct view *v);
uint32_t view_find(const struct view *v, const char *folder_id); /* its place among the open ones, or VIEW_NONE */
const char *view_id(const struct view *v, uint32_t at);
void view_list(struct view *v, uint32_t at, const struct drive_listing *l); /* what the server just told */
void view_gone(struct view *v, uint32_t at);
/* The app's own writes, as the server confirmed them; the folder must have been listed. */
void view_put(struct view *v, uint32_t at, const struct drive_file *file); /* new, or replaced by id */
void view_drop(struct view *v, uint32_t at, const char *id);

uint32_t view_items(const struct view *v, uint32_t at); /* files and folders */
/* The k-th file of the whole view, k < v->files: where it is, and what. */
struct view_item view_file(const struct view *v, uint64_t k, uint32_t *at);
uint32_t view_files(const struct view *v, uint32_t at);
struct view_item view_file_at(const struct view *v, uint32_t at, uint32_t k); /* k < view_files */
/* Of all its entries: ledger_entry_hash, and into *versions ledger_version_hash, added up. */
uint64_t view_hash(const struct view *v, uint32_t at, uint64_t *versions);
bool view_has(const struct view *v, uint32_t at, const char *id, struct view_item *out); /* out may be NULL */
#endif
