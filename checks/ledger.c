/* Acknowledged writes: every upload and save of the run that the server said it did is there, with the bytes of the
 * last acknowledged revision (or of a later one whose outcome is unknown: sent, no answer). Files are read back through
 * the API as their own account's login, several at once, each byte compared. */
#include "drive/ledger.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "checks/check.h"
#include "drive/api.h"
#include "drive/content.h"
#include "drive/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define READERS        8
#define CANDIDATES_MAX 8

struct write {
    uint64_t seq;
    const char *file_id, *name, *version_before, *version_after;
    uint64_t content_key, revision, parent_revision, size;
    int64_t wall_us, sent_us, told_us; /* told_us INT64_MAX: no answer is recorded */
    uint32_t app, login;
    uint8_t op;
    enum outcome outcome; /* UNKNOWN until the outcome's record is seen */
};
/* A file that an app of the run trashed, or may have. */
struct trashing {
    uint64_t seq;
    const char *file_id;
    bool done;
};
struct judge {
    struct check_ctx *c;
    struct check_result *r;
    struct arena *mem;
    struct write *w;
    size_t n, cap;
    struct trashing *trash;
    size_t n_trash, cap_trash;
    size_t *order; /* by file, then by time */
    uint64_t acknowledged, found, trashed, unknown, unknown_done;
    struct json *run; /* run.json */
    struct api **apis;
    size_t n_apis;
    size_t next;           /* cursor of the readers into order */
    struct errinfo cannot; /* why reading back is impossible; code OK: possible */
};

static const char *keep(struct judge *j, const char *s)
{
    return s[0] ? arena_strdup(j->mem, s) : NULL;
}

static void on_intent(struct judge *j, const struct ledger_record *rec)
{
    if (j->n == j->cap) {
        j->cap = j->cap ? j->cap * 2 : 256;
        j->w = mem_realloc_array(j->w, j->cap, sizeof(*j->w));
    }
    j->w[j->n++] = (struct write){.seq = rec->seq,
                                  .file_id = keep(j, rec->file_id),
                                  .name = keep(j, rec->name),
                                  .version_before = keep(j, rec->version_before),
                                  .content_key = rec->content_key,
                                  .revision = rec->revision,
                                  .parent_revision = rec->parent_revision,
                                  .size = rec->size,
                                  .wall_us = rec->wall_us,
                                  .sent_us = rec->mono_us,
                                  .told_us = INT64_MAX,
                                  .app = rec->app,
                                  .login = rec->login,
                                  .op = rec->op,
                                  .outcome = OUT_UNKNOWN};
}

static void on_outcome(struct judge *j, const struct ledger_record *rec)
{
    for (size_t i = j->n; i-- > 0;) { /* an outcome follows its intent closely */
        struct write *w = &j->w[i];
        if (w->seq != rec->seq)
            continue;
        w->outcome = rec->outcome;
        w->told_us = rec->mono_us;
        if (rec->file_id[0])
            w->file_id = keep(j, rec->file_id);
        w->version_after = keep(j, rec->version_after);
        return;
    }
}

static bool may_be_done(enum outcome o)
{
    return o == OUT_OK || o == OUT_UNKNOWN || o == OUT_TIMEOUT;
}

static void on_trash(struct judge *j, const struct ledger_record *rec)
{
    if (rec->kind == LEDGER_INTENT) {
        if (j->n_trash == j->cap_trash) {
            j->cap_trash = j->cap_trash ? j->cap_trash * 2 : 64;
            j->trash = mem_realloc_array(j->trash, j->cap_trash, sizeof(*j->trash));
        }
        j->trash[j->n_trash++] = (struct trashing){rec->seq, arena_strdup(j->mem, rec->file_id), true};
        return;
    }
    for (size_t i = j->n_trash; i-- > 0;)
        if (j->trash[i].seq == rec->seq) {
            j->trash[i].done = may_be_done((enum outcome)rec->outcome);
            return;
        }
}

static bool on_record(void *arg, const struct ledger_record *rec)
{
    struct judge *j = arg;
    if (rec->op == OP_TRASH)
        on_trash(j, rec);
    if (rec->op != OP_UPLOAD && rec->op != OP_SAVE)
        return true;
    if (rec->kind == LEDGER_INTENT)
        on_intent(j, rec);
    else if (rec->kind == LEDGER_OUTCOME)
        on_outcome(j, rec);
    return true;
}

static const struct write *sort_base;

static int by_file_and_time(const void *a, const void *b)
{
    const struct write *x = &sort_base[*(const size_t *)a], *y = &sort_base[*(const size_t *)b];
    int c = strcmp(x->file_id ? x->file_id : "", y->file_id ? y->file_id : "");
    return c ? c : (x->seq > y->seq) - (x->seq < y->seq);
}

static bool counts(const struct write *w)
{
    return may_be_done(w->outcome);
}

/* The revisions that the file may hold now: acknowledged ones that no other acknowledged write built upon, and unknown
 * ones. Without versions those after whose answer no other acknowledged write was sent: of writes that crossed each
 * other any may have come last. */
static size_t candidates(const struct judge *j, size_t from, size_t to, const struct write *out[CANDIDATES_MAX])
{
    size_t n = 0;
    for (size_t a = to; a-- > from && n < CANDIDATES_MAX;) {
        const struct write *w = &j->w[j->order[a]];
        if (!counts(w))
            continue;
        bool superseded = false;
        for (size_t b = from; b < to && w->outcome == OUT_OK && !superseded; b++) {
            const struct write *v = &j->w[j->order[b]];
            if (v == w || v->outcome != OUT_OK)
                continue;
            superseded = w->version_after && v->version_before ? strcmp(w->version_after, v->version_before) == 0
                                                               : v->sent_us > w->told_us;
        }
        if (!superseded)
            out[n++] = w;
    }
    return n;
}

struct reading {
    const struct write *cand[CANDIDATES_MAX];
    struct content_check check[CANDIDATES_MAX];
    size_t n;
    uint64_t got;
    char head[256];
};

static int on_bytes(void *arg, const char *p, size_t n)
{
    struct reading *rd = arg;
    if (rd->got < sizeof(rd->head))
        memcpy(rd->head + rd->got, p, n < sizeof(rd->head) - rd->got ? n : sizeof(rd->head) - rd->got);
    rd->got += n;
    for (size_t i = 0; i < rd->n; i++)
        content_check_feed(&rd->check[i], p, n);
    return 0;
}

static const struct write *matching(const struct reading *rd)
{
    for (size_t i = 0; i < rd->n; i++)
        if (!rd->check[i].wrong && rd->got == rd->cand[i]->size)
            return rd->cand[i];
    return NULL;
}

static void report_wrong(struct judge *j, const struct reading *rd, const char *id, const char *ext)
{
    const struct write *w = rd->cand[0];
    char when[40];
    wall_format(when, sizeof(when), (struct wall){w->wall_us});
    struct content is;
    struct sv head = {rd->head, rd->got < sizeof(rd->head) ? (size_t)rd->got : sizeof(rd->head)};
    if (content_identify(head, ext, &is) && is.key == w->content_key)
        check_detail(j->r,
                     "file %s: app %" PRIu32 " was told at %s that revision %" PRIu64
                     " is saved, but it holds %s revision %" PRIu64 " (%" PRIu64 " of %" PRIu64
                     " bytes); look: GET /api/files/%s/download",
                     id, w->app, when, w->revision, is.revision == w->revision ? "a damaged" : "another one,",
                     is.revision, rd->got, w->size, id);
    else
        check_detail(j->r,
                     "file %s: app %" PRIu32 " was told at %s that revision %" PRIu64 " of %" PRIu64
                     " bytes is saved, but %" PRIu64 " other bytes came back; look: GET /api/files/%s/download",
                     id, w->app, when, w->revision, w->size, rd->got, id);
}

static struct api *api_of(struct judge *j, uint32_t login)
{
    return login < j->n_apis ? j->apis[login] : NULL;
}

/* The row of a file that the API no longer shows: in the trash is fine when its size fits. */
static bool in_trash(struct judge *j, const char *id, const struct reading *rd)
{
    const struct tree *t = j->c->tree;
    if (!t || t->listed) { /* without the rows, the run's own word */
        for (size_t k = 0; k < j->n_trash; k++)
            if (j->trash[k].done && strcmp(j->trash[k].file_id, id) == 0)
                return true;
        return false;
    }
    uint32_t i = tree_find(t, id);
    if (i == TREE_NONE || !t->nodes[i].trashed)
        return false;
    for (size_t k = 0; k < rd->n; k++)
        if ((uint64_t)t->nodes[i].size == rd->cand[k]->size)
            return true;
    return false;
}

static void judge_file(struct judge *j, size_t from, size_t to)
{
    struct reading rd = {.got = 0};
    struct arena *mem = arena_new(4096);
    const char *id = j->w[j->order[from]].file_id;
    rd.n = candidates(j, from, to, rd.cand);
    uint64_t acknowledged = 0;
    for (size_t a = from; a < to; a++)
        acknowledged += j->w[j->order[a]].outcome == OUT_OK;
    if (rd.n == 0 || acknowledged == 0)
        goto out;
    j->r->examined++;
    const char *name = NULL;
    for (size_t k = 0; k < rd.n && !name; k++)
        name = rd.cand[k]->name;
    struct api *api = api_of(j, rd.cand[0]->login);
    struct api_result res;
    struct drive_file info = {0};
    if (!name && api && api_info(api, id, mem, &info, NULL, &res) == ERR_OK && res.outcome == OUT_OK)
        name = info.name;
    const char *ext = arena_strndup(mem, path_extension(sv_of(name)).p, path_extension(sv_of(name)).n);
    for (size_t k = 0; k < rd.n; k++) {
        const struct write *w = rd.cand[k];
        struct content c = {.key = w->content_key,
                            .revision = w->revision,
                            .parent_revision = w->parent_revision,
                            .size = w->size,
                            .ext = ext};
        content_check_init(&rd.check[k], &c, 0);
    }
    enum err e = api ? api_download(api, id, 0, 0, on_bytes, &rd, NULL, 0, &res) : ERR_NOTFOUND;
    if (e == ERR_OK && res.outcome == OUT_OK) {
        const struct write *is = matching(&rd);
        if (!is)
            report_wrong(j, &rd, id, ext);
        else
            j->found += acknowledged;
        j->unknown_done += is && is->outcome != OUT_OK;
    } else if (in_trash(j, id, &rd)) {
        j->found += acknowledged;
        j->trashed++;
    } else if (e != ERR_OK && e != ERR_WRONG) {
        err_set(&j->cannot, e, "the server could not be asked for file %s: %s", id, res.reason);
    } else {
        check_detail(j->r,
                     "file %s: %" PRIu64 " acknowledged writes, the last by app %" PRIu32
                     ", but the server answers %d %s; look: GET "
                     "/api/files/%s/info",
                     id, acknowledged, rd.cand[0]->app, res.status, res.reason, id);
    }
out:
    arena_free(&mem);
}

/* Each reader takes the next file's group of writes until none is left. */
static void reader(void *arg)
{
    struct judge *j = arg;
    while (j->next < j->n && j->cannot.code == ERR_OK && *j->c->cmd->interrupts < 2) {
        size_t from = j->next, to = from + 1;
        const char *id = j->w[j->order[from]].file_id;
        while (to < j->n && id && j->w[j->order[to]].file_id && strcmp(j->w[j->order[to]].file_id, id) == 0)
            to++;
        j->next = to;
        if (id)
            judge_file(j, from, to);
    }
}

static enum err read_run_file(struct judge *j, struct errinfo *ei)
{
    char *path = arena_printf(j->mem, "%s/run.json", j->c->run_dir);
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_sys(ei, ERR_IO, "cannot open %s", path);
    struct buf text = BUF_INIT(16 << 20);
    char chunk[4096];
    size_t n;
    enum err e = ERR_OK;
    while (e == ERR_OK && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        e = buf_append(&text, chunk, n);
    fclose(f);
    if (e == ERR_OK)
        e = json_parse(buf_cstr(&text), text.len, &j->run, ei);
    buf_done(&text);
    return e;
}

/* Signs in as the logins that the run used; each only once. */
static enum err sign_in_all(struct judge *j, struct errinfo *ei)
{
    const struct json *logins = json_get(j->run, "logins");
    const struct target *t = j->c->cmd->target;
    j->n_apis = json_count(logins);
    j->apis = mem_zalloc((j->n_apis + 1) * sizeof(*j->apis));
    bool *used = arena_alloc(j->mem, j->n_apis + 1);
    for (size_t i = 0; i < j->n; i++)
        if (j->w[i].login < j->n_apis)
            used[j->w[i].login] = true;
    size_t k = 0;
    for (const struct json *l = json_first(logins); l; l = json_next(l), k++) {
        const char *email = json_str(json_is_object(l) ? json_get(l, "email") : l);
        if (!used[k] || !email)
            continue;
        struct api_conf conf = api_conf_of(j->c->cmd);
        conf.app_version = "check";
        struct api_result res;
        enum err e = api_new(&j->apis[k], &conf, ei);
        const char *password = target_password(t, email);
        if (e == ERR_OK && (api_sign_in(j->apis[k], email, password, &res) != ERR_OK || res.outcome != OUT_OK))
            e = err_set(ei, ERR_ENV, "cannot sign in as %s to read back: %s", email, res.reason);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

static void judge_all(struct judge *j)
{
    j->order = mem_alloc((j->n + 1) * sizeof(*j->order));
    for (size_t i = 0; i < j->n; i++) {
        j->order[i] = i;
        j->acknowledged += j->w[i].outcome == OUT_OK;
        j->unknown += j->w[i].outcome == OUT_UNKNOWN || j->w[i].outcome == OUT_TIMEOUT;
    }
    sort_base = j->w;
    qsort(j->order, j->n, sizeof(*j->order), by_file_and_time);
    struct group readers = {0};
    for (int i = 0; i < READERS; i++)
        group_spawn(j->c->cmd->loop, &readers, reader, j);
    group_wait(j->c->cmd->loop, &readers);
}

static void done(struct judge *j)
{
    for (size_t i = 0; i < j->n_apis; i++)
        if (j->apis[i])
            api_free(&j->apis[i]);
    mem_free(j->apis);
    mem_free(j->order);
    mem_free(j->w);
    mem_free(j->trash);
    json_free(&j->run);
    arena_free(&j->mem);
}

static void run(struct check_ctx *c, struct check_result *r)
{
    if (!c->run_dir) {
        check_not_run(r, "no run to judge: give its folder with --run");
        return;
    }
    struct judge j = {.c = c, .r = r, .mem = arena_new(1 << 16)};
    struct errinfo ei = {0};
    bool torn = false;
    enum err e = ledger_read(c->run_dir, on_record, &j, &torn, &ei);
    if (e == ERR_OK)
        e = read_run_file(&j, &ei);
    if (e == ERR_OK)
        e = sign_in_all(&j, &ei);
    if (e == ERR_OK) {
        judge_all(&j);
        e = j.cannot.code;
        if (e != ERR_OK)
            ei = j.cannot;
    }
    if (e != ERR_OK)
        check_not_run(r, "%s", err_message(&ei));
    else
        check_summary(r,
                      "%" PRIu64 " acknowledged uploads and saves, %" PRIu64 " found (%" PRIu64
                      " files in the trash), %" PRIu64 " unknown, %" PRIu64 " of them done%s",
                      j.acknowledged, j.found, j.trashed, j.unknown, j.unknown_done,
                      torn ? "; the ledger's end is torn: its last moments are missing" : "");
    done(&j);
}

const struct check check_ledger = {"ledger", "acknowledged uploads and saves of a run are there, byte for byte", run};
