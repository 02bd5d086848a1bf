/* SPDX-License-Identifier: Apache-2.0 */
/* Text as a JSON string, safe inside an HTML page too. */
#ifndef HR_TRACE_RENDER_JSON_TEXT_H
#define HR_TRACE_RENDER_JSON_TEXT_H

#include <stdio.h>

/* Writes `text` with its quotation marks. Bytes that are not UTF-8 become U+FFFD; "<" is escaped, so that no
 * text ends a script. */
void hr_json_text(FILE *out, const char *text);

#endif
