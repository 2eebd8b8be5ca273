"""Mutants by name: changes of the package, each with the test that must notice it.

    python tests/named_mutants.py              # apply each to a copy, and run its test
    python tests/named_mutants.py noise sums   # those that have one of these words

Each promise that a default run tests has one (`test_default_run.py` says which lack one). A mutant
replaces a text, which occurs once, in a function of the package. It is killed if its test fails or
takes minutes. A mutant that survives, or whose text is not there any more, is an error. The core is
built again for each of its mutants.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mutants

_SECONDS = 120  # that the test of a mutant may take
_ALL_SECONDS = 900  # that all of these tests may take
_DEFAULT = "not exhaustive"  # the tests of a default run
_MODULES = ("_runtime", "_pass", "_steps")  # of the core, that mutants change


class Mutant(NamedTuple):
    test: str  # as pytest names it, below tests/test_
    function: str  # the module, and the name of the function in it, of a method after its class
    old: str
    new: str

    @property
    def path(self) -> str:
        return self.function.partition(":")[0]


# Of promises.
PROMISES = [
    Mutant("estimators.py::test_same_bits_for_any_number_of_jobs",
           "_core/_pass.pyx:Passes", "rows_of_slot(problem, n)",
           "rows_of_slot(problem, n) // n_threads"),
    Mutant("threads.py::test_python_runs_while_a_pass_does",
           "_core/threads.c:rffpk_run_loop", "run_items(loop, &self, 0)",
           "PyEval_RestoreThread(python), run_items(loop, &self, 0), python = PyEval_SaveThread()"),
    Mutant("threads.py::test_a_child_forked_after_fits_does_not_hang",
           "_core/threads.c:rffpk_threads_after_fork", "n_helpers = n_running", "n_running"),
    Mutant("random_parts.py::test_labels_of_separated_clusters_are_those_of_every_instruction_set",
           "_core/simd.h:transpose_lanes", "t[i + 1] = ONES_HIGH", "t[i + 1] = ONES_LOW"),
    Mutant("random_parts.py::test_a_pass_differs_between_instruction_sets_by_rounding",
           "_core/simd.h:sum_lanes", "i < W", "i < (W + 1) / 2"),
    Mutant("pass.py::test_memory_does_not_grow_with_the_rows",
           "rows/passes.py:pass_of_block", "for name in want\n",
           'for name in {*want, "labels"}\n'),
    Mutant("decompositions.py::test_balanced_designs_are_clustered_by_every_class",
           "system/linalg.py:eigh", "if len(values) == last - first + 1", "if True"),
    Mutant("threads.py::test_threads_follow_n_jobs_and_limits",
           "system/config.py:n_threads", "return given if given > 0 else", "return"),
    Mutant("config.py::test_overlapping_fits_leave_blas_as_it_was",
           "system/config.py:_BlasLimit.held", "if not self._holders and", "if"),
    Mutant("config.py::test_predictions_have_one_thread_of_blas",
           "system/config.py:_BlasLimit.held", "blas.limit(limits=1)", "blas.limit(limits=2)"),
    Mutant("threads.py::test_an_interrupted_fit_leaves_the_estimator_as_it_was",
           "estimators/base.py:fit_of", "except BaseException", "except Exception"),
    Mutant("process.py::test_a_fit_leaves_the_state_of_the_process",
           "estimators/base.py:fit_of", "before =", "np.seterr(all='ignore')\n    before ="),
    Mutant("process.py::test_a_file_is_written_with_the_permissions_of_the_one_that_it_replaces",
           "system/files.py:whole_file", "os.chmod(part, before)", "pass"),
    Mutant("process.py::test_a_warning_of_another_thread_is_seen_while_ours_are_not_wanted",
           "system/report.py:are_wanted", "_unwanted.get()", "()"),
    Mutant("structure.py::test_the_package_imports_nothing_that_is_optional",
           "_core/__init__.py:", "from rffpk._core._pass import BOTH",
           "import pytest\nfrom rffpk._core._pass import BOTH"),
    Mutant("bounds.py::test_memory_is_that_of_the_bounds_and_of_small_copies",
           "anneal/hard_pass.py:_among_active",
           "row_tiles(len(active), width, TUNING.hardpasses.copied_bytes)",
           "row_tiles(len(active), 1)"),
    Mutant("narrow_rows.py::test_a_fit_has_the_bits_of_one_to_float32",
           "rows/door.py:_read_array", "if schema.narrow", "if False"),
    Mutant("narrow_rows.py::test_no_copy_of_small_numbers_or_of_unit_rows_is_made",
           "rows/table.py:UnitRows._view", "(X, Unit(width))", "(unit_rows(X), Identity(width))"),
    Mutant("pass.py::test_input_is_read_in_place_and_left_unchanged",
           "rows/door.py:_read_array", "small = X, None", "small = X.copy(), None"),
    Mutant("forms.py::test_fits_and_fitted_models_are_those_of_an_array",
           "rows/source.py:block_rows", "* max(1, slots))", "* max(1, slots) - 1)"),
    Mutant("sources.py::test_errors_of_a_reader_surface_and_its_thread_ends",
           "rows/source.py:prefetched", "raise item", "return"),
    Mutant("sources.py::test_rows_that_change_between_reads_are_refused",
           "rows/source.py:Stream._compare", "before[1] != found", "False"),
    Mutant("store.py::test_the_memory_limit_holds",
           "rows/store.py:Storage.fits", "needed <= self.cache", "needed <= self.cache + 1"),
    Mutant("random_parts.py::"
           "test_the_second_centroid_of_k_means_plus_plus_follows_the_squared_distances",
           "anneal/starts.py:draw", "random.uniform(size=count)",
           "random.uniform(size=count) ** 2"),
    Mutant("random_parts.py::test_the_random_state_fixes_everything",
           "rows/checks.py:check_random_state", "check_random_state(random_state)",
           "check_random_state(None)"),
    Mutant("fuzzy.py::test_the_fuzzifier_follows_from_the_rows",
           "estimators/fuzzy.py:FuzzyCMeans._fixed", "min(exponent,", "min(-1.0,"),
    Mutant("memberships.py::test_rows_on_the_way_between_clusters_belong_to_both",
           "anneal/feature_fit.py:FeatureData.result", '"membership_exponent_": exponent',
           '"membership_exponent_": -math.inf'),
    Mutant("profiles.py::test_sizes_means_and_differences_are_those_of_the_formulas",
           "profiles.py:describe", "/ p.sum()", "/ len(p)"),
    Mutant("selection.py::"
           "test_moons_are_two_clusters_and_one_gaussian_or_uniform_rows_are_one",
           "choose/number.py:_total", "TUNING.number.one_cluster", "-math.inf"),
    Mutant("tree.py::test_cuts_are_nested_and_begin_with_the_labels",
           "system/tree.py:groups", "reversed(range(k - n))", "range(k - n)"),
    Mutant("noise.py::test_a_share_is_one_of_the_weight",
           "choose/noise.py:share_threshold",
           "np.cumsum(weight[index])", "np.cumsum(np.ones(len(index)))"),
    Mutant("noise.py::test_the_mask_depends_on_columns_and_weights_alone",
           "choose/noise.py:_references", "copies * np.median(own[is_own])", "2"),
    Mutant("noise.py::test_a_source_that_changes_is_refused",
           "rows/source.py:Stream._compare", "before[1] != found", "False"),
    Mutant("noise.py::test_the_score_of_the_fitted_rows_is_that_of_the_fit",
           "estimators/base.py:Clusterer.score", "cost(X, sample_weight)", "cost(X, None)"),
    Mutant("containers.py::test_a_table_in_another_order_is_refused",
           "rows/checks.py:_compare", "if a.equals(b)", "if True"),
    Mutant("refusals.py::test_the_remedy_is_accepted",
           "rows/checks.py:check_container", "if loose", "if False"),
    Mutant("refusals.py::test_every_class_refuses_the_value_by_name",
           "rows/checks.py:check_finite", "row {rows[0]}", "row {rows[-1]}"),
    Mutant("ends.py::test_a_degenerate_end_is_named_once",
           "anneal/convergence_warnings.py:warn_of_ending", "next(found, '') or ", ""),
    Mutant("estimators.py::test_weights_are_repetitions_at_a_fixed_start",
           "rows/checks.py:check_sample_weight", "given.astype(np.float64)",
           "given.astype(np.float64) ** 0.5"),
    Mutant("extremes.py::test_a_scale_changes_nothing",
           "rows/door.py:_check_array", "table.beyond_float32(x, mean)", "False"),
    Mutant("extremes.py::test_a_power_of_two_of_the_weights_is_one_of_the_costs",
           "rows/weights.py:weight_unit", "2.0 ** math.frexp(float(weight.max()))[1]", "1.0"),
    Mutant("extremes.py::test_errors_that_the_caller_raises_end_no_fit",
           "system/config.py:_BlasLimit.held", 'under="ignore", ', ""),
    Mutant("sparse.py::test_empty_columns_change_no_bit",
           "anneal/feature_fit.py:_occupied", "occupied_columns(x) if own else None", "None"),
    Mutant("callers_arrays.py::test_a_model_keeps_no_rows",
           "anneal/kernel_fit.py:_kernel_rows", "x.copy()", "x"),
    Mutant("fuzz.py::test_a_named_refusal_or_a_valid_result",
           "rows/checks.py:check_finite", "np.isfinite(values.sum())", "True"),
    Mutant("hostile_input.py::"
           "test_a_far_row_is_named_and_changes_no_kernel_of_the_median_distance",
           "spaces/fourier.py:_warn_of_far_rows", "0 < spread * 1e10 < distance", "False"),
    Mutant("refusals.py::test_nothing_that_the_caller_owns_is_changed",
           "estimators/base.py:fit_of", "vars(estimator).update(before)", "pass"),
    Mutant("missing_views.py::test_the_objective_is_that_of_the_formula",
           "rows/sums.py:view_penalty", "np.ones(len(alpha)) if coverage is None else coverage",
           "np.ones(len(alpha))"),
    Mutant("partial_fit.py::test_a_refused_batch_changes_nothing",
           "estimators/base.py:fit_of", "vars(estimator).update(before)", "pass"),
    Mutant("views_parameter.py::test_a_list_of_views_is_not_split_by_views",
           "rows/advice.py:_is_split", "return True", "return False"),
    Mutant("progress.py::test_records_have_the_same_keys_in_every_class",
           "anneal/schedule.py:History.add_step", '"repairs": step.repairs,', ""),
    Mutant("progress.py::test_verbose_1_prints_a_line_at_the_end_of_a_short_fit",
           "system/report.py:Progress.close", "print(self._line(self._unshown))", "pass"),
    Mutant("checkpoints.py::test_another_fit_is_refused",
           "anneal/journal.py:FileJournal._add", ") != given", ") is given"),
    Mutant("paths.py::test_a_file_that_is_no_checkpoint_stays",
           "anneal/journal.py:FileJournal.open", "not _is_checkpoint(self.path)", "self.resume"),
    Mutant("paths.py::test_a_file_that_is_read_is_no_output",
           "system/files.py:check_outputs", "_is_same(path, file)", "path == file"),
    Mutant("command_line.py::test_rows_have_the_same_labels_in_all_formats",
           "rows/table_files.py:_read", "frame.to_numpy(np.float64)", "frame.to_numpy(np.float32)"),
    Mutant("command_line.py::test_a_missing_package_is_named",
           "system/report.py:optional_module", "{why}: ", ""),
    Mutant("command_line.py::test_errors_are_one_line_and_leave_no_file",
           "system/files.py:check_output", "not device and any(", "False and any("),
    Mutant("command_line.py::test_a_first_line_is_names_without_a_number_and_otherwise_a_row",
           "rows/table_files.py:_has_names", "numbers.isna().all()", "numbers.isna().any()"),
    Mutant("command_line.py::test_an_index_is_left_out_with_a_warning",
           "rows/table_files.py:_named", "and not name.startswith(_UNNAMED)", ""),
    Mutant("command_line.py::test_words_and_gaps_are_clustered_as_by_the_preprocessor",
           "__main__.py:cluster", "[TablePreprocessor()] if words", "[StandardScaler()] if words"),
    Mutant("command_line.py::test_dates_are_refused_by_name",
           "rows/table_files.py:_columns_by_kind", '"dates" if dates', '"words" if dates'),
    Mutant("command_line.py::test_columns_of_other_names_or_another_order_are_refused",
           "__main__.py:predict", "if names != (", "if names == ("),
    Mutant("files.py::test_damaged_files_are_read_or_named",
           "rows/table_files.py:read_table", "except Exception as error",
           "except KeyError as error"),
    Mutant("model_files.py::test_a_model_is_the_same_after_a_round_trip",
           "model_files.py:Encoder._array", '"C" if rows else "F"', '"C"'),
    Mutant("model_files.py::test_a_save_that_fails_leaves_the_file_that_was_there",
           "system/files.py:whole_file", "os.unlink(part)", "os.unlink(place)"),
    Mutant("command_line.py::test_pickles_are_not_read",
           "rows/table_files.py:_read_array", 'np.load(path, mmap_mode="r", allow_pickle=False)',
           "np.load(path, allow_pickle=True)"),
    Mutant("partial_fit.py::test_saving_and_going_on_gives_the_same_bits",
           "model_files.py:Encoder.estimator", "if name not in parameters",
           'if name not in {*parameters, "_centroids"}'),
    Mutant("pickles.py::test_precomputed_kernels_are_not_kept",
           "spaces/kernels.py:FittedKernel.drop_matrix", "del self.x", "pass"),
    Mutant("pickles.py::test_pickles_of_other_versions_are_refused",
           "estimators/base.py:check_version", "parts[:shared] != own[:shared]", "False"),
]  # fmt: skip

# Of rules with tests of their own.
RULES = [
    Mutant("swaps.py::test_centroids_are_removed_where_their_rows_have_another_one_near",
           "anneal/swaps.py:_without_cheapest", " - nearest) * rows.weight", " - nearest)"),
    Mutant("swaps.py::test_a_level_is_compared_with_the_level_before_it",
           "anneal/feature_fit.py:FeatureData.later", "components=None, whole=None",
           "components=None"),
    Mutant("checkpoints.py::test_a_fit_goes_on_from_every_step",
           "anneal/kernel_fit.py:_weights_after_one_start",
           "kernels.context.journal.run(lambda state: (state, state.alpha.tolist()), state)[1]",
           "state.alpha"),
    Mutant("swaps.py::test_a_swap_removes_the_centroid_whose_loss_is_least",
           "anneal/swaps.py:_swap", "raised = weight * (", "raised = ("),
    Mutant("swaps.py::test_rows_are_drawn_by_cost_and_cluster_whatever_the_blocks",
           "anneal/swaps.py:_keyed", "row_keys(seed, block.begin,", "row_keys(seed, 0,"),
    Mutant("partial_fit.py::test_centroids_are_the_discounted_sums_of_all_batches",
           "estimators/partial.py:_sums_of_fit", "math.expm1(-rate)", "-math.expm1(-rate)"),
    Mutant("memberships.py", "anneal/decompositions.py:exponent_of_memberships",
           "rows.weight.astype(np.float64)", "np.ones(rows.n)"),
    Mutant("rare_cases.py::test_the_time_is_that_of_the_slowest_function_that_separates",
           "spaces/spectrum.py:Spectrum.separating_time", "k - 2", "k - 1"),
    Mutant("noise.py::test_a_share_is_one_of_the_weight",
           "choose/noise.py:share_threshold", "weight.sum()", "len(squares)"),
    Mutant("exact.py::test_weights_are_repetitions",
           "anneal/kernel_fit.py:_evaluated", "rows.p @ d[",
           "rows.p.mean() * np.ones(rows.n) @ d["),
    Mutant("random_parts.py::test_far_rows_of_merged_starts_follow_their_weights",
           "anneal/starts.py:_far_rows", "cost = p * (", "cost = ("),
    Mutant("random_parts.py::test_far_rows_of_merged_starts_follow_their_weights",
           "anneal/starts.py:_far_rows", "p * nearest", "nearest"),
    Mutant("random_parts.py::test_samples_are_uniform_and_those_with_weights_follow_them",
           "rows/sample.py:Opened._taken", "unit * (odds / -np.expm1(-odds * threshold))",
           "unit * odds"),
    Mutant("bounds.py::test_bounds_allow_for_the_rounding_of_distances",
           "anneal/hard_pass.py:bounds_of", "2 * errors(np.sqrt(nearest[part]))", "0.0"),
    Mutant("swaps.py::test_centroids_of_empty_clusters_move_to_the_rows_of_the_largest_weighted_costs",
           "anneal/steps.py:row_costs", "nearest * weight", "nearest"),
    Mutant("swaps.py::test_centroids_of_empty_clusters_move_to_the_rows_of_the_largest_weighted_costs",
           "anneal/steps.py:_costliest_of", "block.weight", "None"),
    Mutant("swaps.py::test_centroids_of_empty_clusters_move_to_the_rows_of_the_largest_weighted_costs",
           "anneal/steps.py:FeatureLevel._relocate", "own, rows.weight", "own, None"),
    Mutant("multiview.py::test_a_weight_of_a_reference_distance_counts_as_so_many_rows",
           "anneal/records.py:_median", "np.cumsum(weight[order]",
           "np.cumsum(0 * weight[order] + 1"),
    Mutant("famkkm.py::test_the_map_of_each_iteration_gives_the_rows_of_F",
           "fusion/famkkm.py:Alternation._update", "(self.lambda1 * P)", "(-self.lambda1 * P)"),
    Mutant("swaps.py::test_rows_are_drawn_by_cost_and_cluster_whatever_the_blocks",
           "anneal/swaps.py:_keyed", ' + of_cluster[found["labels"]]', ""),
    Mutant("selection.py::test_heights_are_ratios_of_the_costs_of_mergers",
           "choose/number.py:height_scores", "2 * place + 3", "2 * place + 2"),
    Mutant("local_passes.py::test_rows_that_bounds_decide_keep_their_labels",
           "anneal/hard_pass.py:_most_of_others",
           "np.where(near == np.arange(len(near))[:, None], 0, shifts[near]).max(axis=1)",
           "shifts"),
    Mutant("pass.py::test_core_agrees_with_its_twin_at_edges_of_tiles",
           "_core/sums.h:add_rows", "v[r] * p[col + r]", "v[r]"),
    Mutant("bounds.py::test_bounds_of_sparse_rows_allow_for_the_row_of_most_entries",
           "anneal/hard_pass.py:rounding_errors", "np.diff(rows.xs[0].indptr).max()",
           "np.diff(rows.xs[0].indptr).min()"),
    Mutant("directions.py::test_ties_within_rounding_are_decided_as_by_all_distances",
           "_core/bounds.h:make_bounded", "decide_ties(pr, t, &b);", "(void)decide_ties;"),
    Mutant("steps.py::test_costs_of_groups_of_four_rows_are_weighted",
           "_core/_steps.pyx:add_costs", "weight[i + lane] * min(", "min("),
    Mutant("local_passes.py::test_the_first_of_equals_is_the_nearest",
           "_core/near.h:near_choose", "here < number", "here > number"),
    Mutant("near_cells.py::test_the_search_is_that_of_its_twin",
           "_core/cells.h:keep_first", "c->bound[at] = low", "c->bound[at] = low * (real)0.9"),
    Mutant("tree.py::test_mergers_are_those_of_the_twin",
           "_core/_steps.pyx:merge", "= INFINITY, INFINITY, total", "= INFINITY, INFINITY, p[j]"),
]  # fmt: skip


def main() -> int:
    words = sys.argv[1:] or [""]
    chosen = [m for m in PROMISES + RULES if any(word in " ".join(m) for word in words)]
    compiled = [m for m in chosen if not m.path.endswith(".py")]
    interpreted = [m for m in chosen if m.path.endswith(".py")]
    os.environ |= {"CI": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        package = mutants.copied_package(folder)
        mutants.import_all_but_the_package()
        faults = faults_of(interpreted, folder, package)
        if compiled:
            sources = copied_core(folder)
            faults += faults_of(compiled, folder, sources, lambda: build_core(sources, package))
    print(f"{len(chosen) - len(faults)} of {len(chosen)} mutants are killed")
    return 1 if faults else 0


def faults_of(
    chosen: list[Mutant], folder: str, root: Path, build: Callable[[], object] = lambda: None
) -> list[str]:
    """Try mutants of files below `root`, of which `build` makes the package; return the faults."""
    build()
    tests = [*dict.fromkeys(mutant.test for mutant in chosen)]
    if tests and not passes(folder, tests, _ALL_SECONDS):
        print(fault := "the tests fail without a mutant")
        return [fault]
    return [fault for mutant in chosen for fault in tried(mutant, folder, root, build)]


def tried(mutant: Mutant, folder: str, root: Path, build: Callable[[], object]) -> list[str]:
    """Apply a mutant, build the package, run the test, and print and return what is wrong."""
    path = root / mutant.path
    source = path.read_text()
    try:
        path.write_text(applied(mutant, source))
        build()
        alive = passes(folder, [mutant.test], _SECONDS)
        fault = f"{mutant.test} passes" if alive else ""
    except (LookupError, subprocess.CalledProcessError) as error:
        fault = str(error)
    finally:
        path.write_text(source)
    if fault:
        print(f"{mutant.function}: {mutant.old!r} -> {mutant.new!r}: {fault}", flush=True)
    return [fault] * bool(fault)


def copied_core(folder: str) -> Path:
    """Copy the sources, configure a build of their core, and return the folder of the package.

    The build takes little time: it is not optimized, and has the two instruction sets that all
    processors of a family have.
    """
    root, copy = Path(__file__).parents[1], Path(folder, "sources")
    shutil.copytree(root / "src", copy / "src")
    for name in ("meson.build", "meson.options", "LICENSE"):
        shutil.copy(root / name, copy)
    options = copy / "src/rffpk/_core/meson.build"
    options.write_text(options.read_text().replace("-march=x86-64-v4", "-march=none"))
    meson = [sys.executable, "-m", "mesonbuild.mesonmain", "setup", "--buildtype=plain", "build"]
    subprocess.run(meson, cwd=copy, check=True, capture_output=True)
    return copy / "src/rffpk"


def build_core(sources: Path, package: Path) -> None:
    """Build what has changed of the core, and copy the modules into the package."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    modules = [f"src/rffpk/_core/{name}{suffix}" for name in _MODULES]
    built = sources.parents[1] / "build"
    subprocess.run(["ninja", "-C", built, *modules], check=True, capture_output=True)
    for module in modules:
        shutil.copy(built / module, package / "_core")


def passes(folder: str, tests: list[str], seconds: int) -> bool:
    return mutants.survives(folder, [f"tests/test_{test}" for test in tests], seconds, _DEFAULT)


def applied(mutant: Mutant, source: str) -> str:
    """Return the source with the mutant.

    Raises
    ------
    LookupError
        If there is no such function, or the text does not occur once in it.
    """
    name = mutant.function.partition(":")[2]
    begin, end = (lines_of if mutant.path.endswith(".py") else lines_in_core)(name, source)
    lines = source.splitlines(keepends=True)
    text = "".join(lines[begin:end])
    if text.count(mutant.old) != 1:
        raise LookupError(f"the text occurs {text.count(mutant.old)} times.")
    return "".join(lines[:begin]) + text.replace(mutant.old, mutant.new) + "".join(lines[end:])


def lines_of(name: str, source: str) -> tuple[int, int]:
    """Return where the function of a name, or the whole module, begins and ends."""
    node: ast.AST = ast.parse(source)
    for part in filter(None, name.split(".")):
        inside = [child for child in ast.walk(node) if getattr(child, "name", None) == part]
        if not inside:
            raise LookupError("there is no such function.")
        node = inside[0]
    if isinstance(node, ast.Module):
        return 0, len(source.splitlines())
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.end_lineno is not None
    return node.lineno - 1, node.end_lineno


def lines_in_core(name: str, source: str) -> tuple[int, int]:
    """Return where a function of C, or a function or class of Cython, begins and ends."""
    lines = source.splitlines()
    outside = [i for i, line in enumerate(lines) if line[:1] not in ("", " ", "{", "#")]
    for begin, end in zip(outside, [*outside[1:], len(lines)]):
        if re.search(rf"\b{name}[(:]", lines[begin]) and not lines[begin].endswith(";"):
            return begin, end
    raise LookupError(f"{name}: the source has no function or class of this name. Name another.")


if __name__ == "__main__":
    sys.exit(main())
