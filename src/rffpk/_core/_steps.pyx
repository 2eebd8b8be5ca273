# cython: language_level=3, freethreading_compatible=True
# cython: cdivision=True
"""Steps at one exponent: a pass, then a move of the centroids. Passes that compare each row with a
candidate list. Ward's method. The nearest points in cells."""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, log, sqrt
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.string cimport memcpy

from rffpk._core._pass cimport Passes
from rffpk._core._runtime cimport (
    aligned, check_ends, check_indices, data, dense_rows, filled, kernels_for, padded, share_items,
    threads_for,
)
from rffpk._core.headers cimport (
    RFFPK_ALIGN, RFFPK_CELL_BLOCK, RFFPK_CELL_ROWS, RFFPK_SLOT_ROWS, rffpk_cells,
    rffpk_kernels, rffpk_near, rffpk_pairs,
)

from time import perf_counter

import numpy as np


# The least weight of a view that rows may lack. `rffpk.rows.sums` has an equal constant.
cdef double LEAST_WEIGHT = 1e-9


cdef class Views:
    """The view weights alpha, the numbers that depend on them, and the costs that they follow."""
    cdef size_t L, F, k
    cdef double entropy  # lambda; 0: the weights do not change
    cdef double factor  # k^(-1/s), which the weights of the rows lack, times the unit
    cdef double unit
    cdef double *alpha
    cdef double *costs
    cdef double *scales  # (F,): the weight of the view of each feature
    cdef double *eta  # (k,): the mean of the reference distances, or NULL
    cdef const double *view_eta  # (L,)
    cdef const double *coverage  # (L,): the share of the rows that have a view; NULL: all rows
    cdef size_t *widths
    cdef readonly object weights
    cdef object arrays

    def __init__(self, shifts, alpha, size_t k, double s, double unit, double entropy, eta,
                 view_eta, coverage):
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
        self.eta, self.view_eta, self.coverage = NULL, NULL, NULL
        if coverage is not None:
            self.coverage = <const double *>data(coverage, "coverage", np.float64, (L,))
        if eta is not None:
            self.view_eta = <const double *>data(view_eta, "view_eta", np.float64, (L,))
        if eta is not None and coverage is None:
            self.eta = <double *>filled(eta, "eta", np.float64, (k,))
        self.arrays = widths, costs, scales, eta, view_eta, coverage
        self.spread()

    cdef void spread(self) noexcept nogil:
        """Compute the numbers that depend on the weights."""
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
        """Return lambda sum_l pi_l alpha_l log(alpha_l sum_t pi_t), with the coverage pi. pi_l is 1
        if all rows have all views."""
        cdef size_t i
        cdef double total = 0, mass = 0
        for i in range(self.L):
            mass += self.share(i)
        for i in range(self.L):
            if self.alpha[i] > 0:
                total += self.share(i) * self.alpha[i] * log(mass * self.alpha[i])
        return self.entropy * max(total, 0)

    cdef double share(self, size_t i) noexcept nogil:
        return 1 if self.coverage == NULL else self.coverage[i]

    cdef void measure(self, const double *moments, const double *excess) noexcept nogil:
        """Compute the costs C_l of the views from the sums of a pass: sum_j (Q_jl - ||N_jl||^2 /
        G_j), plus E eta_l with typicality."""
        cdef size_t i, j, f, counts = 1 if self.coverage == NULL else self.L
        cdef size_t width = self.F + self.L + counts
        cdef const double *N
        cdef const double *G
        cdef double squares
        for i in range(self.L):
            self.costs[i] = 0
        for j in range(self.k):
            N = moments + j * width
            G = N + width - counts
            for i in range(self.L):
                squares = 0
                for f in range(self.widths[i]):
                    squares += N[f] * N[f]
                N += self.widths[i]
                if G[i % counts] > 0:
                    self.costs[i] += moments[j * width + self.F + i] - squares / G[i % counts]
            if self.eta != NULL:
                for i in range(self.L):
                    self.costs[i] += excess[j] * self.view_eta[i]
        for i in range(self.L if self.coverage != NULL and self.view_eta != NULL else 0):
            self.costs[i] += excess[i] * self.view_eta[i]

    cdef void learn(self, const double *moments, const double *excess) noexcept nogil:
        """Learn alpha_l ~ exp(-C_l / (pi_l lambda)) from the sums of a pass."""
        cdef size_t i
        cdef double least = INFINITY, total = 0
        self.measure(moments, excess)
        for i in range(self.L):
            self.costs[i] /= self.share(i)
            least = min(least, self.costs[i])
        for i in range(self.L):
            self.alpha[i] = exp(self.factor * (least - self.costs[i]) / self.entropy)
            total += self.alpha[i]
        if self.coverage != NULL:
            self.scale_with_least()
        for i in range(self.L if self.coverage == NULL else 0):
            self.alpha[i] /= total
        self.spread()

    cdef void scale_with_least(self) noexcept nogil:
        """Scale alpha so that sum_l pi_l alpha_l = 1, with no alpha_l below LEAST_WEIGHT."""
        cdef bint found = True
        cdef size_t i
        cdef double left = 1, total, scale = 1
        while found:
            left, total, found = 1, 0, False
            for i in range(self.L):
                if self.alpha[i] > 0:
                    total += self.share(i) * self.alpha[i]
                else:
                    left -= self.share(i) * LEAST_WEIGHT
            scale = left / total
            for i in range(self.L):
                if self.alpha[i] > 0 and scale * self.alpha[i] < LEAST_WEIGHT:
                    self.alpha[i], found = 0, True
        for i in range(self.L):
            self.alpha[i] = scale * self.alpha[i] if self.alpha[i] > 0 else LEAST_WEIGHT


cdef class Move:
    """The move of centroids, and of the weights of the views, after a pass."""
    cdef size_t k, F, n_counts, empty, distinct
    cdef double variance, entropy, relative, absolute, least_share, least_length
    cdef double soft, hard, penalty, shift
    cdef double *after
    cdef double *before
    cdef const double *center
    cdef unsigned char *marks
    cdef Views views
    cdef object theta, previous, alpha, arrays

    def __init__(self, shifts, theta, alpha, Views views, double variance, double entropy, close,
                 double least_share, double least_length, coverage):
        cdef size_t k = theta.shape[0], F = theta.shape[1]
        self.k, self.F, self.views, self.alpha, self.empty = k, F, views, alpha, 0
        self.n_counts = 1 if coverage is None else views.L
        self.variance, self.entropy, self.least_share = variance, entropy, least_share
        self.relative, self.absolute = close
        self.least_length = least_length
        self.theta, self.previous = np.array(theta, dtype=np.float64, order="C"), np.empty((k, F))
        marks, shift = np.empty(k, dtype=np.uint8), np.concatenate(shifts).astype(np.float64)
        self.after = <double *>filled(self.theta, "theta", np.float64, (k, F))
        self.before = <double *>filled(self.previous, "theta", np.float64, (k, F))
        self.center = <const double *>data(shift, "shift", np.float64, (F,))
        self.marks = <unsigned char *>filled(marks, "marks", np.uint8, (k,))
        self.arrays = marks, shift

    cdef void make(self, const double *moments, const double *excess, double soft,
                   double hard) noexcept:
        """Move to theta = N / G, and learn the weights of the views."""
        cdef Views views = self.views
        cdef double change = 0
        self.soft, self.hard, self.penalty = soft, hard, views.penalty()
        memcpy(self.before, self.after, self.k * self.F * sizeof(double))
        self.empty = divide(moments, self.after, self.k, views.widths, views.L, self.n_counts,
                            self.least_share)
        if self.least_length > 0:
            onto_sphere(self.after, self.before, self.center, self.k, self.F, self.least_length)
        self.distinct = n_distinct(self.after, views.scales, self.k, self.F,
                                   max(self.relative * hard, self.absolute), self.marks)
        if self.variance > 0:
            change = moved(self.after, self.before, views.scales, self.k, self.F)
            change = sqrt(change / self.k / self.variance)
        self.shift = change
        if self.entropy > 0:
            views.learn(moments, excess)

    cdef object learned(self):
        """Return the weights of the views after a move."""
        if self.entropy > 0:
            self.alpha = self.views.weights.copy()
        return self.alpha


def take_steps(xs, omegas, shifts, theta, alpha, weight, rule, double s, int n_threads, *,
               structures=None, landmarks=None, eta=None, double m=0, view_eta=None, double unit,
               double variance, double entropy, double tol, Py_ssize_t most, double goal,
               double hope, double least_share, close, present=None, coverage=None, units=None,
               double least_length=0):
    """Take steps at one exponent. The NumPy twin, `rffpk._reference.take_steps`, describes the
    parameters and results."""
    cdef size_t k = theta.shape[0], F = theta.shape[1]
    cdef double gain, objective = INFINITY
    cdef bint hopeless = False
    cdef float *single = NULL
    dtype = shifts[0].dtype
    cdef Views views = Views(shifts, alpha, k, s, unit, entropy, eta, view_eta, coverage)
    cdef Move move = Move(
        shifts, theta, alpha, views, variance, entropy, close, least_share, least_length, coverage)
    cast = move.theta if dtype == np.float64 else np.empty((k, F), dtype=dtype)
    cdef Passes passes = Passes(
        xs, omegas, shifts, cast, views.weights, weight, rule, s, structures, landmarks, eta, m,
        present=present, units=units)
    passes.allocate(n_threads)
    if dtype == np.float32:
        single = <float *>filled(cast, "theta", np.float32, (k, F))
    cdef const double *moments = passes.result
    cdef const double *excess = moments + passes.n_moments
    cdef const double *totals = excess + passes.given.excess
    records, alphas = [], [alpha]
    while len(records) < most and not move.empty:
        started = perf_counter()
        PyErr_CheckSignals()
        if single != NULL:
            narrow(move.after, single, k * F)
        passes.clear()
        passes.run()
        move.make(moments, excess, unit * totals[0], unit * totals[1])
        alphas.append(move.learned())
        records.append((move.soft, move.hard, move.penalty, move.shift, move.distinct,
                        perf_counter() - started))
        gain, objective = objective - move.hard - move.penalty, move.hard + move.penalty
        hopeless = objective - goal > hope * gain
        if move.shift <= tol or hopeless:
            break
    return records, alphas, move.theta, move.previous, move.empty, hopeless, passes.sums()


def move(sums, shifts, theta, alpha, double s, *, view_eta=None, double unit, double variance,
         double entropy, double least_share, close, coverage=None, double least_length=0):
    """Make the move of a step, after its pass. The NumPy twin, `rffpk._reference.move`, describes
    the parameters and results."""
    cdef size_t k = theta.shape[0], width = theta.shape[1] + len(shifts)
    N, G, Q, E, soft, hard = sums
    eta = view_eta if view_eta is None or coverage is not None else np.empty(k)
    cdef Views views = Views(shifts, alpha, k, s, unit, entropy, eta, view_eta, coverage)
    cdef Move one = Move(
        shifts, theta, alpha, views, variance, entropy, close, least_share, least_length, coverage)
    moments, excess = np.hstack([N, Q, G.reshape(k, -1)]), np.ascontiguousarray(E)
    one.make(
        <const double *>data(moments, "sums", np.float64, (k, width + one.n_counts)),
        <const double *>data(excess, "excess", np.float64, (k if coverage is None else views.L,)),
        unit * soft, unit * hard)
    record = one.soft, one.hard, one.penalty, one.shift, one.distinct
    return record, one.learned(), one.theta, one.empty


cdef void narrow(const double *wide, float *out, size_t n) noexcept nogil:
    cdef size_t i
    for i in range(n):
        out[i] = <float>wide[i]


cdef size_t divide(const double *moments, double *theta, size_t k, const size_t *widths,
                   size_t n_views, size_t n_counts, double least_share) noexcept nogil:
    """Set theta = N / G, and return the number of empty clusters. The centroid of an empty cluster
    stays. If the rows of a cluster lack a view, its centroid stays in this view."""
    cdef size_t F = 0, empty = 0, width, j, i, f
    cdef double total = 0
    cdef bint left
    cdef const double *N
    cdef const double *G
    for i in range(n_views):
        F += widths[i]
    width = F + n_views + n_counts
    for j in range(k):
        for i in range(n_counts):
            total += moments[j * width + F + n_views + i]
    for j in range(k):
        N = moments + j * width
        G = N + F + n_views
        left = False
        for i in range(n_views):
            if G[i % n_counts] > least_share * total:
                left = True
                for f in range(widths[i]):
                    theta[f] = N[f] / G[i % n_counts]
            theta += widths[i]
            N += widths[i]
        empty += not left
    return empty


cdef void onto_sphere(double *theta, const double *before, const double *center, size_t k,
                      size_t F, double least_length) noexcept nogil:
    """Scale the centroids theta + center to length one. Centroids of at most `least_length` return
    to their place `before`."""
    cdef size_t _j, f
    cdef double length, y
    for _j in range(k):
        length = 0
        for f in range(F):
            y = theta[f] + center[f]
            length += y * y
        length = sqrt(length)
        for f in range(F):
            if length > least_length:
                theta[f] = (theta[f] + center[f]) / length - center[f]
            else:
                theta[f] = before[f]
        theta += F
        before += F


cdef double moved(const double *after, const double *before, const double *scale, size_t k,
                  size_t F) noexcept nogil:
    """Return the sum of the squared distances that the centroids moved."""
    cdef size_t j, f
    cdef double total = 0, gap
    for j in range(k):
        for f in range(F):
            gap = after[j * F + f] - before[j * F + f]
            total += scale[f] * gap * gap
    return total


cdef bint is_near(const double *a, const double *b, const double *scale, size_t F,
                  double close) noexcept nogil:
    """Return whether the squared distance is at most `close`. Few features decide most pairs."""
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
    """Return the number of centroids that are not near an earlier distinct centroid."""
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
    """Return the number of distinct centroids: the squared distance to all earlier distinct
    centroids exceeds `close`."""
    cdef size_t k = theta.shape[0], F = theta.shape[1]
    theta, scales = np.ascontiguousarray(theta, dtype=np.float64), np.ones(F)
    marked = np.empty(k, dtype=np.uint8)
    return n_distinct(
        <const double *>data(theta, "theta", np.float64, (k, F)),
        <const double *>data(scales, "scales", np.float64, (F,)), k, F, close,
        <unsigned char *>filled(marked, "marks", np.uint8, (k,)))


# ---- one more centroid ---------------------------------------------------------------------------


ctypedef fused real:
    float
    double


cdef void add_costs(const real *distances, const real *nearest, const double *weight, size_t n,
                    size_t m, double *costs) noexcept nogil:
    """Set costs[c] = sum_i w_i min(d_ic, nearest_i), by four sums that do not wait for each other.
    """
    cdef size_t i, c, lane
    cdef double[4] sums
    for c in range(m):
        sums[0] = sums[1] = sums[2] = sums[3] = 0
        for i in range(0, n - n % 4, 4):
            for lane in range(4):
                sums[lane] += weight[i + lane] * min(
                    distances[(i + lane) * m + c], nearest[i + lane])
        for i in range(n - n % 4, n):
            sums[0] += weight[i] * min(distances[i * m + c], nearest[i])
        costs[c] = sums[0] + sums[1] + sums[2] + sums[3]


cdef void lower_nearest(const real *distances, const double *weight, size_t n, size_t m,
                        real *nearest, double *sums) noexcept nogil:
    """Set nearest_i = min(d_i0, nearest_i), and sums to the cumulative sums of the costs."""
    cdef size_t i
    cdef double total = 0
    for i in range(n):
        nearest[i] = min(distances[i * m], nearest[i])
        total += weight[i] * nearest[i]
        sums[i] = total


def costs_with(distances, nearest, weight):
    """Compute the costs of the rows with each of m additional centroids. The NumPy twin,
    `rffpk._reference.costs_with`, describes the parameters and results."""
    cdef size_t n = distances.shape[0], m = distances.shape[1]
    dtype, costs = distances.dtype, np.empty(m)
    cdef const void *apart = data(distances, "distances", dtype, (n, m))
    cdef const void *least = data(nearest, "nearest", dtype, (n,))
    cdef const double *p = <const double *>data(weight, "weight", np.float64, (n,))
    cdef double *found = <double *>filled(costs, "costs", np.float64, (m,))
    if dtype == np.float32:
        add_costs(<const float *>apart, <const float *>least, p, n, m, found)
    else:
        add_costs(<const double *>apart, <const double *>least, p, n, m, found)
    return costs


def lowered(distances, size_t added, nearest, weight):
    """Compute the cumulative sums of the costs with the added centroid. The NumPy twin,
    `rffpk._reference.lowered`, describes the parameters and results."""
    cdef size_t n = distances.shape[0], m = distances.shape[1]
    dtype, sums = distances.dtype, np.empty(n)
    cdef const void *apart = data(distances, "distances", dtype, (n, m))
    cdef void *least = filled(nearest, "nearest", dtype, (n,))
    cdef const double *p = <const double *>data(weight, "weight", np.float64, (n,))
    cdef double *found = <double *>filled(sums, "sums", np.float64, (n,))
    if added >= m:
        raise ValueError(f"added={added}: must be < {m}")
    if dtype == np.float32:
        lower_nearest(<const float *>apart + added, p, n, m, <float *>least, found)
    else:
        lower_nearest(<const double *>apart + added, p, n, m, <double *>least, found)
    return sums


# ---- Ward's method -------------------------------------------------------------------------------


cdef enum:
    BLOCK = 32  # lines of a block of squares, which stays in the first-level cache


cdef void measure_heights(const double *gaps, const double *inverse, size_t k,
                          double *squares) noexcept nogil:
    """Set squares (k, k) to the squared heights at which two clusters of masses 1/inverse merge.
    They are symmetric, because chains could otherwise run in a circle."""
    cdef size_t first = 0, other, i, j
    cdef double gap
    while first < k:
        other = 0
        while other <= first:
            for i in range(first, min(first + BLOCK, k)):
                for j in range(other, min(other + BLOCK, i)):
                    gap = max(gaps[i * k + j], gaps[j * k + i])
                    squares[i * k + j] = 2 * gap / (inverse[j] + inverse[i])
                    squares[j * k + i] = squares[i * k + j]
            other += BLOCK
        first += BLOCK
    for i in range(k):
        squares[i * k + i] = INFINITY


cdef size_t least_of(const double *line, const double *lost, size_t k) noexcept nogil:
    """Return the index of the least number of a line, the first of equals. `lost` is infinite for
    clusters that have been taken, else 0. Eight minima are computed at a time, which do not wait
    for each other."""
    cdef double[8] least
    cdef double value
    cdef size_t j, lane
    for lane in range(8):
        least[lane] = INFINITY
    for j in range(0, k - k % 8, 8):
        for lane in range(8):
            value = line[j + lane] + lost[j + lane]
            least[lane] = value if value < least[lane] else least[lane]
    for j in range(k - k % 8, k):
        value = line[j] + lost[j]
        least[0] = value if value < least[0] else least[0]
    for lane in range(1, 8):
        least[0] = least[lane] if least[lane] < least[0] else least[0]
    for j in range(k):
        if line[j] + lost[j] == least[0]:
            return j
    return 0


cdef void merge(double *squares, double *p, double *lost, size_t k, size_t i,
                size_t j) noexcept nogil:
    """Let cluster j take cluster i, by the formula of Lance and Williams."""
    cdef double *one = squares + i * k
    cdef double *other = squares + j * k
    cdef double total = p[i] + p[j], between = one[j]
    cdef size_t x
    for x in range(k):
        other[x] = ((p[i] + p[x]) * one[x] + (p[j] + p[x]) * other[x] - p[x] * between) / (
            total + p[x])
    lost[i], other[j], p[j] = INFINITY, INFINITY, total
    for x in range(k):
        if lost[x] == 0:
            squares[x * k + j] = other[x]


cdef void merge_all(double *squares, double *p, double *lost, size_t k, size_t *chain,
                    int64_t *pairs, double *heights) noexcept nogil:
    """Make all mergers, by chains: each cluster of a chain is nearest to the cluster before it."""
    cdef size_t length = 0, first = 0, done = 0, here, nearest
    while done < k - 1:
        if not length:
            while lost[first] > 0:
                first += 1
            chain[0], length = first, 1
        here = chain[length - 1]
        nearest = least_of(squares + here * k, lost, k)
        if length < 2 or squares[here * k + nearest] < squares[here * k + chain[length - 2]]:
            chain[length] = nearest
            length += 1
            continue
        nearest, length = chain[length - 2], length - 2
        pairs[2 * done], pairs[2 * done + 1] = here, nearest
        heights[done] = squares[here * k + nearest]
        merge(squares, p, lost, k, here, nearest)
        done += 1


def ward_mergers(gaps, masses):
    """Return the mergers of Ward's method. The NumPy twin, `rffpk._reference.ward_mergers`,
    describes the parameters and results."""
    cdef size_t k = len(masses)
    p, lost, squares = np.array(masses, dtype=np.float64), np.zeros(k), np.empty((k, k))
    chain, pairs = np.empty(k + 1, dtype=np.uintp), np.empty((k - 1, 2), dtype=np.int64)
    heights, inverse = np.empty(k - 1), 1 / p
    gaps = np.ascontiguousarray(gaps, dtype=np.float64)
    if not np.isfinite(gaps).all():
        raise ValueError("gaps contains NaN or infinity, must be finite.")
    cdef const double *given = <const double *>data(gaps, "gaps", np.float64, (k, k))
    cdef double *of_each = <double *>filled(p, "masses", np.float64, (k,))
    cdef double *inverted = <double *>filled(inverse, "inverse masses", np.float64, (k,))
    cdef double *away = <double *>filled(lost, "marks", np.float64, (k,))
    cdef double *at = <double *>filled(squares, "heights", np.float64, (k, k))
    cdef size_t *ways = <size_t *>filled(chain, "chain", np.uintp, (k + 1,))
    cdef int64_t *merged = <int64_t *>filled(pairs, "pairs", np.int64, (k - 1, 2))
    cdef double *found = <double *>filled(heights, "heights", np.float64, (k - 1,))
    with nogil:
        measure_heights(given, inverted, k, at)
        merge_all(at, of_each, away, k, ways, merged, found)
    return pairs, heights


ctypedef struct Near:
    const rffpk_near *given
    const rffpk_kernels *kernels
    size_t space
    char *workspace


def near_pass(x, bint unit, shift, weight, theta, near, order, ends, int n_threads):
    """Compare each row only with the candidate list of its cluster. The NumPy twin,
    `rffpk._reference.near_pass`, describes the parameters and results."""
    cdef size_t n = x.shape[0], d = x.shape[1], k = theta.shape[0], c = near.shape[1]
    cdef const rffpk_kernels *kernels = kernels_for(x.dtype)
    cdef rffpk_near given
    cdef Near context
    dtype = x.dtype
    labels, stay = np.empty(n, dtype=np.int32), np.empty((k, d))
    nearest, second = np.empty(n, dtype=dtype), np.empty(n, dtype=dtype)
    given.x = dense_rows(x, "x", dtype, n, &given.numbers)
    given.unit = unit
    given.shift = data(shift, "shift", dtype, (d,))
    given.theta = data(theta, "theta", dtype, (k, d))
    given.weight = NULL if weight is None else data(weight, "weight", dtype, (n,))
    given.near = <const int32_t *>data(near, "near", np.int32, (k, c))
    given.order = <const int32_t *>data(order, "order", np.int32, (n,))
    given.ends = <const int64_t *>data(ends, "ends", np.int64, (k + 1,))
    check_indices(near, "near", k)
    check_indices(order, "order", n)
    check_ends(ends, "ends", n)
    given.d, given.n_near = d, c
    given.labels = <int32_t *>filled(labels, "labels", np.int32, (n,))
    given.nearest = filled(nearest, "nearest", dtype, (n,))
    given.second = filled(second, "second", dtype, (n,))
    given.stay = <double *>filled(stay, "stay", np.float64, (k, d))
    n_threads = threads_for(n_threads, k, <double>n * (c + 4) * d)
    cdef size_t space = padded(kernels.near_bytes(&given))
    workspace_memory = np.empty(n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
    context = Near(&given, kernels, space, <char *>aligned(workspace_memory))
    share_items(visit_cluster, &context, k, n_threads)
    return labels, nearest, second, stay


cdef int visit_cluster(void *context, size_t j, size_t thread, size_t buffer) noexcept nogil:
    cdef const Near *one = <Near *>context
    one.kernels.near(one.given, j, one.workspace + thread * one.space)
    return 0


CELL_BLOCK = RFFPK_CELL_BLOCK


ctypedef struct InCells:
    const rffpk_cells *given
    const rffpk_kernels *kernels
    size_t space
    char *workspace


def nearest_in_cells(x, centers, blocks, squares, numbers, ends, visits, order, size_t r,
                     int n_threads):
    """Find the nearest points to each row in the cells that it visits. The NumPy twin,
    `rffpk._reference.nearest_in_cells`, describes the parameters and results. The blocks must be
    aligned to a cache line."""
    cdef rffpk_cells given
    cdef InCells context
    cdef const rffpk_kernels *kernels = kernels_for(x.dtype)
    cdef size_t n = x.shape[0], d = x.shape[1], b = blocks.shape[0]
    dtype = x.dtype
    nearest = np.empty((n, r), dtype=np.int32)
    given.n, given.d, given.c, given.p, given.r = n, d, centers.shape[0], visits.shape[1], r
    given.x = data(x, "x", dtype, (n, d))
    given.centers = data(centers, "centers", dtype, (given.c, d))
    given.blocks = data(blocks, "blocks", dtype, (b, d, CELL_BLOCK))
    given.squares = data(squares, "squares", dtype, (b, CELL_BLOCK))
    if <uintptr_t>given.blocks % RFFPK_ALIGN or <uintptr_t>given.squares % RFFPK_ALIGN:
        raise ValueError("blocks and squares must be aligned to a cache line")
    given.numbers = <const int32_t *>data(numbers, "numbers", np.int32, (b, CELL_BLOCK))
    given.ends = <const int64_t *>data(ends, "ends", np.int64, (given.c + 1,))
    given.visits = <const int32_t *>data(visits, "visits", np.int32, (n, given.p))
    given.order = <const int64_t *>data(order, "order", np.int64, (n,))
    given.nearest = <int32_t *>filled(nearest, "nearest", np.int32, (n, r))
    check_ends(ends, "ends", b)
    check_indices(visits, "visits", given.c)
    check_indices(order, "order", n)
    cdef size_t n_items = (n + RFFPK_CELL_ROWS - 1) // RFFPK_CELL_ROWS
    cdef double points = <double>b * RFFPK_CELL_BLOCK * given.p / max(given.c, 1)
    n_threads = threads_for(n_threads, n_items, n * points * d)
    cdef size_t space = padded(kernels.cells_bytes(&given))
    workspace_memory = np.empty(n_threads * space + RFFPK_ALIGN, dtype=np.uint8)
    context = InCells(&given, kernels, space, <char *>aligned(workspace_memory))
    share_items(visit_cells, &context, n_items, n_threads)
    return nearest


cdef int visit_cells(void *context, size_t item, size_t thread, size_t buffer) noexcept nogil:
    cdef const InCells *one = <InCells *>context
    cdef size_t begin = item * RFFPK_CELL_ROWS
    one.kernels.cells(one.given, begin, min(begin + RFFPK_CELL_ROWS, one.given.n),
                      one.workspace + thread * one.space)
    return 0


ctypedef struct Pairs:
    const rffpk_pairs *given
    const rffpk_kernels *kernels
    size_t n


def squares_of_pairs(x, points, index, int n_threads):
    """Compute squared distances of each row from r points. The NumPy twin,
    `rffpk._reference.squares_of_pairs`, describes the parameters and results."""
    cdef rffpk_pairs given
    cdef Pairs context
    cdef const rffpk_kernels *kernels = kernels_for(x.dtype)
    cdef size_t n = x.shape[0], d = x.shape[1], m = points.shape[0], r = index.shape[1]
    dtype = x.dtype
    squares = np.empty((n, r), dtype=dtype)
    given.d, given.r = d, r
    given.x = data(x, "x", dtype, (n, d))
    given.points = data(points, "points", dtype, (m, d))
    given.index = <const int32_t *>data(index, "index", np.int32, (n, r))
    given.squares = filled(squares, "squares", dtype, (n, r))
    check_indices(index, "index", m)
    context = Pairs(&given, kernels, n)
    cdef size_t n_slots = (n + RFFPK_SLOT_ROWS - 1) // RFFPK_SLOT_ROWS
    n_threads = threads_for(n_threads, n_slots, <double>n * r * d)
    share_items(measure_pairs, &context, n_slots, n_threads)
    return squares


cdef int measure_pairs(void *context, size_t slot, size_t thread, size_t buffer) noexcept nogil:
    cdef const Pairs *one = <Pairs *>context
    cdef size_t begin = slot * RFFPK_SLOT_ROWS
    one.kernels.pairs(one.given, begin, min(begin + RFFPK_SLOT_ROWS, one.n))
    return 0
