"""Two studies side by side."""

from __future__ import annotations

from collections.abc import Sequence

from closerlook.report import facts, probing
from closerlook.report.figures import Figure
from closerlook.report.page import group_figures, render
from closerlook.report.probing import GLANCE, ends, whole
from closerlook.report.tables import Column, Table, Value, difference
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
    pairs = [pair for one in studies for pair in one.pairs()]
    rows: list[tuple[Value, ...]] = []
    for encoder, task in dict.fromkeys(pairs):
        for measure, title, scale, _ in GLANCE:
            both = [
                ends(one, _named(one, measure), encoder, task, scale)
                if (encoder, task) in one.pairs()
                else (None, None)
                for one in studies
            ]
            if any(value for side in both for value in side):
                last = [after or before for before, after in both]
                rows.append((encoder, task, title, *map(whole, (*both[0], *both[1])), difference(*last)))
    columns = (
        *(Column(name, left=True) for name in ("encoder", "task", "measure")),
        *(Column(state, side) for side in SIDES for state in ("before", "after")),
        Column("B − A", "at the end", signed=True),
    )
    note = "At the last layer; ± standard deviation or [95% interval]. The difference is that of the ends."
    return Table("measures", "Before and after, in both", note, columns, tuple(rows))


def _named(results: Results, measure: str) -> str:
    return f"similarity_train_{results.compared}" if measure == "similarity" else measure
