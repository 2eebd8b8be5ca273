"""The command line: `rffpk demo` clusters scikit-learn's digits, `rffpk info` reports."""

from __future__ import annotations

import argparse
import time
from typing import Any

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from rffpk import RFFKernelPowerKMeans, clustering_accuracy, show_config


def _row(name: str, seconds: float, y: Any, labels: Any, objective: float, s: str, t: int) -> str:
    nmi, acc = normalized_mutual_info_score(y, labels), clustering_accuracy(y, labels)
    return f"{name:<24}{objective:>10.2f}{nmi:>8.3f}{acc:>8.3f}{seconds:>9.3f}{s:>10}{t:>9}"


def demo() -> None:
    """RFF-KPKM on the digits, beside scikit-learn's KMeans on the same random features."""
    X, y = load_digits(return_X_y=True)
    threads = show_config()["threads"]
    started = time.perf_counter()
    ours = RFFKernelPowerKMeans(10, random_state=0).fit(X)
    seconds = time.perf_counter() - started
    features = ours.feature_map_.transform(X)
    started = time.perf_counter()
    peer = KMeans(10, n_init=1, random_state=0).fit(features)
    peer_seconds = time.perf_counter() - started

    n, d = X.shape
    print(f"digits: {n} rows, {d} columns, 10 classes; {features.shape[1]} random Fourier features")
    print(f"{'':<24}{'objective':>10}{'NMI':>8}{'ACC':>8}{'seconds':>9}{'exponent':>10}{'threads':>9}")
    print(_row("RFFKernelPowerKMeans", seconds, y, ours.labels_, ours.inertia_, f"{ours.s_:.1f}", threads))
    print(_row("sklearn KMeans", peer_seconds, y, peer.labels_, peer.inertia_, "-inf", threads))


def info() -> None:
    """What this installation runs on."""
    for key, value in show_config().items():
        print(f"{key:<14}{', '.join(value) if isinstance(value, list) else value}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="rffpk", description="Annealed kernel clustering.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="cluster scikit-learn's digits").set_defaults(run=demo)
    commands.add_parser("info", help="report version, core, threads and BLAS").set_defaults(run=info)
    parser.parse_args(argv).run()


if __name__ == "__main__":
    main()
