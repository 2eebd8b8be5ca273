"""Configuration of the documentation: `sphinx-build -W docs build/docs`."""

import os
import re

os.environ.setdefault("MPLBACKEND", "agg")

from rffpk import __version__

project = "rffpk"
author = "the rffpk developers"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autosummary_generate = True
default_role = "py:obj"  # names in docstrings become links where they are known
autodoc_typehints = "none"
exclude_patterns = ["gallery/*"]
suppress_warnings = ["config.cache", "myst.xref_missing"]  # links to files of the repository

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "min_reported_time": 1000,
    "show_memory": False,
    "capture_repr": (),  # what scripts print is shown, not the value of the last line
}

html_theme = "furo"
html_title = f"rffpk {version}"


def quote_attributes(app, what, name, obj, options, lines):
    """Mark names such as labels_ as code: they are no references of reStructuredText.

    numpydoc runs before: the heads of its descriptions are bold, and no references either.
    """
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(
                r"\*\*.*?\*\*|(?<![\w`.*])([A-Za-z]\w*_)(?![\w`*(\[{])",
                lambda found: f"``{found[1]}``" if found[1] else found[0],
                line,
            )


def link_pages(app, what, name, obj, options, lines):
    """Turn the paths of pages in docstrings into links with the titles of the pages."""
    for i, line in enumerate(lines):
        lines[i] = re.sub(r"``docs/([\w/-]+)\.md``", r":doc:`/\1`", line)


def setup(app):
    app.connect("autodoc-process-docstring", quote_attributes, priority=600)
    app.connect("autodoc-process-docstring", link_pages, priority=700)
