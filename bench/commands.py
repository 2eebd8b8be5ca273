"""The common parts of the commands' argument parsers."""

from __future__ import annotations

import argparse
from pathlib import Path


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is a module's docstring without reformatting."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=description, formatter_class=raw)


def folder(path: str) -> Path:
    """The type of `--data`: a folder that exists and has a data set."""
    if not Path(path).is_dir():
        raise argparse.ArgumentTypeError(f"{path} is not a folder")
    if not any(Path(path).glob("*.npz")):
        raise argparse.ArgumentTypeError(
            f"{path} has no NAME.npz; bench/README.md says what such a file contains"
        )
    return Path(path)


def add_data(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument(
        "--data", type=folder, required=required, metavar="DIR", help="real data sets as .npz"
    )
