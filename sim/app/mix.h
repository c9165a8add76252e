#ifndef SIM_APP_MIX_H
#define SIM_APP_MIX_H
/* In which proportions apps act. The default weights stand in the model's table of operations; a file (--mix) replaces
 * them: a line is an operation's key and its weight ("download 55"), '#' starts a comment, what is not named is not
 * done. Layer 3, pure. */
#include "base/buf.h"
#include "base/rng.h"
#include "drive/model.h"

struct mix {
    double weight[OP_COUNT];
};
void mix_default(struct mix *m);
/* ERR_USAGE with the line's number and what it should be; ERR_IO when the file cannot be read. */
enum err mix_load(struct mix *m, const char *file, struct errinfo *ei) WARN_UNUSED;
enum err mix_parse(struct mix *m, const char *name, struct sv text, struct errinfo *ei) WARN_UNUSED;
enum drive_op mix_draw(const struct mix *m, struct rng *r);
double mix_share(const struct mix *m, enum drive_op op); /* 0 to 1 */
bool mix_is_action(enum drive_op op);                    /* one that a mix may name */
#endif
