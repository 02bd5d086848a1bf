/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target where there is no libFuzzer: each seed as it is, then seeds that are cut, joined and
 * changed at random, until the time is up. The numbers come from a fixed start, so that a run can be
 * repeated; --start N takes another. An input that ends the process is in the file that the last line names:
 * it is written before the target sees it and removed at the end.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MAX_SEEDS = 256, MAX_BYTES = 1 << 16 };

static struct {
    uint8_t *data;
    size_t bytes;
} seeds[MAX_SEEDS];
static size_t seed_count;
static uint64_t state = 0x9E3779B97F4A7C15u;

/* xorshift64*: small, and good enough to choose bytes. */
static uint64_t next(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Du;
}

static size_t below(size_t limit)
{
    return limit ? (size_t)(next() % limit) : 0;
}

static void load(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || seed_count == MAX_SEEDS) {
        if (file)
            fclose(file);
        return;
    }
    uint8_t *data = malloc(MAX_BYTES);
    if (data) {
        seeds[seed_count].data = data;
        seeds[seed_count++].bytes = fread(data, 1, MAX_BYTES, file);
    }
    fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            load(path);
        free(entries[i]);
    }
    free(entries);
}

/* Numbers at which sizes go wrong. */
static void put_number(uint8_t *at, size_t room)
{
    static const uint64_t numbers[] = {0,         1,          0x7F,          0x80,       0xFF,
                                       0x7FFF,    0xFFFF,     0x7FFFFFFF,    0x80000000, 0xFFFFFFFF,
                                       INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    uint64_t number = numbers[below(sizeof numbers / sizeof *numbers)];
    size_t bytes = (size_t)1 << below(4);
    memcpy(at, &number, bytes < room ? bytes : room);
}

static void put_digits(uint8_t *at, size_t room)
{
    static const char *const texts[] = {
        "-1", "0", "4294967296", "9223372036854775807", "18446744073709551616", "1e999", "nan"};
    const char *text = texts[below(sizeof texts / sizeof *texts)];
    size_t bytes = strlen(text);
    memcpy(at, text, bytes < room ? bytes : room);
}

static size_t mutate(uint8_t *data, size_t bytes)
{
    for (size_t left = 1 + below(6); left; left--) {
        size_t at = below(bytes);
        switch (below(8)) {
        case 0:
            if (bytes)
                data[at] ^= (uint8_t)(1u << below(8));
            break;
        case 1:
            if (bytes)
                data[at] = (uint8_t)next();
            break;
        case 2:
            put_number(data + at, bytes - at);
            break;
        case 3:
            put_digits(data + at, bytes - at);
            break;
        case 4:
            bytes = at;
            break;
        case 5: { /* repeat a piece */
            size_t piece = 1 + below(64);
            if (at + piece <= bytes && bytes + piece <= MAX_BYTES) {
                memmove(data + at + piece, data + at, bytes - at);
                bytes += piece;
            }
            break;
        }
        case 6: { /* drop a piece */
            size_t piece = 1 + below(64);
            if (at + piece <= bytes) {
                memmove(data + at, data + at + piece, bytes - at - piece);
                bytes -= piece;
            }
            break;
        }
        default: { /* the end of another seed */
            size_t other = below(seed_count), from = below(seeds[other].bytes),
                   length = seeds[other].bytes - from;
            if (at + length <= MAX_BYTES) {
                memcpy(data + at, seeds[other].data + from, length);
                bytes = at + length;
            }
        }
        }
    }
    return bytes;
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    double seconds = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = strtod(argv[++i], NULL);
        else if (!strcmp(argv[i], "--start") && i + 1 < argc)
            state = strtoull(argv[++i], NULL, 0) | 1;
        else {
            load(argv[i]);
            load_folder(argv[i]);
        }
    }
    if (!seed_count) {
        fprintf(stderr, "usage: %s [--seconds S] [--start N] SEED-FILE-OR-FOLDER …\n", argv[0]);
        return 2;
    }
    /* The file is mapped: what is in it when the process dies stays. */
    char path[64];
    snprintf(path, sizeof path, "fuzz-input-%ld", (long)getpid());
    FILE *file = fopen(path, "wb+");
    if (!file || ftruncate(fileno(file), MAX_BYTES + 8)) {
        perror(path);
        return 2;
    }
    uint8_t *kept = mmap(NULL, MAX_BYTES + 8, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    uint8_t *data = malloc(MAX_BYTES);
    if (kept == MAP_FAILED || !data) {
        perror(path);
        return 2;
    }
    fprintf(stderr, "should this end badly: %s holds 8 bytes of length, then the input\n", path);
    double until = now_s() + seconds;
    uint64_t runs = 0;
    while (runs < seed_count || now_s() < until) {
        size_t which = runs < seed_count ? (size_t)runs : below(seed_count), bytes = seeds[which].bytes;
        memcpy(data, seeds[which].data, bytes);
        if (runs >= seed_count)
            bytes = mutate(data, bytes);
        uint64_t length = bytes;
        memcpy(kept, &length, sizeof length);
        memcpy(kept + 8, data, bytes);
        /* An exact copy, so that a read past the end is seen. */
        uint8_t *exact = malloc(bytes ? bytes : 1);
        if (!exact)
            return 2;
        memcpy(exact, data, bytes);
        LLVMFuzzerTestOneInput(exact, bytes);
        free(exact);
        runs++;
    }
    unlink(path);
    fprintf(stderr, "%llu inputs\n", (unsigned long long)runs);
    munmap(kept, MAX_BYTES + 8);
    fclose(file);
    free(data);
    for (size_t i = 0; i < seed_count; i++)
        free(seeds[i].data);
    return 0;
}
