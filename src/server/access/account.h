#ifndef SERVER_ACCESS_ACCOUNT_H
#define SERVER_ACCESS_ACCOUNT_H
/* What the handlers of accounts and of sub-users share: reading and judging the fields of a body, and the user object
 * of the wire. Layer 3. */
#include "server/http/http.h"
#include "store/pg.h"

/* FIELD_LOGIN and FIELD_SECRET are the email and the password of one who signs in: any text will do. */
enum account_field {
    FIELD_EMAIL = 1,
    FIELD_PASSWORD = 2,
    FIELD_NAME = 4,
    FIELD_PERMISSIONS = 8,
    FIELD_LOGIN = 16,
    FIELD_SECRET = 32
};
struct account_fields { /* in the request's arena; NULL: not given */
    const char *email, *password, *name;
    const char *permissions;      /* as a text[] */
    const char *permission_names; /* joined by ',' */
};
struct account_user {
    const char *id, *email, *name;
    const char *permissions; /* names joined by ',' */
    const char *created_at;
    bool owner;
};
/* Reads the body and judges the fields: those of `need` must be there, those of `may` can. False: answered with 400,
 * 413 or 422 {"message":"Validation failed","details":[{field: what is wrong}]}. */
MAY_YIELD bool account_read(struct request *r, unsigned need, unsigned may, struct account_fields *out);
/* The columns of users that make one, the first of a row, and reading them back; strings are borrowed. */
#define ACCOUNT_COLUMNS                                                                                                \
    " id, email, name, coalesce(array_to_string(permissions, ','), ''), drive_iso(created_at), parent_user_id IS NULL"
#define ACCOUNT_COLUMN_COUNT 6
struct account_user account_user_of(const struct pg_result *res, int row);
void account_user_json(struct jsonw *w, const char *key, const struct account_user *u);
/* {key: user}; key NULL: the user alone. */
MAY_YIELD void account_reply(struct request *r, int status, const char *key, const struct account_user *u);
#endif
