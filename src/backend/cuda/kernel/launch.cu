/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.cuh"

#include <cstdio>

extern "C" const char *hr_mechanism_name(hr_mechanism mechanism)
{
    static const char *const names[HR_MECHANISM_COUNT] = {"auto", "sync", "ldgsts", "group",  "barrier",
                                                          "bulk", "tma",  "stas",   "cluster"};
    return mechanism >= 0 && mechanism < HR_MECHANISM_COUNT ? names[mechanism] : "unknown";
}

namespace headrace::kernel
{

hr_status chip_of_current_device(chip *found, hr_error *error)
{
    int device = 0;
    chip c;
    cudaError_t code = cudaGetDevice(&device);
    if (code == cudaSuccess) {
        code = cudaDeviceGetAttribute(&c.sms, cudaDevAttrMultiProcessorCount, device);
    }
    if (code == cudaSuccess) {
        code = cudaDeviceGetAttribute(&c.major, cudaDevAttrComputeCapabilityMajor, device);
    }
    if (code == cudaSuccess) {
        code = cudaDeviceGetAttribute(&c.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    }
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        if (error != nullptr) {
            error->code = static_cast<int32_t>(code);
        }
        return hr_fail(error, HR_E_DEVICE, "kernel launch: no usable device: %s", cudaGetErrorString(code));
    }
    *found = c;
    return HR_OK;
}

hr_status check_launch(const char *what, hr_error *error)
{
    const cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess) {
        return HR_OK;
    }
    const hr_status status = hr_fail(error, HR_E_DEVICE, "%s: launch: %s", what, cudaGetErrorString(code));
    if (error != nullptr) {
        error->code = static_cast<int32_t>(code);
    }
    return status;
}

bool chip_has(const chip &c, hr_mechanism m, char (&reason)[HR_TENSOR_REASON_BYTES])
{
    const int needed = m >= HR_MECHANISM_BULK ? 9 : m >= HR_MECHANISM_LDGSTS ? 8 : 0;
    if (c.major >= needed) {
        return true;
    }
    std::snprintf(reason, sizeof reason, "needs compute capability %d.0, this device has %d.x", needed,
                  c.major);
    return false;
}

bool reads_by_16(const void *base, std::uint64_t pitch_bytes, char (&reason)[HR_TENSOR_REASON_BYTES])
{
    if (aligned16(base) && pitch_bytes % 16 == 0) {
        return true;
    }
    std::snprintf(
        reason, sizeof reason,
        "needs source base and pitch in multiples of 16 bytes, found a base %u past one and a pitch of %llu",
        static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(base) % 16),
        static_cast<unsigned long long>(pitch_bytes));
    return false;
}

hr_status refuse(const char *kernel, hr_mechanism m, const char *reason, hr_error *error)
{
    return hr_fail(error, HR_E_UNSUPPORTED, "%s by %s: %s", kernel, hr_mechanism_name(m), reason);
}

} // namespace headrace::kernel
