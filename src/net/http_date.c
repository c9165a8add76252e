/* By hand, without strptime and strftime, which read and write months in the user's language. */
#include "net/http_date.h"
#include "base/mem.h"

static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

char *http_date_format(char *dst, size_t n, struct wall t)
{
    struct civil c = wall_civil(t);
    str_format(dst, n, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[c.weekday], c.day, months[c.month - 1], c.year,
               c.hour, c.min, c.sec);
    return dst;
}

/* ---- the pieces of a date: each is cut off the front, false when it is not there ---- */

static size_t count(struct sv s, char first, char last)
{
    size_t n = 0;
    while (n < s.n && s.p[n] >= first && s.p[n] <= last)
        n++;
    return n;
}

static void drop(struct sv *s, size_t n)
{
    *s = (struct sv){s->p + n, s->n - n};
}

static bool skip(struct sv *s, char c)
{
    bool there = s->n > 0 && s->p[0] == c;
    drop(s, there);
    return there;
}

static bool skip_blanks(struct sv *s)
{
    size_t n = count(*s, ' ', ' ');
    drop(s, n);
    return n > 0;
}

static bool number(struct sv *s, size_t least, size_t most, unsigned *out)
{
    size_t n = count(*s, '0', '9');
    uint64_t v = 0;
    if (n < least || n > most || !sv_to_u64((struct sv){s->p, n}, &v))
        return false;
    drop(s, n);
    *out = (unsigned)v;
    return true;
}

/* One of the names, or a longer word that begins with it. */
static bool word(struct sv *s, const char (*names)[4], unsigned n_names, bool longer, unsigned *out)
{
    size_t n = 0;
    while (n < s->n && ((s->p[n] | 0x20) >= 'a' && (s->p[n] | 0x20) <= 'z'))
        n++;
    for (*out = 0; *out < n_names; ++*out)
        if ((n == 3 || (n > 3 && longer)) && sv_ieq((struct sv){s->p, 3}, sv_of(names[*out]))) {
            drop(s, n);
            return true;
        }
    return false;
}

static bool month(struct sv *s, struct civil *c)
{
    bool there = word(s, months, ARRAY_LEN(months), false, &c->month);
    c->month++;
    return there;
}

static bool time_of_day(struct sv *s, struct civil *c)
{
    return number(s, 1, 2, &c->hour) && skip(s, ':') && number(s, 2, 2, &c->min) && skip(s, ':') &&
           number(s, 2, 2, &c->sec);
}

/* All that is left. */
static bool zone(struct sv s, int64_t *offset_s)
{
    static const char *const names[] = {"GMT", "UTC", "UT", "Z"};
    unsigned h, m;
    *offset_s = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (sv_ieq(s, sv_of(names[i])))
            return true;
    bool west = skip(&s, '-');
    if ((!west && !skip(&s, '+')) || s.n != 4)
        return false;
    struct sv hours = {s.p, 2}, minutes = {s.p + 2, 2};
    if (!number(&hours, 2, 2, &h) || !number(&minutes, 2, 2, &m) || m > 59)
        return false;
    *offset_s = (west ? -1 : 1) * (int64_t)(h * 3600 + m * 60);
    return true;
}

static bool full_year(struct civil *c, struct wall now)
{
    struct civil most = wall_civil(now);
    struct wall at, latest;
    most.year += 50;
    if (most.month == 2 && most.day == 29)
        most.day = 28; /* 50 years later there is none */
    c->year += most.year / 100 * 100;
    if (!wall_of_civil(&latest, &most))
        return false;
    while (!wall_of_civil(&at, c) || at.us > latest.us) {
        if (c->year < 100)
            return false;
        c->year -= 100;
    }
    return true;
}

bool http_date_parse(struct sv s, struct wall now, struct wall *out)
{
    struct civil c = {0};
    int64_t offset_s = 0;
    s = sv_trim(s);
    if (!word(&s, days, ARRAY_LEN(days), true, &c.weekday))
        return false;
    bool comma = skip(&s, ',');
    if (!skip_blanks(&s))
        return false;
    if (comma) {
        if (!number(&s, 1, 2, &c.day))
            return false;
        bool dashes = skip(&s, '-');
        if ((!dashes && !skip_blanks(&s)) || !month(&s, &c) || !(dashes ? skip(&s, '-') : skip_blanks(&s)))
            return false;
        size_t year_digits = count(s, '0', '9');
        if (year_digits == 3 || !number(&s, 2, 4, &c.year) || (year_digits == 2 && !full_year(&c, now)))
            return false;
        if (!skip_blanks(&s) || !time_of_day(&s, &c) || !skip_blanks(&s) || !zone(s, &offset_s))
            return false;
    } else if (!month(&s, &c) || !skip_blanks(&s) || !number(&s, 1, 2, &c.day) || !skip_blanks(&s) ||
               !time_of_day(&s, &c) || !skip_blanks(&s) || !number(&s, 4, 4, &c.year) || s.n > 0) {
        return false;
    }
    if (!wall_of_civil(out, &c))
        return false;
    out->us -= offset_s * US_PER_S;
    return true;
}

/* ---- how long to wait ---- */

#define UNIX_TIME_S INT64_C(1000000000) /* nobody asks to wait so long: since 2001 it is a time */

struct asking {
    struct wall date; /* of the answer */
    bool unix_time;   /* a large number is one */
    int64_t us;
};

/* "120", and "0.5", which is no valid one but has one meaning. -1: neither. */
static int64_t seconds(struct sv value)
{
    size_t whole = count(value, '0', '9');
    struct sv rest = {value.p + whole, value.n - whole};
    bool fraction = skip(&rest, '.');
    size_t digits = count(rest, '0', '9');
    int64_t s;
    if (whole == 0 || rest.n != digits || (fraction && digits == 0))
        return -1;
    if (!sv_to_i64((struct sv){value.p, whole}, &s))
        return INT64_MAX;
    return s < INT64_MAX ? s + (count(rest, '0', '0') < digits) : s;
}

static void take(void *arg, struct sv value)
{
    struct asking *a = arg;
    struct wall at;
    int64_t s = seconds(value), us = -1;
    if (s >= UNIX_TIME_S && a->unix_time)
        s = s - a->date.us / US_PER_S > 0 ? s - a->date.us / US_PER_S : 0;
    if (s >= 0)
        us = s < HTTP_WAIT_MAX_US / US_PER_S ? s * US_PER_S : HTTP_WAIT_MAX_US;
    else if (http_date_parse(value, a->date, &at))
        us = at.us > a->date.us ? at.us - a->date.us : 0;
    if (us > a->us)
        a->us = us;
}

static int64_t asked(const struct http_resp *r, const char *name, bool unix_time, struct wall now)
{
    struct asking a = {.date = now, .unix_time = unix_time, .us = -1};
    struct wall date;
    if (http_date_parse(http_resp_header(r, "Date"), now, &date))
        a.date = date;
    http_resp_each_header(r, name, take, &a);
    return a.us;
}

int64_t http_retry_after_us(const struct http_resp *r, struct wall now)
{
    return asked(r, "Retry-After", false, now);
}

int64_t http_wait_us(const struct http_resp *r, struct wall now)
{
    static const char *const resets[] = {"RateLimit-Reset", "X-RateLimit-Reset"};
    int64_t us = http_retry_after_us(r, now);
    for (size_t i = 0; i < ARRAY_LEN(resets) && us < 0 && r->status == 429; i++)
        us = asked(r, resets[i], true, now);
    return us;
}
