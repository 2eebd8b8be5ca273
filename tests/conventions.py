"""What tests of several classes share: failures that are expected, a certificate, a method."""

import itertools
import tracemalloc
from functools import partial

from sklearn.utils import get_tags

import rffpk

CLUSTERERS = [cls for name in rffpk.__all__ if hasattr(cls := getattr(rffpk, name), "fit_predict")]
_OTHERS = {rffpk.RMKKM, rffpk.NystroemKernelKMeans}  # beside fusions
FUSIONS = [c for c in CLUSTERERS if "rffpk.fusion" in c.__module__ and c not in _OTHERS]

# With random features of each view and typicality, as in the paper.
ip_rff_mkpkm = partial(rffpk.RFFMultiKernelPowerKMeans, kernels=None, typicality="auto")

# scikit-learn exempts its own KMeans from these checks too: seeding draws rows, and a row of weight
# two is not drawn like two rows. Tests of the classes compare weights and repeated rows where
# draws do not matter.
WEIGHT_CHECKS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "seeding draws rows, not weights"
    for kind in ("dense", "sparse")
}


def sparse_failures(estimator):
    """List the checks that take any estimator with predict_proba for a classifier.

    These checks ask for the tags of a classifier. tests/test_sparse.py has the formats they try.
    """
    if not (get_tags(estimator).input_tags.sparse and hasattr(estimator, "predict_proba")):
        return {}
    reason = "memberships are not those of a classifier"
    return {f"check_estimator_sparse_{kind}": reason for kind in ("array", "matrix")}


def peak_of(function):
    """Return the most bytes that a call of the function holds at a time."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def assert_never_rises(model, least=2):
    """Check that the objectives of each start fall but for rounding."""
    records = [r for r in model.history_ if "s" in r]
    assert len(records) >= least
    for before, after in itertools.pairwise(records):
        if before["start"] == after["start"] and not before["repairs"]:
            slack = 1e-10 * abs(before["objective"])
            assert after["objective"] <= before["objective"] + slack, (before, after)


def weight_and_sparse_failures(estimator):
    is_map = not hasattr(estimator, "predict_proba")
    return {} if is_map else WEIGHT_CHECKS | sparse_failures(estimator)
