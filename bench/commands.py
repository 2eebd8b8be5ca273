"""Parse the options of the commands. The help of a command is the docstring of its module."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

Options = dict[str, Any]


class Names(NamedTuple):
    """An option that takes several of the known names, by default all of them."""

    known: Iterable[str]
    default: Iterable[str] | None = None


def folder(path: str) -> Path:
    """Return the path of a folder that exists and has a data set: the type of `--data`."""
    if not Path(path).is_dir():
        raise argparse.ArgumentTypeError(f"{path} is not a folder.")
    if not any(Path(path).glob("*.npz")):
        raise argparse.ArgumentTypeError(
            f"{path} has no NAME.npz; bench/README.md says what such a file contains."
        )
    return Path(path)


# Options that several commands have.
DATA: Options = {"type": folder, "metavar": "DIR", "help": "real data sets as .npz"}
NEEDS_DATA = DATA | {"required": True}
OUT: Options = {"type": Path, "required": True, "help": "results, as lines of JSON"}


def arguments(description: str | None, **options: Any) -> argparse.Namespace:
    """Parse the options of a command, and ignore warnings from here on."""
    warnings.simplefilter("ignore")
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    for name, value in options.items():
        _add(parser, name, value)
    return parser.parse_args()


def stop(fault: str) -> NoReturn:
    """End the command with an error in its options."""
    argparse.ArgumentParser().error(fault)


def _add(parser: argparse.ArgumentParser, name: str, value: Any) -> None:
    """Add an option: 1000 of `rows` adds `--rows N`; `words` have no dashes."""
    option = "--" + name.replace("_", "-")
    if name == "words":
        parser.add_argument(name, nargs="*", metavar="NAME", help=value)
    elif isinstance(value, dict):
        parser.add_argument(option, **value)
    elif value is False:
        parser.add_argument(option, action="store_true")
    elif isinstance(value, Names):
        default = [*(value.known if value.default is None else value.default)]
        parser.add_argument(
            option, nargs="+", choices=[*value.known], default=default, metavar="NAME"
        )
    elif isinstance(value, type):
        parser.add_argument(option, type=value)
    elif isinstance(value, tuple):
        parser.add_argument(option, nargs="+", type=type(value[0]), default=value)
    else:
        parser.add_argument(option, type=type(value), default=value)
