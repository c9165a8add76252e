#ifndef BASE_COMPARE_H
#define BASE_COMPARE_H
/* Comparisons as people write them in conditions: "<=", ">=", "==" or "=", "!=", "<", ">". Layer 0. */
#include <stdbool.h>
#include <stddef.h>

enum compare { CMP_LE, CMP_GE, CMP_EQ, CMP_NE, CMP_LT, CMP_GT };
/* The one that text begins with; its length, 0: there is none. */
size_t compare_parse(const char *text, enum compare *out);
bool compare_holds(enum compare compare, double a, double b);
#endif
