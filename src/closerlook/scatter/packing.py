"""The data of shown points, packed into short texts, and cut to fewer points."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from closerlook.escaping import parse_json
from closerlook.geometry.frame import Integers
from closerlook.scatter.data import Json, encode


def pack(data: Json) -> str:
    """The data as base64 of compressed JSON; packed.js unpacks it."""
    return compress(write_json(data))


def write_json(value: object) -> str:
    """The value as JSON in one line, without spaces between its parts."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def compress(text: str) -> str:
    """Base64 of the compressed text, the same at any time."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def unpack(packed: str) -> Json:
    """The data of a packed text."""
    data: Json = parse_json(gzip.decompress(base64.b64decode(packed)))
    return data


def count_points(data: Json) -> int:
    """The number of points."""
    return len(_decode(data["label"], "<u2"))


def cut(data: Json, most: int) -> Json:
    """The data of the `most` points that come first in the order in which they were chosen."""
    rows = np.flatnonzero(_decode(data["rank"], "<u2") < most)
    if len(rows) == count_points(data):
        return data
    kinds = {"label": "<u2", "row": "<u4", "test": "u1", "rank": "<u2"}
    return data | {
        **{name: _take(data[name], kind, rows) for name, kind in kinds.items()},
        "word": _take_texts(data["word"], rows),
        "text": _take_texts(data["text"], rows),
        "layers": [_cut_layer(layer, rows) for layer in data["layers"]],
    }


def _cut_layer(layer: Json, rows: Integers) -> Json:
    return layer | {
        "nearest": [_take(one, "<u4", rows) for one in layer["nearest"]],
        "flags": [_take(one, "u1", rows) for one in layer["flags"]],
        "moved": layer["moved"] | {"at": [_take(one, "<u2", rows) for one in layer["moved"]["at"]]},
        "pca": _cut_plane(layer["pca"], rows),
        "umap": None if layer["umap"] is None else _cut_plane(layer["umap"], rows),
        "margins": [_cut_margin(margin, rows) for margin in layer["margins"]],
    }


def _cut_margin(margin: Json, rows: Integers) -> Json:
    own = _decode(margin["rows"], "<u4")
    kept = np.flatnonzero(np.isin(own, rows))
    return _cut_plane(margin, kept) | {"rows": encode(np.searchsorted(rows, own[kept]), "<u4")}


def _cut_plane(plane: Json, rows: Integers) -> Json:
    return plane | {"xy": [encode(_decode(one, "<u2").reshape(-1, 2)[rows], "<u2") for one in plane["xy"]]}


def _take_texts(texts: Json | None, rows: Integers) -> Json | None:
    if texts is None:
        return None
    used, at = np.unique(_decode(texts["at"], "<u4")[rows], return_inverse=True)
    kept: Json = {"texts": [texts["texts"][number] for number in used], "at": encode(at, "<u4")}
    if "marks" in texts:
        kept["marks"] = encode(_decode(texts["marks"], "<u4").reshape(-1, 4)[rows], "<u4")
    return kept


def _take(text: str, kind: str, rows: Integers) -> str:
    return encode(_decode(text, kind)[rows], kind)


def _decode(text: str, kind: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), kind)
