"""The descriptions of parameters and fitted attributes that docstrings share.

Each family holds entries of numpydoc sections by name. `ESTIMATORS` says which family a class takes
its entries from; those that are left out of it, or that it lacks, are the class's own.
"""

from __future__ import annotations

import re

Entries = dict[str, tuple[str, str]]  # name -> type, description with its indentation

_ENTRY = re.compile(r"^(\*{0,2}\w+) : (.+)\n", re.MULTILINE)


def entries(section: str) -> Entries:
    """The entries of the text of a numpydoc section."""
    _, *parts = _ENTRY.split(section)
    triples = zip(parts[::3], parts[1::3], parts[2::3])
    return {name: (kind, text.rstrip()) for name, kind, text in triples}


def without(family: Entries, *names: str) -> Entries:
    """A family less the entries that a class describes itself."""
    left = dict(family)
    for name in names:
        del left[name]
    return left


CONVENTIONS = entries("""
y : Ignored
    Present for scikit-learn's conventions.
""")

COMMON = entries("""
n_clusters : int
    Number of clusters k, from 1 to n_samples.
n_jobs : int or None
    Number of threads, from -1024 to 1024 except 0. None and -1: all that the affinity mask of the
    process, the quota of the container, OMP_NUM_THREADS and threadpoolctl allow; -2: all of these
    except one, and so on. `rffpk info` prints the limits. Small problems take fewer.
    Results are the same to the bit for any number of threads.
verbose : int
    If not 0, each pass is reported with the start, the stage, the exponent, the objective, the rows
    visited in a second, the time elapsed, and a rough time left once a start has ended: on a
    terminal in one line that changes, if tqdm is installed, else in a line for each pass. The
    logger "rffpk" gets the same lines at level DEBUG, whatever `verbose` is.
store_memberships : bool
    Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
memberships_ : ndarray of shape (n_samples, n_clusters)
    Memberships of the rows in the clusters, as `predict_proba` returns them; set only if
    `store_memberships`.
probabilities_ : ndarray of shape (n_samples,)
    Membership of each row in its own cluster, 0 for noise; there only if `store_memberships`.
linkage_ : ndarray of shape (n_clusters - 1, 4)
    Ward's tree of the clusters, by centroids and weights, as a linkage matrix of SciPy: half the
    square of a height is what the merger adds to the k-means objective, in the space of the
    centroids. The last column counts clusters. Computed when it is asked for, in O(n_clusters^2)
    time and memory.
n_features_in_ : int
    Number of columns of X in `fit`.
feature_names_in_ : ndarray of str, shape (n_features_in_,)
    Names of the columns of X in `fit`; set only if all of them have names that are strings.
""")

# Several views or kernels.
VIEWS = entries("""
views : list or None
    The columns of each view, if X is one array: lists or arrays of their indices or names, boolean
    masks, or slices. Such an X can be split by rows, as cross-validation does. None: X is a list of
    views, or one view. Views that are frames must have equal indices.
weight_entropy : float
    Entropy weight lambda, divided by the sum of the sample weights, from 1e-30 to 1e30. The smaller
    it is, the more weight goes to the views with small sums of squared distances.
kernel_weights_ : ndarray of shape (n_views,)
    Weights alpha >= 0 of the views, of sum one.
lambda_ : float
    Entropy weight: `weight_entropy` times the sum of the sample weights.
n_features_in_ : int
    Number of columns of X in `fit`; if X was a list of views, of all of them together.
feature_names_in_ : ndarray of str, shape (n_features_in_,)
    Names of the columns of X in `fit`; set only if X was one array and all of its columns have
    names that are strings.
""")

_PASS_RECORDS = """\
    Records of what was done, in order. Each pass has a record with "stage", "start" (number of its
    start, from 0), "kept" (whether the result goes back to this start), "rows" (number of rows
    visited), "s" (the exponent; -inf for hard assignment), "objective" (before the centroids
    moved), "shift" (of the centroids, relative as in `tol`), "distinct" (number of centroids that
    do not coincide; swaps of batches have more centroids than n_clusters for some passes),
    "repairs" (number of empty clusters whose centroid was moved to one of the rows farthest from
    theirs), "kernel_weights" (of the views, before the pass) and "seconds"."""
_STAGES = """\
    The stages are "k-means" (of ``init="k-means"``), "anneal" (while s falls), "hard" (passes of
    k-means after annealing), "settle" (passes at a finite exponent until convergence)"""
_STARTS = """\
    After all starts each of them has a record of stage "start" with "start", "kind" ("given": as
    the parameters say; "critical", "low", "k-means++": slowly annealed, quickly annealed and not
    annealed starts,"""
_OF_STARTS = """\
    see `n_init`), "rows", "passes", "objective" (at its end; infinite if it was dropped) and
    "outcome" ("kept", "lost" or "dropped")."""

_EQUAL_START_RECORDS = """\
    After all starts each of them has a record of stage "start" with "start", "kind" ("given"),
    "rows", "passes", "objective" (at its end) and "outcome" ("kept" or "lost")."""

_DIFFERENT_STARTS = """\
    Number of starts; the best result is kept. If `init` is "k-means++", and `annealing` is "auto"
    or sets `end` and `swaps` alone, the starts differ: the last one is annealed slowly from the
    critical exponent, with random disturbances of the centroids before each stage; the others are,
    in turn, annealed quickly from the smaller of -5 and twice the critical exponent, and not
    annealed at all (plain k-means++). A start is dropped when the power mean is within 1 % of its
    limit and the objective 2 % above the best result so far."""

_ANNEALING = """\
annealing : {"auto", "paper"}, Annealing or None
    How the exponent s falls. "auto": as an `Annealing` with its defaults says, from the critical
    exponent, while the centroids converge at each stage, to passes of k-means; its other values
    are for other schedules, and for rows that stay assigned softly. None: not at all, which is
    plain k-means from `init`."""

POWER = COMMON | entries(f"""
metric : {{"euclidean", "cosine"}}
    Distance of rows and centroids. "cosine": spherical k-means [2]_ and its power means. Rows are
    scaled to length one as they are read, rows of zeros stay; centroids have length one, so that
    squared distances are 2 - 2 cos. Cannot be combined with `whitening`.
whitening : None or float
    A number from 0 to 1: the features are the leading principal components, two for each cluster at
    most, each divided by this power of its standard deviation; 0 only projects, 1 gives all the
    same variance. From 8 components on, rows are scaled to length one. Centroids have these
    components then. None: the columns themselves.
n_init : "auto" or int
{_DIFFERENT_STARTS}
    "auto": three if the starts differ, otherwise one. If neither view weights nor typicality are
    part of the objective, starts that are not annealed begin at merged centroids from 20 clusters
    on, and from 100 clusters on "auto" is one of these: eight centroids for each cluster are drawn
    as "k-means++" draws them and moved by a few passes, one more for each is drawn among the rows
    that are far from them, and Ward's method merges all. An array or a callable as `init` is always
    one start.
history_ : list of dict
{_PASS_RECORDS}
{_STAGES} and
    "swap" (passes of a trial that moves centroids). Unless `init` is an array, the passes of a
    start follow a record of stage "seeding" with "rows", the number of seeding rows (see `init`).
{_STARTS} and "merged", from merged centroids,
{_OF_STARTS}
{_ANNEALING}
    "paper": as the paper of RFF-KPKM says, ``Annealing(start=-5.0, factor=1.04, passes=3,
    until="objective")`` with `sample` None and `init` "k-means" in place of their defaults. It
    names no `tol`: ``docs/papers`` has 1e-6, and with 1e-3 most fits end near the first exponent.
sample : "auto", int or None
    Number of rows that the starts run on: a random sample without replacement, in which heavy rows
    are likelier, of at least n_clusters rows. It depends on `random_state` and the numbers of the
    rows alone. The best result is then improved on larger samples and at last on all rows until
    convergence. "auto": 20 000 rows, or 50 for each cluster if that is more. None, or a number >=
    n_samples: all rows.
init : {{"k-means++", "random", "k-means"}}, array or callable
    Initial centroids. "k-means++" and "random" choose them among the seeding rows. These are random
    rows of those that the starts run on, others for each start: as many as have two million
    features together, at most 20 000 and at least 20 for each cluster, or all if there are fewer.
    "k-means" chooses as "k-means++" and goes on with passes of k-means before a start. An array
    holds initial centroids in the shape of `cluster_centers_`. A callable gets (features of the
    seeding rows, n_clusters, random_state=...) and returns such an array. Centroids that are given
    are kept: if `annealing` is "auto", or sets `end` and `swaps` alone, they are not annealed, but
    moved at once by passes at the end of annealing.
max_iter : int
    Largest number of passes of a start, and of the passes on each larger sample and on all rows
    that follow. ``init="k-means"`` may take as many before a start; swaps are not counted.
tol : float
    Tolerance >= 0: passes have converged when the root mean square shift of the centroids in one
    pass is at most `tol` times the standard deviation of the features (the root of their total
    variance). At 1e-3 a pass of k-means lowers the objective by some millionths of itself.
random_state : int, RandomState instance or None
    Draws the sample, the initial centroids, and their disturbances and swaps. An int gives the same
    result in each call.
cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
    Centroids, in the dtype of X; with `whitening` of shape (n_clusters, n_components).
labels_ : ndarray of int32, shape (n_samples,)
    Cluster of each row: the index of its nearest centroid.
inertia_ : float
    k-means objective of `labels_`: the weighted sum of squared distances of the rows to the means
    of their clusters.
objective_ : float
    sum_i M_s, weighted by the sample weights, at the exponent `s_` and `cluster_centers_`.
s_ : float
    Last finite exponent of the best start. If that start was plain k-means: the last finite
    exponent of the last start; if no start was annealed, the exponent at which annealing would end
    at the best centroids.
membership_exponent_ : float
    Exponent of the memberships that `predict_proba` gives unless told otherwise: `s_` if rows were
    assigned softly, else -(1 + d)/2 with the effective dimension d of the clusters:
    1/lambda_max of the mean of zz' over the unit vectors z from centroids to their rows.
n_iter_ : int
    Number of passes of the best start and of all that followed it, swaps included.
sample_size_ : int
    Number of rows that the starts ran on.
n_buffered_ : int
    Number of rows that `partial_fit` keeps until it has enough of them for the first centroids; 0
    from then on. Set by `partial_fit` only.
""")

_GAMMA = """\
    "mean": 1 / (2 mean distance) over all pairs of rows, in the kernel's own distance: squared
    Euclidean, for "laplacian" the sum of absolute differences. "median": the same with the median.
    "scale": 1 / (n_features * X.var()). The mean of squared Euclidean distances is exact; other
    means and medians are over the pairs of at most 1000 random rows. A few far rows may make a mean
    so large that the kernel is constant on the others, with a warning; not a median. If all rows
    are equal, gamma is 1. A number must be > 0."""

# Random Fourier features.
FEATURES = COMMON | entries(f"""
gamma : {{"mean", "median", "scale"}} or float
    Bandwidth parameter of the kernel.
{_GAMMA}
kernel : {{"rbf", "laplacian", "cauchy"}}
    Kernel that the features approximate: exp(-gamma ||x-y||^2), exp(-gamma ||x-y||_1), or
    prod_i 1 / (1 + gamma (x_i-y_i)^2).
sampling : {{"auto", "orthogonal", "structured", "iid"}}
    How frequencies are drawn. "orthogonal", for "rbf" only: blocks of up to d orthogonal directions
    with chi-distributed lengths, d the number of columns (Yu et al., NeurIPS 2016). "structured",
    for "rbf" only: products of Walsh-Hadamard matrices and random signs (the same paper); a
    projection then takes 3 log2(p) additions a frequency, p the next power of two from d on,
    instead of d multiplications and additions. Their frequencies all have one length, which biases
    the kernel in few dimensions (below about 16). "iid": independent draws (Rahimi, Recht, NeurIPS
    2007). "auto": for "rbf" "structured" from d = 32 on and "orthogonal" below, "iid" for the other
    kernels.
""")

# Features that may be stored.
STORED = entries("""
cache_ : bool
    Whether the features of all rows were stored.
""")

# Power k-means on random Fourier features.
RANDOM_FEATURES = (
    POWER
    | FEATURES
    | STORED
    | entries("""
n_frequencies : {"auto", "paper"} or int
    Number of random frequencies D, at least 1; each gives two features. "paper": ceil(4 log^3(2 k))
    independent ones for k clusters (Chen et al., theorem 3). "auto": the least of 128, 256, 512,
    ... whose mean squared error of the kernel, over pairs of a sample of the rows, is at most 0.02
    of the kernel's variance over these pairs. The most are 8192, or as many as make 2^25 numbers
    for 20 000 rows; a warning says if they do not suffice. The number does not depend on k.
cache : "auto", bool or int
    Whether the features of all rows are computed once and stored, in the dtype of X, instead of
    computed anew in each pass. "auto": if they take no more than a quarter of what the machine, or
    the container, has available, or 16 MB, and if by a model of the costs it at least halves the
    time of the passes over all rows (of 30, or of 5 after a sample). A number: the same, with at
    most so many bytes. The features of a sample are stored unless `cache` is False, within the same
    limit. Results are the same up to rounding, in the starts up to that of float32.
random_state : int, RandomState instance or None
    Draws the rows that gamma is estimated from, the frequencies, the sample, the initial centroids,
    and their disturbances and swaps. An int gives the same result in each call.
cluster_centers_ : ndarray of shape (n_clusters, 2 D)
    Centroids in feature space, in the dtype of X.
inertia_ : float
    Kernel k-means objective of `labels_`, in feature space: the weighted sum of squared distances
    of the rows to the means of their clusters.
""")
)

# Diffusion maps.
DIFFUSION = COMMON | entries("""
n_components : "auto" or int
    Number of features, the slowest functions of the random walk. "auto": those that have not
    decayed at `time` and do not live on few rows, at most three for each cluster.
n_neighbors : "auto" or int
    Number of landmarks that the random walk can step to from a row. "auto": 8, if landmarks are
    centroids; 2.5 log(m), if the m distinct rows are the landmarks: then only mutual neighbors
    count.
n_landmarks : "auto" or int
    Number of landmarks. If there are at most so many distinct rows, all of them are landmarks, and
    a step from a row leads to itself or to a mutual neighbor: each is among the nearest of the
    other. Otherwise the landmarks are centroids of a few passes of k-means on a sample of the rows.
    "auto": all distinct rows, if they are at most 200 000 (sparse rows: 30 000; k > 44 clusters:
    4e8 / k^2); otherwise 5 sqrt(m) centroids, at least 1000 and 5 k, with m the size of the sample,
    in a clustering at most 220 000. From 100 clusters on these are at least 8 k, and up to 40 k
    where each has 25 rows.
metric : {"euclidean", "cosine", "precomputed"}
    Distance by which neighbors are chosen. "cosine": rows are scaled to length one first, as is
    usual for texts; rows of zeros stay. Columns are never scaled: standardize them first if their
    units differ. "precomputed": X is the graph itself, see Notes.
whitening : "auto", None or float
    A number from 0 to 1: neighbors are found among the leading principal components, two for each
    cluster at most, each divided by this power of its standard deviation; 0 only projects, 1 gives
    all the same variance. From 8 components on, rows are scaled to length one. None: the columns.
    "auto": None in a `DiffusionMap` by itself, which knows no clusters. In a clustering None, 0.5
    and 1 (None with ``metric="cosine"``) are tried on a sample of 2000 rows, or 20 for each
    cluster, and each of them with once and twice the default number of neighbors, if `n_neighbors`
    is "auto". Of these a graph on the columns is taken that falls apart into as many large
    components, far apart, or else the one whose clusters agree most with those of the others; of
    two, the first. `DiffusionPowerKMeans` clusters the columns themselves where their clusters are
    much like those of the graph, with few rows between any two: columns tell better where clusters
    that touch end. It does not if a parameter of the map is given, or where the graph has k
    components or small ones that count. From 100 clusters on None, where landmarks are centroids.
""")

# Exact kernels: of one view by `kernel` and its parameters, of several by `kernels`.
KERNELS = COMMON | entries(f"""
gamma : {{"mean", "median", "scale"}}, float or None
    Parameter of the kernels that have one; a callable does not get it. The words are for "rbf" and
    "laplacian"; other kernels then take scikit-learn's default, as all do for None.
{_GAMMA}
kernel : str or callable
    Kernel: a name of scikit-learn's pairwise kernels, "precomputed" (X is then the kernel matrix),
    or a function of two rows.
kernel_params : dict or None
    Parameters of a callable; of a named kernel "degree" (>= 0, by default 3) and "coef0" (the
    constant term, by default 1) of "polynomial", "coef0" of "sigmoid", and "gamma", which comes
    before the parameter `gamma`.
kernels : None, list, "du2015" or "precomputed"
    A kernel for each view: a name of scikit-learn's pairwise kernels, a callable, or a pair of one
    of those and its gamma or a dict of its parameters. One array becomes as many views as there are
    kernels. "du2015": twelve kernels of one array (Du et al., IJCAI 2015): seven Gaussian, four
    polynomial and the cosine, scaled to a diagonal of one and then to [0, 1]. "precomputed": X
    holds kernel matrices. None: "rbf" for each view. Unless given, the gamma of "rbf" and
    "laplacian" is 1 / (2 mean distance) over pairs of rows, squared Euclidean for "rbf" and the sum
    of absolute differences for "laplacian".
""")

# Starts that no passes over other rows follow.
PASSES = entries("""
max_iter : int
    Largest number of passes of a start. ``init="k-means"`` may take as many before.
n_iter_ : int
    Number of passes of the best start.
""")

# Kernel k-means and power k-means with exact kernels.
_KERNEL_INIT = """\
init : {"k-means++", "random", "k-means", "spectral"} or array
    Initial centroids. "k-means++" (greedy, in the space of the kernel) and "random" choose them
    among the rows. "k-means" chooses as "k-means++" and goes on with passes of k-means, at most
    `max_iter`, before a start. "spectral": the clusters that k-means finds among the rows, scaled
    to length one, of the n_clusters leading eigenvectors of the centered kernel. An array holds
    integer labels of the rows, shape (n_samples,), each of 0 to n_clusters - 1 at least once, or
    weights of the rows, shape (n_clusters, n_samples), which are scaled to sums of one."""

EXACT = (
    POWER
    | KERNELS
    | PASSES
    | entries(f"""
n_init : "auto" or int
{_DIFFERENT_STARTS}
    "auto": if the starts differ, eight, or five if they run on principal components of one kernel,
    where single centroids are then swapped; otherwise one. An array as `init` is always one start.
    Starts with the kernel itself advance together, with one product of matrices in each pass.
history_ : list of dict
{_PASS_RECORDS}
{_STAGES} and
    "swap" (passes after a centroid was swapped, see `n_init`). On principal components the passes
    of a start follow a record of stage "seeding" with the number of "rows".
{_STARTS}
{_OF_STARTS}
{_ANNEALING}
    "paper": as the source paper says, ``Annealing(start=-1.0, factor=1.04, passes=5)`` with `init`
    "random" in place of its default.
{_KERNEL_INIT} Centroids
    that are given are kept: if `annealing` is "auto", or sets `end` and `swaps` alone, they are not
    annealed, but moved at once by passes at the end of annealing.
cache : "auto", bool or int
    Whether kernel matrices are stored, in the dtype of X, or computed anew in each pass, block by
    block. "auto": stored if they take no more than a quarter of what the machine, or the container,
    has available, or 16 MB. A number: stored if they take no more bytes than this.
random_state : int, RandomState instance or None
    Draws the rows that gammas are estimated from, the initial centroids and their disturbances. An
    int gives the same result in each call.
memberships_ : ndarray of shape (n_samples, n_clusters)
    Memberships of the rows in the clusters, as `predict_proba` returns them, of precomputed kernels
    too; set only if `store_memberships`.
dual_coef_ : ndarray of shape (n_clusters, n_samples)
    Centroids as weights of the fitted rows: theta_j = sum_i dual_coef_[j, i] phi(x_i).
inertia_ : float
    Kernel k-means objective of `labels_`: the weighted sum of squared distances of the rows to the
    means of their clusters, in the space of the kernel.
objective_ : float
    sum_i M_s, weighted by the sample weights, at the exponent `s_` and `dual_coef_`.
cache_ : bool
    Whether the kernel matrices were stored.
""")
)

# Kernel k-means: all starts end at s = -inf.
HARD_EXACT = EXACT | entries(f"""
{_KERNEL_INIT}
membership_exponent_ : float
    Exponent of the memberships that `predict_proba` gives unless told otherwise: -(1 + d)/2 with
    the effective dimension d of the clusters: 1/lambda_max of the mean of zz' over the unit vectors
    z from centroids to their rows.
n_init : "auto" or int
    Number of starts, at least 1; the best result is kept. "auto": ten. An array as `init` is always
    one start. All starts advance together, with one product of matrices in each pass.
objective_ : float
    The minimised sum, weighted by the sample weights, at `dual_coef_`.
history_ : list of dict
{_PASS_RECORDS}
    The stages are "k-means" (of ``init="k-means"``) and "hard" (of the start after that).
{_EQUAL_START_RECORDS}
""")

# Several exact kernels.
EXACT_VIEWS = VIEWS | entries("""
inertia_ : float
    Kernel k-means objective of `labels_` with the kernel sum_l alpha_l k_l: the weighted sum of
    squared distances of the rows to the means of their clusters.
""")

# Classes that leave noise out.
NOISE = entries("""
noise : "auto", float or None
    Which rows are noise: those that are far from their nearest rows. They get the label -1, and
    centroids are searched among the other rows. The distance of a row is that to the fifth nearest
    row of a sample, in the columns (``docs/noise.md``). A number in (0, 1): the farthest rows, with
    a share of the weight as near to this number as possible; those at the border that are equally
    far away are kept. "auto": the rows beyond a gap of the distances, if there is one. None: no
    row. Collections of Dask and missing views are refused.
labels_ : ndarray of int32, shape (n_samples,)
    Cluster of each row: the index of its nearest centroid; -1 for noise (see `noise`).
outlier_scores_ : ndarray of shape (n_samples,)
    Scores from 0 to 1, which rise with the distance of a row from others; above 1/2 for noise. Set
    if `noise` is not None.
""")

# Fuzzy c-means: one exponent.
FUZZY = POWER | entries(f"""
max_iter : int
    Largest number of passes of a start, and of the passes on each larger sample and on all rows
    that follow. ``init="k-means"`` may take as many before.
n_iter_ : int
    Number of passes of the best start and of all that followed it.
history_ : list of dict
{_PASS_RECORDS}
    The stages are "k-means" (of ``init="k-means"``), "anneal" (the first pass of a start after
    that) and "settle" (the others). Unless `init` is an array, the passes of a start follow a
    record of stage "seeding" with "rows", the number of seeding rows (see `init`).
{_EQUAL_START_RECORDS}
""")

# Kernels fused into an embedding of the rows, and k-means on it.
FUSION = (
    KERNELS
    | VIEWS
    | entries("""
center : bool
    Whether kernels are centered, so that their features have mean zero. Precomputed kernels are
    taken as they are (`center_kernel` centers them).
normalize : bool
    Whether kernels are scaled to a diagonal of one, after centering. Precomputed kernels are taken
    as they are (`normalize_kernel` scales them).
normalize_rows : bool
    Whether the rows of the embedding are scaled to length one for k-means.
n_init : "auto" or int
    Number of starts of the annealed k-means on the embedding (`PowerKMeans`); the best result is
    kept. "auto": three.
n_landmarks : int or None
    Number of random rows, at least n_clusters, to learn on; all rows are embedded by what was
    learned there (MKC-AE: Liang et al., NeurIPS 2022), in time and memory linear in n_samples.
    None, or a number >= n_samples: learn on all rows. Sample weights are those of the landmarks
    then, which are drawn from the rows of weight above zero with equal probability.
random_state : int, RandomState instance or None
    Draws the rows that gammas are estimated from, the landmarks, and the starts of k-means. An int
    gives the same result in each call.
labels_ : ndarray of int32, shape (n_samples,)
    Cluster of each row: the index of the centroid nearest to its embedding.
embedding_ : ndarray of shape (n_samples, n_clusters)
    Embedding of the rows, float64: with orthonormal columns, the eigenvectors of the combined
    kernel; if there are landmarks, the extension of theirs to all rows.
eigenvalues_ : ndarray of shape (n_clusters,)
    Largest eigenvalues of the combined kernel, in falling order.
landmarks_ : ndarray of int, shape (n_landmarks,), or None
    Rows that were learned on, in rising order. None: all rows, except those of weight zero.
kernel_weights_ : ndarray of shape (n_views,)
    Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
    Centroids of the rows of the embedding, scaled to length one if `normalize_rows`.
inertia_ : float
    k-means objective of the rows of the embedding, scaled to length one if `normalize_rows`,
    weighted by the sample weights.
s_ : float
    Last finite exponent of the annealed k-means on the embedding.
membership_exponent_ : float
    Exponent of the memberships that `predict_proba` gives unless told otherwise: -(1 + d)/2 with
    the effective dimension d of the clusters in the embedding: 1/lambda_max of the mean of zz' over
    the unit vectors z from centroids to their rows.
n_iter_ : int
    Number of iterations: the length of `history_`, at most `max_iter` if the class has it.
history_ : list of dict
    A record for each iteration, with "stage" ("weights"), "rows" (number of rows learned on),
    "objective", "kernel_weights" and "seconds"; and with the other keys of the records of passes
    that classes of centroids have, "start" (0), "kept" (True), "s", "shift", "distinct" and
    "repairs" (None).
""")
)

# Fusions whose iterations end at a tolerance: of an objective that falls, or that rises.
FALLING = FUSION | entries("""
max_iter : int
    Largest number of iterations.
tol : float
    Tolerance >= 0: the iterations end when the objective falls by at most `tol` of itself.
objective_ : float
    The minimised sum, at the last iteration.
""")
RISING = FALLING | entries("""
tol : float
    Tolerance >= 0: the iterations end when the objective rises by at most `tol` of itself.
objective_ : float
    The maximised sum, at the last iteration.
""")
LEARNED = entries("""
eigenvalues_ : ndarray of shape (n_clusters,)
    Largest eigenvalues of the learned kernel, in falling order.
""")

# of those that find the number of clusters
FOUND = entries("""
n_clusters : {"coarse", "auto", "fine"} or int
    Number of clusters k, from 1 to n_samples. "auto": the number that `select_n_clusters` finds in
    the rows; it may be 1. "coarse" and "fine": the least and the largest of its levels, numbers
    that are better than one.
n_clusters_ : int
    Number of clusters.
selection_ : NClustersSelection
    Good numbers of clusters, with scores and partitions; set only if `n_clusters` is no number.
""")

ESTIMATORS = {
    "RandomFourierFeatures": FEATURES,
    "DiffusionMap": DIFFUSION,
    "PowerKMeans": POWER | FOUND | NOISE,
    "RFFKernelPowerKMeans": RANDOM_FEATURES | FOUND | NOISE,
    "RFFMultiKernelPowerKMeans": without(
        RANDOM_FEATURES | VIEWS | NOISE, "annealing", "cluster_centers_", "inertia_", "objective_",
    ),
    "DiffusionPowerKMeans": without(
        POWER | DIFFUSION | STORED | FOUND | NOISE, "random_state", "cluster_centers_", "inertia_",
        "membership_exponent_",
    ),
    "FuzzyCMeans": without(
        FUZZY, "init", "n_init", "random_state", "objective_", "s_", "membership_exponent_"
    ),
    "KernelKMeans": without(HARD_EXACT, "tol", "random_state", "s_"),
    "KernelPowerKMeans": EXACT,
    "MultiKernelPowerKMeans": without(EXACT | EXACT_VIEWS, "objective_"),
    "RMKKM": without(
        HARD_EXACT | EXACT_VIEWS, "init", "max_iter", "tol", "kernel_weights_", "s_", "history_"
    ),
    "AverageMKKM": FUSION,
    "MKKM": FALLING,
    "MKKMMR": FALLING,
    "LKAM": without(FALLING | LEARNED, "embedding_", "objective_"),
    "LMKKM": without(FALLING | LEARNED, "embedding_", "kernel_weights_", "objective_"),
    "ONKC": without(FALLING, "embedding_", "eigenvalues_", "kernel_weights_"),
    "MVCLFA": without(RISING, "embedding_", "eigenvalues_", "kernel_weights_"),
    "CoregSC": without(
        RISING, "normalize", "embedding_", "eigenvalues_", "kernel_weights_", "cluster_centers_"
    ),
    "SimpleMKKM": without(FUSION, "history_"),
    "SMKC": without(
        FALLING, "n_clusters", "tol", "normalize_rows", "random_state", "embedding_",
        "eigenvalues_", "landmarks_", "kernel_weights_", "history_",
    ),
    "FAMKKM": without(
        FALLING, "tol", "random_state", "embedding_", "eigenvalues_", "landmarks_",
        "kernel_weights_", "objective_", "history_",
    ),
    "NystroemKernelKMeans": without(
        FUSION, "kernel", "random_state", "labels_", "embedding_", "eigenvalues_", "landmarks_",
        "kernel_weights_", "cluster_centers_", "inertia_", "n_iter_", "history_",
    ),
}  # fmt: skip
