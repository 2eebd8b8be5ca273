"""Files of a fit: which two may not be one, what is no path, and errors that name the file."""

import os
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rffpk
from rffpk import PowerKMeans
from rffpk.sources import from_array, from_npy, spill

X = np.random.default_rng(0).standard_normal((300, 2))


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", X)
    os.symlink("rows.npy", "link.npy")
    os.link("rows.npy", "hard.npy")
    return tmp_path / "rows.npy"


def memory_map(path):
    return np.load(path, mmap_mode="r")[10:]


SOURCES = {
    "npy": from_npy,
    "map": memory_map,
    "map as source": lambda path: from_array(memory_map(path)),
    "list": lambda path: [from_npy(path)],
}


@pytest.mark.promise("Files", "A fit refuses outputs that are one file, or a file that it reads.")
@pytest.mark.parametrize("name", ["rows.npy", "./rows.npy", "link.npy", "hard.npy"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("output", ["labels_to", "checkpoint"])
def test_a_file_that_is_read_is_no_output(rows, output, source, name):
    model = PowerKMeans(2, random_state=0)
    if source == "list":
        model = rffpk.RFFMultiKernelPowerKMeans(2, random_state=0)
    with pytest.raises(ValueError, match=f"{output}=.*npy': the fit reads this file"):
        model.fit(SOURCES[source](rows), **{output: name})
    assert_array_equal(np.load(rows), X)
    assert sorted(os.listdir()) == ["hard.npy", "link.npy", "rows.npy"]


@pytest.mark.promise(like="test_a_file_that_is_read_is_no_output")
def test_a_file_of_parquet_is_no_output(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x"
    pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"]).to_parquet(path)
    with pytest.raises(ValueError, match="checkpoint=.*the fit reads this file"):
        PowerKMeans(2, random_state=0).fit(rffpk.sources.from_parquet(path), checkpoint=path)


def test_weights_and_initial_centers_in_files_are_no_outputs(tmp_path):
    paths = [tmp_path / "weights.npy", tmp_path / "centers.npy"]
    np.save(paths[0], np.ones(300))
    np.save(paths[1], X[:2])
    weights, centers = (np.load(path, "r") for path in paths)
    for path in paths:
        with pytest.raises(ValueError, match=f"labels_to=.*{path.name}': the fit reads"):
            PowerKMeans(2, init=centers).fit(X, None, weights, labels_to=path)


@pytest.mark.promise(like="test_a_file_that_is_read_is_no_output")
def test_labels_and_checkpoint_are_two_files(tmp_path):
    path, model = tmp_path / "labels.npy", PowerKMeans(2, random_state=0)
    os.symlink(path, tmp_path / "link.npy")
    for same in (str(path), tmp_path / "link.npy"):
        with pytest.raises(ValueError, match="labels_to=.*checkpoint names this file, too. Name"):
            model.fit(X, labels_to=same, checkpoint=path)
    model.fit(X, labels_to=path, checkpoint=tmp_path / "checkpoint")
    assert_array_equal(np.load(path), model.labels_)


@pytest.mark.promise("Files", "A checkpoint never replaces or deletes a file that is none.")
@pytest.mark.parametrize("content", [b"", b"labels", None])
@pytest.mark.parametrize("resume", [True, False])
def test_a_file_that_is_no_checkpoint_stays(tmp_path, content, resume):
    path, model = tmp_path / "notes", PowerKMeans(2, random_state=0)
    if content is None:
        model.fit(X).save(path)
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint=.*notes': is no checkpoint. Name another"):
        model.fit(X, checkpoint=path, resume=resume)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="checkpoint='/dev/null': is no checkpoint"):
        model.fit(X, checkpoint="/dev/null", resume=resume)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda path: PowerKMeans(2, random_state=0).fit(X, checkpoint=path), "checkpoint"),
        (lambda path: PowerKMeans(2, random_state=0).fit(X, labels_to=path), "labels_to"),
        (lambda path: PowerKMeans(2, random_state=0).fit(X).save(path), "path"),
        (rffpk.load, "path"),
        (from_npy, "paths"),
        (lambda path: from_npy([__file__, path]), "paths[1]"),
        (lambda path: spill(from_array(X), path), "path"),
    ],
)
def test_what_is_no_path_is_refused_by_name(call, name):
    name = re.escape(name)
    for path in ("", "a\0b"):
        with pytest.raises(ValueError, match=f"^{name}='.*': cannot be the name of a file. Pass"):
            call(path)
    with pytest.raises(TypeError, match=rf"^{name}=b'x.npy': .*\. Pass os\.fsdecode\({name}\)\."):
        call(b"x.npy")
    with pytest.raises(TypeError, match=f"{name} is of type int, must be a path"):
        call(3)


def test_an_error_names_the_given_file_and_no_temporary_one(tmp_path):
    model, path = PowerKMeans(2, random_state=0).fit(X), str(tmp_path / "no" / "folder")
    with pytest.raises(FileNotFoundError) as caught:
        model.save(path)
    assert caught.value.filename == path and "rffpk-" not in str(caught.value)
