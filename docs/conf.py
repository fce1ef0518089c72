"""How Sphinx builds the site: `make docs`."""

import inspect
from typing import Any

from sphinx.application import Sphinx

from closerlook import __version__

project = "Closer Look"
version = release = __version__
html_title = f"{project} {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["results"]
suppress_warnings = ["ref.python"]  # `Space` is found under two names, closerlook.Space and that of its module

html_theme = "furo"  # fetches nothing: fonts are the system's
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"footer_icons": []}

myst_heading_anchors = 3  # '#how-fast', as on GitHub

default_role = "literal"  # docstrings write `names` in single backticks
maximum_signature_line_length = 100
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}


class Written:
    """An annotation as the source has it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def as_written(_: Sphinx, what: str, name: str, obj: Any, *more: Any) -> tuple[str | None, str | None]:
    """A signature with `ArrayLike` and `Clustering` where autodoc would give all that these stand for."""
    _, signature, returns = more
    if not signature or what not in {"class", "function", "method"}:
        return signature, returns
    found = inspect.signature(obj)
    parameters = [
        one.replace(annotation=Written(one.annotation)) if isinstance(one.annotation, str) else one
        for one in found.parameters.values()
        if one.name not in {"self", "cls"}
    ]
    gives = found.return_annotation if isinstance(found.return_annotation, str) and what != "class" else None
    return str(inspect.Signature(parameters)), gives


def leave_out(_: Sphinx, what: str, name: str, *more: Any) -> bool | None:
    """What scikit-learn adds to its estimators is described in its own manual."""
    return True if name == "set_score_request" else None


def setup(app: Sphinx) -> None:
    """Have both of these asked."""
    app.connect("autodoc-process-signature", as_written)
    app.connect("autodoc-skip-member", leave_out)
