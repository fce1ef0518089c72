"""Can the divergence of train and test be foreseen? The similarity of parts of train beside that of train and test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from closerlook.geometry.split_halves import Prediction, predictiveness
from closerlook.report.tables import Column, Measured, Table, Value, show_number
from closerlook.study.readings import Results

if TYPE_CHECKING:
    import pandas as pd

LEAST = 6
"""Pairs of encoder and task below which nothing is said, and no interval is given."""

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
        rows = rows[
            (rows.split == "train") & ((rows.tuned_on == "") | ((rows.tuned_on == rows.task) & rows["is_final"]))
        ]
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
    return {state: _prediction(rows, part) for state, rows in states.items()}


def _prediction(data: pd.DataFrame, part: str = "halves") -> Prediction:
    """Layers and seeds of one encoder on one task are no witnesses of their own; they are drawn, left out together."""
    return predictiveness(data[part], data.similarity, groups=[*(data.encoder + "\n" + data.task)])


def foresight_table(results: Results) -> Table:
    """The predictions: correlation with its interval, and the error beside that of the mean alone."""
    data = foresight_data(results)
    rows: list[tuple[Value, ...]] = []
    for part, title in PARTS.items():
        for state, one in predictions(data, part).items():
            if one.groups >= 3:
                low, high = one.spearman_interval
                known = one.groups >= LEAST and math.isfinite(low)
                spearman = Measured(one.spearman, None, low, high) if known else one.spearman
                values = (spearman, one.pearson, one.difference, one.error, one.baseline)
                rows.append((title, state, one.n, one.groups, *values))
    columns = (
        *(Column("train in", left=True), Column("state", left=True), Column("spaces"), Column("pairs")),
        *(Column("Spearman"), Column("Pearson"), Column("mean difference", digits=3)),
        *(Column("of a line", "error", 3), Column("of the mean", "error", 3)),
    )
    note = (
        "Over all spaces (encoder, task, layer, state, seed) that have both similarities. Those of one pair of encoder "
        f"and task belong together. Spearman: with its 95% interval over pairs drawn again, from {LEAST} pairs on. "
        "Error: the root mean square error for a pair left out, of a line through the others and of their mean."
    )
    return Table("foresight", "From train alone", note, columns, tuple(rows))


def foresight_words(results: Results) -> str:
    """What the predictions mean, in a sentence; nothing where parts of train were not compared.

    It is about spaces after fine-tuning, where there are any: that these differ from those before would look like
    foresight.
    """
    data = foresight_data(results)
    if data.empty:
        return ""
    state = "after" if (data.state == "after").any() else "before"
    one = _prediction(data[data.state == state])
    pairs = f"{one.groups} {'pair' if one.groups == 1 else 'pairs'} of encoder and task"
    told = f"Over {one.n} {'space' if one.n == 1 else 'spaces'} {state} fine-tuning, of {pairs}"
    if one.groups < LEAST:
        return (
            f"{told}, both similarities are known; {LEAST} pairs are needed to say whether halves of train foretell "
            f"how far {results.compared} diverges."
        )
    low, high = one.spearman_interval
    if not math.isfinite(low):
        return f"{told}, too many similarities are equal to say whether one foretells the other."
    spearman, *ends = (show_number(value, Column("")) for value in (one.spearman, low, high))
    told += (
        f", the similarity of the halves of train orders that of train and {results.compared} with a Spearman "
        f"correlation of {spearman} (95% interval {ends[0]} to {ends[1]}); for a pair that was left out, a line "
        f"through the others errs by {one.error:.3f}, their mean by {one.baseline:.3f}."
    )
    if low > 0 and one.error < one.baseline:
        return f"{told} So the divergence can be foreseen, in part, without test examples."
    if low > 0:
        return f"{told} So halves tell which spaces diverge more, not by how much."
    return f"{told} So in this study halves of train do not foretell the divergence."
