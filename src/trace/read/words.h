/* SPDX-License-Identifier: Apache-2.0 */
/* What recorders write in words. */
#ifndef HR_TRACE_READ_WORDS_H
#define HR_TRACE_READ_WORDS_H

#include "trace/model/trace.h"

/*
 * Direction and memory kinds out of "Memcpy HtoD (Pageable -> Device)", "CopyDeviceToHost" or "DtoH"; what
 * the words do not say stays as it is.
 */
void hr_words_copy(const char *words, size_t length, hr_event *event);
/* "Pageable", "CUDA_MEMOPR_MEMORY_KIND_PINNED" and the like. */
hr_memory hr_words_memory(const char *words, size_t length);

#endif
