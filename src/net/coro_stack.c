/* Stacks are mapped one by one with a guard page below: two mappings each, so about 32,000 a process by default. */
#include "net/coro_stack.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef CORO_UCONTEXT
#include <ucontext.h>
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    STACK_BYTES = 256 * 1024,
#else
    STACK_BYTES = 64 * 1024,
#endif
    POOL_MAX = 1024, /* free stacks kept: each still holds the pages it once touched */
    COLOURS = 16,    /* stacks start at 16 different cache lines: all on one would evict each other */
    COLOUR_BYTES = 128,
};

static __thread struct stack *pool;
static __thread size_t pool_n;

/* ---- what the sanitizers are told ---- */

static void note_new(struct stack *s)
{
#ifdef __SANITIZE_ADDRESS__
    __lsan_register_root_region(s->base, s->size);
#endif
#ifdef __SANITIZE_THREAD__
    s->fiber = __tsan_create_fiber(0);
#endif
    (void)s;
}

/* What ran here before left by a switch, not by returning: its frames' red zones are still marked. */
static void note_taken(struct stack *s)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(s->base, s->size);
#endif
    (void)s;
}

static void note_gone(struct stack *s)
{
#ifdef __SANITIZE_ADDRESS__
    __lsan_unregister_root_region(s->base, s->size);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_destroy_fiber(s->fiber);
#endif
    (void)s;
}

static void note_leave(struct stack *from, struct stack *to, int last)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(last ? NULL : &from->fake_stack, to->base, to->size);
#endif
#ifdef __SANITIZE_THREAD__
    if (from->fiber == NULL)
        from->fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
    (void)from, (void)to, (void)last;
}

/* from: where we came from, filled in when it is the thread's own stack, whose bounds only AddressSanitizer knows. */
static void note_arrive(struct stack *self, struct stack *from)
{
#ifdef __SANITIZE_ADDRESS__
    const void *base;
    size_t size;
    __sanitizer_finish_switch_fiber(self->fake_stack, &base, &size);
    if (from != NULL && from->base == NULL) {
        from->base = (char *)(uintptr_t)base;
        from->size = size;
    }
#endif
    (void)self, (void)from;
}

/* ---- the switch ---- */

#ifdef CORO_UCONTEXT

/* A context lives where it was left: in the frame of the jump, or at the top of a stack that has not run yet. */
static void prepare(struct stack *s, void (*entry)(void))
{
    size_t room = (sizeof(ucontext_t) + 63) & ~(size_t)63;
    ucontext_t *uc = (ucontext_t *)(void *)(s->base + s->size - room);
    getcontext(uc);
    uc->uc_stack.ss_sp = s->base;
    uc->uc_stack.ss_size = s->size - room;
    uc->uc_link = NULL;
    makecontext(uc, entry, 0);
    s->sp = uc;
}

static void jump(struct stack *from, struct stack *to)
{
    ucontext_t here;
    from->sp = &here;
    swapcontext(&here, to->sp);
}

#else

void coro_switch(void **save_sp, void *load_sp);

/* Lays out what coro_switch pops: zeroed registers, then entry as the address it returns to. */
static void prepare(struct stack *s, void (*entry)(void))
{
    char *top = s->base + s->size;
#if defined(__x86_64__)
    enum { FRAME = 8 * 8, RETURN_AT = 6 }; /* rbp rbx r12-r15, entry, and 0 where entry's caller would stand */
#else
    enum { FRAME = 160, RETURN_AT = 11 }; /* x19-x30, d8-d15; x30 is the return address */
#endif
    void **frame = (void **)(void *)(top - FRAME);
    memset(frame, 0, FRAME);
    memcpy(&frame[RETURN_AT], &entry, sizeof entry);
    s->sp = frame;
}

static void jump(struct stack *from, struct stack *to)
{
    coro_switch(&from->sp, to->sp);
}

#endif

void stack_switch(struct stack *from, struct stack *to, int last)
{
    note_leave(from, to, last);
    jump(from, to);
    note_arrive(from, NULL);
}

void stack_entered(struct stack *self, struct stack *from)
{
    note_arrive(self, from);
}

/* ---- memory ---- */

static struct stack *stack_map(void)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    char *p = mmap(NULL, guard + STACK_BYTES, PROT_NONE, flags, -1, 0);
    if (p == MAP_FAILED || mprotect(p + guard, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
        LOGE("coro", "no stack for another coroutine: %s (sysctl vm.max_map_count, two mappings each)",
             strerror(errno));
        abort();
    }
    struct stack *s = mem_zalloc(sizeof *s);
    static __thread unsigned colour;
    s->base = p + guard;
    s->size = STACK_BYTES - COLOUR_BYTES * (colour++ % COLOURS);
    note_new(s);
    return s;
}

static void stack_unmap(struct stack *s)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    note_gone(s);
    munmap(s->base - guard, guard + STACK_BYTES);
    mem_free(s);
}

struct stack *stack_take(void (*entry)(void))
{
    struct stack *s = pool;
    if (s != NULL) {
        pool = s->next_free;
        pool_n--;
        s->next_free = NULL;
    } else {
        s = stack_map();
    }
    s->fake_stack = NULL;
    note_taken(s);
    prepare(s, entry);
    return s;
}

void stack_give(struct stack *s)
{
    if (pool_n >= POOL_MAX) {
        stack_unmap(s);
        return;
    }
    s->next_free = pool;
    pool = s;
    pool_n++;
}

void stack_pool_trim(void)
{
    while (pool != NULL) {
        struct stack *s = pool;
        pool = s->next_free;
        stack_unmap(s);
    }
    pool_n = 0;
}
