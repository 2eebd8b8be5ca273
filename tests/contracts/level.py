"""Stages of a start: the exponents, the steps, the swaps and their ends."""

# Swaps, whose estimates are compared with trials of every swap.
from rffpk.anneal import swaps

# The objective of power means, and the state of a fit.
from rffpk.anneal.records import PowerMean, State

# The context of a fit, its schedule, its starts, and the ends of stages.
from rffpk.anneal.schedule import FitContext, Schedule, StageEnd, Start, anneal

# Rows of features on which the centroids of a state move.
from rffpk.anneal.steps import FeatureLevel

# The result of a step.
from rffpk.rows.sums import Step

__all__ = ["FeatureLevel", "FitContext", "PowerMean", "Schedule", "StageEnd", "Start", "State",
           "Step", "anneal", "swaps"]  # fmt: skip
