# cython: language_level=3, freethreading_compatible=True
# cython: cdivision=True
"""Exact kernels: weights from inner products, and products of few vectors with a large matrix."""
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.string cimport memset

from rffpk._core.headers cimport *
from rffpk._core._runtime cimport (
    aligned, check_centroids, check_ends, check_indices, data, filled, kernels_for, padded,
    share_items, threads_for,
)

import numpy as np


# Costs in multiply-adds of a dense product, as in _pass.pyx:
cdef double WEIGHT_WORK = 25  # the weight of a row at a centroid, from their inner product
cdef double READ_WORK = 8  # a number of the large matrix of a skinny product, read from memory


ctypedef struct Weighing:
    const rffpk_problem *problem
    const rffpk_gram *gram
    const rffpk_kernels *kernels
    size_t n
    size_t space
    char *workspace
    double *totals


def weigh_products(products, diagonal, squares, weight, rule, double s, int n_threads, *,
                   weights=None, labels=None):
    """Compute the weights of rows from their inner products with the centroids. The NumPy twin,
    `rffpk._reference.weigh_products`, describes the parameters and results.

    Returns
    -------
    weights : array (k, n)
    soft, hard : float
        The sums over the rows of the power means and of the least distances.
    """
    cdef rffpk_problem problem
    cdef rffpk_gram gram
    cdef Weighing weighing
    cdef size_t k = products.shape[0], n = products.shape[1]
    cdef const rffpk_kernels *kernels = kernels_for(products.dtype)
    dtype = products.dtype
    if rule not in (RFFPK_POWER, RFFPK_HARD):
        raise NotImplementedError(f"no weights from products by rule {rule}")
    check_centroids(k, dtype)
    weights = np.empty_like(products) if weights is None else weights
    gram.products = data(products, "products", dtype, (k, n))
    gram.diagonal = data(diagonal, "diagonal", dtype, (n,))
    gram.squares = data(squares, "squares", dtype, (k,))
    gram.weights = filled(weights, "weights", dtype, (k, n))
    gram.labels = <int32_t *>filled(labels, "labels", np.int32, (n,))
    memset(&problem, 0, sizeof(problem))
    problem.k = k
    problem.rule = <rffpk_rule><int>rule
    problem.s = s
    problem.stages = RFFPK_ALL_STAGES
    problem.weight = NULL if weight is None else data(weight, "weight", dtype, (n,))
    cdef size_t n_slots = (n + RFFPK_SLOT_ROWS - 1) // RFFPK_SLOT_ROWS
    n_threads = threads_for(n_threads, n_slots, WEIGHT_WORK * n * k)
    cdef size_t space = padded(kernels.workspace_bytes(&problem))
    workspace_memory = np.empty(n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
    totals_memory = np.empty((n_slots, 2))
    weighing = Weighing(
        &problem, &gram, kernels, n, space, <char *>aligned(workspace_memory),
        <double *>filled(totals_memory, "totals", np.float64, (n_slots, 2)))
    share_items(weigh_slot, &weighing, n_slots, n_threads)
    soft, hard = totals_memory.sum(axis=0).tolist()
    return weights, soft, hard


cdef int weigh_slot(void *context, size_t slot, size_t thread, size_t buffer) noexcept nogil:
    cdef const Weighing *given = <Weighing *>context
    cdef size_t begin = slot * RFFPK_SLOT_ROWS
    return given.kernels.weigh(
        given.problem, given.gram, given.n, begin, min(begin + RFFPK_SLOT_ROWS, given.n),
        given.totals + 2 * slot, given.workspace + thread * given.space)


SKINNY_STRIDE = RFFPK_SKINNY_STRIDE


def empty_matrix(size_t lines, size_t columns, dtype):
    """Return an array for `skinny_product`, aligned and not initialized. The number of columns is
    rounded up to a multiple of SKINNY_STRIDE. The columns beyond `columns` are zero."""
    stride = (columns + RFFPK_SKINNY_STRIDE - 1) // RFFPK_SKINNY_STRIDE * RFFPK_SKINNY_STRIDE
    size = np.dtype(dtype).itemsize
    memory = np.empty(lines * stride * size + RFFPK_ALIGN, dtype=np.uint8)
    unaligned = -memory.__array_interface__["data"][0] % RFFPK_ALIGN
    matrix = memory[unaligned : unaligned + lines * stride * size].view(dtype)
    matrix = matrix.reshape(lines, stride)
    for begin in range(0, lines, 64):  # slow, because each line touches a new page of memory
        matrix[begin : begin + 64, columns:] = 0
        PyErr_CheckSignals()
    return matrix


ctypedef struct Product:
    const rffpk_kernels *kernels
    const void *packed
    const void *matrix
    void *out
    size_t lines
    size_t depth
    size_t stride
    size_t n
    size_t space
    char *workspace


def skinny_product(coefficients, matrix, out, int n_threads):
    """Compute out = coefficients @ matrix[:, :n]. The coefficients (m, depth) have few rows. The
    matrix (depth, stride) comes from `empty_matrix`, and out is (m, n). The bits do not depend on
    the number of threads."""
    cdef size_t lines = coefficients.shape[0], depth = coefficients.shape[1], n = out.shape[1]
    cdef size_t stride = matrix.shape[1]
    cdef const rffpk_kernels *kernels = kernels_for(coefficients.dtype)
    dtype = coefficients.dtype
    cdef const void *given = data(coefficients, "coefficients", dtype, (lines, depth))
    cdef const void *large = data(matrix, "matrix", dtype, (depth, stride))
    cdef void *found = filled(out, "out", dtype, (lines, n))
    if <uintptr_t>large % RFFPK_ALIGN or stride % RFFPK_SKINNY_STRIDE or n > stride:
        raise ValueError("matrix must be one of empty_matrix, with as many columns as out")
    if not (lines and depth and n):
        out[:] = 0
        return
    cdef Product product
    cdef size_t n_chunks = (n + RFFPK_SKINNY_STRIDE - 1) // RFFPK_SKINNY_STRIDE
    n_threads = threads_for(n_threads, n_chunks, <double>n * depth * max(lines, READ_WORK))
    cdef size_t space = padded(kernels.skinny_bytes(lines))
    packed_memory = np.empty(lines * depth * dtype.itemsize + RFFPK_ALIGN, dtype=np.uint8)
    workspace_memory = np.empty(n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
    cdef void *packed = aligned(packed_memory)
    with nogil:
        kernels.skinny_pack(given, lines, depth, packed)
    product = Product(
        kernels, packed, large, found, lines, depth, stride, n, space,
        <char *>aligned(workspace_memory))
    share_items(multiply_chunk, &product, n_chunks, n_threads)


cdef int multiply_chunk(void *context, size_t chunk, size_t thread, size_t buffer) noexcept nogil:
    cdef const Product *given = <Product *>context
    cdef size_t begin = chunk * RFFPK_SKINNY_STRIDE
    given.kernels.skinny(
        given.packed, given.matrix, given.lines, given.depth, given.stride, begin,
        min(begin + RFFPK_SKINNY_STRIDE, given.n), given.out, given.n,
        given.workspace + thread * given.space)
    return 0


ctypedef struct Lines:
    const rffpk_csr *given
    const rffpk_kernels *kernels
    size_t n


def csr_product(matrix, v, int n_threads):
    """Multiply a sparse matrix of SciPy, (n, m) in CSR, with a dense matrix (m, q) or a vector
    (m,) of equal dtype. The bits do not depend on the number of threads."""
    cdef rffpk_csr given
    cdef Lines context
    cdef const rffpk_kernels *kernels = kernels_for(matrix.dtype)
    cdef size_t n = matrix.shape[0], m = matrix.shape[1], size = len(matrix.data)
    cdef size_t q = v.shape[1] if v.ndim == 2 else 1
    if matrix.format != "csr":
        raise ValueError(f"matrix has the format {matrix.format!r}, must have 'csr'.")
    dtype = matrix.dtype
    columns = matrix.indices.astype(np.int32, copy=False)
    ends = matrix.indptr.astype(np.int64, copy=False)
    v, out = np.ascontiguousarray(v), np.empty((n, *v.shape[1:]), dtype=dtype)
    given.values = data(matrix.data, "matrix.data", dtype, (size,))
    given.columns = <const int32_t *>data(columns, "matrix.indices", np.int32, (size,))
    given.ends = <const int64_t *>data(ends, "matrix.indptr", np.int64, (n + 1,))
    check_indices(columns, "matrix.indices", m)
    check_ends(ends, "matrix.indptr", size)
    given.v = data(v, "v", dtype, (m, *v.shape[1:]))
    given.out = filled(out, "out", dtype, out.shape)
    given.q = q
    context = Lines(&given, kernels, n)
    cdef size_t n_slots = (n + RFFPK_SLOT_ROWS - 1) // RFFPK_SLOT_ROWS
    n_threads = threads_for(n_threads, n_slots, <double>size * q * READ_WORK)
    share_items(multiply_lines, &context, n_slots, n_threads)
    return out


cdef int multiply_lines(void *context, size_t slot, size_t thread, size_t buffer) noexcept nogil:
    cdef const Lines *one = <Lines *>context
    cdef size_t begin = slot * RFFPK_SLOT_ROWS
    one.kernels.csr(one.given, begin, min(begin + RFFPK_SLOT_ROWS, one.n))
    return 0
