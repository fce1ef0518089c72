"""Data and scripts inside a page: compressed, or escaped so that no text can end the element that contains it."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from functools import cache

from closerlook.report.figures.figure import Specification
from closerlook.scatter.packing import compress, write_json

CHART_LIBRARY = "chart-library"
"""The name under which the data of a page have the chart library."""


def pack_data(data: Mapping[str, object]) -> str:
    """The data of a page as base64 of compressed text, which packed.js unpacks; base64 has no characters of markup.

    The text has one line for each entry: its name, which has no space, a space, and its JSON. So the page can parse
    each entry when it needs it.
    """
    return compress("\n".join(f"{name} {write_json(value)}" for name, value in data.items()))


def pack(spec: Specification) -> Specification:
    """A chart with its datasets by column and each text once, which takes a fifth of the space."""
    packed = {name: _columns(rows) for name, rows in spec.get("datasets", {}).items()}
    return {**spec, "datasets": packed}


def _columns(rows: list[dict[str, object]]) -> dict[str, object]:
    names = list(rows[0]) if rows else []
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[object]) -> object:
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    positions = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    return {"texts": list(positions), "at": [positions[text] for text in texts]}


@cache
def runtime() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script for all charts of a page; it defines `vegaEmbed` and `vega`."""
    import vl_convert

    bundle = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed; window.vega = vega;"))
    return f"(function(){{{bundle}}})();"


def safe_script(code: str) -> str:
    """Code for a script element: `</script` and `<!--`, which JavaScript has in texts only, are escaped."""
    return code.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def script_hash(code: str) -> str:
    """The hash by which a content security policy allows a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
