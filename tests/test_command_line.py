"""The command line: files in and out, summaries, and errors in one line."""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk import DiffusionPowerKMeans, FuzzyCMeans, PowerKMeans
from rffpk.__main__ import _check_numbers, main
from rffpk._utils import files
from rffpk._utils.files import Choice, TableError, read_table
from rffpk.tables import TablePreprocessor

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "iris.csv"
    pd.DataFrame(X, columns=[*"abcd"]).to_csv(path, index=False)
    return path


def rffpk_process(*arguments, **options):
    command = [sys.executable, "-m", "rffpk", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def warned(*arguments):
    """The command, with warnings as a user sees them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main([*map(str, arguments)])


def test_labels_are_those_of_the_estimator(table, capsys):
    main(["cluster", str(table), "-k", "3", "--seed", "0"])
    printed = capsys.readouterr()
    expected = DiffusionPowerKMeans(3, random_state=0).fit(X).labels_
    assert [int(line) for line in printed.out.splitlines()] == expected.tolist()
    assert "rows" in printed.err and "150" in printed.err


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".parquet"])
def test_tables_of_all_formats_and_a_model_for_another_one(suffix, tmp_path, capsys):
    path, model, out = (tmp_path / name for name in ("t" + suffix, "m", "labels.npy"))
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame(X, columns=[*"abcd"]).to_parquet(path)
    else:
        save = {".csv": np.savetxt, ".npy": np.save, ".npz": np.savez}[suffix]
        save(path, X, **({"delimiter": ","} if suffix == ".csv" else {}))
    arguments = ["-k", "3", "--method", "fuzzy", "--standardize", "--seed", "0", "--json"]
    main(["cluster", str(path), *arguments, "--model", str(model), "--out", str(out)])
    summary = json.loads(capsys.readouterr().out)
    scaled = StandardScaler().fit_transform(X)
    expected = FuzzyCMeans(3, random_state=0).fit(scaled)
    assert_array_equal(np.load(out), expected.labels_)
    assert summary["rows"] == 150 and summary["columns"] == 4 and summary["method"] == "fuzzy"
    assert summary["sizes"] == np.bincount(expected.labels_).tolist()
    soft = tmp_path / "soft.npy"
    main(["predict", str(model), str(path), "--memberships", "--out", str(soft)])
    assert_array_equal(np.load(soft), expected.predict_proba(scaled))


@pytest.mark.exhaustive
def test_pipes(table):
    text = table.read_text()
    first = rffpk_process("cluster", "-", "-k", 3, "--seed", 0, input=text)
    assert first.returncode == 0 and len(first.stdout.splitlines()) == 150
    assert "objective" in first.stderr
    verbose = rffpk_process("cluster", "-", "-k", 3, "--seed", 0, "--verbose", input=text)
    assert verbose.stdout == first.stdout and len(verbose.stderr) > len(first.stderr)


@pytest.mark.exhaustive
def test_a_reader_that_ends_early_is_no_error(table):
    command = f"{sys.executable} -m rffpk cluster {table} -k 3 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr


@pytest.mark.exhaustive
def test_version():
    assert rffpk_process("--version").stdout == f"rffpk {rffpk.__version__}\n"


def bad_files(folder):
    np.savez(folder / "two.npz", a=X, b=X)
    np.save(folder / "words.npy", np.array([["a"]]))
    np.save(folder / "cube.npy", np.ones((2, 2, 2)))
    (folder / "words.csv").write_text("1.5,2\n3,x\n")
    (folder / "gap.csv").write_text("1,NA\n3,4\n9,9\n")
    (folder / "latin.csv").write_bytes(b"\xe4,1\n")
    (folder / "bad.npy").write_bytes(b"no array")
    (folder / "empty.csv").write_text("a,b\n")
    (folder / "nan.csv").write_text("1.5,2\n3,nan\n")
    (folder / "model").write_text("no model")
    np.save(folder / "ok.npy", X)
    (folder / "ok.csv.gz").write_text("1,2\n")
    rffpk.PowerKMeans(2).fit(X[:, :2]).save(folder / "fitted")
    np.savetxt(folder / "ok.csv", X, delimiter=",")
    rffpk.RandomFourierFeatures(2).fit(X).save(folder / "other")
    (folder / "years.csv").write_text("2019,2020,2021\n" + "1,2,3\n" * 3)
    (folder / "blank.csv").write_text("a,b\n1,2\n\n3,4\n\n")
    os.symlink(folder / "ok.csv", folder / "link.csv")


@pytest.mark.promise(
    "Files",
    "No result of the command line replaces what it reads. Standard output holds results alone.",
)
@pytest.mark.parametrize(
    "arguments, message",
    [
        (["cluster", "missing.csv", "-k", "3"], "missing.csv"),
        (["cluster", "ok.txt", "-k", "3"], "must end in one of .csv"),
        (["cluster", "two.npz", "-k", "3"], "has the arrays a, b; name one by --key"),
        (["cluster", "two.npz", "-k", "3", "--key", "c"], "has no array 'c', but a, b"),
        (["cluster", "ok.csv", "-k", "3", "--key", "c"], "--key is for .npz files only"),
        (["cluster", "words.npy", "-k", "3"], "must have numbers"),
        (["cluster", "cube.npy", "-k", "3"], "has 3 dimensions"),
        (["predict", "fitted", "words.csv"], "words.csv: row 2 has 'x' in column 2, must have a"),
        (["predict", "fitted", "gap.csv"], "gap.csv: row 1 has a gap in column 2, must have a"),
        (["cluster", "empty.csv", "-k", "1"], "empty.csv: no rows"),
        (["cluster", "latin.csv", "-k", "1"], "latin.csv: is not CSV in UTF-8"),
        (["cluster", "bad.npy", "-k", "1"], "bad.npy: is not a file of arrays"),
        (["cluster", "ok.csv", "-k", "3", "--out", "no/l.csv"], "no/l.csv: there is no folder"),
        (["cluster", "ok.csv", "-k", "3", "--out", "a.csv", "--model", "a.csv"], "is named twice"),
        (["predict", "fitted", "nan.csv"], "nan.csv: row 2 has a gap in column 2"),
        (["cluster", "ok.npy", "-k", "3", "--sep", ";"], "ok.npy: --sep is for text only"),
        (["cluster", "ok.csv.gz", "-k", "3"], "ok.csv.gz: is not CSV in UTF-8, compressed"),
        (["cluster", "ok.npy.gz", "-k", "3"], "must end in one of .csv, .tsv, .csv.gz"),
        (["cluster", "ok.csv", "-k", "3", "--columns", "5"], "--columns has '5', must have names"),
        (["cluster", "ok.csv", "-k", "3", "--drop", "1,2,3,4"], "--drop leaves no column"),
        (["cluster", "ok.csv", "-k", "3", "--columns", "1,1"], "--columns names a column twice"),
        (
            ["cluster", "ok.csv", "-k", "3", "--method", "rff", "--metric", "cosine"],
            "--metric is for the methods plain, fuzzy, diffusion, not for rff",
        ),
        (
            ["cluster", "ok.csv", "-k", "3", "--method", "fuzzy", "--noise", "auto"],
            "--noise is for the methods plain, rff, diffusion, not for fuzzy",
        ),
        (["cluster", "ok.csv", "-k", "3", "--noise", "2"], "noise == 2.0"),
        (["cluster", "ok.npy", "-k", "3", "--header"], "ok.npy: --header and --no-header are for"),
        (
            ["cluster", "two.npz", "-k", "3", "--key", "a", "--no-header"],
            "--no-header are for text",
        ),
        (["cluster", "ok.parquet", "-k", "3", "--header"], "--header and --no-header are for text"),
        (["cluster", "ok.csv", "-k", "151"], "n_clusters == 151"),
        (["cluster", "ok.csv", "-k", "3", "--out", "labels.txt"], "must end in .csv or .npy"),
        (["predict", "model", "ok.csv"], "model: is not a model"),
        (["predict", "other", "ok.csv"], "other: is not a model"),
        (["cluster", "blank.csv", "-k", "1"], "blank.csv: line 3 is blank"),
        (["cluster", "ok.csv", "-k", "3", "--out", "ok.csv"], "ok.csv: is named twice"),
        (["cluster", "ok.csv", "-k", "3", "--out", "link.csv"], "is named twice"),
        (["cluster", "ok.csv", "-k", "3", "--model", "ok.csv"], "is named twice"),
        (["predict", "ok.csv", "years.csv", "--out", "ok.csv"], "is named twice"),
    ],
)
def test_errors_are_one_line_and_leave_no_file(arguments, message, tmp_path, monkeypatch, capsys):
    bad_files(tmp_path)
    before = {*os.listdir(tmp_path)}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(arguments)
    printed = capsys.readouterr()
    assert end.value.code == 2
    assert message in printed.err and printed.err.count("\n") == 1 and not printed.out
    assert {*os.listdir(tmp_path)} == before


def test_warnings_are_one_line(tmp_path, capsys):
    np.savetxt(tmp_path / "x.csv", np.ones((9, 2)), delimiter=",")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main(["cluster", str(tmp_path / "x.csv"), "-k", "3", "--out", str(tmp_path / "labels.csv")])
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("rffpk: warning: ") for line in lines)


@pytest.mark.parametrize("error, code", [(KeyboardInterrupt, 130), (MemoryError, 2)])
def test_an_interrupt_and_too_little_memory_have_exit_codes(error, code, monkeypatch, capsys):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(files, "read_table", fail)
    with pytest.raises(SystemExit) as end:
        main(["cluster", "x.csv", "-k", "3"])
    assert end.value.code == code and "Traceback" not in capsys.readouterr().err


def test_a_result_that_cannot_be_written_leaves_the_file_before(tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"
    path.write_text("before")

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_table(str(path), np.arange(3))
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["labels.csv"]


def test_links_and_permissions_stay(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to(target)
    files.write_table(str(link), np.arange(3))
    assert target.read_text() == "0\n1\n2\n" and link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600


def test_models_of_other_versions_are_named(table, tmp_path, monkeypatch, capsys):
    model = str(tmp_path / "m")
    monkeypatch.setattr("rffpk.model_files.__version__", "7.0.0")
    FuzzyCMeans(3, random_state=0).fit(X).save(model)
    monkeypatch.undo()
    with pytest.raises(SystemExit):
        main(["predict", model, str(table)])
    assert "was saved by rffpk 7.0.0" in capsys.readouterr().err


@pytest.mark.parametrize("standardize", [False, True])
def test_the_model_is_a_file_that_cannot_run_code(standardize, table, tmp_path, capsys):
    model, arguments = tmp_path / "m", ["--standardize"] * standardize
    main(["cluster", str(table), "-k", "3", "--seed", "0", "--model", str(model), *arguments])
    labels = [int(line) for line in capsys.readouterr().out.splitlines()]
    assert model.read_bytes()[8:].startswith(b'{"__metadata__":{"checksum"')
    frame = pd.read_csv(table)
    assert_array_equal(rffpk.load(model).predict(frame), labels)
    with pytest.raises(ValueError, match="feature names should match"):
        rffpk.load(model).predict(frame[[*"badc"]])


@pytest.mark.promise(like="test_a_damaged_file_gives_a_named_error_or_a_model")
def test_pickles_are_not_read(table, tmp_path, capsys):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    (tmp_path / "m").write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(SystemExit):
        main(["predict", str(tmp_path / "m"), str(table)])
    assert "m: is not a model file" in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()


# ---- lines of CSV -------------------------------------------------------------------------------


def noted(expected, message):
    return pytest.warns(UserWarning, match=message) if expected else contextlib.nullcontext()


FLOATS = "0.5,1.5,2.5\n" * 3
NAMES = ["a,b,c\n" + FLOATS, '"a","b","c"\n' + FLOATS, "\ufeffa,b,c\r\n" + FLOATS]
ROWS = [FLOATS, "0\n1\n2\n", "2019,2020,2021\n" + FLOATS, '"2019","2020","2021"\n' + FLOATS]
ROWS += ["country,2019,2020\n" + "France,1.5,2.5\n" * 3, "a,400.5,401\n" + FLOATS]


@pytest.mark.promise(
    "Files",
    "A first line of CSV without any number is taken as names, any other as a row, unless "
    "`--header` or `--no-header` says what it is. Blank lines are refused.",
)
@pytest.mark.parametrize("text", NAMES + ROWS)
def test_a_first_line_is_names_without_a_number_and_otherwise_a_row(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with noted(text in ROWS[1:], "x.csv: the first line, .*, is taken as a row: pass --header"):
        assert len(read_table(str(path)).numbers) == text.count("\n") - (text in NAMES)
    for header in (True, False):  # without a warning
        found = read_table(str(path), Choice(header=header)) if header or text in ROWS else None
        assert found is None or len(found.numbers) == text.count("\n") - header


@pytest.mark.parametrize("flags, rows", [([], 3), (["--no-header"], 3), (["--header"], 2)])
def test_the_flags_of_the_header_reach_the_file(flags, rows, tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text("0\n1\n1\n")
    warned("cluster", path, "-k", "1", *flags)
    printed = capsys.readouterr()
    assert printed.out == "0\n" * rows
    note = f"rffpk: warning: {path}: the first line, 0, is taken as a row: pass --header"
    assert (note in printed.err) == (not flags)


@pytest.mark.promise(like="test_a_first_line_is_names_without_a_number_and_otherwise_a_row")
@pytest.mark.parametrize(
    "text, number", [("1.5\n\n2\n", 2), ("\n1.5\n", 1), ("a\n1.5\n \t\n2\n\n", 3)]
)
def test_blank_lines_are_refused_by_number_except_at_the_end(text, number, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(TableError, match=f"line {number} is blank"):
        read_table(str(path))
    path.write_text("1.5\n2\n\n \n\n")
    assert_array_equal(read_table(str(path)).numbers, [[1.5], [2]])


# ---- names and indices of columns ----------------------------------------------------------------

FRAME = pd.DataFrame({"a": [1.5, 2.5, 4.0], "b": [3.0, 1.0, 2.0]})
INDEX = "the first column has no name, and is left out as the labels of rows"
WITH_INDEX = {
    "pandas": FRAME.to_csv(),
    "pandas, labels": FRAME.set_axis(["x", "y, z", "w"]).to_csv(),
    "pandas, equal labels": FRAME.set_axis([0, 1, 0]).to_csv(),
    "pandas, read and written": "Unnamed: 0,a,b\n0,1.5,3\n1,2.5,1\n2,4,2\n",
    "R, write.csv": '"","a","b"\n"1",1.5,3\n"2",2.5,1\n"3",4,2\n',
    "R, write.csv, labels": '"","a","b"\n"Mazda, 4",1.5,3\n"Fiat",2.5,1\n"Volvo",4,2\n',
    "R, write.table": '"a","b"\n"1",1.5,3\n"2",2.5,1\n"3",4,2\n',
    "R, write.table, without quotes": "a,b\n1,1.5,3\n2,2.5,1\n3,4,2\n",
    "R on Windows": '"","a","b"\r\n"1",1.5,3\r\n"2",2.5,1\r\n"3",4,2\r\n',
}


@pytest.mark.promise(
    "Files",
    "A first column without a name, the index that pandas and R write, is left out with a warning.",
)
@pytest.mark.parametrize("text", WITH_INDEX.values(), ids=WITH_INDEX)
def test_an_index_is_left_out_with_a_warning(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text, newline="")
    with pytest.warns(UserWarning, match=f"x.csv: {INDEX}"):
        found = read_table(str(path))
    assert_array_equal(found.numbers, FRAME.to_numpy())
    assert found.names == ["a", "b"] and found.numbers.flags.c_contiguous


@pytest.mark.promise(like="test_a_first_line_is_names_without_a_number_and_otherwise_a_row")
@pytest.mark.promise(like="test_an_index_is_left_out_with_a_warning")
def test_an_index_beside_positions_and_in_parquet_is_left_out(tmp_path):
    path = tmp_path / "x.csv"
    FRAME.set_axis([0, 1], axis=1).to_csv(path)
    with pytest.warns(UserWarning, match=INDEX):
        found = read_table(str(path), Choice(header=True))
    assert_array_equal(found.numbers, FRAME.to_numpy())
    assert found.names is None
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    FRAME.set_axis([*"xyz"]).reset_index(names="Unnamed: 0").to_parquet(path)
    with pytest.warns(UserWarning, match=INDEX):
        assert_array_equal(read_table(str(path)).numbers, FRAME.to_numpy())
    FRAME.set_axis([*"xyz"]).to_parquet(path)
    assert read_table(str(path)).names == ["a", "b"]


@pytest.mark.promise(like="test_a_first_line_is_names_without_a_number_and_otherwise_a_row")
@pytest.mark.parametrize(
    "text, names",
    [
        ('"a","b, in cm"\n1.5,3\n2.5,1\n4,2\n', ["a", "b, in cm"]),
        ('"a","b"\n"1.5","3"\n"2.5","1"\n"4","2"\n', ["a", "b"]),
        ('"1.5","3"\n"2.5","1"\n"4","2"\n', None),
        ("1.5,3\n2.5,1\n4,2\n", None),
        ("height [cm],b\n1.5, 3\n2.5, 1\n4, 2\n", ["height [cm]", "b"]),
        ("2024_01,2024_02\n1.5,3\n2.5,1\n4,2\n", ["2024_01", "2024_02"]),
        ("\uff11,\uff12\n1.5,3\n2.5,1\n4,2\n", ["\uff11", "\uff12"]),
    ],
)
def test_quoted_fields_are_read(text, names, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    found = read_table(str(path))
    assert_array_equal(found.numbers, FRAME.to_numpy())
    assert found.names == names


@pytest.mark.parametrize(
    "text, message",
    [
        (",10,20\n0,1.5,2\n", "the first line, ,10,20, may be a row or names of columns: pass"),
        (",a,2019\n0,1.5,2\n", "the first line, ,a,2019, may be a row or names of columns: pass"),
        ("a;b\n1;2\n3;4\n", "row 1 has semicolons between its columns, must have commas, unless"),
        ("1,5;2,5\n3,5;4,5\n", "row 1 has semicolons between its columns"),
        ("a\tb\n1\t2\n", "row 1 has tabs between its columns, must have commas"),
        ("1.5 2.5\n3.5 4.5\n", "row 1 has spaces between its columns, must have commas"),
        ("a;b\nx;2\n", "row 1 has semicolons between its columns"),
        ("a;b\n0;1,5;2\n", "row 1 has semicolons between its columns"),
        (";a;b\n0;1,5;2,5\n", "row 1 has semicolons between its columns"),
        (",,a\n0,1,1.5\n0,2,2.5\n", "column 2 has no name: give it one, or remove it"),
        ("a,,b\n0,1,1.5\n0,2,2.5\n", "column 2 has no name: give it one, or remove it"),
        ('a,b\n1,"2,5"\n3,x\n', "row 1 has '2,5' in column 2: numbers have a decimal point"),
        ("a,b\n1,2\n3\n", "row 2 has 1 columns, must have 2"),
        (",a\nx,2\ny\n", "row 2 has 1 columns, must have 2"),
        ("1.5,2,3,4\n1,2,3,4\n1,2,3,4,5\n", "row 3 has 5 columns, must have 4"),
        ("a,b,c\n1,2\n3,4\n", "row 1 has 2 columns, must have 3"),
        ("a\n1,2,3\n", "row 1 has 3 columns, must have 1"),
    ],
)
def test_what_is_wrong_with_a_line_is_named(text, message, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with warnings.catch_warnings(), pytest.raises(TableError) as error:
        warnings.simplefilter("ignore")
        read_table(str(path))
    assert str(error.value).startswith(f"{path}: {message}")


# ---- words, gaps, separators and choices of columns ----------------------------------------------

PLAIN = ["--method", "plain", "--json"]  # fast
WORDS = pd.DataFrame(
    {
        "size": [1.0, 1.5, None, 8.0, 9.0, 8.5],
        "color": ["red", "red", "red", "deep, blue", None, "deep, blue"],
        "n": [1, 2, 1, 7, 8, 7],
    }
)
SAID = "has words in the columns ['color'] and gaps in the columns ['size', 'color']: "


def written(frame, path):
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return str(path)


@pytest.mark.promise(
    "Files",
    "The command line clusters words and gaps by a `TablePreprocessor`, says so, "
    "and keeps it in the model.",
)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz", "t.parquet"])
def test_words_and_gaps_are_clustered_as_by_the_preprocessor(name, tmp_path, capsys):
    path, model = written(WORDS, tmp_path / name), str(tmp_path / "m")
    warned("cluster", path, "-k", "2", "--seed", "0", "--model", model, "--standardize")
    printed = capsys.readouterr()
    assert f"rffpk: warning: {path}: {SAID}" in printed.err
    labels = [int(line) for line in printed.out.splitlines()]
    expected = make_pipeline(TablePreprocessor(), PowerKMeans(2, random_state=0)).fit(WORDS)
    assert labels == expected[-1].labels_.tolist()
    main(["predict", model, path])
    assert [int(line) for line in capsys.readouterr().out.splitlines()] == labels
    assert_array_equal(rffpk.load(model).predict(WORDS), labels)
    written(WORDS[["size", "n", "color"]], tmp_path / name)
    with pytest.raises(SystemExit):
        main(["predict", model, path])
    assert "has the columns in the order ['size', 'n', 'color'], must" in capsys.readouterr().err
    written(WORDS[["size", "color", "n"]].fillna({"size": 1, "color": "red"}), tmp_path / name)
    main(["predict", model, path])
    assert len(capsys.readouterr().out.splitlines()) == 6


@pytest.mark.promise(like="test_words_and_gaps_are_clustered_as_by_the_preprocessor")
def test_words_and_gaps_without_names(tmp_path, capsys):
    path, model = tmp_path / "t.csv", str(tmp_path / "m")
    path.write_text("1.5,a\n1.25,a\n,a\n7.5,b\n8.5,?\n")
    warned("cluster", path, "-k", "2", "--seed", "0", "--model", model)
    labels, said = capsys.readouterr()
    assert "words in the columns ['2'] and gaps in the columns ['1']" in said
    main(["predict", model, str(path), "--no-header"])
    assert capsys.readouterr().out == labels
    path.write_text("1.5,a,1\n")
    with pytest.raises(SystemExit):
        main(["predict", model, str(path), "--no-header"])
    assert "t.csv: has 3 columns, must have 2" in capsys.readouterr().err


def test_rows_are_the_lines_of_text_whatever_their_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('word\n"a\nb\n5" c\n"d, e"\n')
    assert read_table(str(path)).numbers.ravel().tolist() == ["a", "b", '5" c', "d, e"]
    path.write_text('n,word\n1,"a\n2,b"\n3,c\n')
    assert read_table(str(path), Choice(columns="n")).numbers.tolist() == [[1], [2], [3]]


def test_words_that_python_takes_for_numbers_are_words(tmp_path, capsys):
    path, model = tmp_path / "t.csv", str(tmp_path / "m")
    path.write_text("month,n\n2024_05,1\n2024_06,2\n\uff11,3\n")
    found = read_table(str(path)).numbers
    assert found.tolist() == [["2024_05", 1], ["2024_06", 2], ["\uff11", 3]]
    PowerKMeans(1).fit([[1.0], [2.0]]).save(model)
    path.write_text("1\n2024_05\n")
    with pytest.raises(SystemExit):
        main(["predict", model, str(path), "--no-header"])
    assert "row 2 has '2024_05' in column 1, must have a number" in capsys.readouterr().err
    _check_numbers("t.csv", np.ones((2, 1), dtype=object), None)  # without an error


def test_dates_are_refused_by_name(tmp_path, capsys):
    frame = pd.DataFrame({"x": X[:, 0], "day": pd.date_range("2020", "2021", 150)})
    path, model = written(frame, tmp_path / "t.parquet"), str(tmp_path / "m")
    main(["cluster", path, "-k", "2", "--drop", "day", "--model", model, *PLAIN])
    for arguments, message in [
        (["cluster", path, "-k", "2"], "X has dates or durations in column 'day'"),
        (["predict", model, path], "t.parquet: has the columns ['day'], which were not fitted"),
    ]:
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err
    written(frame[["day"]].rename(columns={"day": "x"}), tmp_path / "t.parquet")
    with pytest.raises(SystemExit):
        main(["predict", model, path])
    assert "row 1 has Timestamp('2020-01-01 00:00:00') in column 'x', must have a number" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("gap", ["", "NA", "nan", "null", " ", "N/A"])
def test_gaps_of_text_and_of_parquet_are_the_same(gap, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,2\n3,{gap}\n5,6\n")
    found = read_table(str(path))
    assert found.numbers.dtype == object and found.numbers.tolist() == [[1, 2], [3, None], [5, 6]]
    frame = pd.DataFrame({"a": [1.0, 3.0, 5.0], "b": [2.0, None, 6.0]})
    assert_array_equal(read_table(written(frame, tmp_path / "t.parquet")).numbers, found.numbers)


@pytest.mark.parametrize("separator", [";", "tab", r"\t", " ", "|"])
def test_sep_separates_fields(separator, tmp_path, capsys):
    path = tmp_path / "t.csv"
    mark = "\t" if separator in ("tab", r"\t") else separator
    pd.DataFrame(X, columns=[*"abcd"]).to_csv(path, index=False, sep=mark)
    main(["cluster", str(path), "-k", "3", "--seed", "0", "--sep", separator, *PLAIN])
    printed = capsys.readouterr()
    assert json.loads(printed.err)["columns"] == 4
    expected = PowerKMeans(3, random_state=0).fit(X).labels_
    assert [int(line) for line in printed.out.splitlines()] == expected.tolist()


@pytest.mark.parametrize("option", [["--sep", "ab"], ["--sep", "1"], ["-k", "many"], ["-k", "2.5"]])
def test_values_of_options_that_cannot_be_are_named(option, table, capsys):
    with pytest.raises(SystemExit) as end:
        main(["cluster", str(table), "-k", "3", *option])
    assert end.value.code == 2
    assert f"argument {option[0]}: '{option[1]}', must be " in capsys.readouterr().err


CHOICES = [
    (["--columns", "c,a"], ["c", "a"]),
    (["--columns", "3,1"], ["c", "a"]),
    (["--columns", "b,4"], ["b", "d"]),
    (["--drop", "b,4"], ["a", "c"]),
    (["--drop", "d"], ["a", "b", "c"]),
]


@pytest.mark.parametrize("arguments, names", CHOICES)
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npy"])
def test_columns_are_chosen_by_names_or_numbers(name, arguments, names, tmp_path, capsys):
    frame = pd.DataFrame(X, columns=[*"abcd"])
    path, model = tmp_path / name, str(tmp_path / "m")
    if name == "t.npy":
        np.save(path, X)
        arguments = [
            arguments[0],
            ",".join(str("abcd".find(c) + 1 or c) for c in arguments[1].split(",")),
        ]
    else:
        written(frame.assign(word="x"), path)
        if arguments[0] == "--drop":
            arguments = ["--drop", arguments[1] + ",word"]
    main(["cluster", str(path), "-k", "3", "--seed", "0", "--model", model, *PLAIN, *arguments])
    labels = [int(line) for line in capsys.readouterr().out.splitlines()]
    expected = PowerKMeans(3, random_state=0).fit(frame[names].to_numpy()).labels_
    assert labels == expected.tolist()
    main(["predict", model, str(path), *arguments])
    assert [int(line) for line in capsys.readouterr().out.splitlines()] == labels


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_columns_that_have_positions_as_names_are_numbered_from_one(name, tmp_path):
    path = written(pd.DataFrame(X).rename(columns=str), tmp_path / name)
    header = True if name == "t.csv" else None
    for number in range(1, 5):
        found = read_table(path, Choice(header=header, columns=str(number)))
        assert_array_equal(found.numbers, X[:, [number - 1]])
        rest = read_table(path, Choice(header=header, drop=str(number)))
        assert_array_equal(rest.numbers, np.delete(X, number - 1, axis=1))
    with pytest.raises(TableError, match="--columns has '0', must have names or numbers from 1"):
        read_table(path, Choice(header=header, columns="0"))


def test_columns_are_counted_without_an_index_and_exclude_drop(table, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(WITH_INDEX["pandas, labels"])
    with pytest.warns(UserWarning, match=INDEX):
        found = read_table(str(path), Choice(columns="2"))
    assert found.names == ["b"] and found.numbers.tolist() == [[3], [1], [2]]
    with pytest.raises(SystemExit):
        main(["cluster", str(table), "-k", "3", "--columns", "a", "--drop", "b"])
    assert "not allowed with argument --columns" in capsys.readouterr().err


# ---- options of the model ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, model",
    [
        ([], DiffusionPowerKMeans(3)),
        (["--metric", "euclidean"], DiffusionPowerKMeans(3)),
        (["--metric", "cosine"], PowerKMeans(3, metric="cosine")),
        (["--metric", "cosine", "--method", "diffusion"], DiffusionPowerKMeans(3, metric="cosine")),
        (["--noise", "0.1"], DiffusionPowerKMeans(3, noise=0.1)),
        (["--noise", "auto", "--method", "plain"], PowerKMeans(3, noise="auto")),
        (["--method", "rff"], rffpk.RFFKernelPowerKMeans(3)),
        (["-k", "auto"], DiffusionPowerKMeans("auto")),
        (["-k", "coarse", "--method", "plain"], PowerKMeans("coarse")),
        (["-k", "fine", "--method", "rff"], rffpk.RFFKernelPowerKMeans("fine")),
        (["-k", "auto", "--method", "fuzzy"], FuzzyCMeans("auto")),
    ],
)
def test_options_are_parameters_of_the_estimator(arguments, model, table, tmp_path, capsys):
    out = tmp_path / "l.csv"
    main(["cluster", str(table), "-k", "3", "--seed", "0", "--json", "--out", str(out), *arguments])
    summary = json.loads(capsys.readouterr().out)
    labels = model.set_params(random_state=0).fit(X).labels_
    assert_array_equal(np.loadtxt(out), labels)
    assert summary["clusters"] == len(summary["sizes"]) == model.n_clusters_
    assert summary["sizes"] == np.bincount(labels[labels >= 0]).tolist()
    assert summary.get("noise") == (
        int((labels < 0).sum()) if getattr(model, "noise", None) else None
    )


def test_verbose_prints_a_line_at_the_end_and_given_twice_each_pass(table, capsys):
    def lines(*arguments):
        main(["cluster", *arguments, str(table), "-k", "3", "--seed", "0", "--method", "plain"])
        return sum("PowerKMeans: " in line for line in capsys.readouterr().err.splitlines())

    passes = len([r for r in PowerKMeans(3, random_state=0).fit(X).history_ if "kept" in r])
    assert [lines(), lines("-v"), lines("--verbose")] == [0, 1, 1]
    assert [lines("-vv"), lines("--verbose", "--verbose")] == [passes, passes]


@pytest.fixture
def named_model(table, tmp_path, capsys):
    """The path of a model of the columns a, b, c, d, and its labels."""

    def fit(*arguments):
        model = str(tmp_path / "m")
        main(["cluster", str(table), "-k", "3", "--seed", "0", "--model", model, *arguments])
        return model, [int(line) for line in capsys.readouterr().out.splitlines()]

    return fit


@pytest.mark.promise(
    "Files",
    "The command line labels no table whose columns have other names than those of the fit, or "
    "another order.",
)
@pytest.mark.parametrize("arguments", [[], ["--standardize"], ["--method", "diffusion"]])
def test_columns_of_other_names_or_another_order_are_refused(
    arguments, named_model, tmp_path, capsys
):
    model, labels = named_model(*arguments)
    frame, path = pd.DataFrame(X, columns=[*"abcd"]), tmp_path / "other.csv"
    for other, message in [
        (frame[[*"badc"]], "other.csv: has the columns in the order ['b', 'a', 'd', 'c'], must"),
        (frame[[*"abc"]], "other.csv: lacks the columns ['d'], which were fitted"),
        (frame.assign(e=1), "other.csv: has the columns ['e'], which were not fitted"),
        (frame.rename(columns={"d": "e"}), "other.csv: lacks the columns ['d']"),
    ]:
        other.to_csv(path, index=False)
        with pytest.raises(SystemExit):
            main(["predict", model, str(path)])
        assert message in capsys.readouterr().err
    frame.to_csv(path)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main(["predict", model, str(path)])
    assert [int(line) for line in capsys.readouterr().out.splitlines()] == labels


def test_names_that_only_one_of_model_and_table_has_are_named(named_model, table, tmp_path, capsys):
    model, labels = named_model()
    np.save(tmp_path / "x.npy", X)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main(["predict", model, str(tmp_path / "x.npy")])
        printed = capsys.readouterr()
        assert "has no names of columns, which are taken as ['a', 'b', 'c', 'd']" in printed.err
        assert [int(line) for line in printed.out.splitlines()] == labels
        main(["cluster", str(tmp_path / "x.npy"), "-k", "3", "--seed", "0", "--model", model])
        main(["predict", model, str(table)])
    assert "m: has no names of columns, which are taken as ['a'" in capsys.readouterr().err


# ---- streams that are closed --------------------------------------------------------------------


def in_a_shell(command, **options):
    shell = f"{sys.executable} -m rffpk {command}"
    return subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.promise(like="test_errors_are_one_line_and_leave_no_file")
@pytest.mark.exhaustive
def test_labels_are_alone_where_standard_error_is_closed(table):
    done = in_a_shell(f"cluster {table} -k 3 --verbose 2>&-")
    assert done.returncode == 0
    assert len([int(line) for line in done.stdout.splitlines()]) == 150
    done = in_a_shell(f"cluster {table} -k 151 2>&-")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.exhaustive
def test_closed_standard_output_is_named_unless_a_file_takes_the_results(table, tmp_path):
    done = in_a_shell(f"cluster {table} -k 3 >&-")
    assert done.returncode == 2
    assert done.stderr == "rffpk: standard output is closed: name a file by --out\n"
    done = in_a_shell(f"cluster {table} -k 3 --verbose --out {tmp_path / 'l.csv'} >&-")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 150
    assert in_a_shell("info >&-").stderr == ""


@pytest.mark.exhaustive
def test_closed_standard_input_is_named():
    done = in_a_shell("cluster - -k 3 <&-")
    assert done.returncode == 2
    assert done.stderr == "rffpk: standard input is closed: name a file\n"
