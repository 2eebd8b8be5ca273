"""Annealing of power means: objectives, schedules, starts, swaps, steps."""
