/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of backends, and what the pipeline needs of a device beyond the public interface. */
#ifndef HR_CORE_REGISTRY_H
#define HR_CORE_REGISTRY_H

#include "core/backend.h"

/* Makes an empty runtime. Backends are added by whoever assembles the library (src/runtime). */
HR_CHECKED hr_status hr_registry_open(hr_runtime **runtime, hr_error *error);
/* `backend` is static or lives in a module; `module` is a handle for dlclose, or null. */
HR_CHECKED hr_status hr_registry_add(hr_runtime *runtime, const hr_backend *backend, void *module);
/* Remembers why a backend is absent ("cuda: …"). */
void hr_registry_add_absent(hr_runtime *runtime, const char *text);

/* Timed points, for reports. */
typedef struct hr_timer hr_timer;
HR_CHECKED hr_status hr_timer_open(hr_device *device, hr_timer **timer, hr_error *error);
void hr_timer_close(hr_timer **timer);
HR_CHECKED hr_status hr_timer_record(hr_timer *timer, hr_stream *stream, hr_error *error);
HR_CHECKED hr_status hr_timer_read(hr_timer *timer, uint64_t *time_ns, hr_error *error);

/* Queues a launcher in a stream; the rules of hr_device_ops.launch. */
HR_CHECKED hr_status hr_stream_launch(hr_stream *stream, hr_launch_fn fn, const hr_launch *launch,
                                      hr_error *error);
/* The launcher of `op` on this device: the device's own for a built-in op, else op->cpu or op->cuda by kind;
 * HR_E_UNSUPPORTED with the reason. */
HR_CHECKED hr_status hr_device_launcher(hr_device *device, const hr_op *op, hr_launch_fn *fn,
                                        hr_error *error);
/* Of the device's own launcher of matmul, what hr_device_ops.product_block says; both 0 where it has none, or no such block.
 */
void hr_device_product_block(hr_device *device, const hr_op *op, hr_dtype dtype, uint32_t *rows,
                             uint32_t *columns);
hr_device *hr_stream_device(hr_stream *stream);
/* The device's own bench; HR_E_UNSUPPORTED where it has none of that name. */
HR_CHECKED hr_status hr_device_bench(hr_device *device, const hr_bench_options *options, hr_error *error);

#endif
