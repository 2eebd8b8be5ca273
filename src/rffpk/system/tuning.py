"""The numbers that trade time, memory or quality: `TUNING`, in groups of fields.

Code reads a field where it is used, as `TUNING.sampling.rows`, so that a test or a benchmark can
replace it. `python -m bench.quality.tuning` varies fields and prints what changes. The comment of a
field names the page with its measurements, if there is one. "x1/2 and x2" are half and twice the
value. Numbers are entries of arrays. Costs and work count multiply-adds at the rate of a large
product of matrices.

Bounds of rounding errors, formats of files and limits of machines stay where they are derived.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """Samples of the rows.

    Half and twice a field keep all labels of 84 fits of 28 small sets and of three mixtures of
    60 000 rows, unless its comment says otherwise."""

    # Rows that starts run on. Fewer rows save time; on kddcup99 5000 rows end 1.3 % higher
    # (bench/results/trials.md, Search). On mixtures of 60 000 rows 10 000 rows take .6 and 40 000
    # rows 1.7 times as long; the mean ARI stays within .0002, and the objective too.
    rows: int = 20_000
    # Least number of sampled rows for each cluster. 100 rows lower the objective by 0.05 % and
    # nearly double the memory (bench/results/trials.md, Search).
    rows_a_cluster: int = 50
    # Factor between the sizes of growing samples: a larger factor makes fewer samples.
    growth: int = 8
    # Bytes of the largest copy of a growing sample.
    copy_bytes: int = 32 << 20
    # A reservoir of sampled rows has spare room of 1 / this part of its rows: more room means
    # fewer, larger rearrangements.
    reservoir_part: int = 16
    # Least number of rows in the spare room.
    reservoir_rows: int = 1024
    # Rows that give the critical exponent, in time that grows with them. 500 rows change labels of
    # 9 of 84 small fits, and the mean ARI by .0002.
    exponent_rows: int = 1000
    # As exponent_rows, with typicality or exact kernels, in time that grows with their cube.
    decomposed_rows: int = 500
    # Rows from which the last exponent of annealing is estimated.
    last_rows: int = 2000
    # Most distances of `last_rows` from centroids: many centroids leave fewer rows.
    last_distances: int = 1 << 20
    # Rows that give the exponent of memberships (docs/maintainers/annealing.md, Memberships).
    shape_rows: int = 20_000
    # Most numbers in these rows, unless `exponent_rows` have more (as shape_rows).
    shape_numbers: int = 1 << 20
    # Most numbers in these rows in any case (as shape_rows).
    wide_numbers: int = 1 << 22
    # Rows whose distances have a median, for typicality: its error is about 1 %.
    median_rows: int = 5000
    # Rows, of all clusters together, whose memberships tell whether clusters coincide. The time is
    # O(k^2) for each row.
    warned_rows: int = 2000
    # Rows of a cluster among which a central one is sought, in time that grows with them.
    central_rows: int = 2000
    # Rows that whitened components are computed from, at most.
    whitened_rows: int = 20_000
    # Most numbers in these rows: 128 MB in float64.
    whitened_numbers: int = 1 << 24
    # Rows whose mean is subtracted from the rows of a kernel: any point near them serves.
    shift_rows: int = 256


@dataclass(frozen=True)
class Passes:
    """Passes over the rows."""

    # Steps end early if the objective is above its goal by this many times its last fall. A smaller
    # number saves steps, and may abandon starts that would have won.
    hope: float = 4.0
    # Rows from which a pass over landmarks puts rows in order: a copy takes time, too.
    ordered_rows: int = 1000
    # Most columns of rows that a pass over landmarks puts in order.
    ordered_columns: int = 128


@dataclass(frozen=True)
class Schedule:
    """How annealing lowers the exponent s (docs/maintainers/annealing.md, Starts).

    x1/2 and x2 change the mean objective of small sets by at most .04 % (bench.quality.tuning)."""

    # Annealing ends when 1 - sum M' / sum d_min, the relative difference of the power mean and the
    # minimum, is at most this: a smaller value costs stages. Merged centroids give log(k)/|s|, so
    # that they do not end annealing early.
    hardness: float = 1e-3
    # An adaptive stage ends when centroids move by less than this in a pass, in standard deviations
    # of the features. A larger value may leave centroids merged. x1/2 and x2 change the time by
    # factors of 1.3 and .8 (bench.quality.tuning).
    stage_tol: float = 3e-3
    # Most passes of an adaptive stage (as stage_tol).
    stage_passes: int = 10
    # Factor between exponents, at first: a smaller factor costs stages. x1/2 changes the time by a
    # factor of 1.2 (bench.quality.tuning).
    first_factor: float = 1.2
    # Least factor (as first_factor). x2 changes the time by a factor of .8 (bench.quality.tuning).
    least_factor: float = 1.05
    # Largest factor (as first_factor).
    most_factor: float = 1.5
    # The factor grows after stages of at most so many passes. x1/2 changes the time by a factor of
    # 1.2 (bench.quality.tuning).
    quick_passes: int = 2
    # The factor shrinks after stages of at least so many passes, as when centroids separate.
    slow_passes: int = 5
    # The factor where the number of passes in a stage is given, and of starts from a low exponent.
    fixed_factor: float = 1.1
    # Centroids that are equal never separate by themselves: all are moved at random by this part of
    # the standard deviation of the features before the next stage.
    separation: float = 1e-5
    # Slow starts move centroids by this part before each stage. x1/2 and x2 change the time by
    # factors of .9 and 1.2 (bench.quality.tuning).
    noise: float = 0.02
    # Tolerance of a start whose centroids are then moved in batches: a larger one saves passes.
    coarse_tol: float = 1e-2
    # A start may be dropped once sum M' is this part of sum d_min: on eight data sets sum d_min was
    # within 0.5 % of its final value.
    nearly_hard: float = 0.99
    # It is dropped if its objective is above this many times the best start's objective. A smaller
    # number saves passes, and may drop the start that would have won.
    hopeless: float = 1.02


@dataclass(frozen=True)
class Starts:
    """The number of starts, and their initial centroids.

    x1/2 and x2 change the mean objective of small sets and of mixtures with 30 clusters by at most
    .01 % (bench.quality.tuning)."""

    # Starts before swaps: no single one is best on all data (docs/maintainers/annealing.md,
    # Starts). x2 changes the time by a factor of 1.4 (bench.quality.tuning).
    automatic: int = 3
    # Starts with exact kernels (docs/maintainers/exact.md).
    exact: int = 8
    # Starts with exact kernels before swaps (docs/maintainers/exact.md).
    exact_before_swaps: int = 5
    # Starts with exact kernels where all are alike (docs/maintainers/exact.md).
    exact_equal: int = 10
    # Clusters from which starts that are alone, or not annealed, begin at merged centroids, and
    # centroids are swapped in batches. Three starts up to 99 clusters take 2.4 times as long
    # (bench/results/trials.md, Search). x2 changes the time with 30 clusters by a factor of 2.4
    # (bench.quality.tuning).
    some: int = 20
    # Rows that initial centroids are drawn from, at most: more rows cost time.
    seed_rows: int = 20_000
    # Most numbers in these rows, 16 MB in float64.
    seed_numbers: int = 2**21
    # Least number of these rows for each centroid: one of equally large clusters is missed with
    # probability 2e-9.
    rows_a_centroid: int = 20
    # Centroids that are merged for each cluster: four lose ARI .17 to .30 on overlapping topics in
    # .7 of the time (bench/results/trials.md, Search). x1/2 and x2 change the objective with 120
    # clusters by -.09 and .02 % (bench.quality.tuning).
    merged: int = 8
    # Beyond this total number of merged centroids each cluster has only half of `merged`: time
    # grows with their square (docs/maintainers/annealing.md, Merged centroids).
    many_merged: int = 2048
    # Passes of k-means before centroids are merged (docs/maintainers/annealing.md, Merged
    # centroids). x1/2 and x2 change the objective with 120 clusters by -.12 and -.03 %
    # (bench.quality.tuning).
    merged_passes: int = 3
    # Numbers of the centroids that are merged, at most: 256 MB in float64.
    merged_numbers: int = 1 << 25


@dataclass(frozen=True)
class Swaps:
    """Swaps of centroids, alone and in batches (docs/maintainers/annealing.md).

    x1/2 and x2 change the mean objective of small sets by at most .01 % (bench.quality.tuning).
    Other changes are of mixtures: --rows 8000 --clusters 120 --alone, or 4000 and 30."""

    # Failures in a row that end single swaps. With three starts most of 29 data sets have at most
    # the objective of twenty k-means++ runs (docs/maintainers/annealing.md, Starts). x1/2 and x2
    # change the objective with 120 clusters by .03 and -.01 % (bench.quality.tuning).
    automatic: int = 20
    # Most such failures for each cluster: few clusters have few different swaps.
    a_cluster: int = 4
    # Passes after a swap, at most. x1/2 and x2 change the objective with 30 clusters by .11 and 0 %
    # (bench.quality.tuning).
    passes: int = 8
    # Rows that are tried for the new place of a centroid.
    candidates: int = 5
    # Rows on which the change of the cost is estimated, at most.
    rows: int = 20_000
    # Distances of these rows from centroids, at most.
    distances: int = 2**24
    # Least relative gain of a swap that counts.
    least_gain: float = 1e-5
    # The first batch has 1 / this part of the centroids. 2, 4 and 8 end .05 % lower and .1 and .2 %
    # higher after 1.2, .85 and .8 of the time (bench/results/trials.md, Search). x1/2 and x2 change
    # the objective with 120 clusters by .03 and .11 % (bench.quality.tuning).
    first_part: int = 3
    # First batches after swaps on a sample have 1 / this part (as first_part).
    later_part: int = 8
    # A failure halves a batch, and the least batch has 1 / this part of the centroids. x1/2 and x2
    # change the objective with 120 clusters by .03 and .02 % (bench.quality.tuning).
    last_part: int = 16
    # A batch fails if it lowers the objective by less than this part of itself.
    batch_gain: float = 1e-3
    # Multiply-adds of a pass up to which `small_gain` replaces `batch_gain`.
    small_work: int = 1 << 26
    # 1e-5 ends .4 % lower, in 1.7 to 8 times the time (bench/results/trials.md, Search). x1/2 and
    # x2 change the objective with 120 clusters by -.02 and .15 % (bench.quality.tuning).
    small_gain: float = 1e-4
    # Single failures that a failure of the least batch stands for. x1/2 and x2 change the objective
    # with 120 clusters by -.01 and .03 % (bench.quality.tuning).
    failures: int = 10
    # Move of the centroids that ends the passes of a batch. x1/2 and x2 change the objective with
    # 120 clusters by .01 and -.07 % (bench.quality.tuning).
    batch_tol: float = 3e-3
    # Most passes after centroids are added. x1/2 and x2 change the objective with 120 clusters by
    # .12 and -.19 % (bench.quality.tuning).
    passes_added: int = 3
    # Most passes after centroids are removed. x1/2 and x2 change the objective with 120 clusters by
    # .01 and -.02 % (bench.quality.tuning).
    passes_removed: int = 5
    # Costliest rows that the mean cost of a sample leaves out, to test whether few rows cost much:
    # with all rows an objective stays six times as high (bench/results/trials.md, Search).
    costliest: int = 10
    # Few rows cost much if the mean cost of all rows is this many times the mean cost of a sample:
    # 1.02 gives similar results, 1.3 misses such rows (bench/results/trials.md, Search).
    lacked: float = 1.1
    # Costly rows are sought again after this relative gain: .005 and .05 differ by .5 % at most
    # (bench/results/trials.md, Search).
    least_reached: float = 0.02
    # A sample has too few or too many rows of a heavy tail if the mean costs of all rows and of the
    # sample differ by this factor. With light tails the factor is 0.99 to 1.01.
    unlike: float = 1.05
    # Rows that are drawn for each cluster to swap centroids again: 150 lose up to 2.1 %
    # (bench/results/trials.md, Swaps after a sample).
    rows_a_cluster: int = 250


@dataclass(frozen=True)
class HardPasses:
    """Passes of the hard rule that leave out work (docs/math.md, section 13).

    On three mixtures of 300 000 rows, 10 columns and 100 clusters half and twice a field keep the
    objective within .01 % and the time within a tenth, unless its comment says otherwise. Ten
    columns need no directions."""

    # Rows from which bounds make passes faster (bench.speed.bounds).
    bounds_rows: int = 20_000
    # Cost of a row in a pass from which bounds make passes faster: with 50 columns and 10 clusters
    # they do not (bench.speed.bounds).
    bounds_cost: float = 20_000.0
    # All rows are visited if more than this part of them is active.
    most_active: float = 0.6
    # Bytes of a copy of active rows.
    copied_bytes: int = 4 << 20
    # Numbers of features of rows with new labels that are summed at a time: they are copied twice.
    summed_numbers: int = 1 << 17
    # Rows whose bounds change at a time: intermediate results stay in a cache.
    bounds_block: int = 1 << 16
    # All rows are visited if a cluster has less than this part of its largest weight since the last
    # such visit. Its sums keep the rounding errors of subtracted rows. With 1 fits take twice as
    # long.
    shrunken: float = 0.5
    # Multiply-adds of a pass from which rows are compared with near centroids alone. Half of it
    # takes .73 of the time there, for an objective .01 % higher and other labels.
    near_work: int = 1 << 28
    # Centroids that a row is compared with: with 24, 32 and 48 objectives are within .03 % and
    # times within 8 % (bench/results/trials.md, Search).
    near: int = 16
    # New centroids that a row is compared with in addition.
    near_new: int = 8
    # Part of the rows with a nearest centroid elsewhere beyond which rows are compared with all
    # centroids: with none objectives are up to 4 % higher (bench/results/trials.md, Search).
    most_missed: float = 2e-3
    # Rows on which this part is estimated.
    missed_rows: int = 1000
    # Rows are compared with near centroids again once at most this part of all rows has a nearest
    # centroid elsewhere (as most_missed).
    few_missed: float = 5e-4
    # Distances between centroids that are computed at a time for this decision.
    compared_numbers: int = 1 << 17
    # Multiply-adds of a pass from which directions bound distances.
    directions_work: int = 1 << 31
    # Columns from which directions bound distances.
    directions_columns: int = 32
    # Numbers of directions that are tried.
    directions: tuple[int, ...] = (8, 12, 16, 24, 32, 48, 64, 96, 128)
    # Rows that numbers of directions are tried on.
    directions_rows: int = 256
    # Time of a distance that is computed alone, over that in a product of matrices.
    alone_cost: float = 6.0
    # Time of a bound, in columns beyond the directions.
    bound_cost: float = 12.0
    # Directions must take less than this part of the time of a pass without.
    directions_part: float = 0.7


@dataclass(frozen=True)
class Components:
    """Principal components that starts run on (docs/math.md, section 9)."""

    # The components that are left out have at most this part of the cost of k random rows as
    # centroids. Without 1 % of the variance, views take 2.7 to 15.5 times as long as
    # `KMeans(n_init=10)`; without .1 %, in float64, 3.5 to 29.7 times (bench/results/trials.md,
    # Search).
    left_out: float = 2e-2
    # Largest relative change of the cost of a partition by the components of one view that are left
    # out, for the hard objective: more components cost time.
    change: float = 0.02
    # Leading components for each cluster that are sought first: too few are doubled, twice at most.
    a_cluster: int = 8
    # Leading components that are sought in addition.
    spare: int = 16
    # Up to this part of all components, only leading components are sought; beyond it, all.
    leading_part: float = 0.25
    # Work of all components of (m, m), over m^3.
    all_work: float = 30.0
    # Work of r leading components, over m^2 r.
    leading_work: float = 20.0
    # Components are used if a search takes this many times as long as the decomposition.
    margin: float = 2.0
    # As margin, if view weights are learned: they converge in passes over all features.
    views_margin: float = 5.0
    # Features from which components save time in a pass.
    least_features: int = 64
    # Most numbers of a view that are copied, 128 MB in float64. Of larger views a sample of this
    # size gives the components, for few clusters of one dense view. Objectives are then at most
    # .06 % higher, in .3 of the time (bench/results/trials.md, Search).
    numbers: int = 1 << 24
    # Rows up to which all components of a kernel may be computed: with more rows, products with the
    # kernel are as fast as passes over the components.
    kernel_rows: int = 1000


@dataclass(frozen=True)
class Storage:
    """Features that are stored, or computed in each pass. Costs are of one row."""

    # Cost of reading a number from memory. On Zen 4 and Zen 5, in both precisions, measured costs
    # were within a third of the first five costs here.
    read_cost: float = 48.0
    # Cost of one sine and cosine (as read_cost).
    sincos_cost: float = 70.0
    # Cost of a number in one stage of a Walsh-Hadamard transform (as read_cost).
    stage_cost: float = 3.0
    # Cost of comparing a landmark with the nearest landmarks of a row (as read_cost).
    search_cost: float = 4.0
    # Cost of the weight of one centroid (as read_cost).
    weight_cost: float = 200.0
    # Cost of an entry of a sparse row that meets a line of numbers (bench.speed.sparse).
    entry_cost: float = 1000.0
    # Cost of each number in this line (bench.speed.sparse).
    gather_cost: float = 16.0
    # Stored features take 1 / this part of the available memory, at most (docs/scale.md, Memory).
    memory_part: int = 4
    # Features of all rows are stored if that halves the time of this many passes of annealing.
    all_passes: int = 30
    # The number of passes over all rows that follow annealing on a sample (as all_passes).
    last_passes: int = 5
    # Bytes that are allocated without a look at the available memory, of half a millisecond.
    unseen_bytes: int = 2**24
    # Bytes of structured frequencies that are written out for sparse rows, at most.
    written_bytes: int = 1 << 28
    # Bytes of a block of a source. Smaller blocks save memory; larger blocks save work that is done
    # once for each block (bench.speed.streams).
    block_bytes: int = 16 << 20


@dataclass(frozen=True)
class Workers:
    """Partitions on the workers of Dask, measured 2026-11 (bench/results/full_tables.md)."""

    # First rows that the client checks before all workers check theirs.
    head_rows: int = 1024
    # Results that one task joins, and small partitions that one task visits. A larger group saves
    # tasks, of some milliseconds each, and leaves workers idle.
    group: int = 16
    # Mean size in numbers up to which partitions are small, so that one task visits a group.
    small_numbers: int = 1 << 20
    # Tasks that each thread keeps where partitions are visited in groups.
    tasks_a_thread: int = 4
    # Seconds between looks at the workers during a wait.
    look_seconds: float = 2.0
    # Seconds until a cluster without workers is given up.
    workerless_seconds: float = 20.0
    # Seconds for the transfer of a result.
    transfer_seconds: float = 30.0


@dataclass(frozen=True)
class Tiles:
    """Work at a time. Smaller tiles stay in a cache and save memory; larger tiles save calls."""

    # Numbers in a tile of rows, 8 MB in float64: a few tiles for each thread take little memory
    # compared with the rows, and products with them run at full rate. Also numbers of rows that are
    # copied, or of sparse rows that are written out, at a time.
    row_numbers: int = 1 << 20
    # Numbers in a block of rows: a single row takes as long as a block, a millisecond.
    block_numbers: int = 1 << 17
    # Rows in such a block, at most.
    block_rows: int = 512
    # Rows of a tile of a kernel that is recomputed: 2 MB, which stay in a cache.
    kernel_rows: int = 256
    # Columns of this tile.
    kernel_columns: int = 1024
    # Bytes of rows that are hashed together.
    hashed_bytes: int = 1 << 20
    # Numbers of rows, or distances, in a tile of a search for landmarks or centroids: 32 MB.
    search_numbers: int = 1 << 22
    # Keys of a draw that are made at a time.
    keys: int = 1 << 18
    # Weights of landmarks that one call computes: they stay in a cache.
    weighed_numbers: int = 1 << 16
    # Rows whose weights of landmarks are held at a time: some megabytes.
    landmark_rows: int = 1 << 17
    # Rows far from all landmarks that are looked at together.
    far_rows: int = 1 << 13
    # Numbers of vectors that a filter adds at a time: they stay in a cache.
    vector_numbers: int = 1 << 17
    # Numbers of rows whose distances to a sample are computed together.
    noise_numbers: int = 1 << 23
    # Rows in a block that Arrow reads.
    arrow_rows: int = 1 << 17
    # Rows with gaps whose distances to reference rows are held at a time.
    filled_rows: int = 256
    # Rows of a tile of a polar decomposition: ten columns stay in a cache.
    polar_rows: int = 8192
    # Numbers in a tile of SMKC's matrix B, 64 MB: B'B is read and written few times
    # (measured 2026-11 on 325 834 rows in two views, bench/results/full_tables.md, Times of SMKC).
    smkc_numbers: int = 1 << 23
    # Numbers in the part of this tile that one call fills.
    smkc_chunk_numbers: int = 1 << 18
    # Columns of the block of B'B that one call adds to.
    smkc_columns: int = 512
    # Numbers of a view in a tile whose products with all columns are one call.
    smkc_gram_numbers: int = 1 << 21


@dataclass(frozen=True)
class Linalg:
    """Decompositions, and calls that Ctrl-C interrupts."""

    # Size of the random part of an initial vector, relative to the vector: none may miss an
    # eigenvector, much of it costs iterations.
    start_noise: float = 1e-3
    # Work of all eigenvectors, over n^3; it decides whether a call can be interrupted.
    eigh_work: float = 10.0
    # Work of the singular vectors of (n, k), over n k^2 (as eigh_work).
    svd_work: float = 6.0
    # Work of the last call of ARPACK, which holds the interpreter's lock, over n k^2.
    ritz_work: float = 50.0
    # Largest order whose full decomposition is as fast as a partial one.
    full_below: int = 300
    # Order, over the number of eigenvectors, up to which all are as fast as ARPACK.
    full_order: int = 10
    # Steps of Lanczos' method that look for a larger eigenvalue at the end.
    check_steps: int = 10
    # Work of a quarter of a second: longer calls run in a thread, and Ctrl-C ends the wait for it.
    long_work: float = 1e10
    # Work of a number that is written to new memory.
    written_work: float = 300.0
    # Seconds after which a wait ends by itself: on some systems signals do not end it.
    wake_seconds: float = 0.1


@dataclass(frozen=True)
class Tree:
    """Ward's tree of centroids (bench/results/trials.md, Search)."""

    # Centroids whose distances are held, 128 MB; more are merged in blocks at first.
    whole: int = 4096
    # Centroids of such a block, at most.
    block: int = 1024
    # Power iterations for the direction that cuts a block.
    iterations: int = 5


@dataclass(frozen=True)
class Noise:
    """Rows that are far from others (docs/noise.md)."""

    # Distinct rows of the sample that distances are taken to: time grows with it (docs/noise.md).
    sample_rows: int = 20_000
    # The distance of a row is the distance to this nearest other row. More neighbors see larger
    # groups as noise (docs/noise.md).
    neighbors: int = 5
    # Bins of the histogram of the logarithms of distances (docs/noise.md).
    bins: int = 512
    # Least number of distances in the histogram: of 20 rows in three Gaussians a tenth was noise
    # (docs/noise.md).
    least_seen: int = 50
    # Depth of a valley of the histogram, below the lower of its sides: a smaller depth finds noise
    # where there is none (docs/noise.md).
    least_depth: float = 0.25
    # Least share of noise beyond a valley (docs/noise.md).
    least_share: float = 0.005
    # Largest share of noise beyond a valley: more is a cluster (docs/noise.md).
    most_share: float = 0.35
    # A gap of the largest distances is noise if Cauchy's tail has it once in this many samples. It
    # was not tuned (docs/noise.md).
    tail_samples: float = 1000.0
    # Least ratio of the ends of such a gap. It was not tuned (docs/noise.md).
    least_ratio: float = 3.0
    # Number of largest distances that may hold a gap, in addition to the least share.
    gap_rows: int = 1000
    # Rows of the sample among which groups of far rows are sought. In more rows background noise
    # has fewer near neighbors below the threshold (docs/noise.md).
    group_rows: int = 5000
    # Share of other rows among the neighbors of a group from which the group is noise, and no
    # sparse cluster (docs/noise.md).
    least_mixed: float = 0.05
    # Share of the far rows that must be in groups of noise (docs/noise.md).
    mixed_part: float = 0.5
    # This times the share of noise is sorted first, and all rows only if that is too little.
    border_part: float = 1.2
    # Number of k-means cells of m rows, over the root of m (docs/noise.md, Many rows).
    cells_a_root: int = 2
    # Cells that a row is in: more cells find nearer rows, in more time (docs/noise.md, Many rows).
    cells_a_row: int = 3
    # Least number of rows in a cell (docs/noise.md, Many rows).
    cell_rows: int = 32
    # One of this many members of a cell is compared first if only a threshold matters.
    member_step: int = 4


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features.

    On 28 small sets half and twice a field keep all labels, unless its comment says otherwise."""

    # Structured frequencies that are computed together.
    columns_together: int = 32
    # Order of Hadamard matrices whose products make larger Hadamard matrices.
    hadamard_order: int = 64
    # Columns from which frequencies are structured: their error is least from 16 on, with half as
    # much bias at 32. Passes are faster from 40 on (docs/maintainers/benchmarks.md, Errors of
    # random features). With 16 the objective of two of 28 small sets rises by 3 %.
    structured_from: int = 32
    # Multiples of the "mean" gamma, one a kernel, where a single array has several: bandwidths of
    # one half, one and two times the bandwidth of the mean.
    bank: tuple[float, ...] = (4.0, 1.0, 0.25)
    # Mean squared error of the kernel, over its variance, that "auto" aims at: .05 loses .7 % of
    # the objective under the exact kernel (bench/results/trials.md, Search). From .01 to .04 the
    # mean ARI of 28 small sets stays within .004; .01 takes 1.4 times as long.
    error: float = 0.02
    # Frequencies that "auto" tries first, and then doublings. On 28 small sets 64 change the
    # mean ARI by -.002; 256 change it by .002 and take 1.5 times as long.
    fewest: int = 128
    # Most frequencies that "auto" takes: time and memory grow with them.
    most: int = 8192
    # Most numbers in the features of the rows that starts run on: 256 MB in float64.
    most_numbers: int = 1 << 25
    # Least number of rows on whose pairs the error is measured.
    fewest_paired: int = 64
    # Most of these rows: the time grows with their square. x1/2 and x2 change the mean ARI of 28
    # small sets by -.002 and -.007, because other numbers of frequencies are taken.
    most_paired: int = 256
    # Numbers in the differences of all pairs, which give the number of rows between both limits.
    pair_numbers: int = 1 << 24
    # Rows whose pairs give the median distance, and means without a closed form: a relative error
    # of a few percent suffices for gamma.
    pair_rows: int = 1000
    # Rows that tell how far most rows spread.
    spread_rows: int = 1000
    # Most numbers in these rows.
    spread_numbers: int = 1 << 22


@dataclass(frozen=True)
class Landmarks:
    """How many landmarks a diffusion map has, and how they are chosen.

    Figures are in bench/results/trials.md, Diffusion features, unless a field names a page."""

    # Distinct rows up to which all are landmarks: more find smaller clusters, in more time and
    # memory (docs/scale.md, In memory; bench/results/trials.md, Diffusion features).
    most_rows: int = 200_000
    # Limit of sparse rows: a product of two takes a hundred times as long (docs/scale.md).
    most_sparse_rows: int = 30_000
    # All rows are landmarks up to this number of rows times squared clusters, as the time of the
    # eigenvectors grows with it (bench/results/trials.md: 50 clusters need all rows, 100 do not).
    most_work: float = 4e8
    # Least number of landmarks of more rows: 500 lose .07 NMI on shapes and in noise, 2000 lose .10
    # in noise (bench/results/trials.md, Landmarks that are centroids).
    least: int = 1000
    # Least number of landmarks for each cluster.
    a_cluster: int = 5
    # Least number of landmarks over the root of the number of rows.
    a_root: int = 5
    # Landmarks for each of hundreds of clusters: small clusters need landmarks of their own
    # (bench/results/trials.md, Random rows as landmarks).
    of_many: int = 8
    # The largest number of landmarks for each of hundreds of clusters, while rows and work allow it
    # (as of_many).
    most_of_many: int = 40
    # Least number of rows for each such landmark: 25 lose moons, ARI .82 for 1.00
    # (bench/results/trials.md, 25 rows for each landmark).
    rows_of_many: int = 10
    # Most work of the distances of all rows from all such landmarks.
    most_products: float = 5e10
    # Factor of the bandwidth with hundreds of clusters: with 1 rows step to other clusters, ARI .95
    # for .99 (bench/results/trials.md, Random rows as landmarks).
    narrow: float = 0.25
    # Rows from which a view of few columns has a graph of landmarks, whose functions do not gather
    # on few rows (bench/results/trials.md, Landmarks for views of few columns).
    view_rows: int = 16_000
    # Most columns of such a view: the graph of all rows is better for images of 20 components, not
    # of 10 (bench/results/trials.md, Landmarks for views of few columns).
    view_columns: int = 16
    # Distinct rows are sought among this many times the landmarks that all rows may be. More rows
    # find copies more surely.
    sought: float = 1.1
    # Rows in the sample for each landmark (bench/results/trials.md, as passes).
    sampled_rows: int = 20
    # Passes of k-means that choose landmarks: random rows lose clusters in noise, and 20 passes
    # gain nothing (bench/results/trials.md, Landmarks that are centroids).
    passes: int = 5
    # Passes of k-means with hundreds of clusters, whose landmarks k-means++ draws.
    passes_of_many: int = 2
    # Points of a small cluster when near points are put side by side.
    path_points: int = 24
    # Number of such clusters, at most: the time grows with its square.
    path_clusters: int = 4000
    # Rows for each landmark over which weights are summed, in time that grows with them. 50 and 200
    # change two sets of many (bench/results/trials.md, Other numbers of summed rows).
    summed_rows: int = 100
    # Rows for each landmark that are summed at a time.
    summed_at_once: int = 16


@dataclass(frozen=True)
class Search:
    """The search for the landmarks nearest to a row."""

    # Landmarks from which a k-d tree is faster than a pass over all, 1.6 to 9 times.
    tree_landmarks: int = 20_000
    # Most columns for the tree (as tree_landmarks).
    tree_columns: int = 4
    # Least number of rows for the tree (as tree_landmarks).
    tree_rows: int = 1000
    # Landmarks from which rows look in near cells alone: some neighbors are missed
    # (bench/results/trials.md, Neighbors in cells).
    cell_landmarks: int = 20_000
    # Mean number of points in a cell: with 64 the choice of cells takes longer, with 256 blobs that
    # touch have more right neighbors (bench/results/trials.md, Neighbors in cells).
    cell_points: int = 128
    # Cells that a row looks in (as cell_points).
    cell_visits: int = 16
    # Most neighbors that a new row seeks in `few_visits` cells alone (as cell_points).
    few_neighbors: int = 8
    # Cells that a new row looks in for few neighbors (as cell_points).
    few_visits: int = 8
    # Sampled points for each cell; centers are means of sampled points.
    cell_sample: int = 20
    # Principal components in which cells are made if there are more columns (as cell_points).
    cell_columns: int = 64
    # Columns from which rows are compared in single precision first, in .55 to .8 of the time
    # (bench/results/trials.md, The search among landmarks).
    single_columns: int = 32
    # Landmarks from which rows are compared in single precision first (as single_columns).
    single_landmarks: int = 500
    # Time of a term in a product of sparse matrices, over a term of full ones.
    sparse_term: int = 36
    # Work that full copies of sparse weights must save: some tenths of a second.
    sparse_work: float = 1e10
    # Time of taking the nearest of distances in memory, in terms of full products.
    taken: int = 700
    # Groups of distances for each neighbor, whose minima bound the distances of the neighbors.
    groups: int = 4


@dataclass(frozen=True)
class Graph:
    """Graphs of neighbors, and their connected components (docs/math.md, section 17)."""

    # Number of neighbors over the logarithm of the number of rows, if all rows are landmarks. 2
    # gains .05 NMI in noise, loses .006 on shapes (bench/results/trials.md, Diffusion features).
    neighbors_a_logarithm: float = 2.5
    # Neighbors among other landmarks: 7 and 10 lose in noise (bench/results/trials.md).
    neighbors: int = 8
    # Power of the standard deviations that components of views are divided by, where kernels are
    # chosen (docs/math.md, section 20).
    view_whitening: float = 0.5
    # Whitened components from which rows have length one (docs/math.md, section 20).
    unit_components: int = 8
    # Landmarks that a row far from all of them sees, at most: with fewer a row between two groups
    # sees one group alone (bench/results/trials.md, Far rows, and gaps that landmarks blur).
    around: int = 256
    # Such a row sees at most 1 / this part of all landmarks (as around).
    around_part: int = 20
    # Share of the rows, over 1 / k, from which a component is one of k clusters: .1 loses .05 NMI
    # in noise, .3 is alike (bench/results/trials.md, Landmarks that are centroids).
    large: float = 0.2
    # Least number of rows of a smaller component that may be kept (bench/results/trials.md, Which
    # small components count).
    least_rows: int = 10
    # Least ratio of its rows to the root of the rows of a mean cluster: clumps of noise grow with
    # the number of rows (as least_rows).
    rows_of_root: float = 1 / 3
    # Least logarithm of the density inside a small component over the density around it. A larger
    # value loses clusters in many columns, a smaller value keeps noise (as least_rows).
    denser: float = 1.5
    # As denser, for distances in place of densities: .7 has ARI .958 for 1.000 (as least_rows).
    valley: float = 0.1
    # Quantile of the distances around a component in this comparison (docs/math.md, (17.8)).
    around_quantile: float = 0.1
    # Number of the neighbor that distances inside are measured to (docs/math.md, (17.8)).
    inside: int = 5
    # A node is left out if the walk leaves it with this part of the median probability
    # (docs/math.md, Dangling nodes).
    dangling: float = 0.1


@dataclass(frozen=True)
class Spectrum:
    """Slow eigenpairs of a diffusion (docs/math.md, section 17)."""

    # Components for each cluster, at most: 3 gain .003 to .007 NMI on real sets and take 1.2 times
    # the time (bench/results/trials.md, What is cheaper in the trials).
    a_cluster: int = 2
    # Components up to which each cluster has two, and one beyond: with one for each of 100 clusters
    # NMI falls by .001 to .003 (bench/results/trials.md, Features of hundreds of clusters).
    two_a_cluster: int = 200
    # Rows that an eigenvector must cover to be used for any number of clusters
    # (bench/results/trials.md, Components, and functions of few rows).
    least_rows: int = 20
    # Power exp(-t (1 - mu)) of the last component; smaller ones hardly move a row.
    least_power: float = 0.01
    # Pairs with a larger 1 - mu are left out: their extension divides by nearly zero.
    largest_gap: float = 0.99
    # The diffusion time over the relaxation time of the k-th pair: 2 loses .02 NMI in noise, 4 and
    # 8 change at most .01 (bench/results/trials.md, Diffusion features).
    times: float = 3
    # Longest time in steps: slower eigenvectors are of disconnected parts. 30 loses .15 NMI in
    # noise, 300 loses .05 (bench/results/trials.md, Landmarks that are centroids).
    largest_time: float = 1e6
    # 1 - mu below this part of the largest 1 - mu is noise: 0.001 to 0.003 find 94 % of the numbers
    # of clusters of the sets in tests/test_diffusion.py.
    resolved: float = 0.002
    # Eigenpairs of a map that is a result itself, at least: 64 give the same labels and take longer
    # (bench/results/trials.md, 64 eigenpairs at least).
    pairs: int = 32
    # Least number of eigenpairs that are clustered: some cover too few rows, so that few clusters
    # need more than their number.
    least_pairs: int = 12
    # Work of a filter on the graph of all rows, at most; else functions are learned on landmarks.
    # With 40 vectors 200 000 rows of two columns take 9e9 (docs/scale.md, In memory).
    most_filtered: float = 5e9
    # Nodes of a graph up to which pairs are computed to rounding.
    exact_nodes: int = 5000
    # Vectors of a filter, at least (docs/math.md, section 17).
    block: int = 8
    # Nodes up to which all eigenpairs are computed at once (docs/math.md, section 17).
    full_nodes: int = 100
    # Nodes for each vector up to which all eigenpairs are computed at once (as full_nodes).
    full_a_vector: int = 3
    # Factors of a walk are multiplied if their product has at most this many times the entries
    # (docs/math.md, section 17).
    product_entries: int = 4
    # Nodes from which near nodes are put side by side: products gain most there (docs/math.md,
    # section 17).
    ordered_nodes: int = 30_000
    # Degree of a filter: a larger degree needs fewer rounds of more products (docs/math.md,
    # section 17).
    degree: int = 20
    # Lower end of the eigenvalues that filters amplify, at most: `degree` does little beyond it
    # (docs/math.md, section 17).
    largest_low: float = 0.97
    # Largest amplification, of eigenvalue one: more drowns other pairs in rounding (docs/math.md,
    # section 17).
    amplified: float = 1e4
    # Rounds of filters on a graph, at most: a warning follows.
    rounds: int = 60
    # Edges weaker than this part of the strongest edge of a node do not merge nodes (docs/math.md,
    # section 17).
    weak: float = 0.25
    # Relative error of 1 - mu that ends the rounds: of merged nodes a tenth saves nothing
    # (bench/results/trials.md, Which graph).
    settled: float = 0.005
    # Vectors from which Cholesky factors make them orthonormal and filters are stronger
    # (docs/math.md, section 17).
    many_vectors: int = 400
    # Largest amplification of more vectors (docs/math.md, section 17).
    more_amplified: float = 1e8
    # Lower end of the filters of more vectors, at least: eigenvalues of merged nodes are too small
    # (docs/math.md, section 17).
    least_low: float = 0.1
    # Clusters from which random combinations take the place of functions, and number of the
    # combinations (bench/results/trials.md, Combinations of functions).
    combinations: int = 100
    # Random functions that count eigenvalues: more count better (docs/math.md, section 17).
    probes: int = 16
    # Degree of the polynomials that count eigenvalues (docs/math.md, section 17).
    probed_degree: int = 50
    # Degree of the filter of combinations, times the angle of the last eigenvalue that it keeps
    # (docs/math.md, section 17).
    filter_degree: int = 30
    # Degree of this filter, at most (docs/math.md, section 17).
    largest_degree: int = 100


@dataclass(frozen=True)
class Choice:
    """The choice among candidate graphs (bench/results/trials.md, Which graph)."""

    # Adjusted Rand index of two partitions that count as equal. At 0.95 the trials take 0.93 of the
    # time and lose 0.016 on generated sets (bench/results/trials.md, The end of the trials).
    same_index: float = 0.98
    # Number of equal partitions that ends the trials (as same_index).
    same_partitions: int = 3
    # Weight of the partition of a whitened graph in the vote: four may be copies of each other
    # (bench/results/trials.md, Variants).
    whitened_weight: float = 0.75
    # Rows of the sample on which graphs are compared: more rows take more time
    # (bench/results/trials.md, Which graph).
    rows: int = 2000
    # Rows of this sample for each cluster, at least (as rows).
    rows_a_cluster: int = 20
    # Rows up to which all are landmarks, even if each graph of a sample has k components. Fewer
    # landmarks take less time, and may join components (bench/results/trials.md, Which graph).
    clear_rows: int = 10_000
    # Nearest neighbors that each row keeps where no graphs are compared: more edges join small
    # components, and small clusters.
    kept: int = 3
    # Least exponent of memberships after a hard end. A lower exponent makes memberships too hard:
    # rows between clusters are on lines or faces between few centroids, whatever the dimension
    # (docs/maintainers/annealing.md).
    least_exponent: float = -1.5
    # Most passes of k-means for the clusters of a graph.
    passes: int = 100
    # Move of the centroids that ends k-means, over their spread.
    tol: float = 1e-3


@dataclass(frozen=True)
class Number:
    """The number of clusters (docs/clusters_number.md; the formulas: docs/math.md, section 22)."""

    # Score of one cluster, which chance gives to numbers of clusters of rows without clusters. A
    # larger score finds fewer clusters (docs/clusters_number.md).
    one_cluster: float = 0.3
    # Numbers with a smaller ratio are alike, and only the best is reported.
    alike_ratio: float = 1.25
    # Numbers that are reported, at most (docs/clusters_number.md).
    most_numbers: int = 5
    # Eigenpairs of each graph: no more clusters are seen in eigengaps, and time grows with them
    # (bench/results/trials.md, Which graph: 64 pairs give the same numbers).
    pairs: int = 40
    # Number of clusters that the least size of components of a graph is chosen for.
    most_clusters: int = 60
    # Rows of the graphs: time grows with them (docs/clusters_number.md).
    graph_rows: int = 1200
    # Graphs in the order of asking: exponent of the whitening (None: the columns), and neighbors as
    # a multiple of the default (bench/results/trials.md, Which graph).
    graphs: tuple[tuple[float | None, int], ...] = (None, 1), (1.0, 1), (None, 2), (0.5, 1)
    # Coordinates that stand for a kernel, at most: time grows with their square.
    coordinates: int = 300
    # Clusters for which components are whitened. Twice as many components replace the columns if
    # there are more columns (bench/results/trials.md, Components of many columns).
    whitened_for: int = 20
    # Most clusters for which graphs are made: for more clusters, graphs have too few rows.
    graph_clusters: int = 32
    # Work of the distances of a closer look, at most.
    distance_work: float = 4e9
    # Rows for each centroid of the tree: more rows mean less noise, and fewer clusters that the
    # tree can show (docs/clusters_number.md).
    rows_a_centroid: int = 6
    # Centroids for each cluster of a closer look.
    centroids_a_cluster: int = 6
    # Passes of k-means for the centroids of the tree.
    passes: int = 2
    # Rows of a first and of a closer look for modes, at most (docs/clusters_number.md).
    mode_rows: tuple[int, int] = (3000, 12_000)
    # Rows of a first and of a closer look for the tree: 100 000 rows find no more clusters
    # (bench/results/trials.md, More views).
    tree_rows: tuple[int, int] = (3000, 20_000)
    # Least centroids of the tree in a first and in a closer look (as tree_rows).
    least_centroids: tuple[int, int] = (500, 1000)
    # Most centroids of the tree in a first and in a closer look (as tree_rows).
    most_centroids: tuple[int, int] = (500, 3300)
    # Clusters from which a closer look is taken (docs/math.md, section 22).
    many: int = 16
    # Share of rows in clusters of few rows above which a closer look is taken (as many).
    rare: float = 0.02
    # Share of rows in clusters of few rows above which graphs are not used (as many).
    too_rare: float = 0.1
    # Share of rows in clusters of few rows above which modes are not used (as many).
    most_rare: float = 0.5
    # A view tells its number if its score is this part of the largest score of views with one
    # cluster (docs/math.md, section 22).
    clear_one: float = 0.8
    # The same part of the largest score of views with more clusters (docs/math.md, section 22).
    clear_more: float = 0.3
    # Logarithm of an eigengap with the score one (docs/math.md, section 22).
    largest_gap: float = 4.0
    # Logarithm of the ratio of two heights of the tree with the score one (as largest_gap).
    largest_height: float = 3.0
    # Eigengap that arises by chance in a given graph (docs/clusters_number.md, Graphs).
    chance_gap: float = 0.03
    # Logarithm of the ratio of an eigengap to the next ones with the score one (as chance_gap).
    largest_outstanding: float = 5.0
    # This part of the fall of gaps and heights from k to 2k is subtracted: a line of even density
    # would have clusters otherwise (docs/math.md, section 22).
    usual_part: float = 0.5
    # Neighbors of the densities whose modes are counted (docs/math.md, section 22).
    neighbors: tuple[int, ...] = (10, 15, 25)
    # Modes are counted that stand out by so many deviations (docs/math.md, section 22).
    significances: tuple[float, ...] = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0)
    # From this number of modes on, counts near k add a part to the score of k (as significances).
    exact_modes: int = 20
    # Scaled logarithm of a jump of distances whose chance is exp(-12) (docs/math.md, section 22).
    jump: float = 12.0
    # Neighbors of a row before such a jump, at least (docs/math.md, section 22).
    jump_neighbors: int = 2


@dataclass(frozen=True)
class Fuzzy:
    """Fuzzy c-means."""

    # Tolerance of the search before the passes at the fuzzifier: they go on from its clusters, so
    # that a smaller tolerance only costs time.
    search_tol: float = 1e-3
    # With m="auto" the exponent is this times the critical exponent, at most: nearer to it all
    # centroids converge to the mean (docs/math.md, section 8).
    below_critical: float = 3.0


@dataclass(frozen=True)
class Fusion:
    """Fusions of kernels (docs/maintainers/fusion.md)."""

    # Bytes of LMKKM's quadratic program, over L n^2: measured for L = 1 to 6 and n = 300 to 1000.
    lmkkm_bytes: int = 125
    # Work of this program, over (L n)^3; it decides whether a call can be interrupted.
    lmkkm_work: int = 10
    # Part of all eigenvectors up to which Lanczos' method is faster than a full decomposition, of
    # orders 550 to 2100 (measured 2026-11 by ONKC on five data sets, one thread).
    lanczos_part: float = 0.125
    # Eigenvectors that are sought beyond the number of the last iteration.
    lanczos_spare: int = 8
    # Anchors of FAMKKM: the error falls and time grows with them (docs/maintainers/fusion.md,
    # FAMKKM).
    famkkm_anchors: int = 256
    # Part of the mean squared norm that RMKKM adds to squared distances, so that a row on a
    # centroid does not hold it there alone.
    rmkkm_smoothing: float = 1e-8
    # Starts of RMKKM.
    rmkkm_starts: int = 10
    # Tolerance of SimpleMKKM in the subspace, over the tolerance of the fit.
    simplemkkm_tol: float = 0.01
    # Most iterations of SimpleMKKM in the subspace.
    simplemkkm_iterations: int = 1000
    # Size of components outside the subspace that are left out: the objective changes by its
    # square.
    simplemkkm_component: float = 1e-6
    # Anchors of SMKC up to `smkc_rows` rows, as in the paper (docs/maintainers/fusion.md, Anchors).
    smkc_anchors: int = 1000
    # Rows from which SMKC takes three times their root as anchors (docs/maintainers/fusion.md,
    # Anchors).
    smkc_rows: int = 20_000
    # Rows for each anchor that k-means++ chooses from (docs/maintainers/fusion.md, Anchors).
    smkc_sample: int = 4


@dataclass(frozen=True)
class Tables:
    """Tables of words and numbers."""

    # Rows whose values fill gaps: time grows with them. At most 512, the range of the index of a
    # reference.
    references: int = 500
    # Reference rows whose mean fills a gap.
    neighbors: int = 10


@dataclass
class Tuning:
    """All groups. A test or a benchmark replaces a whole group."""

    sampling: Sampling = Sampling()
    passes: Passes = Passes()
    schedule: Schedule = Schedule()
    starts: Starts = Starts()
    swaps: Swaps = Swaps()
    hardpasses: HardPasses = HardPasses()
    components: Components = Components()
    storage: Storage = Storage()
    workers: Workers = Workers()
    tiles: Tiles = Tiles()
    linalg: Linalg = Linalg()
    tree: Tree = Tree()
    noise: Noise = Noise()
    fourier: Fourier = Fourier()
    landmarks: Landmarks = Landmarks()
    search: Search = Search()
    graph: Graph = Graph()
    spectrum: Spectrum = Spectrum()
    choice: Choice = Choice()
    number: Number = Number()
    fuzzy: Fuzzy = Fuzzy()
    fusion: Fusion = Fusion()
    tables: Tables = Tables()


TUNING = Tuning()
