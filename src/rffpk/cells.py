"""Clusters of the cells of an AnnData object, written to where scanpy keeps such results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rffpk.estimators.diffusion import DiffusionPowerKMeans
from rffpk.estimators.multiview import RFFMultiKernelPowerKMeans
from rffpk.estimators.transformers import DiffusionMap
from rffpk.rows.checks import Level
from rffpk.spaces.graph import PRECOMPUTED
from rffpk.system.config import __version__


def cluster(
    adata: Any,
    n_clusters: Level | int = "auto",
    *,
    use_rep: str | Sequence[str] = "X_pca",
    neighbors_key: str | None = None,
    key_added: str = "rffpk",
    random_state: Any = 0,
    **parameters: Any,
) -> DiffusionPowerKMeans | RFFMultiKernelPowerKMeans:
    """Cluster cells, as ``scanpy.tl.leiden`` does.

    One representation is clustered by `DiffusionPowerKMeans`; several, such as of the RNA and the
    proteins of the same cells, are views of one `RFFMultiKernelPowerKMeans`, each with a graph of
    its own. No graph of neighbors is needed before, but one that is there can be used.

    Parameters
    ----------
    adata : AnnData
        Annotated cells. ``adata.obs[key_added]`` gets the labels, as a categorical of strings.
        ``adata.obsm[key_added + "_memberships"]`` gets the memberships of the cells in the clusters
        "0", "1", ..., unless `store_memberships` is False. ``adata.uns[key_added]`` gets the
        parameters, and the levels of `selection_` where `n_clusters` is a word.
    n_clusters : {"coarse", "auto", "fine"} or int, default="auto"
        Number of clusters, from 1 to the number of cells. "auto": that which `select_n_clusters`
        finds; "coarse" and "fine": the first and the last of its levels.
    use_rep : str or sequence of str, default="X_pca"
        Name in ``adata.obsm`` of what is clustered, or "X" for ``adata.X``; several are views.
    neighbors_key : str or None, default=None
        Name in ``adata.uns`` of the result of ``scanpy.pp.neighbors``, "neighbors" by default
        there. Its connectivities are then the graph, in place of `use_rep`. None: the model makes
        its own graph.
    key_added : str, default="rffpk"
        Name of what is written.
    random_state : int, RandomState instance or None, default=0
        An int gives the same labels in each call.
    **parameters : dict
        Other parameters of the class.

    Returns
    -------
    model : object
        The fitted estimator, whose `predict` takes the same representation of new cells; with
        `neighbors_key` their connectivities to the cells of `adata`.

    Raises
    ------
    ValueError, TypeError
        If `adata` has no such representation or graph, or a parameter is not as described; nothing
        is written then.
    """
    _check(adata, key_added, neighbors_key, parameters)
    common = {"random_state": random_state, "store_memberships": True, **parameters}
    used: dict[str, Any] = {"neighbors_key": neighbors_key}
    if neighbors_key is None:
        use_rep = [use_rep] if isinstance(use_rep, str) else use_rep
        if not isinstance(use_rep, (list, tuple)) or not use_rep:
            raise TypeError(f"use_rep={use_rep!r}: names nothing. Pass a name or a list of names.")
        views = [_representation(adata, name) for name in use_rep]
        used = {"use_rep": use_rep[0] if len(use_rep) == 1 else np.array(use_rep)}
    else:
        common["metric"], views = PRECOMPUTED, [_connectivities(adata, neighbors_key)]
    model: Any
    if len(views) == 1:
        model = DiffusionPowerKMeans(n_clusters, **common).fit(views[0])
    else:
        common.setdefault("kernels", [DiffusionMap() for _ in views])
        model = RFFMultiKernelPowerKMeans(n_clusters, **common).fit(views)
    import pandas as pd  # whoever has an AnnData object has it

    names = [str(label) for label in np.unique(model.labels_)]  # in the order of the numbers
    adata.obs[key_added] = pd.Categorical([*map(str, model.labels_)], categories=names)
    adata.uns[key_added] = {"params": {**_written(model), **used}}
    if isinstance(n_clusters, str):
        adata.uns[key_added]["levels"] = model.selection_.levels
    # memberships of an earlier call must not stay
    adata.obsm.pop(of_memberships := f"{key_added}_memberships", None)
    if model.store_memberships:
        adata.obsm[of_memberships] = model.memberships_
    return model


def _check(adata: Any, key_added: Any, neighbors_key: Any, parameters: dict[str, Any]) -> None:
    """Raise errors that the classes would raise only after work, or would not word for AnnData."""
    if not all(hasattr(adata, name) for name in ("obs", "obsm", "uns")):
        raise TypeError(f"adata is of type {type(adata).__name__}, must be an AnnData object.")
    if not isinstance(key_added, str):
        raise TypeError(f"key_added={key_added!r}: must be a string.")
    if "resolution" in parameters:
        raise TypeError(
            f"resolution={parameters['resolution']!r}: is not a parameter. Pass n_clusters as a "
            "number, or as 'coarse', 'auto' or 'fine' (from few to many clusters)."
        )
    if neighbors_key is not None and parameters.get("noise") is not None:
        raise ValueError(
            f"noise={parameters['noise']!r}: must be None with neighbors_key, because noise needs "
            "distances. Leave out neighbors_key, so that use_rep is clustered."
        )


def _representation(adata: Any, name: Any) -> Any:
    """Return the array or sparse matrix that is clustered."""
    is_name = isinstance(name, str)
    if is_name and name == "X":
        return adata.X
    if not is_name or name not in adata.obsm:
        compute = " scanpy.pp.pca(adata) computes it." if is_name and name == "X_pca" else ""
        raise ValueError(f"use_rep={name!r}: must be 'X' or in {[*adata.obsm]}.{compute}")
    return adata.obsm[name]


def _connectivities(adata: Any, key: Any) -> Any:
    """Return the affinities that scanpy has computed, a sparse matrix."""
    entry = adata.uns.get(key) if isinstance(key, str) else None
    if not isinstance(entry, Mapping):
        raise ValueError(
            f"neighbors_key={key!r}: adata.uns has no such graph. Call "
            f"scanpy.pp.neighbors(adata, key_added={key!r}), or for affinities in "
            f"adata.obsp['connectivities'] set adata.uns[{key!r}] = "
            "{'connectivities_key': 'connectivities'}."
        )
    name = entry.get("connectivities_key", "connectivities")
    if name not in adata.obsp:
        raise ValueError(f"neighbors_key={key!r}: adata.obsp[{name!r}] is missing.")
    return adata.obsp[name]


def _written(model: Any) -> dict[str, Any]:
    """Return parameters as values that AnnData files hold, with the method and the version.

    They are n_clusters, and the parameters that differ from their defaults."""
    default = type(model)().get_params(deep=False)
    plain = {
        name: value if isinstance(value, (bool, int, float, str)) else repr(value)
        for name, value in model.get_params(deep=False).items()
        if name == "n_clusters"
        or type(value) is not type(default[name])
        or value != default[name]  # defaults are plain values, which compare well
    }
    return {"method": type(model).__name__, "version": __version__, **plain}
