# cython: language_level=3
"""A pass that may be repeated with other centroids, for the other modules of the core."""
from rffpk._core.headers cimport rffpk_kernels, rffpk_loop, rffpk_problem, rffpk_rows, rffpk_view


ctypedef struct Pass:
    const rffpk_problem *problem
    const rffpk_kernels *kernels
    const rffpk_rows *out
    const void *prepared
    size_t n
    size_t slot_rows
    size_t step  # from the numbers of the sums of a slot to those of the next
    size_t moments  # of a slot, numbers of `rffpk_sums`; two totals follow
    size_t excess
    size_t space
    char *workspace
    double *slots
    double *total  # the sums of the pass, with ...
    size_t n_moments  # ... so many numbers before the excess


cdef class Passes:
    cdef rffpk_problem problem
    cdef rffpk_rows out
    cdef rffpk_view *views
    cdef const rffpk_kernels *kernels
    cdef Pass given
    cdef rffpk_loop loop
    cdef readonly object dtype
    cdef object arrays
    cdef object total
    cdef double *result  # what `total` holds: the numbers of `rffpk_sums`
    cdef size_t n_moments
    cdef void *prepared

    cdef int allocate(self, int n_threads) except -1
    cdef int clear(self) except -1
    cdef int run(self) except -1
    cdef int begin_from(self, carry) except -1
    cdef tuple sums(self)
