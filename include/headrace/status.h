/* SPDX-License-Identifier: Apache-2.0 */
/* What every call answers: success, something that is not a failure, or a failure with its reason. */
#ifndef HEADRACE_STATUS_H
#define HEADRACE_STATUS_H

#include <headrace/version.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is success, positive is not a failure, negative is a failure. Outputs are set only on HR_OK. */
typedef enum hr_status {
    HR_OK = 0,
    HR_PENDING = 1, /* not done yet; ask again */
    HR_AGAIN = 2,   /* nothing can be taken now; try later */
    HR_END = 3,     /* the data ended */

    HR_E_INVALID = -1,       /* an argument is wrong */
    HR_E_RANGE = -2,         /* a size or a number is out of range, or a product of sizes overflows */
    HR_E_FORMAT = -3,        /* input data is malformed */
    HR_E_UNSUPPORTED = -4,   /* well formed, and not something that this build or device does */
    HR_E_NOT_FOUND = -5,     /* no such file, op, device, symbol */
    HR_E_IO = -6,            /* the system refused a read, a write, an open */
    HR_E_NO_SPACE = -7,      /* the disk or the quota is full */
    HR_E_HOST_MEMORY = -8,   /* pageable host memory ran out */
    HR_E_PINNED_MEMORY = -9, /* host memory could not be pinned */
    HR_E_DEVICE_MEMORY = -10,
    HR_E_DEVICE = -11,      /* a device call failed; the device itself lives on */
    HR_E_DEVICE_LOST = -12, /* the device's context is dead; every later call on it says so */
    HR_E_CANCELLED = -13,
    HR_E_BUSY = -14,     /* still in use; nothing was closed */
    HR_E_MISMATCH = -15, /* data was verified and differs */
    HR_E_FORKED = -16,   /* used in a child process after fork() */
    HR_E_THREAD = -17,   /* a thread could not be started */
    HR_E_INTERNAL = -18  /* a bug in Headrace */
} hr_status;

#if defined(__GNUC__) || defined(__clang__)
#define HR_CHECKED            __attribute__((warn_unused_result))
#define HR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define HR_CHECKED
#define HR_PRINTF(fmt, first)
#endif

#define HR_ERROR_TEXT_BYTES 512
#define HR_NO_CHUNK         UINT64_MAX

/*
 * The reason of a failure, filled by the callee and owned by the caller. A null pointer is accepted wherever
 * one is taken. `text` says what was being done, to what, and what the system said, without a trailing
 * newline: "a.npy: shape (4, 7) needs 112 bytes of data, file has 96".
 */
typedef struct hr_error {
    hr_status status;
    int32_t code;   /* errno, or the device runtime's own number; 0 where neither applies */
    uint64_t chunk; /* the first chunk that failed, or HR_NO_CHUNK */
    char text[HR_ERROR_TEXT_BYTES];
} hr_error;

#ifdef __cplusplus
#define HR_ERROR_INIT          \
    {                          \
        HR_OK, 0, HR_NO_CHUNK, \
        {                      \
            0                  \
        }                      \
    }
#else
#define HR_ERROR_INIT ((hr_error){HR_OK, 0, HR_NO_CHUNK, {0}})
#endif

/* The status in words ("device memory ran out"). Never null; static storage; any thread. */
HR_API const char *hr_status_text(hr_status status);

/*
 * Fills *error (if not null) and returns `status`, so that a failing source, sink or op can end with
 * `return hr_fail(error, HR_E_IO, "camera 2: %s", reason);`. Does not block; any thread.
 */
HR_API hr_status hr_fail(hr_error *error, hr_status status, const char *format, ...) HR_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
