/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/port.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

uint64_t hr_reader_carry_bytes(const hr_pipeline *pipeline, uint32_t port)
{
    const hr_cut_port *input = &pipeline->cut.in[port];
    const hr_source *source = pipeline->options.in[port].source;
    bool needs = source->sequential && source->data == NULL;
    /* Twice the halo fits: it is no more than a chunk's room, which was checked. */
    return needs ? 2 * input->halo_units * input->unit_bytes : 0;
}

/* Bytes of a range that a source can have. */
static uint64_t bytes_there(const hr_source *source, uint64_t offset, uint64_t bytes)
{
    if (source->bytes == HR_LENGTH_UNKNOWN) {
        return bytes;
    }
    return offset >= source->bytes ? 0 : hr_min_u64(bytes, source->bytes - offset);
}

static hr_status read_some(const hr_source *source, uint64_t offset, void *buffer, uint64_t bytes,
                           uint64_t *got, hr_error *error)
{
    if (source->data != NULL) {
        *got = bytes_there(source, offset, bytes);
        if (*got > 0) {
            memcpy(buffer, (const unsigned char *)source->data + offset, *got);
        }
        return HR_OK;
    }
    hr_status status = source->read(source->self, offset, buffer, bytes, got, error);
    /* Any other answer is not the end of the data: taken for it, the result would be cut short. */
    return status == HR_OK || status == HR_END ? status : hr_run_refused(status, "the source", error);
}

hr_status hr_port_read(const hr_source *source, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                       hr_error *error)
{
    uint64_t done = 0;
    while (done < bytes) {
        uint64_t some = 0;
        hr_status status =
            read_some(source, offset + done, (unsigned char *)buffer + done, bytes - done, &some, error);
        if (status < 0) {
            return status;
        }
        if (some > bytes - done) {
            return hr_fail(error, HR_E_IO, "the source says that it read %" PRIu64 " bytes of %" PRIu64, some,
                           bytes - done);
        }
        done += some;
        if (status != HR_OK || some == 0) {
            break;
        }
    }
    if (done < bytes && (got == NULL || source->bytes != HR_LENGTH_UNKNOWN)) {
        return hr_fail(error, HR_E_IO, "the source ended at byte %" PRIu64 ", and %" PRIu64 " are needed",
                       offset + done, source->bytes != HR_LENGTH_UNKNOWN ? source->bytes : offset + bytes);
    }
    if (got != NULL) {
        *got = done;
    }
    return HR_OK;
}

/* The part of the range that the chunk before read already comes from the carry; what the next chunk will
 * share goes into it. */
static hr_status read_with_carry(hr_reader *reader, const hr_source *source, const hr_cut *cut,
                                 hr_place_in_run place, unsigned char *buffer, const hr_range *range,
                                 uint64_t *got, hr_error *error)
{
    uint64_t unit = cut->in[place.port].unit_bytes;
    uint64_t kept = reader->carry_units * unit;
    if (kept > 0) {
        memcpy(buffer, reader->carry, kept);
    }
    hr_status status =
        hr_port_read(source, range->offset_bytes + kept, buffer + kept, range->bytes - kept, NULL, error);
    if (status != HR_OK) {
        return status;
    }
    *got = range->bytes;
    if (place.chunk + 1 < hr_cut_chunks(cut)) {
        hr_range next = hr_cut_in(cut, place.port, place.chunk + 1);
        reader->carry_units = range->first + range->units - next.first;
        memcpy(reader->carry, buffer + (next.first - range->first) * unit, reader->carry_units * unit);
    }
    return HR_OK;
}

static hr_status read_range(hr_pipeline *pipeline, hr_reader *reader, hr_place_in_run place, void *buffer,
                            const hr_range *range, uint64_t *got, hr_error *error)
{
    const hr_source *source = pipeline->options.in[place.port].source;
    if (reader->carry != NULL) {
        return read_with_carry(reader, source, &pipeline->cut, place, buffer, range, got, error);
    }
    if (pipeline->cut.units != HR_LENGTH_UNKNOWN) {
        *got = range->bytes;
        return hr_port_read(source, range->offset_bytes, buffer, range->bytes, NULL, error);
    }
    uint64_t bytes = bytes_there(source, range->offset_bytes, range->bytes);
    return hr_port_read(source, range->offset_bytes, buffer, bytes, got, error);
}

/* Names the port where there are several; the run's failure names the chunk. */
hr_status hr_port_named(hr_status status, const char *kind, uint32_t port, uint32_t ports, hr_error *error)
{
    if (ports > 1 && status != HR_E_CANCELLED) {
        int32_t code = error->code;
        hr_fail(error, status, "%s %" PRIu32 ": %s", kind, port + 1, error->text);
        error->code = code;
    }
    error->status = status;
    return status;
}

hr_status hr_reader_fetch(hr_pipeline *pipeline, hr_reader *reader, hr_place_in_run place, void *buffer,
                          hr_range *range, hr_error *error)
{
    bool in_order = pipeline->options.in[place.port].source->sequential;
    if (in_order && !hr_turn_wait(pipeline, &reader->turn, place.chunk)) {
        return HR_AGAIN;
    }
    hr_mark mark = hr_run_enter(pipeline, place.stage);
    uint64_t got = 0;
    bool ended = in_order && reader->ended;
    hr_status status = ended ? HR_OK : read_range(pipeline, reader, place, buffer, range, &got, error);
    hr_run_leave(pipeline, place, mark, status == HR_OK ? got : 0);
    if (status != HR_OK) {
        return hr_port_named(status, "input", place.port, pipeline->cut.inputs, error);
    }
    if (in_order) {
        reader->ended = got < range->bytes;
        hr_turn_pass(pipeline, &reader->turn, place.chunk);
    }
    if (got == range->bytes) {
        return HR_OK;
    }
    uint64_t unit = pipeline->cut.in[place.port].unit_bytes;
    if (got % unit != 0) {
        hr_fail(error, HR_E_FORMAT,
                "the data ends in the middle of an element: %" PRIu64 " of %" PRIu64 " bytes", got % unit,
                unit);
        return hr_port_named(HR_E_FORMAT, "input", place.port, pipeline->cut.inputs, error);
    }
    range->units = got / unit;
    range->bytes = got;
    return got == 0 ? HR_END : HR_OK;
}

hr_status hr_sink_check_room(const hr_sink *sink, const hr_range *range, hr_error *error)
{
    uint64_t room = hr_sink_room(sink);
    if (range->bytes > room || range->offset_bytes > room - range->bytes) {
        return hr_fail(error, HR_E_RANGE, "the data reaches byte %" PRIu64 ", the sink has room for %" PRIu64,
                       range->offset_bytes + range->bytes, room);
    }
    return HR_OK;
}

hr_status hr_writer_put(hr_pipeline *pipeline, hr_turn *turn, hr_place_in_run place, const void *buffer,
                        const hr_range *range, hr_error *error)
{
    const hr_sink *sink = pipeline->options.out[place.port].sink;
    if (sink->sequential && !hr_turn_wait(pipeline, turn, place.chunk)) {
        return HR_AGAIN;
    }
    hr_status status = hr_sink_check_room(sink, range, error);
    if (status != HR_OK) {
        return hr_port_named(status, "output", place.port, pipeline->cut.outputs, error);
    }
    hr_mark mark = hr_run_enter(pipeline, place.stage);
    status = sink->write(sink->self, range->offset_bytes, buffer, range->bytes, error);
    hr_run_leave(pipeline, place, mark, status == HR_OK ? range->bytes : 0);
    if (status != HR_OK) {
        status = hr_run_refused(status, "the sink", error);
        return hr_port_named(status, "output", place.port, pipeline->cut.outputs, error);
    }
    if (sink->sequential) {
        hr_turn_pass(pipeline, turn, place.chunk);
    }
    return HR_OK;
}

hr_status hr_port_read_rows(const hr_source *source, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                            uint64_t pitch, void *buffer, hr_error *error)
{
    unsigned char *to = buffer;
    if (source->data != NULL) {
        const unsigned char *from = (const unsigned char *)source->data + offset;
        for (uint64_t row = 0; row < rows; row++) {
            memcpy(to + row * row_bytes, from + row * pitch, row_bytes);
        }
        return HR_OK;
    }
    if (row_bytes == pitch || rows == 1) {
        return hr_port_read(source, offset, to, rows * row_bytes, NULL, error);
    }
    if (source->read_rows != NULL) {
        hr_status status =
            source->read_rows(source->self, offset, row_bytes, rows, pitch, to, row_bytes, error);
        return status == HR_OK ? HR_OK : hr_run_refused(status, "the source", error);
    }
    for (uint64_t row = 0; row < rows; row++) {
        hr_status status =
            hr_port_read(source, offset + row * pitch, to + row * row_bytes, row_bytes, NULL, error);
        if (status != HR_OK) {
            return status;
        }
    }
    return HR_OK;
}

hr_status hr_port_write_rows(const hr_sink *sink, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                             uint64_t pitch, const void *buffer, hr_error *error)
{
    const unsigned char *from = buffer;
    hr_status status = HR_OK;
    if (sink->data != NULL) {
        for (uint64_t row = 0; row < rows; row++) {
            memcpy((unsigned char *)sink->data + offset + row * pitch, from + row * row_bytes, row_bytes);
        }
    } else if (row_bytes == pitch || rows == 1) {
        status = sink->write(sink->self, offset, from, rows * row_bytes, error);
    } else if (sink->write_rows != NULL) {
        status = sink->write_rows(sink->self, offset, row_bytes, rows, pitch, from, row_bytes, error);
    } else {
        for (uint64_t row = 0; row < rows && status == HR_OK; row++) {
            status = sink->write(sink->self, offset + row * pitch, from + row * row_bytes, row_bytes, error);
        }
    }
    return status == HR_OK ? HR_OK : hr_run_refused(status, "the sink", error);
}
