/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How memory of another device is reached. That a driver says "can access" is not believed: writes have been
 * seen to vanish behind an IOMMU. A pattern goes over and comes back, once for each pair, and only then is
 * the way direct.
 */
#include "backend/cuda/cuda_backend.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PROBE_WORDS ((size_t)65536)

/* Lets the current device reach `other`; false with the reason. */
static bool enable_access(hr_bdevice *device, hr_bdevice *other, char *reason, size_t room)
{
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, device->ordinal, other->ordinal) != cudaSuccess || can == 0) {
        (void)cudaGetLastError();
        snprintf(reason, room, "cuda:%d cannot access cuda:%d", device->ordinal, other->ordinal);
        return false;
    }
    cudaError_t code = cudaDeviceEnablePeerAccess(other->ordinal, 0);
    if (code != cudaSuccess && code != cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
        snprintf(reason, room, "cuda:%d cannot access cuda:%d: %s", device->ordinal, other->ordinal,
                 cudaGetErrorName(code));
        return false;
    }
    (void)cudaGetLastError();
    return true;
}

/* host → here → there → back here → host, each leg in `stream`. */
static cudaError_t send_pattern(cudaStream_t stream, uint32_t *host, uint32_t *here, uint32_t *there)
{
    size_t bytes = PROBE_WORDS * sizeof *host;
    cudaError_t code = cudaMemcpyAsync(here, host, bytes, cudaMemcpyHostToDevice, stream);
    if (code == cudaSuccess) {
        code = cudaMemcpyAsync(there, here, bytes, cudaMemcpyDefault, stream);
    }
    if (code == cudaSuccess) {
        code = cudaMemsetAsync(here, 0, bytes, stream);
    }
    if (code == cudaSuccess) {
        code = cudaMemcpyAsync(here, there, bytes, cudaMemcpyDefault, stream);
    }
    if (code == cudaSuccess) {
        code = cudaMemcpyAsync(host + PROBE_WORDS, here, bytes, cudaMemcpyDeviceToHost, stream);
    }
    return code == cudaSuccess ? cudaStreamSynchronize(stream) : code;
}

static bool pattern_comes_back(hr_bdevice *device, hr_bdevice *other, char *reason, size_t room)
{
    size_t bytes = PROBE_WORDS * sizeof(uint32_t);
    uint32_t *host = NULL;
    uint32_t *here = NULL;
    uint32_t *there = NULL;
    hr_cuda_scope scope;
    cudaError_t code = cudaHostAlloc((void **)&host, 2 * bytes, cudaHostAllocPortable);
    if (code == cudaSuccess) {
        code = cudaMalloc((void **)&here, bytes);
    }
    if (code == cudaSuccess) {
        hr_cuda_enter_anyway(other, &scope);
        code = cudaMalloc((void **)&there, bytes);
        hr_cuda_leave(&scope);
    }
    bool right = false;
    if (code == cudaSuccess) {
        for (size_t i = 0; i < PROBE_WORDS; i++) {
            host[i] = (uint32_t)i * 2654435761u + (uint32_t)device->ordinal;
        }
        code = send_pattern(device->own_stream, host, here, there);
        right = code == cudaSuccess && memcmp(host, host + PROBE_WORDS, bytes) == 0;
    }
    if (code != cudaSuccess) {
        snprintf(reason, room, "cuda:%d to cuda:%d: a trial failed: %s", device->ordinal, other->ordinal,
                 cudaGetErrorName(code));
        (void)cudaGetLastError();
    } else if (!right) {
        snprintf(reason, room, "cuda:%d to cuda:%d: a pattern did not come back as it was sent",
                 device->ordinal, other->ordinal);
    }
    /* Releases wait for the device; this happens once for each pair. */
    if (there != NULL) {
        hr_cuda_enter_anyway(other, &scope);
        hr_cuda_ignore(other, cudaFree(there));
        hr_cuda_leave(&scope);
    }
    hr_cuda_ignore(device, cudaFree(here));
    hr_cuda_ignore(device, cudaFreeHost(host));
    return right;
}

hr_status hr_cuda_peer_path_to(hr_bdevice *device, hr_bdevice *other, hr_cuda_peer_path *path,
                               hr_error *error)
{
    if (other->ordinal < 0 || other->ordinal >= HR_CUDA_MAX_PEERS) {
        return hr_fail(error, HR_E_UNSUPPORTED, "copy between devices: cuda:%d is past the %d that are known",
                       other->ordinal, HR_CUDA_MAX_PEERS);
    }
    hr_status status = hr_cuda_alive(other, error);
    if (status != HR_OK) {
        return status;
    }
    pthread_mutex_lock(&device->lock);
    hr_cuda_peer_path known = device->peer[other->ordinal];
    pthread_mutex_unlock(&device->lock);
    if (known == HR_CUDA_PEER_UNKNOWN) {
        char reason[HR_CUDA_REASON_BYTES] = "";
        known = enable_access(device, other, reason, sizeof reason) &&
                        pattern_comes_back(device, other, reason, sizeof reason)
                    ? HR_CUDA_PEER_DIRECT
                    : HR_CUDA_PEER_STAGED;
        status = hr_cuda_alive(device, error);
        if (status != HR_OK) {
            return status;
        }
        pthread_mutex_lock(&device->lock);
        device->peer[other->ordinal] = known;
        if (known == HR_CUDA_PEER_STAGED && device->reason[HR_CUDA_STAGED_PEER][0] == '\0') {
            memcpy(device->reason[HR_CUDA_STAGED_PEER], reason, sizeof reason);
        }
        pthread_mutex_unlock(&device->lock);
    }
    *path = known;
    return HR_OK;
}
