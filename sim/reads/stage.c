/* What reads are asked about: sessions of one seeded account that take turns, its largest folder and a small one, words
 * of a name, cursors of the change feed, and a folder of our own with starred and trashed files. */
#include "base/log.h"
#include "base/mem.h"
#include "drive/api/caps.h"
#include "sim/app/remover.h"
#include "sim/app/turn.h"
#include "sim/reads/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OWNER        "owner" DRIVE_EMAIL_DOMAIN
#define LOGINS_MOST  8
#define LISTINGS_MAX 300 /* folders looked into where no database tells which is the largest */
#define OWN_FILES    40  /* half of them starred, half in the trash */
#define JOB_WAIT_US  (60 * US_PER_S)
#define SILENT_MOST  3

void reads_heard(struct reads_stage *s, bool answered)
{
    s->silent = answered ? 0 : s->silent + 1;
}

bool reads_silent(const struct reads_stage *s)
{
    return s->silent >= SILENT_MOST;
}

/* One call, to be counted with its answer. */
static bool heard(struct reads_stage *s, enum err e, const struct api_result *r)
{
    bool ok = e == ERR_OK && r->outcome == OUT_OK;
    reads_heard(s, ok || r->status != 0);
    return ok;
}

/* ---- sessions ---- */

static MAY_YIELD bool sign_in(struct reads_stage *s, struct api *a, const char *email, struct api_result *r)
{
    struct turn turn = {.loop = s->ctx->loop, .stop = s->stop, .command = "reads"};
    rng_init(&turn.rng, (uint64_t)s->ctx->common->seed, 8);
    do {
        (void)!api_enter(a, email, target_password(s->ctx->target, email), r);
    } while (turn_again(&turn, email, r));
    return r->outcome == OUT_OK;
}

static MAY_YIELD enum err login_add(struct reads_stage *s, const char *email, struct api_result *r, struct errinfo *ei)
{
    struct api_conf conf = api_conf_of(s->ctx);
    conf.timeout_us = 60 * US_PER_S;
    conf.budget = &s->budget;
    struct api *a = NULL;
    enum err e = api_new(&a, &conf, ei);
    if (e != ERR_OK)
        return e;
    if (!sign_in(s, a, email, r)) {
        api_free(&a);
        return err_set(ei, *s->stop ? ERR_INTERRUPTED : ERR_ENV, "%s cannot sign in: %s%s", email, r->reason,
                       outcome_is_no(r->outcome) ? "; fill the server with sim seed" : "");
    }
    s->logins = mem_realloc_array(s->logins, s->n_logins + 1, sizeof(*s->logins));
    s->logins[s->n_logins++] = a;
    return ERR_OK;
}

static MAY_YIELD enum err logins_in(struct reads_stage *s, struct errinfo *ei)
{
    struct arena *mem = arena_new(16 << 10);
    struct api_users users = {0};
    struct api_result r = {0};
    char owner[TARGET_LOGIN_MAX + 1];
    target_owner(s->ctx->target, 0, owner, sizeof(owner));
    enum err e = login_add(s, owner, &r, ei);
    if (e == ERR_OK && !(api_caps(s->logins[0]) & API_CAP_TMA_WIRE))
        heard(s, api_probe(s->logins[0], &r), &r); /* what it has decides which reads there are */
    if (e == ERR_OK && !heard(s, api_sub_users(s->logins[0], mem, &users, &r), &r))
        users.n = 0;
    for (size_t i = 0; i < users.n && s->n_logins < LOGINS_MOST && e == ERR_OK; i++)
        if (sv_ends(sv_of(users.items[i].email), SV(DRIVE_EMAIL_DOMAIN)))
            e = login_add(s, users.items[i].email, &r, ei);
    arena_free(&mem);
    return e;
}

/* ---- folders ---- */

static void keep(struct reads_stage *s, enum read_word w, const char *text)
{
    str_format(s->words[w], sizeof(s->words[w]), "%s", text ? text : "");
}

static MAY_YIELD void ask_database(struct reads_stage *s)
{
    static const char account[] = "SELECT id FROM users WHERE lower(email) = '" OWNER "'";
    static const char folders[] =
        "WITH n AS (SELECT f.parent_id, count(*) AS n FROM files f JOIN files p ON p.id = f.parent_id WHERE f.user_id "
        "= $1"
        " AND f.deleted_at IS NULL AND p.deleted_at IS NULL AND f.type = 'file' GROUP BY 1) SELECT"
        " (SELECT parent_id FROM n ORDER BY n DESC, 1 LIMIT 1), (SELECT parent_id FROM n WHERE n <= 20 ORDER BY n "
        "DESC, 1 LIMIT 1)";
    struct pg_result *res = NULL;
    if (!target_shows_inside(s->ctx->target)) {
        err_set(&s->pg_why, ERR_ENV, "not offered");
        return;
    }
    if (!s->ctx->target->database_url) {
        err_set(&s->pg_why, ERR_ENV, "DATABASE_URL is not set");
        return;
    }
    if (pg_pool_new(&s->pg, s->ctx->loop, s->ctx->target->database_url, 1, &s->pg_why) != ERR_OK)
        return;
    if (pg_run(s->pg, account, 0, NULL, &res, &s->pg_why) != ERR_OK || pg_rows(res) != 1) {
        pg_result_free(&res);
        pg_pool_free(&s->pg);
        return;
    }
    keep(s, READ_ACCOUNT, pg_str(res, 0, 0));
    pg_result_free(&res);
    const char *params[] = {s->words[READ_ACCOUNT]};
    if (pg_run(s->pg, folders, 1, params, &res, &s->pg_why) == ERR_OK) {
        keep(s, READ_HOT, pg_str(res, 0, 0));
        keep(s, READ_SMALL, pg_str(res, 0, 1));
    }
    pg_result_free(&res);
}

/* Breadth first, as far as is affordable: the largest folder so far is the hot one. */
static MAY_YIELD void search_folders(struct reads_stage *s)
{
    struct arena *mem = arena_new(256 << 10);
    const char *queue[LISTINGS_MAX] = {NULL};
    size_t n = 1, most = 0;
    for (size_t i = 0; i < n && !*s->stop && !reads_silent(s); i++) {
        struct drive_listing l = {0};
        struct api_result r;
        size_t files = 0;
        if (!heard(s, api_list(s->logins[i % s->n_logins], queue[i], mem, &l, &r), &r))
            continue;
        for (size_t k = 0; k < l.n; k++) {
            files += !l.items[k].folder;
            if (l.items[k].folder && n < LISTINGS_MAX)
                queue[n++] = l.items[k].id;
        }
        if (files > most && queue[i])
            keep(s, READ_HOT, queue[i]);
        if (files > 0 && files <= 20 && queue[i] && !s->words[READ_SMALL][0])
            keep(s, READ_SMALL, queue[i]);
        most = files > most ? files : most;
    }
    arena_free(&mem);
}

/* ---- words of a name ---- */

/* The letters of the first word that has at least four of them. */
static bool take_word(const char *name, char *dst, size_t n)
{
    for (const char *p = name; *p; p++) {
        size_t k = 0;
        while ((p[k] >= 'a' && p[k] <= 'z') || (p[k] >= 'A' && p[k] <= 'Z'))
            k++;
        if (k >= 4 && k < n) {
            snprintf(dst, n, "%.*s", (int)k, p);
            return true;
        }
        p += k > 0 ? k - 1 : 0;
    }
    return false;
}

static void keep_words(struct reads_stage *s, const char *word)
{
    char upper[DRIVE_NAME_MAX + 1];
    keep(s, READ_STEM, word);
    str_format(s->words[READ_ONE], sizeof(s->words[0]), "%.1s", word);
    str_format(s->words[READ_TWO], sizeof(s->words[0]), "%.2s", word);
    str_format(s->words[READ_THREE], sizeof(s->words[0]), "%.3s", word);
    str_format(upper, sizeof(upper), "%s", word);
    for (char *c = upper; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    keep(s, READ_UPPER, upper);
}

static MAY_YIELD enum err find_words(struct reads_stage *s, struct errinfo *ei)
{
    struct arena *mem = arena_new(64 << 10);
    struct drive_listing l = {0};
    struct api_result r = {0};
    char word[64];
    if (s->words[READ_HOT][0] && !heard(s, api_list(s->logins[0], s->words[READ_HOT], mem, &l, &r), &r)) {
        arena_free(&mem);
        return err_set(ei, ERR_ENV, "the largest folder cannot be listed: %s", r.reason);
    }
    if (l.n == 0) {
        arena_free(&mem);
        return err_set(ei, ERR_ENV, "%s",
                       s->silent ? READS_SILENT
                                 : "the account has no folder with files: fill the server first with sim seed");
    }
    for (size_t i = 0; i < l.n && !s->words[READ_STEM][0]; i++) {
        if (!l.items[i].folder && take_word(l.items[i].name, word, sizeof(word))) {
            keep_words(s, word);
            keep(s, READ_FILE, l.items[i].id);
        }
    }
    if (!s->words[READ_FILE][0])
        keep(s, READ_FILE, l.items[l.n - 1].id);
    arena_free(&mem);
    return ERR_OK;
}

/* ---- things of our own ---- */

static MAY_YIELD bool mark(struct reads_stage *s, const char *path, const char *more, const char *const *ids, size_t n)
{
    struct buf body = BUF_INIT(64 << 10);
    struct jsonw w;
    struct http_resp resp;
    jsonw_init(&w, &body);
    jsonw_object(&w, NULL);
    jsonw_array(&w, "ids");
    for (size_t i = 0; i < n; i++)
        jsonw_str(&w, NULL, ids[i]);
    jsonw_end_array(&w);
    if (more)
        jsonw_bool(&w, more, true);
    jsonw_end_object(&w);
    const struct http_req req = {.method = "POST", .path = path, .body = {buf_cstr(&body), body.len}};
    bool ok = httpc_perform(api_peer(s->logins[0]), &req, &resp, NULL) == ERR_OK && resp.status / 100 == 2;
    reads_heard(s, resp.status != 0);
    http_resp_done(&resp);
    buf_done(&body);
    return ok;
}

static MAY_YIELD void make_own(struct reads_stage *s)
{
    struct arena *mem = arena_new(64 << 10);
    const char *ids[OWN_FILES];
    struct drive_file f;
    struct api_result r;
    char name[60];
    size_t n = 0;
    str_format(name, sizeof(name), "reads %" PRId64, wall_now().us);
    if (heard(s, api_folder_create(s->logins[0], NULL, name, mem, &f, &r), &r))
        str_format(s->folder, sizeof(s->folder), "%s", f.id);
    for (int i = 0; i < OWN_FILES && s->folder[0] && !*s->stop && !reads_silent(s); i++) {
        const struct content c = {.key = 7 + (uint64_t)i, .revision = 1, .size = 300, .ext = "txt"};
        str_format(name, sizeof(name), "read me %d.txt", i);
        const struct api_upload u = {.parent_id = s->folder, .name = name, .content = &c};
        if (heard(s, api_upload(s->logins[0], &u, mem, &f, &r), &r))
            ids[n++] = f.id;
    }
    bool wire = api_caps(s->logins[0]) & API_CAP_TMA_WIRE;
    if (wire && n > 0 && !reads_silent(s) &&
        (!mark(s, "/api/files/star", "starred", ids, n / 2) ||
         !mark(s, "/api/files/delete", NULL, ids + n / 2, n - n / 2)))
        LOGW("reads", "files could not be starred and trashed: those rows read what there is");
    arena_free(&mem);
}

static MAY_YIELD void find_cursors(struct reads_stage *s)
{
    static const char sql[] =
        "SELECT min(seq) - 1 FROM changes WHERE account_id = $1 AND at > now() - interval '1 hour'";
    struct arena *mem = arena_new(4096);
    struct api_changes c;
    struct api_result r;
    struct pg_result *res = NULL;
    const char *params[] = {s->words[READ_ACCOUNT]};
    if (heard(s, api_changes(s->logins[0], NULL, mem, &c, &r), &r)) {
        const char *dash = strrchr(c.cursor, '-');
        keep(s, READ_NOW, c.cursor);
        keep(s, READ_OLD, "a-cursor-of-long-ago");
        if (s->pg && dash && pg_run(s->pg, sql, 1, params, &res, NULL) == ERR_OK && !pg_is_null(res, 0, 0))
            str_format(s->words[READ_HOUR], sizeof(s->words[0]), "%.*s-%" PRId64, (int)(dash - c.cursor), c.cursor,
                       pg_i64(res, 0, 0));
    }
    pg_result_free(&res);
    arena_free(&mem);
}

/* ---- the whole ---- */

enum err reads_stage_build(struct reads_stage *s, struct errinfo *ei)
{
    enum err e = logins_in(s, ei);
    if (e != ERR_OK)
        return e;
    unsigned caps = caps_ask(s->logins[0]);
    ask_database(s);
    if (!s->words[READ_HOT][0])
        search_folders(s);
    if (reads_silent(s))
        return err_set(ei, ERR_ENV, READS_SILENT);
    e = find_words(s, ei);
    caps &= api_caps(s->logins[0]); /* the largest folder showed more */
    s->unpaged = !(caps & API_CAP_PAGING);
    caps_tell(s->ctx, caps);
    if (e == ERR_OK && !*s->stop)
        make_own(s);
    if (e == ERR_OK && !*s->stop && !reads_silent(s))
        find_cursors(s);
    if (e == ERR_OK && reads_silent(s))
        return err_set(ei, ERR_ENV, READS_SILENT);
    return e == ERR_OK && *s->stop ? err_set(ei, ERR_INTERRUPTED, "interrupted while preparing") : e;
}

void reads_stage_clear(struct reads_stage *s, char *left, size_t n)
{
    const char *id = s->folder;
    char why[160];
    left[0] = '\0';
    if (!s->folder[0])
        return;
    /* what was made is removed, also after an interruption */
    struct remover m = {.ctx = s->ctx,
                        .api = s->logins[0],
                        .hurried = s->stop,
                        .limit_us = JOB_WAIT_US,
                        .away_us = reads_silent(s) ? 0 : JOB_AWAY_US};
    const struct job_caller calls = remover_caller(&m);
    if (!job_remove(&calls, &id, 1, why, sizeof(why)))
        str_format(left, n, "the folder %s of " OWNER ": %s", s->folder, why);
}

void reads_stage_free(struct reads_stage *s)
{
    for (size_t i = 0; i < s->n_logins; i++)
        api_free(&s->logins[i]);
    mem_free(s->logins);
    if (s->pg)
        pg_pool_free(&s->pg);
}
