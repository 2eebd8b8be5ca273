# cython: language_level=3
"""Passes that may be repeated with new centroids, for the other modules of the core."""
from rffpk._core.headers cimport rffpk_kernels, rffpk_loop, rffpk_problem, rffpk_rows, rffpk_view


ctypedef struct Pass:
    const rffpk_problem *problem
    const rffpk_kernels *kernels
    const rffpk_rows *out
    const void *prepared
    size_t n
    size_t slot_rows
    size_t width  # numbers in the sums of a slot: moments, excess, totals of `rffpk_sums`
    size_t step  # from the sums of a slot to the sums of the next slot, at least `width`
    size_t moments
    size_t excess
    size_t space
    char *workspace
    double *slots
    double *total


cdef class Passes:
    cdef rffpk_problem problem
    cdef rffpk_rows out
    cdef rffpk_view *views
    cdef const rffpk_kernels *kernels
    cdef Pass given
    cdef rffpk_loop loop
    cdef readonly object dtype
    cdef object arrays
    cdef object buffers
    cdef object gathered  # the sums of all slots, in the order that the slots have
    cdef object total  # the sums in the order of rffpk_sums: `gathered`, except for sparse columns
    cdef double *result  # the numbers of `total`
    cdef size_t n_moments
    cdef void *prepared

    cdef void divide(self, int n_threads, size_t slot_rows, size_t width) noexcept
    cdef int allocate(self, int n_threads) except -1
    cdef int clear(self) except -1
    cdef int run(self) except -1
    cdef int begin_from(self, carry) except -1
    cdef tuple sums(self)
    cdef tuple parts(self)
