"""The stages of a start without any rows: which stages follow from given ends of those before."""

import math

import numpy as np
import pytest
from internals import (
    NOISE,
    Schedule,
    Stage,
    StageEnd,
    Start,
    Step,
    different_starts,
    from_merged_centroids,
    stages_of,
)
from numpy.testing import assert_allclose

ADAPTIVE = Schedule(start=-1.0, end=-math.inf, max_iter=1000, tol=1e-4)
SOFT = Step(0.5, 1.0, 1.0, 0.0, 0.0, 2, False, 0.0)


def run(start, ends, best=math.inf, dtype=np.float64):
    """The stages of a start, and its result, where the stages end in turn as `ends` says: each end
    is a result and a number of steps. None if the start goes on after the last."""
    if isinstance(start, Schedule):
        start = Start("given", start)
    generator, taken = stages_of(start, lambda: best, dtype), []
    try:
        taken.append(next(generator))
        for last, steps in ends:
            taken.append(generator.send(StageEnd(last, steps)))
    except StopIteration as stop:
        return taken, stop.value
    return taken, None


def exponents(schedule, ends):
    return [stage.s for stage in run(schedule, ends)[0]]


@pytest.mark.parametrize("steps, power", [(1, 1.3), (2, 1.3), (3, 1), (4, 1), (5, 0.6), (10, 0.6)])
def test_the_factor_follows_the_number_of_steps(steps, power):
    first, second, third = exponents(ADAPTIVE, [(SOFT, steps)] * 2)
    assert first == -1
    assert_allclose(second / first, 1.2**power)
    assert_allclose(third / second, 1.2 ** (power * power))


@pytest.mark.parametrize("steps, limit", [(2, 1.5), (5, 1.05)])
def test_the_factor_has_limits(steps, limit):
    s = exponents(ADAPTIVE, [(SOFT, steps)] * 9)
    assert_allclose(s[-1] / s[-2], limit)


def test_a_fixed_schedule():
    schedule = Schedule(-2.0, -math.inf, 20, 1e-4, factor=1.1, passes=3, noise=0.02)
    stages, end = run(schedule, [(SOFT, 3)] * 6)
    assert end is None
    assert_allclose([stage.s for stage in stages], -2 * 1.1 ** np.arange(7))
    assert [stage.most for stage in stages] == [3] * 6 + [2]  # of twenty steps
    assert all(stage.tol < 0 and stage.noise == 0.02 for stage in stages)


def test_stages_last_until_the_centroids_hardly_move():
    stage = Stage("anneal", -1.0, tol=0.5, most=4)
    assert [stage.is_over(steps, shift) for steps, shift in [(3, 0.6), (3, 0.5), (4, 0.6)]] == [
        False, True, True,
    ]  # fmt: skip
    (first, _), _ = run(ADAPTIVE, [(SOFT, 3)])
    assert first.tol > ADAPTIVE.tol and first.most > 1


def test_merged_centroids_are_disturbed_before_the_next_stage():
    merged = SOFT._replace(merged=True)
    stages, _ = run(ADAPTIVE, [(SOFT, 3), (merged, 3), (SOFT, 3)])
    assert [stage.noise for stage in stages[:2] + stages[3:]] == [0] * 3
    assert 0 < stages[2].noise < 1e-3


@pytest.mark.parametrize("dtype, most", [(np.float32, 2**16), (np.float64, 2**45)])
def test_annealing_ends_in_the_hard_rule(dtype, most):
    """At last where the power mean has lost its digits."""
    stages, end = run(ADAPTIVE, [(SOFT, 2)] * 200, dtype=dtype)
    assert end.converged and -most <= end.s < -most / 1.6
    assert stages[-1][:2] == ("hard", -math.inf) and stages[-2].s == end.s
    assert stages[-1].tol == 1e-4 and stages[-1].most == 1000 - 2 * (len(stages) - 1)
    assert {stage.name for stage in stages[:-1]} == {"anneal"}


@pytest.mark.parametrize("ratio, over", [(0.9989, False), (0.9991, True)])
@pytest.mark.parametrize("s_final", [-math.inf, -50.0])
def test_annealing_ends_where_the_power_mean_is_nearly_the_minimum(ratio, over, s_final):
    nearly = SOFT._replace(soft=3 * ratio, hard=3.0)
    schedule = Schedule(-1.0, s_final, 1000, 1e-4)
    stages, _ = run(schedule, [(SOFT, 3), (nearly, 3)])
    assert (stages[-1].name == "hard") == (over and s_final == -math.inf)


@pytest.mark.parametrize("shift", [1e-4, 2e-4])
def test_a_final_exponent_is_reached_and_kept(shift):
    schedule = Schedule(-1.0, -3.0, 100, 1e-4, factor=2.0, passes=5)
    stages, end = run(schedule, [(SOFT, 5)] * 3 + [(SOFT._replace(shift=shift), 7)])
    assert [stage.s for stage in stages] == [-1, -2, -3, -3]
    assert stages[-1][0] == "settle" and stages[-1].most == 85
    assert end.s == -3 and end.converged == (shift <= 1e-4) and not end.dropped


def test_the_largest_number_of_steps_ends_a_start_without_convergence():
    stages, end = run(Schedule(-1.0, -math.inf, 6, 1e-4, factor=2.0), [(SOFT, 3)] * 2)
    assert [stage.most for stage in stages] == [6, 3]
    assert not end.converged and not end.dropped and end.s == stages[-1].s  # of the last steps
    schedule = Schedule(-1.0, -2.0, 6, 1e-4, factor=2.0, passes=3)
    stages, end = run(schedule, [(SOFT, 3)] * 2)  # none is left at the final exponent
    assert len(stages) == 2 and not end.converged


def test_the_papers_protocol_ends_by_the_objective():
    schedule = Schedule(-1.0, -math.inf, 100, 0.1, 2.0, passes=2, until="objective", noise=0.02)
    objectives = [10.0, 8.0, 7.0, 6.37, 5.9]  # less by 20, 13, 9.9 %
    stages, end = run(schedule, [(SOFT._replace(objective=f), 1) for f in objectives])
    assert [stage.s for stage in stages] == [-1, -1, -2, -2]
    assert [stage.noise for stage in stages] == [0.02, 0, 0.02, 0]
    assert all(stage.name == "anneal" and stage.most == 1 for stage in stages)
    assert end.s == -2 and end.converged


def test_a_rising_objective_ends_the_papers_protocol_only_within_the_tolerance():
    schedule = Schedule(-1.0, -math.inf, 100, 0.1, 2.0, passes=9, until="objective")
    stages, end = run(schedule, [(SOFT._replace(objective=f), 1) for f in (1.0, 2.0, 2.1)])
    assert len(stages) == 3 and end.converged


def test_the_papers_protocol_goes_on_where_the_power_mean_is_nearly_the_minimum():
    schedule = Schedule(-1.0, -math.inf, 4, 1e-9, 2.0, passes=1, until="objective")
    ends = [(SOFT._replace(soft=1.0, objective=1 / n), 1) for n in (1, 2, 3, 4)]
    stages, end = run(schedule, ends, best=0.0)
    assert len(stages) == 4 and not end.converged and not end.dropped


def test_plain_k_means_settles_at_a_final_exponent():
    plain = Schedule(-math.inf, -math.inf, 50, 0.1)
    converged, moving = SOFT._replace(shift=0.1), SOFT._replace(shift=0.2)
    assert run(plain, [(converged, 20)])[0] == [Stage("hard", -math.inf, 0.0, 0.1, 50)]
    assert run(plain, [(converged, 20)])[1].converged
    assert not run(plain, [(moving, 50)])[1].converged
    soft = Schedule(-math.inf, -3.0, 50, 0.1)
    stages, end = run(soft, [(converged, 20), (converged, 5)])
    assert stages[1:] == [Stage("settle", -3.0, 0.0, 0.1, 30)] and end.converged and end.s == -3
    assert not run(soft, [(converged, 20), (moving, 30)])[1].converged
    assert len(run(soft, [(moving, 50)])[0]) == 1
    stages, end = run(soft, [(converged, 50)])
    assert len(stages) == 1 and not end.converged


def test_k_means_may_come_first():
    start = Start("given", ADAPTIVE, k_means_first=True)
    stages, _ = run(start, [(SOFT, 7), (SOFT, 3)])
    assert stages[0] == Stage("k-means", -math.inf, 0.0, 1e-4, 1000)
    assert stages[1].name == "anneal" and stages[1].s == -1


def test_different_starts():
    """Low ones and plain ones in turn, and at the end the slow one, which is always there."""
    slow, low, plain = "critical", "low", "k-means++"
    kinds = [[slow], [low, slow], [plain, low, slow], [low, plain, low, slow]]
    for n, expected in enumerate(kinds, 1):
        assert [start.kind for start in different_starts(ADAPTIVE, -4.0, n)] == expected


@pytest.mark.parametrize(
    "critical, s_final, slow, low",
    [
        (-4.0, -math.inf, -4, -8), (-1.0, -math.inf, -1, -5), (0.0, -math.inf, -0.5, -5),
        (-4.0, -6.0, -4, -6), (-4.0, -2.0, -2, -2), (0.3, -0.4, -0.4, -0.4),
    ],
)  # fmt: skip
def test_exponents_of_different_starts(critical, s_final, slow, low):
    """From the critical one, and from twice that; none is below the final one."""
    plain, fast, last = different_starts(Schedule(-1.0, s_final, 9, 0.1), critical, 3)
    assert (plain.schedule.start, fast.schedule.start, last.schedule.start) == (
        -math.inf,
        low,
        slow,
    )
    assert plain.schedule.noise == fast.schedule.noise == 0 < last.schedule.noise == NOISE
    assert fast.schedule.factor > 1 and fast.schedule.passes is not None
    assert last.schedule.factor is None and last.schedule.passes is None


@pytest.mark.parametrize("tol", [1e-4, 0.5])
def test_a_merged_start_alone_is_k_means_with_a_large_tolerance(tol):
    starts = different_starts(Schedule(-1.0, -math.inf, 30, tol), -3.0, 3)
    (start,) = from_merged_centroids(starts, True)
    (stage,) = run(start, [])[0]
    assert start.merges and stage[:3] == ("hard", -math.inf, 0.0)
    assert stage.tol == max(tol, stage.tol) > 1e-3 and not stage.exact


def test_a_merged_start_may_end_at_an_exponent():
    starts = different_starts(Schedule(-1.0, -6.0, 30, 0.1), -3.0, 3)
    (start,), ends = from_merged_centroids(starts, True), [(SOFT, 3), (SOFT, 2)]
    stages, end = run(start, ends)
    assert [(stage.name, stage.s) for stage in stages] == [("hard", -math.inf), ("settle", -6.0)]
    assert end.s == -6 and stages[-1].exact and stages[-1].tol == 0.1


def test_of_different_starts_those_that_are_not_annealed_are_merged():
    starts = different_starts(Schedule(-1.0, -math.inf, 30, 0.1), -3.0, 5)
    found = from_merged_centroids(starts, False)
    low, last = "low", "critical"
    assert [each.kind for each in found] == ["merged", low, "merged", low, last]
    assert [each.merges for each in found] == [True, False] * 2 + [False]
    assert [each.schedule for each in found] == [each.schedule for each in starts]
