"""Named arrays in a file, in the layout of safetensors, with a checksum of the whole file.

The file begins with the length of its header, 8 bytes, little-endian. The header is JSON: the type,
the shape and the place of each array by its name, and "__metadata__", strings by name, with the
checksum first. The arrays follow without gaps, arrays of the longest numbers first, so that each
array begins at a multiple of the length of its numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.system.files import whole_file

Array = NDArray[Any]

# A longer header is neither written nor read: parsed JSON takes up to 70 times the length of its
# text.
MAX_HEADER = 1 << 24

_MAX_DIMENSIONS = 8
_TYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4",
    "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
}  # fmt: skip
_NAMES = {np.dtype(text): name for name, text in _TYPES.items()}

# The checksum has a fixed place, so that a damaged file is refused before it is parsed.
_START = b'{"__metadata__":{"checksum":"'
_LENGTH = 8  # bytes of the length of the header; arrays begin at multiples of so many bytes
_CHECKSUM = slice(_LENGTH + len(_START), _LENGTH + len(_START) + 32)
_NO_CHECKSUM = b"0" * 32


class ModelFileError(ValueError):
    """A file that is not a model file, or a damaged one."""


def is_storable(dtype: Any) -> bool:
    """Return whether arrays of a type can be written."""
    return dtype.newbyteorder("<") in _NAMES


# ---- writing ------------------------------------------------------------------------------------


def write_tensors(path: str, metadata: dict[str, str], arrays: dict[str, Array]) -> None:
    """Write strings and arrays to a file, whole or not at all.

    Raises
    ------
    ValueError
        If the header is too long.
    OSError
        If the file cannot be written.
    """
    by_length = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    parts = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        for name, array in by_length
    }
    entries: dict[str, Any] = {"__metadata__": {"checksum": _NO_CHECKSUM.decode(), **metadata}}
    end = 0
    for name, part in parts.items():
        begin, end = end, end + part.nbytes
        shape = list(arrays[name].shape)  # () for a number, whose `part` has one dimension
        entries[name] = {"dtype": _NAMES[part.dtype], "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _LENGTH)
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"the header of {path} has {len(header)} bytes, must have at most {MAX_HEADER}: delete "
            "history_ if that has very many records."
        )
    head = np.frombuffer(len(header).to_bytes(_LENGTH, "little") + header, np.uint8).copy()
    contents = [head, *(part.reshape(-1).view(np.uint8) for part in parts.values())]
    head[_CHECKSUM] = np.frombuffer(_checksum(contents), np.uint8)

    with whole_file(path) as file:
        for content in contents:
            file.write(content.data)


def _checksum(contents: list[Array]) -> bytes:
    """Return the checksum of the bytes of a file, with zeros where the checksum itself stands."""
    first, *others = contents
    digest = hashlib.blake2b(digest_size=len(_NO_CHECKSUM) // 2)
    zeros = np.frombuffer(_NO_CHECKSUM, np.uint8)
    for part in (first[: _CHECKSUM.start], zeros, first[_CHECKSUM.stop :], *others):
        digest.update(part.data)
    return digest.hexdigest().encode()


# ---- reading ------------------------------------------------------------------------------------


def read_tensors(path: str) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the strings and the arrays of a file; the arrays are parts of one buffer.

    Notes
    -----
    A damaged file takes no more memory than its own length. A file with a correct checksum takes up
    to 70 times the length of its header in addition. This length is at most MAX_HEADER.

    Raises
    ------
    ModelFileError
        If the file has another format or is damaged.
    OSError
        If the file cannot be read.
    """
    content = _content(path)
    length = int.from_bytes(content[:_LENGTH].tobytes(), "little")
    if length > min(MAX_HEADER, len(content) - _LENGTH):
        raise ModelFileError(
            f"has a header of {length} bytes, must have at most {MAX_HEADER}, and fewer than "
            "the file."
        )
    if content[_CHECKSUM].tobytes() != _checksum([content]):
        raise ModelFileError("is damaged: its checksum differs.")
    entries = parse_json(content[_LENGTH : _LENGTH + length].tobytes(), "header")
    metadata = entries.pop("__metadata__")
    if not all(isinstance(text, str) for text in metadata.values()):
        raise ModelFileError("has metadata that are not strings.")
    return metadata, _arrays(entries, content[_LENGTH + length :])


def _content(path: str) -> Array:
    """Read a file into memory; raise a ModelFileError if it does not begin like a model file."""
    with open(path, "rb") as file:
        start = file.read(_CHECKSUM.stop)
        if len(start) < _CHECKSUM.stop or start[_LENGTH : _CHECKSUM.start] != _START:
            raise ModelFileError("is not a model file.")
        content = np.empty(os.fstat(file.fileno()).st_size, np.uint8)
        file.seek(0)
        if file.readinto(content.data) != len(content):
            raise ModelFileError("was changed while it was read.")
    return content


def parse_json(text: str | bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object; raise a ModelFileError if it repeats a name or has NaN or infinity.

    `what` names the text in the message."""
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"has a {what} that is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ModelFileError(f"has a {what} that is not an object.")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is repeated.")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number.")


def _arrays(entries: dict[str, Any], data: Array) -> dict[str, Array]:
    """Return the arrays that the header describes, by name, as views of `data`.

    Raise a ModelFileError unless the arrays cover the data without gaps or overlaps."""
    places = {name: _place(name, entry) for name, entry in entries.items()}
    ordered = [(0, 0), *sorted(places.values()), (len(data), len(data))]
    if any(end != begin for (_, end), (begin, _) in pairwise(ordered)):
        raise ModelFileError("has arrays with gaps between them, or with bytes in common.")
    return {
        name: _array(name, entries[name], data[begin:end]) for name, (begin, end) in places.items()
    }


def _place(name: str, entry: Any) -> tuple[int, int]:
    """Return where the bytes of an array begin and end, from its entry in the header."""
    match entry:
        case {"dtype": str(), "shape": list(), "data_offsets": [int(begin), int(end)]} if (
            len(entry) == 3 and 0 <= begin <= end
        ):
            return begin, end
    raise ModelFileError(f"has an array {name!r} whose keys are not dtype, shape and data_offsets.")


def _array(name: str, entry: dict[str, Any], part: Array) -> Array:
    """Return the bytes `part` as an array of the dtype and shape of its entry in the header.

    Raise a ModelFileError if they do not agree."""
    kind, shape = entry["dtype"], entry["shape"]
    if kind not in _TYPES:
        raise ModelFileError(f"has an array {name!r} of the type {kind!r}.")
    dtype = np.dtype(_TYPES[kind])
    if part.ctypes.data % dtype.itemsize:
        raise ModelFileError(f"has an array {name!r} that begins inside a number.")
    if kind == "BOOL" and (part > 1).any():
        raise ModelFileError(f"has a boolean array {name!r} with bytes above 1.")
    sizes = all(type(value) is int and value >= 0 for value in shape)
    try:
        if sizes and len(shape) <= _MAX_DIMENSIONS:
            return part.view(dtype).reshape(shape)
    except (ValueError, OverflowError):  # a shape of another size, or of zero and a huge number
        pass
    raise ModelFileError(f"has an array {name!r} of {len(part)} bytes of shape {shape!r}.")
