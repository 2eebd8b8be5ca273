"""The command line: `rffpk demo` clusters scikit-learn's digits, `rffpk info` reports."""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from rffpk import (
    DiffusionPowerKMeans,
    RFFKernelPowerKMeans,
    clustering_accuracy,
    show_config,
)


def _row(name: str, model: Any, y: Any, seconds: float, exponent: float, threads: int) -> str:
    nmi = normalized_mutual_info_score(y, model.labels_)
    acc = clustering_accuracy(y, model.labels_)
    return (
        f"{name:<24}{model.inertia_:>10.2f}{nmi:>8.3f}{acc:>8.3f}{seconds:>9.3f}{exponent:>10.1f}"
        f"{threads:>9}"
    )


def _timed_fit(model: Any, X: Any) -> float:
    started = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - started


def demo() -> None:
    """Cluster scikit-learn's digits: by random features, also with scikit-learn's KMeans on the
    same ones, and by diffusion features, whose objective is another one."""
    X, y = load_digits(return_X_y=True)
    threads = show_config()["threads"]
    ours = RFFKernelPowerKMeans(10, random_state=0)
    seconds = _timed_fit(ours, X)
    features = ours.feature_map_.transform(X)
    peer = KMeans(10, n_init=1, random_state=0)
    peer_seconds = _timed_fit(peer, features)
    diffusion = DiffusionPowerKMeans(10, random_state=0)
    diffusion_seconds = _timed_fit(diffusion, X)

    print(
        f"digits: {X.shape[0]} rows, {X.shape[1]} columns, 10 classes; "
        f"{features.shape[1]} random Fourier features"
    )
    heads = ("objective", "NMI", "ACC", "seconds", "exponent", "threads")
    print(" " * 24 + "".join(f"{h:>{w}}" for h, w in zip(heads, (10, 8, 8, 9, 10, 9))))
    print(_row("RFFKernelPowerKMeans", ours, y, seconds, ours.s_, threads))
    print(_row("sklearn KMeans", peer, y, peer_seconds, -math.inf, threads))
    print(_row("DiffusionPowerKMeans", diffusion, y, diffusion_seconds, diffusion.s_, threads))


def info() -> None:
    """Print the versions, backend, threads and BLAS in use."""
    for key, value in show_config().items():
        print(f"{key:<14}{', '.join(value) if isinstance(value, list) else value}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="rffpk", description="Annealed kernel clustering.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("demo", demo), ("info", info)):
        commands.add_parser(name, help=run.__doc__).set_defaults(run=run)
    parser.parse_args(argv).run()


if __name__ == "__main__":
    main()
