"""scikit-learn's base classes, as estimators inherit from them, with types.

scikit-learn has no types, and a class with an untyped base would accept any argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

F = TypeVar("F")

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self, **requests: Any) -> Self: ...
        def set_partial_fit_request(self, **requests: Any) -> Self: ...
        def set_predict_proba_request(self, **requests: Any) -> Self: ...
        def set_score_request(self, **requests: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def __sklearn_clone__(self) -> Any: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        def __getstate__(self) -> dict[str, Any]: ...

    class TransformerMixin:
        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[Any]: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClusterMixin:
        fit: Any  # of each class

        def fit_predict(self, X: Any, y: Any = None, **options: Any) -> NDArray[np.int32]: ...

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]: ...

    class CallbackSupportMixin:
        def set_callbacks(self, *callbacks: Any) -> Self: ...

    def with_callbacks(method: F) -> F: ...

else:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        TransformerMixin,
    )

    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # before scikit-learn 1.9

        class CallbackSupportMixin:
            """Without callbacks."""

        def with_callbacks(method: Any) -> Any:
            return method


__all__ = [
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "ClusterMixin",
    "TransformerMixin",
    "with_callbacks",
]
