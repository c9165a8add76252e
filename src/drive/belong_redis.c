/* Redis: its messages tell whether it is the server's, its keys and connections in which of its databases that works.
 */
#include "base/digest.h"
#include "base/mem.h"
#include "drive/api/profile.h"
#include "drive/belong_impl.h"
#include <string.h>

#define UP_US     (5 * US_PER_S)
#define HEARD_US  (2 * US_PER_S) /* a message of Redis comes before the answer, or with it */
#define OUR_NAME  "drivesim-proof"
#define ANY_OF_US "drivesim" /* what begins so: other commands, and generators that wait for `sim stop` */

/* ---- messages ---- */

static bool names(const struct proof *p, struct sv text)
{
    return p->name[0] && memmem(text.p, text.n, p->name, strlen(p->name));
}

static void hear(struct listener *l)
{
    l->heard = true;
    done_set(&l->changed);
}

static void on_message(void *arg, struct sv channel, struct sv payload)
{
    struct proof *p = arg;
    (void)channel;
    if (names(p, payload))
        hear(&p->redis);
}

static void on_redis(void *arg, bool up)
{
    struct proof *p = arg;
    p->redis.up = up;
    done_set(&p->redis.changed);
}

static void on_event(void *arg, const struct api_event *ev)
{
    struct proof *p = arg;
    if (ev->connected) {
        p->stream.up = true;
        done_set(&p->stream.changed);
    }
    if (names(p, sv_of(ev->name)))
        hear(&p->stream);
}

static void on_close(void *arg, const struct api_result *r)
{
    struct proof *p = arg;
    (void)r;
    p->stream.up = false;
    done_set(&p->stream.changed);
}

static MAY_YIELD void await(struct proof *p, struct listener *l, const bool *what, int64_t us)
{
    struct mono until = mono_add(mono_now(), us);
    while (!*what && done_wait_until(p->ctx->loop, &l->changed, until))
        ;
}

void belong_listen(struct proof *p, bool stream, struct api_stream **out)
{
    static const struct api_stream_ops ops = {.on_event = on_event, .on_close = on_close};
    struct errinfo why = {0};
    *out = NULL;
    p->redis.heard = p->stream.heard = p->stream.up = false;
    if (!p->kv || !p->open[BELONG_REDIS])
        return;
    if (!p->redis.up && kv_subscribe(p->kv, "*", on_message, on_redis, p, &why) != ERR_OK)
        belong_note(p, BELONG_REDIS, "%s", err_message(&why));
    await(p, &p->redis, &p->redis.up, UP_US);
    if (stream && api_stream_open(out, p->api, NULL, &ops, p, &why) == ERR_OK)
        await(p, &p->stream, &p->stream.up, UP_US);
}

/* ---- its databases ---- */

static bool field_is(struct sv line, const char *field, struct sv *value)
{
    struct sv word;
    size_t n = strlen(field);
    while (sv_split(&line, ' ', &word))
        if (word.n >= n && memcmp(word.p, field, n) == 0) {
            *value = (struct sv){word.p + n, word.n - n};
            return true;
        }
    return false;
}

static bool subscribes(struct sv line)
{
    struct sv n;
    return (field_is(line, "sub=", &n) && !sv_eq_cstr(n, "0")) || (field_is(line, "psub=", &n) && !sv_eq_cstr(n, "0"));
}

/* How many connections other than drivesim's work in our database, and how many in others; those that only listen work
 * in none. False: Redis does not tell. */
static MAY_YIELD bool count_clients(struct proof *p, unsigned *here, unsigned *elsewhere)
{
    const struct sv name[] = {SV("CLIENT"), SV("SETNAME"), SV(OUR_NAME)}, ask[] = {SV("CLIENT"), SV("LIST")};
    struct kv_reply r = {0};
    struct sv rest, line, ours = {NULL, 0}, db, who;
    bool told =
        kv_command(p->kv, 3, name, NULL, NULL) == ERR_OK && kv_command(p->kv, 2, ask, &r, NULL) == ERR_OK && r.s;
    *here = *elsewhere = 0;
    for (rest = (struct sv){r.s, r.n}; told && sv_split(&rest, '\n', &line);)
        if (field_is(line, "name=", &who) && sv_eq_cstr(who, OUR_NAME))
            (void)field_is(line, "db=", &ours);
    for (rest = (struct sv){r.s, r.n}; told && ours.p && sv_split(&rest, '\n', &line);)
        if (!(field_is(line, "name=", &who) && sv_starts(who, SV(ANY_OF_US))) && !subscribes(line) &&
            field_is(line, "db=", &db))
            ++*(sv_eq(db, ours) ? here : elsewhere);
    told = told && ours.p;
    kv_reply_done(&r);
    return told;
}

/* One digest of all keys that name the account, with what they hold. */
struct keys {
    uint64_t sum;
    size_t n;
};

static MAY_YIELD void add_key(struct proof *p, struct sv key, struct keys *k)
{
    const struct sv ask[] = {SV("DUMP"), key};
    struct kv_reply r = {0};
    unsigned char sum[32];
    uint64_t part;
    if (kv_command(p->kv, 2, ask, &r, NULL) == ERR_OK && r.s) {
        digest_sha256(r.s, r.n, sum);
        memcpy(&part, sum, sizeof part);
        k->sum ^= part;
        k->n++;
    }
    kv_reply_done(&r);
}

static MAY_YIELD bool read_keys(struct proof *p, struct keys *k)
{
    char cursor[32] = "0", pattern[DRIVE_ID_MAX + 4];
    *k = (struct keys){0};
    if (!p->account_id && !(p->account_id = profile_read_id(api_peer(p->api))))
        return false;
    str_format(pattern, sizeof pattern, "*%s*", p->account_id);
    do {
        const struct sv ask[] = {SV("SCAN"), sv_of(cursor), SV("MATCH"), sv_of(pattern), SV("COUNT"), SV("1000")};
        struct kv_reply r = {0};
        bool ok = kv_command(p->kv, ARRAY_LEN(ask), ask, &r, NULL) == ERR_OK && r.n_items == 2 && r.items[0].s;
        for (size_t i = 0; ok && i < r.items[1].n_items; i++)
            add_key(p, (struct sv){r.items[1].items[i].s, r.items[1].items[i].n}, k);
        str_format(cursor, sizeof cursor, "%s", ok ? r.items[0].s : "0");
        kv_reply_done(&r);
        if (!ok)
            return false;
    } while (strcmp(cursor, "0") != 0);
    return true;
}

/* A budget that is counted, a listing that is cached: something that names the account changes with what it asks. */
static MAY_YIELD bool keys_change(struct proof *p)
{
    struct keys before, after;
    struct drive_listing l;
    struct api_result r;
    if (!read_keys(p, &before))
        return false;
    (void)!api_list(p->api, p->folder.id, p->mem, &l, &r);
    return read_keys(p, &after) && (before.sum != after.sum || before.n != after.n);
}

/* Messages pass from one of its databases to all; what clean deletes stands in one. */
static MAY_YIELD void judge_database(struct proof *p)
{
    unsigned here, elsewhere;
    bool told = count_clients(p, &here, &elsewhere);
    if ((told && here > 0 && elsewhere == 0) || keys_change(p)) {
        p->open[BELONG_REDIS] = false;
    } else if (told && here == 0 && elsewhere > 0) {
        p->wrong[BELONG_REDIS] = true;
        belong_note(p, BELONG_REDIS,
                    "the server works in another one of its databases: look at the number in REDIS_URL");
    } else {
        belong_note(p, BELONG_REDIS, "nothing tells which of its databases the server works in");
    }
}

/* Servers of this kind send an event through Redis to every process that holds a stream: one that a stream got, and
 * Redis did not, went through another Redis. */
void belong_ask_redis(struct proof *p)
{
    await(p, &p->redis, &p->redis.heard, HEARD_US);
    if (p->redis.heard) {
        judge_database(p);
    } else if (p->redis.up && p->stream.heard) {
        p->wrong[BELONG_REDIS] = true;
        belong_note(p, BELONG_REDIS, "a new folder's event, which the server's stream told, did not go through it");
    } else {
        belong_note(p, BELONG_REDIS, "a new folder's event was told neither by it nor by the server's stream");
    }
}
