/* SPDX-License-Identifier: Apache-2.0 */
#include <headrace/observe.h>

const char *hr_stage_name(hr_stage stage)
{
    static const char *const names[HR_STAGE_COUNT] = {
        [HR_STAGE_READ] = "read",       [HR_STAGE_STAGE] = "stage", [HR_STAGE_H2D] = "h2d",
        [HR_STAGE_COMPUTE] = "compute", [HR_STAGE_D2H] = "d2h",     [HR_STAGE_WRITE] = "write",
    };
    return (unsigned)stage < HR_STAGE_COUNT ? names[stage] : "none";
}
