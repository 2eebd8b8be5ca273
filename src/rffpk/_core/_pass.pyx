# cython: language_level=3, freethreading_compatible=True
# cython: cdivision=True
"""Slots and buffers of the compiled pass. The computation and the threads are in C.

A slot is a block of a fixed number of rows. Slots are computed in any order, and merged in the
order of their rows. Sums that wait for the merge are in buffers. The number of buffers, and with it
the memory, grows with the number of threads. The bits of a result do not depend on it.
"""
from libc.math cimport ceil, log2
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rffpk._core.headers cimport *
from rffpk._core._runtime cimport (
    aligned, check_centroids, check_ends, check_indices, data, dense_rows, filled, kernels_for,
    padded, run_loop, threads_for,
)

import numpy as np


POWER, HARD, TYPICALITY, BOTH = RFFPK_POWER, RFFPK_HARD, RFFPK_TYPICALITY, RFFPK_BOTH
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


# The costs of the work on a row, in multiply-adds of a dense product. They only decide from which
# size on loops have several threads. The numbers in brackets were measured on one core of a Zen 5
# (AVX-512, float32, rows in memory), which has fast products.
cdef double LOAD_WORK = 4  # a number of x [36]
cdef double SINCOS_WORK = 10  # a sine with its cosine [32]
cdef double HADAMARD_WORK = 3  # a phase in one of the log2(p) stages of structured frequencies [5]
cdef double SPARSE_WORK = 2  # a multiply-add of an entry of a sparse row [not measured]
cdef double POWER_WORK = 20  # the power of a distance [61]


cdef class Passes:
    """Passes over fixed rows, with their buffers. The numbers in `theta`, `alpha` and `eta` may be
    overwritten between passes.

    Parameters: see `fused_pass`.
    """

    def __cinit__(self):
        self.views = NULL

    def __dealloc__(self):
        free(self.views)

    def __init__(self, xs, omegas, shifts, theta, alpha, weight, rule, double s, structures,
                 landmarks, eta, double m, unsigned stages=RFFPK_ALL_STAGES, present=None,
                 units=None, directions=None):
        cdef size_t n = xs[0].shape[0], n_views = len(xs), i
        cdef size_t k = theta.shape[0], F = theta.shape[1]
        dtype = theta.dtype
        self.kernels = kernels_for(dtype)
        check_centroids(k, dtype)
        none = [None] * n_views
        structures, landmarks, units = structures or none, landmarks or none, units or none
        self.views = <rffpk_view *>malloc(n_views * sizeof(rffpk_view))
        if self.views == NULL:
            raise MemoryError
        for i in range(n_views):
            fill_view(&self.views[i], i, xs[i], omegas[i], shifts[i], structures[i], landmarks[i],
                      n, dtype)
            set_unit(&self.views[i], i, units[i])
        if sum([len(shift) for shift in shifts]) != F:
            raise ValueError(f"theta has {F} columns, the views have other features")
        self.problem.views = self.views
        self.problem.n_views = n_views
        self.problem.F = F
        self.problem.theta = data(theta, "theta", dtype, (k, F))
        self.problem.alpha = <const double *>data(alpha, "alpha", np.float64, (n_views,))
        self.problem.stages = stages
        self.problem.present = NULL
        if present is not None:
            self.problem.present = <const uint8_t *>data(
                present, "present", np.uint8, (n, (n_views + 7) // 8))
        fill_rule(&self.problem, rule, s, eta, m, k)
        fill_directions(&self.problem, directions, dtype)
        self.problem.weight = NULL if weight is None else data(weight, "weight", dtype, (n,))
        self.given.n = n
        self.dtype = dtype
        # keeps the arrays of the pointers alive
        self.arrays = [
            xs, omegas, shifts, theta, alpha, weight, structures, landmarks, eta, present,
            directions]

    cdef void divide(self, int n_threads, size_t slot_rows, size_t width) noexcept:
        """Choose the slots, threads and buffers of a pass. The sums of a slot are `width` numbers.
        """
        cdef size_t n = self.given.n
        cdef rffpk_loop *loop = &self.loop
        loop.n_items = (n + slot_rows - 1) // slot_rows
        loop.n_threads = min(
            threads_for(n_threads, loop.n_items, n * row_work(&self.problem, n)),
            max(1, RFFPK_BUFFER_BYTES // (8 * width)))
        loop.n_buffers = max(
            1, min(RFFPK_BUFFERS_PER_THREAD, RFFPK_BUFFER_BYTES_PER_THREAD // (8 * width)))
        loop.n_buffers = 1 if loop.n_threads == 1 else loop.n_threads * loop.n_buffers
        loop.run = run_slot
        loop.merge = merge_slot
        loop.context = &self.given
        loop.calls_python = 0

    cdef int allocate(self, int n_threads) except -1:
        """Allocate the buffers."""
        cdef const rffpk_problem *problem = &self.problem
        cdef size_t n = self.given.n, moments = self.kernels.sums_numbers(problem)
        cdef size_t excess = problem.k if problem.present == NULL else problem.n_views
        cdef size_t width = moments + excess + 2
        cdef size_t step = padded(8 * width) // 8
        cdef size_t slot_rows = rows_of_slot(problem, n)
        cdef rffpk_loop *loop = &self.loop
        self.divide(n_threads, slot_rows, width)
        cdef size_t space = padded(self.kernels.workspace_bytes(problem))
        prepared = np.empty(self.kernels.prepared_bytes(problem) + RFFPK_ALIGN, dtype=np.uint8)
        # If a stage is omitted, zeros keep the remaining stages from computing with NaN.
        allocate = np.empty if problem.stages == RFFPK_ALL_STAGES else np.zeros
        workspace = allocate(loop.n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
        slots = np.empty(loop.n_buffers * step + RFFPK_ALIGN // 8)
        cdef double *first = <double *>aligned(slots)
        cdef size_t begin = first - <double *>filled(slots, "slots", np.float64, slots.shape)
        self.n_moments = problem.k * (problem.F + problem.n_views + rffpk_counts(problem))
        cdef size_t size = self.n_moments + excess + 2
        self.gathered = np.empty(width)
        self.total = self.gathered
        if sparse_columns(problem):  # `finish` reorders the sums, into the memory of a slot
            self.total = slots[begin : begin + size]
        self.result = <double *>filled(self.total, "total", np.float64, self.total.shape)
        self.prepared = aligned(prepared)
        self.given = Pass(
            problem, self.kernels, &self.out, self.prepared, n, slot_rows, width, step, moments,
            excess, space, <char *>aligned(workspace), first,
            <double *>filled(self.gathered, "gathered", np.float64, (width,)))
        self.buffers = prepared, workspace, slots
        return 0

    cdef int clear(self) except -1:
        """Set the sums to zero."""
        memset(self.given.total, 0, self.given.width * sizeof(double))
        return 0

    cdef int run(self) except -1:
        """Run one pass, and add its sums to the totals."""
        cdef bint apart = self.given.total != self.result  # `finish` must reorder the totals
        cdef size_t i
        with nogil:
            self.kernels.prepare(&self.problem, self.prepared)
        if run_loop(&self.loop) != RFFPK_OK:
            raise NotImplementedError(
                f"the compiled pass does not implement rule {self.problem.rule}")
        if apart:
            self.kernels.finish(&self.problem, self.given.total, self.result)
            for i in range(self.problem.k + 2):
                self.result[self.n_moments + i] = self.given.total[self.given.moments + i]
        return 0

    cdef tuple sums(self):
        """Return the sums of the last pass, like `fused_pass`. No pass may follow."""
        self.buffers = None
        if self.total is not self.gathered:
            self.gathered = None
            self.total = self.total.copy()  # lets the memory of the slots go
        return self.parts()

    cdef tuple parts(self):
        cdef size_t k = self.problem.k, F = self.problem.F, end = F + self.problem.n_views
        cdef size_t moments = self.n_moments, totals = moments + self.given.excess
        table = self.total[:moments].reshape(k, end + rffpk_counts(&self.problem))
        counts = table[:, end] if self.problem.present == NULL else table[:, end:]
        soft, hard = self.total[totals:].tolist()
        return table[:, :F], counts, table[:, F:end], self.total[moments:totals], soft, hard

    cdef int begin_from(self, carry) except -1:
        """Set the sums to `carry`, the sums of another pass."""
        cdef size_t k = self.problem.k, F = self.problem.F
        if self.total is self.gathered:
            for part, before in zip(self.parts()[:4], carry):
                part[...] = before
        else:
            N, G, Q, E = carry[:4]
            lines = self.gathered[: self.given.moments].reshape(F + 2, -1)[:, :k]
            lines[:F] = N.T + np.outer(self.arrays[2][0], G)
            lines[F], lines[F + 1] = Q[:, 0], G
            self.gathered[self.given.moments :][:k] = E
        self.gathered[len(self.gathered) - 2 :] = carry[4:]
        return 0


def fused_pass(xs, omegas, shifts, theta, alpha, weight, rule, double s, int n_threads, *,
               structures=None, landmarks=None, eta=None, double m=0, labels=None,
               memberships=None, distances=None, nearest=None, second=None, features=None,
               neighbours=None, neighbour_weights=None, carry=None, present=None,
               units=None, directions=None, unsigned stages=RFFPK_ALL_STAGES):
    """Run one pass over the rows.

    The NumPy twin, `rffpk._reference.fused_pass`, describes the parameters and results. With
    `carry` the sums have the bits of one pass over all rows, the earlier rows and these rows. This
    holds if the number of earlier rows is a multiple of SLOT_ROWS.

    Parameters
    ----------
    stages : int
        The sum of the STAGES that run. A benchmark omits stages to measure the remaining stages.

    Returns
    -------
    N, G, Q, E : float64 arrays (k, F), (k,), (k, L), (k,); with `present` G and E are (k, L), (L,)
    soft, hard : float
        The sums over the rows of the power means and of the least distances.
    """
    cdef Passes passes = Passes(
        xs, omegas, shifts, theta, alpha, weight, rule, s, structures, landmarks, eta, m, stages,
        present, units, directions)
    cdef rffpk_rows *out = &passes.out
    dtype, n, k, F = theta.dtype, len(xs[0]), len(theta), theta.shape[1]
    wanted = (labels, memberships, distances, nearest, second, features, neighbours,
              neighbour_weights)
    if directions is not None and (memberships is not None or distances is not None):
        raise ValueError("directions must be None where memberships or distances are wanted")
    if stages != RFFPK_ALL_STAGES and any([array is not None for array in wanted]):
        raise ValueError("stages must be all of them where results of rows are wanted")
    n_near = sum([each.n_neighbours for each in landmarks or () if each is not None])
    out.labels = <int32_t *>filled(labels, "labels", np.int32, (n,))
    out.memberships = filled(memberships, "memberships", dtype, (n, k))
    out.distances = filled(distances, "distances", dtype, (n, k))
    out.nearest = filled(nearest, "nearest", dtype, (n,))
    out.second = filled(second, "second", dtype, (n,))
    out.features = filled(features, "features", dtype, (n, F))
    out.neighbours = <int32_t *>filled(neighbours, "neighbours", np.int32, (n, n_near))
    out.neighbour_weights = filled(neighbour_weights, "neighbour_weights", dtype, (n, n_near))
    passes.allocate(n_threads)
    passes.clear()
    if carry is not None:
        passes.begin_from(carry)
    passes.run()
    return passes.sums()


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
    fill_rows(view, i, x, n, dtype)
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


cdef int fill_rows(rffpk_view *view, size_t i, x, size_t n, dtype) except -1:
    view.indptr = NULL
    view.indices = NULL
    view.numbers = RFFPK_REAL
    if not hasattr(x, "indptr"):
        view.x = dense_rows(x, f"xs[{i}]", dtype, n, &view.numbers)
        if view.numbers != RFFPK_REAL and view.landmarks.points != NULL:
            raise ValueError(f"xs[{i}] has small numbers, must be {dtype}")
        return 0
    if view.landmarks.points != NULL:
        raise ValueError(f"xs[{i}] must not be sparse where landmarks[{i}] is not None")
    if len(x) != n:
        raise ValueError(f"xs[{i}] has {len(x)} rows, must have {n}")
    entries = (len(x.data),)
    view.x = data(x.data, f"xs[{i}].data", dtype, entries)
    view.indices = <const int32_t *>data(x.indices, f"xs[{i}].indices", np.int32, entries)
    view.indptr = <const int64_t *>data(x.indptr, f"xs[{i}].indptr", np.int64, (n + 1,))
    if view.indptr[n] != len(x.data):
        raise ValueError(f"xs[{i}] has {len(x.data)} entries, its rows have {view.indptr[n]}")
    check_indices(x.indices, f"xs[{i}].indices", x.shape[1])
    check_ends(x.indptr, f"xs[{i}].indptr", len(x.data))
    return 0


cdef int set_unit(rffpk_view *view, size_t i, unit) except -1:
    view.unit = bool(unit)
    if view.unit and (view.indptr != NULL or view.landmarks.points != NULL):
        raise ValueError(f"units[{i}] must be False where rows are sparse or have landmarks")
    return 0


cdef int fill_landmarks(rffpk_landmarks *marks, size_t i, landmarks, size_t d, dtype) except -1:
    cdef size_t n = landmarks.points.shape[0], q = landmarks.coordinates.shape[1]
    check_centroids(n, dtype, f"landmarks[{i}]: number of points")
    if not 1 <= landmarks.n_neighbours <= min(n, RFFPK_MOST_NEIGHBOURS):
        raise ValueError(f"landmarks[{i}].n_neighbours={landmarks.n_neighbours}: must be from 1 "
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
        n_eta = k if problem.present == NULL else problem.n_views
        problem.eta = <const double *>data(eta, "eta", np.float64, (n_eta,))
        if not m > 1:
            raise ValueError(f"m={m}: must be > 1")
    return 0


cdef int fill_directions(rffpk_problem *problem, directions, dtype) except -1:
    problem.basis = problem.coordinates = NULL
    problem.q = 0
    if directions is None:
        return 0
    if not (problem.n_views == 1 and problem.alpha[0] == 1 and problem.present == NULL
            and problem.views.indptr == NULL and problem.k >= RFFPK_ONE_HOT_CLUSTERS
            and (problem.rule == RFFPK_HARD or problem.rule == RFFPK_BOTH)):
        raise ValueError("directions must be None but for the hard rule, many centroids and one "
                         "dense view whose weight is 1")
    basis, coordinates, problem.reach = directions
    cdef size_t q = basis.shape[0]
    problem.q = q
    problem.basis = data(basis, "directions[0]", dtype, (q, problem.F))
    problem.coordinates = data(coordinates, "directions[1]", dtype, (problem.k, q + 1))
    return 0


cdef double mean_entries(const rffpk_view *view, size_t n) noexcept:
    """Return the mean number of entries of a sparse row."""
    return view.indptr[n] / <double>max(n, 1)


cdef bint sparse_columns(const rffpk_problem *problem) noexcept:
    """Whether the features are the columns of sparse rows."""
    return problem.n_views == 1 and problem.views.indptr != NULL and problem.views.D == 0


cdef size_t rows_of_slot(const rffpk_problem *problem, size_t n) noexcept:
    """Return the number of rows of a slot. The sums of every slot are set to zero and merged. For
    sparse rows a slot has RFFPK_SLOT_ENTRIES entries for each column, so that this costs little."""
    if not sparse_columns(problem):
        return RFFPK_SLOT_ROWS
    cdef double entries = RFFPK_SLOT_ROWS * max(mean_entries(problem.views, n), 1e-3)
    return RFFPK_SLOT_ROWS * <size_t>max(1, min(
        ceil(RFFPK_SLOT_ENTRIES * <double>problem.F / entries), n // RFFPK_SLOT_ROWS + 1))


cdef double row_work(const rffpk_problem *problem, size_t n) noexcept:
    """Estimate the work on a row, in multiply-adds."""
    cdef double features = problem.F
    if sparse_columns(problem):
        features = SPARSE_WORK * mean_entries(problem.views, n)
    cdef double work = problem.k * (2 * features + POWER_WORK)  # distances and sums; weights
    cdef const rffpk_view *view
    cdef size_t i
    for i in range(problem.n_views):
        view = &problem.views[i]
        if view.indptr != NULL and view.signs == NULL:
            work += view.D * (SINCOS_WORK + SPARSE_WORK * mean_entries(view, n))
            continue
        if view.landmarks.points != NULL:
            work += <double>view.landmarks.n_landmarks * view.landmarks.d
        elif view.signs != NULL:
            work += view.D * (SINCOS_WORK + HADAMARD_WORK * log2(view.p))
        else:
            work += view.D * (SINCOS_WORK + view.d)
        work += LOAD_WORK * view.d
    return work


cdef int run_slot(void *context, size_t slot, size_t thread, size_t buffer) noexcept nogil:
    cdef const Pass *given = <Pass *>context
    cdef rffpk_sums sums
    cdef size_t begin = slot * given.slot_rows
    sums.moments = given.slots + buffer * given.step
    sums.excess = sums.moments + given.moments
    sums.totals = sums.excess + given.excess
    return given.kernels.run(
        given.problem, given.prepared, begin, min(begin + given.slot_rows, given.n), &sums,
        given.out, given.workspace + thread * given.space)


cdef void merge_slot(void *context, size_t buffer) noexcept nogil:
    cdef const Pass *given = <Pass *>context
    cdef size_t i, width = given.width
    cdef const double *sums = given.slots + buffer * given.step
    cdef double *total = given.total
    for i in range(width):
        total[i] += sums[i]
