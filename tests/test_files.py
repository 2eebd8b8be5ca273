"""Files of tables: whatever their bytes are, they are a table of numbers or an error in one line
that names the file.

RFFPK_FUZZ=100000 sets the number of damaged files of each format, which is small by default.
"""

import io
import os
import random
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
from contracts.source import read_table
from numpy.testing import assert_array_equal

EXAMPLES = int(os.environ.get("RFFPK_FUZZ", "150"))

X = np.arange(12.0).reshape(4, 3)


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


def archive(data, name="a.npy", method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as members:
        # without a time: bytes are in the names of tests, which all workers must agree on
        members.writestr(zipfile.ZipInfo(name), data, method)
    return file.getvalue()


def parquet(frame, compression=None):
    pytest.importorskip("pyarrow")
    file = io.BytesIO()
    frame.to_parquet(file, compression=compression)
    return file.getvalue()


def header(shape):
    """Write an .npy file of float64 numbers that says to have this shape, and has two numbers."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(16)


FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
WORDS = pd.DataFrame({"a": [1, None], "b": ["x", "y"]})


METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
VALID = {
    ".csv": lambda: [b"a,b\n1,2e-3\n-4,nan\n", b"\xef\xbb\xbf1,2\r\n3,inf\r\n", b"1\n\n2\n"],
    ".npy": lambda: [npy(X), npy(X.T.astype(">f4")), npy(np.arange(3)), npy(X, (2, 0)), npy(X > 1)],
    ".npz": lambda: [archive(npy(X), method=method) for method in METHODS],
    ".parquet": lambda: [parquet(f, c) for f in (FRAME, WORDS) for c in ("snappy", None)],
}


def damaged(data, donors, draw):
    """Return the bytes with one to four small changes."""
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        a, b = sorted(draw.randint(0, len(data)) for _ in range(2))
        match draw.choice(["byte", "byte", "bit", "cut", "twice", "end", "other"]):
            case "byte" if a < len(data):
                data[a] = draw.choice([0, 1, 127, 128, 255, draw.randint(0, 255)])
            case "bit" if a < len(data):
                data[a] ^= 1 << draw.randint(0, 7)
            case "cut":
                del data[a : min(b, a + 8)]
            case "twice":
                data[b:b] = data[a:b]
            case "end":
                del data[b:]
            case "other":
                data[a:b] = draw.choice(donors)[a:b]
    return bytes(data)


def is_read_or_named(path, data):
    """Return whether the bytes are a table; if not, the error names the file."""
    path.write_bytes(data)
    try:
        table = read_table(str(path))
    except ValueError as error:
        assert str(path) in str(error), error
        return False
    assert table.ndim == 2 and table.size
    assert hasattr(table, "columns") or np.asarray(table).dtype.kind in "fiub"
    return True


@pytest.mark.promise(
    "Files",
    "Whatever the bytes of a file are, the command line reads a table, or ends with one line "
    "that names the file.",
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", VALID)
def test_damaged_files_are_read_or_named(suffix, tmp_path):
    path, draw, donors = tmp_path / f"x{suffix}", random.Random(0), VALID[suffix]()
    read = [
        is_read_or_named(path, damaged(draw.choice(donors), donors, draw)) for _ in range(EXAMPLES)
    ]
    assert 0 < sum(read) < EXAMPLES


@pytest.mark.promise(like="test_damaged_files_are_read_or_named")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name, data",
    [
        ("x.npz", archive(b"words", "a.txt")),
        ("x.npz", archive(b"words")),
        ("x.npz", archive(header((10**9, 2)))),
        ("x.npz", archive(header((10**17, 2)))),
        ("x.npz", archive(header((-1, 2)) + b"1")),
        ("x.npz", npy(X)),
        ("x.npy", archive(npy(X))),
        ("x.npy", header((10**9, 2))),
        ("x.npy", header((10**17, 2))),
        ("x.npy", header("(" * 5000)),
        ("x.npy", header((2, 1)).replace(b"\x01\x00", b"\x02\x00", 1)),
        ("x.npy", b""),
        ("x.csv", b"1,2\n3,4,5\n"),
        ("x.csv", b"\xff"),
        ("x.csv", b'1,2\n"3,4\n'),
        ("x.csv", b""),
        ("x.parquet", b"PAR1" * 4),
    ],
)
def test_what_is_no_table_is_named(name, data, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    assert not is_read_or_named(tmp_path / name, data)


@pytest.mark.parametrize("array", [X, X.T, X.astype(">f4"), X > 3, np.arange(5)])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_are_those_that_were_saved_in_c_order(array, suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(npy(array) if suffix == ".npy" else archive(npy(array)))
    read = read_table(str(path))
    assert_array_equal(read, array.reshape(len(array), -1))
    assert read.dtype == array.dtype and read.flags.c_contiguous


def test_frames_of_numbers_are_float64_in_c_order(tmp_path):
    frame = FRAME.assign(d=[1, 2, 3, 4], e=[True, False] * 2)
    (tmp_path / "x.csv").write_text(frame.to_csv(index=False))
    (tmp_path / "x.parquet").write_bytes(parquet(frame))
    for name in ("x.csv", "x.parquet"):
        read = read_table(str(tmp_path / name))
        assert [*read.columns] == [*"abcde"] and {*read.dtypes} == {np.dtype(np.float64)}
        assert_array_equal(read, frame)
        assert read.to_numpy().flags.c_contiguous


def test_numbers_in_text_are_read_exactly(tmp_path):
    draw = np.random.default_rng(0)
    numbers = draw.standard_normal(2000) * 10.0 ** draw.integers(-300, 300, 2000)
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{number!r},{number:.25g}\n" for number in numbers.tolist()))
    assert_array_equal(read_table(str(path)), np.transpose([numbers, numbers]))
