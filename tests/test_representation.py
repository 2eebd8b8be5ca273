"""The HTML representation links to the documentation if the package says where it is."""

from email.message import Message

import pytest
from sklearn.utils import estimator_html_repr

import rffpk


@pytest.mark.parametrize("model", [rffpk.PowerKMeans(3), rffpk.SMKC(), rffpk.DiffusionMap()])
def test_the_representation_links_to_the_page_of_the_class(model, monkeypatch):
    metadata = Message()
    metadata["Project-URL"] = "Source, https://example.org/code"
    monkeypatch.setattr("rffpk.estimators.base.metadata", lambda name: metadata)
    assert "example.org" not in estimator_html_repr(model)
    metadata["Project-URL"] = "Documentation, https://example.org/docs/"
    page = f"https://example.org/docs/generated/rffpk.{type(model).__name__}.html"
    assert f'href="{page}"' in estimator_html_repr(model)
