"""The inner functions and records that tests use, beside public names, the core and the twin.

No other test imports a private module, so that this page is the list of contracts inside the
package: what is not named here may change without a change of tests.
"""

from rffpk._anneal import decompositions, feature_steps, hard_passes, swaps
from rffpk._anneal import fit as fit_module
from rffpk._anneal.convergence_warnings import Ending, rows_of_clusters
from rffpk._anneal.decompositions import compressed, features_of, total_squares
from rffpk._anneal.feature_steps import FeatureRun
from rffpk._anneal.hard_passes import Assignment, Need, add, hard_plan, remove, settling_pass, step
from rffpk._anneal.kernel_rows import KernelRows, kernel_coordinates
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.search import FitContext
from rffpk._anneal.seeding import k_means_plus_plus, merged_centroids, seed_centroids
from rffpk._anneal.witnesses import (
    eigengap_scores,
    height_scores,
    intrinsic_dimension,
    mode_counts,
    rare_share,
)
from rffpk._rows import dask_workers, streams
from rffpk._rows.draws import Reservoir, _accepted, row_keys
from rffpk._rows.passes import make_rows, one_pass, pass_of_block, shifted_features
from rffpk._rows.sample import Sampling, column_moments, sample_arrays
from rffpk._rows.store import Storage
from rffpk._rows.streams import make_stream
from rffpk._utils import config, files, interrupts, linalg, messages, tree
from rffpk._utils.arrays import Fourier, Landmarks, Structure, Unit
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
from rffpk._utils.tree import groups, means, merged, ward

__all__ = [
    "LONG",
    "Assignment",
    "Choice",
    "Ending",
    "FeatureRun",
    "FitContext",
    "Fourier",
    "KernelRows",
    "Landmarks",
    "NarrowRows",
    "Need",
    "PowerMean",
    "Reservoir",
    "Sampling",
    "Storage",
    "Structure",
    "TableError",
    "Unit",
    "_accepted",
    "active_client",
    "add",
    "basis_of",
    "besides_numbers",
    "column_moments",
    "compressed",
    "config",
    "dask_module",
    "dask_workers",
    "decompositions",
    "distinct_rows",
    "eigengap_scores",
    "eigh",
    "feature_steps",
    "features_of",
    "files",
    "fit_module",
    "fixed_signs",
    "groups",
    "hard_passes",
    "hard_plan",
    "height_scores",
    "interruptible",
    "interrupts",
    "intrinsic_dimension",
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
    "procrustes",
    "rare_share",
    "read_table",
    "remove",
    "ritz_values",
    "row_keys",
    "rows_of_clusters",
    "sample_arrays",
    "seed_centroids",
    "settling_pass",
    "shifted_features",
    "source_of",
    "sparse_rows",
    "step",
    "streams",
    "svd",
    "swaps",
    "total_squares",
    "tree",
    "ward",
    "whole_file",
]
