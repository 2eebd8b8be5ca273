# cython: language_level=3, freethreading_compatible=True
# cython: cdivision=True
"""Steps at one exponent: passes, each of which moves the centroids."""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport sqrt
from libc.string cimport memcpy

from rffpk._core._pass cimport Passes
from rffpk._core._runtime cimport data, filled

from time import perf_counter

import numpy as np


def take_steps(xs, omegas, shifts, theta, alpha, weight, rule, double s, int n_threads, *,
               structures=None, landmarks=None, eta=None, double m=0, double unit, double variance,
               double tol, int most, double least_share, close):
    """Steps at one exponent. Parameters and results are those of the NumPy twin,
    `rffpk._reference.take_steps`."""
    cdef size_t k = theta.shape[0], F = theta.shape[1], size = k * F
    cdef double near, shift, soft, hard, relative, absolute
    cdef size_t empty = 0, distinct
    relative, absolute = close
    dtype = shifts[0].dtype
    new, old = np.array(theta, dtype=np.float64, order="C"), np.empty((k, F))
    cast = new if dtype == np.float64 else np.empty((k, F), dtype=dtype)
    scales = np.repeat(alpha, [len(center) for center in shifts])
    cdef double *after = <double *>filled(new, "theta", np.float64, (k, F))
    cdef double *before = <double *>filled(old, "theta", np.float64, (k, F))
    cdef const double *scale = <const double *>data(scales, "scales", np.float64, (F,))
    marked = np.empty(k, dtype=np.uint8)
    cdef unsigned char *marks = <unsigned char *>filled(marked, "marks", np.uint8, (k,))
    cdef float *single = NULL
    cdef Passes passes = Passes(
        xs, omegas, shifts, cast, alpha, weight, rule, s, structures, landmarks, eta, m)
    passes.allocate(n_threads)
    if dtype == np.float32:
        single = <float *>filled(cast, "theta", np.float32, (k, F))
    cdef const double *moments = passes.given.total
    cdef const double *totals = moments + passes.given.moments + k
    records = []
    while len(records) < most and not empty:
        started = perf_counter()
        PyErr_CheckSignals()
        if single != NULL:
            narrow(after, single, size)
        passes.clear()
        passes.run()
        memcpy(before, after, size * sizeof(double))
        empty = divide(moments, after, k, F, passes.problem.n_views, least_share)
        soft, hard = unit * totals[0], unit * totals[1]
        near = max(relative * hard, absolute)
        distinct = n_distinct(after, scale, k, F, near, marks)
        shift = shift_of(after, before, scale, k, F, variance)
        records.append((soft, hard, shift, distinct, perf_counter() - started))
        if shift <= tol:
            break
    return records, new, old, empty, passes.sums()


cdef void narrow(const double *wide, float *out, size_t n) noexcept nogil:
    cdef size_t i
    for i in range(n):
        out[i] = <float>wide[i]


cdef size_t divide(const double *moments, double *theta, size_t k, size_t F, size_t n_views,
                   double least_share) noexcept nogil:
    """theta = N / G; the centroids of empty clusters stay. Returns how many are empty."""
    cdef size_t width = F + n_views + 1, empty = 0, j, f
    cdef double total = 0, G
    for j in range(k):
        total += moments[j * width + width - 1]
    for j in range(k):
        G = moments[j * width + width - 1]
        if not G > least_share * total:
            empty += 1
            continue
        for f in range(F):
            theta[j * F + f] = moments[j * width + f] / G
    return empty


cdef double shift_of(const double *after, const double *before, const double *scale, size_t k,
                     size_t F, double variance) noexcept nogil:
    """The root mean square shift of the centroids over the root of `variance`."""
    cdef size_t j, f
    cdef double total = 0, gap
    for j in range(k):
        for f in range(F):
            gap = after[j * F + f] - before[j * F + f]
            total += scale[f] * gap * gap
    return sqrt(total / k / variance) if variance > 0 else 0


def shift(after, before, scale, double variance):
    """The shift between centroids, as `take_steps` records it. Parameters are those of the NumPy
    twin, `rffpk._reference.shift`."""
    cdef size_t k = after.shape[0], F = after.shape[1]
    return shift_of(<const double *>data(after, "after", np.float64, (k, F)),
                    <const double *>data(before, "before", np.float64, (k, F)),
                    <const double *>data(scale, "scale", np.float64, (F,)), k, F, variance)


cdef bint is_near(const double *a, const double *b, const double *scale, size_t F,
                  double close) noexcept nogil:
    """Whether the squared distance is at most `close`; most pairs are decided by few features."""
    cdef size_t f
    cdef double total = 0, gap
    for f in range(F):
        gap = a[f] - b[f]
        total += scale[f] * gap * gap
        if total > close:
            return False
    return True


cdef size_t n_distinct(const double *theta, const double *scale, size_t k, size_t F,
                       double close, unsigned char *distinct) noexcept nogil:
    """The number of centroids that are near no distinct one before them."""
    cdef size_t found = 0, j, other
    for j in range(k):
        distinct[j] = True
        for other in range(j):
            if distinct[other] and is_near(theta + j * F, theta + other * F, scale, F, close):
                distinct[j] = False
                break
        found += distinct[j]
    return found


def count_distinct(theta, double close):
    """The number of centroids whose squared distance to all distinct ones before them exceeds
    `close`."""
    cdef size_t k = theta.shape[0], F = theta.shape[1]
    theta, scales = np.ascontiguousarray(theta, dtype=np.float64), np.ones(F)
    marked = np.empty(k, dtype=np.uint8)
    return n_distinct(
        <const double *>data(theta, "theta", np.float64, (k, F)),
        <const double *>data(scales, "scales", np.float64, (F,)), k, F, close,
        <unsigned char *>filled(marked, "marks", np.uint8, (k,)))
