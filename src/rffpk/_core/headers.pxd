# cython: language_level=3
"""Declarations of the C headers for the modules of the core. The headers describe them."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t


cdef extern from "tuning.h" nogil:
    enum:
        RFFPK_SLOT_ROWS
        RFFPK_CELL_ROWS
        RFFPK_SLOT_ENTRIES
        RFFPK_ONE_HOT_CLUSTERS
        RFFPK_BUFFERS_PER_THREAD
        RFFPK_BUFFER_BYTES_PER_THREAD
        RFFPK_BUFFER_BYTES
        RFFPK_THREAD_WORK

cdef extern from "contract.h" nogil:
    enum:
        RFFPK_CONTRACT
        RFFPK_ALIGN
        RFFPK_MOST_NEIGHBOURS
        RFFPK_MOST_CENTROIDS_F32
        RFFPK_MOST_CENTROIDS_F64
        RFFPK_SKINNY_STRIDE
        RFFPK_CELL_BLOCK
    enum rffpk_status:
        RFFPK_OK
        RFFPK_UNKNOWN_RULE
    enum rffpk_stage:
        RFFPK_LOAD
        RFFPK_PROJECT
        RFFPK_SINCOS
        RFFPK_DISTANCES
        RFFPK_WEIGHTS
        RFFPK_SUMS
        RFFPK_ALL_STAGES
    enum rffpk_rule:
        RFFPK_POWER
        RFFPK_HARD
        RFFPK_TYPICALITY
        RFFPK_BOTH
    enum rffpk_number:
        RFFPK_REAL
        RFFPK_FLOAT16
        RFFPK_BFLOAT16
        RFFPK_INT8
        RFFPK_UINT8
    ctypedef struct rffpk_landmarks:
        const void *points
        const void *coordinates
        size_t n_landmarks
        size_t d
        size_t n_neighbours
        double scale
        double least_weight
    ctypedef struct rffpk_view:
        const void *x
        const void *omega
        const void *shift
        size_t d
        size_t D
        const int8_t *signs
        double scale
        size_t p
        rffpk_landmarks landmarks
        const int64_t *indptr
        const int32_t *indices
        rffpk_number numbers
        int unit
    ctypedef struct rffpk_problem:
        const rffpk_view *views
        const double *alpha
        const void *theta
        const void *weight
        size_t n_views
        size_t k
        size_t F
        rffpk_rule rule
        double s
        const double *eta
        double m
        unsigned stages
        const uint8_t *present
        const void *basis
        const void *coordinates
        size_t q
        double reach
    size_t rffpk_counts(const rffpk_problem *)
    ctypedef struct rffpk_sums:
        double *moments
        double *excess
        double *totals
    ctypedef struct rffpk_rows:
        int32_t *labels
        void *memberships
        void *distances
        void *nearest
        void *second
        void *features
        int32_t *neighbours
        void *neighbour_weights
    ctypedef struct rffpk_gram:
        const void *products
        const void *diagonal
        const void *squares
        void *weights
        int32_t *labels
    ctypedef size_t (*bytes_function)(const rffpk_problem *) noexcept nogil
    ctypedef void (*prepare_function)(const rffpk_problem *, void *) noexcept nogil
    ctypedef int (*run_function)(
        const rffpk_problem *, const void *, size_t, size_t,
        const rffpk_sums *, const rffpk_rows *, void *) noexcept nogil
    ctypedef void (*finish_function)(
        const rffpk_problem *, const double *, double *) noexcept nogil
    ctypedef int (*weigh_function)(
        const rffpk_problem *, const rffpk_gram *, size_t, size_t, size_t, double *,
        void *) noexcept nogil
    ctypedef size_t (*skinny_bytes_function)(size_t) noexcept nogil
    ctypedef void (*skinny_pack_function)(const void *, size_t, size_t, void *) noexcept nogil
    ctypedef void (*skinny_function)(
        const void *, const void *, size_t, size_t, size_t, size_t, size_t, void *, size_t,
        void *) noexcept nogil
    ctypedef struct rffpk_near:
        const void *x
        rffpk_number numbers
        int unit
        const void *shift
        const void *theta
        const void *weight
        const int32_t *near
        const int32_t *order
        const int64_t *ends
        size_t d
        size_t n_near
        int32_t *labels
        void *nearest
        void *second
        double *stay
    ctypedef size_t (*near_bytes_function)(const rffpk_near *) noexcept nogil
    ctypedef void (*near_function)(const rffpk_near *, size_t, void *) noexcept nogil
    ctypedef struct rffpk_cells:
        const void *x
        const void *centers
        const void *blocks
        const void *squares
        const int32_t *numbers
        const int64_t *ends
        const int32_t *visits
        const int64_t *order
        size_t n
        size_t d
        size_t c
        size_t p
        size_t r
        int32_t *nearest
    ctypedef size_t (*cells_bytes_function)(const rffpk_cells *) noexcept nogil
    ctypedef void (*cells_function)(const rffpk_cells *, size_t, size_t, void *) noexcept nogil
    ctypedef struct rffpk_pairs:
        const void *x
        const void *points
        const int32_t *index
        size_t d
        size_t r
        void *squares
    ctypedef void (*pairs_function)(const rffpk_pairs *, size_t, size_t) noexcept nogil
    ctypedef struct rffpk_csr:
        const void *values
        const int32_t *columns
        const int64_t *ends
        const void *v
        void *out
        size_t q
    ctypedef void (*csr_function)(const rffpk_csr *, size_t, size_t) noexcept nogil
    ctypedef void (*vecmath_function)(int, const void *, void *, size_t) noexcept nogil
    ctypedef struct rffpk_kernels:
        bytes_function prepared_bytes
        bytes_function workspace_bytes
        bytes_function sums_numbers
        prepare_function prepare
        run_function run
        finish_function finish
        weigh_function weigh
        skinny_bytes_function skinny_bytes
        skinny_pack_function skinny_pack
        skinny_function skinny
        near_bytes_function near_bytes
        near_function near
        cells_bytes_function cells_bytes
        cells_function cells
        pairs_function pairs
        csr_function csr
        vecmath_function vecmath

cdef extern from "dispatch.h" nogil:
    ctypedef int (*runs_function)() noexcept nogil
    ctypedef struct rffpk_variant:
        const char *name
        runs_function runs
        const rffpk_kernels *f32
        const rffpk_kernels *f64
    size_t rffpk_n_variants()
    const rffpk_variant *rffpk_variant_at(size_t)

cdef extern from "places.h":
    int rffpk_bound_threads()

ctypedef int (*run_item)(void *, size_t, size_t, size_t) noexcept nogil
ctypedef void (*merge_item)(void *, size_t) noexcept nogil

cdef extern from "threads.h":
    ctypedef struct rffpk_loop:
        run_item run
        merge_item merge
        void *context
        size_t n_items
        size_t n_threads
        size_t n_buffers
        int signals
        int calls_python
    int rffpk_run_loop(rffpk_loop *) except -1
    const char *rffpk_threads_by()
    int rffpk_threads_begin()
    void rffpk_threads_after_fork()
