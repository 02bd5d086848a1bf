/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an SQLite export of Nsight Systems: read and finished, or refused with a text. */
#include "trace/read/read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hr_error error = HR_ERROR_INIT;
    hr_trace *trace = NULL;
    hr_status status = hr_trace_new("fuzz", &trace, &error);
    if (status == HR_OK)
        status = hr_read_nsight_memory(data, size, "fuzz", trace, &error);
    if (status == HR_OK)
        status = hr_trace_finish(trace, &error);
    if (status != HR_OK && error.text[0] == '\0')
        abort();
    hr_trace_free(&trace);
    return 0;
}
