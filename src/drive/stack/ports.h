#ifndef DRIVE_STACK_PORTS_H
#define DRIVE_STACK_PORTS_H
/* Ports on loopback, claimed so that no other stack of this machine takes them. Layer 2. */
#include "drive/stack/impl.h"

/* Claims the first port from this one on that is free and no other stack's. */
enum err stack_choose_port(struct part *p, int from, struct errinfo *ei) WARN_UNUSED;
void stack_release_port(struct part *p);
void stack_release_ports(const struct stack *s); /* all claims of this folder, known or not */
bool stack_port_free(int port);
#endif
