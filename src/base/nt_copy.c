/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nt_copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

/* Smaller blocks are likely to be in a cache, and to be read again soon. */
#define NONTEMPORAL_FROM_BYTES ((size_t)128 << 10)
#define LINE_BYTES             ((size_t)64)

__attribute__((target("avx512f"))) static size_t copy_lines_avx512(char *dst, const char *src, size_t bytes)
{
    size_t done = 0;
    for (; bytes - done >= 4 * LINE_BYTES; done += 4 * LINE_BYTES) {
        __m512i a = _mm512_loadu_si512((const void *)(src + done));
        __m512i b = _mm512_loadu_si512((const void *)(src + done + 64));
        __m512i c = _mm512_loadu_si512((const void *)(src + done + 128));
        __m512i d = _mm512_loadu_si512((const void *)(src + done + 192));
        _mm512_stream_si512((__m512i *)(void *)(dst + done), a);
        _mm512_stream_si512((__m512i *)(void *)(dst + done + 64), b);
        _mm512_stream_si512((__m512i *)(void *)(dst + done + 128), c);
        _mm512_stream_si512((__m512i *)(void *)(dst + done + 192), d);
    }
    return done;
}

__attribute__((target("avx2"))) static size_t copy_lines_avx2(char *dst, const char *src, size_t bytes)
{
    size_t done = 0;
    for (; bytes - done >= 2 * LINE_BYTES; done += 2 * LINE_BYTES) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(src + done));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(src + done + 32));
        __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(src + done + 64));
        __m256i d = _mm256_loadu_si256((const __m256i *)(const void *)(src + done + 96));
        _mm256_stream_si256((__m256i *)(void *)(dst + done), a);
        _mm256_stream_si256((__m256i *)(void *)(dst + done + 32), b);
        _mm256_stream_si256((__m256i *)(void *)(dst + done + 64), c);
        _mm256_stream_si256((__m256i *)(void *)(dst + done + 96), d);
    }
    return done;
}

static size_t copy_lines_sse2(char *dst, const char *src, size_t bytes)
{
    size_t done = 0;
    for (; bytes - done >= LINE_BYTES; done += LINE_BYTES) {
        for (size_t at = done; at < done + LINE_BYTES; at += 16) {
            __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(src + at));
            _mm_stream_si128((__m128i *)(void *)(dst + at), a);
        }
    }
    return done;
}

void hr_copy_nontemporal(void *dst, const void *src, size_t bytes)
{
    if (bytes < NONTEMPORAL_FROM_BYTES) {
        memcpy(dst, src, bytes);
        return;
    }
    size_t head = (LINE_BYTES - ((uintptr_t)dst & (LINE_BYTES - 1))) & (LINE_BYTES - 1);
    memcpy(dst, src, head);
    char *to = (char *)dst + head;
    const char *from = (const char *)src + head;
    size_t left = bytes - head;
    size_t done;
    if (__builtin_cpu_supports("avx512f")) {
        done = copy_lines_avx512(to, from, left);
    } else if (__builtin_cpu_supports("avx2")) {
        done = copy_lines_avx2(to, from, left);
    } else {
        done = copy_lines_sse2(to, from, left);
    }
    memcpy(to + done, from + done, left - done);
    /* Streaming stores are ordered by nothing else. */
    _mm_sfence();
}

#else

void hr_copy_nontemporal(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

#endif
