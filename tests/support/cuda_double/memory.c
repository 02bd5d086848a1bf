/* SPDX-License-Identifier: Apache-2.0 */
/* The double's memory: host memory under other names, poisoned when it is new. Releases wait for the device,
 * as on the real thing. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

block *double_find(const void *base, size_t bytes)
{
    const char *at = base;
    for (block *one = the_double.blocks; one != NULL; one = one->next) {
        if (at >= one->base && at < one->base + one->bytes &&
            bytes <= (size_t)(one->base + one->bytes - at)) {
            return one;
        }
    }
    return NULL;
}

static uint64_t held(bool pinned, int device)
{
    uint64_t sum = 0;
    for (const block *one = the_double.blocks; one != NULL; one = one->next) {
        bool is_pinned = one->kind == BLOCK_HOSTALLOC || one->kind == BLOCK_REGISTERED;
        if (is_pinned == pinned && (pinned || one->device == device)) {
            sum += one->bytes;
        }
    }
    return sum;
}

static bool over_limit(bool pinned, int device, size_t bytes)
{
    pthread_mutex_lock(&the_double.lock);
    uint64_t limit = pinned ? the_double.pinned_limit : the_double.device_limit;
    bool over = limit != 0 && held(pinned, device) + bytes > limit;
    pthread_mutex_unlock(&the_double.lock);
    return over;
}

void double_add_block(block_kind kind, void *base, size_t bytes, int device)
{
    block *made = calloc(1, sizeof *made);
    *made = (block){.base = base, .bytes = bytes, .kind = kind, .device = device};
    pthread_mutex_lock(&the_double.lock);
    made->next = the_double.blocks;
    the_double.blocks = made;
    pthread_mutex_unlock(&the_double.lock);
}

/* Takes the block that begins there out of the list; null if there is none of that kind. */
static block *remove_block(block_kind kind, const void *base)
{
    pthread_mutex_lock(&the_double.lock);
    block *found = NULL;
    for (block **link = &the_double.blocks; *link != NULL && found == NULL; link = &(*link)->next) {
        if ((*link)->base == base && (*link)->kind == kind) {
            found = *link;
            *link = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&the_double.lock);
    return found;
}

static cudaError_t allocate(block_kind kind, void **base, size_t bytes, unsigned char poison)
{
    bool pinned = kind == BLOCK_HOSTALLOC;
    int device = double_current_device();
    if (over_limit(pinned, device, bytes)) {
        return double_answer(cudaErrorMemoryAllocation);
    }
    void *made = NULL;
    if (posix_memalign(&made, 4096, bytes > 0 ? bytes : 1) != 0) {
        return double_answer(cudaErrorMemoryAllocation);
    }
    memset(made, poison, bytes);
    double_add_block(kind, made, bytes, device);
    *base = made;
    return cudaSuccess;
}

static cudaError_t release(block_kind kind, void *base)
{
    if (base == NULL) {
        return cudaSuccess;
    }
    double_wait_device(double_current_device());
    block *found = remove_block(kind, base);
    if (found == NULL) {
        return double_answer(cudaErrorInvalidValue);
    }
    free(found->base);
    free(found);
    return cudaSuccess;
}

/* A dead device's memory goes all the same, so that a leak checker sees what the module forgot and nothing
 * else. */
static cudaError_t release_dead(block_kind kind, void *base, cudaError_t answer)
{
    block *found = base != NULL ? remove_block(kind, base) : NULL;
    if (found != NULL) {
        if (kind != BLOCK_REGISTERED) {
            free(found->base);
        }
        free(found);
    }
    return answer;
}

HR_DOUBLE_API cudaError_t cudaMalloc(void **base, size_t bytes)
{
    ENTER();
    return allocate(BLOCK_DEVICE, base, bytes, 0xCD);
}

HR_DOUBLE_API cudaError_t cudaFree(void *base)
{
    cudaError_t code = double_enter("cudaFree");
    return code != cudaSuccess ? release_dead(BLOCK_DEVICE, base, code) : release(BLOCK_DEVICE, base);
}

HR_DOUBLE_API cudaError_t cudaHostAlloc(void **base, size_t bytes, unsigned int flags)
{
    ENTER();
    (void)flags;
    return allocate(BLOCK_HOSTALLOC, base, bytes, 0xCE);
}

HR_DOUBLE_API cudaError_t cudaFreeHost(void *base)
{
    cudaError_t code = double_enter("cudaFreeHost");
    return code != cudaSuccess ? release_dead(BLOCK_HOSTALLOC, base, code) : release(BLOCK_HOSTALLOC, base);
}

HR_DOUBLE_API cudaError_t cudaHostRegister(void *base, size_t bytes, unsigned int flags)
{
    ENTER();
    (void)flags;
    if (over_limit(true, 0, bytes)) {
        return double_answer(cudaErrorMemoryAllocation);
    }
    pthread_mutex_lock(&the_double.lock);
    bool overlaps = false;
    for (const block *one = the_double.blocks; one != NULL; one = one->next) {
        overlaps = overlaps || ((char *)base < one->base + one->bytes && one->base < (char *)base + bytes);
    }
    pthread_mutex_unlock(&the_double.lock);
    if (overlaps) {
        return double_answer(cudaErrorHostMemoryAlreadyRegistered);
    }
    double_add_block(BLOCK_REGISTERED, base, bytes, double_current_device());
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaHostUnregister(void *base)
{
    cudaError_t code = double_enter("cudaHostUnregister");
    if (code != cudaSuccess) {
        return release_dead(BLOCK_REGISTERED, base, code);
    }
    double_wait_device(double_current_device());
    block *found = remove_block(BLOCK_REGISTERED, base);
    if (found == NULL) {
        return double_answer(cudaErrorHostMemoryNotRegistered);
    }
    free(found);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    ENTER();
    pthread_mutex_lock(&the_double.lock);
    *total_bytes = the_double.device_limit != 0 ? (size_t)the_double.device_limit : (size_t)1 << 30;
    uint64_t used = held(false, double_current_device());
    *free_bytes = used < *total_bytes ? *total_bytes - (size_t)used : 0;
    pthread_mutex_unlock(&the_double.lock);
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                                            struct cudaExtent extent, unsigned int flags)
{
    ENTER();
    (void)flags;
    struct cudaArray *made = calloc(1, sizeof *made);
    made->element = (size_t)(format->x + format->y + format->z + format->w) / 8;
    made->extent = extent;
    size_t rows = extent.height > 0 ? extent.height : 1;
    size_t slices = extent.depth > 0 ? extent.depth : 1;
    made->memory.bytes = made->element * extent.width * rows * slices;
    made->memory.device = double_current_device();
    if (over_limit(false, made->memory.device, made->memory.bytes)) {
        free(made);
        return double_answer(cudaErrorMemoryAllocation);
    }
    made->memory.base = malloc(made->memory.bytes > 0 ? made->memory.bytes : 1);
    memset(made->memory.base, 0xCF, made->memory.bytes);
    pthread_mutex_lock(&the_double.lock);
    the_double.arrays++;
    pthread_mutex_unlock(&the_double.lock);
    *array = made;
    return cudaSuccess;
}

HR_DOUBLE_API cudaError_t cudaFreeArray(cudaArray_t array)
{
    cudaError_t code = double_enter("cudaFreeArray");
    if (code == cudaSuccess) {
        double_wait_device(array->memory.device);
    }
    pthread_mutex_lock(&the_double.lock);
    the_double.arrays--;
    pthread_mutex_unlock(&the_double.lock);
    free(array->memory.base);
    free(array);
    return code;
}

void hr_double_add_symbol(const void *shadow, size_t bytes)
{
    char *base = calloc(1, bytes);
    double_add_block(BLOCK_SYMBOL, base, bytes, 0);
    pthread_mutex_lock(&the_double.lock);
    the_double.blocks->shadow = shadow;
    pthread_mutex_unlock(&the_double.lock);
}

static cudaError_t find_symbol(const void *shadow, void **base, size_t *bytes)
{
    cudaError_t code = cudaErrorInvalidSymbol;
    pthread_mutex_lock(&the_double.lock);
    for (block *one = the_double.blocks; one != NULL && code != cudaSuccess; one = one->next) {
        if (one->kind == BLOCK_SYMBOL && one->shadow == shadow) {
            *base = one->base;
            *bytes = one->bytes;
            code = cudaSuccess;
        }
    }
    pthread_mutex_unlock(&the_double.lock);
    return double_answer(code);
}

HR_DOUBLE_API cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    ENTER();
    size_t bytes;
    return find_symbol(symbol, address, &bytes);
}

HR_DOUBLE_API cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    ENTER();
    void *base;
    return find_symbol(symbol, &base, bytes);
}
