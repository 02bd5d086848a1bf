/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_double.h"

#include <string.h>

static CUpti_CallbackFunc callback;
static void *callback_user;
static unsigned char enabled[2][1024]; /* runtime, driver */
static uint64_t now = 1000000;
static uint32_t correlation;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static unsigned char pending[1 << 16];
static size_t pending_bytes;

static unsigned char *slot(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return &enabled[domain == CUPTI_CB_DOMAIN_DRIVER_API][id % 1024];
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function,
                                    void *user)
{
    *subscriber = (CUpti_SubscriberHandle)(uintptr_t)1;
    callback = function;
    callback_user = user;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    (void)subscriber;
    *slot(domain, id) = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    static const struct {
        CUpti_CallbackDomain domain;
        uint32_t id;
        const char *name;
    } names[] = {
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
         "cudaMemcpyAsync_v3020"},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
         "cudaLaunchKernel_v7000"},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
         "cudaEventRecord_v3020"},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
         "cudaStreamSynchronize_v3020"},
        {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, "cudaGetDevice_v3020"},
        {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].domain == domain && names[i].id == id) {
            *name = names[i].name;
            return CUPTI_SUCCESS;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = now += 1000;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id)
{
    (void)context, (void)per_thread;
    *id = stream == NULL ? 7 : (uint32_t)(uintptr_t)stream;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t *id)
{
    (void)context;
    *id = 0;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t *id)
{
    (void)context;
    *id = 1;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
    (void)kind;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                    CUpti_BuffersCallbackCompleteFunc completed)
{
    request = requested;
    complete = completed;
    return CUPTI_SUCCESS;
}

/* Records lie one behind the other, each behind its length. */
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    unsigned char *at = *record == NULL ? buffer : (unsigned char *)*record;
    size_t length;
    if (*record != NULL) {
        memcpy(&length, at - sizeof length, sizeof length);
        at += length;
    }
    if (at + sizeof length > buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)(at + sizeof length);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = 0;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0;
    request(&buffer, &size, &most);
    if (buffer == NULL || size < pending_bytes)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    memcpy(buffer, pending, pending_bytes);
    complete((CUcontext)(uintptr_t)1, 0, buffer, size, pending_bytes);
    pending_bytes = 0;
    return CUPTI_SUCCESS;
}

uint32_t double_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const char *name,
                     const void *parameters, void (*inside)(void))
{
    uint64_t between = 0;
    uint32_t mine = ++correlation;
    CUpti_CallbackData data = {.callbackSite = CUPTI_API_ENTER,
                               .functionName = name,
                               .functionParams = parameters,
                               .context = (CUcontext)(uintptr_t)1,
                               .contextUid = 1,
                               .correlationData = &between,
                               .correlationId = mine};
    if (*slot(domain, id))
        callback(callback_user, domain, id, &data);
    if (inside != NULL)
        inside();
    data.callbackSite = CUPTI_API_EXIT;
    if (*slot(domain, id))
        callback(callback_user, domain, id, &data);
    return mine;
}

void double_work(const void *record, size_t bytes)
{
    size_t whole = (bytes + 7) & ~(size_t)7;
    memcpy(pending + pending_bytes, &whole, sizeof whole);
    memcpy(pending + pending_bytes + sizeof whole, record, bytes);
    pending_bytes += sizeof whole + whole;
}
