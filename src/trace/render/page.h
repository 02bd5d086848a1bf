/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed parts of the HTML report, embedded from page/ when the library is built. */
#ifndef HR_TRACE_RENDER_PAGE_H
#define HR_TRACE_RENDER_PAGE_H

#include <stddef.h>

extern const unsigned char hr_page_page_css[];
extern const size_t hr_page_page_css_bytes;
extern const unsigned char hr_page_page_js[];
extern const size_t hr_page_page_js_bytes;

#endif
