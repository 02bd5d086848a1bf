/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as a source or a sink. */
#include <headrace/io.h>

#include <string.h>

/*
 * Both are plain values that need no close, so `self` is the memory itself and the bounds are the caller's to
 * keep: hr_source.bytes and hr_sink.room_bytes.
 */
static hr_status read_memory(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                             hr_error *error)
{
    (void)error;
    if (bytes > 0) {
        memcpy(buffer, (const unsigned char *)self + offset, bytes);
    }
    *got = bytes;
    return HR_OK;
}

static hr_status write_memory(void *self, uint64_t offset, const void *buffer, uint64_t bytes,
                              hr_error *error)
{
    (void)error;
    if (bytes > 0) {
        memcpy((unsigned char *)self + offset, buffer, bytes);
    }
    return HR_OK;
}

hr_source hr_source_from_memory(const void *data, uint64_t bytes)
{
    hr_source source = HR_SOURCE_INIT;
    source.self = (void *)(uintptr_t)data;
    source.bytes = bytes;
    source.data = data;
    source.read = read_memory;
    return source;
}

hr_sink hr_sink_to_memory(void *data, uint64_t bytes)
{
    hr_sink sink = HR_SINK_INIT;
    sink.self = data;
    sink.data = data;
    sink.room_bytes = bytes;
    sink.write = write_memory;
    return sink;
}
