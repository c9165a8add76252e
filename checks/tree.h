#ifndef CHECKS_TREE_H
#define CHECKS_TREE_H
/* The database's file tree in memory, read row by row in one repeatable-read transaction: about 120 bytes a row plus
 * the names. Every check that looks at rows shares it, so that all of them judge the same instant. Layer 3. */
#include "drive/cmd.h"
#include "store/pg.h"

#define TREE_NONE UINT32_MAX

struct tree_node {
    const char *id, *name, *path; /* path NULL: no object (a folder) */
    int64_t size;                 /* -1 for folders */
    int64_t agg_size, agg_files, agg_folders;
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
    uint32_t *order;   /* every node before its children; nodes in cycles come last, unordered */
    uint32_t n_cyclic; /* how many of them */
    struct tree_strings *strings;
};
/* Loads all accounts. The caller frees. */
MAY_YIELD enum err tree_load(struct pg_pool *pool, struct tree **out, struct errinfo *ei) WARN_UNUSED;
void tree_free(struct tree **t);
uint32_t tree_find(const struct tree *t, const char *id); /* TREE_NONE when absent */
/* "Projects/2024/report.pdf", cut in front to fit. */
char *tree_path(const struct tree *t, uint32_t node, char *dst, size_t n);
#endif
