/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of CUPTI that the recorder uses, found at run time: the program may have brought a CUPTI of its
 * own. */
#ifndef HR_TRACE_RECORD_CUPTI_API_H
#define HR_TRACE_RECORD_CUPTI_API_H

#include <cupti.h>
#include <stdbool.h>

typedef struct hr_cupti {
    CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
    CUptiResult (*enable_callback)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId);
    CUptiResult (*callback_name)(CUpti_CallbackDomain, uint32_t, const char **);
    CUptiResult (*timestamp)(uint64_t *);
    CUptiResult (*stream_id)(CUcontext, CUstream, uint8_t, uint32_t *);
    CUptiResult (*device_id)(CUcontext, uint32_t *);
    CUptiResult (*context_id)(CUcontext, uint32_t *);
    CUptiResult (*activity_enable)(CUpti_ActivityKind);
    CUptiResult (*activity_register)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*activity_next)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*activity_dropped)(CUcontext, uint32_t, size_t *);
    CUptiResult (*activity_flush)(uint32_t);
} hr_cupti;

/* Finds CUPTI: one that is loaded already, the loader's path, the toolkit's folder. False: there is none, or
 * it lacks a call. */
bool hr_cupti_load(hr_cupti *cupti);

#endif
