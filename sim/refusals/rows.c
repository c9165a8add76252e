/* The table of refusals: a new one is a new row. Statuses and codes are those of the API's document; where it leaves
 * two, both count. What a row has to make first, or cannot say as a request, stands in the functions before the table.
 */
#include "base/mem.h"
#include "sim/refusals/stage.h"

#include <stdio.h>
#include <string.h>

/* ---- the quota ---- */

/* Room for REFUSAL_ROOM bytes and not one more. */
static MAY_YIELD bool quota_tight(struct stage *s, const struct refusal *f, char *why, size_t n)
{
    struct holdings h;
    (void)f;
    stage_holdings(s, &h);
    if (!h.known) {
        str_format(why, n, "the storage in use cannot be read");
        return false;
    }
    return stage_limit(s, h.used + REFUSAL_ROOM, why, n);
}

/* Lowered below what is in use, as an administrator may: nothing comes back from the trash then. */
static MAY_YIELD bool quota_passed(struct stage *s, const struct refusal *f, char *why, size_t n)
{
    struct holdings h;
    (void)f;
    stage_holdings(s, &h);
    return stage_limit(s, h.used > 1 ? h.used - 1 : 1, why, n);
}

static MAY_YIELD void quota_off(struct stage *s)
{
    char why[160];
    stage_limit(s, -1, why, sizeof(why));
}

/* ---- locks ---- */

static MAY_YIELD bool lock_lapsed(struct stage *s, const struct refusal *f, char *why, size_t n)
{
    (void)f;
    if (!s->things[THING_LAPSED_LOCK][0]) {
        str_format(why, n, "the server gave no lock that could lapse");
        return false;
    }
    coro_sleep_unless(s->ctx->loop, s->lapses, s->stop);
    return true;
}

/* ---- passwords ---- */

/* A login's limiter lets 25 through: each of our sub-users takes ten, then logins that nobody has. */
static MAY_YIELD void ask_wrong_password(struct stage *s, const struct refusal *f, unsigned nth, struct answer *out)
{
    enum { EACH = 10, OURS = PERM_COUNT };
    const char *why, *known = nth / EACH < OURS ? s->emails[WHO_LACKS + nth / EACH] : NULL;
    struct httpc_peer *peer = stage_peer(s, WHO_NOBODY, &why);
    char body[300], nobody[80];
    str_format(nobody, sizeof(nobody), "refusals-nobody-%u-%lld" DRIVE_EMAIL_DOMAIN, nth / EACH,
               (long long)(wall_now().us / US_PER_S));
    str_format(body, sizeof(body), "{\"email\":\"%s\",\"password\":\"not-the-password-%u\"}", known ? known : nobody,
               nth);
    refusal_request(peer, &(struct http_req){.method = f->method, .path = f->path, .body = sv_of(body)}, out);
}

/* clang-format off */
#define LACKS(bit)   ((enum refusal_who)(WHO_LACKS + PERM_BIT_##bit))
#define QUOTA        .flags = ROW_OWN_ACCOUNT, QUOTA_STATE
#define QUOTA_STATE  .before = quota_tight, .after = quota_off
#define UPLOAD       .method = "POST", .path = "/api/files/upload", .body = "{folder}"
#define POST(p, b)   .method = "POST", .path = p, .body = b
#define GET(p)       .method = "GET", .path = p
#define NAME(k, what, text) {k, "a folder named " what, WHO_OWNER, 422, 400, \
    POST("/api/files/folder", "{\"name\":\"{name}\",\"parentId\":\"{folder}\"}"), .name = text}
#define FILE_NAME(k, what, text) {k, "a file named " what, WHO_OWNER, 400, 422, UPLOAD, .size = SIZE_SMALL, .name = text}
#define TEN(c)       c c c c c c c c c c
#define HUNDRED(c)   TEN(TEN(c))

const struct refusal refusals[] = {
    /* each permission missing, and the same call by a sub-user who lacks another one */
    {"no_download", "a download without files.download", LACKS(DOWNLOAD), 403, .granted = LACKS(UPLOAD), GET("/api/files/{file}/download")},
    {"no_upload", "an upload without files.upload", LACKS(UPLOAD), 403, .granted = LACKS(EDIT), UPLOAD, .size = SIZE_SMALL},
    {"no_upload_folder", "a new folder without files.upload", LACKS(UPLOAD), 403, POST("/api/files/folder", "{\"name\":\"never\",\"parentId\":\"{folder}\"}")},
    {"no_upload_big", "an upload of 300 MiB without files.upload", LACKS(UPLOAD), 403, UPLOAD, .size = SIZE_300_MIB},
    {"no_edit", "a rename without files.edit", LACKS(EDIT), 403, .granted = LACKS(SHARE), POST("/api/files/rename", "{\"id\":\"{victim}\",\"name\":\"renamed.bin\"}")},
    {"no_edit_replace", "a save without files.edit", LACKS(EDIT), 403, POST("/api/files/{file}/replace", ""), .size = SIZE_OVER},
    {"no_share", "sharing without files.share", LACKS(SHARE), 403, .granted = LACKS(DELETE), POST("/api/files/share", "{\"ids\":[\"{victim}\"],\"shared\":true}")},
    {"no_delete", "putting in the trash without files.delete", LACKS(DELETE), 403, .granted = LACKS(TRASH), POST("/api/files/delete", "{\"ids\":[\"{victim}\"]}")},
    {"no_trash", "restoring without files.trash", LACKS(TRASH), 403, .granted = LACKS(DOWNLOAD), POST("/api/files/trash/restore", "{\"ids\":[\"{victim}\"]}")},
    {"no_owner", "a sub-user making sub-users", LACKS(SHARE), 403, POST("/api/user/sub-users", "{\"email\":\"refusals-never@load.test\",\"password\":\"never-to-be-used\",\"name\":\"Never\",\"permissions\":[]}")},
    {"unread_body", "an unread body, then the next request", LACKS(UPLOAD), 403, POST("/api/files/upload", NULL), .flags = ROW_PLAIN, .ask = refusal_ask_then_next},

    /* the account's quota */
    {"over_quota", "over the quota, length announced", WHO_OWNER, 413, UPLOAD, .size = SIZE_OVER, QUOTA},
    {"over_quota_by_one", "one byte over the quota", WHO_OWNER, 413, UPLOAD, .size = SIZE_ROOM_AND_ONE, QUOTA},
    {"over_quota_chunked", "over the quota, chunked, found out midway", WHO_OWNER, 413, UPLOAD, .size = SIZE_OVER, .flags = ROW_OWN_ACCOUNT | ROW_CHUNKED, QUOTA_STATE},
    {"over_quota_expect", "over the quota with Expect: 100-continue", WHO_OWNER, 413, UPLOAD, .size = SIZE_OVER, .flags = ROW_OWN_ACCOUNT | ROW_EXPECT, QUOTA_STATE},
    {"over_quota_no_continue", "over the quota with Expect, no 100 before it", WHO_OWNER, 413, UPLOAD, .size = SIZE_OVER, .flags = ROW_OWN_ACCOUNT | ROW_PLAIN, QUOTA_STATE, .ask = refusal_ask_expecting},
    {"over_quota_blind", "over the quota, to a client that only writes", WHO_OWNER, 413, UPLOAD, .size = SIZE_OVER, .flags = ROW_OWN_ACCOUNT | ROW_PLAIN, QUOTA_STATE, .ask = refusal_ask_blindly},
    {"over_quota_300_mib", "over the quota with 300 MiB", WHO_OWNER, 413, UPLOAD, .size = SIZE_300_MIB, QUOTA},
    {"over_quota_300_mib_chunked", "over the quota with 300 MiB, chunked", WHO_OWNER, 413, UPLOAD, .size = SIZE_300_MIB, .flags = ROW_OWN_ACCOUNT | ROW_CHUNKED, QUOTA_STATE},
    {"over_quota_save", "a save over the quota", WHO_OWNER, 413, POST("/api/files/{file}/replace", ""), .size = SIZE_OVER, QUOTA},
    {"over_quota_asked", "asking beforehand, over the quota", WHO_OWNER, 413, POST("/api/files/upload/check", "{\"fileSize\":1073741824}"), QUOTA},
    {"over_quota_copy", "a copy over the quota", WHO_OWNER, 413, POST("/api/files/copy", "{\"ids\":[\"{big}\"],\"parentId\":\"{child}\"}"), QUOTA},
    {"over_quota_restore", "a restore that would pass the quota", WHO_OWNER, 413, POST("/api/files/trash/restore", "{\"ids\":[\"{trashed}\"]}"), .flags = ROW_OWN_ACCOUNT, .before = quota_passed, .after = quota_off},
    {"over_max", "over the maximum upload size", WHO_OWNER, 413, UPLOAD, .size = SIZE_OVER_MAX},
    {"over_max_expect", "over the maximum upload size, with Expect", WHO_OWNER, 413, UPLOAD, .size = SIZE_FAR_OVER_MAX, .flags = ROW_EXPECT},

    /* locks and versions */
    {"locked_save", "a save of a file that another holds", WHO_OWNER, 423, .code = "LOCKED", POST("/api/files/{locked}/replace", ""), .size = SIZE_SMALL},
    {"locked_lock", "a lock that another holds", WHO_OWNER, 423, .code = "LOCKED", POST("/api/files/{locked}/lock", "{}")},
    {"stale_version", "a save over a version that is not the current one", WHO_OWNER, 412, .code = "VERSION_CONFLICT", POST("/api/files/{file}/replace", ""), .size = SIZE_SMALL, .header = "If-Match: \"{stale}\""},
    {"lapsed_lock", "letting go a lock that has lapsed", WHO_OWNER, 409, .code = "LOCK_LOST", .method = "DELETE", .path = "/api/files/{lapsed}/lock", .header = "X-Lock-Id: {lapsed_lock}", .before = lock_lapsed},

    /* names: each rule of the API, then those that only some servers have */
    NAME("name_empty", "nothing", ""),
    NAME("name_blank", "only spaces", "   "),
    NAME("name_too_long", "101 letters", HUNDRED("n") "n"),
    NAME("name_control", "with a control character", "a\x01" "b"),
    NAME("name_newline", "with a line end", "a\nb"),
    NAME("name_slash", "with /", "a/b"),
    NAME("name_backslash", "with \\", "a\\b"),
    NAME("name_colon", "with :", "a:b"),
    NAME("name_asterisk", "with *", "a*b"),
    NAME("name_question", "with ?", "a?b"),
    NAME("name_quote", "with \"", "a\"b"),
    NAME("name_less", "with <", "a<b"),
    NAME("name_greater", "with >", "a>b"),
    NAME("name_bar", "with |", "a|b"),
    FILE_NAME("file_name_too_long", "256 bytes", HUNDRED("f") HUNDRED("f") TEN("f") TEN("f") TEN("f") TEN("f") TEN("f") "ffffff"),
    FILE_NAME("file_name_colon", "with :", "a:b.bin"),
    FILE_NAME("file_name_asterisk", "with *", "a*b.bin"),
    {"name_taken", "a folder whose name is taken", WHO_OWNER, 409, .flags = ROW_MAY_ALLOW, POST("/api/files/folder", "{\"name\":\"child\",\"parentId\":\"{folder}\"}")},
    {"name_dots", "a folder named ..", WHO_OWNER, 422, 400, .flags = ROW_MAY_ALLOW, POST("/api/files/folder", "{\"name\":\"..\",\"parentId\":\"{folder}\"}")},
    {"name_last_dot", "a folder whose name ends in a dot", WHO_OWNER, 422, 400, .flags = ROW_MAY_ALLOW, POST("/api/files/folder", "{\"name\":\"a.\",\"parentId\":\"{folder}\"}")},
    {"name_device", "a folder named CON", WHO_OWNER, 422, 400, .flags = ROW_MAY_ALLOW, POST("/api/files/folder", "{\"name\":\"CON\",\"parentId\":\"{folder}\"}")},

    /* places that are not there, or not ours */
    {"missing_parent_folder", "a folder in a folder that is not there", WHO_OWNER, 404, 400, POST("/api/files/folder", "{\"name\":\"never\",\"parentId\":\"{missing}\"}")},
    {"missing_parent", "an upload to a folder that is not there", WHO_OWNER, 404, 400, .method = "POST", .path = "/api/files/upload", .body = "{missing}", .size = SIZE_OVER},
    {"trashed_parent_folder", "a folder in a trashed folder", WHO_OWNER, 404, 400, POST("/api/files/folder", "{\"name\":\"never\",\"parentId\":\"{trashed_folder}\"}")},
    {"trashed_parent", "an upload to a trashed folder", WHO_OWNER, 404, 400, .method = "POST", .path = "/api/files/upload", .body = "{trashed_folder}", .size = SIZE_SMALL},
    {"missing_file", "a download of a file that is not there", WHO_OWNER, 404, GET("/api/files/{missing}/download")},
    {"missing_save", "a save of a file that is not there", WHO_OWNER, 404, POST("/api/files/{missing}/replace", ""), .size = SIZE_SMALL},
    {"missing_move", "a move of a file that is not there", WHO_OWNER, 404, POST("/api/files/move", "{\"ids\":[\"{file}\",\"{missing}\"],\"parentId\":\"{child}\"}")},
    {"foreign_download", "a download of another account's file", WHO_OWNER, 404, GET("/api/files/{foreign}/download")},
    {"foreign_info", "looking at another account's file", WHO_OWNER, 404, GET("/api/files/{foreign}/info")},
    {"foreign_rename", "a rename of another account's file", WHO_OWNER, 404, POST("/api/files/rename", "{\"id\":\"{foreign}\",\"name\":\"ours.bin\"}")},
    {"foreign_save", "a save of another account's file", WHO_OWNER, 404, POST("/api/files/{foreign}/replace", ""), .size = SIZE_SMALL},
    {"foreign_delete", "trashing another account's file", WHO_OWNER, 404, POST("/api/files/delete", "{\"ids\":[\"{foreign}\"]}")},
    {"foreign_copy", "a copy of another account's file", WHO_OWNER, 404, POST("/api/files/copy", "{\"ids\":[\"{foreign}\"],\"parentId\":\"{child}\"}")},
    {"foreign_list", "listing another account's folder", WHO_OWNER, 404, GET("/api/files?parentId={foreign_folder}")},
    {"foreign_parent", "an upload to another account's folder", WHO_OWNER, 404, 400, .method = "POST", .path = "/api/files/upload", .body = "{foreign_folder}", .size = SIZE_SMALL},
    {"move_into_itself", "a folder moved into itself", WHO_OWNER, 400, 409, POST("/api/files/move", "{\"ids\":[\"{folder}\"],\"parentId\":\"{folder}\"}")},
    {"move_below_itself", "a folder moved below itself", WHO_OWNER, 400, 409, POST("/api/files/move", "{\"ids\":[\"{folder}\"],\"parentId\":\"{child}\"}")},
    {"copy_into_itself", "a folder copied into itself", WHO_OWNER, 400, 409, .unless = "move_into_itself", POST("/api/files/copy", "{\"ids\":[\"{folder}\"],\"parentId\":\"{folder}\"}")},
    {"copy_below_itself", "a folder copied below itself", WHO_OWNER, 400, 409, .unless = "move_into_itself", POST("/api/files/copy", "{\"ids\":[\"{folder}\"],\"parentId\":\"{child}\"}")},

    /* who asks */
    {"no_token", "a listing without a token", WHO_NOBODY, 401, GET("/api/files")},
    {"no_token_upload", "an upload without a token", WHO_NOBODY, 401, UPLOAD, .size = SIZE_OVER},
    {"bad_token", "a token that is none", WHO_BAD_TOKEN, 401, GET("/api/files")},
    {"forged_token", "a token with another signature", WHO_FORGED, 401, GET("/api/files")},
    {"revoked", "a session that was signed out", WHO_REVOKED, 401, GET("/api/files")},
    {"revoked_upload", "an upload of a session that was signed out", WHO_REVOKED, 401, UPLOAD, .size = SIZE_OVER},
    {"wrong_password", "a login with a wrong password", WHO_NOBODY, 401, POST("/api/login", NULL), .ask = ask_wrong_password},

    /* budgets */
    {"streams", "one event stream too many", WHO_LISTENER, 429, GET("/api/files/events"), .before = refusal_take_streams, .after = refusal_give_streams, .ask = refusal_ask_stream},
    {"logins_spent", "a login whose attempts are spent", WHO_NOBODY, 429, POST("/api/login", NULL), .flags = ROW_RETRY, .before = refusal_spend_logins, .ask = refusal_ask_login},
    {"requests_spent", "a login whose requests are spent", WHO_SPENDER, 429, GET("/api/files"), .flags = ROW_RETRY | ROW_ALONE, .before = refusal_spend_requests},
    {"requests_spent_upload", "an upload when the requests are spent", WHO_SPENDER, 429, UPLOAD, .size = SIZE_OVER, .flags = ROW_RETRY | ROW_ALONE, .before = refusal_spend_requests},

    /* on servers with another wire */
    {"call_locked_save", "a save of a file that another holds", WHO_OWNER, 423, .code = "LOCKED", .header = "{locked}", .flags = ROW_CALLS, .ask = refusal_call_locked_save},
    {"call_locked_lock", "a lock that another holds", WHO_OWNER, 423, .code = "LOCKED", .header = "{locked}", .flags = ROW_CALLS, .ask = refusal_call_locked_lock},
    {"call_locked_delete", "the deletion of a file that another holds", WHO_OWNER, 423, .code = "LOCKED", .header = "{locked}", .flags = ROW_CALLS, .ask = refusal_call_locked_delete},
    {"call_stale_version", "a save over a version that is not the current one", WHO_OWNER, 412, .code = "VERSION_CONFLICT", .header = "{stale}", .flags = ROW_CALLS, .ask = refusal_call_stale},
    {"call_name_taken", "a folder whose name is taken", WHO_OWNER, 409, .code = "EXISTS", .header = "{child}", .flags = ROW_CALLS, .ask = refusal_call_taken},
    {"call_move_below_itself", "a folder moved below itself", WHO_OWNER, 403, 409, .header = "{child}", .flags = ROW_CALLS, .ask = refusal_call_below_itself},
    {"call_wrong_password", "a sign-in with a wrong password", WHO_NOBODY, 401, .flags = ROW_CALLS, .ask = refusal_call_password},
    {"call_nobody", "a sign-in without a password", WHO_NOBODY, 401, .flags = ROW_CALLS | ROW_MAY_ALLOW, .ask = refusal_call_nobody},
};
/* clang-format on */
const size_t n_refusals = ARRAY_LEN(refusals);
