#include "checks/evidence/look.h"
#include "drive/target.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *before, *after;
    bool of_database;
} by_id[] = {
    [LOOK_INFO] = {"GET /api/files/", "/info", false},
    [LOOK_CONTENT] = {"GET /api/files/", "/download", false},
    [LOOK_ROW] = {"SELECT * FROM files WHERE id = '", "'", true},
    [LOOK_HISTORY] = {"SELECT * FROM audit_log WHERE resource_id = '", "'", true},
    [LOOK_FOLDER] = {"GET /api/files?parentId=", "", false},
    [LOOK_LOCK] = {"POST /api/files/", "/lock", false},
    [LOOK_SAVE] = {"POST /api/files/", "/replace without X-Lock-Id", false},
};

/* The last operation that says what the item is called. */
static const struct journal_op *named(const struct journal *j, const char *id)
{
    for (size_t i = j->n; i-- > 0;)
        if (j->ops[i].name[0] && strcmp(j->ops[i].file_id, id) == 0)
            return &j->ops[i];
    return NULL;
}

char *look_at(const struct check_ctx *c, enum look how, const char *id, char dst[LOOK_MAX])
{
    if (target_shows_inside(c->cmd->target)) {
        const typeof(by_id[0]) *by = &by_id[by_id[how].of_database && !c->pg ? LOOK_INFO : how];
        snprintf(dst, LOOK_MAX, "%s%s%s", by->before, id, by->after);
        return dst;
    }
    uint32_t node = c->tree ? tree_find(c->tree, id) : TREE_NONE;
    if (node != TREE_NONE)
        return tree_path(c->tree, node, dst, LOOK_MAX);
    const struct journal_op *op = c->journal ? named(c->journal, id) : NULL;
    snprintf(dst, LOOK_MAX, "%s", op ? op->name : id);
    return dst;
}
