# cython: language_level=3, freethreading_compatible=True
"""Functions for compiled packages; capi.pxd describes them."""
from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.math cimport isinf

from rffpk._core._pass cimport Passes
from rffpk._core._runtime cimport kernels_for
from rffpk._core.headers cimport RFFPK_CONTRACT, RFFPK_HARD, RFFPK_POWER, rffpk_kernels

import math

import numpy as np


cdef array_at(const void *first, dtype, tuple shape, int access=PyBUF_READ):
    """Return an array in memory of the caller; None for NULL."""
    if first == NULL:
        return None
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype, PyMemoryView_FromMemory(<char *>first, size, access))


cdef int fuzzy_pass(
    dtype, const void *x, const void *theta, const void *weight, size_t n, size_t d, size_t k,
    double s, int n_threads, void *memberships, double *sums, double *masses, double *objective,
) except -1:
    if n < 1 or d < 1 or k < 1:
        raise ValueError(f"n={n}, d={d}, k={k}: must be >= 1. Pass positive numbers.")
    if x == NULL or theta == NULL:
        raise ValueError("x and theta: must not be NULL. Pass pointers to arrays.")
    if not s < 0:
        raise ValueError(f"s={s}: must be < 0. Pass a negative exponent.")
    centroids = array_at(theta, dtype, (k, d)).astype(np.float64)
    shift = centroids.mean(axis=0).astype(dtype)  # rounding errors grow with distances from it
    cdef Passes passes = Passes(
        [array_at(x, dtype, (n, d))], [None], [shift], (centroids - shift).astype(dtype),
        np.ones(1), array_at(weight, dtype, (n,)), RFFPK_HARD if isinf(s) else RFFPK_POWER, s,
        None, None, None, 0)
    passes.out.memberships = memberships
    passes.allocate(n_threads)
    passes.clear()
    passes.run()
    N, G, _, _, soft, hard = passes.sums()
    if sums != NULL:
        array_at(sums, np.float64, (k, d), PyBUF_WRITE)[...] = N + np.outer(G, shift)
    if masses != NULL:
        array_at(masses, np.float64, (k,), PyBUF_WRITE)[...] = G
    if objective != NULL:
        objective[0] = hard if isinf(s) else soft
    return 0


cdef int fuzzy_pass_f32(
    const float *x, const float *theta, const float *weight, size_t n, size_t d, size_t k,
    double s, int n_threads, float *memberships, double *sums, double *masses, double *objective,
) except -1 nogil:
    with gil:
        return fuzzy_pass(
            np.float32, x, theta, weight, n, d, k, s, n_threads, memberships, sums, masses,
            objective)


cdef int fuzzy_pass_f64(
    const double *x, const double *theta, const double *weight, size_t n, size_t d, size_t k,
    double s, int n_threads, double *memberships, double *sums, double *masses, double *objective,
) except -1 nogil:
    with gil:
        return fuzzy_pass(
            np.float64, x, theta, weight, n, d, k, s, n_threads, memberships, sums, masses,
            objective)


cdef const rffpk_kernels *tile_functions(size_t bytes_of_real, int contract) except NULL:
    if contract != RFFPK_CONTRACT:
        raise ImportError(
            f"compiled with contract {contract} of rffpk, this is {RFFPK_CONTRACT}: compile again")
    if bytes_of_real not in (4, 8):
        raise ValueError(
            f"bytes_of_real={bytes_of_real}: must be 4 or 8. Pass the size of float or double.")
    return kernels_for(np.dtype(f"f{bytes_of_real}"))
