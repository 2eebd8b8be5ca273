"""A fit goes through few files, and through each of its steps once."""

import pytest
from visited_files import STEPS, fits, trace

# The host of the steps, what a stage is, and what each step computes with.
SHARED = {
    "_anneal/fit.py",
    "_anneal/search.py",
    "_utils/config.py",
    "_rows/passes.py",
    "_rows/rows.py",
    "_utils/sparse_rows.py",
    "_rows/sums.py",
}


@pytest.mark.parametrize(("fit", "most"), list(zip(fits(), (25, 28))), ids=["random", "diffusion"])
def test_a_fit_visits_few_files_and_each_step_once(fit, most):
    files, entered = trace(*fit)
    assert entered == list(STEPS.values())
    assert len(files) <= most, files
    for name in files.keys() - SHARED:
        assert len(set(files[name]) - {"outside"}) <= 2, f"{name}: {files[name]}"
