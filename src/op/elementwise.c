/* SPDX-License-Identifier: Apache-2.0 */
/* add, scale, normalize, convert and copy on the CPU. */
#include "op/internal.h"

#include "base/checked.h"
#include "base/wide.h"

/* Elements a worker takes at a time, and how many of them pass through the first-level cache at once. */
#define PIECE UINT64_C(65536)
#define BLOCK 1024

static const char *at(const hr_view *view, uint64_t element)
{
    return (const char *)view->data + element * hr_dtype_bytes(view->dtype);
}

static char *at_output(const hr_view *view, uint64_t element)
{
    return (char *)view->data + element * hr_dtype_bytes(view->dtype);
}

static hr_status elements_of(const hr_view *view, uint64_t *n, hr_error *error)
{
    return hr_shape_elements(&view->shape, n) == HR_OK
               ? HR_OK
               : hr_fail(error, HR_E_RANGE, "the chunk has more than 2^64 elements");
}

static void add_piece(void *user, const hr_piece *p)
{
    (void)user;
    const hr_view *in = p->launch->in;
    const hr_view *out = p->launch->out;
    const hr_dtype dtype = in[0].dtype;
    if (p->kernels->add[dtype] != NULL) {
        p->kernels->add[dtype](at(&in[0], p->first), at(&in[1], p->first), at_output(out, p->first),
                               p->count);
        return;
    }
    /* 24 bits are enough for the sum of two 16-bit floats to be rounded twice without harm. */
    float a[BLOCK];
    float b[BLOCK];
    for (uint64_t done = 0; done < p->count; done += BLOCK) {
        const size_t n = hr_min_u64(BLOCK, p->count - done);
        p->kernels->load[dtype](at(&in[0], p->first + done), a, n);
        p->kernels->load[dtype](at(&in[1], p->first + done), b, n);
        p->kernels->add[HR_F32](a, b, a, n);
        p->kernels->store[HR_PIVOT_F32][dtype](a, at_output(out, p->first + done), n);
    }
}

hr_status hr_add_cpu(const hr_launch *launch, hr_error *error)
{
    uint64_t n;
    const hr_status status = elements_of(&launch->out[0], &n, error);
    if (status == HR_OK) {
        hr_for_pieces(launch, n, PIECE, add_piece, NULL);
    }
    return status;
}

static void scale_i64(const hr_scale_params *params, const hr_piece *p)
{
    const int64_t *a = (const int64_t *)(const void *)at(&p->launch->in[0], p->first);
    int64_t *c = (int64_t *)(void *)at_output(&p->launch->out[0], p->first);
    if (params->is_integer) {
        for (uint64_t i = 0; i < p->count; i++) {
            c[i] = hr_wide_to_i64((hr_int128)a[i] * params->by_integer + params->plus_integer);
        }
        return;
    }
    for (uint64_t i = 0; i < p->count; i++) {
        c[i] = hr_wide_to_i64(hr_wide_scale(a[i], params->by, params->plus));
    }
}

static void scale_u64(const hr_scale_params *params, const hr_piece *p)
{
    const uint64_t *a = (const uint64_t *)(const void *)at(&p->launch->in[0], p->first);
    uint64_t *c = (uint64_t *)(void *)at_output(&p->launch->out[0], p->first);
    if (params->is_integer) {
        for (uint64_t i = 0; i < p->count; i++) {
            c[i] = hr_wide_to_u64((hr_int128)a[i] * params->by_integer + params->plus_integer);
        }
        return;
    }
    for (uint64_t i = 0; i < p->count; i++) {
        c[i] = hr_wide_to_u64(hr_wide_scale(a[i], params->by, params->plus));
    }
}

static void scale_piece(void *user, const hr_piece *p)
{
    (void)user;
    const hr_scale_params *params = (const hr_scale_params *)p->launch->params;
    const hr_view *in = &p->launch->in[0];
    const hr_view *out = &p->launch->out[0];
    const hr_kernels *k = p->kernels;
    if (in->dtype == HR_I64) {
        scale_i64(params, p);
        return;
    }
    if (in->dtype == HR_U64) {
        scale_u64(params, p);
        return;
    }
    const bool narrow = hr_pivot_of(in->dtype) == HR_PIVOT_F32;
    union {
        float f32[BLOCK];
        double f64[BLOCK];
    } x;
    for (uint64_t done = 0; done < p->count; done += BLOCK) {
        const size_t n = hr_min_u64(BLOCK, p->count - done);
        const char *from = at(in, p->first + done);
        char *to = at_output(out, p->first + done);
        if (narrow) {
            k->load_f32[in->dtype](from, x.f32, n);
            k->scale_f32(x.f32, n, (float)params->by, (float)params->plus);
            k->store[HR_PIVOT_F32][in->dtype](x.f32, to, n);
        } else {
            k->load_f64[in->dtype](from, x.f64, n);
            k->scale_f64(x.f64, n, params->by, params->plus);
            k->store[HR_PIVOT_F64][in->dtype](x.f64, to, n);
        }
    }
}

hr_status hr_scale_cpu(const hr_launch *launch, hr_error *error)
{
    uint64_t n;
    const hr_status status = elements_of(&launch->out[0], &n, error);
    if (status == HR_OK) {
        hr_for_pieces(launch, n, PIECE, scale_piece, NULL);
    }
    return status;
}

hr_status hr_convert_plan(const hr_op *op, const void *params, const hr_dtype *dtypes, const hr_shape *shapes,
                          hr_op_plan *plan, hr_error *error)
{
    (void)dtypes;
    const hr_convert_params *convert = (const hr_convert_params *)params;
    if (convert == NULL || hr_dtype_bytes(convert->to) == 0) {
        return hr_fail(error, HR_E_INVALID, "%s: no dtype to convert to is given", op->name);
    }
    plan->outputs = 1;
    plan->dtype[0] = convert->to;
    plan->shape[0] = shapes[0];
    return HR_OK;
}

static void convert_piece(void *user, const hr_piece *p)
{
    (void)user;
    const hr_dtype from = p->launch->in[0].dtype;
    const hr_dtype to = p->launch->out[0].dtype;
    const char *src = at(&p->launch->in[0], p->first);
    char *dst = at_output(&p->launch->out[0], p->first);
    const hr_pivot pivot = hr_pivot_of(from);
    if (from == to) {
        memcpy(dst, src, p->count * hr_dtype_bytes(from));
        return;
    }
    const hr_cast_fn load = p->kernels->load[from];
    const hr_cast_fn store = p->kernels->store[pivot][to];
    if (hr_dtype_bytes(from) == hr_pivot_bytes(pivot)) {
        store(src, dst, p->count);
        return;
    }
    uint64_t middle[BLOCK];
    for (uint64_t done = 0; done < p->count; done += BLOCK) {
        const size_t n = hr_min_u64(BLOCK, p->count - done);
        load(src + done * hr_dtype_bytes(from), middle, n);
        store(middle, dst + done * hr_dtype_bytes(to), n);
    }
}

hr_status hr_convert_cpu(const hr_launch *launch, hr_error *error)
{
    uint64_t n;
    const hr_status status = elements_of(&launch->out[0], &n, error);
    if (status == HR_OK) {
        hr_for_pieces(launch, n, PIECE, convert_piece, NULL);
    }
    return status;
}

static void copy_piece(void *user, const hr_piece *p)
{
    (void)user;
    const uint64_t bytes = hr_dtype_bytes(p->launch->in[0].dtype);
    memcpy(at_output(&p->launch->out[0], p->first), at(&p->launch->in[0], p->first), p->count * bytes);
}

hr_status hr_copy_cpu(const hr_launch *launch, hr_error *error)
{
    uint64_t n;
    const hr_status status = elements_of(&launch->out[0], &n, error);
    if (status == HR_OK && launch->in[0].data != launch->out[0].data) {
        hr_for_pieces(launch, n, 4 * PIECE, copy_piece, NULL);
    }
    return status;
}

hr_status hr_normalize_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                            const hr_shape *shapes, hr_op_plan *plan, hr_error *error)
{
    (void)dtypes;
    const hr_normalize_params *normalize = (const hr_normalize_params *)params;
    if (normalize == NULL || normalize->channels == 0 || normalize->channels > HR_MAX_CHANNELS) {
        return hr_fail(error, HR_E_INVALID, "%s: %u channels of mean and std are given, 1 to %d are needed",
                       op->name, normalize != NULL ? normalize->channels : 0, HR_MAX_CHANNELS);
    }
    const uint64_t last = shapes[0].rank > 0 ? shapes[0].extent[shapes[0].rank - 1] : 1;
    if (normalize->channels > 1 && last != normalize->channels) {
        char text[160];
        return hr_fail(error, HR_E_INVALID,
                       "%s: %u channels of mean and std are given, the last axis of the input of shape %s "
                       "must be as long",
                       op->name, normalize->channels, hr_op_shape_text(&shapes[0], text, sizeof text));
    }
    plan->outputs = 1;
    plan->dtype[0] = HR_F32;
    plan->shape[0] = shapes[0];
    plan->align_elements = normalize->channels;
    return HR_OK;
}

/* Mean and standard deviation, repeated so that whole vectors can be taken from them. */
typedef struct normalize_pattern {
    float mean[HR_MAX_CHANNELS * 16];
    float std_dev[HR_MAX_CHANNELS * 16];
    size_t period;
} normalize_pattern;

static void normalize_piece(void *user, const hr_piece *p)
{
    const normalize_pattern *pattern = (const normalize_pattern *)user;
    p->kernels->normalize((const uint8_t *)at(&p->launch->in[0], p->first),
                          (float *)(void *)at_output(&p->launch->out[0], p->first), p->count, pattern->mean,
                          pattern->std_dev, pattern->period);
}

hr_status hr_normalize_cpu(const hr_launch *launch, hr_error *error)
{
    uint64_t n;
    const hr_status status = elements_of(&launch->out[0], &n, error);
    if (status != HR_OK) {
        return status;
    }
    const hr_normalize_params *params = (const hr_normalize_params *)launch->params;
    if (params->channels == 0 || params->channels > HR_MAX_CHANNELS) {
        return hr_fail(error, HR_E_INVALID, "normalize: %u channels, 1 to %d are needed", params->channels,
                       HR_MAX_CHANNELS);
    }
    normalize_pattern pattern;
    pattern.period = (size_t)params->channels * 16;
    for (size_t i = 0; i < pattern.period; i++) {
        /* A chunk starts at a multiple of the channels; `first` matters only to a caller who cuts otherwise.
         */
        const size_t channel = (size_t)((launch->in[0].first + i) % params->channels);
        pattern.mean[i] = params->mean[channel];
        pattern.std_dev[i] = params->std_dev[channel];
    }
    hr_for_pieces(launch, n, pattern.period * 1024, normalize_piece, &pattern);
    return HR_OK;
}
