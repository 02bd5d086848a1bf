/* SPDX-License-Identifier: Apache-2.0 */
/* A staged copy: cut into pieces that fit a slot, and taken through the slots. */
#include "backend/cuda/stage.h"

#include <stdlib.h>

#define PACK_ALIGN ((uint64_t)16)

/* The end that is an array counts in elements. */
static uint64_t element_bytes(const hr_bcopy *copy)
{
    if (copy->dst.place == HR_PLACE_ARRAY) {
        return copy->dst.array->element_bytes;
    }
    return copy->src.place == HR_PLACE_ARRAY ? copy->src.array->element_bytes : 1;
}

/* Pitches that the shape does not need may be 0 in the description; pieces are cut with them. */
static void complete_pitches(hr_bcopy *copy)
{
    hr_bend *ends[2] = {&copy->dst, &copy->src};
    for (int i = 0; i < 2; i++) {
        if (ends[i]->row_pitch_bytes == 0) {
            ends[i]->row_pitch_bytes = copy->width_bytes;
        }
        if (ends[i]->slice_pitch_bytes == 0) {
            ends[i]->slice_pitch_bytes = ends[i]->row_pitch_bytes * copy->height;
        }
    }
}

/* Large enough to be worth a call, small enough that every thread has one, never larger than a slot. */
static void choose_step(hr_cuda_pending *op, const hr_stage_ring *ring)
{
    hr_bcopy *copy = &op->copy;
    complete_pitches(copy);
    uint64_t row = copy->width_bytes;
    uint64_t total = row * copy->height * copy->depth;
    uint64_t most = hr_min_u64(ring->slot_bytes, hr_max_u64(HR_STAGE_PIECE_LEAST, total / ring->threads));
    most = hr_round_up(most, 4096) <= ring->slot_bytes ? hr_round_up(most, 4096) : ring->slot_bytes;
    op->step = (hr_stage_piece){.width = row, .height = 1, .depth = 1};
    if (row > most) {
        uint64_t unit = element_bytes(copy) > 256 ? element_bytes(copy) : 256;
        op->step.width = most / unit * unit;
    } else if (row * copy->height > most) {
        op->step.height = most / row;
    } else {
        op->step.height = copy->height;
        op->step.depth = hr_min_u64(copy->depth, most / (row * copy->height));
    }
}

/* Packs the next segments of a list into the slot. */
static void next_segments(hr_cuda_pending *op, const hr_stage_ring *ring, hr_stage_slot *slot)
{
    uint64_t at = 0;
    uint32_t count = 0;
    while (count < HR_STAGE_SEGMENTS && op->segment < op->copy.segment_count && at < ring->slot_bytes) {
        const hr_segment *s = &op->segments[op->segment];
        uint64_t bytes = hr_min_u64(s->bytes - op->inside, ring->slot_bytes - at);
        slot->segments[count] =
            (hr_segment){s->dst_offset_bytes + op->inside, s->src_offset_bytes + op->inside, bytes};
        slot->packed[count++] = at;
        at = hr_round_up(at + bytes, PACK_ALIGN);
        op->inside += bytes;
        if (op->inside == s->bytes) {
            op->segment++;
            op->inside = 0;
        }
    }
    slot->piece = (hr_stage_piece){.segments = count};
    op->all_started = op->segment == op->copy.segment_count;
}

static void next_box(hr_cuda_pending *op, hr_stage_slot *slot)
{
    const hr_bcopy *copy = &op->copy;
    slot->piece = (hr_stage_piece){.x = op->x,
                                   .y = op->y,
                                   .z = op->z,
                                   .width = hr_min_u64(op->step.width, copy->width_bytes - op->x),
                                   .height = hr_min_u64(op->step.height, copy->height - op->y),
                                   .depth = hr_min_u64(op->step.depth, copy->depth - op->z)};
    op->x += op->step.width;
    if (op->x >= copy->width_bytes) {
        op->x = 0;
        op->y += op->step.height;
    }
    if (op->y >= copy->height) {
        op->y = 0;
        op->z += op->step.depth;
    }
    op->all_started = op->z >= copy->depth;
}

static void next_piece(hr_cuda_pending *op, const hr_stage_ring *ring, hr_stage_slot *slot)
{
    if (op->copy.segment_count > 0) {
        next_segments(op, ring, slot);
    } else {
        next_box(op, slot);
    }
    slot->owner = op;
}

/* Moves a device's end of the copy to the piece. */
static void move_end(hr_bend *end, const hr_stage_piece *piece)
{
    uint64_t bytes = piece->z * end->slice_pitch_bytes + piece->y * end->row_pitch_bytes + piece->x;
    if (end->place == HR_PLACE_ARRAY) {
        end->x += piece->x / end->array->element_bytes;
        end->y += piece->y;
        end->z += piece->z;
    } else if (end->place == HR_PLACE_SYMBOL) {
        end->offset_bytes += bytes;
    } else {
        end->base = (char *)end->base + bytes;
    }
}

/* Between the slot and a device's end, in `native`, which is of `device`. */
static hr_status submit_leg(hr_bdevice *device, cudaStream_t native, const hr_stage_slot *slot, bool to_slot,
                            hr_error *error)
{
    hr_bcopy leg = slot->owner->copy;
    const hr_stage_piece *piece = &slot->piece;
    hr_bend *slot_end = to_slot ? &leg.dst : &leg.src;
    *slot_end = (hr_bend){.place = HR_PLACE_HOST,
                          .base = slot->base,
                          .row_pitch_bytes = piece->width,
                          .slice_pitch_bytes = piece->width * piece->height};
    if (piece->segments == 0) {
        move_end(to_slot ? &leg.src : &leg.dst, piece);
        leg.width_bytes = piece->width;
        leg.height = piece->height;
        leg.depth = piece->depth;
        return hr_cuda_copy_submit(device, native, &leg, error);
    }
    hr_segment *list = malloc(piece->segments * sizeof *list);
    if (list == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "copy: its list of segments could not be kept");
    }
    for (uint32_t i = 0; i < piece->segments; i++) {
        list[i] = slot->segments[i];
        *(to_slot ? &list[i].dst_offset_bytes : &list[i].src_offset_bytes) = slot->packed[i];
    }
    leg.segments = list;
    leg.segment_count = piece->segments;
    hr_status status = hr_cuda_copy_submit(device, native, &leg, error);
    free(list);
    return status;
}

static hr_status record(hr_bdevice *device, cudaEvent_t event, cudaStream_t native, hr_error *error)
{
    return hr_cuda_check(device, cudaEventRecord(event, native), error, "staging: marking a slot");
}

/* The slot is the device's until its event is done; whether its owner hears of it then is the owner's choice.
 */
static void leave_on_device(hr_cuda_stager *stager, hr_stage_slot *slot, hr_bdevice *device, cudaEvent_t busy,
                            bool owner_waits)
{
    pthread_mutex_lock(&stager->lock);
    slot->busy = busy;
    slot->busy_device = device;
    slot->state = HR_SLOT_ON_DEVICE;
    if (!owner_waits) {
        slot->owner->outstanding--;
        slot->owner = NULL;
    }
    pthread_mutex_unlock(&stager->lock);
}

/*
 * A slot whose submission failed. Something of it may be on its way all the same, so it is not free before
 * its stream is past it.
 */
static void give_up_slot(hr_cuda_stager *stager, hr_stage_slot *slot)
{
    hr_bstream *stream = slot->owner->stream;
    (void)record(stream->device, slot->event, stream->native, NULL);
    leave_on_device(stager, slot, stream->device, slot->event, false);
}

static hr_status start_in(hr_cuda_stager *stager, hr_stage_slot *slot)
{
    if (hr_stage_is_small(slot)) {
        hr_stage_fill(slot);
        pthread_mutex_lock(&stager->lock);
        slot->state = HR_SLOT_FILLED;
        pthread_mutex_unlock(&stager->lock);
        return HR_OK;
    }
    pthread_mutex_lock(&stager->lock);
    hr_stage_slot_hand(stager, slot, HR_SLOT_FILLING);
    pthread_mutex_unlock(&stager->lock);
    return HR_OK;
}

static hr_status finish_in(hr_cuda_stager *stager, hr_stage_slot *slot, hr_error *error)
{
    hr_bstream *stream = slot->owner->stream;
    hr_status status = submit_leg(stream->device, stream->native, slot, false, error);
    if (status == HR_OK) {
        status = record(stream->device, slot->event, stream->native, error);
    }
    if (status == HR_OK) {
        leave_on_device(stager, slot, stream->device, slot->event, false);
    }
    return status;
}

static hr_status start_out(hr_cuda_stager *stager, hr_stage_slot *slot, hr_error *error)
{
    hr_bstream *stream = slot->owner->stream;
    hr_status status = submit_leg(stream->device, stream->native, slot, true, error);
    if (status == HR_OK) {
        status = record(stream->device, slot->event, stream->native, error);
    }
    if (status == HR_OK) {
        leave_on_device(stager, slot, stream->device, slot->event, true);
    }
    return status;
}

static hr_status start_host(hr_cuda_stager *stager, hr_stage_slot *slot)
{
    pthread_mutex_lock(&stager->lock);
    hr_stage_slot_hand(stager, slot, HR_SLOT_DRAINING);
    pthread_mutex_unlock(&stager->lock);
    return HR_OK;
}

static hr_bdevice *far_device(const hr_cuda_pending *op, bool *far_is_source)
{
    const hr_bend *ends[2] = {&op->copy.src, &op->copy.dst};
    for (int i = 0; i < 2; i++) {
        hr_bdevice *device = ends[i]->place == HR_PLACE_ARRAY    ? ends[i]->array->device
                             : ends[i]->place == HR_PLACE_SYMBOL ? ends[i]->symbol->device
                                                                 : ends[i]->device;
        if (device->ordinal != op->stream->device->ordinal) {
            *far_is_source = i == 0;
            return device;
        }
    }
    return NULL;
}

/*
 * The far device as the helper needs it: its context, retained. The caller's own handle of it may be closed
 * before the helper is.
 */
static hr_status retain_device(hr_bdevice *far, hr_bdevice **kept, hr_error *error)
{
    hr_bdevice *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "copy between devices: its description could not be had");
    }
    made->ordinal = far->ordinal;
    made->handle = far->handle;
    made->driver = far->driver;
    made->multiprocessors = far->multiprocessors;
    made->max_pitch_bytes = far->max_pitch_bytes;
    made->host_pointers_work = far->host_pointers_work;
    pthread_mutex_init(&made->lock, NULL);
    hr_status status = hr_cuda_check_driver(NULL, made->driver->primary_retain(&made->context, made->handle),
                                            error, "copy between devices: the other device's context");
    if (status != HR_OK) {
        pthread_mutex_destroy(&made->lock);
        free(made);
        return status;
    }
    *kept = made;
    return HR_OK;
}

void hr_stage_helper_close(hr_stage_helper *helper)
{
    hr_bdevice *device = helper->device;
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(device, &scope);
    if (helper->stream != NULL) {
        hr_cuda_ignore(device, cudaStreamSynchronize(helper->stream));
        hr_cuda_ignore(device, cudaStreamDestroy(helper->stream));
    }
    for (int i = 0; i < HR_STAGE_SLOTS; i++) {
        if (helper->event[i] != NULL) {
            hr_cuda_ignore(device, cudaEventDestroy(helper->event[i]));
        }
    }
    hr_cuda_leave(&scope);
    (void)device->driver->primary_release(device->handle);
    pthread_mutex_destroy(&device->lock);
    free(device);
    free(helper);
}

static hr_status make_helper(hr_cuda_stager *stager, hr_bdevice *far, hr_error *error)
{
    hr_stage_helper *helper = calloc(1, sizeof *helper);
    if (helper == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "copy between devices: its stream could not be had");
    }
    hr_status status = retain_device(far, &helper->device, error);
    if (status != HR_OK) {
        free(helper);
        return status;
    }
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(helper->device, &scope);
    status = hr_cuda_check(helper->device, cudaStreamCreateWithFlags(&helper->stream, cudaStreamNonBlocking),
                           error, "copy between devices: creating a stream");
    for (int i = 0; i < HR_STAGE_SLOTS && status == HR_OK; i++) {
        status =
            hr_cuda_check(helper->device, cudaEventCreateWithFlags(&helper->event[i], cudaEventDisableTiming),
                          error, "copy between devices: creating an event");
    }
    hr_cuda_leave(&scope);
    if (status == HR_OK) {
        stager->helper[far->ordinal] = helper;
    } else {
        hr_stage_helper_close(helper);
    }
    return status;
}

/* One leg on each device, and the slot between them. */
static hr_status start_peer(hr_cuda_stager *stager, hr_stage_slot *slot, hr_error *error)
{
    hr_cuda_pending *op = slot->owner;
    hr_bstream *stream = op->stream;
    hr_stage_helper *helper = op->helper;
    cudaEvent_t far_event = helper->event[slot - stager->ring->slot];
    bool far_is_source = false;
    (void)far_device(op, &far_is_source);
    hr_bdevice *first = far_is_source ? helper->device : stream->device;
    hr_bdevice *second = far_is_source ? stream->device : helper->device;
    cudaStream_t first_stream = far_is_source ? helper->stream : stream->native;
    cudaStream_t second_stream = far_is_source ? stream->native : helper->stream;
    cudaEvent_t first_event = far_is_source ? far_event : slot->event;
    cudaEvent_t second_event = far_is_source ? slot->event : far_event;

    hr_cuda_scope scope;
    hr_cuda_enter_anyway(first, &scope);
    hr_status status = submit_leg(first, first_stream, slot, true, error);
    if (status == HR_OK) {
        status = record(first, first_event, first_stream, error);
    }
    hr_cuda_leave(&scope);
    if (status != HR_OK) {
        return status;
    }
    hr_cuda_enter_anyway(second, &scope);
    status = hr_cuda_check(second, cudaStreamWaitEvent(second_stream, first_event, 0), error,
                           "copy between devices: waiting for its first leg");
    if (status == HR_OK) {
        status = submit_leg(second, second_stream, slot, false, error);
    }
    if (status == HR_OK) {
        status = record(second, second_event, second_stream, error);
    }
    hr_cuda_leave(&scope);
    if (status == HR_OK) {
        op->last = far_is_source ? NULL : far_event;
        leave_on_device(stager, slot, second, second_event, false);
    }
    return status;
}

/* The helper's work comes after what the stream has before it. */
static hr_status begin_peer(hr_cuda_stager *stager, hr_cuda_pending *op, hr_error *error)
{
    bool far_is_source = false;
    hr_bdevice *far = far_device(op, &far_is_source);
    hr_status status = hr_cuda_alive(far, error);
    if (status == HR_OK && stager->helper[far->ordinal] == NULL) {
        status = make_helper(stager, far, error);
    }
    if (status != HR_OK) {
        return status;
    }
    op->helper = stager->helper[far->ordinal];
    hr_cuda_scope scope;
    hr_cuda_enter_anyway(far, &scope);
    status = hr_cuda_check(far, cudaStreamWaitEvent(op->helper->stream, op->quiet, 0), error,
                           "copy between devices: waiting for the stream's work");
    hr_cuda_leave(&scope);
    return status;
}

static hr_status begin(hr_cuda_stager *stager, hr_cuda_pending *op, hr_error *error)
{
    hr_bstream *stream = op->stream;
    hr_status status = HR_OK;
    op->begun = true;
    if (op->copy.segment_count == 0) {
        choose_step(op, stager->ring);
    }
    if (op->wait_quiet || op->way == HR_CUDA_WAY_PEER) {
        status = hr_cuda_check(stream->device, cudaEventCreateWithFlags(&op->quiet, cudaEventDisableTiming),
                               error, "staging: creating an event");
        if (status != HR_OK) {
            op->quiet = NULL;
            return status;
        }
        status = record(stream->device, op->quiet, stream->native, error);
    }
    if (status == HR_OK && op->way == HR_CUDA_WAY_PEER) {
        status = begin_peer(stager, op, error);
    }
    return status;
}

static hr_status start_piece(hr_cuda_stager *stager, hr_stage_slot *slot, hr_error *error)
{
    switch (slot->owner->way) {
    case HR_CUDA_WAY_IN:
        return start_in(stager, slot);
    case HR_CUDA_WAY_OUT:
        return start_out(stager, slot, error);
    case HR_CUDA_WAY_PEER:
        return start_peer(stager, slot, error);
    default:
        return start_host(stager, slot);
    }
}

static hr_stage_slot *take_slot(hr_cuda_stager *stager, hr_cuda_pending *op)
{
    pthread_mutex_lock(&stager->lock);
    hr_stage_slot *slot = hr_stage_slot_take(stager->ring);
    if (slot != NULL) {
        op->outstanding++;
    }
    pthread_mutex_unlock(&stager->lock);
    return slot;
}

/* A slot that a copying thread has filled for this copy, or null. */
static hr_stage_slot *filled_slot(hr_cuda_stager *stager, const hr_cuda_pending *op)
{
    hr_stage_slot *found = NULL;
    pthread_mutex_lock(&stager->lock);
    for (uint32_t i = 0; i < stager->ring->slots && found == NULL; i++) {
        hr_stage_slot *slot = &stager->ring->slot[i];
        if (slot->owner == op && slot->state == HR_SLOT_FILLED) {
            found = slot;
        }
    }
    pthread_mutex_unlock(&stager->lock);
    return found;
}

static uint32_t outstanding(hr_cuda_stager *stager, const hr_cuda_pending *op)
{
    pthread_mutex_lock(&stager->lock);
    uint32_t count = op->outstanding;
    pthread_mutex_unlock(&stager->lock);
    return count;
}

static hr_status finish_filled(hr_cuda_stager *stager, hr_cuda_pending *op, hr_error *error)
{
    for (hr_stage_slot *slot = filled_slot(stager, op); slot != NULL; slot = filled_slot(stager, op)) {
        hr_status status = finish_in(stager, slot, error);
        if (status != HR_OK) {
            give_up_slot(stager, slot);
            return status;
        }
    }
    return HR_OK;
}

/* As far as slots allow. A failure has given its slot up already. */
static hr_status advance(hr_cuda_stager *stager, hr_cuda_pending *op, hr_error *error)
{
    hr_status finished = finish_filled(stager, op, error);
    if (finished != HR_OK) {
        return finished;
    }
    while (!op->all_started) {
        hr_stage_slot *slot = take_slot(stager, op);
        if (slot == NULL) {
            break;
        }
        next_piece(op, stager->ring, slot);
        hr_status status = start_piece(stager, slot, error);
        if (status != HR_OK) {
            give_up_slot(stager, slot);
            return status;
        }
    }
    return finish_filled(stager, op, error);
}

/* The stream waits for the far device's last leg, where that comes last. */
static hr_status end(hr_cuda_pending *op, hr_error *error)
{
    if (op->last == NULL) {
        return HR_OK;
    }
    return hr_cuda_check(op->stream->device, cudaStreamWaitEvent(op->stream->native, op->last, 0), error,
                         "copy between devices: waiting for its last leg");
}

hr_step hr_stage_copy_step(hr_cuda_stager *stager, hr_cuda_pending *op)
{
    hr_error error = HR_ERROR_INIT;
    hr_status status = op->begun ? HR_OK : begin(stager, op, &error);
    if (status == HR_OK && op->wait_quiet) {
        status = hr_cuda_check(op->stream->device, cudaEventQuery(op->quiet), &error,
                               "staging: waiting for the stream's work");
        if (status == HR_PENDING) {
            return HR_STEP_BLOCKED;
        }
        op->wait_quiet = false;
    }
    if (status == HR_OK) {
        status = advance(stager, op, &error);
    }
    if (status == HR_OK && op->all_started && outstanding(stager, op) == 0) {
        status = end(op, &error);
        if (status == HR_OK) {
            return HR_STEP_DONE;
        }
    }
    if (status != HR_OK) {
        hr_cuda_stream_fail(op->stream, status, &error);
    }
    return HR_STEP_BLOCKED;
}

hr_step hr_stage_copy_abandon(hr_cuda_stager *stager, hr_cuda_pending *op)
{
    if (!op->begun) {
        return HR_STEP_DONE;
    }
    for (hr_stage_slot *slot = filled_slot(stager, op); slot != NULL; slot = filled_slot(stager, op)) {
        pthread_mutex_lock(&stager->lock);
        slot->state = HR_SLOT_FREE;
        slot->owner = NULL;
        op->outstanding--;
        pthread_mutex_unlock(&stager->lock);
    }
    return outstanding(stager, op) == 0 ? HR_STEP_DONE : HR_STEP_BLOCKED;
}

hr_status hr_stage_copy_in_now(hr_cuda_stager *stager, hr_bstream *stream, const hr_bcopy *copy,
                               hr_error *error)
{
    uint64_t bytes = copy->width_bytes * copy->height * copy->depth;
    if (copy->segment_count > 0 || bytes > HR_STAGE_SMALL || bytes > stager->ring->slot_bytes) {
        return HR_AGAIN;
    }
    hr_cuda_pending op = {
        .kind = HR_CUDA_PENDING_STAGED, .stream = stream, .way = HR_CUDA_WAY_IN, .copy = *copy};
    complete_pitches(&op.copy);
    hr_stage_slot *slot = take_slot(stager, &op);
    if (slot == NULL) {
        return HR_AGAIN;
    }
    slot->piece = (hr_stage_piece){.width = copy->width_bytes, .height = copy->height, .depth = copy->depth};
    slot->owner = &op;
    hr_stage_fill(slot);
    hr_status status = finish_in(stager, slot, error);
    if (status != HR_OK) {
        give_up_slot(stager, slot);
    }
    return status;
}
