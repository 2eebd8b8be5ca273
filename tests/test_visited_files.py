"""A fit goes through each of its steps once."""

import pytest
from visited_files import STEPS, fits, trace

# The host of the steps, what a stage is, and what each step computes with.
SHARED = {
    "_anneal/fit.py",
    "_anneal/search.py",
    "_utils/config.py",
    "_rows/passes.py",
    "_rows/rows.py",
    "_utils/columns.py",
    "_rows/sums.py",
}


@pytest.mark.parametrize("fit", [*fits()], ids=["random", "diffusion"])
def test_a_fit_enters_each_step_once_and_few_files_serve_several(fit):
    files, entered = trace(*fit)
    assert entered == list(STEPS.values())
    for name in files.keys() - SHARED:
        assert len(set(files[name]) - {"outside"}) <= 2, f"{name}: {files[name]}"
