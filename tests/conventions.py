"""What scikit-learn's checks of conventions are expected to fail at."""

from sklearn.utils import get_tags


def sparse_failures(estimator):
    """Checks that take an estimator with predict_proba for a classifier, whose tags they ask for;
    tests/test_sparse.py has the formats that they try."""
    if not (get_tags(estimator).input_tags.sparse and hasattr(estimator, "predict_proba")):
        return {}
    reason = "memberships are not those of a classifier"
    return {f"check_estimator_sparse_{kind}": reason for kind in ("array", "matrix")}
