#ifndef DRIVE_STACK_NATIVE_H
#define DRIVE_STACK_NATIVE_H
/* A stack of processes: all of it, and one part from nothing to answering. Layer 2. */
#include "drive/stack/impl.h"

/* Both take all parts at once, but for the server: it comes last and goes first. */
MAY_YIELD enum err stack_native_up(struct stack *s, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_native_down(struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* Everything from nothing to answering; at once when it answers already. */
MAY_YIELD enum err stack_part_bring_up(struct part *p, struct errinfo *ei) WARN_UNUSED;
#endif
