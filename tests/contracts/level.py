"""Stages of a start: the exponents, the steps, the swaps and their ends."""

# Swaps estimate what trying every swap gives.
from rffpk.anneal import swaps

# The objective of power means, and the centroids of all clusters.
from rffpk.anneal.records import PowerMean, State

# What a start knows besides its rows, the stages that follow, and how each of them ended.
from rffpk.anneal.schedule import FitContext, Schedule, StageEnd, Start, anneal

# Stages of a start on some rows.
from rffpk.anneal.steps import FeatureLevel

# What a step tells a start.
from rffpk.rows.sums import Step

__all__ = ["FeatureLevel", "FitContext", "PowerMean", "Schedule", "StageEnd", "Start", "State",
           "Step", "anneal", "swaps"]  # fmt: skip
