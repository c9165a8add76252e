#ifndef FUZZ_H
#define FUZZ_H
/* One fuzz target a program: libFuzzer's entry point, or replay.c's main over the corpus in git. A target aborts when
 * an invariant breaks; the sanitizers do the rest. */
#include "base/mem.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#define MUST(cond)                                                                                                     \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #cond);                                         \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
#endif
