/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the built-in ops from text. */
#include "op/internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The whole text as a finite number, as strtod() reads it in the C locale: no blanks, no hexadecimal, no
 * names. */
static hr_status parse_number(const char *what, const char *text, size_t length, double *number,
                              hr_error *error)
{
    char copy[64];
    if (length == 0 || length >= sizeof copy || strspn(text, "0123456789+-.eE") < length) {
        return hr_fail(error, HR_E_INVALID, "--%s: \"%.*s\" is not a number", what,
                       (int)(length < 80 ? length : 80), text);
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *end;
    errno = 0;
    const double value = strtod(copy, &end);
    if (*end != '\0' || end == copy) {
        return hr_fail(error, HR_E_INVALID, "--%s: \"%s\" is not a number", what, copy);
    }
    if (!isfinite(value)) {
        return hr_fail(error, HR_E_RANGE, "--%s: %s is beyond the largest f64, 1.8e308", what, copy);
    }
    *number = value;
    return HR_OK;
}

/* Is the text an integer that 64 signed bits hold? */
static bool parse_integer(const char *text, int64_t *integer)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *integer = value;
    return true;
}

static hr_status set_scale(hr_scale_params *scale, const char *name, const char *value, hr_error *error)
{
    double number = 0.0;
    const hr_status status = parse_number(name, value, strlen(value), &number, error);
    if (status != HR_OK) {
        return status;
    }
    int64_t integer = 0;
    const bool is_integer = parse_integer(value, &integer);
    const bool is_by = strcmp(name, "by") == 0;
    /* Exact only while both are integers. */
    const bool other_given = is_by ? scale->plus_given : scale->by_given;
    scale->is_integer = is_integer && (scale->is_integer || !other_given);
    if (is_by) {
        scale->by = number;
        scale->by_integer = integer;
        scale->by_given = true;
    } else {
        scale->plus = number;
        scale->plus_integer = integer;
        scale->plus_given = true;
    }
    return HR_OK;
}

static hr_status parse_list(const char *name, const char *value, float *list, uint32_t *count,
                            hr_error *error)
{
    float parsed[HR_MAX_CHANNELS] = {0.0f};
    uint32_t n = 0;
    for (const char *at = value;; at++) {
        const size_t length = strcspn(at, ",");
        double number = 0.0;
        if (n == HR_MAX_CHANNELS) {
            return hr_fail(error, HR_E_RANGE, "--%s: more than %d values", name, HR_MAX_CHANNELS);
        }
        const hr_status status = parse_number(name, at, length, &number, error);
        if (status != HR_OK) {
            return status;
        }
        parsed[n] = (float)number;
        if (!isfinite(parsed[n])) {
            return hr_fail(error, HR_E_RANGE, "--%s: %.*s is beyond the largest f32, 3.4e38", name,
                           (int)length, at);
        }
        n++;
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    memcpy(list, parsed, n * sizeof *list);
    *count = n;
    return HR_OK;
}

static hr_status set_normalize(hr_normalize_params *normalize, const char *name, const char *value,
                               hr_error *error)
{
    if (strcmp(name, "mean") == 0) {
        return parse_list(name, value, normalize->mean, &normalize->means_given, error);
    }
    float list[HR_MAX_CHANNELS] = {0.0f};
    uint32_t count = 0;
    const hr_status status = parse_list(name, value, list, &count, error);
    if (status != HR_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] == 0.0f) {
            return hr_fail(error, HR_E_RANGE,
                           "--std: value %u is 0 as an f32, and everything is divided by it", i + 1);
        }
    }
    memcpy(normalize->std_dev, list, count * sizeof list[0]);
    normalize->stds_given = count;
    return HR_OK;
}

static hr_status set_convert(hr_convert_params *convert, const char *value, hr_error *error)
{
    hr_dtype to;
    if (hr_dtype_from_name(value, &to) != HR_OK) {
        return hr_fail(error, HR_E_INVALID,
                       "--to: no dtype \"%.40s\"; there are f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64",
                       value);
    }
    convert->to = to;
    return HR_OK;
}

static hr_status set_conv2d(hr_conv2d_params *conv2d, const char *name, const char *value, hr_error *error)
{
    if (strcmp(name, "border") == 0) {
        static const char *const names[] = {
            [HR_BORDER_REFLECT] = "reflect", [HR_BORDER_ZERO] = "zero", [HR_BORDER_REPLICATE] = "replicate"};
        for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
            if (strcmp(value, names[i]) == 0) {
                conv2d->border = (hr_border)i;
                conv2d->border_given = true;
                return HR_OK;
            }
        }
        return hr_fail(error, HR_E_INVALID,
                       "--border: no border \"%.40s\"; there are zero, replicate, reflect", value);
    }
    if (strcmp(name, "filter") == 0) {
        if (conv2d->rows != 0 && !conv2d->filter_given) {
            return hr_fail(error, HR_E_INVALID,
                           "--filter: a kernel is given already; one of the two is needed");
        }
        if (hr_filter_named(value, conv2d) != HR_OK) {
            return hr_fail(error, HR_E_INVALID, "--filter: no filter \"%.40s\"; there are %s", value,
                           hr_filter_names());
        }
        conv2d->filter_given = true;
        return HR_OK;
    }
    return hr_fail(error, HR_E_INVALID,
                   "--kernel: the values of %.200s are to be read and given to hr_conv2d_set_kernel()",
                   value);
}

hr_status hr_op_params_set(const hr_op *op, hr_op_params *params, const char *name, const char *value,
                           hr_error *error)
{
    const hr_builtin *builtin = hr_builtin_of(op);
    for (uint32_t i = 0; builtin != NULL && i < builtin->param_count; i++) {
        if (strcmp(builtin->params[i].name, name) != 0) {
            continue;
        }
        if (builtin->op.cpu == hr_scale_cpu) {
            return set_scale(&params->scale, name, value, error);
        }
        if (builtin->op.cpu == hr_normalize_cpu) {
            return set_normalize(&params->normalize, name, value, error);
        }
        return builtin->op.cpu == hr_convert_cpu ? set_convert(&params->convert, value, error)
                                                 : set_conv2d(&params->conv2d, name, value, error);
    }
    return hr_fail(error, HR_E_NOT_FOUND, "%s: it has no parameter \"%.60s\"", op->name, name);
}

static hr_status finish_normalize(hr_normalize_params *normalize, hr_error *error)
{
    if (normalize->means_given == 0) {
        normalize->mean[0] = 0.0f;
        normalize->means_given = 1;
    }
    if (normalize->stds_given == 0) {
        normalize->std_dev[0] = 1.0f;
        normalize->stds_given = 1;
    }
    const uint32_t means = normalize->means_given;
    const uint32_t stds = normalize->stds_given;
    if (means != stds && means != 1 && stds != 1) {
        return hr_fail(error, HR_E_INVALID,
                       "normalize: %u means and %u standard deviations; as many are needed", means, stds);
    }
    normalize->channels = means > stds ? means : stds;
    for (uint32_t i = 1; i < normalize->channels; i++) {
        normalize->mean[i] = means == 1 ? normalize->mean[0] : normalize->mean[i];
        normalize->std_dev[i] = stds == 1 ? normalize->std_dev[0] : normalize->std_dev[i];
    }
    return HR_OK;
}

hr_status hr_op_params_finish(const hr_op *op, hr_op_params *params, hr_error *error)
{
    const hr_builtin *builtin = hr_builtin_of(op);
    if (builtin == NULL || builtin->param_count == 0) {
        return HR_OK;
    }
    if (op->cpu == hr_scale_cpu) {
        hr_scale_params *scale = &params->scale;
        if (!scale->by_given) {
            scale->by = 1.0;
            scale->by_integer = 1;
            scale->is_integer = scale->is_integer || !scale->plus_given;
        }
        return HR_OK;
    }
    if (op->cpu == hr_normalize_cpu) {
        return finish_normalize(&params->normalize, error);
    }
    if (op->cpu == hr_convert_cpu) {
        return params->convert.to != HR_DTYPE_NONE
                   ? HR_OK
                   : hr_fail(error, HR_E_INVALID,
                             "convert: --to is missing; it names the dtype of the result");
    }
    return params->conv2d.rows != 0
               ? HR_OK
               : hr_fail(error, HR_E_INVALID, "conv2d: --kernel FILE.npy or --filter NAME is missing");
}

hr_status hr_conv2d_set_kernel(hr_conv2d_params *params, const void *values, hr_dtype dtype,
                               const hr_shape *shape, hr_error *error)
{
    char text[160];
    if (params->filter_given) {
        return hr_fail(error, HR_E_INVALID, "--kernel: a filter is given already; one of the two is needed");
    }
    if (dtype != HR_F32 && dtype != HR_F64) {
        return hr_fail(error, HR_E_UNSUPPORTED, "--kernel: its dtype is %s, f32 or f64 is needed",
                       hr_dtype_name(dtype));
    }
    if (shape->rank != 2 || shape->extent[0] % 2 == 0 || shape->extent[1] % 2 == 0 ||
        shape->extent[0] > HR_MAX_KERNEL_EDGE || shape->extent[1] > HR_MAX_KERNEL_EDGE) {
        return hr_fail(error, HR_E_INVALID,
                       "--kernel: its shape is %s, odd rows x odd columns up to %d are needed",
                       hr_op_shape_text(shape, text, sizeof text), HR_MAX_KERNEL_EDGE);
    }
    const size_t count = (size_t)(shape->extent[0] * shape->extent[1]);
    double weight[HR_MAX_KERNEL_EDGE * HR_MAX_KERNEL_EDGE] = {0.0};
    for (size_t i = 0; i < count; i++) {
        weight[i] = dtype == HR_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
        if (!isfinite(weight[i])) {
            return hr_fail(error, HR_E_INVALID, "--kernel: value %zu is %g, finite values are needed", i,
                           weight[i]);
        }
    }
    params->rows = (uint32_t)shape->extent[0];
    params->columns = (uint32_t)shape->extent[1];
    memcpy(params->weight, weight, count * sizeof weight[0]);
    return HR_OK;
}
