#ifndef NET_CORO_STACK_H
#define NET_CORO_STACK_H
/* What lies below coroutines: stacks and the switch between them, with the annotations that the sanitizers need.
 * Private to src/net/coro*.c. One thread a stack. Layer 1. */
#include <stddef.h>

/* The assembly switch; -DCORO_UCONTEXT takes swapcontext instead (1.3 us a switch against 10 ns). */
#if !defined(CORO_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define CORO_UCONTEXT 1
#endif

/* A place to continue at: the loop's own stack (zeroed), or a coroutine's. */
struct stack {
    void *sp;    /* saved stack pointer, or a ucontext_t on that stack */
    char *base;  /* lowest usable byte; NULL: the thread's own stack */
    size_t size; /* usable bytes */
    struct stack *next_free;
    void *fake_stack; /* AddressSanitizer's */
    void *fiber;      /* ThreadSanitizer's */
};

/* A stack from the pool or a fresh one, ready to start in entry(), which must not return. Aborts when the system gives
 * no more mappings. */
struct stack *stack_take(void (*entry)(void));
void stack_give(struct stack *s); /* not the one we stand on */
void stack_pool_trim(void);
/* Continues to; returns when somebody switches back. last: from will never be continued. */
void stack_switch(struct stack *from, struct stack *to, int last);
/* The first thing that entry() does; from is the stack that it was switched to from. */
void stack_entered(struct stack *self, struct stack *from);
#endif
