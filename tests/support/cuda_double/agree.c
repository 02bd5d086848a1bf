/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the double's headers say of CUDA, as numbers. Compiled twice where a toolkit is installed, once with its headers;
 * test_double_headers compares the two tables. Prototypes are compared by the compiler: each function's address must
 * fit the type that stands here, under both sets of headers.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stddef.h>

typedef struct agree_fact {
    const char *name;
    long long value;
} agree_fact;

#define VALUE(name)              \
    {                            \
#name, (long long)(name) \
    }
#define SIZE(type)                               \
    {                                            \
        "sizeof " #type, (long long)sizeof(type) \
    }
#define FIELD(type, field)                                 \
    {                                                      \
#type "." #field, (long long)offsetof(type, field) \
    }

extern const agree_fact AGREE_TABLE[];
const agree_fact AGREE_TABLE[] = {
    VALUE(cudaErrorInvalidValue),
    VALUE(cudaErrorMemoryAllocation),
    VALUE(cudaErrorCudartUnloading),
    VALUE(cudaErrorInvalidConfiguration),
    VALUE(cudaErrorInvalidPitchValue),
    VALUE(cudaErrorInvalidSymbol),
    VALUE(cudaErrorInvalidDevicePointer),
    VALUE(cudaErrorInvalidChannelDescriptor),
    VALUE(cudaErrorInvalidMemcpyDirection),
    VALUE(cudaErrorInsufficientDriver),
    VALUE(cudaErrorDevicesUnavailable),
    VALUE(cudaErrorInvalidDeviceFunction),
    VALUE(cudaErrorNoDevice),
    VALUE(cudaErrorInvalidDevice),
    VALUE(cudaErrorNoKernelImageForDevice),
    VALUE(cudaErrorECCUncorrectable),
    VALUE(cudaErrorNvlinkUncorrectable),
    VALUE(cudaErrorUnsupportedPtxVersion),
    VALUE(cudaErrorContained),
    VALUE(cudaErrorOperatingSystem),
    VALUE(cudaErrorInvalidResourceHandle),
    VALUE(cudaErrorNotReady),
    VALUE(cudaErrorIllegalAddress),
    VALUE(cudaErrorLaunchOutOfResources),
    VALUE(cudaErrorLaunchTimeout),
    VALUE(cudaErrorPeerAccessAlreadyEnabled),
    VALUE(cudaErrorContextIsDestroyed),
    VALUE(cudaErrorAssert),
    VALUE(cudaErrorHostMemoryAlreadyRegistered),
    VALUE(cudaErrorHostMemoryNotRegistered),
    VALUE(cudaErrorHardwareStackError),
    VALUE(cudaErrorIllegalInstruction),
    VALUE(cudaErrorMisalignedAddress),
    VALUE(cudaErrorInvalidAddressSpace),
    VALUE(cudaErrorInvalidPc),
    VALUE(cudaErrorLaunchFailure),
    VALUE(cudaErrorTensorMemoryLeak),
    VALUE(cudaErrorNotPermitted),
    VALUE(cudaErrorNotSupported),
    VALUE(cudaErrorSystemDriverMismatch),
    VALUE(cudaErrorCompatNotSupportedOnDevice),
    VALUE(cudaErrorStreamCaptureUnsupported),
    VALUE(cudaErrorStreamCaptureInvalidated),
    VALUE(cudaErrorStreamCaptureMerge),
    VALUE(cudaErrorStreamCaptureUnmatched),
    VALUE(cudaErrorStreamCaptureUnjoined),
    VALUE(cudaErrorStreamCaptureIsolation),
    VALUE(cudaErrorStreamCaptureImplicit),
    VALUE(cudaErrorStreamCaptureWrongThread),
    VALUE(cudaErrorExternalDevice),
    VALUE(cudaErrorUnknown),

    VALUE(cudaMemcpyHostToHost),
    VALUE(cudaMemcpyHostToDevice),
    VALUE(cudaMemcpyDeviceToHost),
    VALUE(cudaMemcpyDeviceToDevice),
    VALUE(cudaMemcpyDefault),

    VALUE(cudaDevAttrMaxPitch),
    VALUE(cudaDevAttrMultiProcessorCount),
    VALUE(cudaDevAttrL2CacheSize),
    VALUE(cudaDevAttrAsyncEngineCount),
    VALUE(cudaDevAttrTexturePitchAlignment),
    VALUE(cudaDevAttrComputeCapabilityMajor),
    VALUE(cudaDevAttrComputeCapabilityMinor),
    VALUE(cudaDevAttrPageableMemoryAccess),
    VALUE(cudaDevAttrCanUseHostPointerForRegisteredMem),

    VALUE(cudaStreamCaptureStatusNone),
    VALUE(cudaStreamCaptureStatusActive),
    VALUE(cudaStreamCaptureModeThreadLocal),
    VALUE(cudaDriverEntryPointSuccess),
    VALUE(cudaEnableDefault),
    VALUE(cudaHostAllocPortable),
    VALUE(cudaHostAllocMapped),
    VALUE(cudaHostRegisterPortable),
    VALUE(cudaHostRegisterMapped),
    VALUE(cudaStreamNonBlocking),
    VALUE(cudaEventDisableTiming),
    VALUE(cudaArrayLayered),
    VALUE(cudaChannelFormatKindSigned),
    VALUE(cudaChannelFormatKindUnsigned),
    VALUE(cudaChannelFormatKindFloat),
    VALUE(cudaMemcpySrcAccessOrderStream),
    VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
    VALUE(CU_POINTER_ATTRIBUTE_IS_MANAGED),
    VALUE(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR),
    VALUE(CU_POINTER_ATTRIBUTE_RANGE_SIZE),
    VALUE(CU_MEMORYTYPE_HOST),
    VALUE(CU_MEMORYTYPE_DEVICE),

    SIZE(struct cudaExtent),
    SIZE(struct cudaPos),
    SIZE(struct cudaPitchedPtr),
    SIZE(struct cudaChannelFormatDesc),
    SIZE(struct cudaMemcpy3DParms),
    SIZE(struct cudaMemcpy3DPeerParms),
    SIZE(struct cudaMemcpyAttributes),
    SIZE(CUdevice),
    SIZE(CUdeviceptr),
    SIZE(CUcontext),
    FIELD(struct cudaPitchedPtr, pitch),
    FIELD(struct cudaPitchedPtr, ysize),
    FIELD(struct cudaChannelFormatDesc, f),
    FIELD(struct cudaMemcpy3DParms, srcPos),
    FIELD(struct cudaMemcpy3DParms, dstArray),
    FIELD(struct cudaMemcpy3DParms, dstPtr),
    FIELD(struct cudaMemcpy3DParms, extent),
    FIELD(struct cudaMemcpy3DParms, kind),
    FIELD(struct cudaMemcpy3DPeerParms, srcDevice),
    FIELD(struct cudaMemcpy3DPeerParms, dstArray),
    FIELD(struct cudaMemcpy3DPeerParms, dstDevice),
    FIELD(struct cudaMemcpy3DPeerParms, extent),
    FIELD(struct cudaMemcpyAttributes, srcLocHint),
    FIELD(struct cudaMemcpyAttributes, dstLocHint),
    FIELD(struct cudaMemcpyAttributes, flags),
    {NULL, 0},
};

#define FITS(function, ...) _Static_assert(_Generic(&(function), __VA_ARGS__ : 1, default : 0), #function)
FITS(cudaGetLastError, cudaError_t (*)(void));
FITS(cudaGetDriverEntryPointByVersion,
     cudaError_t (*)(const char *, void **, unsigned int, unsigned long long,
                     enum cudaDriverEntryPointQueryResult *));
FITS(cudaDeviceGetAttribute, cudaError_t (*)(int *, enum cudaDeviceAttr, int));
FITS(cudaDeviceGetPCIBusId, cudaError_t (*)(char *, int, int));
FITS(cudaDeviceCanAccessPeer, cudaError_t (*)(int *, int, int));
FITS(cudaDeviceEnablePeerAccess, cudaError_t (*)(int, unsigned int));
FITS(cudaMalloc, cudaError_t (*)(void **, size_t));
FITS(cudaFree, cudaError_t (*)(void *));
FITS(cudaHostAlloc, cudaError_t (*)(void **, size_t, unsigned int));
FITS(cudaHostRegister, cudaError_t (*)(void *, size_t, unsigned int));
FITS(cudaHostUnregister, cudaError_t (*)(void *));
FITS(cudaMalloc3DArray,
     cudaError_t (*)(cudaArray_t *, const struct cudaChannelFormatDesc *, struct cudaExtent, unsigned int));
FITS(cudaGetSymbolAddress, cudaError_t (*)(void **, const void *));
FITS(cudaGetSymbolSize, cudaError_t (*)(size_t *, const void *));
FITS(cudaMemGetInfo, cudaError_t (*)(size_t *, size_t *));
FITS(cudaStreamCreateWithFlags, cudaError_t (*)(cudaStream_t *, unsigned int));
FITS(cudaStreamWaitEvent, cudaError_t (*)(cudaStream_t, cudaEvent_t, unsigned int));
FITS(cudaStreamIsCapturing, cudaError_t (*)(cudaStream_t, enum cudaStreamCaptureStatus *));
FITS(cudaEventCreateWithFlags, cudaError_t (*)(cudaEvent_t *, unsigned int));
FITS(cudaEventRecord, cudaError_t (*)(cudaEvent_t, cudaStream_t));
FITS(cudaEventElapsedTime, cudaError_t (*)(float *, cudaEvent_t, cudaEvent_t));
FITS(cudaMemcpyAsync, cudaError_t (*)(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t));
FITS(cudaMemcpy2DAsync, cudaError_t (*)(void *, size_t, const void *, size_t, size_t, size_t,
                                        enum cudaMemcpyKind, cudaStream_t));
FITS(cudaMemcpy3DAsync, cudaError_t (*)(const struct cudaMemcpy3DParms *, cudaStream_t));
FITS(cudaMemcpy3DPeerAsync, cudaError_t (*)(const struct cudaMemcpy3DPeerParms *, cudaStream_t));
#if CUDART_VERSION >= 13000
FITS(cudaMemcpyBatchAsync, cudaError_t (*)(void *const *, const void *const *, const size_t *, size_t,
                                           struct cudaMemcpyAttributes *, size_t *, size_t, cudaStream_t));
#endif
FITS(cudaMemsetAsync, cudaError_t (*)(void *, int, size_t, cudaStream_t));
FITS(cudaMemset2DAsync, cudaError_t (*)(void *, size_t, int, size_t, size_t, cudaStream_t));
