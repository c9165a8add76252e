/* The tables of model.h made into look-ups. Nothing here may know more than names and numbers. */
#include "drive/model.h"
#include <string.h>

struct op_row {
    const char *key, *text;
    double weight;
};
static const struct op_row ops[OP_COUNT] = {
#define X(sym, key, text, weight) [OP_##sym] = {key, text, weight},
    DRIVE_OPS(X)
#undef X
};
static const char *const outcomes[OUT_COUNT] = {
#define X(sym, key) [OUT_##sym] = key,
    DRIVE_OUTCOMES(X)
#undef X
};
static const char *const causes[CAUSE_COUNT] = {
#define X(sym, key) [CAUSE_##sym] = key,
    DRIVE_CAUSES(X)
#undef X
};
static const char *const permissions[PERM_COUNT] = {
#define X(sym, name) [PERM_BIT_##sym] = name,
    DRIVE_PERMISSIONS(X)
#undef X
};

const char *drive_op_key(enum drive_op op)
{
    return (unsigned)op < OP_COUNT ? ops[op].key : "?";
}

const char *drive_op_text(enum drive_op op)
{
    return (unsigned)op < OP_COUNT ? ops[op].text : "?";
}

double drive_op_weight(enum drive_op op)
{
    return (unsigned)op < OP_COUNT ? ops[op].weight : 0;
}

/* "stream connect" is stream_connect. */
static bool is_text(const char *text, const char *name)
{
    while (*text && (*text == *name || ((*text == ' ' || *text == '-') && *name == '_'))) {
        text++;
        name++;
    }
    return !*text && !*name;
}

bool drive_op_parse(const char *key, enum drive_op *out)
{
    for (unsigned i = 0; i < OP_COUNT; i++) {
        if (strcmp(ops[i].key, key) == 0 || is_text(ops[i].text, key)) {
            *out = (enum drive_op)i;
            return true;
        }
    }
    return false;
}

const char *outcome_key(enum outcome o)
{
    return (unsigned)o < OUT_COUNT ? outcomes[o] : "?";
}

bool outcome_is_failure(enum outcome o)
{
    return o != OUT_OK && o != OUT_CONFLICT && o != OUT_THROTTLED && o != OUT_OUTAGE && o != OUT_LOCAL;
}

bool outcome_is_no(enum outcome o)
{
    return o == OUT_CLIENT || o == OUT_REFUSED;
}

enum outcome outcome_of_status(int status)
{
    switch (status) {
    case 304:
        return OUT_OK;
    case 409:
    case 412:
    case 423:
        return OUT_CONFLICT;
    case 403:
    case 413:
    case 507:
        return OUT_REFUSED;
    case 429:
        return OUT_THROTTLED;
    case 408:
        return OUT_TIMEOUT;
    default:
        if (status >= 200 && status < 300)
            return OUT_OK;
        return status >= 500 ? OUT_SERVER : OUT_CLIENT;
    }
}

const char *cause_key(enum cause c)
{
    return (unsigned)c < CAUSE_COUNT ? causes[c] : "?";
}

const char *perm_name(enum perm_bit bit)
{
    return (unsigned)bit < PERM_COUNT ? permissions[bit] : "?";
}

bool perm_parse(const char *name, unsigned *mask)
{
    for (unsigned i = 0; i < PERM_COUNT; i++) {
        if (strcmp(permissions[i], name) == 0) {
            *mask |= 1u << i;
            return true;
        }
    }
    return false;
}

int64_t drive_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

int64_t drive_difference(int64_t a, int64_t b)
{
    int64_t left;
    return !__builtin_sub_overflow(a, b, &left) ? left : b > 0 ? INT64_MIN : INT64_MAX;
}
