"""Tests whether the similarity of two parts of the train split predicts the similarity of train and test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from closerlook.geometry.split_halves import Prediction, predictiveness
from closerlook.report.tables import Column, Table, Value, count_of, show_number, text_columns
from closerlook.study.readings import Measurement, Results, own_ends

if TYPE_CHECKING:
    import pandas as pd

MINIMUM_PAIRS = 6
"""With fewer pairs of encoder and task than this, no conclusion and no confidence interval is given."""

PARTS = {"halves": "split halves", "folds": "one fold and the rest"}
STATES = ("before", "after", "both")
PLACE = ["encoder", "task", "layer", "tuned_on", "seed", "step"]


SHOWN = ["encoder", "task", "layer", "state", "seed", "halves", "low", "high", "folds", "similarity"]


def split_half_data(results: Results) -> pd.DataFrame:
    """A row for each space with both similarities: encoder, task, layer, state, seed, halves, low, high, folds,
    similarity.

    A pretrained encoder appears once, not again as step 0 of each fine-tuning run.
    """
    return _data(results)[SHOWN]


def _data(results: Results) -> pd.DataFrame:
    """The rows of `split_half_data`, with one more column for each random split into halves: 'split 0', 'split 1', …"""
    import pandas as pd

    measures = {"similarity": f"similarity_{results.train_test}", **{part: f"similarity_{part}" for part in PARTS}}
    merged = None
    for name, measure in measures.items():
        rows = results.of(measure)
        rows = rows[(rows.split == "train") & ((rows.tuned_on == "") | own_ends(rows))]
        kept = ["value", "ci_low", "ci_high"] if name == "halves" else ["value"]
        part = rows[PLACE + kept].rename(columns={"value": name, "ci_low": "low", "ci_high": "high"})
        part = part[part[name].notna()].drop_duplicates(PLACE)
        merged = part if merged is None else merged.merge(part, on=PLACE, how="left" if name == "folds" else "inner")
    data = pd.DataFrame(merged).merge(_single_splits(results), on=PLACE, how="left")
    data["state"] = ["after" if tuned else "before" for tuned in data.tuned_on]
    names = {"encoder": results.encoders, "task": results.tasks, "state": ("before", "after")}
    order = {column: {name: at for at, name in enumerate(known)} for column, known in names.items()}
    return data.sort_values(
        ["encoder", "task", "layer", "state", "seed"],
        key=lambda column: column.map(order[str(column.name)]) if column.name in order else column,
        ignore_index=True,
    )


def _single_splits(results: Results) -> pd.DataFrame:
    """The similarity of two halves of each space in each random split; earlier versions kept only the mean."""
    rows = results.of("similarity_halves_split").drop_duplicates([*PLACE, "text"])
    wide = rows.pivot(index=PLACE, columns="text", values="value")
    wide.columns = [f"{SPLIT} {number}" for number in wide.columns]
    return wide.reset_index()


SPLIT = "split"


def predictions(data: pd.DataFrame, part: str = "halves") -> dict[str, Prediction]:
    """How well the similarity of parts of train predicts the train–test similarity: before, after, and both."""
    states = {state: data if state == "both" else data[data.state == state] for state in STATES}
    return {state: _predict(rows, part) for state, rows in states.items()}


def _predict(data: pd.DataFrame, part: str = "halves") -> Prediction:
    """One prediction; layers and seeds of an encoder on a task are not independent, so they are resampled together."""
    splits = [name for name in data.columns if name.startswith(f"{SPLIT} ")] if part == "halves" else []
    return predictiveness(
        data[part].to_numpy(),
        data.similarity.to_numpy(),
        groups=[*(data.encoder + "\n" + data.task)],
        splits=data[splits].to_numpy(float),
    )


def split_halves_table(results: Results) -> Table:
    """How well parts of train predict the train–test similarity: correlations, and errors of a fit and of the mean."""
    data = _data(results)
    rows: list[tuple[Value, ...]] = []
    for part, title in PARTS.items():
        for state, prediction in predictions(data, part).items():
            if prediction.groups >= 3 and (results.all_runs or state == "before"):
                low, high = prediction.spearman_interval
                has_interval = prediction.groups >= MINIMUM_PAIRS and math.isfinite(low)
                spearman = Measurement(prediction.spearman, low, high) if has_interval else prediction.spearman
                values = (spearman, prediction.pearson, prediction.difference, prediction.error, prediction.baseline)
                splits = prediction.splits or None
                rows.append((title, state, prediction.n, prediction.groups, splits, *values))
    columns = (
        *(*text_columns("parts of train", "state"), Column("spaces"), Column("pairs"), Column("splits")),
        *(Column("Spearman"), Column("Pearson"), Column("mean abs. difference", digits=3)),
        *(Column("linear fit", "prediction error", 3), Column("mean of the others", "prediction error", 3)),
    )
    note = (
        "Over all spaces for which both the similarity of two parts of train and the similarity of train and "
        f"{results.test_split} are known. Pairs: the number of pairs of encoder and task that these spaces belong to. "
        "Splits: how often train was divided into halves at random; their mean is used. Spearman, Pearson: correlation "
        "of the two similarities; Spearman with its 95% bootstrap interval over pairs, and over splits if there are "
        f"several, if there are at least {MINIMUM_PAIRS} pairs. Mean abs. difference: mean absolute difference of "
        "the two similarities. Prediction error: leave out one pair of encoder and task at a time, and predict the "
        f"train–{results.test_split} similarity of its spaces from the other pairs, by a linear fit or by their mean; "
        "root mean square error."
    )
    title = "Predicting train–test similarity from train alone"
    return Table("split-halves", title, note, columns, tuple(rows)).without_empty()


def prediction_text(results: Results) -> str:
    """What the predictions mean; empty if parts of train were not compared.

    It is about spaces after fine-tuning if there are any: spaces before and after differ in both similarities, which
    would look like predictive power.
    """
    data = _data(results)
    if data.empty:
        return ""
    state = "after" if (data.state == "after").any() else "before"
    prediction = _predict(data[data.state == state])
    text = (
        f"For {count_of(prediction.n, 'space')} {state} fine-tuning ({count_of(prediction.groups, 'pair')} of encoder "
        "and task), both the similarity of two halves of train and the similarity of train and "
        f"{results.test_split} are known."
    )
    if prediction.groups < MINIMUM_PAIRS:
        return f"{text} {MINIMUM_PAIRS} pairs are needed to say whether the first predicts the second."
    low, high = prediction.spearman_interval
    if not math.isfinite(low):
        return f"{text} Too many values are equal to say whether the first predicts the second."
    spearman, *interval = (show_number(value, Column("")) for value in (prediction.spearman, low, high))
    over = " over pairs and splits" if prediction.splits > 1 else ""
    text += (
        f" The Spearman correlation of the two is {spearman} (95% interval{over} {interval[0]} to {interval[1]})."
        f"{_single_split_clause(prediction)} For a "
        f"pair that is left out, a linear fit to the other pairs has an error of {prediction.error:.3f}, and their "
        f"mean has an error of {prediction.baseline:.3f}."
    )
    if low > 0 and prediction.error < prediction.baseline:
        return f"{text} So the train–test similarity can partly be predicted without test examples."
    if low > 0:
        return (
            f"{text} So the similarity of two halves of train predicts which spaces have a lower train–test "
            "similarity, but not how low it is."
        )
    return f"{text} So in this study, the similarity of two halves of train does not predict the train–test similarity."


def _single_split_clause(prediction: Prediction) -> str:
    """How far single splits differ from their mean; empty with one split."""
    if prediction.splits < 2:
        return ""
    low, high = (show_number(value, Column("")) for value in prediction.single_split)
    return (
        f" The similarity of halves is the mean over {prediction.splits} random splits; with one of them alone, the "
        f"correlation would be {low} to {high}."
    )
