#ifndef DRIVE_STACK_DOCKER_H
#define DRIVE_STACK_DOCKER_H
/* A stack of containers, by docker-compose.yml. Layer 2. */
#include "drive/stack/impl.h"

MAY_YIELD bool stack_docker_answers(struct stack *s);
const char *stack_docker_file(struct stack *s); /* docker-compose.yml, NULL when there is none */
MAY_YIELD enum err stack_docker_up(struct stack *s, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_docker_down(struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* "docker compose <verb> <part>". */
MAY_YIELD enum err stack_docker_part(struct stack *s, const char *verb, const struct part *p,
                                     struct errinfo *ei) WARN_UNUSED;
/* "docker compose <args>", its output to out. */
MAY_YIELD enum err stack_docker_print(struct stack *s, const char *const *args, FILE *out,
                                      struct errinfo *ei) WARN_UNUSED;
#endif
