/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka and what it needs before it, in the order that it wants. */
#ifndef HR_TESTS_SUPPORT_UNIT_H
#define HR_TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
