/* SPDX-License-Identifier: Apache-2.0 */
/* Ops: a computation with named inputs and outputs, a rule for cutting them into chunks, and a launcher per
 * kind of device. */
#ifndef HEADRACE_OP_H
#define HEADRACE_OP_H

#include <headrace/dtype.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HR_MAX_PORTS 4

/* How an op's inputs and outputs may be cut. */
typedef enum hr_chunk_rule {
    HR_CHUNK_ELEMENTS = 1, /* element i of each output depends on element i of each input; shapes alike */
    HR_CHUNK_ROWS, /* row i of the output depends on rows i − halo … i + halo of the first input (axis 0) */
    HR_CHUNK_REDUCE, /* elements; chunks make partial results, which are combined in order of chunks */
    HR_CHUNK_TILES   /* matrix product: tiles of C, panels of A and B along k, accumulated */
} hr_chunk_rule;

/*
 * A launcher's view of one input or output chunk, C-ordered and dense except for row_pitch_bytes. For
 * HR_CHUNK_ROWS the input view holds the rows `first` … `first + shape.extent[0] − 1` of the whole, halo
 * included and cut off at the array's edges; the output view holds the rows to be written. For
 * HR_CHUNK_ELEMENTS and HR_CHUNK_REDUCE the view has rank 1, and `first` is its first element in the whole.
 */
typedef struct hr_view {
    void *data; /* host memory on the CPU, device memory otherwise; the inputs' is not to be written */
    hr_dtype dtype;
    hr_shape shape;
    uint64_t first;
    uint64_t row_pitch_bytes; /* bytes from one index of axis 0 to the next */
    hr_shape whole;           /* the shape of the whole array */
} hr_view;

/* Lets a CPU launcher use all cores: runs body(user, i) for i in 0 … count − 1 on the device's workers, and
 * waits for all. */
typedef struct hr_workers {
    void *self;
    uint32_t threads;
    void (*run)(void *self, uint64_t count, void (*body)(void *user, uint64_t index), void *user);
} hr_workers;

/* One launch: a chunk's views and what the launcher needs. A value; the pipeline keeps it until the launch is
 * done. */
typedef struct hr_launch {
    size_t size; /* sizeof(hr_launch) */
    uint64_t chunk;
    uint32_t inputs, outputs;
    hr_view in[HR_MAX_PORTS];
    hr_view out[HR_MAX_PORTS];
    const void *params; /* the op's parameter struct; host memory */
    void *user;
    void
        *state; /* device memory of op->state_bytes, filled by op->prepare before the first launch, or null */
    void *partial; /* HR_CHUNK_REDUCE: this chunk's partial result, op->partial_bytes, in the views' memory */
    /*
     * HR_CHUNK_TILES: the panels of one tile come in order of k, in one stream. The first has accumulate =
     * false and sets, the others add; the final one (it may be the first as well) has last = true. Where the
     * plan asks for an accumulator and there are several panels, `accumulator` is a dense tile of
     * out[0]'s extents × accumulator_bytes in the views' memory, private to the tile from its first panel to
     * its last: sums stay there, and only the last panel writes out[0]. Null where all of k is one panel.
     */
    bool accumulate;
    bool last;
    void *accumulator;
    void *native_stream;       /* cudaStream_t on CUDA: enqueue there and return; null on the CPU: compute and
                                  return */
    const hr_workers *workers; /* CPU only; never null there */
} hr_launch;

/* HR_OK, or a failure that ends the run; the text should not name the chunk, the pipeline adds it. On a CPU
 * that shares the host's memory several chunks are computed at once, on different threads and in any order:
 * what `user` points to must bear that. */
typedef hr_status (*hr_launch_fn)(const hr_launch *launch, hr_error *error);

/* What a set of inputs makes of an op: outputs, cutting. Filled by op->plan. */
typedef struct hr_op_plan {
    uint32_t outputs;
    hr_dtype dtype[HR_MAX_PORTS];
    hr_shape shape[HR_MAX_PORTS];
    uint64_t halo_rows;         /* HR_CHUNK_ROWS */
    uint64_t align_elements;    /* chunks start at multiples of it (normalize: the channels; sum: the block of
                                   its fixed order of additions); 0 means 1 */
    uint64_t partial_bytes;     /* HR_CHUNK_REDUCE */
    uint64_t accumulator_bytes; /* HR_CHUNK_TILES: a tile's accumulator, bytes an element; 0: the output
                                   itself takes the sums */
    uint64_t state_bytes;       /* constant data on the device (a filter kernel), 0 if none */
} hr_op_plan;

/* The result of a reduction. */
typedef enum hr_result_kind {
    HR_RESULT_NONE = 0,
    HR_RESULT_I64,
    HR_RESULT_U64,
    HR_RESULT_F64,
    HR_RESULT_HEX32
} hr_result_kind;
typedef struct hr_result {
    hr_result_kind kind;
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
        uint32_t hex32;
    } as;
} hr_result;

/* An op. A program fills one for its own computation; the built-in ones come from hr_op_find(). Constant
 * while a pipeline uses it. */
typedef struct hr_op {
    size_t size; /* sizeof(hr_op) */
    const char *name;
    const char *summary;
    uint32_t inputs;
    hr_chunk_rule rule;
    /*
     * Checks dtypes, shapes and parameters, and fills *plan (zeroed before). Null: the output is like the
     * first input and all inputs are alike. HR_E_INVALID, HR_E_UNSUPPORTED with the text naming what was
     * found and what is needed.
     */
    hr_status (*plan)(const struct hr_op *op, const void *params, const hr_dtype *dtypes,
                      const hr_shape *shapes, hr_op_plan *plan, hr_error *error);
    /* Fills state_bytes of host memory, copied to launch->state before the first chunk. Null if the op has no
     * state. */
    hr_status (*prepare)(const struct hr_op *op, const void *params, void *state, hr_error *error);
    hr_launch_fn cpu; /* null: the op does not run on the CPU */
    hr_launch_fn
        cuda; /* a user's own launcher, whatever the op's name; the built-in ops leave it null and the CUDA
                 module has theirs */
    /* HR_CHUNK_REDUCE: combine in order of chunks, on the host; `total` starts zeroed, partial_bytes long.
     * `elements`: the chunk's. */
    void (*combine)(const struct hr_op *op, const void *params, void *total, const void *partial,
                    uint64_t elements);
    /* Turns the total into the answer. HR_E_RANGE: it does not fit (an integer sum beyond 64 bits). */
    hr_status (*result)(const struct hr_op *op, const void *params, hr_dtype dtype, const void *total,
                        hr_result *result, hr_error *error);
    /* How far a device's answer may be from the CPU's where the result is a float, relative to the sum of
     * magnitudes that went into an element, beside one unit in the last place of a 16-bit result; 0: to the
     * bit. Integers are always the same to the bit. A NaN is a NaN: its sign and payload are not promised. */
    double bound;
} hr_op;
#define HR_OP_INIT                                                       \
    {                                                                    \
        sizeof(hr_op), 0, 0, 1, HR_CHUNK_ELEMENTS, 0, 0, 0, 0, 0, 0, 0.0 \
    }

/* A built-in op by name, or null. Static storage; any thread. */
HR_API const hr_op *hr_op_find(const char *name);
/* The i-th built-in op in the order of the documentation, or null past the last. */
HR_API const hr_op *hr_op_at(uint32_t index);

/*
 * What the op makes of these inputs: calls op->plan, or the rule for ops without one. `dtypes` and `shapes`
 * hold op->inputs entries; extent[0] may be HR_LENGTH_UNKNOWN (UINT64_MAX) and then comes out as that. *plan
 * is set on success only.
 */
HR_API HR_CHECKED hr_status hr_op_make_plan(const hr_op *op, const void *params, const hr_dtype *dtypes,
                                            const hr_shape *shapes, hr_op_plan *plan, hr_error *error);

/* One parameter of a built-in op, as the command line takes it ("--by X"). */
typedef struct hr_op_param {
    const char *name;     /* "by" */
    const char *type;     /* "number", "number list", "dtype", "file", "filter name", "border name" */
    const char *fallback; /* what is taken when it is not given, or null when it must be */
    const char *help;
} hr_op_param;
/* The i-th parameter of a built-in op, or null past the last. */
HR_API const hr_op_param *hr_op_param_at(const hr_op *op, uint32_t index);
/* Does the op take inputs of this dtype? */
HR_API bool hr_op_takes(const hr_op *op, hr_dtype dtype);

/* Parameters of the built-in ops: plain values, so that a device's kernel can read them. */
typedef enum hr_border { HR_BORDER_REFLECT = 0, HR_BORDER_ZERO, HR_BORDER_REPLICATE } hr_border;
#define HR_MAX_CHANNELS    16
#define HR_MAX_KERNEL_EDGE 31

typedef struct hr_scale_params {
    double by, plus;
    int64_t by_integer, plus_integer; /* exact values for 64-bit integers where is_integer is set */
    bool is_integer;
    bool by_given, plus_given; /* set by hr_op_params_set(), read by hr_op_params_finish() only */
} hr_scale_params;
typedef struct hr_normalize_params {
    uint32_t channels; /* values given; 1 stands for every channel */
    float mean[HR_MAX_CHANNELS];
    float std_dev[HR_MAX_CHANNELS];
    uint32_t means_given, stds_given; /* set by hr_op_params_set(), read by hr_op_params_finish() only */
} hr_normalize_params;
typedef struct hr_convert_params {
    hr_dtype to;
} hr_convert_params;
typedef struct hr_conv2d_params {
    uint32_t rows, columns; /* odd */
    hr_border border;
    bool border_given, filter_given; /* set by hr_op_params_set(), to refuse what contradicts */
    double weight[HR_MAX_KERNEL_EDGE * HR_MAX_KERNEL_EDGE]; /* rows × columns, row by row */
} hr_conv2d_params;

/* The largest of the parameter structs; what hr_op_params_set() works on. Zero it first. */
typedef union hr_op_params {
    hr_scale_params scale;
    hr_normalize_params normalize;
    hr_convert_params convert;
    hr_conv2d_params conv2d;
} hr_op_params;

/*
 * Sets one parameter from text. conv2d's "kernel" takes the filter's values through hr_conv2d_set_kernel()
 * instead. HR_E_NOT_FOUND: the op has no such parameter; HR_E_INVALID or HR_E_RANGE: the value, with the text
 * saying what is needed.
 */
HR_API HR_CHECKED hr_status hr_op_params_set(const hr_op *op, hr_op_params *params, const char *name,
                                             const char *value, hr_error *error);
/* After all are set: is something missing or contradictory? Fills defaults. */
HR_API HR_CHECKED hr_status hr_op_params_finish(const hr_op *op, hr_op_params *params, hr_error *error);
/* A filter kernel from values (f32 or f64, odd × odd, at most HR_MAX_KERNEL_EDGE an edge, finite). */
HR_API HR_CHECKED hr_status hr_conv2d_set_kernel(hr_conv2d_params *params, const void *values, hr_dtype dtype,
                                                 const hr_shape *shape, hr_error *error);

#ifdef __cplusplus
}
#endif
#endif
