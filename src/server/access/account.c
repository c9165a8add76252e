#include "server/access/account.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "server/access/password.h"
#include <ctype.h>
#include <string.h>

#define PASSWORD_MIN 6
#define EMAIL_MAX    255
#define NAME_MAX_    100

struct reading {
    struct request *r;
    const struct json *body;
    struct account_fields *out;
    struct jsonw details;
    bool wrong;
};

static void complain(struct reading *in, const char *field, const char *what)
{
    in->wrong = true;
    jsonw_object(&in->details, NULL);
    jsonw_str(&in->details, field, what);
    jsonw_end_object(&in->details);
}

static bool plausible_email(const char *s)
{
    const char *at = strchr(s, '@');
    if (!at || at == s || strchr(at + 1, '@') || strlen(s) > EMAIL_MAX || !strchr(at, '.'))
        return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f || strchr("<>\"(),;:\\[]", *s))
            return false;
    return true;
}

static const char *lower_case(struct arena *mem, const char *s)
{
    char *lower = arena_strdup(mem, s);
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return lower;
}

static void read_email(struct reading *in, const struct json *v)
{
    const char *s = json_str(v);
    if (!s || !plausible_email(s)) {
        complain(in, "email", "a valid email address is needed");
        return;
    }
    in->out->email = lower_case(in->r->mem, s);
}

static void read_password(struct reading *in, const struct json *v)
{
    const char *s = json_str(v);
    if (!s || strlen(s) < PASSWORD_MIN || strlen(s) > PASSWORD_BYTES_MAX)
        complain(in, "password", "a password must have 6 to 72 bytes");
    else
        in->out->password = arena_strdup(in->r->mem, s);
}

/* Of a login: what no account could have is a wrong pair, not a malformed one. */
static void read_credential(struct reading *in, const struct json *v, const char *field, const char **out)
{
    const char *s = json_str(v);
    if (!s || !*s)
        complain(in, field, "a text that is not empty is needed");
    else
        *out = arena_strdup(in->r->mem, s);
}

static void read_login(struct reading *in, const struct json *v)
{
    const char *s = NULL;
    read_credential(in, v, "email", &s);
    in->out->email = s ? lower_case(in->r->mem, s) : NULL;
}

static void read_secret(struct reading *in, const struct json *v)
{
    read_credential(in, v, "password", &in->out->password);
}

static void read_name(struct reading *in, const struct json *v)
{
    const char *s = json_str(v);
    if (!s || !utf8_valid(sv_of(s)) || utf8_length(sv_of(s)) > NAME_MAX_) {
        complain(in, "name", "a name must have at most 100 characters");
        return;
    }
    if (utf8_has_controls(sv_of(s))) {
        complain(in, "name", "a name must not contain control characters");
        return;
    }
    in->out->name = arena_strdup(in->r->mem, s);
}

static void read_permissions(struct reading *in, const struct json *v)
{
    const char *names[PERM_COUNT], *joined = "";
    size_t n = 0;
    unsigned seen = 0;
    if (!json_is_array(v)) {
        complain(in, "permissions", "permissions is a list of permission keys");
        return;
    }
    for (const struct json *it = json_first(v); it; it = json_next(it)) {
        const char *name = json_str(it);
        unsigned bit = 0;
        if (!name || !perm_parse(name, &bit)) {
            complain(in, "permissions", "an unknown permission key");
            return;
        }
        if (!(seen & bit)) {
            joined = arena_printf(in->r->mem, "%s%s%s", joined, n ? "," : "", name);
            names[n++] = name;
        }
        seen |= bit;
    }
    in->out->permission_names = joined;
    struct buf text = BUF_INIT(1024);
    if (pg_array(&text, names, n) == ERR_OK)
        in->out->permissions = arena_strdup(in->r->mem, buf_cstr(&text));
    buf_done(&text);
}

bool account_read(struct request *r, unsigned need, unsigned may, struct account_fields *out)
{
    static const struct {
        unsigned field;
        const char *name;
        void (*read)(struct reading *in, const struct json *v);
    } fields[] = {
        {FIELD_EMAIL, "email", read_email}, {FIELD_PASSWORD, "password", read_password},
        {FIELD_LOGIN, "email", read_login}, {FIELD_SECRET, "password", read_secret},
        {FIELD_NAME, "name", read_name},    {FIELD_PERMISSIONS, "permissions", read_permissions},
    };
    struct json *body;
    *out = (struct account_fields){NULL, NULL, NULL, NULL, NULL};
    if (req_json(r, &body) != ERR_OK)
        return false;
    struct buf json = BUF_INIT(8192);
    struct reading in = {.r = r, .body = body, .out = out};
    jsonw_init(&in.details, &json);
    jsonw_object(&in.details, NULL);
    jsonw_str(&in.details, "message", "Validation failed");
    jsonw_array(&in.details, "details");
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const struct json *v = json_get(body, fields[i].name);
        if ((need & fields[i].field) || ((may & fields[i].field) && !json_is_null(v)))
            fields[i].read(&in, v);
    }
    jsonw_end_array(&in.details);
    jsonw_end_object(&in.details);
    if (in.wrong)
        reply_json(r, 422, &json);
    buf_done(&json);
    return !in.wrong;
}

struct account_user account_user_of(const struct pg_result *res, int row)
{
    return (struct account_user){.id = pg_str(res, row, 0),
                                 .email = pg_str(res, row, 1),
                                 .name = pg_str(res, row, 2),
                                 .permissions = pg_str(res, row, 3),
                                 .created_at = pg_str(res, row, 4),
                                 .owner = pg_bool(res, row, 5)};
}

/* Both spellings of v2 and v3, as clients of either read it. */
void account_user_json(struct jsonw *w, const char *key, const struct account_user *u)
{
    struct sv names = sv_of(u->permissions), one;
    jsonw_object(w, key);
    jsonw_str(w, "id", u->id);
    jsonw_str(w, "email", u->email);
    jsonw_str(w, "name", u->name);
    jsonw_bool(w, "isSubUser", !u->owner);
    jsonw_array(w, "permissions");
    for (unsigned bit = 0; u->owner && bit < PERM_COUNT; bit++)
        jsonw_str(w, NULL, perm_name((enum perm_bit)bit));
    while (!u->owner && names.n > 0 && sv_split(&names, ',', &one))
        jsonw_sv(w, NULL, one);
    jsonw_end_array(w);
    jsonw_str(w, "createdAt", u->created_at);
    jsonw_str(w, "created_at", u->created_at);
    jsonw_bool(w, "mfaEnabled", false);
    jsonw_bool(w, "mfa_enabled", false);
    jsonw_end_object(w);
}

void account_reply(struct request *r, int status, const char *key, const struct account_user *u)
{
    struct buf json = BUF_INIT(8192);
    struct jsonw w;
    jsonw_init(&w, &json);
    if (key)
        jsonw_object(&w, NULL);
    account_user_json(&w, key, u);
    if (key)
        jsonw_end_object(&w);
    reply_json(r, status, &json);
    buf_done(&json);
}
