"""Sphinx's settings. `sphinx-build -c docs . build/site` (extra [docs]) writes the documentation to build/site.

The source folder is the repository, so that pages under docs/ can link to results, benchmarks and instances, both here
and on the site. `docs/index.md` is the first page; build/site/index.html leads to it.
"""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject

from milpbn.version import __version__

project = "milpbn"
author = "The milpbn developers"
copyright = "2026, The milpbn developers"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
include_patterns = [
    "docs/**",
    "results/README.md",
    "results/speed.md",
    "results/*/README.md",
    "results/learners/*.md",
    "results/missing/parameters.md",
    "results/reliability/*.md",
    "benchmarks/README.md",
    "instances/README.md",
]
root_doc = "docs/index"
templates_path = ["_templates"]
html_additional_pages = {"index": "start.html"}  # the folder of the site opens at the first page

html_theme = "furo"
html_title = f"milpbn {__version__}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # pages that scripts write begin with a second heading
nb_execution_mode = "off"  # the notebooks are kept with their output; tests execute them

default_role = "py:obj"  # names between single backticks are code, and links where the reference has them
autodoc_typehints = "none"  # the docstrings have the types
autodoc_member_order = "bysource"
autodoc_default_options = {
    # written by scikit-learn for every estimator, with references to its own site
    "exclude-members": "set_fit_request, set_predict_request, set_score_request, set_transform_request"
}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True


def _mathml(display: str) -> Any:
    def visit(self: Any, node: Any) -> None:
        self.body.append(convert(node.astext(), display=display))
        raise SkipNode

    return visit


def setup(app: Sphinx) -> None:
    """Write formulas as MathML, which browsers show without a script and without another server.

    Attributes of objects get this heading; Sphinx's "Variables" are something else here.
    """
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.add_html_math_renderer("mathml", (_mathml("inline"), None), (_mathml("block"), None))
