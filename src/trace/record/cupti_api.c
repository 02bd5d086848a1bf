/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/record/cupti_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void *open_library(void)
{
    static const char *const names[] = {
        "libcupti.so.13",
        "libcupti.so.12",
        "libcupti.so",
        "/usr/local/cuda/lib64/libcupti.so",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
        if (library != NULL)
            return library;
    }
    return NULL;
}

bool hr_cupti_load(hr_cupti *cupti)
{
    static const struct {
        const char *name;
        size_t offset;
    } calls[] = {
        {"cuptiSubscribe", offsetof(hr_cupti, subscribe)},
        {"cuptiEnableCallback", offsetof(hr_cupti, enable_callback)},
        {"cuptiGetCallbackName", offsetof(hr_cupti, callback_name)},
        {"cuptiGetTimestamp", offsetof(hr_cupti, timestamp)},
        {"cuptiGetStreamIdEx", offsetof(hr_cupti, stream_id)},
        {"cuptiGetDeviceId", offsetof(hr_cupti, device_id)},
        {"cuptiGetContextId", offsetof(hr_cupti, context_id)},
        {"cuptiActivityEnable", offsetof(hr_cupti, activity_enable)},
        {"cuptiActivityRegisterCallbacks", offsetof(hr_cupti, activity_register)},
        {"cuptiActivityGetNextRecord", offsetof(hr_cupti, activity_next)},
        {"cuptiActivityGetNumDroppedRecords", offsetof(hr_cupti, activity_dropped)},
        {"cuptiActivityFlushAll", offsetof(hr_cupti, activity_flush)},
    };
    void *library = open_library();
    for (size_t i = 0; library != NULL && i < sizeof calls / sizeof calls[0]; i++) {
        void *call = dlsym(library, calls[i].name);
        if (call == NULL)
            return false;
        memcpy((char *)cupti + calls[i].offset, &call, sizeof call);
    }
    return library != NULL;
}
