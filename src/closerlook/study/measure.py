"""`Measure`: what readers of a study's table must know about one measure. `registry` lists all measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Rows = Literal["space", "label", "label pair", "probe size", "merge", "setting"]
"""What one row of a measure is about: a whole space, a label, two labels, a size of probe, a blocked merge, or a value
of a setting."""

Archive = Literal["all", "last layer", "ends of last layer", "none"]
"""Which rows an archive keeps: all; those of the last layer; of these, only those of train before and after
fine-tuning; or none."""


@dataclass(frozen=True)
class Measure:
    """One measure: its name in the table and everything that readers of the table must know about it.

    title: its name on the page. meaning: one line for a reader who does not know it. digits: decimals shown. scale: the
    factor from the table to the page (100 for percentages). group: the part of the page's table of shape measures
    that shows it; empty: none. rows: what one row is about. on_test: whether it belongs to the split it was tested on
    rather than to train. compares: whether it compares two spaces, so that its name in the table ends in what was
    compared (similarity_train_test). training_only: whether it compares only snapshots of a fine-tuning with
    the start; its name then has no such ending. null: the name of the measure whose _null_mean and _null_sd repeat it
    with shuffled labels; empty if that is this measure itself. archive: which rows an archive keeps.

    >>> from closerlook.study.registry import measure
    >>> accuracy = measure("accuracy")
    >>> accuracy.title, accuracy.scale, accuracy.on_test
    ('accuracy, %', 100.0, True)
    """

    name: str
    title: str
    meaning: str
    digits: int = 2
    scale: float = 1.0
    group: str = ""
    rows: Rows = "space"
    on_test: bool = False
    compares: bool = False
    training_only: bool = False
    null: str = ""
    archive: Archive = "all"
