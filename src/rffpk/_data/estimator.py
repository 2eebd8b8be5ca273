"""The base of all estimators: pickles carry the version of the package that wrote them, and the
HTML representation a link to the documentation."""

from __future__ import annotations

from importlib.metadata import metadata
from typing import Any

from sklearn.base import BaseEstimator

from rffpk._config import __version__
from rffpk._data.progress import Observed

_KEY = "_rffpk_version"


def _line(version: str) -> tuple[str, ...]:
    """The part of a version within which pickles can be read: the major number, and the minor one
    before 1.0."""
    parts = version.split(".")
    return tuple(parts[: 2 if parts[0] == "0" else 1])


class VersionError(ValueError):
    """A pickle of a version that this one does not read."""


def site() -> str:
    """The address of the documentation as the metadata of the package name it; empty if not."""
    entries = metadata("rffpk").get_all("Project-URL") or []
    urls = dict(entry.split(", ", 1) for entry in entries)
    return urls.get("Documentation", "").rstrip("/")


class Estimator(Observed, BaseEstimator):
    """scikit-learn's BaseEstimator with versioned pickles and a link to the documentation."""

    # The names that scikit-learn's guide for developers gives for the HTML representation.
    _doc_link_module = "rffpk"

    @property
    def _doc_link_template(self) -> str:
        return f"{site()}/generated/rffpk.{{estimator_name}}.html" if site() else ""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _KEY: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written = state.pop(_KEY, "0.0")
        if _line(written) != _line(__version__):
            raise VersionError(
                f"This {type(self).__name__} was pickled by rffpk {written}, and rffpk "
                f"{__version__} does not read it: fit it again, or install rffpk {written}."
            )
        super().__setstate__(state)
