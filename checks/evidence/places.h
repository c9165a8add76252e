#ifndef CHECKS_EVIDENCE_PLACES_H
#define CHECKS_EVIDENCE_PLACES_H
/* Where things are, as the server's listings show it: of the folders that a run's apps worked in, and of the trash,
 * what is wanted by id or by name is kept; each folder is read once. Layer 3. */
#include "checks/evidence/asker.h"
#include "checks/evidence/fate.h"

struct place {
    const char *id, *name, *parent; /* parent NULL: in the trash, or not told */
    int64_t size;                   /* -1: a folder, or not told */
    unsigned listed;                /* in how many of the listings; of the trash: 0 */
    bool trashed, claimed;          /* claimed: by a request that was not told its id */
    struct place *same_name;        /* the next one with that name, or a numbered one, in that folder */
};

struct places;
struct places *places_new(struct check_ctx *c, struct asker *a);
void places_free(struct places **p);
/* What to read and what to keep of it, said before. Ids and names live as long as the journal. */
void places_want(struct places *p, uint32_t account, const char *id);
void places_want_name(struct places *p, uint32_t account, const char *name);
void places_want_folder(struct places *p, uint32_t account, const char *folder);
/* Reads all folders wanted, and the trash of their accounts. An error: the server could not be asked. */
MAY_YIELD enum err places_read(struct places *p, struct errinfo *ei) WARN_UNUSED;

struct place *places_find(struct places *p, uint32_t account, const char *id); /* NULL: in none of them */
/* Those of that name, or twins of it, in a folder ("": the trash): a chain by same_name. */
struct place *places_named(struct places *p, uint32_t account, const char *folder, const char *name);
/* Where one item is, asking for it when no listing shows it. last_folder "": not known; an item goes to the trash with
 * its folder. What seen points to lives in mem or in p. */
MAY_YIELD enum err places_see(struct places *p, uint32_t account, const char *id, const char *last_folder,
                              struct arena *mem, struct item_seen *seen, struct errinfo *ei) WARN_UNUSED;
#endif
