"""The command line: cluster a table, label another one, `demo`, `info`."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk._utils import files
from rffpk._utils.files import STANDARD, TableError
from rffpk._utils.messages import warn
from rffpk.model_files import save

METHODS = {
    "plain": rffpk.PowerKMeans,
    "fuzzy": rffpk.FuzzyCMeans,
    "rff": rffpk.RFFKernelPowerKMeans,
    "diffusion": rffpk.DiffusionPowerKMeans,
}
_FAILED = 2  # the exit code after an error


# ---- commands -----------------------------------------------------------------------------------


def cluster(options: argparse.Namespace) -> dict[str, Any]:
    """Cluster the rows of a table: labels go to --out, the fitted model to --model."""
    _check_out(options.out, options.file)
    if options.model:
        files.check_output(options.model, others=(options.file, options.out))
    X, names = _table(options)
    model = METHODS[options.method](
        options.k, random_state=options.seed, n_jobs=options.jobs, verbose=options.verbose
    )
    fitted = make_pipeline(StandardScaler(), model) if options.standardize else model
    with contextlib.redirect_stdout(sys.stderr):  # of `verbose`
        seconds = _timed_fit(fitted, X)
    outputs = fitted.predict_proba(X) if options.memberships else model.labels_
    if options.model:
        if names is not None:
            _first_step(fitted).feature_names_in_ = np.array(names, dtype=object)
        save(fitted, options.model)
    files.write_table(options.out, outputs)
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "method": options.method,
        "sizes": np.bincount(model.labels_, minlength=options.k).tolist(),
        "objective": float(model.inertia_),
        "passes": int(model.n_iter_),
        "seconds": round(seconds, 4),
    }


def predict(options: argparse.Namespace) -> dict[str, Any]:
    """Label the rows of a table by a model that `cluster` has written."""
    _check_out(options.out, options.file, options.model)
    model, X = _model_and_table(options)
    outputs = model.predict_proba(X) if options.memberships else model.predict(X)
    files.write_table(options.out, outputs)
    return {"rows": len(X), "columns": X.shape[1]}


def _check_out(out: str, *others: str) -> None:
    """Raise an error if labels or memberships cannot be written there."""
    if out != STANDARD:
        files.check_output(out, files.RESULTS, others)
    elif sys.stdout is None:
        raise TableError("standard output is closed: name a file by --out")


def _table(options: argparse.Namespace) -> Any:
    return files.read_table(options.file, options.key, options.header)


def _model_and_table(options: argparse.Namespace) -> tuple[Any, Any]:
    """The model, and the rows of the table, whose columns have the names and the order of the fit.

    The names leave the model: scikit-learn would compare them with those of a frame.
    """
    model = rffpk.load(options.model)
    if not (hasattr(model, "predict") and hasattr(model, "predict_proba")):
        raise TableError(f"{options.model}: is not a model that `rffpk cluster` has written")
    X, names = _table(options)
    fitted = vars(_first_step(model)).pop("feature_names_in_", None)
    _check_names(options, names, None if fitted is None else [str(name) for name in fitted])
    return model, X


def _first_step(model: Any) -> Any:
    return model[0] if isinstance(model, Pipeline) else model


def _check_names(
    options: argparse.Namespace, names: list[str] | None, fitted: list[str] | None
) -> None:
    """Raise an error for other columns than those of the fit, or in another order, as scikit-learn
    does; warn if one of both has no names."""
    if names is None and fitted is not None:
        warn(f"{options.file}: has no names of columns, which are taken as {fitted}", UserWarning)
    elif names is not None and fitted is None:
        warn(f"{options.model}: has no names of columns, which are taken as {names}", UserWarning)
    elif names != fitted:
        assert names is not None and fitted is not None
        if missing := [name for name in fitted if name not in names]:
            raise TableError(f"{options.file}: lacks the columns {missing}, which were fitted")
        if others := [name for name in names if name not in fitted]:
            raise TableError(f"{options.file}: has the columns {others}, which were not fitted")
        raise TableError(
            f"{options.file}: has the columns in the order {names}, must have that of the fit: "
            f"{fitted}"
        )


def _timed_fit(model: Any, X: Any) -> float:
    started = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - started


def demo(options: argparse.Namespace) -> None:
    """Cluster scikit-learn's digits by three methods: random features, scikit-learn's KMeans on the
    same features, and diffusion features. The last has another objective."""
    X, y = load_digits(return_X_y=True)
    threads = rffpk.show_config()["threads"]
    ours, diffusion = (
        cls(10, random_state=0) for cls in (rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans)
    )
    peer = KMeans(10, n_init=1, random_state=0)
    seconds = _timed_fit(ours, X)
    features = ours.feature_map_.transform(X)
    fits = [
        ("RFFKernelPowerKMeans", ours, seconds),
        ("sklearn KMeans", peer, _timed_fit(peer, features)),
        ("DiffusionPowerKMeans", diffusion, _timed_fit(diffusion, X)),
    ]
    print(
        f"digits: {X.shape[0]} rows, {X.shape[1]} columns, 10 classes; "
        f"{features.shape[1]} random Fourier features"
    )
    print(f"{'':24} objective     NMI     ACC  seconds  exponent  threads")
    for name, model, seconds in fits:
        nmi = normalized_mutual_info_score(y, model.labels_)
        acc = rffpk.clustering_accuracy(y, model.labels_)
        s = getattr(model, "s_", -math.inf)
        print(
            f"{name:<24}{model.inertia_:>10.2f}{nmi:>8.3f}{acc:>8.3f}{seconds:>9.3f}{s:>10.1f}"
            f"{threads:>9}"
        )


def info(options: argparse.Namespace) -> None:
    """Print the versions, backend, threads and BLAS in use, and what is missing or slow here."""
    for key, value in rffpk.show_config().items():
        if isinstance(value, list):
            value = ", ".join(value) or "nothing"
        print(f"{key:<14}{value}")


# ---- the parser ---------------------------------------------------------------------------------


_ARGUMENTS: dict[str, dict[str, Any]] = {
    "model": {"help": "file that `rffpk cluster --model` has written"},
    "file": {"help": "table: .csv, .npy, .npz or .parquet; - reads CSV"},
    "--key": {"help": "name of the array in an .npz file"},
    "--header": {
        "action": argparse.BooleanOptionalAction,
        "help": "whether the first line of CSV holds names; by default, if it has no number",
    },
    "--out": {"default": STANDARD, "help": "file to write results to, by default %(default)s"},
    "-k": {"type": int, "required": True, "help": "number of clusters"},
    "--method": {"choices": METHODS, "default": "rff", "help": "by default rff"},
    "--standardize": {"action": "store_true", "help": "scale columns to variance one"},
    "--model": {"help": "file to write the fitted model to; loading it runs no code"},
    "--seed": {"type": int, "help": "seed of the random numbers"},
    "--jobs": {"type": int, "help": "number of threads, by default all"},
    "--verbose": {"action": "store_true", "help": "print each pass on standard error"},
    "--memberships": {"action": "store_true", "help": "write memberships, not labels"},
    "--json": {"action": "store_true", "help": "print the summary as JSON"},
}
_TABLE = "file --key --header --out"
_COMMANDS = {
    cluster: f"{_TABLE} -k --method --standardize --model --seed --jobs --verbose --memberships "
    "--json",
    predict: f"model {_TABLE} --memberships --json",
    demo: "",
    info: "",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rffpk", description="Annealed kernel clustering.")
    parser.add_argument("--version", action="version", version=f"rffpk {rffpk.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for run, names in _COMMANDS.items():
        each = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        for name in names.split():
            each.add_argument(name, **_ARGUMENTS[name])
        each.set_defaults(run=run)
    return parser


def _print_summary(summary: dict[str, Any], as_json: bool, to_stdout: bool) -> None:
    """As JSON or in lines; on standard error where standard output has the results."""
    file = sys.stdout if to_stdout else sys.stderr
    if as_json:
        print(json.dumps(summary), file=file)
        return
    for key, value in summary.items():
        print(f"{key:<12}{f'{value:.4f}' if isinstance(value, float) else value}", file=file)


def _one_line_warning(message: Any, category: Any, *where: Any) -> None:
    print(f"rffpk: warning: {message}", file=sys.stderr)


def main(argv: list[str] | None = None) -> None:
    if sys.stderr is None:  # it is closed, and `print` would take standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    options = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _one_line_warning  # type: ignore[assignment]
            summary = options.run(options)
        if summary is not None:
            _print_summary(summary, options.json, getattr(options, "out", None) != STANDARD)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        print(f"rffpk: {first}", file=sys.stderr)
        raise SystemExit(_FAILED) from None


if __name__ == "__main__":
    main()
