#ifndef CHECKS_EVIDENCE_TREE_H
#define CHECKS_EVIDENCE_TREE_H
/* The database's file tree in memory: about 130 bytes a row plus the names. tree_load reads it row by row in one
 * repeatable-read transaction; every check that looks at rows shares it, so that all of them judge the same instant.
 * Tests put rows in by hand. Layer 3. */
#include "drive/cmd.h"
#include "store/pg.h"

#define TREE_NONE UINT32_MAX

struct tree_node {
    const char *id, *name, *path; /* path NULL: no object (a folder) */
    int64_t size;                 /* -1 for folders */
    int64_t agg_size, agg_files, agg_folders;
    uint64_t version; /* hash_str of its text; 0: the rows have none */
    uint32_t parent;  /* index, TREE_NONE: at the root or the parent is missing */
    uint32_t account; /* index into accounts */
    bool folder, trashed, parent_missing, in_cycle, object_seen;
};
struct tree_account {
    const char *id, *email;
    int64_t used, reserved; /* as stored; -1: the server keeps none */
    int64_t sum_size, reservations;
    uint32_t files, folders;
};
struct tree {
    struct tree_node *nodes;
    uint32_t n;
    struct tree_account *accounts;
    uint32_t n_accounts;
    unsigned schema;   /* enum schema_bit */
    bool listed;       /* made of listings: live entries alone, no totals, no objects */
    uint32_t *order;   /* every node before its children; nodes in cycles come last, unordered */
    uint32_t n_cyclic; /* how many of them */
    struct tree_strings *strings;
};
/* Loads all accounts. The caller frees. */
MAY_YIELD enum err tree_load(struct pg_pool *pool, struct tree **out, struct errinfo *ei) WARN_UNUSED;

/* What tree_load is made of: accounts, then rows in any order, then once tree_link. Strings are copied. */
struct tree_row {
    const char *id, *name, *parent_id, *path, *account, *version; /* parent_id, path, version: may be NULL */
    int64_t size, agg_size, agg_files, agg_folders;
    bool folder, trashed;
};
struct tree *tree_new(unsigned schema);
struct tree_account *tree_add_account(struct tree *t, const char *id, const char *email); /* valid until the next */
uint32_t tree_find_account(const struct tree *t, const char *id);                         /* TREE_NONE when absent */
void tree_add(struct tree *t, const struct tree_row *row);
void tree_link(struct tree *t);
void tree_free(struct tree **t);
uint32_t tree_find(const struct tree *t, const char *id); /* TREE_NONE when absent */
/* "Projects/2024/report.pdf", cut in front to fit. */
char *tree_path(const struct tree *t, uint32_t node, char *dst, size_t n);
#endif
