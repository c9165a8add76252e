#include "base/shortage.h"
#include <errno.h>
#include <stdatomic.h>

static atomic_uint_fast64_t counts[SHORTAGE_COUNT];
static atomic_int_fast64_t away_us;

enum shortage shortage_of(int os_errno)
{
    switch (os_errno) {
    case EADDRNOTAVAIL:
        return SHORTAGE_PORTS;
    case EMFILE:
    case ENFILE:
        return SHORTAGE_FILES;
    case ENOMEM:
    case ENOBUFS:
        return SHORTAGE_MEMORY;
    default:
        return SHORTAGE_NONE;
    }
}

void shortage_note(enum shortage s)
{
    if (s < SHORTAGE_COUNT)
        atomic_fetch_add_explicit(&counts[s], 1, memory_order_relaxed);
}

uint64_t shortage_count(enum shortage s)
{
    return atomic_load_explicit(&counts[s], memory_order_relaxed);
}

void shortage_away(int64_t us)
{
    atomic_fetch_add_explicit(&away_us, us, memory_order_relaxed);
}

int64_t shortage_away_us(void)
{
    return atomic_load_explicit(&away_us, memory_order_relaxed);
}
