"""Fuzzing of what parses files, guided by the branches that are reached, with atheris.

    python tests/guided_fuzz.py .csv|.npy|.npz|model [options of libFuzzer, such as -runs=100000]

It needs `pip install atheris` beside the packages of the tests. What is read is a table or a model.
Other bytes end in the error of their kind. Anything else ends the run with the bytes that show it.
Models have their checksum set right, which no mutation would find.
"""

import os
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["rffpk", "numpy.lib._format_impl", "zipfile"]):
    import test_files
    import test_model_files
    from contracts.source import read_table

    import rffpk
    from rffpk.model_files import ModelFileError, VersionError


def main():
    kind, *options = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    path = folder / ("x" if kind == "model" else f"x{kind}")
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(seeds(kind, folder)):
        (corpus / str(number)).write_bytes(content)

    def table(data):
        path.write_bytes(data)
        try:
            found = read_table(str(path))
        except ValueError:
            return
        assert found.ndim == 2 and found.size

    def model(data):
        path.write_bytes(test_model_files.sealed(data))
        try:
            found = rffpk.load(path)
        except (ModelFileError, VersionError):
            return
        assert found.get_params() is not None

    sys.stderr.flush()
    atheris.Setup([sys.argv[0], *options, os.fspath(corpus)], model if kind == "model" else table)
    atheris.Fuzz()


def seeds(kind, folder):
    if kind != "model":
        return test_files.VALID[kind]()
    fit, new = test_model_files.fitted, test_model_files.NEW
    models = [
        fit(rffpk.FuzzyCMeans, {"max_iter": 3}, new),
        fit(rffpk.DiffusionMap, {}, new),
        fit(rffpk.RFFKernelPowerKMeans, {"n_frequencies": 4, "max_iter": 3, "n_init": 1}, new),
    ]
    return [test_model_files.bytes_of(each, folder) for each in models]


if __name__ == "__main__":
    main()
