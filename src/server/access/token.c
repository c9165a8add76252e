/* libjwt reads JSON by recursion before it checks the signature, and this runs on a coroutine's small stack: so the
 * nesting of a stranger's token is bounded here first. */
#include "server/access/token.h"
#include "base/digest.h"
#include "base/mem.h"
#include <jwt.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_BYTES_MAX 4096
#define NESTING_MAX     8

static bool flat(struct sv part)
{
    struct buf plain = BUF_INIT(TOKEN_BYTES_MAX);
    bool ok = digest_unbase64(&plain, part) == ERR_OK;
    size_t open = 0;
    for (size_t i = 0; i < plain.len; i++)
        open += plain.data[i] == '{' || plain.data[i] == '[';
    buf_done(&plain);
    return ok && open <= NESTING_MAX;
}

static bool is_plausible(struct sv text)
{
    struct sv rest = text, head, body;
    return text.n <= TOKEN_BYTES_MAX && sv_split(&rest, '.', &head) && sv_split(&rest, '.', &body) && flat(head) &&
           flat(body);
}

static bool copy_id(char dst[DRIVE_ID_MAX + 1], const char *id)
{
    return id && str_fit(dst, DRIVE_ID_MAX + 1, id);
}

enum token_state token_read(const char *secret, struct sv text, struct wall now, struct token *out)
{
    if (!is_plausible(text))
        return TOKEN_BAD;
    jwt_t *jwt = NULL;
    char *z = mem_strndup(text.p, text.n);
    enum token_state state = TOKEN_BAD;
    if (jwt_decode(&jwt, z, (const unsigned char *)secret, (int)strlen(secret)) == 0 &&
        jwt_get_alg(jwt) == JWT_ALG_HS256 && copy_id(out->user_id, jwt_get_grant(jwt, "id")) &&
        copy_id(out->session_id, jwt_get_grant(jwt, "sid"))) {
        out->issued_s = jwt_get_grant_int(jwt, "iat");
        out->expires_s = jwt_get_grant_int(jwt, "exp");
        state = out->expires_s > now.us / US_PER_S ? TOKEN_OK : TOKEN_EXPIRED;
    }
    jwt_free(jwt);
    mem_free(z);
    return state;
}

char *token_make(const char *secret, const struct token *t)
{
    jwt_t *jwt = NULL;
    char *out = NULL;
    if (jwt_new(&jwt) != 0)
        return NULL;
    if (jwt_set_alg(jwt, JWT_ALG_HS256, (const unsigned char *)secret, (int)strlen(secret)) == 0 &&
        jwt_add_grant(jwt, "id", t->user_id) == 0 && jwt_add_grant(jwt, "sid", t->session_id) == 0 &&
        jwt_add_grant_int(jwt, "v", 1) == 0 && jwt_add_grant_int(jwt, "iat", (long)t->issued_s) == 0 &&
        jwt_add_grant_int(jwt, "exp", (long)t->expires_s) == 0) {
        char *text = jwt_encode_str(jwt);
        out = mem_strdup(text);
        free(text); /* by malloc of libjwt */
    }
    jwt_free(jwt);
    return out;
}
