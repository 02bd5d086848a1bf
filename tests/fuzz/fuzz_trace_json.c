/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Chrome JSON trace, plain or gzip: read, finished and judged, or refused with a text. */
#include "trace/audit/audit.h"
#include "trace/read/read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hr_error error = HR_ERROR_INIT;
    hr_trace_input *input = NULL;
    hr_audit *audit = calloc(1, sizeof *audit);
    if (audit == NULL)
        return 0;
    hr_status status = hr_trace_new("fuzz", &audit->trace, &error);
    if (status == HR_OK)
        status = hr_trace_input_open_memory(data, size, "fuzz", &input, &error);
    if (status == HR_OK)
        status = hr_read_chrome(input, audit->trace, &error);
    if (status == HR_OK)
        status = hr_trace_finish(audit->trace, &error);
    if (status == HR_OK)
        status = hr_link_of_trace(audit->trace, &audit->link);
    if (status == HR_OK)
        status = hr_audit_judge(audit, 0.0, &error);
    if (status != HR_OK && error.text[0] == '\0')
        abort();
    hr_trace_input_close(&input);
    hr_audit_close(&audit);
    return 0;
}
