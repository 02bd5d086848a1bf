/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a pool takes to make, beside touching as much memory with all cores and nothing else: the least
 * that anybody can take who wants the pages to be there. Both in turns, in one run; medians. Prints one JSON
 * object.
 *
 *     bench_pool [MEBIBYTES] [ROUNDS]
 */
#include <headrace/memory.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define THREADS_MAX 1024
#define HUGE_PAGE   (UINT64_C(2) << 20)

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

typedef struct slice {
    volatile char *begin;
    uint64_t bytes;
} slice;

static void *touch(void *argument)
{
    slice *own = argument;
    for (uint64_t at = 0; at < own->bytes; at += 4096) {
        own->begin[at] = 0;
    }
    return NULL;
}

/* The plain program: map, advise, and each core touches its share. Negative if the system refused. */
static double touch_ms(uint64_t bytes, unsigned cores)
{
    pthread_t threads[THREADS_MAX];
    slice slices[THREADS_MAX];
    double begin = now_ms();
    char *base = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return -1;
    }
    char *aligned = (char *)(((uintptr_t)base + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    madvise(aligned, bytes, MADV_HUGEPAGE);
    uint64_t share = bytes / HUGE_PAGE / cores * HUGE_PAGE;
    unsigned started = 0;
    for (; started < cores; started++) {
        bool last = started + 1 == cores;
        slices[started] = (slice){aligned + started * share, last ? bytes - started * share : share};
        if (pthread_create(&threads[started], NULL, touch, &slices[started]) != 0) {
            break;
        }
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    double taken = now_ms() - begin;
    munmap(base, bytes + HUGE_PAGE);
    return started == cores ? taken : -1;
}

static double pool_ms(uint64_t bytes, uint64_t *huge)
{
    hr_pool_options options = HR_POOL_OPTIONS_INIT;
    hr_error error = HR_ERROR_INIT;
    hr_pool *pool;
    options.name = "bench";
    options.kind = HR_MEMORY_PAGEABLE;
    options.bytes = bytes;
    double begin = now_ms();
    if (hr_pool_open(NULL, &options, &pool, &error) != HR_OK) {
        fprintf(stderr, "bench_pool: %s\n", error.text);
        return -1;
    }
    double taken = now_ms() - begin;
    hr_pool_stats stats = HR_POOL_STATS_INIT;
    hr_status status = hr_pool_get_stats(pool, &stats);
    *huge = stats.huge_bytes;
    if (status == HR_OK) {
        status = hr_pool_close(&pool, &error);
    }
    return status == HR_OK ? taken : -1;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts; the share by which the slower and the faster tenth are apart. */
static double spread_pct(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return 100 * (values[count * 9 / 10] - values[count / 10]) / values[count / 2];
}

int main(int argc, char **argv)
{
    uint64_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1024) << 20;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 9;
    cpu_set_t allowed;
    if (bytes == 0 || rounds < 1 || rounds > 1000 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        fprintf(stderr, "usage: bench_pool [MEBIBYTES] [ROUNDS]\n");
        return 2;
    }
    unsigned cores = (unsigned)CPU_COUNT(&allowed);
    double *touched = calloc((size_t)rounds, sizeof *touched),
           *pooled = calloc((size_t)rounds, sizeof *pooled);
    uint64_t huge = 0;
    int status = touched != NULL && pooled != NULL ? 0 : 1;
    for (int i = 0; i < rounds && status == 0; i++) {
        touched[i] = touch_ms(bytes, cores);
        pooled[i] = pool_ms(bytes, &huge);
        status = touched[i] < 0 || pooled[i] < 0;
    }
    if (status == 0) {
        double touch_spread = spread_pct(touched, rounds), pool_spread = spread_pct(pooled, rounds);
        double touch_median = touched[rounds / 2], pool_median = pooled[rounds / 2];
        printf("{\"bench\":\"pool\",\"cores\":%u,\"huge_bytes\":%llu,\"rows\":[\n"
               " {\"name\":\"touch with all cores\",\"bytes\":%llu,\"ms\":%.2f,\"spread_pct\":%.1f},\n"
               " {\"name\":\"pool\",\"bytes\":%llu,\"ms\":%.2f,\"spread_pct\":%.1f,\"vs\":\"touch with all "
               "cores\","
               "\"ratio\":%.3f}]}\n",
               cores, (unsigned long long)huge, (unsigned long long)bytes, touch_median, touch_spread,
               (unsigned long long)bytes, pool_median, pool_spread, touch_median / pool_median);
    }
    free(touched);
    free(pooled);
    return status;
}
