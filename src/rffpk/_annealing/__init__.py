"""How power means are annealed: objectives, schedules, starts, swaps, steps."""
