"""Tables of the shape of spaces before and after fine-tuning, and of the point similarity of two spaces."""

from __future__ import annotations

from dataclasses import replace

from closerlook.report.before_after import AFTER_ARROW, before_after, over_seeds
from closerlook.report.measures import column_of
from closerlook.report.nulls import COMPARED_WITH
from closerlook.report.tables import Column, Table, Term, Value, show_before_after, text_columns
from closerlook.study.kinds import panel, point_similarity
from closerlook.study.readings import Measurement, Results
from closerlook.study.registry import MEASURES, Measure


def shape_measures() -> list[Measure]:
    """The measures of the shape table: all measures with a group, sorted by group; those of the panel come first."""
    grouped = [measure for measure in MEASURES.values() if measure.group]
    groups = list(dict.fromkeys(measure.group for measure in panel.MEASURES if measure.group))
    order = {group: at for at, group in enumerate(groups)}
    return sorted(grouped, key=lambda measure: (order.get(measure.group, len(order)), measure not in panel.MEASURES))


def shape_table(results: Results) -> Table:
    """Each measure of shape before → after fine-tuning, encoder × task, with its meaning."""
    rows: list[tuple[Value, ...]] = []
    is_measured = any(results.has(measure.name) for measure in panel.MEASURES if measure.group)
    pairs = set(results.pairs()) if is_measured else set()
    for measure in shape_measures():
        column = column_of(measure.name)
        for encoder in results.encoders:
            cells = [
                show_before_after(*before_after(results, measure.name, encoder, task, measure.scale), column)
                if (encoder, task) in pairs
                else None
                for task in results.tasks
            ]
            if any(cells):
                rows.append((measure.group, Term(measure.title, measure.meaning), encoder, *cells))
    columns = (*text_columns("", "measure", "encoder"), *(Column(task, of="task") for task in results.tasks))
    values, title = (AFTER_ARROW, "Shape before → after fine-tuning") if results.all_runs else ("", "Shape")
    note = f"Train, last layer{values}."
    if len(results.encoders) == 1:  # its name would be in every row
        columns, rows = (*columns[:2], *columns[3:]), [(*row[:2], *row[3:]) for row in rows]
    return Table("shape", title, note, columns, tuple(rows))


def shape_text(results: Results) -> str:
    """What shape measures are; empty if none was measured."""
    if not shape_table(results):
        return ""
    text = (
        "Shape measures describe a space as a whole: neural collapse (NC1 to NC4, Papyan et al. 2020; CDNV, Galanti et "
        "al. 2022), effective dimension, isotropy, how well the labels fit the vectors, and how much labels overlap."
    )
    if not results.has("nc3"):
        return text
    text += (
        " NC3 and NC4 compare the label means with a linear classifier that is fitted to the space by least squares."
    )
    if results.has("nc3_head"):
        text += " After fine-tuning, NC3 is also given for the linear head that was trained with the encoder."
    return text


# ---- point similarity ----

POINT_SIMILARITIES = {measure.name: measure.title for measure in point_similarity.MEASURES}
"""Measures of two spaces of the same examples; each is 1 if one space is a rotated and scaled copy of the other."""


def point_similarity_table(results: Results) -> Table:
    """The point similarity of each train space to the spaces in COMPARED_WITH."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        for measure, title in POINT_SIMILARITIES.items():
            values = [
                over_seeds(results.compared_with(f"{measure}_{other}", encoder, task, tuned=tuned))
                for other, tuned in COMPARISONS
            ]
            if any(values):
                rows.append((encoder, task, title, *values))
    columns = (
        *text_columns("encoder", "task", "measure"),
        *(
            Column(f"vs. {COMPARED_WITH[other].removeprefix('the ')}", "fine-tuned" if tuned else "pretrained")
            for other, tuned in COMPARISONS
        ),
    )
    table = Table("point-similarity", "Point similarity of spaces", "", columns, tuple(rows)).without_empty()
    has_spread = any(isinstance(value, Measurement) and value.sd is not None for row in table.rows for value in row)
    spread = "±: standard deviation over several seeds or encoders. " if has_spread else ""
    return replace(table, note=POINT_SIMILARITY_NOTE.format(spread=spread))


COMPARISONS = (("original", True), ("seed", True), ("random", True), ("random", False), ("encoder", False))
POINT_SIMILARITY_NOTE = (
    "Train, last layer, the same examples in both spaces. {spread}Each measure is 1 if one space is a rotated and "
    "scaled copy of the other. "
    + " ".join(
        f"{measure.title[0].upper()}{measure.title[1:]}: {measure.meaning}." for measure in point_similarity.MEASURES
    )
)
