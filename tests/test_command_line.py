"""The command line: files in and out, summaries, and errors in one line."""

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
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk import FuzzyCMeans, RFFKernelPowerKMeans
from rffpk.__main__ import main
from rffpk._utils import files
from rffpk._utils.files import TableError, read_table

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "iris.csv"
    pd.DataFrame(X, columns=[*"abcd"]).to_csv(path, index=False)
    return path


def rffpk_process(*arguments, **options):
    command = [sys.executable, "-m", "rffpk", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_labels_are_those_of_the_estimator(table, capsys):
    main(["cluster", str(table), "-k", "3", "--seed", "0"])
    printed = capsys.readouterr()
    expected = RFFKernelPowerKMeans(3, random_state=0).fit(X).labels_
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
        (
            ["cluster", "words.csv", "-k", "1"],
            "words.csv: line 2 has 'x' in column 2, must be a number",
        ),
        (["cluster", "empty.csv", "-k", "1"], "empty.csv: no rows"),
        (
            ["cluster", "gap.csv", "-k", "1"],
            "gap.csv: line 1 has 'NA' in column 2, must be a number",
        ),
        (["cluster", "latin.csv", "-k", "1"], "latin.csv: is not CSV in UTF-8"),
        (["cluster", "bad.npy", "-k", "1"], "bad.npy: is not a file of arrays"),
        (["cluster", "ok.csv", "-k", "3", "--out", "no/l.csv"], "no/l.csv: there is no folder"),
        (["cluster", "ok.csv", "-k", "3", "--out", "a.csv", "--model", "a.csv"], "is named twice"),
        (["cluster", "nan.csv", "-k", "1"], "NaN"),
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

FLOATS = "0.5,1.5,2.5\n" * 3
NAMES = ["a,b,c\n" + FLOATS, '"a","b","c"\n' + FLOATS, "\ufeffa,b,c\r\n" + FLOATS]
ROWS = [FLOATS, "0\n1\n2\n", "2019,2020,2021\n" + FLOATS, '"2019","2020","2021"\n' + FLOATS]


@pytest.mark.promise(
    "Files",
    "A first line of CSV without any number is taken as names, any other as a row, unless "
    "`--header` or `--no-header` says what it is. Blank lines are refused.",
)
@pytest.mark.parametrize("text", NAMES + ROWS)
def test_a_first_line_is_names_without_a_number_and_otherwise_a_row(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert len(read_table(str(path)).numbers) == text.count("\n") - (text in NAMES)
    assert len(read_table(str(path), header=True).numbers) == text.count("\n") - 1


@pytest.mark.parametrize("flags, rows", [([], 3), (["--no-header"], 3), (["--header"], 2)])
def test_the_flags_of_the_header_reach_the_file(flags, rows, tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text("0\n1\n1\n")
    main(["cluster", str(path), "-k", "1", *flags])
    assert capsys.readouterr().out == "0\n" * rows


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
        found = read_table(str(path), header=True)
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
        ("a;b\n1;2\n3;4\n", "line 2 has semicolons between its fields, must have commas: 1;2"),
        ("1,5;2,5\n3,5;4,5\n", "line 1 has semicolons between its fields"),
        ("a\tb\n1\t2\n", "line 2 has tabs between its fields, must have commas"),
        ("1.5 2.5\n3.5 4.5\n", "line 2 has spaces between its fields, must have commas"),
        ("a,b\ncm,kg\n1,2\n", "line 2 has 'cm' in column 'a', must be a number"),
        ("a,b\n1,\n3,4\n", "line 2 has '' in column 'b', must be a number: fill in what is"),
        ("a;b\n0;1,5;2\n", "line 2 has semicolons between its fields"),
        (";a;b\n0;1,5;2,5\n", "line 2 has semicolons between its fields"),
        (",,a\n0,1,1.5\n0,2,2.5\n", "column 2 has no name: give it one, or remove it"),
        ("a,,b\n0,1,1.5\n0,2,2.5\n", "column 2 has no name: give it one, or remove it"),
        (",10,20\n0,1.5,2\n", "line 1 has '' in column 1, must be a number: fill in"),
        ("a,b\n1,2,\n3,4,\n", "line 2 has '' in column 'b', must be a number"),
        (",1.5,2.5\n0.3,1.2,2.2\n", "line 1 has '' in column 1, must be a number: fill in"),
        ('"","a","b"\n"1",1,"red"\n', "line 2 has 'red' in column 'b', must be a number"),
        ("a,b\n1,2\n3\n", "line 3 has 1 fields, the lines before 2"),
        (",a\nx,2\ny\n", "line 3 has 1 fields, the lines before 2"),
        ("a,b,c\n1,2\n3,4\n", "has 3 names of columns, but rows of 2 fields"),
        ("a\n1,2,3\n", "has 1 names of columns, but rows of 3 fields"),
    ],
)
def test_what_is_wrong_with_a_line_is_named(text, message, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with warnings.catch_warnings(), pytest.raises(TableError) as error:
        warnings.simplefilter("ignore")
        read_table(str(path))
    assert str(error.value).startswith(f"{path}: {message}")


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
