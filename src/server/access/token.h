#ifndef SERVER_ACCESS_TOKEN_H
#define SERVER_ACCESS_TOKEN_H
/* Session tokens: JWTs signed with HS256 that name a login and its session row. The owner of jwt.h. Layer 3, pure. */
#include "drive/model.h"

struct token {
    char user_id[DRIVE_ID_MAX + 1], session_id[DRIVE_ID_MAX + 1];
    int64_t issued_s, expires_s;
};
enum token_state { TOKEN_OK, TOKEN_EXPIRED, TOKEN_BAD };
/* Signature first, then the fields; EXPIRED only for one that we signed. */
enum token_state token_read(const char *secret, struct sv text, struct wall now, struct token *out);
/* The text; mem_free it. NULL when signing fails. */
char *token_make(const char *secret, const struct token *t);
#endif
