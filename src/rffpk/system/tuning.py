"""The numbers that trade time, memory or quality: `TUNING`, in groups of fields.

Code reads a field where it is used, as `TUNING.sampling.rows`, so that a test or a benchmark can
replace it. `python -m bench.quality.tuning` varies fields and prints what changes. A comment names
the page with the measurements; "no record" means that no page has any. Costs and work count
multiply-adds at the rate of a large product of matrices.

Bounds of rounding errors, formats of files and limits of machines stay where they are derived.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """Samples of the rows."""

    # Rows that starts run on. Fewer rows save time; on kddcup99 5000 rows end 1.3 % higher
    # (bench/results/trials.md, Search).
    rows: int = 20_000
    # Least number of sampled rows for each cluster. 100 rows lower the objective by 0.05 % and
    # nearly double the memory (bench/results/trials.md, Search).
    rows_a_cluster: int = 50
    # Factor between the sizes of growing samples: larger steps copy less often and learn more
    # slowly from a few rows (no record).
    growth: int = 8
    # Bytes of the largest copy of a growing sample (no record).
    copy_bytes: int = 32 << 20
    # A reservoir has room for 1 / this part of its rows besides: more room means fewer, larger
    # rearrangements (no record).
    reservoir_part: int = 16
    # Rows of this room, at least (no record).
    reservoir_rows: int = 1024


@dataclass(frozen=True)
class Passes:
    """Passes over the rows."""

    # Steps end early if the objective is above its goal by this many times the last gain. A smaller
    # number saves steps, and abandons starts that would have won (no record).
    hope: float = 4.0
    # Rows from which a pass over landmarks puts rows in order: a copy takes time, too (no record).
    ordered_rows: int = 1000
    # Most columns of rows that a pass over landmarks puts in order (no record).
    ordered_columns: int = 128


@dataclass(frozen=True)
class Storage:
    """Features that are stored, or computed in each pass. Costs are of one row."""

    # Cost of reading a number from memory. The five costs were within a third of measured ones on
    # Zen 4 and Zen 5 in both precisions (docs/benchmarks.md).
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
    # Bytes that are taken unseen: reading the available memory takes half a millisecond.
    unseen_bytes: int = 2**24
    # Bytes of structured frequencies that are written out for sparse rows, at most (no record).
    written_bytes: int = 1 << 28
    # Bytes of a block of a source. Smaller blocks save memory; larger ones hide what is done once
    # for each block (bench.speed.streams).
    block_bytes: int = 16 << 20


@dataclass(frozen=True)
class Workers:
    """Partitions on the workers of Dask (bench.speed.cluster)."""

    # First rows that the client checks before all workers check theirs (no record).
    head_rows: int = 1024
    # Results that one task joins, and small partitions that one task visits. A larger group saves
    # tasks, of some milliseconds each, and leaves workers idle (bench.speed.cluster).
    group: int = 16
    # Mean numbers of small partitions, which one task visits in a group (bench.speed.cluster).
    small_numbers: int = 1 << 20
    # Tasks that each thread keeps where partitions are visited in groups (bench.speed.cluster).
    tasks_a_thread: int = 4
    # Seconds between looks at the workers during a wait (no record).
    look_seconds: float = 2.0
    # Seconds until a cluster without workers is given up (no record).
    workerless_seconds: float = 20.0
    # Seconds for the transfer of a result (no record).
    transfer_seconds: float = 30.0


@dataclass(frozen=True)
class Tiles:
    """Work at a time. Smaller tiles stay in a cache and save memory; larger tiles save calls."""

    # Numbers in a block of rows: a single row takes as long as a block, a millisecond (no record).
    block_numbers: int = 1 << 17
    # Rows in such a block, at most (no record).
    block_rows: int = 512
    # Rows of a tile of a kernel that is recomputed: 2 MB, which stay in a cache (no record).
    kernel_rows: int = 256
    # Columns of this tile (no record).
    kernel_columns: int = 1024
    # Bytes of rows that are hashed together (no record).
    hashed_bytes: int = 1 << 20
    # Numbers that are copied at a time when drawn rows are put in order (no record).
    copied_numbers: int = 1 << 20
    # Numbers of rows that a pass over landmarks puts in order at a time (no record).
    ordered_numbers: int = 1 << 22
    # Numbers of differences from sparse rows that are held at a time (no record).
    exact_numbers: int = 1 << 20
    # Keys of a draw that are made at a time (no record).
    keys: int = 1 << 18
    # Numbers of sparse rows that are written out at a time (no record).
    sparse_numbers: int = 1 << 20


@dataclass(frozen=True)
class Linalg:
    """Decompositions, and calls that Ctrl-C interrupts."""

    # Size of the random part of an initial vector, relative to the vector: none may miss an
    # eigenvector, much of it costs iterations (no record).
    start_noise: float = 1e-3
    # Work of all eigenvectors, over n^3; it decides whether a call can be interrupted (no record).
    eigh_work: float = 10.0
    # Work of the singular vectors of (n, k), over n k^2 (as eigh_work).
    svd_work: float = 6.0
    # Work of the last call of ARPACK, which holds the interpreter's lock, over n k^2 (no record).
    ritz_work: float = 50.0
    # Order, over the number of eigenvectors, up to which all are as fast as ARPACK (no record).
    full_order: int = 10
    # Steps of Lanczos' method that look for a larger eigenvalue at the end (no record).
    check_steps: int = 10
    # Work of a quarter of a second: longer calls run in a thread that Ctrl-C leaves (no record).
    long_work: float = 1e10
    # Work of a number that is written to new memory (no record).
    written_work: float = 300.0
    # Seconds after which a wait ends by itself: on some systems signals do not end it.
    wake_seconds: float = 0.1


@dataclass(frozen=True)
class Tree:
    """Ward's tree of centroids (bench/results/trials.md, Search)."""

    # Centroids whose distances are held, 128 MB; more are merged in blocks at first (no record).
    whole: int = 4096
    # Centroids of such a block, at most (no record).
    block: int = 1024
    # Power iterations for the direction that cuts a block (no record).
    iterations: int = 5


@dataclass(frozen=True)
class Noise:
    """Rows that are far from others (docs/noise.md)."""

    # Distinct rows of the sample that distances are taken to: time grows with it (docs/noise.md).
    sample_rows: int = 20_000


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features."""

    # Structured frequencies that are computed together (no record).
    columns_together: int = 32
    # Order of Hadamard matrices whose products make larger Hadamard matrices (no record).
    hadamard_order: int = 64


@dataclass
class Tuning:
    """All groups. A test or a benchmark replaces a whole group."""

    sampling: Sampling = Sampling()
    passes: Passes = Passes()
    storage: Storage = Storage()
    workers: Workers = Workers()
    tiles: Tiles = Tiles()
    linalg: Linalg = Linalg()
    tree: Tree = Tree()
    noise: Noise = Noise()
    fourier: Fourier = Fourier()


TUNING = Tuning()
