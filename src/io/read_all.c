/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an input whole. */
#include <headrace/io.h>

#include "base/checked.h"
#include "host/topology.h"
#include "io/parallel.h"

#include <string.h>

#define PIECE_BYTES (UINT64_C(4) << 20)

typedef struct whole {
    hr_source *source;
    unsigned char *buffer;
} whole;

static hr_status read_piece(void *user, uint64_t index, hr_error *error)
{
    const whole *w = user;
    uint64_t offset = index * PIECE_BYTES;
    uint64_t bytes = hr_min_u64(PIECE_BYTES, w->source->bytes - offset);
    if (w->source->data != NULL) {
        memcpy(w->buffer + offset, (const unsigned char *)w->source->data + offset, bytes);
        return HR_OK;
    }
    uint64_t got;
    return w->source->read(w->source->self, offset, w->buffer + offset, bytes, &got, error);
}

hr_status hr_input_read_all(hr_input *input, void *buffer, hr_error *error)
{
    hr_source *source = hr_input_source(input);
    if (source->bytes == HR_LENGTH_UNKNOWN) {
        return hr_fail(error, HR_E_UNSUPPORTED, "read all: the input's length is not known");
    }
    whole w = {source, buffer};
    uint32_t threads = source->sequential ? 1 : hr_host_cores();
    return hr_parallel(threads, hr_div_up(source->bytes, PIECE_BYTES), read_piece, &w, error);
}
