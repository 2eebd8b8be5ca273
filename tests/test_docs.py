"""Docstrings against signatures, fitted attributes and the sections of numpydoc."""

import ast
import inspect
import re
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest
from conventions import ip_rff_mkpkm
from sklearn.base import clone

import rffpk
from rffpk.selection import NClustersSelection

ROOT = Path(__file__).parent.parent
SECTIONS = [
    "Parameters", "Attributes", "Returns", "Raises", "Warns", "Notes", "References", "Examples",
]  # fmt: skip
PUBLIC = [getattr(rffpk, name) for name in sorted(rffpk.__all__) if name != "__version__"]
CLASSES = [thing for thing in PUBLIC if inspect.isclass(thing)]
FUNCTIONS = [thing for thing in PUBLIC if not inspect.isclass(thing)]
METHODS = [
    pytest.param(cls, method, id=f"{cls.__name__}.{name}")
    for cls in CLASSES
    for name, method in inspect.getmembers(cls, inspect.isfunction)
    if not name.startswith("_") and method.__module__.startswith("rffpk")
]

ROWS = np.random.RandomState(0).randn(30, 4)
FRAME = pd.DataFrame(ROWS, columns=[*"abcd"])
GROUPS = 0.1 * ROWS + np.eye(4)[np.arange(len(ROWS)) % 3]
VIEWS = [ROWS[:, :1], ROWS[:, 1:]]
KERNEL = np.exp(-((ROWS[:, None] - ROWS) ** 2).sum(axis=2) / 4)
STORED, NOISE = {"store_memberships": True}, {"noise": 0.1}
SOFT = {"annealing": rffpk.Annealing(end=-3.0, passes=2)}
ONE_KERNEL = ({"kernel": "precomputed"}, KERNEL)
KERNELS = ({"kernels": "precomputed"}, [KERNEL, KERNEL**2])

FUSIONS = [
    "AverageMKKM", "MKKM", "MKKMMR", "LKAM", "LMKKM", "ONKC", "MVCLFA", "CoregSC", "SimpleMKKM",
    "SMKC", "FAMKKM",
]  # fmt: skip
# Fits of each class that set all of its attributes, between them: for most, one of a frame.
FITS = {cls.__name__: [(STORED, FRAME)] for cls in CLASSES if hasattr(cls, "fit")}
FITS |= {name: [*FITS[name], ({"n_landmarks": 20}, VIEWS), KERNELS] for name in FUSIONS[:9]}
for name, fits in {
    "PowerKMeans": [
        (SOFT, ROWS), ({"init": "k-means"}, ROWS), ({"sample": 20}, ROWS), (NOISE, GROUPS),
    ],
    "DiffusionPowerKMeans": [(NOISE, GROUPS), ({"n_landmarks": 10, "sample": 20}, ROWS)],
    "FuzzyCMeans": [({"sample": 20}, FRAME), ({"init": "k-means"}, ROWS)],
    "RFFKernelPowerKMeans": [(NOISE, GROUPS), ({"cache": False, "sample": 20}, ROWS)],
    "RFFMultiKernelPowerKMeans": [({}, VIEWS), ({"typicality": None}, VIEWS), (NOISE, ROWS)],
    "KernelKMeans": [ONE_KERNEL, ({"init": "k-means"}, ROWS)],
    "KernelPowerKMeans": [ONE_KERNEL, (SOFT, ROWS)],
    "MultiKernelPowerKMeans": [({}, VIEWS), KERNELS],
    "RMKKM": [({}, VIEWS), KERNELS],
    "SMKC": [({"anchors": 10}, VIEWS), ({"kernels": "precomputed"}, KERNEL[:, :9])],
    "FAMKKM": [({"approximation": "rff"}, VIEWS), ({"approximation": "nystroem"}, VIEWS), KERNELS],
    "NystroemKernelKMeans": [({"n_anchors": 9, "n_components": 3}, ROWS)],
}.items():  # fmt: skip
    FITS[name] = [*FITS[name], *fits]
FITS["RandomFourierFeatures"] = [({}, FRAME), ({"sampling": "structured"}, ROWS)]
FITS["DiffusionMap"] = [({}, FRAME), ({"whitening": 0.5}, ROWS)]
API_PAGE = ROOT / "docs" / "api.md"

# The attributes that many classes have.
ORDER = [
    "linkage_", "labels_", "probabilities_", "inertia_", "s_", "membership_exponent_", "n_iter_",
    "sample_size_", "history_", "memberships_", "n_features_in_", "feature_names_in_",
    "outlier_scores_",
]  # fmt: skip
# Names with one meaning in all classes of a group, whose descriptions are equal there.
ANNEALED = ["PowerKMeans", "RFFKernelPowerKMeans", "DiffusionPowerKMeans"]
GROUPS_OF_CLASSES = {
    "all": (
        [*FITS],
        "n_jobs random_state verbose store_memberships views weight_entropy kernel_params "
        "memberships_ probabilities_ lambda_ linkage_ selection_ outlier_scores_ noise",
    ),
    "features": (
        [*ANNEALED, "RFFMultiKernelPowerKMeans", "FuzzyCMeans", "RandomFourierFeatures"],
        "sample max_iter tol n_iter_ sample_size_ n_buffered_ history_ gamma sampling cache_",
    ),
    "exact": (
        ["KernelKMeans", "KernelPowerKMeans", "MultiKernelPowerKMeans", "RMKKM"],
        "gamma kernel kernels cache dual_coef_ n_iter_ cache_ history_",
    ),
    "graphs": (
        ["DiffusionMap", "DiffusionPowerKMeans"], "n_components n_neighbors n_landmarks metric",
    ),
    "annealed": (ANNEALED, "n_clusters n_init annealing init n_clusters_ n_features_in_"),
    "hard": (["KernelKMeans", "RMKKM"], "n_init s_ membership_exponent_"),
    "fusions": (
        FUSIONS,
        "kernels n_init n_landmarks max_iter labels_ landmarks_ inertia_ s_ membership_exponent_ "
        "n_iter_ history_ n_features_in_ feature_names_in_",
    ),
}  # fmt: skip
KINDS = {
    "NClustersSelection": NClustersSelection,
    "ndarray": np.ndarray, "float": float, "int": int, "bool": bool, "list": list, "tuple": tuple,
    "RandomFourierFeatures": rffpk.RandomFourierFeatures, "DiffusionMap": rffpk.DiffusionMap,
}  # fmt: skip


def sections_of(thing):
    """Return (title, lines) of each section of a docstring, in its order."""
    lines = inspect.getdoc(thing).splitlines()
    starts = [i for i, line in enumerate(lines[1:]) if line and set(line) == {"-"}]
    return [(lines[a], lines[a + 2 : b]) for a, b in zip(starts, [*starts[1:], len(lines)])]


def described(thing, title):
    """Return (name, type, description) of each name in a section.

    An entry may have several names, of one type or of one each. An entry that names a property
    alone has the description of the property.
    """
    entries = []
    for line in dict(sections_of(thing)).get(title, []):
        if line.startswith(" "):
            entries[-1][2] = f"{entries[-1][2]} {line.strip()}".strip()
        elif line:
            names, _, kind = line.partition(" : ")
            entries.append([names.split(", "), kind, ""])
    named = []
    for names, kind, text in entries:
        kind, _, default = kind.partition(", default=")
        kinds = kind.split(" and ") if len(names) > 1 else [kind]
        kinds = kinds * len(names) if len(kinds) == 1 else kinds
        kinds = [f"{kind}, default={default}" if default else kind for kind in kinds]
        if text == kind == "":
            text = inspect.getdoc(getattr(thing, names[0]))
        named += [(name, kind, text) for name, kind in zip(names, kinds, strict=True)]
    return named


def check_parameters(thing, parameters):
    """Check that each parameter is described once, in the signature's order, with its default."""
    entries = described(thing, "Parameters")
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [stars.get(given.kind, "") + name for name, given in parameters.items()]
    assert [name for name, _, _ in entries] == names
    for name, kind, _ in entries:
        kind, _, default = kind.partition(", default=")
        assert kind
        if default:
            assert ast.literal_eval(default) == parameters[name].default, name


def check_sections(thing):
    titles = [title for title, _ in sections_of(thing)]
    assert titles == [title for title in SECTIONS if title in titles]
    text = inspect.getdoc(thing)
    cited, listed = re.findall(r"(?<!\.\. )\[(\d)\]_", text), re.findall(r"\.\. \[(\d)\]", text)
    assert {*cited} == {*listed} and len(listed) == len({*listed})
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("cls", CLASSES)
def test_a_class_is_described_on_a_page_in_one_order(cls):
    """No description refers to that of another class."""
    assert cls.__doc__.count("\n") < 130
    check_sections(cls)
    check_parameters(cls, inspect.signature(cls).parameters)
    parameters, attributes = described(cls, "Parameters"), described(cls, "Attributes")
    for name, kind, text in parameters:
        assert ", default=" in kind and text, name
    names = [name for name, _, _ in attributes if name in ORDER]
    assert names == [name for name in ORDER if name in names]
    names = {name for name, _, _ in parameters + attributes}
    assert {*re.findall("(?:[Aa]s in|see) `(.*?)`", inspect.getdoc(cls))} <= names


@pytest.mark.parametrize("group", GROUPS_OF_CLASSES)
def test_what_means_the_same_in_several_classes_is_described_alike(group):
    names, shared = GROUPS_OF_CLASSES[group]
    entries = [
        (entry[0], entry[2])
        for name in names
        for title in ("Parameters", "Attributes")
        for entry in described(getattr(rffpk, name), title)
    ]
    for name in shared.split():
        texts = [text for found, text in entries if found == name]
        assert len(texts) > 1 and len({*texts}) == 1, (name, {*texts})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_parameter_of_a_function_is_described(function):
    check_parameters(function, inspect.signature(function).parameters)
    check_sections(function)
    assert all(text for _, _, text in described(function, "Parameters"))


@pytest.mark.few(4)
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_words_of_annotations_are_those_described_and_accepted(cls):
    hints = get_type_hints(cls.__init__)
    for name, kind, _ in described(cls, "Parameters"):
        parts = (hints[name], *get_args(hints[name]))
        words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        kind, _, _ = kind.partition(", default=")
        named = name in ("kernel", "kernels") and "{" not in kind  # in the text
        assert named or sorted(words) == sorted(re.findall('"(.+?)"', kind)), name
        indefinite = "additive_chi2", "sigmoid"
        for word in (word for word in words if word not in indefinite):
            clusters = {"n_clusters": 2} if "n_clusters" in hints else {}
            rows = KERNEL if word == "precomputed" else np.abs(ROWS)  # chi2 takes these alone
            if cls is rffpk.Annealing:
                rffpk.PowerKMeans(2, annealing=cls(**{name: word})).fit(rows)
            elif cls is rffpk.Typicality:
                ip_rff_mkpkm(2, typicality=cls(**{name: word})).fit(rows)
            else:
                cls(**{**clusters, name: word}, random_state=0).fit(rows)


@pytest.mark.parametrize("cls, method", METHODS)
def test_every_parameter_of_a_method_is_described(cls, method):
    _, *parameters = inspect.signature(method).parameters.items()
    check_parameters(method, dict(parameters))
    check_sections(method)
    for title in ("Parameters", "Returns"):
        assert all(text for _, _, text in described(method, title))
    for name in re.findall("As in `(.*?)`", inspect.getdoc(method)):
        assert inspect.isfunction(getattr(cls, name))


@pytest.mark.parametrize("cls", [getattr(rffpk, name) for name in FITS])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_attributes_that_fits_set_are_those_described(cls):
    attributes = described(cls, "Attributes")
    kinds = {name: kind for name, kind, text in attributes if text}
    assert len(kinds) == len(attributes)
    assert all(kinds[name] or is_property(getattr(cls, name)) for name in kinds)
    seen = set()
    fits, given = FITS[cls.__name__], {}
    if "n_clusters" in inspect.signature(cls).parameters:
        fits, given = [*fits, ({"n_clusters": "auto"}, GROUPS)], {"n_clusters": 3}
    for parameters, X in fits:
        parameters = {**given, **parameters}
        model = cls(**parameters, random_state=0).fit(X)
        if hasattr(model, "partial_fit"):
            model.n_buffered_ = clone(model).partial_fit(X).n_buffered_
        names = {*vars(model), *(n for n, _ in inspect.getmembers(cls, is_property))}
        names = {n for n in names if n.endswith("_") and n[0] != "_" and hasattr(model, n)}
        fitted = {n: getattr(model, n) for n in names}
        seen |= {*fitted}
        for name, value in fitted.items():
            if kinds[name]:
                check_kind(name, value, kinds[name], model)
        check_history(model)
    assert seen == {*kinds}


def is_property(value):
    return isinstance(value, property)


def check_kind(name, value, kind, model):
    """Check the type, and the shape of an array as far as its sizes are known."""
    if value is None:
        assert kind.endswith("or None"), name
        return
    assert isinstance(value, KINDS[kind.split()[0].strip(",")]), name
    sizes = {"n_samples": len(ROWS), "n_clusters": 3, "n_features_in_": model.n_features_in_}
    if shape := re.search(r"shape \((.*?),?\)", kind):
        described = shape[1].split(", ")
        assert len(described) == value.ndim, name
        assert [sizes.get(*pair) for pair in zip(described, value.shape)] == [*value.shape], name
    if "int32" in kind:
        assert value.dtype == np.int32, name


def check_history(model):
    """Check that the page of the reference describes the keys and str values of the records."""
    if not API_PAGE.exists():  # outside of the repository
        return
    records = API_PAGE.read_text().partition("## Records of a fit")[2]
    for record in getattr(model, "history_", []):
        values = [record[key] for key in ("stage", "kind", "outcome") if key in record]
        assert not [text for text in (*record, *values) if f'"{text}"' not in records]


@pytest.mark.exhaustive
def test_without_docstrings_the_package_works(python):
    code = (
        "import rffpk; print(rffpk.PowerKMeans(1).fit([[0.]]).labels_, rffpk.PowerKMeans.__doc__)"
    )
    assert python(code, PYTHONOPTIMIZE="2").split() == ["[0]", "None"]
