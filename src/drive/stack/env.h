#ifndef DRIVE_STACK_ENV_H
#define DRIVE_STACK_ENV_H
/* Where a stack is reached from outside. The arena owns the texts. Layer 2. */
#include "drive/stack/impl.h"
#include "store/blob.h"

const char *stack_database_url(const struct stack *s, struct arena *mem, const char *database);
const char *stack_database_url_as(const struct stack *s, struct arena *mem, const char *user, const char *password,
                                  const char *database);
const char *stack_redis_url(const struct stack *s, struct arena *mem);
struct blob_conf stack_blob_conf(const struct stack *s, struct arena *mem); /* borrows from both */
const char *stack_server_url(const struct stack *s, struct arena *mem);
#endif
