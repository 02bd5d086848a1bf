/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of tiles in shared memory that is filled from global memory while the threads compute, with the same
 * shape for every copy mechanism:
 *
 *     using ring_type = tile_ring<mechanism::ldgsts, 4, float, 8, 136, warp_scope>;
 *     ring_type ring(storage);                             // storage: ring_type::storage in shared memory
 *     for (int i = 0; i < ring_type::stages - 1; i++)
 *         ring.fill(plane, row(i), column);                // or ring.skip() past the last tile
 *     for (int i = 0; i < tiles; i++) {
 *         auto &tile = ring.wait();                        // tile i is there, tile i − 1 is free again
 *         ring.fill(plane, row(i + ring_type::stages - 1), column);      // or ring.skip()
 *         compute(tile);
 *     }
 *
 * With one stage there is one fill() and one wait(), and the blocks of a multiprocessor overlap each other.
 * All threads of the scope (a warp or the block) make every call together. Elements outside the plane come as
 * zero. What each mechanism needs of the plane:
 *
 *     sync               any alignment
 *     ldgsts, group,     base and pitch multiples of 16 bytes; columns given to fill() multiples of 16 bytes
 *     barrier, bulk      (they may be negative); bulk needs sm_90
 *     tma                a tensor map whose box is the tile (see tensor_map.h); any column; sm_90
 */
#ifndef HEADRACE_DEVICE_TILE_RING_CUH
#define HEADRACE_DEVICE_TILE_RING_CUH

#include <headrace/device/mbarrier.cuh>

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace headrace::device
{

enum class mechanism {
    sync,    /* plain loads and stores */
    ldgsts,  /* cuda::pipeline, 16 bytes a thread */
    group,   /* cooperative_groups::memcpy_async and wait_prior */
    barrier, /* cuda::memcpy_async on a cuda::barrier: ldgsts on sm_80, bulk from sm_90 on */
    bulk,    /* cp.async.bulk, a row at a time */
    tma      /* cp.async.bulk.tensor */
};

/* Can this mechanism run in the code being compiled? */
__host__ __device__ constexpr bool compiles(mechanism m)
{
    return have_bulk || (m != mechanism::bulk && m != mechanism::tma);
}

/* Who shares a ring. */
struct warp_scope { /* of a one-dimensional block */
    static constexpr int threads = 32;
    static __device__ int rank()
    {
        return static_cast<int>(threadIdx.x & 31);
    }
    static __device__ void sync()
    {
        __syncwarp();
    }
    static __device__ auto group()
    {
        return cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    }
    /* For cooperative_groups::memcpy_async: of a tile, it would let idle lanes copy the last piece again. */
    static __device__ auto copy_group()
    {
        return cooperative_groups::coalesced_threads();
    }
};
template <int Threads> struct block_scope { /* one-dimensional, of exactly Threads threads */
    static constexpr int threads = Threads;
    static __device__ int rank()
    {
        return static_cast<int>(threadIdx.x);
    }
    static __device__ void sync()
    {
        __syncthreads();
    }
    static __device__ auto group()
    {
        return cooperative_groups::this_thread_block();
    }
    static __device__ auto copy_group()
    {
        return cooperative_groups::this_thread_block();
    }
};

/* Rows of elements in global memory. `map` is read by mechanism::tma alone: the address of the kernel's
 * __grid_constant__ parameter. */
template <class T> struct plane {
    const T *base;
    long long pitch; /* elements from one row to the next */
    long long rows;
    long long columns;
    const CUtensorMap *map;
};

namespace detail
{

template <class T, int Rows, int Pitch> struct tile_slot {
    alignas(128) T at[Rows][Pitch];
};

/* The part of a tile that lies inside the plane. */
template <class T, int Rows, int Columns> struct tile_clip {
    static constexpr int per_piece = 16 / static_cast<int>(sizeof(T));
    int row_begin, row_end, column_begin, column_end;

    __device__ tile_clip(const plane<T> &p, long long row, long long column)
    {
        row_begin = static_cast<int>(row < 0 ? (row < -Rows ? Rows : -row) : 0);
        row_end = static_cast<int>(p.rows - row < Rows ? (p.rows > row ? p.rows - row : 0) : Rows);
        column_begin = static_cast<int>(column < 0 ? (column < -Columns ? Columns : -column) : 0);
        column_end = static_cast<int>(
            p.columns - column < Columns ? (p.columns > column ? p.columns - column : 0) : Columns);
        if (row_begin >= row_end || column_begin >= column_end) {
            row_begin = row_end = column_begin = column_end = 0;
        }
    }
    __device__ bool whole() const
    {
        return row_begin == 0 && row_end == Rows && column_begin == 0 && column_end == Columns;
    }
    __device__ bool holds(int r, int c) const
    {
        return r >= row_begin && r < row_end && c >= column_begin && c < column_end;
    }
    /* Columns that whole 16-byte pieces cover. */
    __device__ int piece_columns() const
    {
        return (column_end - column_begin) / per_piece * per_piece;
    }
};

/* By plain stores: zeros outside the plane, and the columns after the last whole piece. */
template <class Scope, class T, int Rows, int Columns, int Pitch>
__device__ void fill_rest(T (&tile)[Rows][Pitch], const plane<T> &p, long long row, long long column,
                          const tile_clip<T, Rows, Columns> &clip)
{
    const int copied_end = clip.column_begin + clip.piece_columns();
    for (int i = Scope::rank(); i < Rows * Columns; i += Scope::threads) {
        const int r = i / Columns, c = i % Columns;
        if (!clip.holds(r, c)) {
            tile[r][c] = T{};
        } else if (c >= copied_end) {
            tile[r][c] = p.base[(row + r) * p.pitch + column + c];
        }
    }
}

template <class T> __device__ bool pieces_aligned(const plane<T> &p, long long column)
{
    const auto bits = reinterpret_cast<std::uintptr_t>(p.base) |
                      static_cast<std::uintptr_t>(p.pitch * static_cast<long long>(sizeof(T))) |
                      static_cast<std::uintptr_t>(column * static_cast<long long>(sizeof(T)));
    return (bits & 15) == 0;
}

/* What every ring has: slots, whose turn it is, and whether someone wrote into a slot by plain stores. */
template <int Stages, class T, int Rows, int Columns, class Scope, int Pitch> class ring_base
{
  public:
    static_assert(Stages >= 1, "a ring has a slot; from two on it fills one while another is read");
    static_assert(Columns * sizeof(T) % 16 == 0 && Pitch * sizeof(T) % 16 == 0 && Pitch >= Columns,
                  "a tile's row is whole 16-byte pieces");
    static constexpr int stages = Stages;
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    using tile_type = T[Rows][Pitch];

    /* To be called by threads that wrote into a tile that wait() returned: the copy engine may fill that slot
     * next. */
    __device__ void touched()
    {
        dirty = true;
    }

  protected:
    using slot_type = tile_slot<T, Rows, Pitch>;
    using clip_type = tile_clip<T, Rows, Columns>;
    ring_turn<Stages> in, out;
    bool dirty = false;

    __device__ void order_writes()
    {
        if (dirty) {
            fence_for_copy_engine();
            dirty = false;
        }
    }
};

} // namespace detail

/* `Pitch`: elements from one row of the tile to the next in shared memory, more than Columns to spread a
 * column over the banks (not for tma, which has swizzles for that). */
template <mechanism M, int Stages, class T, int Rows, int Columns, class Scope, int Pitch = Columns>
class tile_ring;

/* Plain: loads into registers, all in flight at once, then stores. */
template <int Stages, class T, int Rows, int Columns, class Scope, int Pitch>
class tile_ring<mechanism::sync, Stages, T, Rows, Columns, Scope, Pitch>
    : public detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>
{
    using base = detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>;
    static constexpr int per_piece = 16 / static_cast<int>(sizeof(T));
    static constexpr int row_pieces = Columns / per_piece;
    static constexpr int rounds = (Rows * row_pieces + Scope::threads - 1) / Scope::threads;

  public:
    struct storage {
        typename base::slot_type slots[Stages];
    };
    __device__ explicit tile_ring(storage &s) : store(s)
    {
    }
    __device__ void fill(const plane<T> &p, long long row, long long column)
    {
        auto &tile = store.slots[this->in.slot].at;
        this->in.next();
        const typename base::clip_type clip(p, row, column);
        if (clip.whole() && detail::pieces_aligned(p, column)) {
            uint4 piece[rounds];
            const T *source = p.base + row * p.pitch + column;
#pragma unroll
            for (int k = 0; k < rounds; k++) {
                const int i = Scope::rank() + k * Scope::threads;
                if (i < Rows * row_pieces) {
                    piece[k] = __ldg(reinterpret_cast<const uint4 *>(source + i / row_pieces * p.pitch +
                                                                     i % row_pieces * per_piece));
                }
            }
#pragma unroll
            for (int k = 0; k < rounds; k++) {
                const int i = Scope::rank() + k * Scope::threads;
                if (i < Rows * row_pieces) {
                    *reinterpret_cast<uint4 *>(&tile[i / row_pieces][i % row_pieces * per_piece]) = piece[k];
                }
            }
        } else {
            for (int i = Scope::rank(); i < Rows * Columns; i += Scope::threads) {
                const int r = i / Columns, c = i % Columns;
                tile[r][c] = clip.holds(r, c) ? p.base[(row + r) * p.pitch + column + c] : T{};
            }
        }
    }
    __device__ void skip()
    {
    }
    __device__ typename base::tile_type &wait()
    {
        Scope::sync();
        auto &tile = store.slots[this->out.slot].at;
        this->out.next();
        return tile;
    }

  private:
    storage &store;
};

/* LDGSTS through cuda::pipeline: each thread copies 16-byte pieces. */
template <int Stages, class T, int Rows, int Columns, class Scope, int Pitch>
class tile_ring<mechanism::ldgsts, Stages, T, Rows, Columns, Scope, Pitch>
    : public detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>
{
    using base = detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>;
    static constexpr int per_piece = 16 / static_cast<int>(sizeof(T));
    static constexpr int row_pieces = Columns / per_piece;

  public:
    struct storage {
        typename base::slot_type slots[Stages];
    };
    __device__ explicit tile_ring(storage &s) : store(s), pipe(cuda::make_pipeline())
    {
    }
    __device__ void fill(const plane<T> &p, long long row, long long column)
    {
        auto &tile = store.slots[this->in.slot].at;
        this->in.next();
        const typename base::clip_type clip(p, row, column);
        const T *source = p.base + row * p.pitch + column;
        const bool whole = clip.whole();
        const int copied_end = clip.column_begin + clip.piece_columns();
        pipe.producer_acquire();
#pragma unroll 4
        for (int i = Scope::rank(); i < Rows * row_pieces; i += Scope::threads) {
            const int r = i / row_pieces, c = i % row_pieces * per_piece;
            if (whole || (clip.holds(r, c) && c < copied_end)) {
                cuda::memcpy_async(&tile[r][c], source + r * p.pitch + c, cuda::aligned_size_t<16>(16), pipe);
            }
        }
        pipe.producer_commit();
        if (!whole) {
            detail::fill_rest<Scope>(tile, p, row, column, clip);
        }
    }
    __device__ void skip()
    {
        pipe.producer_acquire();
        pipe.producer_commit();
    }
    __device__ typename base::tile_type &wait()
    {
        cuda::pipeline_consumer_wait_prior<(Stages > 1 ? Stages - 2 : 0)>(pipe);
        Scope::sync();
        auto &tile = store.slots[this->out.slot].at;
        this->out.next();
        return tile;
    }

  private:
    storage &store;
    cuda::pipeline<cuda::thread_scope_thread> pipe;
};

/* LDGSTS through cooperative groups: the group copies a row a call. */
template <int Stages, class T, int Rows, int Columns, class Scope, int Pitch>
class tile_ring<mechanism::group, Stages, T, Rows, Columns, Scope, Pitch>
    : public detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>
{
    using base = detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>;

  public:
    struct storage {
        typename base::slot_type slots[Stages];
    };
    __device__ explicit tile_ring(storage &s) : store(s)
    {
    }
    __device__ void fill(const plane<T> &p, long long row, long long column)
    {
        auto &tile = store.slots[this->in.slot].at;
        this->in.next();
        const typename base::clip_type clip(p, row, column);
        const T *source = p.base + row * p.pitch + column + clip.column_begin;
        const auto bytes = static_cast<std::size_t>(clip.piece_columns()) * sizeof(T);
        auto group = Scope::copy_group();
        /* Each call is a commit of its own, so that there are as many calls as rows, empty ones too. */
#pragma unroll 4
        for (int r = 0; r < Rows; r++) {
            const bool inside = r >= clip.row_begin && r < clip.row_end;
            cooperative_groups::memcpy_async(group, &tile[r][clip.column_begin], source + r * p.pitch,
                                             cuda::aligned_size_t<16>(inside ? bytes : 0));
        }
        if (!clip.whole()) {
            detail::fill_rest<Scope>(tile, p, row, column, clip);
        }
    }
    __device__ void skip()
    {
#pragma unroll 4
        for (int r = 0; r < Rows; r++) {
            __pipeline_commit();
        }
    }
    __device__ typename base::tile_type &wait()
    {
        auto group = Scope::copy_group();
        cooperative_groups::wait_prior<Rows *(Stages > 1 ? Stages - 2 : 0)>(group);
        auto &tile = store.slots[this->out.slot].at;
        this->out.next();
        return tile;
    }

  private:
    storage &store;
};

/* cuda::memcpy_async on a cuda::barrier, a row a call. */
template <int Stages, class T, int Rows, int Columns, class Scope, int Pitch>
class tile_ring<mechanism::barrier, Stages, T, Rows, Columns, Scope, Pitch>
    : public detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>
{
    using base = detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>;
    using barrier_type = cuda::barrier<cuda::thread_scope_block>;

  public:
    struct storage {
        typename base::slot_type slots[Stages];
        alignas(8) unsigned char barriers[Stages][sizeof(barrier_type)];
    };
    __device__ explicit tile_ring(storage &s) : store(s)
    {
        if (Scope::rank() == 0) {
            for (int i = 0; i < Stages; i++) {
                init(&barrier(i), Scope::threads);
            }
            publish_barriers();
        }
        Scope::sync();
    }
    __device__ void fill(const plane<T> &p, long long row, long long column)
    {
        auto &tile = store.slots[this->in.slot].at;
        auto &full = barrier(this->in.slot);
        this->in.next();
        const typename base::clip_type clip(p, row, column);
        const T *source = p.base + row * p.pitch + column + clip.column_begin;
        const auto bytes = static_cast<std::size_t>(clip.piece_columns()) * sizeof(T);
        auto group = Scope::group();
        if (bytes > 0) {
            for (int r = clip.row_begin; r < clip.row_end; r++) {
                cuda::memcpy_async(group, &tile[r][clip.column_begin], source + r * p.pitch,
                                   cuda::aligned_size_t<16>(bytes), full);
            }
        }
        (void)full.arrive();
        if (!clip.whole()) {
            detail::fill_rest<Scope>(tile, p, row, column, clip);
            this->dirty = true;
        }
    }
    __device__ void skip()
    {
    }
    __device__ typename base::tile_type &wait()
    {
        this->order_writes();
        reinterpret_cast<mbarrier *>(cuda::device::barrier_native_handle(barrier(this->out.slot)))
            ->wait(this->out.parity);
        Scope::sync();
        auto &tile = store.slots[this->out.slot].at;
        this->out.next();
        return tile;
    }

  private:
    storage &store;

    __device__ barrier_type &barrier(int i)
    {
        return *reinterpret_cast<barrier_type *>(store.barriers[i]);
    }
};

/* cp.async.bulk: the lanes of one warp issue a row each. */
template <int Stages, class T, int Rows, int Columns, class Scope, int Pitch>
class tile_ring<mechanism::bulk, Stages, T, Rows, Columns, Scope, Pitch>
    : public detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>
{
    using base = detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>;

  public:
    struct storage {
        typename base::slot_type slots[Stages];
        mbarrier full[Stages];
    };
    __device__ explicit tile_ring(storage &s) : store(s)
    {
        if (Scope::rank() == 0) {
            for (int i = 0; i < Stages; i++) {
                store.full[i].init(1);
            }
            publish_barriers();
        }
        Scope::sync();
    }
    __device__ void fill(const plane<T> &p, long long row, long long column)
    {
        auto &tile = store.slots[this->in.slot].at;
        mbarrier &full = store.full[this->in.slot];
        this->in.next();
        const typename base::clip_type clip(p, row, column);
        const auto bytes = static_cast<std::uint32_t>(clip.piece_columns() * sizeof(T));
        if (Scope::rank() < 32) {
            if (Scope::rank() == 0) {
                full.arrive_and_expect(bytes * (clip.row_end - clip.row_begin));
            }
            __syncwarp();
            for (int r = clip.row_begin + Scope::rank(); r < clip.row_end && bytes > 0; r += 32) {
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &tile[r][clip.column_begin],
                                   p.base + (row + r) * p.pitch + column + clip.column_begin, bytes,
                                   &full.word);
            }
        }
        if (!clip.whole()) {
            detail::fill_rest<Scope>(tile, p, row, column, clip);
            this->dirty = true;
        }
    }
    __device__ void skip()
    {
    }
    __device__ typename base::tile_type &wait()
    {
        this->order_writes();
        store.full[this->out.slot].wait(this->out.parity);
        Scope::sync();
        auto &tile = store.slots[this->out.slot].at;
        this->out.next();
        return tile;
    }

  private:
    storage &store;
};

/* cp.async.bulk.tensor: one thread asks the tensor unit for a box of 1 to 5 dimensions. */
template <int Stages, class T, int Rows, int Columns, class Scope, int Pitch>
class tile_ring<mechanism::tma, Stages, T, Rows, Columns, Scope, Pitch>
    : public detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>
{
    using base = detail::ring_base<Stages, T, Rows, Columns, Scope, Pitch>;
    static constexpr std::uint32_t box_bytes = Rows * Columns * sizeof(T);
    static_assert(Pitch == Columns, "the tensor unit writes dense boxes");

  public:
    struct storage {
        typename base::slot_type slots[Stages];
        mbarrier full[Stages];
    };
    __device__ explicit tile_ring(storage &s) : store(s)
    {
        if (Scope::rank() == 0) {
            for (int i = 0; i < Stages; i++) {
                store.full[i].init(1);
            }
            publish_barriers();
        }
        Scope::sync();
    }
    /* Coordinates, innermost first, in elements; a box that reaches outside brings zeros there. */
    template <int Rank> __device__ void fill_box(const CUtensorMap *map, const std::int32_t (&at)[Rank])
    {
        static_assert(Rank >= 1 && Rank <= 5, "tensor maps have 1 to 5 dimensions");
        if (Scope::rank() == 0) {
            mbarrier &full = store.full[this->in.slot];
            full.arrive_and_expect(box_bytes);
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, &store.slots[this->in.slot].at,
                                      map, at, &full.word);
        }
        this->in.next();
    }
    __device__ void fill(const plane<T> &p, long long row, long long column)
    {
        fill_box(p.map, {static_cast<std::int32_t>(column), static_cast<std::int32_t>(row)});
    }
    __device__ void skip()
    {
    }
    __device__ typename base::tile_type &wait()
    {
        this->order_writes();
        store.full[this->out.slot].wait(this->out.parity);
        Scope::sync();
        auto &tile = store.slots[this->out.slot].at;
        this->out.next();
        return tile;
    }

  private:
    storage &store;
};

} // namespace headrace::device
#endif
