/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2-D correlation of bytes by the tensor cores, in integers (mma m16n8k32, u8 × s8 → s32). A warp makes two output
 * rows of 128 columns at a time; lane 4·g + t holds sixteen columns of input row t of four:
 *
 *     A (pixels)   16 windows, four columns apart, two words of four rows each. They are words of the tile as it is:
 *                  no pixel is converted. (For 3×3 and 5×5 they are shifted by two bytes, so that a window of eight
 *                  bytes has its four outputs in the middle.)
 *     B (weights)  the filter, moved to each of the eight outputs of a window: two rows × four columns. The same for
 *                  the whole launch; a lane makes its part of it out of the filter's rows by shifts.
 *     C (sums)     two products with two lots of windows: a lane gets two columns of four windows.
 *
 * Weights are fixed-point numbers in one to three signed digits of base 256, each with sums of its own
 * (conv2d_digits.h). The sums start at the bits of a float, 1.5 · 2^-30, so that they are floats without a conversion:
 * 1.5 · 2^-30 + sum · 2^-53. One multiply-add a digit makes them one number, and the last operation rounds to an
 * integer by ending in the subnormal numbers: the float v · 2^-149 has the bits v. What is negative has the sign bit,
 * what is too large has a larger exponent, so that as integers they saturate as they should.
 */
#ifndef HEADRACE_CUDA_CONV2D_BYTES_CUH
#define HEADRACE_CUDA_CONV2D_BYTES_CUH

#include "conv2d.cuh"

#include <type_traits>

namespace headrace::kernel
{

/*
 * A block of Across × Down warps. A warp takes Loads × 4 rows of 128 columns, and makes the rows of the output that need
 * no others.
 */
template <int Edge, int Across, int Down, int Loads, int Blocks = 1> struct byte_shape {
    static constexpr int blocks = Blocks; /* at least so many on a multiprocessor */
    static constexpr int radius = Edge / 2;
    static constexpr int across = Across;
    static constexpr int threads = 32 * Across * Down;
    static constexpr int strip = 128 * Across; /* columns a block */
    static constexpr int pad = 16;
    static constexpr int columns = strip + 2 * pad;
    static constexpr int loads = Loads;
    static constexpr int rows_each = 4 * Loads - 2 * radius;
    static constexpr int rows = Down * rows_each;
    static constexpr int tile_rows = rows + 2 * radius;
    /* A tensor map's box has at most 256 elements an edge, so bytes travel eight at a time. */
    static constexpr int map_pixels = 8;
};

/* What measured best from global memory: more weights in registers leave room for fewer warps. */
template <int Edge, int Digits>
using byte_direct = std::conditional_t<
    Edge == 3, std::conditional_t<Digits == 1, byte_shape<3, 4, 1, 5>, byte_shape<3, 2, 1, 6>>,
    std::conditional_t<Edge == 5,
                       std::conditional_t<Digits == 1, byte_shape<5, 4, 1, 5, 6>, byte_shape<5, 2, 1, 5, 10>>,
                       std::conditional_t<Digits == 1, byte_shape<7, 2, 1, 6, 10>, byte_shape<7, 2, 2, 5>>>>;
/* And from a tile. */
template <mechanism M, int Edge>
using byte_tile =
    std::conditional_t<M == mechanism::tma,
                       std::conditional_t<Edge == 5, byte_shape<5, 2, 2, 4>, byte_shape<Edge, 4, 1, 6>>,
                       std::conditional_t<M == mechanism::ldgsts, byte_shape<Edge, 2, 2, 5>,
                                          byte_shape<Edge, 4, 1, M == mechanism::group ? 4 : 5>>>;

/* The filter as the kernel takes it. */
template <int Digits> struct byte_weights {
    /* Row ky − 3 of the filter, a string of signed bytes, a digit; zeros before and after. */
    unsigned long long row[Digits][11];
    /* 2^-89 · value = Σ by[d] · float of digit d's sum + plus; with one digit 2^-149 · value. */
    float by[Digits];
    float plus;
};

namespace bytes
{
constexpr int start = 0x30c00000; /* 1.5 · 2^-30 */

__device__ inline void multiply(int (&sum)[4], const int (&from)[4], const unsigned (&a)[4], unsigned b0,
                                unsigned b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(from[0]), "r"(from[1]),
          "r"(from[2]), "r"(from[3]));
}

/* The two integers, saturated, before the two lower bytes of `rest`. */
__device__ inline unsigned pack(int low, int high, unsigned rest)
{
    unsigned out;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(high), "r"(low), "r"(rest));
    return out;
}

/*
 * A lane's part of B, for two rows of the output. `Odd`: they begin two rows down in the first four rows of the input. For 3×3 and 7×7 the four
 * rows are then taken half from the next four (mix), so that t has the rows 4, 5, 2, 3 of the eight; for 5×5 both fours
 * are taken as they are.
 */
template <int Edge, int Digits, bool Odd> struct filter {
    static constexpr int parts = Edge == 3 ? 1 : 2; /* times four rows */
    static constexpr int words = Edge == 7 ? 3 : 2; /* of a window */
    unsigned b[Digits][parts][words];

    __device__ filter(const byte_weights<Digits> &w, int lane)
    {
        constexpr int lead = Edge == 7 ? 1 : 2 - Edge / 2; /* bytes of the window before the first output's */
        const int shift = 8 * (lead + lane / 4 % 4), t = Odd && Edge != 5 ? lane % 4 ^ 2 : lane % 4;
        const int row = 3 + t - lane / 16 - (Odd && Edge == 5 ? 2 : 0);
#pragma unroll
        for (int d = 0; d < Digits; d++) {
#pragma unroll
            for (int c = 0; c < parts; c++) {
                const unsigned long long string = w.row[d][4 * c + row], moved = string << shift;
                b[d][c][0] = static_cast<unsigned>(moved);
                b[d][c][1] = static_cast<unsigned>(moved >> 32);
                if constexpr (words == 3) {
                    b[d][c][2] = static_cast<unsigned>(string >> (64 - shift));
                }
            }
        }
    }
};

/* The bits of the number that the digits' sums make, rounded: see above. */
template <int Digits>
__device__ inline int value(const byte_weights<Digits> &w, const int (&sum)[Digits][4], int i)
{
    float v = w.plus;
#pragma unroll
    for (int d = Digits - 1; d >= 0; d--) {
        v = fmaf(__int_as_float(sum[d][i]), w.by[d], v);
    }
    return __float_as_int(Digits == 1 ? v : v * 8.67361737988403547e-19F /* 2^-60 */);
}

/* A lane's sixteen columns of a row, and what windows reach on both sides. */
template <int Edge> struct quad {
    static constexpr int words = Edge == 7 ? 6 : 5;
    unsigned x[words];

    __device__ quad()
    {
    }
    /* The neighbouring lanes have the words on both sides, but for the warp's ends: `side` is theirs. */
    __device__ quad(const uint4 &own, unsigned side, int lane)
    {
        const unsigned before = __shfl_up_sync(~0U, own.w, 4), after = __shfl_down_sync(~0U, own.x, 4);
        const unsigned all[6] = {lane < 4 ? side : before, own.x, own.y, own.z, own.w,
                                 lane >= 28 ? side : after};
#pragma unroll
        for (int i = 0; i < words; i++) {
            x[i] = Edge == 7 ? all[i] : __byte_perm(all[i], all[i < 5 ? i + 1 : 5], 0x5432);
        }
    }
};

/* Rows 2 and 3 of one, 0 and 1 of the next. */
template <int Edge> __device__ inline quad<Edge> mix(const quad<Edge> &one, const quad<Edge> &next, int lane)
{
    quad<Edge> mixed;
#pragma unroll
    for (int i = 0; i < quad<Edge>::words; i++) {
        mixed.x[i] = lane % 4 < 2 ? next.x[i] : one.x[i];
    }
    return mixed;
}

/* Windows 2m and 2m + 1 of each lane: their outputs, two columns each, as bytes. */
template <int Edge, int Digits, bool Odd>
__device__ inline unsigned outputs(const byte_weights<Digits> &w, const filter<Edge, Digits, Odd> &f,
                                   const quad<Edge> &first, const quad<Edge> &second, int m)
{
    const int zero[4] = {start, start, start, start};
    const unsigned a[4] = {first.x[2 * m], first.x[2 * m + 1], first.x[2 * m + 1], first.x[2 * m + 2]};
    int sum[Digits][4];
#pragma unroll
    for (int d = 0; d < Digits; d++) {
        multiply(sum[d], zero, a, f.b[d][0][0], f.b[d][0][1]);
    }
    if constexpr (Edge > 3) {
        const unsigned lower[4] = {second.x[2 * m], second.x[2 * m + 1], second.x[2 * m + 1],
                                   second.x[2 * m + 2]};
#pragma unroll
        for (int d = 0; d < Digits; d++) {
            multiply(sum[d], sum[d], lower, f.b[d][1][0], f.b[d][1][1]);
        }
    }
    if constexpr (Edge == 7) {
        const unsigned third[4] = {first.x[2 * m + 2], first.x[2 * m + 3], second.x[2 * m + 2],
                                   second.x[2 * m + 3]};
#pragma unroll
        for (int d = 0; d < Digits; d++) {
            multiply(sum[d], sum[d], third, f.b[d][0][2], f.b[d][1][2]);
        }
    }
    return pack(value(w, sum, 0), value(w, sum, 1), pack(value(w, sum, 2), value(w, sum, 3), 0));
}

/*
 * A lane has two columns of windows 0 and 1, and of 2 and 3; its neighbour the other two columns. One keeps the first
 * eight columns, the other the last.
 */
__device__ inline uint2 exchange(unsigned first, unsigned second, int lane)
{
    const bool odd = lane % 2 != 0;
    const unsigned own = odd ? second : first;
    const unsigned other = __shfl_xor_sync(~0U, odd ? first : second, 1);
    return make_uint2(__byte_perm(own, other, odd ? 0x1054 : 0x5410),
                      __byte_perm(own, other, odd ? 0x3276 : 0x7632));
}

/* A lane's eight columns of every second row of the output, from the first on. */
struct output {
    unsigned char *at;
    long long step;
    int rows_left, columns_left;
    bool wide; /* eight at a time */

    __device__ output(const conv_job &job, int row, int column, int lane)
    {
        row += lane % 4 / 2;
        column += lane / 4 * 16 + lane % 2 * 8;
        at = static_cast<unsigned char *>(job.dst) + row * job.dst_pitch + column;
        step = 2 * job.dst_pitch;
        rows_left = job.dst_rows - row;
        columns_left = job.columns - column;
        wide = job.vector_store && columns_left >= 8;
    }
    /* `Wide`: it is known that all lanes are. */
    template <bool Wide> __device__ void store(uint2 out, int k)
    {
        if (2 * k < rows_left) {
            if (Wide || wide) {
                asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(at)),
                             "r"(out.x), "r"(out.y));
            } else {
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    if (i < columns_left) {
                        at[i] = static_cast<unsigned char>((i < 4 ? out.x : out.y) >> 8 * (i % 4));
                    }
                }
            }
        }
        at += step;
    }
};

/* What a warp makes of its rows: `rows[k]` are the lane's columns of row 4 · k + lane % 4. */
template <class Shape, int Edge, int Digits, bool Wide, class Rows>
__device__ inline void filter_rows(const Rows &rows, const byte_weights<Digits> &weights, output to, int lane)
{
    constexpr int steps = Shape::rows_each / 2;
    const filter<Edge, Digits, false> even(weights, lane);
    const filter<Edge, Digits, true> odd(weights, lane);
    const auto make = [&](const auto &f, const quad<Edge> &first, const quad<Edge> &second, int k) {
        const unsigned low = outputs<Edge, Digits>(weights, f, first, second, 0);
        const unsigned high = outputs<Edge, Digits>(weights, f, first, second, 1);
        to.template store<Wide>(exchange(low, high, lane), k);
    };
    quad<Edge> here = rows[0], next = rows[1], mixed = mix(here, next, lane);
#pragma unroll
    for (int k = 0; k < steps; k += 2) {
        make(even, here, Edge == 3 ? here : next, k);
        if (k + 1 < steps) {
            quad<Edge> after = next;
            if (k / 2 + 2 < Shape::loads) {
                after = rows[k / 2 + 2];
            }
            if constexpr (Edge == 5) {
                make(odd, here, next, k + 1);
            } else {
                const quad<Edge> mixed_next = mix(next, after, lane);
                make(odd, mixed, mixed_next, k + 1);
                mixed = mixed_next;
            }
            here = next;
            next = after;
        }
    }
}

/* Does a lane load what its neighbours cannot give it, and where, from its own sixteen columns? */
__device__ inline bool at_end(int lane)
{
    return lane < 4 || lane >= 28;
}
__device__ inline int side_of(int lane)
{
    return lane < 4 ? -4 : 16;
}

/* Rows of a tile in shared memory; `own` is the lane's piece of its first row. */
template <class Shape, int Edge> struct tile_rows {
    const unsigned char *own;
    int lane;

    __device__ quad<Edge> operator[](int k) const
    {
        const unsigned char *at = own + (4 * k + lane % 4) * Shape::columns;
        unsigned side = 0;
        if (at_end(lane)) {
            side = *reinterpret_cast<const unsigned *>(at + side_of(lane));
        }
        return quad<Edge>(*reinterpret_cast<const uint4 *>(at), side, lane);
    }
};

/* Rows from global memory, in registers: all loads are on their way before the first is used. */
template <class Shape, int Edge> struct loaded_rows {
    uint4 own[Shape::loads];
    unsigned side[Shape::loads];
    int lane;

    __device__ quad<Edge> operator[](int k) const
    {
        return quad<Edge>(own[k], side[k], lane);
    }
};

/* A row of the source as the border rule sees it; null: zeros. */
__device__ inline const unsigned char *line_of(const conv_job &job, int row)
{
    const int reached = conv_reach(row + job.src_first, job.image_rows, job.border) - job.src_first;
    const bool there = reached >= 0 && reached < job.src_rows;
    return there ? static_cast<const unsigned char *>(job.src) + reached * job.src_pitch : nullptr;
}

/* Can all lanes load whole words, and is what lies outside only what their neighbour columns tell? */
__device__ inline bool simple(const conv_job &job, int column)
{
    const int left = job.columns - column;
    return job.vector_load && job.vector_store && (left == 128 || left >= 132);
}

/* Rows of a strip that is simple. Its sides outside the image are made of the columns beside them. */
template <class Shape, int Edge>
__device__ inline void load_simple(loaded_rows<Shape, Edge> &rows, const conv_job &job, int row, int column,
                                   int lane)
{
    const bool outside = lane < 4 ? column == 0 : column + 128 == job.columns;
    const bool loads_side = at_end(lane) && !outside;
    const int own_column = column + lane / 4 * 16;
    rows.lane = lane;
    row += lane % 4;
    if (row - lane % 4 >= 0 && row - lane % 4 + 4 * Shape::loads <= job.src_rows) {
        const unsigned char *at =
            static_cast<const unsigned char *>(job.src) + row * job.src_pitch + own_column;
        const unsigned char *side = at + side_of(lane);
#pragma unroll
        for (int k = 0; k < Shape::loads; k++) {
            rows.own[k] = *reinterpret_cast<const uint4 *>(at);
            rows.side[k] = loads_side ? *reinterpret_cast<const unsigned *>(side) : 0;
            at += 4 * job.src_pitch;
            side += 4 * job.src_pitch;
        }
    } else {
#pragma unroll
        for (int k = 0; k < Shape::loads; k++) {
            const unsigned char *const line = line_of(job, row + 4 * k);
            rows.own[k] = make_uint4(0, 0, 0, 0);
            rows.side[k] = 0;
            if (line != nullptr) {
                rows.own[k] = *reinterpret_cast<const uint4 *>(line + own_column);
                rows.side[k] =
                    loads_side ? *reinterpret_cast<const unsigned *>(line + own_column + side_of(lane)) : 0;
            }
        }
    }
    /* Bytes of the word beside, from columns 0 … 3 or the last four: reflected, repeated, zeros. */
    const unsigned pick = job.border == HR_BORDER_ZERO        ? 0x4444
                          : job.border == HR_BORDER_REPLICATE ? (lane < 4 ? 0x0000 : 0x3333)
                                                              : (lane < 4 ? 0x1233 : 0x0012);
#pragma unroll
    for (int k = 0; k < Shape::loads; k++) {
        const unsigned beside = __byte_perm(lane < 4 ? rows.own[k].x : rows.own[k].w, 0, pick);
        rows.side[k] = outside ? beside : rows.side[k];
    }
}

/* Rows of any strip: of any alignment, and where the image ends in it. It reads whole aligned words that hold a pixel of the row. */
struct any_strip {
    int columns, before[3],
        after[3]; /* the columns that stand for −3 … −1, and for the three after the last */

    __device__ explicit any_strip(const conv_job &job) : columns(job.columns)
    {
        for (int i = 0; i < 3; i++) {
            before[i] = conv_reach(i - 3, columns, job.border);
            after[i] = conv_reach(columns + i, columns, job.border);
        }
    }
    __device__ static unsigned pixels(const unsigned char *line, const int (&from)[3])
    {
        unsigned word = 0;
#pragma unroll
        for (int i = 0; i < 3; i++) {
            word |= from[i] >= 0 ? static_cast<unsigned>(line[from[i]]) << 8 * i : 0;
        }
        return word;
    }
    /* Columns c … c + 3; `beyond`: what is after the last column. */
    __device__ unsigned word(const unsigned char *line, int c, unsigned beyond) const
    {
        const int there = columns - c; /* pixels of the row from c on */
        unsigned found = 0;
        if (there > 0) {
            const auto at = reinterpret_cast<std::uintptr_t>(line) + c;
            const auto *words = reinterpret_cast<const unsigned *>(at & ~std::uintptr_t{3});
            const int past = static_cast<int>(at % 4);
            found = __funnelshift_r(words[0], past > 0 && there > 4 - past ? words[1] : 0, 8 * past);
        }
        if (there >= 4) {
            return found;
        }
        return there >= 0   ? (found & ((1U << 8 * there) - 1)) | beyond << 8 * there
               : there > -4 ? beyond >> -8 * there
                            : 0;
    }
};

template <class Shape, int Edge>
__device__ inline void load_any(loaded_rows<Shape, Edge> &rows, const conv_job &job, int row, int column,
                                int lane)
{
    const any_strip strip(job);
    const int own_column = column + lane / 4 * 16;
    rows.lane = lane;
#pragma unroll
    for (int k = 0; k < Shape::loads; k++) {
        const unsigned char *const line = line_of(job, row + lane % 4 + 4 * k);
        rows.own[k] = make_uint4(0, 0, 0, 0);
        rows.side[k] = 0;
        if (line != nullptr) {
            unsigned beyond = 0;
            if (own_column + 20 > job.columns && own_column < job.columns + 3) {
                beyond = strip.pixels(line, strip.after);
            }
            rows.own[k] = make_uint4(
                strip.word(line, own_column, beyond), strip.word(line, own_column + 4, beyond),
                strip.word(line, own_column + 8, beyond), strip.word(line, own_column + 12, beyond));
            if (lane < 4 && column == 0) {
                rows.side[k] = strip.pixels(line, strip.before) << 8;
            } else if (at_end(lane)) {
                rows.side[k] = strip.word(line, own_column + side_of(lane), beyond);
            }
        }
    }
}

/* Without shared memory: a warp loads what it needs, and what warps share comes from the caches. */
template <class Shape, int Edge, int Digits>
__device__ inline void direct(const conv_job &job, const byte_weights<Digits> &weights, int out, int strip)
{
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int column = strip + warp % Shape::across * 128;
    out += warp / Shape::across * Shape::rows_each;
    if (out >= job.dst_rows || column >= job.columns) {
        return;
    }
    const int row = out + job.dst_first - job.src_first - Shape::radius; /* of the source plane */
    loaded_rows<Shape, Edge> rows;
    const output to(job, out, column, lane);
    if (simple(job, column)) {
        load_simple(rows, job, row, column, lane);
        filter_rows<Shape, Edge, Digits, true>(rows, weights, to, lane);
    } else {
        load_any(rows, job, row, column, lane);
        filter_rows<Shape, Edge, Digits, false>(rows, weights, to, lane);
    }
}

/* From a tile in shared memory. */
template <mechanism M, class Shape, int Edge, int Digits>
__device__ inline void by_tile(const conv_job &job, const byte_weights<Digits> &weights,
                               const CUtensorMap *map, int out, int strip)
{
    using ring_type = device::tile_ring<M, 1, unsigned char, Shape::tile_rows, Shape::columns,
                                        device::block_scope<Shape::threads>>;
    extern __shared__ __align__(128) unsigned char shared[];
    ring_type ring(*reinterpret_cast<typename ring_type::storage *>(shared));
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int row = out + job.dst_first - job.src_first - Shape::radius; /* of the source plane */
    const int column = strip - Shape::pad;
    if constexpr (M == mechanism::tma) {
        ring.fill_box(map, {column / Shape::map_pixels, row});
    } else {
        ring.fill(
            {static_cast<const unsigned char *>(job.src), job.src_pitch, job.src_rows, job.columns, nullptr},
            row, column);
    }
    unsigned char *const tile = &ring.wait()[0][0];
    /* Zeros come with the copy, except where the tensor unit brings bytes eight at a time. */
    conv_fix_border<Shape>(tile, job, row, column, M != mechanism::tma);
    const int across = warp % Shape::across * 128, down = warp / Shape::across * Shape::rows_each;
    if (out + down < job.dst_rows && strip + across < job.columns) {
        const tile_rows<Shape, Edge> rows{tile + down * Shape::columns + Shape::pad + across + lane / 4 * 16,
                                          lane};
        filter_rows<Shape, Edge, Digits, false>(rows, weights, output(job, out + down, strip + across, lane),
                                                lane);
    }
}
} // namespace bytes

/* The grid's rows of blocks are in y and, since there may be more than 65,535, z. */
template <mechanism M, class Shape, int Edge, int Digits>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    correlate_bytes(const __grid_constant__ conv_job job,
                    const __grid_constant__ byte_weights<Digits> weights,
                    const __grid_constant__ CUtensorMap map)
{
    if constexpr (device::compiles(M)) {
        after_previous();
        const int strip = static_cast<int>(blockIdx.x) * Shape::strip;
        const long long out = (static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y) * Shape::rows;
        if (out >= job.dst_rows) {
            return;
        }
        if constexpr (M == mechanism::sync) {
            bytes::direct<Shape, Edge>(job, weights, static_cast<int>(out), strip);
        } else {
            bytes::by_tile<M, Shape, Edge>(job, weights, &map, static_cast<int>(out), strip);
        }
    }
}

} // namespace headrace::kernel
#endif
