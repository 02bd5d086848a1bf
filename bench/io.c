/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_io: reads and writes files as the lines on standard input say, and prints the seconds that each took.
 * bench/io.py drives it, beside NumPy in the same run.
 *
 *     read PATH      the whole array into new memory, by hr_input_read_all()
 *     fread PATH     the file's bytes into new memory, by fread()
 *     stream PATH    all of it through 512 KiB buffers, one a core, as a pipeline reads
 *     fstream PATH   the same through one 512 KiB buffer, by fread()
 *     direct PATH    as stream, past the page cache
 *     write PATH, fwrite PATH    what was read last; not synced
 *     writes PATH, fwrites PATH  the same, synced
 *     drop PATH      puts the file out of the page cache; not timed
 *     sum            no seconds: the sum of the 64-bit words of what was read last
 */
#include <headrace/headrace.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES (UINT64_C(512) << 10)
#define THREADS_MAX 64

static unsigned char *memory;
static hr_array_info info = HR_ARRAY_INFO_INIT;
static hr_error error;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_io: %s: %s\n", what, error.text);
        exit(1);
    }
}

static hr_input *open_input(const char *path, uint64_t direct_above)
{
    hr_open_options options = HR_OPEN_OPTIONS_INIT;
    options.direct_above_bytes = direct_above;
    hr_input *input = NULL;
    must(hr_input_open(path, &options, &input, &error) == HR_OK, path);
    hr_input_info(input, &info);
    return input;
}

static void read_whole(const char *path)
{
    hr_input *input = open_input(path, UINT64_MAX);
    free(memory);
    memory = malloc(info.bytes + 1);
    must(memory != NULL && hr_input_read_all(input, memory, &error) == HR_OK, path);
    hr_input_close(&input);
}

static void fread_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    must(file != NULL && fseek(file, 0, SEEK_END) == 0, path);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *to = malloc(bytes);
    must(to != NULL && fread(to, 1, bytes, file) == bytes, path);
    fclose(file);
    free(to);
}

typedef struct flow {
    hr_source *source;
    atomic_uint_fast64_t next;
} flow;

static void *stream_share(void *argument)
{
    flow *f = argument;
    void *buffer = aligned_alloc(4096, PIECE_BYTES);
    for (;;) {
        uint64_t offset = atomic_fetch_add(&f->next, PIECE_BYTES);
        if (offset >= f->source->bytes) {
            break;
        }
        uint64_t left = f->source->bytes - offset;
        uint64_t got = 0;
        hr_error failure = HR_ERROR_INIT;
        if (f->source->read(f->source->self, offset, buffer, left < PIECE_BYTES ? left : PIECE_BYTES, &got,
                            &failure) != HR_OK) {
            fprintf(stderr, "bench_io: %s\n", failure.text);
            exit(1);
        }
    }
    free(buffer);
    return NULL;
}

static void stream(const char *path, uint64_t direct_above)
{
    hr_input *input = open_input(path, direct_above);
    flow f = {.source = hr_input_source(input)};
    atomic_init(&f.next, 0);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t threads[THREADS_MAX];
    long count = cores < 1 ? 1 : cores < THREADS_MAX ? cores : THREADS_MAX;
    for (long i = 0; i < count; i++) {
        must(pthread_create(&threads[i], NULL, stream_share, &f) == 0, "thread");
    }
    for (long i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    hr_input_close(&input);
}

static void fstream(const char *path)
{
    static unsigned char buffer[PIECE_BYTES];
    FILE *file = fopen(path, "rb");
    must(file != NULL, path);
    setvbuf(file, NULL, _IONBF, 0);
    while (fread(buffer, 1, sizeof buffer, file) == sizeof buffer) {
    }
    fclose(file);
}

typedef struct drain {
    hr_sink *sink;
    atomic_uint_fast64_t next;
} drain;

static void *write_share(void *argument)
{
    drain *d = argument;
    for (;;) {
        uint64_t offset = atomic_fetch_add(&d->next, PIECE_BYTES);
        if (offset >= info.bytes) {
            return NULL;
        }
        uint64_t left = info.bytes - offset;
        hr_error failure = HR_ERROR_INIT;
        if (d->sink->write(d->sink->self, offset, memory + offset, left < PIECE_BYTES ? left : PIECE_BYTES,
                           &failure) != HR_OK) {
            fprintf(stderr, "bench_io: %s\n", failure.text);
            exit(1);
        }
    }
}

static void write_whole(const char *path, bool synced)
{
    hr_create_options options = HR_CREATE_OPTIONS_INIT;
    options.no_sync = !synced;
    hr_output *output = NULL;
    must(hr_output_create(path, info.dtype, &info.shape, &options, &output, &error) == HR_OK, path);
    drain d = {.sink = hr_output_sink(output)};
    atomic_init(&d.next, 0);
    pthread_t other;
    must(pthread_create(&other, NULL, write_share, &d) == 0, "thread");
    write_share(&d);
    pthread_join(other, NULL);
    must(hr_output_commit(output, &error) == HR_OK, path);
    hr_output_close(&output);
}

static void fwrite_whole(const char *path, bool synced)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(memory, 1, info.bytes, file) == info.bytes && fflush(file) == 0, path);
    must(!synced || fsync(fileno(file)) == 0, path);
    fclose(file);
}

static void drop(const char *path)
{
    int fd = open(path, O_RDONLY);
    must(fd >= 0 && fdatasync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, path);
    close(fd);
}

static uint64_t sum(void)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i + 8 <= info.bytes; i += 8) {
        uint64_t word;
        memcpy(&word, memory + i, 8);
        total += word;
    }
    return total;
}

static bool obey(const char *verb, const char *path)
{
    if (strcmp(verb, "read") == 0) {
        read_whole(path);
    } else if (strcmp(verb, "fread") == 0) {
        fread_whole(path);
    } else if (strcmp(verb, "stream") == 0 || strcmp(verb, "direct") == 0) {
        stream(path, verb[0] == 'd' ? 1 : UINT64_MAX);
    } else if (strcmp(verb, "fstream") == 0) {
        fstream(path);
    } else if (strcmp(verb, "write") == 0 || strcmp(verb, "writes") == 0) {
        write_whole(path, verb[5] == 's');
    } else if (strcmp(verb, "fwrite") == 0 || strcmp(verb, "fwrites") == 0) {
        fwrite_whole(path, verb[6] == 's');
    } else if (strcmp(verb, "drop") == 0) {
        drop(path);
    } else {
        return false;
    }
    return true;
}

int main(void)
{
    char line[4200];
    char verb[16];
    char path[4096];
    while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%15s %4095[^\n]", verb, path) >= 1) {
        if (strcmp(verb, "sum") == 0) {
            printf("%" PRIu64 "\n", sum());
        } else {
            double start = now();
            if (!obey(verb, path)) {
                fprintf(stderr, "bench_io: %s is not known\n", verb);
                return 2;
            }
            printf("%.6f %s\n", now() - start, info.method != NULL ? info.method : "-");
        }
        fflush(stdout);
    }
    free(memory);
    return 0;
}
