"""Annealing of power means: objectives, schedules, the search over starts, swaps, steps."""
