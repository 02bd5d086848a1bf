/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a chunk from a source and writing one to a sink, in the order that each of them needs. */
#ifndef HR_PIPELINE_PORT_H
#define HR_PIPELINE_PORT_H

#include "pipeline/run.h"

/* What one input needs besides its source. A sequential source is read chunk by chunk in order; where chunks
 * overlap, `carry` keeps what the next chunk shares with this one. */
typedef struct hr_reader {
    hr_turn turn;
    unsigned char *carry;
    uint64_t carry_units; /* the units just before where the source stands */
    bool ended;           /* a sequential source has said that there is no more: it is not asked again */
} hr_reader;

/* Bytes of carry that an input needs; 0 for most. */
uint64_t hr_reader_carry_bytes(const hr_pipeline *pipeline, uint32_t port);

/* What a sink can take. A sink of the user's that leaves the field zero sets no limit. */
static inline uint64_t hr_sink_room(const hr_sink *sink)
{
    return sink->room_bytes == 0 && sink->data == NULL ? HR_LENGTH_UNKNOWN : sink->room_bytes;
}
/* HR_E_RANGE if the range does not fit the sink: where the length was not known, nobody could tell before. */
HR_CHECKED hr_status hr_sink_check_room(const hr_sink *sink, const hr_range *range, hr_error *error);

/* Puts the port's number, counted from 1 as everywhere in texts, before a failure's text where there are several. `kind`:
 * "input". */
HR_CHECKED hr_status hr_port_named(hr_status status, const char *kind, uint32_t port, uint32_t ports,
                                   hr_error *error);

/* Reads the whole of [offset, offset + bytes), fewer only at the end of a source whose length is not known and
 * where the caller wants to know (`got` is not null). HR_E_IO: the source ended early. */
HR_CHECKED hr_status hr_port_read(const hr_source *source, uint64_t offset, void *buffer, uint64_t bytes,
                                  uint64_t *got, hr_error *error);

/* Rows of a matrix between a source or sink, where they lie `pitch` apart, and dense memory. */
HR_CHECKED hr_status hr_port_read_rows(const hr_source *source, uint64_t offset, uint64_t row_bytes,
                                       uint64_t rows, uint64_t pitch, void *buffer, hr_error *error);
HR_CHECKED hr_status hr_port_write_rows(const hr_sink *sink, uint64_t offset, uint64_t row_bytes,
                                        uint64_t rows, uint64_t pitch, const void *buffer, hr_error *error);

/*
 * Fetches a chunk of one input into `buffer`, waiting for its turn. *range comes in as the cut says and goes
 * out with the units that there are. HR_AGAIN: the chunk is stopped; HR_END: the data ended before it.
 */
HR_CHECKED hr_status hr_reader_fetch(hr_pipeline *pipeline, hr_reader *reader, hr_place_in_run place,
                                     void *buffer, hr_range *range, hr_error *error);

/* Writes a chunk of one output, waiting for its turn where the sink is sequential. HR_AGAIN: stopped. */
HR_CHECKED hr_status hr_writer_put(hr_pipeline *pipeline, hr_turn *turn, hr_place_in_run place,
                                   const void *buffer, const hr_range *range, hr_error *error);

#endif
