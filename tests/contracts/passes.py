"""Passes over the rows of all views, and the features that they compute."""

# The module, whose search by parts a test counts.
from rffpk.rows import passes

# A pass returns sums and what is wanted of each row.
# Features less their means, as passes see them.
# Features of rows as predictions compute them, in an order that changes no bit.
from rffpk.rows.passes import one_pass, shifted_features, unshifted

# Weights of one, which take the memory of one number.
from rffpk.rows.weights import ones

# Principal components of rows, by their definition.
from rffpk.spaces.whitening import fit_components

__all__ = [
    "column_rows",
    "fit_components",
    "make_rows",
    "one_pass",
    "ones",
    "passes",
    "shifted_features",
    "unshifted",
]


def with_weight(arguments):
    """Return the arguments of `make_rows` with weights of one for None."""
    xs, maps, weight, *rest = arguments
    return xs, maps, ones(len(xs[0])) if weight is None else weight, *rest


def make_rows(*arguments):
    """Return rows with equal view weights, shifted by their means unless there are shifts."""
    rows = passes.make_rows(*with_weight(arguments))
    has_shifts = len(arguments) == 5 and arguments[4] is not None
    return rows if has_shifts else passes.centered(rows)


def column_rows(x, weight, n_threads, shift=None):
    """Return rows of one view whose features are its columns, as `make_rows` shifts them."""
    rows = passes.column_rows(x, ones(len(x)) if weight is None else weight, n_threads, shift)
    return passes.centered(rows) if shift is None else rows
