/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for CUPTI: a test plays the program's calls and the device's work, and the recorder hears of
 * them. */
#ifndef HR_TESTS_RECORD_CUPTI_DOUBLE_H
#define HR_TESTS_RECORD_CUPTI_DOUBLE_H

#include <cupti.h>

/* A call that begins and ends; what a call inside it does is played by `inside`, which may be null. Returns
 * its correlation. */
uint32_t double_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const char *name,
                     const void *parameters, void (*inside)(void));
/* A record of device work, copied; handed over when the recorder flushes. */
void double_work(const void *record, size_t bytes);

#endif
