# cython: language_level=3, freethreading_compatible=True
# cython: cdivision=True
"""Slots and buffers of the compiled pass; the computation itself is in C, and so are the threads.

Slots, blocks of a fixed number of rows, are computed in any order and merged in the order of their
rows. The number of buffers for sums that wait for their turn grows with the number of threads, and
so does memory; the bits of a result do not depend on it.
"""
from libc.math cimport log2
from libc.stdint cimport int8_t, int32_t, uintptr_t
from libc.stdlib cimport free, malloc

import os
import threading
from contextvars import copy_context
from sys import is_finalizing

import numpy as np


POWER, HARD, TYPICALITY = RFFPK_POWER, RFFPK_HARD, RFFPK_TYPICALITY
SLOT_ROWS = RFFPK_SLOT_ROWS
MOST_NEIGHBOURS = RFFPK_MOST_NEIGHBOURS
STAGES = {
    "load": RFFPK_LOAD,
    "project": RFFPK_PROJECT,
    "sincos": RFFPK_SINCOS,
    "distances": RFFPK_DISTANCES,
    "weights": RFFPK_WEIGHTS,
    "sums": RFFPK_SUMS,
}

cdef const rffpk_variant *variant = NULL  # the one in use


def isa_levels():
    """Names of the compiled variants that this processor runs, narrowest first."""
    return [
        rffpk_variant_at(i).name.decode()
        for i in range(rffpk_n_variants())
        if rffpk_variant_at(i).runs()
    ]


def isa():
    """Name of the variant in use."""
    return variant.name.decode()


def use_isa(str name):
    """Use another of `isa_levels()` from now on; returns the name of the variant used before.

    For tests: calls that are running in other threads may use either.
    """
    global variant
    before = variant.name.decode() if variant != NULL else None
    if name not in isa_levels():
        raise ValueError(f"isa={name!r}, must be one of {isa_levels()}")
    for i in range(rffpk_n_variants()):
        if rffpk_variant_at(i).name.decode() == name:
            variant = rffpk_variant_at(i)
    return before


def _level_of_environment():
    """The widest level, or the widest up to the one that RFFPK_ISA names."""
    levels = isa_levels()
    cap = os.environ.get("RFFPK_ISA")
    if not cap:
        return levels[-1]
    every = [rffpk_variant_at(i).name.decode() for i in range(rffpk_n_variants())]
    if cap not in every:
        raise ImportError(
            f"RFFPK_ISA={cap!r} names no compiled level; they are: {', '.join(every)}")
    allowed = set(every[: every.index(cap) + 1])
    return [level for level in levels if level in allowed][-1]


use_isa(_level_of_environment())


def _after_fork():
    rffpk_threads_after_fork()


if rffpk_threads_begin():
    raise MemoryError
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


cdef int run_loop(rffpk_loop *loop) except -1:
    """Run a loop; returns the status of an item that is not 0, else 0."""
    loop.signals = threading.get_ident() == threading.main_thread().ident
    return rffpk_run_loop(loop)


cdef double thread_work = RFFPK_THREAD_WORK


def use_thread_work(double work):
    """Set the multiply-adds that each thread of a loop must have; returns those before.

    For tests, which want threads in small loops.
    """
    global thread_work
    before, thread_work = thread_work, work
    return before


cdef int threads_for(int n_threads, size_t n_items, double work) noexcept:
    """At most `n_threads`, for a loop of so many items and multiply-adds."""
    if work < n_threads * thread_work:
        n_threads = <int>(work / thread_work)
    return <int>max(1, min(n_threads, n_items))


cdef int call_item(void *calls, size_t item, size_t thread, size_t buffer) noexcept nogil:
    with gil:
        function, items, contexts, results, errors = <tuple>calls
        try:
            results[item] = contexts[item].run(function, items[item])
        except BaseException as error:
            errors[item] = error
            return 1
    return 0


def call_all(function, list items, int n_threads):
    """[function(item) for item in items], by threads, with the context variables of the caller,
    such as NumPy's handling of floating-point errors.

    An interrupt is raised in preference to an error, and else the error of the first item.
    """
    cdef rffpk_loop loop
    if is_finalizing():  # then threads of Python do not run any more
        n_threads = 1
    contexts = [copy_context() for _ in items]
    results, errors = [None] * len(items), [None] * len(items)
    calls = function, items, contexts, results, errors
    loop.run = call_item
    loop.merge = NULL
    loop.context = <void *>calls
    loop.n_items = len(items)
    loop.n_threads = max(1, min(n_threads, len(items)))
    loop.n_buffers = 0
    if run_loop(&loop):
        raised = [error for error in errors if error is not None]
        raise next((error for error in raised if not isinstance(error, Exception)), raised[0])
    return results


cdef const rffpk_kernels *kernels_for(dtype) except NULL:
    if dtype == np.float32:
        return variant.f32
    if dtype == np.float64:
        return variant.f64
    raise TypeError(f"dtype must be float32 or float64, not {dtype}")


cdef int check_centroids(size_t k, dtype, str name="n_clusters") except -1:
    cdef size_t most = RFFPK_MOST_CENTROIDS_F64
    if dtype == np.float32:
        most = RFFPK_MOST_CENTROIDS_F32
    if k > most:
        raise ValueError(f"{name} == {k}, must be <= {most} for {np.dtype(dtype)}")
    return 0


cdef const void *data(array, str name, dtype, tuple shape) except? NULL:
    """The address of an array, after a check that C can read it as what its name says."""
    flags = array.flags
    if array.dtype != dtype or array.shape != shape or not (flags.c_contiguous and flags.aligned):
        raise ValueError(
            f"{name} must be an aligned C-contiguous {np.dtype(dtype)} array of shape {shape}, "
            f"not {array.dtype} {array.shape}"
        )
    return <const void *><uintptr_t>array.__array_interface__["data"][0]


cdef void *filled(array, str name, dtype, tuple shape) except? NULL:
    """The same for an array that C fills; NULL for None."""
    if array is None:
        return NULL
    if not array.flags.writeable:
        raise ValueError(f"{name} must be writeable")
    return <void *>data(array, name, dtype, shape)


cdef void *aligned(array) noexcept:
    cdef uintptr_t address = array.__array_interface__["data"][0]
    return <void *>((address + RFFPK_ALIGN - 1) // RFFPK_ALIGN * RFFPK_ALIGN)


cdef size_t padded(size_t n_bytes) noexcept:
    return (n_bytes + RFFPK_ALIGN - 1) // RFFPK_ALIGN * RFFPK_ALIGN


def fused_pass(xs, omegas, shifts, theta, alpha, weight, rule, double s, int n_threads, *,
               structures=None, landmarks=None, eta=None, double m=0, labels=None,
               memberships=None, distances=None, nearest=None, second=None, features=None,
               neighbours=None, neighbour_weights=None, unsigned stages=RFFPK_ALL_STAGES):
    """One pass over the rows. Parameters and results are those of the NumPy twin,
    `rffpk._reference.fused_pass`, and one more parameter.

    Parameters
    ----------
    stages : int
        The sum of those STAGES that run; a benchmark omits some to measure the others.

    Returns
    -------
    N, G, Q, E : float64 arrays (k, F), (k,), (k, L), (k,)
    soft, hard : float
        The sums over the rows of the power means and of the least distances.
    """
    cdef rffpk_problem problem
    cdef rffpk_rows out
    cdef size_t n = xs[0].shape[0], n_views = len(xs), k = theta.shape[0], F = theta.shape[1], i
    cdef const rffpk_kernels *kernels = kernels_for(theta.dtype)
    dtype = theta.dtype
    check_centroids(k, dtype)
    wanted = (labels, memberships, distances, nearest, second, features, neighbours,
              neighbour_weights)
    if stages != RFFPK_ALL_STAGES and any(array is not None for array in wanted):
        raise ValueError("stages must be all of them where results of rows are wanted")
    none = [None] * n_views
    structures, landmarks = structures or none, landmarks or none
    cdef size_t n_near = sum(each.n_neighbours for each in landmarks if each is not None)
    cdef rffpk_view *views = <rffpk_view *>malloc(n_views * sizeof(rffpk_view))
    if views == NULL:
        raise MemoryError
    try:
        for i in range(n_views):
            fill_view(&views[i], i, xs[i], omegas[i], shifts[i], structures[i], landmarks[i], n,
                      dtype)
        if sum(len(shift) for shift in shifts) != F:
            raise ValueError(f"theta has {F} columns, the views have other features")
        problem.views = views
        problem.n_views = n_views
        problem.F = F
        problem.theta = data(theta, "theta", dtype, (k, F))
        problem.alpha = <const double *>data(alpha, "alpha", np.float64, (n_views,))
        problem.stages = stages
        fill_rule(&problem, rule, s, eta, m, k)
        problem.weight = NULL if weight is None else data(weight, "weight", dtype, (n,))
        out.labels = <int32_t *>filled(labels, "labels", np.int32, (n,))
        out.memberships = filled(memberships, "memberships", dtype, (n, k))
        out.distances = filled(distances, "distances", dtype, (n, k))
        out.nearest = filled(nearest, "nearest", dtype, (n,))
        out.second = filled(second, "second", dtype, (n,))
        out.features = filled(features, "features", dtype, (n, F))
        out.neighbours = <int32_t *>filled(neighbours, "neighbours", np.int32, (n, n_near))
        out.neighbour_weights = filled(
            neighbour_weights, "neighbour_weights", dtype, (n, n_near))
        sums = run_slots(&problem, kernels, n, n_threads, &out)
    finally:
        free(views)
    moments = sums[: k * (F + n_views + 1)].reshape(k, F + n_views + 1)
    excess = sums[moments.size : moments.size + k]
    soft, hard = sums[-2:].tolist()
    return moments[:, :F], moments[:, -1], moments[:, F:-1], excess, soft, hard


cdef int fill_view(rffpk_view *view, size_t i, x, omega, shift, structure, landmarks, size_t n,
                   dtype) except -1:
    cdef size_t d = x.shape[1], D = 0, p, width = d
    view.omega = NULL
    if omega is not None:
        D = omega.shape[1]
        view.omega = data(omega, f"omegas[{i}]", dtype, (d, D))
        if D == 0:
            raise ValueError(f"omegas[{i}] must have at least one column")
        width = 2 * D
    if structure is not None:
        if omega is not None:
            raise ValueError(f"omegas[{i}] must be None where structures[{i}] is not")
        signs, view.scale, D = structure
        width = 2 * D
    view.d = d
    view.D = D
    view.landmarks.points = NULL
    if landmarks is not None:
        if D:
            raise ValueError(f"omegas[{i}] must be None where landmarks[{i}] is not")
        fill_landmarks(&view.landmarks, i, landmarks, d, dtype)
        view.d = width = landmarks.coordinates.shape[1]
    view.x = data(x, f"xs[{i}]", dtype, (n, d))
    view.shift = data(shift, f"shifts[{i}]", dtype, (width,))
    view.signs = NULL
    if structure is not None:
        p = signs.shape[-1]
        if D == 0 or p < max(d, 2) or p & (p - 1):
            raise ValueError(f"structures[{i}] must have a power of two >= {max(d, 2)} columns")
        view.p = p
        view.signs = <const int8_t *>data(
            signs, f"structures[{i}]", np.int8, ((D + p - 1) // p, 3, p))
    return 0


cdef int fill_landmarks(rffpk_landmarks *marks, size_t i, landmarks, size_t d, dtype) except -1:
    cdef size_t n = landmarks.points.shape[0], q = landmarks.coordinates.shape[1]
    check_centroids(n, dtype, f"landmarks[{i}]: number of points")
    if not 1 <= landmarks.n_neighbours <= min(n, RFFPK_MOST_NEIGHBOURS):
        raise ValueError(f"landmarks[{i}].n_neighbours == {landmarks.n_neighbours}, must be from 1 "
                         f"to {min(n, RFFPK_MOST_NEIGHBOURS)}")
    marks.points = data(landmarks.points, f"landmarks[{i}].points", dtype, (n, d))
    marks.coordinates = data(
        landmarks.coordinates, f"landmarks[{i}].coordinates", dtype, (n, q))
    marks.n_landmarks = n
    marks.d = d
    marks.n_neighbours = landmarks.n_neighbours
    marks.scale = landmarks.scale
    marks.least_weight = landmarks.least_weight
    return 0


cdef int fill_rule(rffpk_problem *problem, rule, double s, eta, double m, size_t k) except -1:
    problem.k = k
    problem.rule = <rffpk_rule><int>rule
    problem.s = s
    problem.eta = NULL
    problem.m = m
    if rule == RFFPK_TYPICALITY:
        if eta is None:
            raise ValueError("eta must be an array where rule is TYPICALITY")
        problem.eta = <const double *>data(eta, "eta", np.float64, (k,))
        if not m > 1:
            raise ValueError(f"m == {m}, must be > 1")
    return 0


ctypedef struct Pass:
    const rffpk_problem *problem
    const rffpk_kernels *kernels
    const rffpk_rows *out
    const void *prepared
    size_t n
    size_t width  # numbers in the sums of a slot: moments, excess, totals of `rffpk_sums`
    size_t moments
    size_t space
    char *workspace
    double *slots
    double *total


cdef run_slots(const rffpk_problem *problem, const rffpk_kernels *kernels, size_t n,
               int n_threads, const rffpk_rows *out):
    """Sums of all slots, one array: moments, excess, totals of `rffpk_sums`."""
    cdef Pass pass_
    cdef rffpk_loop loop
    cdef size_t moments = problem.k * (problem.F + problem.n_views + 1)
    cdef size_t width = moments + problem.k + 2
    loop.n_items = (n + RFFPK_SLOT_ROWS - 1) // RFFPK_SLOT_ROWS
    loop.n_threads = min(threads_for(n_threads, loop.n_items, n * row_work(problem)),
                         max(1, RFFPK_BUFFER_BYTES // (8 * width)))
    loop.n_buffers = max(
        1, min(RFFPK_BUFFERS_PER_THREAD, RFFPK_BUFFER_BYTES_PER_THREAD // (8 * width)))
    loop.n_buffers = 1 if loop.n_threads == 1 else loop.n_threads * loop.n_buffers

    cdef size_t space = padded(kernels.workspace_bytes(problem))
    prepared_memory = np.empty(kernels.prepared_bytes(problem) + RFFPK_ALIGN, dtype=np.uint8)
    # zeros where stages are omitted, so that the others do not compute with NaN
    allocate = np.empty if problem.stages == RFFPK_ALL_STAGES else np.zeros
    workspace_memory = allocate(loop.n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
    slot_memory = np.empty((loop.n_buffers, width))
    total_memory = np.zeros(width)
    cdef void *prepared = aligned(prepared_memory)
    with nogil:
        kernels.prepare(problem, prepared)
    pass_ = Pass(
        problem, kernels, out, prepared, n, width, moments, space,
        <char *>aligned(workspace_memory),
        <double *>filled(slot_memory, "slots", np.float64, (loop.n_buffers, width)),
        <double *>filled(total_memory, "total", np.float64, (width,)))
    loop.run = run_slot
    loop.merge = merge_slot
    loop.context = &pass_
    if run_loop(&loop) != RFFPK_OK:
        raise NotImplementedError(f"the compiled pass does not implement rule {problem.rule}")
    return total_memory


cdef double row_work(const rffpk_problem *problem) noexcept:
    """About the time of a row, in those of multiply-adds: a sine with its cosine takes the time of
    ten, and a power of a distance that of twenty."""
    cdef double work = 2 * problem.k * <double>problem.F + 20 * problem.k
    cdef const rffpk_view *view
    cdef size_t i
    for i in range(problem.n_views):
        view = &problem.views[i]
        if view.landmarks.points != NULL:
            work += <double>view.landmarks.n_landmarks * view.landmarks.d
        elif view.signs != NULL:
            work += view.D * (10 + 3 * log2(view.p))
        else:
            work += view.D * (10. + view.d)
        work += 4 * view.d
    return work


cdef int run_slot(void *context, size_t slot, size_t thread, size_t buffer) noexcept nogil:
    cdef const Pass *given = <Pass *>context
    cdef rffpk_sums sums
    cdef size_t begin = slot * RFFPK_SLOT_ROWS
    sums.moments = given.slots + buffer * given.width
    sums.excess = sums.moments + given.moments
    sums.totals = sums.excess + given.problem.k
    return given.kernels.run(
        given.problem, given.prepared, begin, min(begin + RFFPK_SLOT_ROWS, given.n), &sums,
        given.out, given.workspace + thread * given.space)


cdef void merge_slot(void *context, size_t buffer) noexcept nogil:
    cdef const Pass *given = <Pass *>context
    cdef size_t i, width = given.width
    cdef const double *sums = given.slots + buffer * width
    cdef double *total = given.total
    for i in range(width):
        total[i] += sums[i]


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
    """Weights of rows from their inner products with the centroids. Parameters and results are
    those of the NumPy twin, `rffpk._reference.weigh_products`.

    Returns
    -------
    weights : array (k, n)
    soft, hard : float
        The sums over the rows of the power means and of the least distances.
    """
    cdef rffpk_problem problem
    cdef rffpk_gram gram
    cdef Weighing weighing
    cdef rffpk_loop loop
    cdef size_t k = products.shape[0], n = products.shape[1]
    cdef const rffpk_kernels *kernels = kernels_for(products.dtype)
    dtype = products.dtype
    check_centroids(k, dtype)
    weights = np.empty_like(products) if weights is None else weights
    gram.products = data(products, "products", dtype, (k, n))
    gram.diagonal = data(diagonal, "diagonal", dtype, (n,))
    gram.squares = data(squares, "squares", dtype, (k,))
    gram.weights = filled(weights, "weights", dtype, (k, n))
    gram.labels = <int32_t *>filled(labels, "labels", np.int32, (n,))
    problem.views = NULL
    problem.n_views = problem.F = 0
    problem.k = k
    problem.rule = <rffpk_rule><int>rule
    problem.s = s
    problem.weight = NULL if weight is None else data(weight, "weight", dtype, (n,))
    loop.n_items = (n + RFFPK_SLOT_ROWS - 1) // RFFPK_SLOT_ROWS
    loop.n_threads = threads_for(n_threads, loop.n_items, 25. * n * k)
    loop.n_buffers = 0
    cdef size_t space = padded(kernels.workspace_bytes(&problem))
    workspace_memory = np.empty(loop.n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
    totals_memory = np.empty((loop.n_items, 2))
    weighing = Weighing(
        &problem, &gram, kernels, n, space, <char *>aligned(workspace_memory),
        <double *>filled(totals_memory, "totals", np.float64, (loop.n_items, 2)))
    loop.run = weigh_slot
    loop.merge = NULL
    loop.context = &weighing
    if run_loop(&loop):
        raise NotImplementedError(f"no weights from products by rule {rule}")
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
    """An array for `skinny_product`, aligned and not initialised. It is returned with more columns
    than were asked for, a multiple of SKINNY_STRIDE; those beyond `columns` are zero."""
    stride = (columns + RFFPK_SKINNY_STRIDE - 1) // RFFPK_SKINNY_STRIDE * RFFPK_SKINNY_STRIDE
    size = np.dtype(dtype).itemsize
    memory = np.empty(lines * stride * size + RFFPK_ALIGN, dtype=np.uint8)
    unaligned = -memory.__array_interface__["data"][0] % RFFPK_ALIGN
    matrix = memory[unaligned : unaligned + lines * stride * size].view(dtype)
    matrix = matrix.reshape(lines, stride)
    matrix[:, columns:] = 0
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
    """out = coefficients @ matrix[:, :n] for coefficients (m, depth) of few rows, a matrix
    (depth, stride) of `empty_matrix` and out (m, n). The bits do not depend on the threads."""
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
    cdef rffpk_loop loop
    loop.n_items = (n + RFFPK_SKINNY_STRIDE - 1) // RFFPK_SKINNY_STRIDE
    # a number of the matrix takes the time of eight multiply-adds to read
    loop.n_threads = threads_for(n_threads, loop.n_items, <double>n * depth * max(lines, 8))
    loop.n_buffers = 0
    cdef size_t space = padded(kernels.skinny_bytes(lines))
    packed_memory = np.empty(lines * depth * dtype.itemsize + RFFPK_ALIGN, dtype=np.uint8)
    workspace_memory = np.empty(loop.n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
    cdef void *packed = aligned(packed_memory)
    with nogil:
        kernels.skinny_pack(given, lines, depth, packed)
    product = Product(
        kernels, packed, large, found, lines, depth, stride, n, space,
        <char *>aligned(workspace_memory))
    loop.run = multiply_chunk
    loop.merge = NULL
    loop.context = &product
    run_loop(&loop)


cdef int multiply_chunk(void *context, size_t chunk, size_t thread, size_t buffer) noexcept nogil:
    cdef const Product *given = <Product *>context
    cdef size_t begin = chunk * RFFPK_SKINNY_STRIDE
    given.kernels.skinny(
        given.packed, given.matrix, given.lines, given.depth, given.stride, begin,
        min(begin + RFFPK_SKINNY_STRIDE, given.n), given.out, given.n,
        given.workspace + thread * given.space)
    return 0


def vecmath(str name, array, out=None):
    """"sincos" of quarter turns (2, n), "log2" or "exp2" of an array (n,), as the pass computes
    them."""
    which = ("sincos", "log2", "exp2").index(name)
    shape = array.shape if which else (2, *array.shape)
    out = np.empty(shape, dtype=array.dtype) if out is None else out
    kernels_for(array.dtype).vecmath(
        which, data(array, "array", array.dtype, array.shape),
        filled(out, "out", array.dtype, shape), array.size)
    return out
