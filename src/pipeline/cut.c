/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cut.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

/* Elements of one index of axis 0. */
static hr_status row_elements(const hr_shape *shape, uint64_t *elements)
{
    hr_shape row = {.rank = shape->rank - 1};
    memcpy(row.extent, shape->extent + 1, row.rank * sizeof row.extent[0]);
    return hr_shape_elements(&row, elements);
}

static bool unknown(const hr_shape *shape)
{
    return shape->rank > 0 && shape->extent[0] == HR_LENGTH_UNKNOWN;
}

/* Fills a port and says how many units it has. */
static hr_status make_port(hr_chunk_rule rule, hr_dtype dtype, const hr_shape *shape, hr_cut_port *port,
                           uint64_t *units, hr_error *error)
{
    port->dtype = dtype;
    port->whole = *shape;
    port->unit_bytes = hr_dtype_bytes(dtype);
    if (port->unit_bytes == 0) {
        return hr_fail(error, HR_E_INVALID, "pipeline: dtype %d is none of the known ones", (int)dtype);
    }
    if (shape->rank > HR_MAX_RANK) {
        return hr_fail(error, HR_E_RANGE, "pipeline: rank %" PRIu32 " is over the limit of %d", shape->rank,
                       HR_MAX_RANK);
    }
    uint64_t bytes;
    if (!unknown(shape) && hr_shape_bytes(shape, dtype, &bytes) != HR_OK) {
        return hr_fail(error, HR_E_RANGE, "pipeline: the array's size in bytes does not fit in 63 bits");
    }
    if (rule != HR_CHUNK_ROWS) {
        if (unknown(shape)) {
            *units = HR_LENGTH_UNKNOWN;
            return HR_OK;
        }
        return hr_shape_elements(shape, units);
    }
    if (shape->rank == 0) {
        return hr_fail(error, HR_E_INVALID, "pipeline: a scalar has no rows");
    }
    if (unknown(shape)) {
        return hr_fail(error, HR_E_UNSUPPORTED, "pipeline: the number of rows must be known");
    }
    uint64_t elements;
    if (row_elements(shape, &elements) != HR_OK ||
        hr_mul_overflows(port->unit_bytes, elements, &port->unit_bytes)) {
        return hr_fail(error, HR_E_RANGE, "pipeline: a row's size in bytes does not fit in 64 bits");
    }
    *units = port->unit_bytes == 0 ? 0 : shape->extent[0];
    return HR_OK;
}

hr_status hr_cut_make(const hr_op *op, const hr_op_plan *plan, const hr_dtype *dtypes, const hr_shape *shapes,
                      hr_cut *cut, hr_error *error)
{
    hr_cut made = {.rule = op->rule, .inputs = op->inputs, .outputs = plan->outputs};
    made.align_units = op->rule == HR_CHUNK_ROWS ? 1 : hr_max_u64(plan->align_elements, 1);
    uint64_t ports_units[2 * HR_MAX_PORTS] = {0};
    for (uint32_t i = 0; i < op->inputs; i++) {
        hr_status status = make_port(op->rule, dtypes[i], &shapes[i], &made.in[i], &ports_units[i], error);
        if (status != HR_OK) {
            return status;
        }
    }
    for (uint32_t i = 0; i < plan->outputs; i++) {
        hr_status status = make_port(op->rule, plan->dtype[i], &plan->shape[i], &made.out[i],
                                     &ports_units[op->inputs + i], error);
        if (status != HR_OK) {
            return status;
        }
    }
    made.units = ports_units[0];
    for (uint32_t i = 1; i < op->inputs + plan->outputs; i++) {
        if (ports_units[i] != made.units && ports_units[i] != HR_LENGTH_UNKNOWN &&
            made.units != HR_LENGTH_UNKNOWN) {
            return hr_fail(
                error, HR_E_INVALID, "%s: the first input has %" PRIu64 " %s, %s %" PRIu32 " has %" PRIu64,
                op->name, made.units, op->rule == HR_CHUNK_ROWS ? "rows" : "elements",
                i < op->inputs ? "input" : "output", i < op->inputs ? i : i - op->inputs, ports_units[i]);
        }
        /* One end that is not known leaves the whole open. */
        made.units = ports_units[i] == HR_LENGTH_UNKNOWN ? HR_LENGTH_UNKNOWN : made.units;
    }
    if (op->rule == HR_CHUNK_ROWS) {
        made.in[0].halo_units = hr_min_u64(plan->halo_rows, made.units);
    }
    *cut = made;
    return HR_OK;
}

uint64_t hr_cut_unit_bytes(const hr_cut *cut)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < cut->inputs; i++) {
        most = hr_max_u64(most, cut->in[i].unit_bytes);
    }
    for (uint32_t i = 0; i < cut->outputs; i++) {
        most = hr_max_u64(most, cut->out[i].unit_bytes);
    }
    return most;
}

hr_status hr_cut_set_chunk(hr_cut *cut, uint64_t chunk_bytes, hr_error *error)
{
    uint64_t unit = hr_cut_unit_bytes(cut);
    uint64_t least;
    if (hr_mul_overflows(unit, cut->align_units, &least)) {
        return hr_fail(error, HR_E_RANGE, "pipeline: one chunk's size in bytes does not fit in 64 bits");
    }
    if (chunk_bytes < least) {
        return hr_fail(error, HR_E_RANGE,
                       "pipeline: a chunk of %" PRIu64 " bytes is smaller than %s of %" PRIu64 " bytes",
                       chunk_bytes, cut->rule == HR_CHUNK_ROWS ? "one row" : "the op's smallest piece",
                       least);
    }
    uint64_t units = chunk_bytes / least * cut->align_units;
    if (cut->units != HR_LENGTH_UNKNOWN) {
        units = hr_min_u64(units, hr_max_u64(cut->units, 1));
    }
    cut->chunk_units = units;
    cut->head.count = cut->tail.count = 0;
    cut->head.units = cut->tail.units = 0;
    return HR_OK;
}

static void add_chunk(hr_cut_taper *taper, uint64_t units)
{
    taper->chunk[taper->count++] = units;
    taper->units += units;
}

/* least, 2·least, 4·least, … up to a whole chunk, as long as as much is left for the other end. */
static hr_cut_taper taper_head(const hr_cut *cut, uint64_t least)
{
    hr_cut_taper head = {0};
    for (uint64_t units = least; units < cut->chunk_units; units *= 2) {
        if (head.count == HR_CUT_TAPER_MOST || units > cut->units / 2 - head.units) {
            break;
        }
        add_chunk(&head, units);
    }
    return head;
}

/* Half of what is left, again and again. Whole multiples of the least chunk, so that files stay on their grain. */
static hr_cut_taper taper_tail(const hr_cut *cut, uint64_t least)
{
    hr_cut_taper tail = {0};
    uint64_t left = cut->units - cut->head.units;
    if (left / 2 >= cut->chunk_units) {
        left -= (left / cut->chunk_units - 1) * cut->chunk_units;
    }
    while (left > 0) {
        uint64_t units = hr_max_u64(left / 2 / least, 1) * least;
        bool last = left <= least || tail.count + 1 == HR_CUT_TAPER_MOST;
        units = last ? left : units;
        add_chunk(&tail, units);
        left -= units;
    }
    return tail;
}

void hr_cut_set_taper(hr_cut *cut, uint64_t head_units, uint64_t tail_units)
{
    cut->head = (hr_cut_taper){0};
    cut->tail = (hr_cut_taper){0};
    if (cut->units == HR_LENGTH_UNKNOWN) {
        return;
    }
    if (head_units > 0) {
        cut->head = taper_head(cut, hr_round_up(head_units, cut->align_units));
    }
    tail_units = hr_round_up(tail_units, cut->align_units);
    if (tail_units > 0 && tail_units < cut->chunk_units) {
        cut->tail = taper_tail(cut, tail_units);
    }
}

/* Chunks of chunk_units, the last of which may have less where nothing follows. */
static uint64_t body_chunks(const hr_cut *cut)
{
    return hr_div_up(cut->units - cut->head.units - cut->tail.units, cut->chunk_units);
}

uint64_t hr_cut_chunks(const hr_cut *cut)
{
    return cut->units == HR_LENGTH_UNKNOWN ? UINT64_MAX
                                           : cut->head.count + body_chunks(cut) + cut->tail.count;
}

static uint64_t units_before(const hr_cut_taper *taper, uint64_t chunk)
{
    uint64_t units = 0;
    for (uint64_t i = 0; i < chunk; i++) {
        units += taper->chunk[i];
    }
    return units;
}

/* Where a chunk begins; of the chunk behind the last, the end. */
static uint64_t begin_of(const hr_cut *cut, uint64_t chunk)
{
    if (chunk <= cut->head.count) {
        return units_before(&cut->head, chunk);
    }
    chunk -= cut->head.count;
    if (cut->units == HR_LENGTH_UNKNOWN) {
        return chunk * cut->chunk_units;
    }
    uint64_t body = body_chunks(cut);
    uint64_t tail = chunk > body ? units_before(&cut->tail, chunk - body) : 0;
    return hr_min_u64(cut->head.units + hr_min_u64(chunk, body) * cut->chunk_units + tail, cut->units);
}

uint64_t hr_cut_units(const hr_cut *cut, uint64_t chunk)
{
    return begin_of(cut, chunk + 1) - begin_of(cut, chunk);
}

static hr_range range_of(const hr_cut *cut, const hr_cut_port *port, uint64_t chunk)
{
    uint64_t first = begin_of(cut, chunk);
    uint64_t end = begin_of(cut, chunk + 1);
    if (cut->units != HR_LENGTH_UNKNOWN) {
        uint64_t reach = hr_min_u64(port->halo_units, cut->units - end);
        end += reach;
    }
    first -= hr_min_u64(port->halo_units, first);
    return (hr_range){.first = first,
                      .units = end - first,
                      .offset_bytes = first * port->unit_bytes,
                      .bytes = (end - first) * port->unit_bytes};
}

hr_range hr_cut_in(const hr_cut *cut, uint32_t port, uint64_t chunk)
{
    return range_of(cut, &cut->in[port], chunk);
}

hr_range hr_cut_out(const hr_cut *cut, uint32_t port, uint64_t chunk)
{
    return range_of(cut, &cut->out[port], chunk);
}

static uint64_t room_of(const hr_cut *cut, const hr_cut_port *port)
{
    /* chunk_units and halo are at most the whole's units, whose bytes fit in 63 bits; saturates beyond. */
    uint64_t units, bytes;
    if (hr_mul_overflows(port->halo_units, 2, &units) || hr_add_overflows(units, cut->chunk_units, &units)) {
        units = cut->units;
    }
    units = cut->units == HR_LENGTH_UNKNOWN ? units : hr_min_u64(units, cut->units);
    return hr_mul_overflows(units, port->unit_bytes, &bytes) ? UINT64_MAX : bytes;
}

uint64_t hr_cut_in_bytes(const hr_cut *cut, uint32_t port)
{
    return room_of(cut, &cut->in[port]);
}

uint64_t hr_cut_out_bytes(const hr_cut *cut, uint32_t port)
{
    return room_of(cut, &cut->out[port]);
}

hr_view hr_cut_view(const hr_cut *cut, const hr_cut_port *port, const hr_range *range, void *data)
{
    hr_view view = {.data = data,
                    .dtype = port->dtype,
                    .first = range->first,
                    .row_pitch_bytes = port->unit_bytes,
                    .whole = port->whole};
    if (cut->rule == HR_CHUNK_ROWS) {
        view.shape = port->whole;
    } else {
        view.shape.rank = 1;
    }
    view.shape.extent[0] = range->units;
    return view;
}
