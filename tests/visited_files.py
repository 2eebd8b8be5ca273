"""The way of a fit through the files of the package.

    python tests/visited_files.py

Prints for a fit of each of two estimators the files that it enters, in order, with the steps (see
`rffpk._anneal.fit`) that enter each of them: prepare, search, finish, publish, or none of these.
"""

import sys
from pathlib import Path

from sklearn.datasets import make_blobs

import rffpk

PACKAGE = Path(rffpk.__file__).parent
STEPS = {
    "prepare": "prepare",
    "search_centroids": "search",
    "finish": "finish",
    "publish": "publish",
}


def trace(model, X):
    """The files that `model.fit(X)` enters, in order, with the steps that enter each, and the steps
    themselves as often as they are entered."""
    files, entered, active = {}, [], []

    def profile(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if PACKAGE not in path.parents:
            return
        name = str(path.relative_to(PACKAGE))
        step = STEPS.get(frame.f_code.co_name) if name == "_anneal/fit.py" else None
        if event == "call":
            if step:
                active.append(step)
                entered.append(step)
            steps = files.setdefault(name, [])
            now = active[-1] if active else "outside"
            steps += [] if now in steps else [now]
        elif event == "return" and step:
            active.pop()

    sys.setprofile(profile)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
    return files, entered


def fits():
    """Estimators, and rows that they fit."""
    X, _ = make_blobs(3000, 10, centers=8, random_state=0)
    yield rffpk.RFFKernelPowerKMeans(random_state=0), X
    graph = {"whitening": None, "n_neighbors": 20}  # "auto" fits several, each in these steps
    yield rffpk.DiffusionPowerKMeans(random_state=0, **graph), X


def main():
    for model, X in fits():
        files, _ = trace(model, X)
        print(f"{type(model).__name__}: {len(files)} files")
        for name, steps in files.items():
            print(f"  {name:<34} {', '.join(steps)}")


if __name__ == "__main__":
    main()
