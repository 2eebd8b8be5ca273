# cython: language_level=3
"""Functions of _runtime.pyx for the other modules of the core."""
from rffpk._core.headers cimport rffpk_kernels, rffpk_loop, rffpk_number, run_item


cdef int run_loop(rffpk_loop *loop) except -1
cdef int share_items(run_item run, void *context, size_t n_items, int n_threads,
                     bint calls_python=*) except -1
cdef int threads_for(int n_threads, size_t n_items, double work) noexcept
cdef const rffpk_kernels *kernels_for(dtype) except NULL
cdef int check_centroids(size_t k, dtype, str name=*) except -1
cdef const void *data(array, str name, dtype, tuple shape) except? NULL
cdef const void *dense_rows(x, str name, dtype, size_t n, rffpk_number *numbers) except? NULL
cdef void *filled(array, str name, dtype, tuple shape) except? NULL
cdef int check_indices(array, str name, size_t n) except -1
cdef int check_ends(array, str name, size_t n) except -1
cdef void *aligned(array) except? NULL
cdef size_t padded(size_t n_bytes) noexcept
