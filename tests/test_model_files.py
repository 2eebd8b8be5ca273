"""Model files: the same model after a round trip, a named error for anything else.

With `-m ""`, RFFPK_FUZZ=100000 sets the number of damaged files, of which 2000 are the default.
"""

import copy
import hashlib
import inspect
import json
import os
import pickle
import random
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conventions import ip_rff_mkpkm, peak_of
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from test_docs import CLASSES, FITS
from test_files import damaged

import rffpk
from rffpk.model_files import ESTIMATORS, RECORDS, ModelFileError, VersionError, save
from rffpk.tables import TablePreprocessor

GOLDEN = Path(__file__).parent / "golden"
DAMAGED = int(os.environ.get("RFFPK_FUZZ", "2000"))
METHODS = ("predict", "transform", "predict_proba", "predict_typicality", "score")
NEW = np.random.RandomState(1).randn(20, 4)
BEGIN = len(b'01234567{"__metadata__":{"checksum":"')

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fitted(cls, parameters, X):
    if "n_clusters" in inspect.signature(cls).parameters:
        parameters = {"n_clusters": 3, **parameters}
    return cls(**parameters, random_state=0).fit(X)


def like(X):
    """Return new rows of the kind that a model was fitted to."""
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(NEW, columns=X.columns)
    if isinstance(X, list):
        return [like(x) for x in X]
    return np.cos(NEW @ np.ones((4, X.shape[1])) + np.arange(X.shape[1])).astype(X.dtype)


def assert_same(one, other):
    """Check that values, types, bits and orders of arrays are equal, all the way down.

    `one` was read from a file. There, a part of another array is an array in the order of rows.
    """
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.flags.c_contiguous != (other.flags.f_contiguous > other.flags.c_contiguous)
        if one.dtype == object:
            assert one.tolist() == other.tolist()
        else:
            assert one.tobytes() == other.tobytes()
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for pair in zip(one, other):
            assert_same(*pair)
    elif hasattr(one, "__dict__") and not isinstance(one, type):
        assert_same(vars(one), vars(other))
    else:
        assert one == other or (one != one and other != other)


def saved(model, path):
    save(model, path)
    return rffpk.load(path)


@pytest.mark.promise("Files", "A model that was saved and loaded gives the same bits.")
@pytest.mark.parametrize(
    "name, number",
    [
        pytest.param(name, i, marks=[pytest.mark.exhaustive] if i else [])
        for name, fits in FITS.items()
        for i in range(len(fits))
    ],
)
def test_a_model_is_the_same_after_a_round_trip(name, number, tmp_path):
    parameters, X = FITS[name][number]
    model = fitted(getattr(rffpk, name), parameters, X)
    again = saved(model, tmp_path / "model")
    assert_same(vars(again), vars(model))
    assert_same(again.get_params(), model.get_params())
    used = 0
    for method in METHODS:
        with suppress(AttributeError, ValueError):  # that the class or precomputed kernels lack
            expected = getattr(model, method)(like(X))
            assert_same(getattr(again, method)(like(X)), expected)
            used += 1
    assert used
    assert_same(again.get_feature_names_out(), model.get_feature_names_out())
    assert_same(pickle.loads(pickle.dumps(again)), model)


@pytest.mark.exhaustive
def test_all_public_classes_can_be_saved_and_all_records_are_used(tmp_path):
    assert {*ESTIMATORS.values()} == {*CLASSES, TablePreprocessor}
    assert all(map(inspect.isclass, CLASSES))
    many = np.random.default_rng(0).standard_normal((20_100, 5))  # more than a sample, in cells
    linear = rffpk.RFFMultiKernelPowerKMeans(2, kernels="linear")
    affinities = rffpk.DiffusionPowerKMeans(2, metric="precomputed")
    models = [
        *(fitted(getattr(rffpk, name), *fit) for name, fits in FITS.items() for fit in fits),
        rffpk.PowerKMeans(2).fit(NEW).partial_fit(NEW),
        rffpk.PowerKMeans("auto").fit(NEW),
        rffpk.KernelKMeans(2).fit(csr_array(NEW)),
        rffpk.PowerKMeans(2, metric="cosine").fit(NEW),
        affinities.fit(np.exp(NEW @ NEW.T)),
        linear.fit([NEW[:, :1], NEW[:, 1:]]),
        rffpk.PowerKMeans(2, noise=0.1).fit(many[:, :1]),
        rffpk.DiffusionMap(whitening=None, random_state=0).fit(many),
    ]
    kinds = set()
    for model in models:
        content = bytes_of(model, tmp_path).decode("latin-1")
        kinds |= {kind for kind in RECORDS if f'{{\\"{kind}\\":' in content}
    assert kinds == {*RECORDS}


MORE = {
    "float32": (rffpk.RFFKernelPowerKMeans(3, random_state=0), NEW.astype(np.float32)),
    "an estimator as a kernel": (
        ip_rff_mkpkm(
            3, kernels=[rffpk.DiffusionMap(n_neighbors=3), ("rbf", np.float32(0.25))],
            random_state=0,
        ), [NEW, NEW],
    ),
    "columns of views": (
        rffpk.MultiKernelPowerKMeans(
            2, views=[slice(0, None, 2), [1], np.array([True, False, True, False])], random_state=0
        ), NEW,
    ),
    "names of columns": (
        rffpk.SMKC(2, views=[np.array(["a", "b"]), ("c", "d")], anchors=5, random_state=0),
        pd.DataFrame(NEW, columns=[*"abcd"]),
    ),
    "an array as init": (rffpk.PowerKMeans(3, init=np.asfortranarray(NEW[:3])), NEW),
    "a dict": (
        rffpk.KernelKMeans(3, kernel="polynomial", kernel_params={"degree": 2.0}, random_state=0),
        NEW,
    ),
    "a bank of kernels": (rffpk.MKKM(3, kernels="du2015", random_state=0), NEW),
    "sparse rows": (rffpk.KernelKMeans(2, random_state=0), csr_array(NEW)),
    "sparse landmarks": (rffpk.DiffusionPowerKMeans(2, random_state=0), csr_array(NEW)),
    "rows beyond float32": (rffpk.PowerKMeans(3, random_state=0), (1e20 * NEW).astype(np.float32)),
}  # fmt: skip


@pytest.mark.parametrize("model, X", MORE.values(), ids=MORE)
def test_parameters_of_all_kinds_are_kept(model, X, tmp_path):
    again = saved(model.fit(X), tmp_path / "model")
    assert_same(vars(again), vars(model))
    assert_same(again.transform(X), model.transform(X))
    assert_same(vars(again.fit(X))["labels_"], model.labels_)


def test_a_model_without_a_fit_and_what_set_output_sets_are_kept(tmp_path):
    model = rffpk.RandomFourierFeatures(4, random_state=0).set_output(transform="pandas")
    again = saved(model, tmp_path / "model")
    pd.testing.assert_frame_equal(again.fit_transform(NEW), model.fit_transform(NEW))


def test_what_occurs_twice_is_stored_once(tmp_path):
    model = rffpk.RFFKernelPowerKMeans(2, random_state=0).fit(NEW)
    again = saved(model, tmp_path / "model")
    assert again.feature_map_._space is again._centroids.maps[0]
    again.feature_map_.gamma_ = 2.0
    again.labels_[:] = 0  # arrays can be written to


def test_the_file_is_one_of_safetensors(tmp_path):
    library = pytest.importorskip("safetensors")
    model = fitted(rffpk.SMKC, {"anchors": 10}, NEW)
    model.save(tmp_path / "model")
    with library.safe_open(tmp_path / "model", "numpy") as file:
        found = file.metadata()
        assert found["class"] == "SMKC" and json.loads(found["parameters"])["anchors"] == 10
        assert_array_equal(file.get_tensor("labels_"), model.labels_)
        assert_array_equal(file.get_tensor("anchors_"), model.anchors_)


# ---- what is refused -----------------------------------------------------------------------------


class Own(rffpk.PowerKMeans):
    """A class of another package."""


def not_scaling(switch):
    return make_pipeline(StandardScaler(**{switch: False}), rffpk.PowerKMeans(2)).fit(NEW)


NOT_STORED = {
    r"\bkernel is a function": rffpk.KernelKMeans(2, kernel=lambda x, y: x @ y),
    r"\binit is a function": rffpk.PowerKMeans(2, init=lambda X, k, random_state: X[:k]),
    r"\brandom_state is a RandomState": rffpk.PowerKMeans(2, random_state=np.random.RandomState(0)),
    r"\binit is a ndarray of complex": rffpk.PowerKMeans(2, init=np.ones((2, 4), complex)),
    r"\binit is a ndarray of object": rffpk.PowerKMeans(2, init=np.array([{}, {}])),
    r"\bkernels\[1\] is a KMeans": rffpk.MKKM(2, kernels=["rbf", KMeans()]),
    r"\binit\[1\]\['a'\] is a set": rffpk.PowerKMeans(2, init=(1, {"a": set()})),
    r"\bkernel_params is a dict": rffpk.KernelKMeans(2, kernel_params={1: 2}),
    "Own is not a class of rffpk": Own(2),
    "must have a StandardScaler that centers and scales": not_scaling("with_std"),
    "a StandardScaler that centers": not_scaling("with_mean"),
}


@pytest.mark.parametrize("message", NOT_STORED)
def test_what_cannot_be_stored_is_named_before_anything_is_written(message, tmp_path):
    with pytest.raises(TypeError, match=message):
        save(NOT_STORED[message], tmp_path / "model")
    assert not [*tmp_path.iterdir()]


@pytest.mark.promise("Files", "A save that fails leaves the file that was there.")
def test_a_save_that_fails_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_text("before")

    def full(*places):
        raise OSError("no space.")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="no space."):
            rffpk.PowerKMeans(2).save(path)
    assert path.read_text() == "before" and [*tmp_path.iterdir()] == [path]
    monkeypatch.setattr("rffpk.system.tensor_files.MAX_HEADER", 100)
    with pytest.raises(ValueError, match="must have at most 100: delete history_"):
        rffpk.PowerKMeans(2).save(path)
    assert path.read_text() == "before"


@pytest.mark.promise(like="test_pickles_of_other_versions_are_refused")
def test_files_of_other_versions_and_other_classes_are_refused(tmp_path):
    model, major_minor = rffpk.PowerKMeans(2), rffpk.__version__.rpartition(".")[0]
    content = bytes_of(model, tmp_path)
    for values, message in [
        ({"version": "7.3.1"}, "model: .* saved by rffpk 7.3.1, .* fit it"),
        ({"version": "0.999.0"}, "model: .* saved by rffpk 0.999.0, .* fit it"),
        ({"format": "rffpk 2"}, "layout 'rffpk 2'"),
    ]:
        with pytest.raises(VersionError, match=message):
            loaded(edited(content, **values), tmp_path)
    assert_same(loaded(edited(content, version=f"{major_minor}.99"), tmp_path), model)
    assert_same(rffpk.load(tmp_path / "model", rffpk.PowerKMeans), model)
    message = "kind=FuzzyCMeans: .*model holds a PowerKMeans. Pass kind=PowerKMeans."
    with pytest.raises(TypeError, match=message):
        rffpk.load(tmp_path / "model", rffpk.FuzzyCMeans)


def test_what_is_no_model_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        rffpk.load(tmp_path / "absent")
    model = rffpk.PowerKMeans(2)
    other = edited(bytes_of(model, tmp_path), format="other 1")
    for content in (b"", b"abc", pickle.dumps(model), b"\xff" * 200, bytes(200), other):
        with pytest.raises(ModelFileError, match="model: is not a model file"):
            loaded(content, tmp_path)
    if os.path.exists("/dev/zero"):
        with pytest.raises(ModelFileError, match="not a model file"):
            rffpk.load("/dev/zero")


# ---- pipelines that the command line writes ------------------------------------------------------


SMALL = rffpk.PowerKMeans(2, n_init=1, random_state=0)


def standardized(folder):
    """Return the bytes of the file of a pipeline."""
    return bytes_of(make_pipeline(StandardScaler(), SMALL).fit(NEW), folder)


FRAME = pd.DataFrame(NEW).add_prefix("column ")


@pytest.mark.parametrize(
    "rows", [NEW, np.hstack([NEW, np.ones((20, 1))]).astype(np.float32), FRAME]
)
def test_a_pipeline_is_the_same_after_a_round_trip(rows, tmp_path):
    pipeline = make_pipeline(StandardScaler(), SMALL).fit(rows)
    again = saved(pipeline, tmp_path / "model")
    assert_same(again.transform(rows), pipeline.transform(rows))
    assert_same(vars(again[-1]), vars(pipeline[-1]))
    if rows is FRAME:
        assert_same(again.feature_names_in_, pipeline.feature_names_in_)
        with pytest.raises(ValueError, match="feature names should match"):
            again.predict(FRAME[FRAME.columns[::-1]])


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.clear(),
        lambda content: content.pop("var_"),
        lambda content: content.update(more=1),
        lambda content: content.update(mean_=0),
        lambda content: content.update(feature_names_in_=0),
        lambda content: content.update(feature_names_in_={"strings": ["O", "a"]}),
        lambda content: content.update(scale_={"same": "cluster_centers_"}),
    ],
)
def test_a_scaler_that_is_none_of_the_model_is_refused(change, tmp_path):
    header, data = taken_apart(standardized(tmp_path))
    content = json.loads(header["__metadata__"]["scaler"])
    change(content)
    header["__metadata__"]["scaler"] = json.dumps(content)
    with pytest.raises(ModelFileError, match="holds a scaler of other columns"):
        loaded(put_together(header, data), tmp_path)


# ---- damaged and hostile files -------------------------------------------------------------------


def bytes_of(model, folder):
    save(model, folder / "source")
    return (folder / "source").read_bytes()


def loaded(content, folder):
    (folder / "model").write_bytes(content)
    return rffpk.load(folder / "model")


def sealed(content):
    """Return the bytes with their checksum."""
    empty = content[:BEGIN] + b"0" * 32 + content[BEGIN + 32 :]
    digest = hashlib.blake2b(empty, digest_size=16).hexdigest().encode()
    return content[:BEGIN] + digest + content[BEGIN + 32 :]


def taken_apart(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def put_together(header, data, more=0):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8 + more)
    return sealed(len(text).to_bytes(8, "little") + text + data)


def array(name, **changes):
    return lambda header: header[name].update(changes)


def metadata(**values):
    return lambda header: header["__metadata__"].update(values)


def edited(content, **values):
    header, data = taken_apart(content)
    metadata(**values)(header)
    return put_together(header, data)


def attribute(name, value):
    """Return a change of an attribute of the model, which is removed where the value is None."""

    def edit(header):
        content = json.loads(header["__metadata__"]["attributes"])
        content.pop(name, None)
        content |= {} if value is None else {name: value}
        header["__metadata__"]["attributes"] = json.dumps(content)

    return edit


DEEP = []
for _ in range(500):  # as deep as JSON is read
    DEEP = [DEEP]
VIEWS = {"weight_entropy": 1, "eta": None, "m": "2", "coverage": None}
HOSTILE = {
    "gaps between": lambda header: header.pop("labels_"),
    "bytes in common": lambda header: header.update(other=header["labels_"]),
    "'labels_' of 80 bytes of shape": array("labels_", shape=[21]),
    r"of shape \[-20\]": array("labels_", shape=[-20]),
    r"of shape \[20.0\]": array("labels_", shape=[20.0]),
    r"of shape \[1, 1, ": array("labels_", shape=[1] * 8 + [20]),
    r"'empty_' of 0 bytes of shape \[0, ": array("empty_", shape=[0, 2**40, 2**40]),
    "of the type 'F8'": array("labels_", dtype="F8"),
    "whose keys are not dtype": array("labels_", data_offsets=[80, 0]),
    "keys are not dtype, shape and": array("labels_", more=1),
    "with bytes above 1": array("cluster_centers_", dtype="BOOL", shape=[64]),
    "metadata that are not strings": metadata(a=1),
    "holds arrays that nothing refers to": attribute("labels_", None),
    "an estimator 'str'": metadata(**{"class": "str"}),
    "has a parameters that is not an object": metadata(parameters="[]"),
    "other FuzzyCMeans": metadata(parameters="{}"),
    "not JSON: NaN": metadata(parameters='{"m":NaN}'),
    "a name is repeated": metadata(parameters='{"m":1,"m":2}'),
    "maximum recursion": metadata(parameters='{"m":' + "[" * 10**5),
    "nested too deeply": attribute("s_", DEEP),
    "holds FuzzyCMeans.predict": attribute("predict", 1),
    "holds FuzzyCMeans.m,": attribute("m", 1),
    "holds FuzzyCMeans.a b": attribute("a b", 1),
    "holds s_, a 'builtins.eval'": attribute("s_", {"builtins.eval": "1"}),
    "holds s_ of 2 kinds": attribute("s_", {"float": "inf", "tuple": []}),
    "holds s_,": attribute("s_", {"float": "1"}),
    "holds cluster_centers_,": attribute("cluster_centers_", {"same": "later"}),
    "holds _objective, another PowerMean": attribute("_objective", {"PowerMean": {"a": 1}}),
    "holds _objective.m,": attribute("_objective", {"WeightedViews": VIEWS}),
    "holds _objective, another WeightedViews": attribute("_objective", {"WeightedViews": {}}),
}


@pytest.mark.parametrize("message", HOSTILE)
def test_a_file_that_save_does_not_write_is_refused_by_name(message, parts, tmp_path):
    header, data = parts
    assert loaded(put_together(header, data), tmp_path).m == 2.0
    HOSTILE[message](header)
    with pytest.raises(ModelFileError, match=message):
        loaded(put_together(header, data), tmp_path)


def test_a_header_of_another_length_is_refused(parts, tmp_path):
    with pytest.raises(ModelFileError, match="begins inside a number"):
        loaded(put_together(*parts, more=4), tmp_path)
    content = put_together(*parts)
    for length in (len(content) - 7, 2**31, 2**64 - 1):
        with pytest.raises(ModelFileError, match=f"has a header of {length} bytes"):
            loaded(length.to_bytes(8, "little") + content[8:], tmp_path)


@pytest.fixture
def parts(tmp_path):
    model = rffpk.FuzzyCMeans(2, init=np.zeros((2, 4)), random_state=0).fit(NEW)
    model.empty_ = np.zeros((0, 3))
    return taken_apart(bytes_of(model, tmp_path))


VALUES = (
    None, True, 0, -1, 7, 2**31, 2**70, 0.5, -1e300, "", "labels_", "F64", "inf", [], [3], {}, [{}],
    {"array": "F"}, {"array": "C"}, {"float": "-inf"}, {"tuple": [1]}, {"same": "labels_"},
    {"dtype": "float32"}, {"scalar": ""}, {"strings": ["U", "a"]}, {"dict": {"a": 1}},
    {"PowerMean": {}}, {"PowerKMeans": {"parameters": {}, "attributes": {}}}, [[[[0]]]],
)  # fmt: skip


def changed_within(tree, source):
    """Replace, remove or move a value somewhere inside of the tree."""
    places = []

    def collect(node):
        children = node.items() if isinstance(node, dict) else enumerate(node)
        for key, child in [*children]:
            places.append((node, key))
            if isinstance(child, (dict, list)):
                collect(child)

    collect(tree)
    node, key = source.choice(places)
    kind = source.choice(("replace", "replace", "swap", "drop", "rename"))
    if kind == "replace":
        node[key] = copy.deepcopy(source.choice(VALUES))
    elif kind == "swap":
        other, name = source.choice(places)
        node[key] = copy.deepcopy(other[name])
    elif kind == "drop":
        del node[key]
    elif isinstance(node, dict):
        node[source.choice(("labels_", "_k", "Fourier", "array", "eta"))] = node.pop(key)


def hostile(content, source):
    """Replace parts of the header or the JSON within it."""
    header, data = taken_apart(content)
    part = source.choice(("header", "parameters", "attributes", "attributes"))
    for _ in range(source.choice((1, 1, 2))):
        if part == "header":
            changed_within(header, source)
        else:
            found = json.loads(header["__metadata__"][part])
            changed_within(found, source)
            header["__metadata__"][part] = json.dumps(found)
    if isinstance(found := header.get("__metadata__"), dict) and "checksum" in found:
        return put_together(header, data)
    return content[:1]


@pytest.mark.promise(
    "Files",
    "Loading a model file runs no code. A damaged or hostile file is a named error or a model "
    "of this package; loading takes at most 1 MB more than its length, or 70 times its "
    "header.",
)
@pytest.mark.exhaustive
def test_a_damaged_file_gives_a_named_error_or_a_model(tmp_path):
    models = [
        fitted(rffpk.FuzzyCMeans, {"max_iter": 3}, NEW),
        fitted(rffpk.KernelKMeans, {"max_iter": 3, "n_init": 1}, NEW),
        fitted(rffpk.RFFKernelPowerKMeans, {"n_frequencies": 4, "max_iter": 3, "n_init": 1}, NEW),
        fitted(rffpk.DiffusionMap, {}, pd.DataFrame(NEW, columns=[*"abcd"])),
    ]
    contents = [bytes_of(model, tmp_path) for model in models]
    contents.append(standardized(tmp_path))
    counts = {"refused": 0, "read": 0}
    for seed in range(DAMAGED):
        source = random.Random(seed)
        content = source.choice(contents)
        kind = source.choice(("damaged", "sealed", "hostile"))
        changed = hostile(content, source) if kind == "hostile" else b""
        while not changed:
            changed = damaged(content, contents, source)
        if kind == "sealed":
            changed = sealed(changed)
        (tmp_path / "model").write_bytes(changed)
        tracemalloc.start()
        try:
            model = rffpk.load(tmp_path / "model")
        except (ModelFileError, VersionError):
            counts["refused"] += 1
            continue
        finally:
            taken = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert taken <= len(changed) + 2**20, (seed, taken)
        counts["read"] += 1
        assert type(model) in {*CLASSES, Pipeline}, seed
        assert kind != "damaged" or changed == content, seed
        with suppress(Exception):  # the values of such a file may be anything
            model.transform(NEW)
    assert min(counts.values()) > DAMAGED / 20


@pytest.mark.promise(like="test_a_damaged_file_gives_a_named_error_or_a_model")
@pytest.mark.exhaustive
@pytest.mark.parametrize("entry", ["[[]]", "[]", '{"dict":{}}', '{"":1}'])
def test_the_memory_of_a_hostile_header_is_bounded(entry, tmp_path):
    content = bytes_of(rffpk.PowerKMeans(2), tmp_path)
    content = edited(content, attributes='{"a_":[' + ",".join([entry] * 20_000) + "]}")

    def load():
        with suppress(ModelFileError):
            loaded(content, tmp_path)

    assert peak_of(load) <= 70 * len(content)


def test_a_large_model_is_read_into_one_buffer(tmp_path):
    X = np.random.RandomState(0).randn(200_000, 4)
    model = rffpk.PowerKMeans(2, max_iter=3, random_state=0).fit(X)
    model.save(tmp_path / "model")
    path, read = tmp_path / "model", []
    assert peak_of(lambda: read.append(rffpk.load(path))) <= path.stat().st_size + 2**20
    assert_array_equal(read[0].labels_, model.labels_)


# ---- files of this release -----------------------------------------------------------------------


def golden_rows():
    """Compute three groups of rows by a formula."""
    i = np.arange(24)
    rows = np.stack([np.sin(3.0 * i), np.cos(2.0 * i), np.sin(i * i)], axis=1) / 8
    return rows + (i % 3)[:, None]


GOLDEN_FILES = sorted(GOLDEN.glob("*.safetensors"))


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: path.stem)
def test_files_of_this_release_stay_readable(path):
    model = rffpk.load(path)
    assert type(model).__name__ == path.stem and len(GOLDEN_FILES) == 2
    assert_array_equal(model.predict(golden_rows()), model.labels_)
    assert len(set(model.labels_)) == 3
    np.testing.assert_allclose(model.inertia_, -model.score(golden_rows()), rtol=1e-9)


if __name__ == "__main__":  # python tests/test_model_files.py writes the files of a release
    for cls in (rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans):
        model = cls(3, n_init=1, annealing=rffpk.Annealing(swaps=0, start=-5.0), random_state=0)
        if cls is rffpk.RFFKernelPowerKMeans:
            model.set_params(n_frequencies=8)
        model.fit(golden_rows()).save(GOLDEN / f"{cls.__name__}.safetensors")
