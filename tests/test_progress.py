"""What a fit says of itself: records, lines, log messages, scikit-learn's callbacks."""

import io
import logging
import pickle
import re
import sys

import numpy as np
import pytest
from contracts.plan import report
from conventions import CLUSTERERS, FUSIONS
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV

import rffpk

X = make_blobs(200, 4, centers=3, random_state=0)[0]


KEYS = {
    "stage", "start", "kept", "rows", "s", "objective", "shift", "distinct", "repairs",
    "kernel_weights", "seconds",
}  # fmt: skip
clusterers = pytest.mark.parametrize("cls", CLUSTERERS)


def passes(model):
    return [record for record in model.history_ if "kept" in record]


# ---- records ------------------------------------------------------------------------------------


@pytest.mark.promise("Progress", "Records of passes have the same keys in every class.")
@clusterers
def test_records_have_the_same_keys_in_every_class(cls):
    model = cls(4, random_state=0)
    model.set_params(**({"n_init": 4} if hasattr(model, "n_init") else {})).fit(X)
    kept = [r["start"] for r in model.history_ if r.get("outcome") == "kept"] or [0]
    assert len(kept) == 1
    assert all(r["kept"] == (r["start"] == kept[0]) for r in passes(model))
    assert len({r["start"] for r in passes(model)}) == (1 if cls in FUSIONS else 4)
    assert cls in FUSIONS or sum(r["kept"] for r in passes(model)) == model.n_iter_
    for record in passes(model):
        assert set(record) - {"gap", "change"} == KEYS
        assert record["rows"] > 0 and record["seconds"] > 0
        assert np.isclose(np.sum(record["kernel_weights"]), 1) or cls is rffpk.FAMKKM
    assert passes(model)
    others = [set(r) for r in model.history_ if "kept" not in r]
    assert all(keys <= KEYS | {"kind", "passes", "outcome"} for keys in others)


# ---- lines --------------------------------------------------------------------------------------

PASS = re.compile(
    r"(\w+): start (\d+)/(\d+), ([\w-]+), s=\S+, objective=\S+, \S+ rows/s, 0:00:\d\d elapsed"
    r"(, about 0:\d\d:\d\d left)?"
)
ITERATION = re.compile(r"(\w+): (weights|fusion), objective=\S+, \S+ rows/s, 0:00:\d\d elapsed")


@clusterers
def test_verbose_2_prints_each_pass(cls, capsys):
    model = cls(3, random_state=0, verbose=2).fit(X)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(cls.__name__)]
    of_passes = [match for line in lines if (match := PASS.fullmatch(line))]
    iterations = [line for line in lines if ITERATION.fullmatch(line)]
    assert len(of_passes) + len(iterations) == len(lines)
    if cls in FUSIONS:
        assert len(iterations) == model.n_iter_ and of_passes  # passes of k-means
    else:
        assert len(lines) == len(passes(model))
        stages = [(r["start"] + 1, r["stage"]) for r in passes(model)]
        assert [(int(match[2]), match[4]) for match in of_passes] == stages
    if cls is rffpk.PowerKMeans:  # the time left is known after the first start
        assert not of_passes[0][5]


@pytest.fixture
def now(monkeypatch):
    """Return a list with the time that the report sees."""
    seconds = [0.0]
    monkeypatch.setattr(report.time, "perf_counter", lambda: seconds[0])
    return seconds


@pytest.mark.promise(
    "Progress",
    "`verbose=1` prints a line every five seconds at most and the last pass, in every class.",
)
@clusterers
def test_verbose_1_prints_a_line_at_the_end_of_a_short_fit(cls, capsys):
    def lines(verbose):
        cls(3, random_state=0, verbose=verbose).fit(X)
        printed = [line for line in capsys.readouterr().out.splitlines() if "objective=" in line]
        return [re.sub(r", \S+ rows/s.*", "", line) for line in printed]

    assert lines(1) == lines(2)[-1:]


@pytest.mark.promise(like="test_verbose_1_prints_a_line_at_the_end_of_a_short_fit")
def test_verbose_1_prints_a_line_in_five_seconds_and_the_last_pass(now, capsys):
    reported = report.Progress(None, "Model", 1)
    record = {"stage": "fusion", "rows": 10, "s": None, "seconds": 0.5}
    for objective in range(1, 13):
        now[0] += 1.0
        reported.passed({**record, "objective": objective})
    reported.close()
    reported.close()
    shown = re.findall(r"objective=(\d+), .* 0:00:(\d\d) elapsed", capsys.readouterr().out)
    assert shown == [("5", "05"), ("10", "10"), ("12", "12")]


def test_the_time_left_is_that_of_the_starts_that_are_missing(now):
    reported = report.Progress(None, "Model", 1)
    reported.n_starts, reported.later = 3, [400, 1000]
    now[0] = 10.0
    assert reported._left(100, 50.0, 10.0) == 0
    reported.start_ended()
    assert reported._left(100, 50.0, 14.0) == 2 * 10 - 4 + 5 * 1400 / 50
    now[0] = 30.0
    reported.start_ended()
    reported.start_ended()
    assert reported._left(100, 50.0, 30.0) == 5 * 1400 / 50
    assert reported._left(400, 50.0, 40.0) == 5 * 1000 / 50
    assert reported._left(1000, 50.0, 60.0) == 0


def test_a_time_left_that_nobody_knows_is_not_shown(now, capsys):
    reported = report.Progress(None, "Model", 2)
    reported.n_starts, reported.later = 2, [1000]
    now[0] = 10.0
    reported.start_ended()
    record = {"rows": 100, "s": None, "seconds": 2.0, "objective": 1.0}
    for stage, rows in [("anneal", 100), ("swap", 100), ("anneal", 1000)]:
        reported.passed({**record, "stage": stage, "rows": rows})
        reported.n_starts = 1
    lines = capsys.readouterr().out.splitlines()
    assert ["left" in line for line in lines] == [True, False, False]


class Terminal(io.StringIO):
    """A terminal that remembers what is written."""

    def isatty(self):
        return True


def test_a_terminal_shows_one_line_that_changes(monkeypatch):
    pytest.importorskip("tqdm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    rffpk.RFFKernelPowerKMeans(3, random_state=0, verbose=1).fit(X)
    text = terminal.getvalue()
    assert text.count("\n") <= 2  # the line, and that the kernel sees no other clusters
    assert "\rRFFKernelPowerKMeans: start 1/" in text and " rows/s" in text


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_terminal_without_tqdm_gets_plain_lines(verbose, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)  # lines go nowhere
    rffpk.PowerKMeans(3, random_state=0, verbose=verbose).fit(X)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    model = rffpk.PowerKMeans(3, random_state=0, verbose=verbose).fit(X)
    assert terminal.getvalue().count("\n") == (1 if verbose == 1 else len(passes(model)))


# ---- log ----------------------------------------------------------------------------------------


@clusterers
def test_the_logger_gets_each_pass_and_nothing_is_printed(cls, caplog, capsys):
    with caplog.at_level(logging.DEBUG, logger="rffpk"):
        model = cls(3, random_state=0).fit(X)
    messages = [r.getMessage() for r in caplog.records if r.levelno == logging.DEBUG]
    assert {r.name for r in caplog.records} == {"rffpk"}
    of_class = [m for m in messages if m.startswith(f"{cls.__name__}: ")]
    assert len(of_class) >= len(passes(model))
    assert capsys.readouterr() == ("", "")


@pytest.mark.promise(
    "Progress",
    'Nothing is printed unless `verbose` or the logger "rffpk" is set to.',
)
@pytest.mark.exhaustive
def test_nothing_is_said_unless_asked_for(python):
    code = """import logging, sys, numpy as np, rffpk
logging.getLogger("rffpk").setLevel(logging.DEBUG)
rffpk.RFFKernelPowerKMeans(3, random_state=0).fit(np.random.randn(100, 3))
sys.stderr.write("end")"""
    done = python(code, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "end")


# ---- scikit-learn's callbacks -------------------------------------------------------------------


class Recorder:
    """A callback that remembers the tasks of a fit."""

    def __init__(self):
        self.tasks, self.records, self.torn_down = [], [], 0

    def setup(self, estimator, context):
        self.tasks, self.records = [], []

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, metadata):
        if metadata is not None:
            self.records.append(metadata["record"])

    def teardown(self, estimator, context):
        self.torn_down += 1


@pytest.fixture
def recorder():
    pytest.importorskip("sklearn.callback")
    return Recorder()


@clusterers
def test_callbacks_see_each_pass(cls, recorder):
    plain = cls(3, random_state=0).fit(X)
    model = clone(plain).set_callbacks(recorder).fit(X)
    assert recorder.torn_down == 1 and recorder.tasks[0] == "fit"
    assert recorder.tasks[1:] == [record["stage"] for record in recorder.records]
    own = passes(model)
    assert recorder.records[: len(own)] == own if cls in FUSIONS else recorder.records == own
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    clone(model).fit(X)
    assert recorder.torn_down == 2  # clones keep callbacks, as scikit-learn's do
    model.set_callbacks().fit(X)
    assert recorder.torn_down == 2


@pytest.mark.parametrize("cls", [rffpk.PowerKMeans, rffpk.MKKM, rffpk.KernelPowerKMeans])
def test_a_refused_fit_ends_its_callbacks_and_leaves_the_model_as_it_was(cls, recorder):
    model = cls(3, random_state=0).set_callbacks(recorder).fit(X)
    before = {**vars(model)}
    with pytest.raises(ValueError, match="n_clusters=3"):
        model.fit(X[:2])
    assert recorder.torn_down == 2 and vars(model).keys() == before.keys()
    assert vars(model)["labels_"] is before["labels_"]


def test_a_search_passes_callbacks_on(recwarn):
    pytest.importorskip("sklearn.callback")

    class Propagated(Recorder):
        max_propagation_depth = None

    recorder = Propagated()
    search = GridSearchCV(rffpk.PowerKMeans(random_state=0), {"n_clusters": [2, 3]}, cv=2)
    search.set_callbacks(recorder).fit(X)
    assert recorder.tasks.count("hard") > 5 and recorder.torn_down == 1
    assert not [w for w in recwarn if "does not support callbacks" in str(w.message)]


def test_maps_have_callbacks_and_models_with_callbacks_are_pickled(recorder):
    for torn_down, cls in enumerate((rffpk.RandomFourierFeatures, rffpk.DiffusionMap), 1):
        cls(random_state=0).set_callbacks(recorder).fit(X)
        assert recorder.tasks == ["fit"] and recorder.torn_down == torn_down
    model = rffpk.PowerKMeans(3, random_state=0).set_callbacks(recorder).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)
