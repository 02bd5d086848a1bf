/* SPDX-License-Identifier: Apache-2.0 */
/* What a call's parameters say: stream, event, addresses. */
#ifndef HR_TRACE_RECORD_PARAMETERS_H
#define HR_TRACE_RECORD_PARAMETERS_H

#include <cupti.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hr_parameters {
    CUstream stream;
    bool has_stream;
    uint64_t object;
    uint64_t bytes;
    uint64_t source_address, sink_address;
} hr_parameters;

/* Reads the parameters of a call that is returning. What the call does not have, or is not known here, stays
 * zero. */
void hr_parameters_read(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *values,
                        hr_parameters *out);

#endif
