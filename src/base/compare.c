#include "base/compare.h"
#include "base/mem.h"
#include <string.h>

/* Two-letter signs stand first: "<=" is not "<". */
static const struct {
    const char *sign;
    enum compare compare;
} signs[] = {{"<=", CMP_LE}, {">=", CMP_GE}, {"==", CMP_EQ}, {"!=", CMP_NE},
             {"<", CMP_LT},  {">", CMP_GT},  {"=", CMP_EQ}};

size_t compare_parse(const char *text, enum compare *out)
{
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (strncmp(text, signs[i].sign, strlen(signs[i].sign)) == 0) {
            *out = signs[i].compare;
            return strlen(signs[i].sign);
        }
    return 0;
}

bool compare_holds(enum compare compare, double a, double b)
{
    switch (compare) {
    case CMP_LE:
        return a <= b;
    case CMP_GE:
        return a >= b;
    case CMP_EQ:
        return a == b;
    case CMP_NE:
        return a != b;
    case CMP_LT:
        return a < b;
    default:
        return a > b;
    }
}
