"""Can the divergence of train and test be foreseen? The similarity of parts of train beside that of train and test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from closerlook.geometry.halves import Prediction, predictiveness
from closerlook.report.tables import Column, Measured, Table, Value, show_number
from closerlook.study.readings import Results

if TYPE_CHECKING:
    import pandas as pd

LEAST = 6
"""Spaces below which nothing is said, and no interval is given."""

PARTS = {"halves": "halves", "folds": "folds beside the rest"}
STATES = ("before", "after", "both")
PLACE = ["encoder", "task", "layer", "tuned_on", "seed", "step"]


def foresight_data(results: Results) -> pd.DataFrame:
    """Tidy, a row for each space with both: encoder, task, layer, state, seed, halves, low, high, folds, similarity.

    An encoder as it came is there once, not again as the start of each fine-tuning.
    """
    import pandas as pd

    parts = {"similarity": f"similarity_train_{results.compared}", **{part: f"similarity_{part}" for part in PARTS}}
    found = None
    for name, measure in parts.items():
        rows = results.of(measure)
        rows = rows[(rows.split == "train") & ((rows.tuned_on == "") | ((rows.tuned_on == rows.task) & rows["last"]))]
        kept = ["value", "ci_low", "ci_high"] if name == "halves" else ["value"]
        part = rows[PLACE + kept].rename(columns={"value": name, "ci_low": "low", "ci_high": "high"})
        part = part[part[name].notna()].drop_duplicates(PLACE)
        found = part if found is None else found.merge(part, on=PLACE, how="left" if name == "folds" else "inner")
    data = pd.DataFrame(found)
    data["state"] = ["after" if tuned else "before" for tuned in data.tuned_on]
    columns = ["encoder", "task", "layer", "state", "seed", "halves", "low", "high", "folds", "similarity"]
    order = {name: {key: at for at, key in enumerate(keys)} for name, keys in _orders(results).items()}
    data = data.sort_values(
        ["encoder", "task", "layer", "state", "seed"],
        key=lambda column: column.map(order.get(str(column.name), {})) if column.name in order else column,
        ignore_index=True,
    )
    return data[columns]


def _orders(results: Results) -> dict[str, tuple[str, ...]]:
    return {"encoder": results.encoders, "task": results.tasks, "state": ("before", "after")}


def predictions(data: pd.DataFrame, part: str = "halves") -> dict[str, Prediction]:
    """How well the similarity of parts of train predicts that of train and test: before, after, and over both."""
    states = {state: data if state == "both" else data[data.state == state] for state in STATES}
    return {state: predictiveness(rows[part], rows.similarity) for state, rows in states.items()}


def foresight_table(results: Results) -> Table:
    """The predictions: correlation with its interval, and the error beside that of the mean alone."""
    data = foresight_data(results)
    rows: list[tuple[Value, ...]] = []
    for part, title in PARTS.items():
        for state, one in predictions(data, part).items() if len(data) >= LEAST else ():
            if one.n >= 3:
                low, high = one.spearman_interval
                known = one.n >= LEAST and math.isfinite(low)
                spearman = Measured(one.spearman, None, low, high) if known else one.spearman
                rows.append((title, state, one.n, spearman, one.pearson, one.difference, one.error, one.baseline))
    columns = (
        *(Column("train in", left=True), Column("state", left=True), Column("spaces")),
        *(Column("Spearman"), Column("Pearson"), Column("mean difference", digits=3)),
        *(Column("of a line", "error", 3), Column("of the mean", "error", 3)),
    )
    note = (
        "Over all spaces (encoder, task, layer, state, seed) that have both similarities. Spearman: with its 95% "
        f"interval over spaces drawn again, which takes them to be independent, from {LEAST} spaces on. Error: the "
        "root mean square error for a space that was left out, of a line through the others and of their mean."
    )
    return Table("foresight", "From train alone", note, columns, tuple(rows))


def foresight_words(results: Results) -> str:
    """What the predictions mean, in a sentence; nothing where parts of train were not compared."""
    data = foresight_data(results)
    if data.empty:
        return ""
    if len(data) < LEAST:
        return (
            f"{len(data)} {'space has' if len(data) == 1 else 'spaces have'} both similarities; {LEAST} are needed to "
            "say whether one foretells the other."
        )
    one = predictiveness(data.halves, data.similarity)
    low, high = one.spearman_interval
    if not math.isfinite(low):
        return f"Over {one.n} spaces, too many similarities are equal to say whether one foretells the other."
    spearman, *ends = (show_number(value, Column("")) for value in (one.spearman, low, high))
    told = (
        f"Over {one.n} spaces the similarity of the halves of train orders that of train and {results.compared} with a "
        f"Spearman correlation of {spearman} (95% interval {ends[0]} to {ends[1]}); a line through it errs by "
        f"{one.error:.3f}, the mean of the other spaces by {one.baseline:.3f}."
    )
    if low > 0 and one.error < one.baseline:
        return f"{told} So the divergence can be foreseen, in part, without test examples."
    if low > 0:
        return f"{told} So halves tell which spaces diverge more, not by how much."
    return f"{told} So in this study halves of train do not foretell the divergence."
