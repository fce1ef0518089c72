"""Two studies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from closerlook.report import facts, probing
from closerlook.report.ends import STATES, Ends, beside_chance
from closerlook.report.figures import Figure
from closerlook.report.page import group_figures, render
from closerlook.report.probing import GLANCE, chance_note, named, thinned_points, whole
from closerlook.report.shape import PANEL
from closerlook.report.tables import Column, Table, Value, difference, over_seeds
from closerlook.study.findings import judge_results
from closerlook.study.readings import Results

SIDES = "AB"


def compare_page(studies: Sequence[Results], folders: Sequence[str], figures: Sequence[Sequence[Figure]]) -> str:
    """The page of two studies as HTML."""
    groups, specs = group_figures(figures)
    names = [
        one.name if folder in {"", one.name} else f"{one.name} ({folder})"
        for one, folder in zip(studies, folders, strict=True)
    ]
    findings = [judge_results(one) for one in studies]
    return render(
        "comparison.html.j2",
        title=" and ".join(names),
        names=names,
        studies=studies,
        findings=list(zip(*findings, strict=True)),
        settings=settings_that_differ(studies),
        measures=measures_table(studies),
        shapes=shape_table(studies),
        groups=groups,
        specs=specs,
        facts=facts,
        probing=probing,
    )


def settings_that_differ(studies: Sequence[Results]) -> Table:
    """Entries of the plans, versions and weights that are not the same."""
    sides = [_settings(one) for one in studies]
    entries = dict.fromkeys(name for side in sides for name in side)
    rows = [
        (name, *(side.get(name) for side in sides)) for name in entries if len({side.get(name) for side in sides}) > 1
    ]
    columns = (Column("entry", left=True), Column("A", left=True), Column("B", left=True))
    return Table(
        "settings",
        "What differs",
        "Plan, weights, versions and machine; what is the same in both is left out.",
        columns,
        tuple(rows),
    )


def _settings(results: Results) -> dict[str, str]:
    rows = [*facts.settings_table(results).rows, *facts.machine_table(results).rows]
    told = {str(name): str(value) for name, value in rows}
    told |= {f"weights of {encoder}": facts.weights_of(results, encoder)[:12] for encoder in results.encoders}
    return told | {"encoders": ", ".join(results.encoders), "tasks": ", ".join(results.tasks)}


def measures_table(studies: Sequence[Results]) -> Table:
    """Each measure of each encoder and task, before and after, in both studies, and the difference of their ends."""
    rows = _rows(studies, [(measure, title, scale) for measure, title, scale, _ in (*GLANCE, *BESIDE)])
    by_chance = chance_note(max(studies, key=thinned_points))
    note = "At the last layer; ± standard deviation or [95% interval]. The difference is that of the ends."
    return Table("measures", "Before and after, in both", f"{note} {by_chance}".rstrip(), _COLUMNS, rows)


def shape_table(studies: Sequence[Results]) -> Table:
    """The same of the panel: collapse, dimension, isotropy, label fit, overlap."""
    rows = _rows(studies, [(one.measure, one.title, 1.0) for one in PANEL])
    columns = tuple(column if column.left else replace(column, digits=3) for column in _COLUMNS)
    return Table("shapes", "The shape of the spaces, in both", "At the last layer, on train.", columns, rows)


SIDEWAYS = {"similarity_original", "similarity_seed", "similarity_random"}
"""Measures of two spaces of train."""

BESIDE = (
    ("similarity_original", "similarity to the original", 1.0, 2),
    ("similarity_seed", "similarity to another seed", 1.0, 2),
    ("similarity_random", "similarity to random weights", 1.0, 2),
    ("separable_pairs", "separable pairs of labels, %", 100.0, 1),
)
"""What is compared beside what a study is at a glance."""

_COLUMNS = (
    *(Column(name, left=True) for name in ("encoder", "task", "measure")),
    *(Column(state, side) for side in SIDES for state in STATES),
    Column("B − A", "at the end", signed=True),
)


def _rows(studies: Sequence[Results], measures: Sequence[tuple[str, str, float]]) -> tuple[tuple[Value, ...], ...]:
    pairs = [set(one.pairs()) for one in studies]
    rows: list[tuple[Value, ...]] = []
    for encoder, task in dict.fromkeys(pair for one in studies for pair in one.pairs()):
        for measure, title, scale in measures:
            both = [
                _both(one, named(one, measure), encoder, task, scale) if (encoder, task) in there else (None, None)
                for one, there in zip(studies, pairs, strict=True)
            ]
            if any(value for side in both for value in side):
                last = [after or before for before, after in both]
                rows.append((encoder, task, title, *map(whole, (*both[0], *both[1])), difference(*last)))
    return tuple(rows)


def _both(results: Results, measure: str, encoder: str, task: str, scale: float) -> Ends:
    """Both ends with what chance gives; similarities to other spaces of train over all that were compared."""
    if measure in SIDEWAYS:
        before, after = (over_seeds(results.beside(measure, encoder, task, tuned=tuned)) for tuned in (False, True))
        return before, after
    return beside_chance(results, measure, encoder, task, scale)
