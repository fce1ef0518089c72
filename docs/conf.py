"""Configuration of Sphinx, which builds the documentation site: `make docs`."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from sphinx.application import Sphinx

from closerlook import __version__

sys.path.insert(0, str(Path(__file__).parent))  # charts.py

project = "Closer Look"
version = release = __version__
html_title = f"{project} {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "charts"]
exclude_patterns = ["results"]
suppress_warnings = ["ref.python"]  # `Space` has two names: closerlook.Space and the one in its module

html_theme = "furo"  # loads nothing from the network: it uses system fonts
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


class SourceAnnotation:
    """An annotation that prints as its source text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def short_signature(
    _: Sphinx, what: str, name: str, documented: Callable[..., object], *details: object
) -> tuple[object, object]:
    """A signature with type aliases such as `ArrayLike`, which autodoc would replace by their long definitions."""
    _, signature, returns = details
    if not signature or what not in {"class", "function", "method"}:
        return signature, returns
    written = inspect.signature(documented)
    parameters = [
        parameter.replace(annotation=SourceAnnotation(parameter.annotation))
        if isinstance(parameter.annotation, str)
        else parameter
        for parameter in written.parameters.values()
        if parameter.name not in {"self", "cls"}
    ]
    has_return_text = isinstance(written.return_annotation, str) and what != "class"
    return str(inspect.Signature(parameters)), written.return_annotation if has_return_text else None


def skip_inherited(_: Sphinx, what: str, name: str, *details: object) -> bool | None:
    """Skip the method that scikit-learn adds to its estimators: its own manual describes it."""
    return True if name == "set_score_request" else None


def setup(app: Sphinx) -> None:
    """Register both functions with Sphinx."""
    app.connect("autodoc-process-signature", short_signature)
    app.connect("autodoc-skip-member", skip_inherited)
