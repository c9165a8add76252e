#include "base/clock.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

struct mono mono_now(void)
{
    return (struct mono){read_us(CLOCK_MONOTONIC)};
}

struct mono mono_add(struct mono t, int64_t us)
{
    struct mono sum;

    if (t.us == INT64_MAX || __builtin_add_overflow(t.us, us, &sum.us))
        return us < 0 && t.us != INT64_MAX ? (struct mono){INT64_MIN} : MONO_NEVER;
    return sum;
}

int64_t mono_diff(struct mono later, struct mono earlier)
{
    int64_t us;

    if (__builtin_sub_overflow(later.us, earlier.us, &us))
        return later.us > earlier.us ? INT64_MAX : INT64_MIN;
    return us;
}

bool mono_before(struct mono a, struct mono b)
{
    return a.us < b.us;
}

struct mono mono_earlier(struct mono a, struct mono b)
{
    return mono_before(a, b) ? a : b;
}

struct mono mono_later(struct mono a, struct mono b)
{
    return mono_before(a, b) ? b : a;
}

bool mono_passed(struct mono t)
{
    return !mono_before(mono_now(), t);
}

struct wall wall_now(void)
{
    return (struct wall){read_us(CLOCK_REALTIME)};
}

int64_t clock_thread_cpu_us(void)
{
    return read_us(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_process_cpu_us(void)
{
    return read_us(CLOCK_PROCESS_CPUTIME_ID);
}

/* Days since 1970-01-01 of a proleptic Gregorian date and back: Howard Hinnant, "chrono-compatible low-level date
 * algorithms". Own arithmetic because the C library's needs the time zone (mktime) or is no standard (timegm). */
static int64_t days_from_civil(int64_t y, unsigned m, unsigned d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    unsigned yoe = (unsigned)(y - era * 400);
    unsigned doy = (153 * (m + (m > 2 ? -3u : 9u)) + 2) / 5 + d - 1;
    return era * 146097 + (int64_t)(yoe * 365 + yoe / 4 - yoe / 100 + doy) - 719468;
}

static void civil_from_days(int64_t z, int64_t *y, unsigned *m, unsigned *d)
{
    z += 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    *d = doy - (153 * mp + 2) / 5 + 1;
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = (int64_t)yoe + era * 400 + (*m <= 2);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static char *format(char *dst, size_t n, struct wall t, bool decimals)
{
    int64_t ms = floor_div(t.us, US_PER_MS), days = floor_div(ms, 86400000), in_day = ms - days * 86400000, year;
    unsigned month, day;

    civil_from_days(days, &year, &month, &day);
    char part[8] = "";
    if (decimals)
        snprintf(part, sizeof part, ".%03d", (int)(in_day % 1000));
    snprintf(dst, n, "%04lld-%02u-%02uT%02d:%02d:%02d%sZ", (long long)year, month, day, (int)(in_day / 3600000),
             (int)(in_day / 60000 % 60), (int)(in_day / 1000 % 60), part);
    return dst;
}

char *wall_format(char *dst, size_t n, struct wall t)
{
    return format(dst, n, t, true);
}

char *wall_format_seconds(char *dst, size_t n, struct wall t)
{
    return format(dst, n, t, false);
}

/* Exactly n digits at *s. */
static bool digits(const char **s, unsigned n, unsigned *out)
{
    unsigned v = 0;

    for (; n; n--, (*s)++) {
        if (**s < '0' || **s > '9')
            return false;
        v = v * 10 + (unsigned)(**s - '0');
    }
    *out = v;
    return true;
}

static bool skip(const char **s, char c)
{
    if (**s != c)
        return false;
    (*s)++;
    return true;
}

static unsigned days_in_month(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

bool wall_of_civil(struct wall *out, const struct civil *c)
{
    if (c->month < 1 || c->month > 12 || c->day < 1 || c->day > days_in_month(c->year, c->month) || c->hour > 23 ||
        c->min > 59 || c->sec > 60)
        return false;
    int64_t s = days_from_civil(c->year, c->month, c->day) * 86400 + c->hour * 3600 + c->min * 60 + c->sec;
    out->us = s * US_PER_S;
    return true;
}

struct civil wall_civil(struct wall t)
{
    int64_t s = floor_div(t.us, US_PER_S), days = floor_div(s, 86400), in_day = s - days * 86400, year;
    struct civil c = {.hour = (unsigned)(in_day / 3600), .min = (unsigned)(in_day / 60 % 60)};

    civil_from_days(days, &year, &c.month, &c.day);
    c.year = (unsigned)year;
    c.sec = (unsigned)(in_day % 60);
    c.weekday = (unsigned)(days + 4 - 7 * floor_div(days + 4, 7)); /* 1970-01-01 was a Thursday */
    return c;
}

static int64_t parse_fraction(const char **s)
{
    int64_t us = 0, unit = US_PER_S / 10;

    for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
        us += unit * (**s - '0');
    return us;
}

/* Z, +hh:mm, +hhmm or +hh (Postgres). */
static bool parse_zone(const char **s, int64_t *offset_s)
{
    unsigned h, m = 0;

    *offset_s = 0;
    if (skip(s, 'Z') || skip(s, 'z'))
        return true;
    int sign = **s == '+' ? 1 : **s == '-' ? -1 : 0;
    if (!sign)
        return false;
    (*s)++;
    if (!digits(s, 2, &h))
        return false;
    if ((skip(s, ':') || **s) && !digits(s, 2, &m))
        return false;
    *offset_s = sign * (int64_t)(h * 3600 + m * 60);
    return h < 24 && m < 60;
}

bool wall_parse(const char *s, struct wall *out)
{
    struct civil c = {0};
    struct wall at;
    int64_t us = 0, offset_s;

    if (!digits(&s, 4, &c.year) || !skip(&s, '-') || !digits(&s, 2, &c.month) || !skip(&s, '-') ||
        !digits(&s, 2, &c.day))
        return false;
    if (!skip(&s, 'T') && !skip(&s, 't') && !skip(&s, ' '))
        return false;
    if (!digits(&s, 2, &c.hour) || !skip(&s, ':') || !digits(&s, 2, &c.min) || !skip(&s, ':') || !digits(&s, 2, &c.sec))
        return false;
    if (!wall_of_civil(&at, &c))
        return false;
    if (skip(&s, '.')) {
        if (*s < '0' || *s > '9')
            return false;
        us = parse_fraction(&s);
    }
    if (!parse_zone(&s, &offset_s) || *s)
        return false;
    out->us = at.us - offset_s * US_PER_S + us;
    return true;
}
