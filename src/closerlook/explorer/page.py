"""The page of an explorer, and its data: positions in 16 bits, and every word and text once."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from closerlook.escaping import HIDDEN, show_name
from closerlook.explorer.clusters import Measured
from closerlook.explorer.series import Context, Marks
from closerlook.explorer.views import Gap, Plane
from closerlook.geometry.frame import Integers
from closerlook.report.page import render
from closerlook.report.tables import Table, text_columns
from closerlook.representations.atomic import atomic_write

if TYPE_CHECKING:
    from closerlook.explorer.explorer import Explorer
    from closerlook.explorer.layers import Layer, Margin

ASSETS = ("page.css", "explorer.css", "page.js", "plot.js", "explorer.js")
LONGEST_TEXT = 2000
"""Characters of a text that are on the page; the page shows the part around the word."""

FRAME_HEIGHT = 900
BLOCKS, CONFLICT, WRONG = 1, 2, 4
"""The bits of a point's flags; plot.js reads them."""

Json = dict[str, Any]


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
        explorers=[explorer_data(explorer)],
        settings=_settings_table(explorer),
        specs={},
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


# ---- data ----


def explorer_data(explorer: Explorer) -> Json:
    """Everything that plot.js and explorer.js need, for JSON. Arrays are base64 of little-endian numbers."""
    numbers = {name: at for at, name in enumerate(explorer.names)}
    codes = np.array([numbers[str(label)] for label in explorer.labels], np.int64)
    counts = np.bincount(codes, minlength=len(explorer.names))
    return {
        "title": show_name(explorer.title),
        "snapshots": [show_name(name) for name in explorer.snapshots],
        "labels": [show_name(name) for name in explorer.names],
        "order": np.argsort(-counts, kind="stable").tolist(),
        "label": encode(codes, "<u2"),
        "row": encode(explorer.rows - explorer.is_test * int(explorer.settings["train points"]), "<u4"),
        "test": encode(explorer.is_test, "u1"),
        "word": None if explorer.words is None else _texts(explorer.words),
        "text": None if explorer.context is None else _context(explorer.context),
        "layers": [_layer(layer, explorer.rows, numbers) for layer in explorer.layers],
    }


def _layer(layer: Layer, rows: Integers, numbers: dict[str, int]) -> Json:
    return {
        "number": layer.number,
        "clusters": [
            {
                "label": encode([numbers[label] for label in measured.labels], "<u2"),
                "size": encode(measured.sizes, "<u4"),
                "separable": measured.separable,
                "radius": measured.radius,
            }
            for measured in layer.measured
        ],
        "nearest": [encode(measured.nearest[rows], "<u4") for measured in layer.measured],
        "flags": [encode(_flags(measured)[rows], "u1") for measured in layer.measured],
        "moved": _numbers(layer.moved),
        "pca": _plane(layer.pca),
        "umap": None if layer.umap is None else _plane(layer.umap),
        "margins": [_margin(margin, layer.measured) for margin in layer.margins],
    }


def _flags(measured: Measured) -> Integers:
    bits = ((measured.blocks, BLOCKS), (measured.conflicts, CONFLICT), (measured.wrong, WRONG))
    return np.asarray(np.sum([flags * bit for flags, bit in bits], axis=0), np.int64)


def _plane(plane: Plane) -> Json:
    """Positions as whole numbers from 0 to 65535, from the smallest to the largest of all snapshots on each axis."""
    low, high = plane.xy.min(axis=(0, 1)), plane.xy.max(axis=(0, 1))
    span = np.where(high > low, high - low, 1.0)
    steps = np.rint((plane.xy - low) / span * 65535)
    return {
        "low": low.tolist(),
        "span": span.tolist(),
        "xy": [encode(snapshot, "<u2") for snapshot in steps],
        "explained": plane.explained,
    }


def _numbers(values: np.ndarray[Any, Any]) -> Json:
    most = float(values.max()) or 1.0
    return {"most": most, "at": [encode(np.rint(row / most * 65535), "<u2") for row in values]}


def _margin(margin: Margin, measured: Sequence[Measured]) -> Json:
    return {
        "first": show_name(margin.first),
        "second": show_name(margin.second),
        "rows": encode(margin.rows, "<u4"),
        **_plane(margin.plane),
        "gaps": [_gap(gap, own.radius) for gap, own in zip(margin.gaps, measured, strict=True)],
    }


def _gap(gap: Gap, radius: float) -> Json:
    return {
        "verdict": gap.verdict,
        "distance": gap.distance,
        "radii": gap.distance / radius if radius else None,
        "edge": gap.edge,
    }


def _texts(texts: Sequence[str]) -> Json:
    """Each different text once, and the number of each point's text. Hidden characters become U+FFFD."""
    numbers: dict[str, int] = {}
    at = [numbers.setdefault(HIDDEN.sub("\ufffd", text[:LONGEST_TEXT]), len(numbers)) for text in texts]
    return {"texts": list(numbers), "at": encode(at, "<u4")}


def _context(context: Context) -> Json:
    """The texts, and the first and second marked part of each point's text: start and stop, 0 and 0 for none."""
    marks = [_units(context.texts[text], own) for text, own in zip(context.text.tolist(), context.marks, strict=True)]
    packed = _texts([context.texts[at] for at in context.text])
    return packed | {"marks": encode(marks, "<u4")}


def _units(text: str, marks: Marks) -> list[int]:
    """The marks of a text in units of UTF-16, as JavaScript counts; those after LONGEST_TEXT are left out."""
    known = [mark for mark in marks[:2] if mark[1] <= LONGEST_TEXT]
    places = [place for mark in known for place in mark]
    if not text.isascii():
        places = [place + sum(ord(character) > 0xFFFF for character in text[:place]) for place in places]
    return (places + [0] * 4)[:4]


def encode(values: ArrayLike, kind: str) -> str:
    """Numbers as base64 of little-endian numbers of a numpy type, such as '<u2'."""
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()
