#ifndef UNIT_H
#define UNIT_H
/* What every unit test includes: cmocka wants these four headers in this order. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include "base/mem.h"
#include <stdbool.h>
#include <stdio.h>
#endif
