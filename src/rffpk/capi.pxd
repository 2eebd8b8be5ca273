# cython: language_level=3
"""The functions of the package for compiled code: `from rffpk.capi cimport fuzzy_pass_f64`.

contract.h, in the folder that `rffpk.get_include()` names, describes the types.
"""
from rffpk._core.headers cimport (
    RFFPK_ALIGN, RFFPK_ALL_STAGES, RFFPK_CONTRACT, RFFPK_HARD, RFFPK_OK, RFFPK_POWER, RFFPK_REAL,
    RFFPK_SLOT_ROWS, RFFPK_TYPICALITY, rffpk_kernels, rffpk_landmarks, rffpk_problem, rffpk_rows,
    rffpk_sums, rffpk_view,
)


# One pass over rows x (n, d), with centroids theta (k, d) and row weights p (n,). All arrays are in
# C order. `weight` may be NULL: all weights are one.
# With u_ij = d_ij^s / sum_l d_il^s, d_ij = ||x_i - theta_j||^2 and m = 1 - 1/s, a pass fills
#     memberships (n, k): u_ij.
#     sums (k, d): sum_i p_i u_ij^m x_i.
#     masses (k,): sum_i p_i u_ij^m.
#     objective: sum_ij p_i u_ij^m d_ij.
# Each of the four pointers may be NULL: the result is then left out.
# s is below 0. At minus infinity u_ij is 1 for the nearest centroid, and 0 for all other centroids.
# The bits do not depend on n_threads. The functions take the lock of the interpreter (GIL), and
# release it during the computation. On errors they return -1 with an exception set. They do not
# check whether numbers are finite.
cdef int fuzzy_pass_f32(
    const float *x, const float *theta, const float *weight, size_t n, size_t d, size_t k,
    double s, int n_threads, float *memberships, double *sums, double *masses, double *objective,
) except -1 nogil
cdef int fuzzy_pass_f64(
    const double *x, const double *theta, const double *weight, size_t n, size_t d, size_t k,
    double s, int n_threads, double *memberships, double *sums, double *masses, double *objective,
) except -1 nogil

# The functions of the tile (contract.h) for numbers of 4 or 8 bytes, in the variant that is in use.
# `contract` is RFFPK_CONTRACT as compiled: any other value raises ImportError.
cdef const rffpk_kernels *tile_functions(size_t bytes_of_real, int contract) except NULL
