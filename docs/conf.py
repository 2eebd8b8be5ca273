"""Configuration of the documentation: `sphinx-build -W docs build/docs`."""

import os

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
}

html_theme = "furo"
html_title = f"rffpk {version}"
