/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays with a layout of the device's own, and named device variables. */
#include "base/checked.h"
#include "core/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static hr_status check_array_options(const hr_array_options *options, hr_error *error)
{
    if (options->size != sizeof *options) {
        return hr_fail(error, HR_E_INVALID, "array: options.size is %zu, needs %zu", options->size,
                       sizeof *options);
    }
    if (hr_dtype_bytes(options->dtype) == 0) {
        return hr_fail(error, HR_E_INVALID, "array: dtype %d is none", (int)options->dtype);
    }
    if (options->channels != 1 && options->channels != 2 && options->channels != 4) {
        return hr_fail(error, HR_E_UNSUPPORTED, "array: %" PRIu32 " channels; needs 1, 2 or 4",
                       options->channels);
    }
    if (options->width == 0) {
        return hr_fail(error, HR_E_INVALID, "array: width is 0");
    }
    if (options->layered ? options->depth == 0 : options->depth != 0 && options->height == 0) {
        return hr_fail(error, HR_E_INVALID,
                       options->layered ? "array: layered, and depth, the number of layers, is 0"
                                        : "array: depth is %" PRIu64 " and height is 0",
                       options->depth);
    }
    uint64_t bytes = hr_dtype_bytes(options->dtype) * options->channels;
    if (hr_mul_overflows(bytes, options->width, &bytes) ||
        hr_mul_overflows(bytes, hr_max_u64(options->height, 1), &bytes) ||
        hr_mul_overflows(bytes, hr_max_u64(options->depth, 1), &bytes) || bytes > INT64_MAX) {
        return hr_fail(error, HR_E_RANGE,
                       "array: (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ") elements do not fit 63 bits",
                       options->width, options->height, options->depth);
    }
    return HR_OK;
}

hr_status hr_array_open(hr_device *device, const hr_array_options *options, hr_array **array, hr_error *error)
{
    if (device == NULL || options == NULL || array == NULL) {
        return hr_fail(error, HR_E_INVALID, "array: a null argument");
    }
    if (hr_device_forked(device)) {
        return hr_fail_forked(device, error, "array");
    }
    hr_status status = check_array_options(options, error);
    if (status != HR_OK) {
        return status;
    }
    hr_array *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "array: no memory");
    }
    made->device = device;
    made->element_bytes = hr_dtype_bytes(options->dtype) * options->channels;
    made->width = options->width;
    made->height = hr_max_u64(options->height, 1);
    made->depth = hr_max_u64(options->depth, 1);
    status = device->ops->array_open(device->impl, options, &made->impl, error);
    if (status != HR_OK) {
        free(made);
        return status;
    }
    hr_device_hold(device, HR_HELD_ARRAY);
    *array = made;
    return HR_OK;
}

hr_status hr_array_close(hr_array **array, hr_error *error)
{
    hr_array *closed = array != NULL ? *array : NULL;
    if (closed == NULL) {
        return HR_OK;
    }
    if (hr_device_forked(closed->device)) {
        return hr_fail_forked(closed->device, error, "array close");
    }
    closed->device->ops->array_close(closed->device->impl, closed->impl);
    hr_device_release(closed->device, HR_HELD_ARRAY);
    free(closed);
    *array = NULL;
    return HR_OK;
}

/* Under the device's lock. */
static hr_symbol *find(const hr_device *device, const char *name)
{
    hr_symbol *symbol = device->symbols;
    while (symbol != NULL && strcmp(symbol->name, name) != 0) {
        symbol = symbol->next;
    }
    return symbol;
}

hr_status hr_symbol_define(hr_device *device, const char *name, const void *address, uint64_t bytes,
                           hr_symbol **symbol, hr_error *error)
{
    if (device == NULL || name == NULL || symbol == NULL || name[0] == '\0' || bytes == 0) {
        return hr_fail(error, HR_E_INVALID, "symbol: needs a device, a name and at least 1 byte");
    }
    if (hr_device_forked(device)) {
        return hr_fail_forked(device, error, "symbol");
    }
    size_t length = strlen(name);
    hr_symbol *made = calloc(1, sizeof *made + length + 1);
    if (made == NULL) {
        return hr_fail(error, HR_E_HOST_MEMORY, "symbol %s: no memory", name);
    }
    made->device = device;
    made->bytes = bytes;
    memcpy(made->name, name, length + 1);
    pthread_mutex_lock(&device->lock);
    hr_status status;
    if (find(device, name) != NULL) {
        status =
            hr_fail(error, HR_E_INVALID, "symbol %s: device %s has one of that name", name, device->spec);
    } else {
        status = device->ops->symbol_define(device->impl, name, address, bytes, &made->impl, error);
    }
    if (status == HR_OK) {
        made->next = device->symbols;
        device->symbols = made;
    }
    pthread_mutex_unlock(&device->lock);
    if (status != HR_OK) {
        free(made);
        return status;
    }
    *symbol = made;
    return HR_OK;
}

hr_status hr_symbol_find(hr_device *device, const char *name, hr_symbol **symbol, hr_error *error)
{
    if (device == NULL || name == NULL || symbol == NULL) {
        return hr_fail(error, HR_E_INVALID, "symbol: a null argument");
    }
    if (hr_device_forked(device)) {
        return hr_fail_forked(device, error, "symbol");
    }
    pthread_mutex_lock(&device->lock);
    hr_symbol *found = find(device, name);
    pthread_mutex_unlock(&device->lock);
    if (found == NULL) {
        return hr_fail(error, HR_E_NOT_FOUND, "symbol %s: device %s has none of that name", name,
                       device->spec);
    }
    *symbol = found;
    return HR_OK;
}

uint64_t hr_symbol_bytes(const hr_symbol *symbol)
{
    return symbol != NULL ? symbol->bytes : 0;
}

hr_status hr_symbol_close(hr_symbol **symbol, hr_error *error)
{
    hr_symbol *closed = symbol != NULL ? *symbol : NULL;
    if (closed == NULL) {
        return HR_OK;
    }
    hr_device *device = closed->device;
    if (hr_device_forked(device)) {
        return hr_fail_forked(device, error, "symbol close");
    }
    pthread_mutex_lock(&device->lock);
    hr_symbol **link = &device->symbols;
    while (*link != closed) {
        link = &(*link)->next;
    }
    *link = closed->next;
    pthread_mutex_unlock(&device->lock);
    device->ops->symbol_close(device->impl, closed->impl);
    free(closed);
    *symbol = NULL;
    return HR_OK;
}

void hr_symbols_free(hr_device *device)
{
    while (device->symbols != NULL) {
        hr_symbol *symbol = device->symbols;
        device->symbols = symbol->next;
        device->ops->symbol_close(device->impl, symbol->impl);
        free(symbol);
    }
}
