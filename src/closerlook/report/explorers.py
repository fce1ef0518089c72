"""The explorers on the page of a study: which of them, and how many points of each, fit on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from closerlook.escaping import show_name
from closerlook.scatter.packing import cut, pack, unpack
from closerlook.study.explored import StoredExplorer

ASSETS = ("explorer.css", "plot.js", "explorer.js", "study_explorer.js")
"""The styles and scripts that a page with explorers needs, besides those of every page."""

MOST_BYTES = 1_400_000
"""Bytes that the points of all explorers take on a page, at most."""

FEWER_POINTS = (1500, 1000, 700, 500)
"""If not all points fit on the page, each explorer shows at most this many: the first number with which all fit."""


class ExplorerEntry(TypedDict):
    """An explorer as the page's script reads it; data: the id of the element with its points."""

    encoder: str
    task: str
    tuned_on: str
    seed: int
    layers: list[int]
    data: str


@dataclass(frozen=True)
class PageExplorers:
    """The explorers that are on a page, and those that did not fit. most: points of each, at most."""

    shown: list[StoredExplorer]
    left_out: list[StoredExplorer]
    most: int | None

    @property
    def entries(self) -> list[ExplorerEntry]:
        """What the page's script reads."""
        return [
            ExplorerEntry(
                encoder=show_name(one.encoder),
                task=show_name(one.task),
                tuned_on=show_name(one.tuned_on),
                seed=one.seed,
                layers=one.layers,
                data=f"points-{at}",
            )
            for at, one in enumerate(self.shown)
        ]

    @property
    def encoders(self) -> list[str]:
        """The encoders of the explorers on the page."""
        return list(dict.fromkeys(entry["encoder"] for entry in self.entries))

    @property
    def tasks(self) -> list[str]:
        """The tasks of the explorers on the page."""
        return list(dict.fromkeys(entry["task"] for entry in self.entries))

    @property
    def notes(self) -> list[str]:
        """What a reader must know about the points that are not shown."""
        notes = [
            f"{show_name(one.encoder)}, {show_name(one.task)}: {one.shown:,} of {one.examples:,} examples are shown"
            + (f"; clusters are those of a sample of {one.measured:,}." if one.measured < one.examples else ".")
            for one in self.shown
            if one.shown < one.examples
        ]
        if self.left_out:
            names = ", ".join(f"{show_name(one.encoder)} on {show_name(one.task)}" for one in self.left_out)
            limit = f"{MOST_BYTES / 1e6:g} MB"
            notes.append(f"Not on this page, because all points together take at most {limit}: {names}.")
        return notes


def fit_explorers(explorers: Sequence[StoredExplorer], most_bytes: int = MOST_BYTES) -> PageExplorers:
    """The explorers, with fewer points if they do not fit on a page; the last ones are left out if that is not enough.

    Points that explain the clusters are kept, since they come first.
    """
    shown, most = list(explorers), None
    for most in (None, *FEWER_POINTS):
        shown = [_with_points(one, most) for one in explorers]
        if sum(len(one.packed) for one in shown) <= most_bytes:
            break
    kept: list[StoredExplorer] = []
    room = most_bytes
    for one in shown:
        room -= len(one.packed)
        if room < 0 and kept:
            break
        kept.append(one)
    return PageExplorers(kept, shown[len(kept) :], most)


def _with_points(one: StoredExplorer, most: int | None) -> StoredExplorer:
    if most is None or one.shown <= most:
        return one
    return replace(one, shown=most, packed=pack(cut(unpack(one.packed), most)))
