#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
/* Two clocks that cannot be mixed: struct mono for durations and schedules (CLOCK_MONOTONIC), struct wall for stamps
 * (CLOCK_REALTIME, UTC). Both in microseconds. Layer 0. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct mono {
    int64_t us;
};
struct wall {
    int64_t us;
};
#define US_PER_S   INT64_C(1000000)
#define US_PER_MS  INT64_C(1000)
#define MONO_NEVER ((struct mono){INT64_MAX})
struct mono mono_now(void);
struct mono mono_add(struct mono t, int64_t us);           /* saturates at MONO_NEVER */
int64_t mono_diff(struct mono later, struct mono earlier); /* us */
bool mono_before(struct mono a, struct mono b);
struct mono mono_earlier(struct mono a, struct mono b);
struct mono mono_later(struct mono a, struct mono b);
bool mono_passed(struct mono t); /* now, or before now */
struct wall wall_now(void);
/* "2026-11-30T09:01:32.123Z"; dst of 32 bytes is enough. Returns dst. */
char *wall_format(char *dst, size_t n, struct wall t);
char *wall_format_seconds(char *dst, size_t n, struct wall t); /* "2026-11-30T09:01:32Z" */
bool wall_parse(const char *s, struct wall *out);              /* ISO 8601 with Z or +hh:mm */
struct civil {                                                 /* UTC; month and day from 1, weekday 0: Sunday */
    unsigned year, month, day, hour, min, sec, weekday;
};
bool wall_of_civil(struct wall *out, const struct civil *c); /* false: no such date (weekday is not looked at) */
struct civil wall_civil(struct wall t);                      /* of the years from 0 on */
int64_t clock_thread_cpu_us(void);
int64_t clock_process_cpu_us(void);
#endif
