/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/replay/replay.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Smaller copies are mostly start-up. */
#define LARGE_COPY_BYTES (UINT64_C(4) << 20)

static int by_speed(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The upper decile of large pinned copies: what the link does when nothing is in its way. 0: there are none.
 */
static hr_status best_of(const hr_trace *trace, hr_direction direction, double *best)
{
    double *speeds = malloc(((size_t)trace->work_count + 1) * sizeof *speeds);
    size_t count = 0;
    if (speeds == NULL)
        return HR_E_HOST_MEMORY;
    for (uint32_t i = 0; i < trace->work_count; i++) {
        const hr_event *event = &trace->events[trace->work[i]];
        if (event->kind == HR_EVENT_COPY && event->direction == direction &&
            event->bytes >= LARGE_COPY_BYTES && hr_event_host_memory(event) == HR_MEMORY_PINNED &&
            hr_event_ns(event) > 0)
            speeds[count++] = (double)event->bytes / (double)hr_event_ns(event);
    }
    *best = 0.0;
    if (count != 0) {
        qsort(speeds, count, sizeof *speeds, by_speed);
        *best = speeds[count * 9 / 10];
    }
    free(speeds);
    return HR_OK;
}

/* What pinned copies reach on x16 slots and the usual host; figures of measurements, not of data sheets. */
static const struct {
    const char *name;
    double gbps;
    const char *source;
} usual[] = {
    {"GH200", 380.0, "NVLink-C2C, assumed"}, {"GB200", 380.0, "NVLink-C2C, assumed"},
    {"H100", 53.0, "PCIe 5 x16, assumed"},   {"H200", 53.0, "PCIe 5 x16, assumed"},
    {"H20", 53.0, "PCIe 5 x16, assumed"},    {"B100", 53.0, "PCIe 5 x16, assumed"},
    {"B200", 53.0, "PCIe 5 x16, assumed"},   {"B300", 53.0, "PCIe 5 x16, assumed"},
    {"RTX 50", 53.0, "PCIe 5 x16, assumed"}, {"MI300", 53.0, "PCIe 5 x16, assumed"},
    {"MI325", 53.0, "PCIe 5 x16, assumed"},  {"MI250", 25.0, "PCIe 4 x16, assumed"},
    {"A100", 25.0, "PCIe 4 x16, assumed"},   {"A800", 25.0, "PCIe 4 x16, assumed"},
    {"A10", 25.0, "PCIe 4 x16, assumed"},    {"A40", 25.0, "PCIe 4 x16, assumed"},
    {"A30", 25.0, "PCIe 4 x16, assumed"},    {"L40", 25.0, "PCIe 4 x16, assumed"},
    {"L4", 25.0, "PCIe 4 x16, assumed"},     {"RTX 4", 25.0, "PCIe 4 x16, assumed"},
    {"RTX 3", 25.0, "PCIe 4 x16, assumed"},  {"RTX A", 25.0, "PCIe 4 x16, assumed"},
    {"V100", 12.3, "PCIe 3 x16, assumed"},   {"T4", 12.3, "PCIe 3 x16, assumed"},
    {"P100", 12.3, "PCIe 3 x16, assumed"},   {"RTX 2", 12.3, "PCIe 3 x16, assumed"},
};

static void assume(const hr_trace *trace, double *gbps, const char **source)
{
    *gbps = 25.0;
    *source = "PCIe 4 x16, assumed";
    for (uint32_t d = 0; d < trace->device_count; d++) {
        if (!trace->devices[d].works)
            continue;
        const char *name = hr_trace_text(trace, trace->devices[d].name);
        for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
            if (strstr(name, usual[i].name) != NULL) {
                *gbps = usual[i].gbps;
                *source = usual[i].source;
                return;
            }
        }
    }
}

hr_status hr_link_of_trace(const hr_trace *trace, hr_link *link)
{
    static const char seen[] = "this trace's own pinned copies";
    hr_status status = best_of(trace, HR_DIRECTION_H2D, &link->h2d);
    if (status == HR_OK)
        status = best_of(trace, HR_DIRECTION_D2H, &link->d2h);
    if (status != HR_OK)
        return status;
    link->h2d_source = link->d2h_source = seen;
    /* Both directions of a link are alike, to some per cent. */
    if (link->h2d <= 0.0 && link->d2h > 0.0)
        link->h2d = link->d2h;
    if (link->d2h <= 0.0 && link->h2d > 0.0)
        link->d2h = link->h2d;
    if (link->h2d <= 0.0) {
        assume(trace, &link->h2d, &link->h2d_source);
        link->d2h = link->h2d;
        link->d2h_source = link->h2d_source;
    }
    return HR_OK;
}
