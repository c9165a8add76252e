#include "server/access/seats.h"
#include "base/map.h"
#include "base/mem.h"

#define WALK_US (200 * US_PER_MS) /* a crowd that is turned away does not look for the silent each time */

struct seats {
    size_t max, arriving;
    struct map *live; /* session id -> struct mono of its last request */
    struct mono walked;
};

struct seats *seats_new(int64_t max)
{
    struct seats *s = mem_zalloc(sizeof *s);
    s->max = (size_t)max;
    s->live = map_new();
    return s;
}

static bool drop(void *arg, struct sv key, void *value)
{
    (void)arg;
    (void)key;
    mem_free(value);
    return false;
}

void seats_free(struct seats **s)
{
    map_filter((*s)->live, drop, NULL);
    map_free(&(*s)->live);
    MEM_FREE(*s);
}

size_t seats_taken(const struct seats *s)
{
    return map_count(s->live) + s->arriving;
}

static bool still_heard(void *arg, struct sv key, void *value)
{
    const struct mono *now = arg, *last = value;
    if (mono_diff(*now, *last) < SEATS_SILENT_US)
        return true;
    return drop(NULL, key, value);
}

bool seats_reserve(struct seats *s, struct mono now)
{
    if (s->max && seats_taken(s) >= s->max && (!s->walked.us || mono_diff(now, s->walked) >= WALK_US)) {
        s->walked = now;
        map_filter(s->live, still_heard, &now);
    }
    if (s->max && seats_taken(s) >= s->max)
        return false;
    s->arriving++;
    return true;
}

void seats_give_up(struct seats *s)
{
    s->arriving--;
}

void seats_sit(struct seats *s, const char *session_id, struct mono now)
{
    s->arriving--;
    seats_touch(s, session_id, now);
}

void seats_touch(struct seats *s, const char *session_id, struct mono now)
{
    if (!s->max)
        return;
    struct mono *last = map_get(s->live, sv_of(session_id));
    if (!last) {
        last = mem_alloc(sizeof *last);
        map_put(s->live, sv_of(session_id), last);
    }
    *last = now;
}

void seats_leave(struct seats *s, const char *session_id)
{
    mem_free(map_take(s->live, sv_of(session_id)));
}
