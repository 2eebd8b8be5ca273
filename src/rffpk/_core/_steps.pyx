# cython: language_level=3, freethreading_compatible=True
# cython: cdivision=True
"""Steps at one exponent: passes, each of which moves the centroids."""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, log, sqrt
from libc.string cimport memcpy

from rffpk._core._pass cimport Passes
from rffpk._core._runtime cimport data, filled

from time import perf_counter

import numpy as np


cdef class Views:
    """The weights of the views, with what depends on them, and how they are learned."""
    cdef size_t L, F, k
    cdef double entropy  # lambda; 0: the weights do not change
    cdef double factor  # k^(-1/s), which the weights of the rows lack, times their unit
    cdef double unit
    cdef double *alpha
    cdef double *costs
    cdef double *scales  # (F,): the weight of the view of each feature
    cdef double *eta  # (k,): the mean of the reference distances, or NULL
    cdef const double *view_eta  # (L,)
    cdef size_t *widths
    cdef readonly object weights
    cdef object arrays

    def __init__(self, shifts, alpha, size_t k, double s, double unit, double entropy, eta,
                 view_eta):
        cdef size_t L = len(shifts)
        widths = np.array([len(shift) for shift in shifts], dtype=np.uintp)
        self.L, self.F, self.k, self.unit = L, widths.sum(), k, unit
        self.entropy, self.factor = entropy, unit * exp(-log(k) / s)
        costs, scales = np.empty(L), np.empty(self.F)
        self.weights = np.array(alpha, dtype=np.float64)
        self.alpha = <double *>filled(self.weights, "alpha", np.float64, (L,))
        self.costs = <double *>filled(costs, "costs", np.float64, (L,))
        self.scales = <double *>filled(scales, "scales", np.float64, (self.F,))
        self.widths = <size_t *>filled(widths, "widths", np.uintp, (L,))
        self.eta = NULL
        if eta is not None:
            self.eta = <double *>filled(eta, "eta", np.float64, (k,))
            self.view_eta = <const double *>data(view_eta, "view_eta", np.float64, (L,))
        self.arrays = widths, costs, scales, eta, view_eta
        self.spread()

    cdef void spread(self) noexcept nogil:
        """What depends on the weights."""
        cdef size_t i, f, at = 0
        cdef double eta = 0
        for i in range(self.L):
            for f in range(self.widths[i]):
                self.scales[at + f] = self.alpha[i]
            at += self.widths[i]
        if self.eta != NULL:
            for i in range(self.L):
                eta += self.view_eta[i] * self.alpha[i]
            for i in range(self.k):
                self.eta[i] = eta

    cdef double penalty(self) noexcept nogil:
        """lambda sum_l alpha_l log(L alpha_l)."""
        cdef size_t i
        cdef double total = 0
        for i in range(self.L):
            if self.alpha[i] > 0:
                total += self.alpha[i] * log(self.L * self.alpha[i])
        return self.entropy * max(total, 0)

    cdef void learn(self, const double *moments, const double *excess) noexcept nogil:
        """alpha_l ~ exp(-cost_l / lambda), from the sums of a pass."""
        cdef size_t i, j, f, width = self.F + self.L + 1
        cdef const double *N
        cdef double G, squares, least = INFINITY, total = 0
        for i in range(self.L):
            self.costs[i] = 0
        for j in range(self.k):
            N, G = moments + j * width, moments[j * width + width - 1]
            for i in range(self.L if G > 0 else 0):
                squares = 0
                for f in range(self.widths[i]):
                    squares += N[f] * N[f]
                N += self.widths[i]
                self.costs[i] += moments[j * width + self.F + i] - squares / G
            if self.eta != NULL:
                for i in range(self.L):
                    self.costs[i] += excess[j] * self.view_eta[i]
        for i in range(self.L):
            least = min(least, self.costs[i])
        for i in range(self.L):
            self.alpha[i] = exp(self.factor * (least - self.costs[i]) / self.entropy)
            total += self.alpha[i]
        for i in range(self.L):
            self.alpha[i] /= total
        self.spread()


def take_steps(xs, omegas, shifts, theta, alpha, weight, rule, double s, int n_threads, *,
               structures=None, landmarks=None, eta=None, double m=0, view_eta=None, double unit,
               double variance, double entropy, double tol, int most, double goal, double hope,
               double least_share, close, carry=None):
    """Steps at one exponent. Parameters and results are those of the NumPy twin,
    `rffpk._reference.take_steps`."""
    cdef size_t k = theta.shape[0], F = theta.shape[1], size = k * F
    cdef double near, shift, soft, hard, penalty, gain, relative, absolute, objective = INFINITY
    cdef size_t empty = 0, distinct
    cdef bint hopeless = False
    relative, absolute = close
    dtype = shifts[0].dtype
    new, old = np.array(theta, dtype=np.float64, order="C"), np.empty((k, F))
    cast = new if dtype == np.float64 else np.empty((k, F), dtype=dtype)
    cdef double *after = <double *>filled(new, "theta", np.float64, (k, F))
    cdef double *before = <double *>filled(old, "theta", np.float64, (k, F))
    marked = np.empty(k, dtype=np.uint8)
    cdef unsigned char *marks = <unsigned char *>filled(marked, "marks", np.uint8, (k,))
    cdef float *single = NULL
    cdef Views views = Views(shifts, alpha, k, s, unit, entropy, eta, view_eta)
    cdef Passes passes = Passes(
        xs, omegas, shifts, cast, views.weights, weight, rule, s, structures, landmarks, eta, m)
    passes.allocate(n_threads)
    if dtype == np.float32:
        single = <float *>filled(cast, "theta", np.float32, (k, F))
    cdef const double *moments = passes.result
    cdef const double *excess = moments + passes.n_moments
    cdef const double *totals = excess + k
    records, alphas = [], [alpha]
    while len(records) < most and not empty:
        started = perf_counter()
        PyErr_CheckSignals()
        if single != NULL:
            narrow(after, single, size)
        passes.clear()
        if carry is not None:
            passes.begin_from(carry)
        passes.run()
        memcpy(before, after, size * sizeof(double))
        empty = divide(moments, after, k, F, passes.problem.n_views, least_share)
        soft, hard, penalty = unit * totals[0], unit * totals[1], views.penalty()
        near = max(relative * hard, absolute)
        distinct = n_distinct(after, views.scales, k, F, near, marks)
        shift = 0
        if variance > 0:
            shift = sqrt(moved(after, before, views.scales, k, F) / k / variance)
        if entropy > 0:
            views.learn(moments, excess)
            alpha = views.weights.copy()
        alphas.append(alpha)
        records.append((soft, hard, penalty, shift, distinct, perf_counter() - started))
        gain, objective = objective - hard - penalty, hard + penalty
        hopeless = objective - goal > hope * gain
        if shift <= tol or hopeless:
            break
    return records, alphas, new, old, empty, hopeless, passes.sums()


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


cdef double moved(const double *after, const double *before, const double *scale, size_t k,
                  size_t F) noexcept nogil:
    cdef size_t j, f
    cdef double total = 0, gap
    for j in range(k):
        for f in range(F):
            gap = after[j * F + f] - before[j * F + f]
            total += scale[f] * gap * gap
    return total


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
