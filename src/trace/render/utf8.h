/* SPDX-License-Identifier: Apache-2.0 */
/* Names come from traces of other people: what of them is a character, and what may reach a terminal. */
#ifndef HR_TRACE_RENDER_UTF8_H
#define HR_TRACE_RENDER_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at `at`, text that ends with a zero byte, or 0 if there is none (Unicode 15, table 3-7: no
 * overlong forms, no surrogates). */
size_t hr_utf8_length(const char *at);
/* Would the character at `at`, of `length` bytes, act on a terminal instead of being shown? True of control characters, also of
 * those above ASCII, which some terminals obey, and of those that turn the direction of writing. */
bool hr_utf8_acts(const char *at, size_t length);

#endif
