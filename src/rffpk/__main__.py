"""The command line: cluster a table, label another one, `demo`, `info`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk.model_files import save
from rffpk.rows import table_files
from rffpk.rows.checks import Level
from rffpk.rows.containers import converts
from rffpk.system import files
from rffpk.system.files import STANDARD, TableError
from rffpk.system.report import warn
from rffpk.tables import TablePreprocessor

METHODS = {
    "plain": rffpk.PowerKMeans,
    "fuzzy": rffpk.FuzzyCMeans,
    "rff": rffpk.RFFKernelPowerKMeans,
    "diffusion": rffpk.DiffusionPowerKMeans,
}


# ---- commands -----------------------------------------------------------------------------------


def cluster(options: argparse.Namespace) -> dict[str, Any]:
    """Cluster the rows of a table: labels go to --out, the fitted model to --model."""
    _check_out(options.out, options.file)
    if options.model is not None:
        files.check_output(options.model, beside=(options.file, options.out))
    X = _table(options)
    words = table_files.besides_numbers(X)
    if words:
        warn(
            f"{options.file}: has {words}: TablePreprocessor makes numbers of all columns, of "
            "variance one.",
            UserWarning,
        )
    model = _model(options, bool(words))
    # without words and without --standardize there are no steps
    steps = [TablePreprocessor()] if words else [StandardScaler()] * options.standardize
    fitted = make_pipeline(*steps, model) if steps else model
    with contextlib.redirect_stdout(sys.stderr):  # for the lines of `verbose`
        seconds = _timed_fit(fitted, X)
    outputs = fitted.predict_proba(X) if options.memberships else model.labels_
    if options.model is not None:
        save(fitted, options.model)
    files.write_table(options.out, outputs)
    return _summary(options, X, model, seconds)


def _model(options: argparse.Namespace, has_words: bool) -> Any:
    """Make the clusterer of the options.

    If `options.method` is None, it is set: the metric and the table choose the method."""
    if options.method is None:
        plain = has_words or options.metric == "cosine"
        options.method = "plain" if plain else "diffusion"
    cls = METHODS[options.method]
    parameters = {name: getattr(options, name) for name in ("metric", "noise")}
    parameters = {name: value for name, value in parameters.items() if value is not None}
    for name in parameters:
        if name not in cls().get_params():
            having = [key for key, each in METHODS.items() if name in each().get_params()]
            raise TableError(
                f"--{name} is for the methods {', '.join(having)}, not for {options.method}"
            )
    common = {"random_state": options.seed, "n_jobs": options.jobs, "verbose": options.verbose}
    return cls(options.k, **common, **parameters)


def _summary(options: argparse.Namespace, X: Any, model: Any, seconds: float) -> dict[str, Any]:
    """Return what `cluster` reports about a fit, by name."""
    k = getattr(model, "n_clusters_", options.k)
    is_noise = model.labels_ < 0
    return {
        "rows": len(X),
        "columns": X.shape[1],
        "method": options.method,
        "clusters": k,
        "sizes": np.bincount(model.labels_[~is_noise], minlength=k).tolist(),
        **({} if options.noise is None else {"noise": int(is_noise.sum())}),
        "objective": float(model.inertia_),
        "passes": int(model.n_iter_),
        "seconds": round(seconds, 4),
    }


def predict(options: argparse.Namespace) -> dict[str, Any]:
    """Label the rows of a table by a model that `cluster` has written."""
    _check_out(options.out, options.file, options.model)
    model: Any = rffpk.load(options.model)
    if not (hasattr(model, "predict") and hasattr(model, "predict_proba")):
        raise TableError(f"{options.model}: is not a model that `rffpk cluster` has written.")
    X = _table(options)
    counts: dict[str, Any] = {"rows": len(X), "columns": X.shape[1]}
    first = model[0] if isinstance(model, Pipeline) else model
    if isinstance(first, TablePreprocessor):  # other models compare names by themselves
        names = [str(name) for name in getattr(X, "columns", range(X.shape[1]))]
        if names != (fitted := [*map(str, first.feature_names_in_)]):
            raise TableError(
                f"{options.file}: has the columns {names}, must have {fitted}, as in the fit. "
                "Choose columns by --columns."
            )
        counts["unknown"] = first._count_unknown(X)
    elif words := table_files.besides_numbers(X):
        raise TableError(f"{options.file}: has {words}, must have numbers alone, as in the fit.")
    outputs = model.predict_proba(X) if options.memberships else model.predict(X)
    files.write_table(options.out, outputs)
    return counts


def _check_out(out: str, *others: str) -> None:
    """Raise an error if results cannot be written to `out`, or would replace one of `others`."""
    if out != STANDARD:
        files.check_output(out, () if files.is_device(out) else files.RESULTS, others)
    elif sys.stdout is None:
        raise TableError("standard output is closed: name a file by --out.")


def _table(options: argparse.Namespace) -> Any:
    given = options.key, options.header, options.sep, options.columns, options.drop
    return table_files.read_table(options.file, table_files.Choice(*given))


def _timed_fit(model: Any, X: Any) -> float:
    started = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - started


def demo(options: argparse.Namespace) -> None:
    """Compare KMeans, SpectralClustering and DiffusionPowerKMeans on digits and noisy moons."""
    moons, y_of_moons = make_moons(1000, noise=0.08, random_state=0)
    low, high = moons.min(axis=0) - 0.5, moons.max(axis=0) + 0.5
    noise = np.random.RandomState(0).uniform(low, high, size=(100, 2))  # with the label -1
    for title, (X, y) in {
        "digits": load_digits(return_X_y=True),
        "two moons with noise": (np.vstack([moons, noise]), np.r_[y_of_moons, np.full(100, -1)]),
    }.items():
        has_class = y >= 0
        k = len(np.unique(y[has_class]))
        print(f"{title}: {X.shape[0]} rows, {X.shape[1]} columns, {k} classes")
        print(f"{'':24}     ARI     NMI  seconds")
        for name, model in {
            "KMeans(n_init=10)": KMeans(k, n_init=10, random_state=0),
            "SpectralClustering": SpectralClustering(
                k, affinity="nearest_neighbors", random_state=0
            ),
            "DiffusionPowerKMeans": rffpk.DiffusionPowerKMeans(k, noise="auto", random_state=0),
        }.items():
            seconds = _timed_fit(model, X)
            labels = y[has_class], model.labels_[has_class]
            scores = adjusted_rand_score(*labels), normalized_mutual_info_score(*labels)
            print(f"{name:<24}{scores[0]:>8.3f}{scores[1]:>8.3f}{seconds:>9.3f}")
        print()
    print("ARI and NMI compare clusters and classes; 1 is best. Noise points have no class.")


def info(options: argparse.Namespace) -> None:
    """Print the versions, backend, threads and BLAS in use, and what is missing or slow here."""
    for key, value in rffpk.show_config().items():
        if isinstance(value, list):
            value = ", ".join(value) or "nothing"
        print(f"{key:<14}{value}")


# ---- the parser ---------------------------------------------------------------------------------


def _number(kind: type, *words: str) -> Callable[[str], Any]:
    """Return a function that converts text to a number of a type, and keeps one of `words`."""

    def parse(text: str) -> Any:
        if text not in words and not converts(text, kind):
            must = f"must be of type {kind.__name__}, or one of {', '.join(words)}"
            raise argparse.ArgumentTypeError(f"{text!r}, {must}")
        return text if text in words else kind(text)

    return parse


def _given(text: str) -> str:
    """Refuse the empty text that a shell makes of a variable that is not set."""
    if not text:
        raise argparse.ArgumentTypeError(
            "must not be empty. Name something, or leave the option out."
        )
    return text


def _separator(text: str) -> str:
    found = "\t" if text in ("tab", r"\t") else text
    if len(found) != 1 or not found.isascii() or found.isalnum() or found in '".+-\r\n':
        raise argparse.ArgumentTypeError(f"{text!r}, must be a character between fields, or tab.")
    return found


_ARGUMENTS: dict[str, dict[str, Any]] = {
    "model": {"type": _given, "help": "file that `rffpk cluster --model` has written"},
    "file": {
        "type": _given,
        "help": "table: .csv, .tsv, also as .gz, .npy, .npz or .parquet; - reads CSV",
    },
    "--key": {"type": _given, "help": "name of the array in an .npz file"},
    "--header": {
        "action": argparse.BooleanOptionalAction,
        "help": "whether the first line of text holds names; by default, if it has no number",
    },
    "--sep": {"type": _separator, "help": "character between fields of text, or tab"},
    "--columns": {
        "type": _given,
        "help": "columns to read: names, or numbers from 1, with commas between",
    },
    "--drop": {"type": _given, "help": "columns to leave out, as for --columns"},
    "--out": {
        "type": _given,
        "default": STANDARD,
        "help": "file to write results to, by default %(default)s",
    },
    "-k": {
        "type": _number(int, *get_args(Level)),
        "required": True,
        "help": "number of clusters; auto finds it in the rows, coarse the least and fine the "
        "largest good one",
    },
    "--method": {
        "choices": METHODS,
        "help": "by default diffusion (DiffusionPowerKMeans); plain (PowerKMeans) for --metric "
        "cosine, as for embeddings, and for tables with words or gaps",
    },
    "--metric": {"choices": ["euclidean", "cosine"], "help": "by default euclidean"},
    "--noise": {
        "type": _number(float, "auto"),
        "metavar": "auto|SHARE",
        "help": "label rows far from others -1: a share of them, or those beyond a gap",
    },
    "--standardize": {
        "action": "store_true",
        "help": "scale columns to variance one, as is done always where there are words or gaps",
    },
    "--model": {
        "type": _given,
        "help": "file to write the fitted model to; loading it runs no code",
    },
    "--seed": {"type": int, "help": "seed of the random numbers"},
    "--jobs": {"type": int, "help": "number of threads, by default all"},
    "-v/--verbose": {
        "action": "count",
        "default": 0,
        "help": "a line on standard error every five seconds at most; given twice, each pass",
    },
    "--memberships": {"action": "store_true", "help": "write memberships, not labels"},
    "--json": {"action": "store_true", "help": "print the summary as JSON"},
}
_TABLE = "file --key --header --sep --columns|--drop --out"
_COMMANDS = {
    cluster: f"{_TABLE} -k --method --metric --noise --standardize --model --seed --jobs "
    "-v/--verbose --memberships --json",
    predict: f"model {_TABLE} --memberships --json",
    demo: "",
    info: "",
}


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands.

    In `_COMMANDS`, "|" joins options that exclude each other. In an option, "/" joins spellings."""
    parser = argparse.ArgumentParser(prog="rffpk", description="Annealed kernel clustering.")
    parser.add_argument("--version", action="version", version=f"rffpk {rffpk.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for run, names in _COMMANDS.items():
        each = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        for name in names.split():
            group: Any = each.add_mutually_exclusive_group() if "|" in name else each
            for alternative in name.split("|"):
                group.add_argument(*alternative.split("/"), **_ARGUMENTS[alternative])
        each.set_defaults(run=run)
    return parser


def _print_summary(summary: dict[str, Any], as_json: bool, to_stdout: bool) -> None:
    """Print a summary as JSON or in lines.

    It goes to standard error if standard output has the results."""
    file = sys.stdout if to_stdout else sys.stderr
    if as_json:
        print(json.dumps(summary), file=file)
        return
    for key, value in summary.items():
        print(f"{key:<12}{f'{value:.4f}' if isinstance(value, float) else value}", file=file)


def main(argv: list[str] | None = None) -> None:
    """Run a command line. Errors of the input are printed, and end with the exit status 2."""
    if sys.stderr is None:  # it is closed, and `print` would take standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    options = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print(
                "rffpk: warning:", *str(message).split(), file=sys.stderr
            )
            summary = options.run(options)
        if summary is not None:
            _print_summary(summary, options.json, getattr(options, "out", None) != STANDARD)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # Python flushes standard output at its end, which must not fail, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        print("rffpk:", *(str(error).split() or [type(error).__name__]), file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
