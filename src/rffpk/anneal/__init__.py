"""A fit: plans, schedules, steps, swaps, fitted models."""
