/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: a module that the CUDA driver loads into a program, named by CUDA_INJECTION64_PATH. It
 * listens to the calls that the audit understands (the list is the model's own) and to device work, keeps
 * both in memory, and writes one file when the program ends: HEADRACE_RECORD/<process>.json. Driver calls
 * inside a runtime call are left out: they are the same call again.
 */
#include "trace/record/cupti_api.h"
#include "trace/record/parameters.h"
#include "trace/record/store.h"
#include "trace/record/work.h"
#include "trace/record/write.h"

#include "trace/model/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver calls this once, before the program's first CUDA call. Returns 1 when the module is ready. */
__attribute__((visibility("default"))) int InitializeInjection(void);

static hr_cupti cupti;
static CUpti_SubscriberHandle subscriber;
static atomic_bool recording;
static char folder[4000];
static _Thread_local unsigned inside_runtime;

static void place(hr_call_record *record, CUcontext context, const hr_parameters *parameters)
{
    /* The id that device work will show; the legacy default stream is a null handle. */
    record->has_stream = parameters->has_stream && context != NULL &&
                         cupti.stream_id(context, parameters->stream, 0, &record->stream) == CUPTI_SUCCESS &&
                         cupti.device_id(context, &record->device) == CUPTI_SUCCESS &&
                         cupti.context_id(context, &record->context) == CUPTI_SUCCESS;
}

static void keep_call(CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData *data)
{
    uint64_t end = 0;
    cupti.timestamp(&end);
    hr_call_record *record = hr_store_call();
    if (record == NULL)
        return;
    hr_parameters parameters;
    hr_parameters_read(domain, id, data->functionParams, &parameters);
    *record = (hr_call_record){.begin_ns = *data->correlationData,
                               .end_ns = end,
                               .correlation = data->correlationId,
                               .object = parameters.object,
                               .bytes = parameters.bytes,
                               .source_address = parameters.source_address,
                               .sink_address = parameters.sink_address,
                               .name = data->functionName,
                               .driver = domain == CUPTI_CB_DOMAIN_DRIVER_API};
    place(record, data->context, &parameters);
    hr_store_call_done();
}

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
    (void)user;
    const CUpti_CallbackData *data = info;
    bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    if (!runtime && inside_runtime > 0)
        return;
    if (data->callbackSite == CUPTI_API_ENTER) {
        inside_runtime += runtime;
        cupti.timestamp(data->correlationData);
        return;
    }
    inside_runtime -= runtime && inside_runtime > 0;
    if (atomic_load_explicit(&recording, memory_order_relaxed))
        keep_call(domain, id, data);
}

/* Listens to each call of the domain whose meaning the model knows. */
static void listen(CUpti_CallbackDomain domain, uint32_t ids)
{
    for (uint32_t id = 1; id < ids; id++) {
        const char *name = NULL;
        hr_call call;
        if (cupti.callback_name(domain, id, &name) == CUPTI_SUCCESS && name != NULL &&
            hr_call_from_name(name, strlen(name), &call) && call != HR_CALL_OTHER)
            cupti.enable_callback(1, subscriber, domain, id);
    }
}

static void finish(void)
{
    if (!atomic_exchange(&recording, false))
        return;
    hr_work_flush();
    char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/%d.json", folder, (int)getpid());
    if (!hr_record_write(path))
        fprintf(stderr, "headrace: %s: the record could not be written\n", path);
}

/* The child of a fork has neither CUPTI's threads nor a GPU that it may use: it records nothing. */
static void in_child(void)
{
    atomic_store(&recording, false);
}

int InitializeInjection(void)
{
    const char *into = getenv("HEADRACE_RECORD");
    if (into == NULL || strlen(into) >= sizeof folder || atomic_load(&recording))
        return 1;
    memcpy(folder, into, strlen(into) + 1);
    const char *limit = getenv("HEADRACE_RECORD_EVENTS");
    if (limit != NULL)
        hr_store_limit(strtoull(limit, NULL, 10));
    if (!hr_cupti_load(&cupti)) {
        fprintf(stderr, "headrace: CUPTI (libcupti.so) was not found; nothing is recorded\n");
        return 1;
    }
    if (cupti.subscribe(&subscriber, called, NULL) != CUPTI_SUCCESS) {
        fprintf(stderr, "headrace: another tool is recording this program already; nothing is recorded\n");
        return 1;
    }
    if (!hr_work_start(&cupti)) {
        fprintf(stderr, "headrace: CUPTI refused to record device work\n");
        return 1;
    }
    listen(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE);
    listen(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE);
    atomic_store(&recording, true);
    pthread_atfork(NULL, NULL, in_child);
    atexit(finish);
    return 1;
}
