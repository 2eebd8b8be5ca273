"""The inner functions and records that tests use, beside public names, the core and the twin.

No other test imports a private module, so that this page is the list of contracts inside the
package: what is not named here may change without a change of tests.
"""

from rffpk._anneal import checkpoint as checkpoint_module
from rffpk._anneal import decompositions, feature_steps, hard_passes, swaps
from rffpk._anneal import fit as fit_module
from rffpk._anneal.checkpoint import Checkpoint
from rffpk._anneal.convergence_warnings import Ending, rows_of_clusters
from rffpk._anneal.decompositions import (
    compressed,
    critical_exponent,
    exponent_of_gram,
    features_of,
    total_squares,
    typical_critical_exponent,
    unit_critical_exponent,
)
from rffpk._anneal.feature_steps import FeatureRun, count_distinct
from rffpk._anneal.hard_passes import Assignment, Need, add, hard_plan, remove, settling_pass, step
from rffpk._anneal.kernel_rows import KernelRows, kernel_coordinates
from rffpk._anneal.objective import PowerMean, WeightedViews
from rffpk._anneal.search import (
    NOISE,
    FitContext,
    History,
    Schedule,
    Stage,
    StageEnd,
    Start,
    different_starts,
    from_merged_centroids,
    search,
    stages_of,
)
from rffpk._anneal.seeding import k_means_plus_plus, merged_centroids, seed_centroids
from rffpk._anneal.witnesses import (
    eigengap_scores,
    height_scores,
    intrinsic_dimension,
    mode_counts,
    rare_share,
)
from rffpk._rows import dask_workers, store, streams
from rffpk._rows.draws import MANY, Reservoir, _accepted, row_keys
from rffpk._rows.passes import (
    accurate_cost,
    make_rows,
    one_pass,
    pass_of_block,
    shifted_features,
    take_steps,
    total_variance,
)
from rffpk._rows.rows import Rows, coverage, present_bits, there_of
from rffpk._rows.sample import Sampling, column_moments, sample_arrays
from rffpk._rows.store import Storage, projection_cost, written_out
from rffpk._rows.streams import make_stream
from rffpk._rows.sums import LEAST_WEIGHT as LEAST_VIEW_WEIGHT
from rffpk._rows.sums import (
    Step,
    empty_clusters,
    hard_weights,
    is_hard,
    power_constant,
    power_weights,
    typicality,
    view_penalty,
    view_weights,
)
from rffpk._utils import config, estimator, files, interrupts, linalg, messages, tree
from rffpk._utils.arrays import LEAST_WEIGHT, Fourier, Landmarks, Structure, Unit
from rffpk._utils.columns import NarrowRows, distinct_rows, narrow_rows, sparse_rows
from rffpk._utils.dask_collections import active_client, dask_module, source_of
from rffpk._utils.files import Choice, TableError, besides_numbers, read_table, whole_file
from rffpk._utils.interrupts import LONG, interruptible
from rffpk._utils.linalg import (
    basis_of,
    eigh,
    fixed_signs,
    leading_eigenvectors,
    orthonormal,
    over_eigenvalues,
    pivoted_cholesky,
    procrustes,
    ritz_values,
    svd,
)
from rffpk._utils.messages import without
from rffpk._utils.tensor_files import read_tensors, write_tensors
from rffpk._utils.tree import groups, means, merged, ward
from rffpk._utils.validation import check_rows

__all__ = [
    "LEAST_VIEW_WEIGHT",
    "LEAST_WEIGHT",
    "LONG",
    "MANY",
    "NOISE",
    "Assignment",
    "Checkpoint",
    "Choice",
    "Ending",
    "FeatureRun",
    "FitContext",
    "Fourier",
    "History",
    "KernelRows",
    "Landmarks",
    "NarrowRows",
    "Need",
    "PowerMean",
    "Reservoir",
    "Rows",
    "Sampling",
    "Schedule",
    "Stage",
    "StageEnd",
    "Start",
    "Step",
    "Storage",
    "Structure",
    "TableError",
    "Unit",
    "WeightedViews",
    "_accepted",
    "accurate_cost",
    "active_client",
    "add",
    "basis_of",
    "besides_numbers",
    "check_rows",
    "checkpoint_module",
    "column_moments",
    "compressed",
    "config",
    "count_distinct",
    "coverage",
    "critical_exponent",
    "dask_module",
    "dask_workers",
    "decompositions",
    "different_starts",
    "distinct_rows",
    "eigengap_scores",
    "eigh",
    "empty_clusters",
    "estimator",
    "exponent_of_gram",
    "feature_steps",
    "features_of",
    "files",
    "fit_module",
    "fixed_signs",
    "from_merged_centroids",
    "groups",
    "hard_passes",
    "hard_plan",
    "hard_weights",
    "height_scores",
    "interruptible",
    "interrupts",
    "intrinsic_dimension",
    "is_hard",
    "k_means_plus_plus",
    "kernel_coordinates",
    "leading_eigenvectors",
    "linalg",
    "make_rows",
    "make_stream",
    "means",
    "merged",
    "merged_centroids",
    "messages",
    "mode_counts",
    "narrow_rows",
    "one_pass",
    "orthonormal",
    "over_eigenvalues",
    "pass_of_block",
    "pivoted_cholesky",
    "power_constant",
    "power_weights",
    "present_bits",
    "procrustes",
    "projection_cost",
    "rare_share",
    "read_table",
    "read_tensors",
    "remove",
    "ritz_values",
    "row_keys",
    "rows_of_clusters",
    "sample_arrays",
    "search",
    "seed_centroids",
    "settling_pass",
    "shifted_features",
    "source_of",
    "sparse_rows",
    "stages_of",
    "step",
    "store",
    "streams",
    "svd",
    "swaps",
    "take_steps",
    "there_of",
    "total_squares",
    "total_variance",
    "tree",
    "typical_critical_exponent",
    "typicality",
    "unit_critical_exponent",
    "view_penalty",
    "view_weights",
    "ward",
    "whole_file",
    "without",
    "write_tensors",
    "written_out",
]
