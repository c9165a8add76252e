#ifndef DRIVE_STACK_STATE_H
#define DRIVE_STACK_STATE_H
/* What lies in .sim beside the folders of the parts: the state, and the variables for others to read. Layer 2. */
#include "drive/stack/impl.h"

/* A stack that nothing is known of yet: secrets of its own, its parts' folders and logs. */
void stack_state_init(struct stack *s);
/* Fills in what stack.json says. One that is not there is none; one that cannot be read sets s->damaged. */
enum err stack_state_load(struct stack *s, struct errinfo *ei) WARN_UNUSED;
enum err stack_state_save(struct stack *s, struct errinfo *ei) WARN_UNUSED; /* stack.json and env */
void stack_state_remove(struct stack *s);                                   /* the files and folders */
#endif
