/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { guard = 4096, poison = 0xff };

uint64_t random_bits(harness *h)
{
    h->seed ^= h->seed << 13;
    h->seed ^= h->seed >> 7;
    h->seed ^= h->seed << 17;
    return h->seed;
}

void random_floats(harness *h, float *to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        to[i] = (float)(int32_t)(random_bits(h) >> 32) * 0x1p-31F;
    }
}

void random_bytes(harness *h, void *to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        ((unsigned char *)to)[i] = (unsigned char)(random_bits(h) >> 40);
    }
}

void must(cudaError_t code, const char *what)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
        exit(1);
    }
}

guarded guarded_take(uint64_t bytes, uint64_t offset)
{
    guarded g = {.bytes = bytes};
    must(cudaMalloc((void **)&g.whole, bytes + offset + 2 * guard), "device memory");
    g.data = g.whole + guard + offset;
    guarded_poison(&g);
    return g;
}

void guarded_poison(guarded *g)
{
    must(cudaMemset(g->whole, poison, (size_t)(g->data - g->whole) + g->bytes + guard), "poison");
}

bool guarded_intact(const guarded *g)
{
    unsigned char edge[guard];
    bool intact = true;
    must(cudaMemcpy(edge, g->data - guard, guard, cudaMemcpyDeviceToHost), "guard");
    for (int i = 0; i < guard; i++) {
        intact = intact && edge[i] == poison;
    }
    must(cudaMemcpy(edge, g->data + g->bytes, guard, cudaMemcpyDeviceToHost), "guard");
    for (int i = 0; i < guard; i++) {
        intact = intact && edge[i] == poison;
    }
    return intact;
}

void guarded_release(guarded *g)
{
    must(cudaFree(g->whole), "free");
    g->whole = NULL;
}

typedef struct crew {
    _Atomic uint64_t next;
    uint64_t count;
    void (*body)(void *user, uint64_t i);
    void *user;
} crew;

static void *work(void *opaque)
{
    crew *c = opaque;
    for (uint64_t i = atomic_fetch_add(&c->next, 1); i < c->count; i = atomic_fetch_add(&c->next, 1)) {
        c->body(c->user, i);
    }
    return NULL;
}

void parallel(uint64_t count, void (*body)(void *user, uint64_t i), void *user)
{
    enum { most = 64 };
    pthread_t threads[most];
    int started = 0;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    crew c = {.count = count, .body = body, .user = user};
    while (started < most && started < cores - 1 && (uint64_t)started + 1 < count &&
           pthread_create(&threads[started], NULL, work, &c) == 0) {
        started++;
    }
    work(&c);
    while (started > 0) {
        pthread_join(threads[--started], NULL);
    }
}

void verdict(harness *h, const char *name, hr_mechanism m, hr_status status, const hr_error *error,
             bool right)
{
    if (status == HR_E_UNSUPPORTED) {
        h->refused++;
        return;
    }
    h->cases++;
    if (status != HR_OK || !right) {
        h->failed++;
        printf("FAILED %s by %s: %s\n", name, hr_mechanism_name(m),
               status != HR_OK ? error->text : "the result is wrong");
        fflush(stdout);
    }
}
