"""The inner functions and records that tests use, beside public names, the core and the twin.

No other test imports from `rffpk.anneal`, `rffpk.rows` or `rffpk.system`, but for code that runs
in a process of its own, so that this page is the list of contracts inside them: what is not named
here may change without a change of tests. Modules of `rffpk.spaces` and `rffpk.fusion` are imported
by the tests of these. Each name has a reason; the limits that tests set are named in conftest.py.
"""

# How warnings judge memberships and which rows they look at: no fit reaches the thresholds at will.
# States of starts in which each swap can be tried, and its estimates compared.
# Probabilities of far rows, which passes move.
from rffpk.anneal import starts, swaps
from rffpk.anneal.convergence_warnings import Ending, rows_of_clusters

# What components leave out is bounded, and no attribute has them.
from rffpk.anneal.decompositions import compressed

# What is kept between hard passes, whose states a machine visits in any order; which of the things
# that make them faster are used, and directions, which change no label.
from rffpk.anneal.fit import fit
from rffpk.anneal.hard_pass import (
    Assignment,
    Need,
    add,
    along,
    coordinates,
    find_directions,
    hard_plan,
    remove,
    step,
)
from rffpk.anneal.journal import arrays_of_record, record_of
from rffpk.anneal.kernel_steps import KernelRows, kernel_coordinates
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import (
    FitContext,
    Schedule,
    Stage,
    StageEnd,
    Start,
    anneal,
    from_merged_centroids,
)

# The distributions of initial centroids, which passes move before anything is published, and the
# ends of what rows are drawn from.
from rffpk.anneal.starts import draw, merged_centroids, seed_centroids
from rffpk.anneal.steps import FeatureLevel

# The rule that chooses among graphs, for partitions that no graph has.
from rffpk.choose.graph_choice import COLUMNS, OPTIONS, Option, medoid, searched_clusters

# The formulas of the three witnesses of a number of clusters.
from rffpk.choose.number import (
    eigengap_scores,
    height_scores,
    intrinsic_dimension,
    mode_counts,
    outstanding_scores,
    rare_share,
)

# The starts of given parameters, and the stages that follow from given ends of those before, which
# rows give as they please.
from rffpk.estimators.annealing import search_parameters

# Threads and clocks of readings, and what overlapping calls send to workers.
from rffpk.rows import dask_workers, passes, sample, source, weights

# Arguments of the core and of its twin; an order of rows, which no answer shows.
from rffpk.rows.arrays import Fourier, Identity, Landmarks, Structure, Unit, label_order

# The order of the rows in a sample of distinct rows, which no attribute has.
from rffpk.rows.distinct import row_hashes

# Memory of draws and distances, block by block, beside that of a fit.
from rffpk.rows.draws import Reservoir, row_keys

# The order in which rows meet landmarks, and rows that meet none, which changes no feature.
from rffpk.rows.passes import (
    one_pass,
    pass_of_block,
    shifted_features,
    unshifted,
)

# Several views whose features are columns.
# The weights of sampled rows, and moments beside numbers that hide them.
from rffpk.rows.sample import Sampling, column_moments, sample_tables
from rffpk.rows.source import make_stream
from rffpk.rows.store import Storage

# What a pass over the rows tells a start.
from rffpk.rows.sums import Step
from rffpk.rows.table import (
    Narrow,
    distinct_rows,
    sparse_rows,
    squared_distances,
    squared_norms,
)

# Damaged files by the hundred, without a fit of each that is read.
from rffpk.rows.table_files import Choice, besides_numbers, read_table
from rffpk.rows.weights import ones

# The limits of threads and memory of the process, which fits only follow.
from rffpk.system import config, linalg, report
from rffpk.system.files import TableError

# Long calls, and decompositions whose drivers fail: matrices at which they do are not known.
from rffpk.system.interrupts import interruptible
from rffpk.system.linalg import (
    basis_of,
    eigh,
    fixed_signs,
    leading_eigenvectors,
    over_eigenvalues,
    pivoted_cholesky,
    ritz_values,
    svd,
)

# Ward's trees of clusters without rows, and of more of them than a fit has.
from rffpk.system.tree import groups, merged, ward

# The fields that tests replace by the fixture `tuning`.
from rffpk.system.tuning import TUNING

__all__ = [
    "COLUMNS",
    "OPTIONS",
    "TUNING",
    "Assignment",
    "Choice",
    "Ending",
    "FeatureLevel",
    "FitContext",
    "Fourier",
    "Identity",
    "KernelRows",
    "Landmarks",
    "Narrow",
    "Need",
    "Option",
    "PowerMean",
    "Reservoir",
    "Sampling",
    "Schedule",
    "Stage",
    "StageEnd",
    "Start",
    "State",
    "Step",
    "Storage",
    "Structure",
    "TableError",
    "Unit",
    "add",
    "along",
    "anneal",
    "arrays_of_record",
    "basis_of",
    "besides_numbers",
    "column_moments",
    "column_rows",
    "compressed",
    "config",
    "coordinates",
    "dask_workers",
    "distinct_rows",
    "draw",
    "eigengap_scores",
    "eigh",
    "find_directions",
    "fit",
    "fixed_signs",
    "from_merged_centroids",
    "groups",
    "hard_plan",
    "height_scores",
    "interruptible",
    "intrinsic_dimension",
    "kernel_coordinates",
    "label_order",
    "leading_eigenvectors",
    "linalg",
    "make_rows",
    "make_stream",
    "medoid",
    "merged",
    "merged_centroids",
    "mode_counts",
    "one_pass",
    "ones",
    "outstanding_scores",
    "over_eigenvalues",
    "pass_of_block",
    "passes",
    "pivoted_cholesky",
    "rare_share",
    "read_table",
    "record_of",
    "remove",
    "report",
    "ritz_values",
    "row_hashes",
    "row_keys",
    "rows_of_clusters",
    "sample",
    "sample_tables",
    "search_parameters",
    "searched_clusters",
    "seed_centroids",
    "shifted_features",
    "source",
    "sparse_rows",
    "squared_distances",
    "squared_norms",
    "starts",
    "step",
    "svd",
    "swaps",
    "unshifted",
    "ward",
    "weights",
]


def with_weight(given):
    """Arguments of `make_rows` with weights of one for None."""
    xs, maps, weight, *rest = given
    return xs, maps, ones(len(xs[0])) if weight is None else weight, *rest


def make_rows(*given):
    """Rows with equal view weights, whose features are shifted by their means unless shifts are
    given."""
    rows = passes.make_rows(*with_weight(given))
    return rows if len(given) == 5 and given[4] is not None else passes.centered(rows)


def column_rows(x, weight, n_threads, shift=None):
    """Return rows of one view whose features are its columns, as `make_rows` shifts them."""
    rows = passes.column_rows(x, ones(len(x)) if weight is None else weight, n_threads, shift)
    return passes.centered(rows) if shift is None else rows
