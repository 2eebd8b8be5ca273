"""The command line: files in and out, summaries, and errors in one line."""

import gzip
import json
import os
import pickle
import subprocess
import sys
import warnings
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from contracts.source import read_table
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rffpk
from rffpk import DiffusionPowerKMeans, FuzzyCMeans, PowerKMeans
from rffpk.__main__ import main
from rffpk.tables import TablePreprocessor

X, Y = load_iris(return_X_y=True)
METHODS = {"plain": PowerKMeans, "fuzzy": FuzzyCMeans, "diffusion": DiffusionPowerKMeans}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "iris.csv"
    pd.DataFrame(X, columns=[*"abcd"]).to_csv(path, index=False)
    return path


def in_a_shell(command, **options):
    """Return the exit code, the output and the messages of a command of a shell."""
    shell = f"{sys.executable} -m rffpk {command}"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=120, **options)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def said(capsys, *arguments):
    """Return the labels that a command prints, and its messages, with all warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main([*map(str, arguments)])
    printed = capsys.readouterr()
    return [int(line) for line in printed.out.splitlines()], printed.err


def refused(capsys, *arguments):
    """Return the line with the reason why a command ends."""
    with warnings.catch_warnings(), pytest.raises(SystemExit) as end:
        warnings.simplefilter("ignore")
        main([*map(str, arguments)])
    printed = capsys.readouterr()
    assert end.value.code == 2 and printed.err.count("\n") == 1 and not printed.out
    return printed.err


def written(frame, path):
    """Write a frame to a file, without names in files of arrays; return the path."""
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif path.suffix in (".npy", ".npz"):
        (np.save if path.suffix == ".npy" else np.savez)(path, frame.to_numpy(np.float64))
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return str(path)


@pytest.mark.promise(
    "Files",
    "The command line gives the same rows the same labels and memberships, to the bit, whatever "
    "the format of the file that holds them.",
)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".npy", ".npz", ".parquet"])
def test_rows_have_the_same_labels_in_all_formats(suffix, method, tmp_path, capsys):
    rows = (
        np.random.default_rng(0).standard_normal((80, 2)) ** 3 + np.repeat([0.0, 9.0], 40)[:, None]
    )
    frame = pd.DataFrame(rows, columns=["a", "b"]).assign(
        whole=np.arange(80), is_odd=[False, True] * 40
    )
    path, model, out = written(frame, tmp_path / f"t{suffix}"), tmp_path / "m", tmp_path / "l.npy"
    options = ["-k", 2, "--method", method, "--standardize", "--seed", 0, "--json"]
    main([*map(str, ["cluster", path, *options, "--model", model, "--out", out])])
    summary = json.loads(capsys.readouterr().out)
    scaled = StandardScaler().fit_transform(np.ascontiguousarray(frame.to_numpy(np.float64)))
    expected = METHODS[method](2, random_state=0).fit(scaled)
    assert_array_equal(np.load(out), expected.labels_)
    assert summary["rows"] == 80 and summary["columns"] == 4 and summary["method"] == method
    assert summary["sizes"] == np.bincount(expected.labels_).tolist()
    main([*map(str, ["predict", model, path, "--memberships", "--out", out])])
    assert_array_equal(np.load(out), expected.predict_proba(scaled))


@pytest.mark.promise(
    "Files",
    "`.npy` and `.npz`, `rffpk demo` and `rffpk info` need no pandas; other tables name the "
    "package to install.",
)
@pytest.mark.parametrize(
    "package, needing", [("pandas", [".csv", ".parquet"]), ("pyarrow", [".parquet"])]
)
def test_a_missing_package_is_named(package, needing, tmp_path, monkeypatch, capsys):
    paths = {suffix: tmp_path / f"t{suffix}" for suffix in (".csv", ".npy", ".npz", ".parquet")}
    for suffix in (".csv", ".npy", ".npz"):
        written(pd.DataFrame(X), paths[suffix])
    paths[".parquet"].touch()
    monkeypatch.setitem(sys.modules, package, None)
    for suffix, path in paths.items():
        arguments = ["cluster", path, "-k", 3, *["--header"] * (suffix == ".csv")]
        if suffix in needing:
            assert f"pip install {package}" in refused(capsys, *arguments)
        else:
            assert len(said(capsys, *arguments)[0]) == 150
    main(["info"])
    assert "version" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_pipes(table):
    code, labels, err = in_a_shell("cluster - -k 3 --seed 0", input=table.read_text())
    assert code == 0 and len(labels.splitlines()) == 150 and "objective" in err
    assert in_a_shell(f"cluster {table} -k 3 | head -n 1")[0] == 0
    assert in_a_shell("--version")[1] == f"rffpk {rffpk.__version__}\n"


def bad_files(folder):
    np.savez(folder / "two.npz", a=X, b=X)
    np.save(folder / "words.npy", np.array([["a"]]))
    np.save(folder / "cube.npy", np.ones((2, 2, 2)))
    np.save(folder / "ok.npy", X)
    np.savetxt(folder / "ok.csv", X, delimiter=",")
    rffpk.PowerKMeans(2).fit(X[:, :2]).save(folder / "fitted")
    rffpk.RandomFourierFeatures(2).fit(X).save(folder / "other")
    with pytest.MonkeyPatch.context() as other:
        other.setattr("rffpk.model_files.__version__", "7.0.0")
        FuzzyCMeans(2).fit(X).save(folder / "seven")
    for name, text in {
        "words.csv": "1.5,2\n3,x\n",
        "gap.csv": "1.5,NA\n3,4\n9,9\n",
        "empty.csv": "a,b\n",
        "nan.csv": "1.5,2\n3,nan\n",
        "model": "no model",
        "ok.csv.gz": "1,2\n",
        "years.csv": "2019,2020,2021\n" + "1,2,3\n" * 3,
        "blank.csv": "a,b\n1,2\n\n3,4\n\n",
        "gaps.csv": "a,b\n1.5,2\nNA, \n3,4\n",
        "last.csv": "2.5\n\n",
        "nul.csv": "1.5,2\n3,4\0\n",
        "ends.csv": "1.5,2,\n3,4,\n5,6\n",
        "more.csv": "1.5,2,3,4\n1,2,3,4\n1,2,3,4,5\n",
        "latin.csv": b"\xe4,1\n",
        "bad.npy": b"no array",
        "nul.csv.gz": gzip.compress(b"a,b\n1.5,\0002\n"),
    }.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    os.symlink(folder / "ok.csv", folder / "link.csv")


ERRORS = {
    "cluster missing.csv": "missing.csv",
    "cluster ok.txt": "must end in one of .csv",
    "cluster two.npz": "has the arrays ['a', 'b']: name one by --key",
    "cluster two.npz --key c": "has the arrays ['a', 'b']: name one",
    "cluster ok.csv --key c": "--key is for .npz only",
    "cluster words.npy": "must have numbers",
    "cluster cube.npy": "of 3 dimensions. It must have numbers",
    "predict fitted words.csv": "words.csv: has words in the columns [2], must",
    "predict fitted gap.csv": "gap.csv: has gaps in the columns [2], must have",
    "predict fitted nan.csv": "nan.csv: has gaps in the columns [2]",
    "cluster empty.csv": "empty.csv: no rows",
    "cluster latin.csv": "latin.csv: cannot be read as .csv: 'utf-8' codec",
    "cluster bad.npy": "bad.npy: cannot be read as .npy: ",
    "cluster ok.csv --out no/l.csv": "no/l.csv: there is no folder",
    "cluster ok.csv --out a.csv --model a.csv": "is named twice",
    "cluster ok.npy --sep ;": "ok.npy: --sep is for .csv, .tsv,",
    "cluster ok.csv.gz": "ok.csv.gz: cannot be read as .csv.gz: Not a gzi",
    "cluster ok.npy.gz": "must end in one of .csv, .tsv, .csv.gz",
    "cluster ok.csv --columns 5": "has no columns ['5'], must have",
    "cluster ok.csv --drop 1,2,3,4": "no rows, or no columns",
    "cluster ok.csv --method rff --metric cosine": "--metric is for the methods plain, fuzzy, "
    "diffusion, not for rff",
    "cluster ok.csv --method fuzzy --noise auto": "--noise is for the methods plain, rff, "
    "diffusion, not for fuzzy",
    "cluster ok.csv --noise 2": "noise=2.0:",
    "cluster ok.npy --header": "ok.npy: --header is for .csv, .tsv,",
    "cluster two.npz --key a --no-header": "--header is for .csv, .tsv",
    "cluster ok.parquet --header": "--header is for .csv, .tsv",
    "cluster ok.csv -k 151": "n_clusters=151",
    "cluster ok.csv --out labels.txt": "must end in .csv or .npy",
    "predict model ok.csv": "model: is not a model",
    "predict other ok.csv": "other: is not a model",
    "predict seven ok.csv": "was saved by rffpk 7.0.0",
    "cluster blank.csv": "blank.csv: row 2 is blank, or has gaps alone",
    "cluster gaps.csv": "gaps.csv: row 2 is blank, or has gaps alone",
    "cluster last.csv": "last.csv: row 2 is blank, or has gaps alone",
    "cluster nul.csv": "nul.csv: line 2 has a NUL, as UTF-16",
    "cluster nul.csv.gz": "nul.csv.gz: line 2 has a NUL, as UTF-16",
    "cluster ends.csv": "ends.csv: each line ends with ','. Take",
    "cluster more.csv": "Expected 4 fields in line 3, saw 5",
    "cluster ok.csv --out ok.csv": "ok.csv: is named twice",
    "cluster ok.csv --out link.csv": "is named twice",
    "cluster ok.csv --model ok.csv": "is named twice",
    "predict ok.csv years.csv --out ok.csv": "is named twice",
}


@pytest.mark.promise(
    "Files",
    "No result of the command line replaces what it reads. Standard output holds results alone.",
)
@pytest.mark.parametrize("command", ERRORS)
def test_errors_are_one_line_and_leave_no_file(command, tmp_path, monkeypatch, capsys):
    bad_files(tmp_path)
    before = {*os.listdir(tmp_path)}
    monkeypatch.chdir(tmp_path)
    arguments = command.split()
    if arguments[0] == "cluster":
        arguments[2:2] = ["-k", "1"]
    assert ERRORS[command] in refused(capsys, *arguments)
    assert {*os.listdir(tmp_path)} == before


EMPTY = "must not be empty. Name something"  # as of a variable that a shell has not set
CLUSTER = ["cluster", "iris.csv", "-k", "3"]
VALUES = {"--sep": ["ab", "1"], "-k": ["many", "2.5"]}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["cluster", "", "-k", "3"], f"argument file: {EMPTY}"),
        (["predict", "", "iris.csv"], f"argument model: {EMPTY}"),
        *(
            ([*CLUSTER, option, ""], f"argument {option}: {EMPTY}")
            for option in ("--out", "--model", "--key", "--columns", "--drop")
        ),
        *(
            ([*CLUSTER, option, value], f"argument {option}: '{value}', must be ")
            for option, values in VALUES.items()
            for value in values
        ),
        ([*CLUSTER, "--columns", "a", "--drop", "b"], "not allowed with argument --columns"),
        (["cluster", "iris.csv"], "are required: -k"),
        (["nonsense"], "invalid choice"),
    ],
)
def test_values_of_options_that_cannot_be_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2 and message in capsys.readouterr().err


def test_results_go_to_devices_and_pipes(table, capsys):
    main(["cluster", str(table), "-k", "3", "--out", os.devnull, "--model", os.devnull])
    assert "rows" in capsys.readouterr().out
    begin, end = os.pipe()
    main(["cluster", str(table), "-k", "3", "--out", f"/dev/fd/{end}"])
    os.close(end)
    with open(begin) as pipe:
        assert len(pipe.read().split()) == len(X)


def test_rows_with_words_that_the_model_does_not_know_are_counted(tmp_path, capsys):
    path, model = tmp_path / "x.csv", tmp_path / "model"
    path.write_text("color,n,unit\nred,1,cm\nred,2,cm\nblue,8,cm\nblue,9,cm\n")
    said(capsys, "cluster", path, "-k", 2, "--model", model)
    path.write_text("color,n,unit\ngreen,1,cm\nred,2,mm\n,8,cm\nblack,9,cm\n")
    _, err = said(capsys, "predict", model, path, "--json")
    assert json.loads(err.splitlines()[-1]) == {"rows": 4, "columns": 3, "unknown": 2}


@pytest.mark.filterwarnings("always")
def test_warnings_are_one_line(tmp_path, capsys):
    np.savetxt(tmp_path / "x.csv", np.ones((9, 2)), delimiter=",")
    main(["cluster", str(tmp_path / "x.csv"), "-k", "3", "--out", str(tmp_path / "labels.csv")])
    lines = capsys.readouterr().err.splitlines()
    assert lines and all(line.startswith("rffpk: warning: ") for line in lines)


@pytest.mark.parametrize(
    "place, error, code, line",
    [
        ("rffpk.PowerKMeans.fit", KeyboardInterrupt, 130, ""),
        ("rffpk.PowerKMeans.fit", MemoryError, 2, "rffpk: MemoryError\n"),
        ("os.replace", OSError("disk full."), 2, "rffpk: disk full.\n"),
    ],
)
def test_failures_have_exit_codes_and_leave_no_file(
    place, error, code, line, table, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(place, Mock(side_effect=error))
    with pytest.raises(SystemExit) as end:
        main(["cluster", str(table), "-k", "3", "--method", "plain", "--out", f"{tmp_path}/l.csv"])
    assert end.value.code == code and capsys.readouterr().err == line
    assert [*tmp_path.iterdir()] == [table]


def test_links_and_permissions_stay(table, tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to(target)
    main(["cluster", str(table), "-k", "3", "--out", str(link)])
    assert {*target.read_text().split()} == {*"012"} and link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("standardize", [False, True])
def test_the_model_is_a_file_that_cannot_run_code(standardize, table, tmp_path, capsys):
    model, options = tmp_path / "m", ["--standardize"] * standardize
    labels, _ = said(capsys, "cluster", table, "-k", 3, "--seed", 0, "--model", model, *options)
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
    assert "m: is not a model file" in refused(capsys, "predict", tmp_path / "m", table)
    np.save(tmp_path / "t.npy", np.array([Hostile()], dtype=object))
    refused(capsys, "cluster", tmp_path / "t.npy", "-k", 2)
    assert not (tmp_path / "executed").exists()


# ---- lines of text ------------------------------------------------------------------------------

PLAIN = ["--method", "plain", "--seed", 0]  # fast
FLOATS = "0.5,1.5,2.5\n1.5,3,4\n" * 2
NAMES = ["a,b,c\n", '"a","b, in cm","c"\n', "\ufeffa,b,c\r\n", "2024_01,\uff11,c\n", ",b,\n"]
ROWS = ["2019,2020,2021\n", '"2019","2020","2021"\n', "France,2019,2020\n", "a,400.5,401\n"]


@pytest.mark.promise(
    "Files",
    "A first line of CSV without any number is taken as names, any other as a row, unless "
    "`--header` or `--no-header` says what it is. Each other line is a row; those that are blank, "
    "or have gaps alone, are refused.",
)
@pytest.mark.parametrize("line", ["", *NAMES, *ROWS])
def test_a_first_line_is_names_without_a_number_and_otherwise_a_row(line, tmp_path, capsys):
    path = tmp_path / "x.csv"
    path.write_text(line + FLOATS)
    labels, err = said(capsys, "cluster", path, "-k", 1, *PLAIN)
    assert len(labels) == 4 + (line in ROWS)
    assert ("is taken as a row. Pass --header" in err) == (line in ROWS)
    labels, err = said(capsys, "cluster", path, "-k", 1, "--header", *PLAIN)
    assert len(labels) == 3 + bool(line) and "is taken as a row" not in err


FRAME = pd.DataFrame({"a": [1.5, 2.5, 4.0], "b": [3.0, 1.0, 2.0]})
WITH_INDEX = {
    "pandas": FRAME.to_csv(),
    "pandas, labels": FRAME.set_axis(["x", "y, z", "w"]).to_csv(),
    "pandas, equal labels": FRAME.set_axis([0, 1, 0]).to_csv(),
    "pandas, several levels": FRAME.set_axis([[*"xyz"], [*"uvw"]]).to_csv(),
    "pandas, read and written": "Unnamed: 0,a,b\n0,1.5,3\n1,2.5,1\n2,4,2\n",
    "R, write.csv": '"","a","b"\n"1",1.5,3\n"2",2.5,1\n"3",4,2\n',
    "R, write.table": '"a","b"\n"1",1.5,3\n"2",2.5,1\n"3",4,2\n',
    "R, write.table, without quotes": "a,b\n1,1.5,3\n2,2.5,1\n3,4,2\n",
    "numbers from 0": "a,b\n0,1.5,3\n1,2.5,1\n2,4,2\n",
    "R on Windows": '"","a","b"\r\n"1",1.5,3\r\n"2",2.5,1\r\n"3",4,2\r\n',
}


@pytest.mark.promise(
    "Files",
    "Columns without a name, as the index that pandas and R write, are left out with a warning.",
)
@pytest.mark.parametrize("text", WITH_INDEX.values(), ids=WITH_INDEX)
def test_an_index_is_left_out_with_a_warning(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text, newline="")
    with pytest.warns(UserWarning, match="x.csv: columns without a name, .*, are left out: .1"):
        found = read_table(str(path))
    pd.testing.assert_frame_equal(found, FRAME)


@pytest.mark.parametrize("separator", [";", "tab", r"\t", " ", "|", ":"])
def test_sep_separates_fields(separator, tmp_path, capsys):
    path = tmp_path / "t.csv"
    mark = "\t" if separator in ("tab", r"\t") else separator
    pd.DataFrame(X, columns=[*"abcd"]).to_csv(path, index=False, sep=mark)
    labels, err = said(capsys, "cluster", path, "-k", 3, "--sep", separator, *PLAIN, "--json")
    assert json.loads(err)["columns"] == 4
    assert labels == PowerKMeans(3, random_state=0).fit(X).labels_.tolist()


@pytest.mark.parametrize("text", [
    "a;b\n1;2\n3;4\n", "1,5;2,5\n3,5;4,5\n", "a\tb\n1\t2\n", "1.5 2.5\n3.5 4.5\n",
    "a b\n3.5 4.5\n", "a;b\nx;2\n", "a|b|c\n1|2|3\n", "1.5|2\n3|4\n", "a;b\n0;1,5;2\n",
    ";a;b\n0;1,5;2,5\n", "a\n1,2,3\n", "a,b\n1,2,\n3,4,\n", "id,x\n0,2,\n1,4,\n",
    "a,b\n1,2,5\n3,4\n", "tsv: a,b\n1,2\n3,4\n",
])  # fmt: skip
def test_another_separator_is_refused_with_a_hint(text, tmp_path, capsys):
    path = tmp_path / ("x.tsv" if text.startswith("tsv: ") else "x.csv")
    path.write_text(text.removeprefix("tsv: "))
    line = refused(capsys, "cluster", path, "-k", 1)
    assert f"{path.name}: " in line and "--sep" in line


# ---- words, gaps and choices of columns ----------------------------------------------------------

WORDS = pd.DataFrame(
    {
        "size": [1.0, 1.5, None, 8.0, 9.0, 8.5],
        "color": ["red", "red", "red", "deep, blue", None, "deep, blue"],
        "n": [1, 2, 1, 7, 8, 7],
    }
)


@pytest.mark.promise(
    "Files",
    "The command line clusters words and gaps by a `TablePreprocessor`, says so, "
    "and keeps it in the model.",
)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz", "t.parquet"])
def test_words_and_gaps_are_clustered_as_by_the_preprocessor(name, tmp_path, capsys):
    path, model = written(WORDS, tmp_path / name), tmp_path / "m"
    labels, err = said(
        capsys, "cluster", path, "-k", 2, "--seed", 0, "--model", model, "--standardize"
    )
    both = "has gaps in the columns ['size', 'color'] and words in the columns ['color']: "
    assert f"rffpk: warning: {path}: {both}" in err
    expected = make_pipeline(TablePreprocessor(), PowerKMeans(2, random_state=0)).fit(WORDS)
    assert labels == expected[-1].labels_.tolist()
    assert said(capsys, "predict", model, path)[0] == labels
    assert_array_equal(rffpk.load(model).predict(WORDS), labels)
    written(WORDS.fillna({"size": 1, "color": "red"}), tmp_path / name)
    assert len(said(capsys, "predict", model, path)[0]) == 6


@pytest.mark.promise(like="test_words_and_gaps_are_clustered_as_by_the_preprocessor")
def test_words_and_gaps_without_names(tmp_path, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "m"
    path.write_text("1.5,a\n1.25,a\n,a\n7.5,b\n8.5,?\n")
    labels, err = said(capsys, "cluster", path, "-k", 2, "--seed", 0, "--model", model)
    assert "gaps in the columns [1] and words in the columns [2]" in err
    assert said(capsys, "predict", model, path, "--no-header")[0] == labels
    path.write_text("1.5,a,1\n")
    assert "t.csv: has the columns ['0', '1', '2'], must" in refused(capsys, "predict", model, path)


def test_numbers_are_the_same_words_among_words_and_alone(tmp_path, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "m"
    path.write_text("code,n\n01,1\n2.50,9\nx,5\n01,1\n2.50,9\n")
    labels, _ = said(capsys, "cluster", path, "-k", 3, "--model", model, *PLAIN)
    path.write_text("code,n\n01,1\n2.50,9\n")
    assert said(capsys, "predict", model, path)[0] == labels[:2]


@pytest.mark.promise(
    "Files",
    "The command line refuses columns of dates, times or durations in text and Parquet alike, and "
    "says that `--drop` leaves them out.",
)
@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("days", [
    pd.date_range("2020", "2021", 150), pd.date_range("2020", "2021", 150, tz="CET"),
    pd.date_range("2020", periods=150).date, pd.date_range("2020", "2021", 150).time,
    pd.to_timedelta(np.arange(150), unit="D"), pd.to_timedelta(np.arange(150), unit="min"),
    *(pd.date_range("2020", periods=150).strftime(form) for form in (
        "%d.%m.%Y", "%Y.%m.%d", "%d %b %Y", "%d-%B-%Y", "%B %d, %Y"
    )),
])  # fmt: skip
def test_dates_are_refused_by_name(days, suffix, tmp_path, capsys):
    frame = pd.DataFrame({"x": X[:, 0], "day": days})
    frame.loc[3, "day"] = None
    path, model = written(frame, tmp_path / f"t{suffix}"), tmp_path / "m"
    said(capsys, "cluster", path, "-k", 2, "--drop", "day", "--model", model, *PLAIN)
    for command in (["cluster", path, "-k", 2], ["predict", model, path]):
        err = refused(capsys, *command)
        assert f"{path}: has dates or durations in the columns ['day']. " in err and "--drop" in err
    assert len(said(capsys, "predict", model, path, "--drop", "day")[0]) == 150


WORDS_BUT_NO_DATES = [
    ["7732-18-5", "7000-10-0"], ["0301-12-355", "0301-12-356"], ["12-34-1000", "12-35-1000"],
    ["01:23:45:67", "01:23:45:68"], ["2024-01-31", "unknown"],
    ["2024.13.01", "2024.13.02"], ["2024.1.10.3", "2024.1.11.0"], ["mark 5 2024", "mark 6 2024"],
    ["may 5", "may 6"],
]  # fmt: skip


@pytest.mark.parametrize(
    "text, kind",
    [
        ('word,n\n"a, ""b""",1\n"two\nlines",2\nc,"3"\n', "words in the columns ['word']"),
        ("1.5,2,\n3,4,1\n5,6,2\n", "gaps in the columns [3]"),
        ("1.5,2,NA\n3,4,NA\n5,6,NA\n", "gaps in the columns [3]"),
        *(("word\n" + "\n".join(2 * words), "words in the columns ['word']")
          for words in WORDS_BUT_NO_DATES),
    ],
)  # fmt: skip
def test_columns_of_words_or_gaps_are_named(text, kind, tmp_path, capsys):
    """Words that only begin like dates are words, and a field in quotes may have any text."""
    (tmp_path / "t.csv").write_text(text)
    labels, err = said(capsys, "cluster", tmp_path / "t.csv", "-k", 2, *PLAIN)
    assert len(labels) in (3, 4) and f"t.csv: has {kind}:" in err


@pytest.mark.parametrize("gap", ["", "NA", "nan", "null", " ", "N/A"])
def test_gaps_of_text_and_of_parquet_are_the_same(gap, tmp_path, capsys):
    frame = pd.DataFrame({"a": [1.0, 3.0, 5.0], "b": [2.0, None, 6.0]})
    (tmp_path / "t.csv").write_text(f"a,b\n1,2\n3,{gap}\n5,6\n")
    for path in (tmp_path / "t.csv", written(frame, tmp_path / "t.parquet")):
        assert_array_equal(read_table(str(path)), frame)
        assert "has gaps in the columns ['b']:" in said(capsys, "cluster", path, "-k", 2)[1]


@pytest.mark.parametrize(
    "option, named, numbered, names",
    [
        ("--columns", "c,a", "3,1", "ca"),
        ("--columns", "b,4", "2,4", "bd"),
        ("--drop", "b,4", "4,2", "ac"),
        ("--drop", "d", "4", "abc"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npy", "positions.csv"])
def test_columns_are_chosen_by_names_or_numbers(
    name, option, named, numbered, names, tmp_path, capsys
):
    frame, model = pd.DataFrame(X, columns=[*"abcd"]), tmp_path / "m"
    given = numbered if name in ("t.npy", "positions.csv") else named
    header = ["--header"] if name == "positions.csv" else []
    path = written(frame.set_axis([*"0123"], axis=1) if header else frame, tmp_path / name)
    options = [option, given, *header]
    labels, _ = said(capsys, "cluster", path, "-k", 3, "--model", model, *PLAIN, *options)
    expected = PowerKMeans(3, random_state=0).fit(frame[[*names]].to_numpy()).labels_
    assert labels == expected.tolist()
    assert said(capsys, "predict", model, path, *options)[0] == labels


# ---- options of the model ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, model",
    [
        ("", DiffusionPowerKMeans(3)),
        ("--metric euclidean", DiffusionPowerKMeans(3)),
        ("--metric cosine", PowerKMeans(3, metric="cosine")),
        ("--metric cosine --method diffusion", DiffusionPowerKMeans(3, metric="cosine")),
        ("--noise 0.1", DiffusionPowerKMeans(3, noise=0.1)),
        ("--noise auto --method plain", PowerKMeans(3, noise="auto")),
        ("--method rff", rffpk.RFFKernelPowerKMeans(3)),
        ("-k auto", DiffusionPowerKMeans("auto")),
        ("-k coarse --method plain", PowerKMeans("coarse")),
        ("-k fine --method rff", rffpk.RFFKernelPowerKMeans("fine")),
        ("-k auto --method fuzzy", FuzzyCMeans("auto")),
    ],
)
def test_options_are_parameters_of_the_estimator(options, model, table, capsys):
    arguments = ["cluster", table, "-k", 3, "--seed", 0, "--json", *options.split()]
    found, err = said(capsys, *arguments)
    summary = json.loads(err.splitlines()[-1])
    labels = model.set_params(random_state=0).fit(X).labels_
    assert_array_equal(found, labels)
    assert summary["clusters"] == len(summary["sizes"]) == model.n_clusters_
    assert summary["sizes"] == np.bincount(labels[labels >= 0]).tolist()
    noise = int((labels < 0).sum()) if getattr(model, "noise", None) else None
    assert summary.get("noise") == noise


def test_verbose_prints_a_line_at_the_end_and_given_twice_each_pass(table, capsys):
    model = PowerKMeans(3, random_state=0).fit(X)
    passes = len([r for r in model.history_ if "kept" in r])
    for options, expected in [
        ([], 0), (["-v"], 1), (["--verbose"], 1), (["-vv"], passes), (["--verbose"] * 2, passes)
    ]:  # fmt: skip
        labels, err = said(capsys, "cluster", *options, table, "-k", 3, *PLAIN)
        assert sum("PowerKMeans: " in line for line in err.splitlines()) == expected
        assert_array_equal(labels, model.labels_)


@pytest.mark.promise(
    "Files",
    "The command line labels no table whose columns have other names than those of the fit, or "
    "another order.",
)
@pytest.mark.parametrize("word", [False, True], ids=["numbers", "words"])
@pytest.mark.parametrize("arguments", [[], ["--standardize"]])
def test_columns_of_other_names_or_another_order_are_refused(arguments, word, tmp_path, capsys):
    frame, model = pd.DataFrame(X, columns=[*"abcd"]), tmp_path / "m"
    frame = frame.assign(d=np.where(Y, "x", "y")) if word else frame
    path, other = written(frame, tmp_path / "t.csv"), tmp_path / "other.csv"
    labels, _ = said(capsys, "cluster", path, "-k", 3, *PLAIN, "--model", model, *arguments)
    for changed, shown in [
        (frame[[*"badc"]], "order"),
        (frame[[*"abc"]], "- d"),
        (frame.assign(e=1), "- e"),
        (frame.rename(columns={"d": "e"}), "unseen at fit time: - e"),
    ]:
        line = refused(capsys, "predict", model, written(changed, other))
        assert (f"the columns {[*changed]}, must have " if word else shown) in line
    frame.to_csv(other)
    assert said(capsys, "predict", model, other)[0] == labels


def test_names_that_only_one_of_model_and_table_has_are_named(table, tmp_path, capsys):
    path, model = written(pd.DataFrame(X), tmp_path / "x.npy"), tmp_path / "m"
    options = ["-k", 3, "--seed", 0, "--model", model]
    labels, _ = said(capsys, "cluster", table, *options)
    again, line = said(capsys, "predict", model, path)
    assert "X does not have valid feature names" in line and again == labels
    said(capsys, "cluster", path, *options)
    again, line = said(capsys, "predict", model, table)
    assert "X has feature names, but" in line and again == labels


# ---- streams that are closed --------------------------------------------------------------------


@pytest.mark.promise(like="test_errors_are_one_line_and_leave_no_file")
@pytest.mark.exhaustive
def test_streams_that_are_closed_are_named_where_they_are_needed(table, tmp_path):
    code, labels, _ = in_a_shell(f"cluster {table} -k 3 --verbose 2>&-")
    assert code == 0 and len([int(line) for line in labels.splitlines()]) == 150
    assert in_a_shell(f"cluster {table} -k 151 2>&-")[:2] == (2, "")
    out = tmp_path / "l.csv"
    assert in_a_shell(f"cluster {table} -k 3 --verbose --out {out} >&-")[0] == 0
    assert len(out.read_text().splitlines()) == 150
    assert in_a_shell("info >&-")[2] == ""
    for stream, command, what in [
        ("output", f"cluster {table} -k 3 >&-", "file by --out"),
        ("input", "cluster - -k 3 <&-", "file"),
    ]:
        code, _, err = in_a_shell(command)
        assert (code, err) == (2, f"rffpk: standard {stream} is closed: name a {what}.\n")
