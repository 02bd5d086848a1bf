/* SPDX-License-Identifier: Apache-2.0 */
/* A device module with one device that does nothing; built once as it should be and once for another version. */
#include "core/backend.h"

#include <stdio.h>

static hr_status probe(uint32_t *count, hr_error *error)
{
    (void)error;
    *count = 1;
    return HR_OK;
}

static hr_status spec_at(uint32_t index, char *spec, size_t room)
{
    snprintf(spec, room, "toy:%u", index);
    return index == 0 ? HR_OK : HR_E_NOT_FOUND;
}

static void device_close(hr_bdevice *device)
{
    (void)device;
}

static hr_status device_info(hr_bdevice *device, hr_device_info *info, hr_error *error)
{
    (void)device;
    (void)error;
    info->kind = HR_DEVICE_CPU;
    snprintf(info->name, sizeof info->name, "a toy");
    return HR_OK;
}

static const hr_device_ops ops = {.close = device_close, .info = device_info};

static hr_status open_toy(const char *rest, hr_bdevice **device, const hr_device_ops **found, hr_error *error)
{
    (void)rest;
    (void)error;
    *device = NULL;
    *found = &ops;
    return HR_OK;
}

static const hr_backend backend = {
    .abi = TOY_ABI, .name = "toy", .probe = probe, .spec_at = spec_at, .open = open_toy};

__attribute__((visibility("default"))) const hr_backend *hr_backend_module(void);
const hr_backend *hr_backend_module(void)
{
    return &backend;
}
