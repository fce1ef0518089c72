"""The Sphinx directive `chart`: shows Python code, and below it the chart that its last expression returns.

The code of one page shares its names and runs in the root of the repository, in the order of the page.
"""

import ast
import logging
import os
from contextlib import chdir
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import vl_convert
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from closerlook import show_progress

ROOT = Path(__file__).parents[1]
NAMES = "names of charts"
"""The entry of Sphinx's data of a page that has the names of its code."""


class Chart(SphinxDirective):
    """Python code and its chart. The argument describes the chart to those who cannot see it."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The code, and the chart if the last line is an expression."""
        code = "\n".join(self.content)
        shown = nodes.literal_block(code, code, language="python")
        try:
            chart = self._execute(ast.parse(code))
        except Exception as error:
            raise self.error(f"the code of a chart failed: {type(error).__name__}: {error}") from error
        if chart is None:
            return [shown]
        if not self.arguments:
            raise self.error("a chart has no description; expected one after the name of the directive")
        return [shown, self._picture(chart, self.arguments[0])]

    def _execute(self, code: ast.Module) -> Any:
        """The value of the last line, or None if it is no expression."""
        names: dict[str, Any] = self.env.temp_data.setdefault(NAMES, {})
        last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
        with chdir(ROOT):
            exec(compile(code, self.env.docname, "exec"), names)  # noqa: S102 - the code of our own pages
            if isinstance(last, ast.Expr):
                return eval(compile(ast.Expression(last.value), self.env.docname, "eval"), names)  # noqa: S307
        return None

    def _picture(self, chart: Any, description: str) -> nodes.raw:
        """The chart as an image, which is a link to the same image in its full size."""
        number = self.env.new_serialno("chart")
        image = Path("_images") / f"{self.env.docname.replace('/', '-')}-{number}.svg"
        file = Path(self.env.app.outdir) / image
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(vl_convert.vegalite_to_svg(chart.to_dict()), encoding="utf-8")
        address = "../" * self.env.docname.count("/") + image.as_posix()
        html = f'<a class="chart" href="{address}"><img src="{address}" alt="{escape(description)}" loading="lazy"></a>'
        return nodes.raw("", html, format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive; the vectors that its code computes are removed at the end, and it prints no notes."""
    store = TemporaryDirectory()
    os.environ["CLOSERLOOK_STORE"] = store.name
    app.connect("build-finished", lambda *_: store.cleanup())
    show_progress(False)
    logging.getLogger("closerlook").setLevel(logging.WARNING)
    app.add_directive("chart", Chart)
    return {"parallel_read_safe": True}
