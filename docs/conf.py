"""Settings of Sphinx, which builds the pages and the reference: see CONTRIBUTING.md."""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = "Polyview"
author = "The Polyview developers"
copyright = author
extensions = [
    "myst_parser",
    "sphinx.ext.apidoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
apidoc_modules = [
    {
        "path": str(ROOT / "pipeline_lib"),
        "destination": "reference",
        "max_depth": 1,
        "module_first": True,
        "include_private": False,
        "automodule_options": {"members", "show-inheritance"},
    }
]
# Of optional groups, which documents are built without.
autodoc_mock_imports = ["onnxruntime", "sentence_transformers", "starlette", "uvicorn"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # pydantic writes its constraints into them
myst_heading_anchors = 3
html_theme = "furo"
html_title = project
html_show_copyright = False


def keep_first_line(_app: Sphinx, what: str, _name: str, _obj: object, *rest: object) -> None:
    """Begin a constant's text with a comment: Napoleon takes words before a colon for a type."""
    if what in ("data", "attribute"):
        rest[-1][:0] = ["..", ""]


def setup(app: Sphinx) -> None:
    """Show Mermaid's text where nothing draws it: that would need a script from elsewhere."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("autodoc-process-docstring", keep_first_line, priority=400)
