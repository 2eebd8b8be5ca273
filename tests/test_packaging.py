"""Versions and dependencies agree in all files of the repository."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "packaging" / "conda" / "recipe.yaml"
pytestmark = pytest.mark.skipif(not RECIPE.exists(), reason="only in the repository")


def section(name):
    """Return the entries of a list of the recipe, without spaces."""
    text = re.search(rf"^ +{name}:\n((?: +- .*\n)+)", RECIPE.read_text(), re.MULTILINE)[1]
    return {line.strip().removeprefix("- ").replace(" ", "") for line in text.splitlines()}


def test_the_recipe_agrees_with_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = f"python{project['project']['requires-python']}"
    assert section("run") == {*project["project"]["dependencies"], python}
    assert section("host") == {*project["build-system"]["requires"], "python", "pip"}


def test_every_extra_that_is_named_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    found = re.findall(r"(?:rffpk|'\.)\[(\w+)\]'", "".join(path.read_text() for path in texts))
    named = {"plot", "dask", "qp", "parquet", "polars", "bertopic"}
    assert named <= {*found} <= project["optional-dependencies"].keys()


def test_the_version_is_that_of_the_recipe_the_citation_and_the_changelog():
    version = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text())[1]
    assert f"\n  version: {version}\n" in RECIPE.read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    date = re.search(r"^date-released: (.*)$", citation, re.MULTILINE)[1]
    assert f"\nversion: {version}\n" in citation
    assert f"## {version} ({date})" in (ROOT / "CHANGELOG.md").read_text().splitlines()
