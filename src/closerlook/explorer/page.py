"""The page of an explorer."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.escaping import show_name
from closerlook.report.page import render
from closerlook.report.tables import Table, text_columns
from closerlook.representations.atomic import atomic_write
from closerlook.scatter.data import scatter_data

if TYPE_CHECKING:
    from closerlook.explorer.explorer import Explorer

ASSETS = ("page.css", "explorer.css", "page.js", "plot.js", "explorer.js")
FRAME_HEIGHT = 900


def write_page(explorer: Explorer, path: str | Path) -> Path:
    """Write the page to `path`, and return the absolute path."""
    out = Path(path).expanduser().absolute()
    with atomic_write(out) as stream:
        stream.write(make_page(explorer).encode())
    return out


def make_page(explorer: Explorer) -> str:
    """The page as HTML."""
    return render(
        "explorer.html.j2",
        assets=ASSETS,
        charts=False,
        title=show_name(explorer.title),
        explorer=explorer,
        settings=_settings_table(explorer),
        data={"points": scatter_data(explorer.scatter)},
    )


def frame(explorer: Explorer) -> str:
    """The page inside a frame, for notebooks."""
    page = escape(make_page(explorer), quote=True)
    return (
        f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" title="{escape(explorer.title)}" '
        f'style="width:100%;height:{FRAME_HEIGHT}px;border:0"></iframe>'
    )


def _settings_table(explorer: Explorer) -> Table:
    rows = tuple(
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in explorer.settings.items()
        if value not in (None, [])
    )
    return Table("settings", "Settings", "What is shown, and how it was made.", text_columns("setting", "value"), rows)
