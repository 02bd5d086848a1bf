/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/record/work.h"

#include "trace/record/store.h"

#include <stdlib.h>

static const hr_cupti *api;
static hr_work_facts facts;

/* CUPTI's own advice: a few MiB, so that one thread's buffers come seldom. */
enum { BUFFER_BYTES = 4 << 20, BUFFER_ALIGN = 8 };

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_BYTES);
    *size = *buffer != NULL ? BUFFER_BYTES : 0;
    *most_records = 0;
}

static void keep_kernel(const CUpti_ActivityKernel10 *kernel)
{
    hr_work_record *work = hr_store_work();
    if (work == NULL)
        return;
    *work = (hr_work_record){.begin_ns = kernel->start,
                             .end_ns = kernel->end,
                             .name = hr_store_name(kernel->name != NULL ? kernel->name : "kernel"),
                             .correlation = kernel->correlationId,
                             .device = kernel->deviceId,
                             .context = kernel->contextId,
                             .stream = kernel->streamId,
                             .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
}

static void keep_copy(const CUpti_ActivityMemcpy6 *copy)
{
    hr_work_record *work = hr_store_work();
    if (work == NULL)
        return;
    *work = (hr_work_record){.begin_ns = copy->start,
                             .end_ns = copy->end,
                             .bytes = copy->bytes,
                             .correlation = copy->correlationId,
                             .device = copy->deviceId,
                             .context = copy->contextId,
                             .stream = copy->streamId,
                             .kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                             .copy_kind = copy->copyKind,
                             .source = copy->srcKind,
                             .sink = copy->dstKind};
}

static void keep_peer_copy(const CUpti_ActivityMemcpyPtoP4 *copy)
{
    hr_work_record *work = hr_store_work();
    if (work == NULL)
        return;
    *work = (hr_work_record){.begin_ns = copy->start,
                             .end_ns = copy->end,
                             .bytes = copy->bytes,
                             .correlation = copy->correlationId,
                             .device = copy->deviceId,
                             .context = copy->contextId,
                             .stream = copy->streamId,
                             .kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                             .copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
                             .source = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                             .sink = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE};
}

static void keep_fill(const CUpti_ActivityMemset4 *fill)
{
    hr_work_record *work = hr_store_work();
    if (work == NULL)
        return;
    *work = (hr_work_record){.begin_ns = fill->start,
                             .end_ns = fill->end,
                             .bytes = fill->bytes,
                             .correlation = fill->correlationId,
                             .device = fill->deviceId,
                             .context = fill->contextId,
                             .stream = fill->streamId,
                             .kind = CUPTI_ACTIVITY_KIND_MEMSET,
                             .sink = (uint8_t)fill->memoryKind};
}

static void keep_stream(const CUpti_ActivityStream *stream)
{
    if (facts.stream_count == HR_RECORD_STREAMS)
        return;
    const char *flag = stream->flag == CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING ? "non-blocking"
                       : stream->flag == CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL       ? "null"
                                                                                      : "blocking";
    facts.streams[facts.stream_count++] = (hr_stream_record){stream->contextId, stream->streamId, flag};
}

static void keep_device(const CUpti_ActivityDevice5 *device)
{
    if (facts.device_count < HR_RECORD_DEVICES && device->name != NULL)
        facts.devices[facts.device_count++] = (hr_device_record){device->id, hr_store_name(device->name)};
}

static void keep(const CUpti_Activity *record)
{
    const void *as = record;
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        keep_kernel(as);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        keep_copy(as);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        keep_peer_copy(as);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        keep_fill(as);
        break;
    case CUPTI_ACTIVITY_KIND_STREAM:
        keep_stream(as);
        break;
    case CUPTI_ACTIVITY_KIND_DEVICE:
        keep_device(as);
        break;
    default:
        break;
    }
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                      size_t valid)
{
    (void)size;
    CUpti_Activity *record = NULL;
    while (valid > 0 && api->activity_next(buffer, valid, &record) == CUPTI_SUCCESS)
        keep(record);
    size_t dropped = 0;
    if (api->activity_dropped(context, stream, &dropped) == CUPTI_SUCCESS)
        facts.dropped += dropped;
    free(buffer);
}

bool hr_work_start(const hr_cupti *cupti)
{
    static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                               CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMCPY2,
                                               CUPTI_ACTIVITY_KIND_MEMSET,
                                               CUPTI_ACTIVITY_KIND_STREAM,
                                               CUPTI_ACTIVITY_KIND_DEVICE};
    api = cupti;
    if (api->activity_register(buffer_requested, buffer_completed) != CUPTI_SUCCESS)
        return false;
    bool any = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        any |= api->activity_enable(kinds[i]) == CUPTI_SUCCESS;
    return any;
}

void hr_work_flush(void)
{
    if (api != NULL)
        api->activity_flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

const hr_work_facts *hr_work_get_facts(void)
{
    return &facts;
}
