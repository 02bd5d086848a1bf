/* SPDX-License-Identifier: Apache-2.0 */
/* Where data comes from and goes to: sources and sinks, and the files that Headrace reads and writes itself.
 */
#ifndef HEADRACE_IO_H
#define HEADRACE_IO_H

#include <headrace/dtype.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HR_LENGTH_UNKNOWN UINT64_MAX

/*
 * A source of bytes. A program may fill one of its own: `read` alone is enough. Offsets count from the
 * array's first byte, not the file's.
 */
typedef struct hr_source {
    size_t size; /* sizeof(hr_source) */
    void *self;
    uint64_t bytes;   /* in all, or HR_LENGTH_UNKNOWN */
    bool sequential;  /* offsets only grow, one read at a time (a pipe); otherwise several threads read at
                         once, anywhere */
    const void *data; /* not null: the whole lies in memory here, `read` may be null, and a CPU device works
                         on it in place */
    /*
     * Reads up to `bytes` at `offset` into `buffer`, blocking. HR_OK with *got = bytes, or fewer only at the
     * end of a source of unknown length; HR_END with *got = 0 past it. Any other positive status fails the run.
     */
    hr_status (*read)(void *self, uint64_t offset, void *buffer, uint64_t bytes, uint64_t *got,
                      hr_error *error);
    /* Optional: `rows` rows of row_bytes, from `offset` on every src_pitch, to buffer every dst_pitch. Null:
     * done through `read`. */
    hr_status (*read_rows)(void *self, uint64_t offset, uint64_t row_bytes, uint64_t rows, uint64_t src_pitch,
                           void *buffer, uint64_t dst_pitch, hr_error *error);
    /* Optional: the buffers that reads will use, told once before the first (for registered buffers). May be
     * ignored. */
    void (*prepare)(void *self, void *const *buffers, const uint64_t *bytes, uint32_t count);
    /* Optional: a hint that [offset, offset + bytes) will be read soon. */
    void (*will_need)(void *self, uint64_t offset, uint64_t bytes);
    /* Optional, from any thread, several times: the run is ending. A read that blocks returns HR_E_CANCELLED
     * soon, and so does every later one. Without it a run that fails or is cancelled waits for the read. */
    void (*interrupt)(void *self);
    void (*close)(void *self); /* null if there is nothing to close */
} hr_source;
#define HR_SOURCE_INIT                                      \
    {                                                       \
        sizeof(hr_source), 0, 0, false, 0, 0, 0, 0, 0, 0, 0 \
    }

/* A sink of bytes. `write` alone is enough. */
typedef struct hr_sink {
    size_t size; /* sizeof(hr_sink) */
    void *self;
    bool sequential;     /* offsets only grow, one write at a time */
    void *data;          /* not null: the result lies in memory here, and a CPU device writes it in place */
    uint64_t room_bytes; /* what it can take, HR_LENGTH_UNKNOWN where it sets no limit; whoever writes keeps
                            to it */
    hr_status (*write)(void *self, uint64_t offset, const void *buffer, uint64_t bytes, hr_error *error);
    hr_status (*write_rows)(void *self, uint64_t offset, uint64_t row_bytes, uint64_t rows,
                            uint64_t dst_pitch, const void *buffer, uint64_t src_pitch, hr_error *error);
    void (*prepare)(void *self, void *const *buffers, const uint64_t *bytes, uint32_t count);
    /* Optional, called once when all is written, before the run reports success. `bytes` is what was written
     * in all. */
    hr_status (*finish)(void *self, uint64_t bytes, hr_error *error);
    /* Optional, called once instead of finish when the run failed or was cancelled: leave nothing behind. */
    void (*discard)(void *self);
    /* Optional, as for sources: a write or a finish that blocks returns HR_E_CANCELLED soon. Called before discard. */
    void (*interrupt)(void *self);
    void (*close)(void *self); /* called last, in both cases, by whoever opened the sink */
} hr_sink;
#define HR_SINK_INIT                                                         \
    {                                                                        \
        sizeof(hr_sink), 0, false, 0, HR_LENGTH_UNKNOWN, 0, 0, 0, 0, 0, 0, 0 \
    }

/*
 * Memory as a source or a sink. The memory stays the caller's and must live as long; there is nothing to
 * close. Their `read` and `write` trust offset and length: the caller keeps to `bytes` and `room_bytes`, as
 * the pipeline does.
 */
HR_API hr_source hr_source_from_memory(const void *data, uint64_t bytes);
HR_API hr_sink hr_sink_to_memory(void *data, uint64_t bytes);

/* An array to be read: a source and what it holds. */
typedef struct hr_input hr_input;
typedef enum hr_format {
    HR_FORMAT_AUTO = 0,
    HR_FORMAT_NPY,
    HR_FORMAT_RAW,
    HR_FORMAT_PNG,
    HR_FORMAT_JPEG,
    HR_FORMAT_PNM
} hr_format;

typedef struct hr_open_options {
    size_t size;
    hr_format
        format;     /* HR_FORMAT_AUTO: by content, then by name; raw where dtype is given and the name ends in
                         .raw or .bin or the content is none of the others */
    hr_dtype dtype; /* of raw data; HR_BF16 also says what the two raw bytes '|V2' of a .npy file are */
    hr_shape shape; /* of raw data; rank 0: 1-D, as long as the file. One extent may be HR_LENGTH_UNKNOWN: it
                         follows from the length. Of a pipe only the first may be */
    uint64_t
        direct_above_bytes; /* direct I/O for files larger than this; 0: larger than what memory has free */
} hr_open_options;
#define HR_OPEN_OPTIONS_INIT                                                \
    {                                                                       \
        sizeof(hr_open_options), HR_FORMAT_AUTO, HR_DTYPE_NONE, {0, {0}}, 0 \
    }

typedef struct hr_array_info {
    size_t size;
    hr_dtype dtype;
    hr_shape shape; /* of a pipe of unknown length: extent[0] is HR_LENGTH_UNKNOWN */
    uint64_t bytes; /* or HR_LENGTH_UNKNOWN */
    hr_format format;
    const char *path;   /* "-" is standard input or output; owned by the input or output */
    const char *method; /* how it is read or written: "io_uring", "io_uring, direct", "pread threads",
                           "pread threads, direct", "pwrite threads", "stream", "image"; static storage */
} hr_array_info;
#define HR_ARRAY_INFO_INIT                                                      \
    {                                                                           \
        sizeof(hr_array_info), HR_DTYPE_NONE, {0, {0}}, 0, HR_FORMAT_AUTO, 0, 0 \
    }

/*
 * Opens and checks a file, or "-" for standard input. Reads the header, never the data, except that images
 * are decoded whole (gray: (rows, columns), otherwise (rows, columns, channels), u8 or u16) and
 * Fortran-ordered streams are turned whole. Elsewhere Fortran order is turned to C order, and big-endian to
 * the machine's, while reading. A file must be as long as its header says; of a pipe that is found out by the
 * last read, which waits until the writer closes. `options` may be null. Blocks. The caller owns *input.
 * HR_E_NOT_FOUND, HR_E_IO, HR_E_INVALID (a folder; an option), HR_E_FORMAT (malformed, truncated, too long),
 * HR_E_UNSUPPORTED (a dtype or kind of image that is not taken, an image library that is not built in),
 * HR_E_RANGE (sizes, headers and images that are too large), HR_E_HOST_MEMORY.
 *
 * Reads from the source, from any number of threads unless it is sequential: HR_E_IO with the system's number
 * in error->code; HR_E_FORMAT where the file became shorter, or a pipe ended early or went on; HR_E_CANCELLED
 * once it was interrupted.
 */
HR_API HR_CHECKED hr_status hr_input_open(const char *path, const hr_open_options *options, hr_input **input,
                                          hr_error *error);
/* Fills as much of *info as its `size` says. Any thread; does not block. */
HR_API void hr_input_info(const hr_input *input, hr_array_info *info);
/* The source inside; lives as long as the input. */
HR_API hr_source *hr_input_source(hr_input *input);
/* Not while a read is in progress. Clears *input. Null is accepted. */
HR_API void hr_input_close(hr_input **input);
/* Reads all of it into `buffer` of info.bytes bytes, by as many threads as there are cores. Blocks.
 * HR_E_UNSUPPORTED if its length is not known; otherwise as for reads from the source. */
HR_API HR_CHECKED hr_status hr_input_read_all(hr_input *input, void *buffer, hr_error *error);

/* An array to be written. */
typedef struct hr_output hr_output;
typedef struct hr_create_options {
    size_t size;
    hr_format format; /* HR_FORMAT_AUTO: by the name's ending; raw where there is none known. "-" writes .npy
                         unless told otherwise */
    bool no_sync;     /* do not wait until the data is on the disk */
    uint32_t quality; /* JPEG only: 1 to 100; 0: 92 */
} hr_create_options;
#define HR_CREATE_OPTIONS_INIT                              \
    {                                                       \
        sizeof(hr_create_options), HR_FORMAT_AUTO, false, 0 \
    }

/*
 * Makes a file beside `path`, without a name or under a hidden one; nothing is seen at `path` until
 * hr_output_commit(), and an older file there stays as it is until then. Links are followed; the older file's
 * mode is kept. Pipes, devices and files that are open already ("-", "/dev/stdout") are written directly.
 * extent[0] may be HR_LENGTH_UNKNOWN: "-" and pipes then get raw data unless told otherwise, because a .npy
 * header comes first. Images are held in memory until the commit. Blocks. HR_E_NOT_FOUND (the folder),
 * HR_E_IO, HR_E_INVALID (a folder; an option), HR_E_RANGE (a size), HR_E_NO_SPACE (the room is reserved now where the file system can),
 * HR_E_UNSUPPORTED (a dtype or shape that the format cannot hold), HR_E_HOST_MEMORY.
 */
HR_API HR_CHECKED hr_status hr_output_create(const char *path, hr_dtype dtype, const hr_shape *shape,
                                             const hr_create_options *options, hr_output **output,
                                             hr_error *error);
/* Fills as much of *info as its `size` says. */
HR_API void hr_output_info(const hr_output *output, hr_array_info *info);
/*
 * The sink inside; lives as long as the output. Its writes come from any number of threads, at any offset,
 * unless it is sequential. HR_E_IO (a pipe whose reader went away, too: ignore SIGPIPE), HR_E_NO_SPACE
 * (ignore SIGXFSZ), HR_E_RANGE (past the array's end), HR_E_CANCELLED once it was interrupted.
 */
HR_API hr_sink *hr_output_sink(hr_output *output);
/* Encodes an image, syncs, renames, syncs the folder. The sink's finish does this too, and is the only way
 * where the length was not known; a second call is harmless. Blocks. HR_E_IO, HR_E_NO_SPACE,
 * HR_E_HOST_MEMORY, HR_E_INVALID (not all was written, as far as finish was told). On failure `path` is as it
 * was. */
HR_API HR_CHECKED hr_status hr_output_commit(hr_output *output, hr_error *error);
/* Without a commit before: removes the temporary file, `path` stays as it was. Clears *output. Null is
 * accepted. */
HR_API void hr_output_close(hr_output **output);

/* Do both names lead to the same file? "-" is standard input for the first, standard output for the second.
 * False if either does not exist, and for pipes, terminals and the like, where nothing is overwritten. */
HR_API bool hr_same_file(const char *input, const char *output);

#ifdef __cplusplus
}
#endif
#endif
