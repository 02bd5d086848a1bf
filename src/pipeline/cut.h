/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How arrays are cut into chunks. Everything is counted in units: an element for HR_CHUNK_ELEMENTS and
 * HR_CHUNK_REDUCE, a row (one index of axis 0) for HR_CHUNK_ROWS. Pure arithmetic; HR_CHUNK_TILES has its own
 * (tile_plan.h).
 */
#ifndef HR_PIPELINE_CUT_H
#define HR_PIPELINE_CUT_H

#include <headrace/io.h>
#include <headrace/op.h>

typedef struct hr_cut_port {
    hr_dtype dtype;
    hr_shape whole;
    uint64_t unit_bytes;
    uint64_t halo_units; /* how far a chunk reaches to each side */
} hr_cut_port;

/* Chunks that differ from the rest in size, at one end of the array. */
#define HR_CUT_TAPER_MOST 32
typedef struct hr_cut_taper {
    uint32_t count;
    uint64_t units; /* of all of them */
    uint64_t chunk[HR_CUT_TAPER_MOST];
} hr_cut_taper;

typedef struct hr_cut {
    hr_chunk_rule rule;
    uint32_t inputs, outputs;
    hr_cut_port in[HR_MAX_PORTS];
    hr_cut_port out[HR_MAX_PORTS];
    uint64_t units; /* in the whole, or HR_LENGTH_UNKNOWN */
    uint64_t align_units;
    uint64_t chunk_units; /* of the largest chunk; set by hr_cut_set_chunk() */
    /* Set by hr_cut_set_taper(): growing chunks ahead of those of chunk_units, shrinking ones behind them. */
    hr_cut_taper head, tail;
} hr_cut;

/* A chunk's part of one port. */
typedef struct hr_range {
    uint64_t first; /* unit */
    uint64_t units;
    uint64_t offset_bytes;
    uint64_t bytes;
} hr_range;

/* Makes a cut from an op's plan. HR_E_RANGE: a product overflows; HR_E_INVALID: outputs that do not fit the
 * rule; HR_E_UNSUPPORTED: rows of unknown number. */
HR_CHECKED hr_status hr_cut_make(const hr_op *op, const hr_op_plan *plan, const hr_dtype *dtypes,
                                 const hr_shape *shapes, hr_cut *cut, hr_error *error);

/* Bytes of one unit of the largest port: what a chunk's size is counted in. */
uint64_t hr_cut_unit_bytes(const hr_cut *cut);

/* Takes the largest aligned chunk of at most chunk_bytes, of the largest port, for all chunks alike. HR_E_RANGE: not
 * even one aligned unit fits. */
HR_CHECKED hr_status hr_cut_set_chunk(hr_cut *cut, uint64_t chunk_bytes, hr_error *error);

/*
 * Makes the chunks at the ends smaller, so that the first leaves its first stage soon and little is left to do when the
 * last has: chunks begin with head_units and double, and towards the end each is half of what is left, down to
 * tail_units. 0 leaves an end as it is. Both are rounded to the alignment; an end at which there is no room stays as it is,
 * as does an array of unknown length. After hr_cut_set_chunk(), which takes tapers away.
 */
void hr_cut_set_taper(hr_cut *cut, uint64_t head_units, uint64_t tail_units);

/* Number of chunks; UINT64_MAX where the length is not known. */
uint64_t hr_cut_chunks(const hr_cut *cut);

/* Units that a chunk stands for, without what it reads of its neighbours. */
uint64_t hr_cut_units(const hr_cut *cut, uint64_t chunk);

/* What chunk `chunk` reads (halo included, cut off at the edges) and writes. */
hr_range hr_cut_in(const hr_cut *cut, uint32_t port, uint64_t chunk);
hr_range hr_cut_out(const hr_cut *cut, uint32_t port, uint64_t chunk);

/* Room that one chunk needs of a port, at most. */
uint64_t hr_cut_in_bytes(const hr_cut *cut, uint32_t port);
uint64_t hr_cut_out_bytes(const hr_cut *cut, uint32_t port);

/* The launcher's view of a range that lies at `data`. */
hr_view hr_cut_view(const hr_cut *cut, const hr_cut_port *port, const hr_range *range, void *data);

#endif
