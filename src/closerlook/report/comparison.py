"""The page of two studies, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from closerlook.report import study_facts
from closerlook.report.before_after import STATES, BeforeAfter, difference, over_seeds, with_nulls
from closerlook.report.figures import Figure
from closerlook.report.finding_tables import as_integer, null_note, subsample_size, summary_measures
from closerlook.report.measures import title_of
from closerlook.report.nulls import COMPARED_WITH
from closerlook.report.outline import sections_of
from closerlook.report.page import chart_data, group_figures, render
from closerlook.report.shape import shape_measures
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.study.findings import judge_results
from closerlook.study.readings import Results
from closerlook.study.registry import measure, split_name

SIDES = "AB"


def compare_page(studies: Sequence[Results], folders: Sequence[str], figures: Sequence[Sequence[Figure]]) -> str:
    """The page of two studies as HTML."""
    groups, specs = group_figures(figures)
    names = [
        study.name if folder in {"", study.name} else f"{study.name} ({folder})"
        for study, folder in zip(studies, folders, strict=True)
    ]
    findings = list(zip(*map(judge_results, studies), strict=True)) if _is_tuned(studies) else []
    titles = {pair[0].number: pair[0].title for pair in findings}
    sections = [
        (section, titles.get(section.finding or 0, section.title), drawn)
        for section in sections_of(max(studies, key=lambda study: len(study.all_runs)))
        if (drawn := [groups[entry.kind] for entry in section.figures if entry.kind in groups])
    ]
    return render(
        "comparison.html.j2",
        title=" and ".join(names),
        names=names,
        studies=studies,
        findings=findings,
        settings=settings_that_differ(studies),
        measures=measures_table(studies),
        shapes=shape_table(studies),
        sections=sections,
        subjects={
            "encoder": list(dict.fromkeys(name for study in studies for name in study.encoders)),
            "task": list(dict.fromkeys(name for study in studies for name in study.tasks)),
        },
        data=chart_data(specs, groups.values()),
        facts=study_facts,
    )


def _is_tuned(studies: Sequence[Results]) -> bool:
    """Whether one of the studies fine-tuned an encoder."""
    return any(study.all_runs for study in studies)


def settings_that_differ(studies: Sequence[Results]) -> Table:
    """Entries of the plans, versions and weights that differ."""
    sides = [_settings(study) for study in studies]
    entries = dict.fromkeys(name for side in sides for name in side)
    rows = [
        (name, *(side.get(name) for side in sides)) for name in entries if len({side.get(name) for side in sides}) > 1
    ]
    note = "Entries of the plan, weights, versions and machine; those that are equal in both are omitted."
    return Table("settings", "What differs", note, text_columns("entry", *SIDES), tuple(rows))


def _settings(results: Results) -> dict[str, str]:
    rows = [*study_facts.settings_table(results).rows, *study_facts.machine_table(results).rows]
    settings = {str(name): str(value) for name, value in rows}
    settings |= {f"weights of {encoder}": study_facts.weights_of(results, encoder)[:12] for encoder in results.encoders}
    return settings | {"encoders": ", ".join(results.encoders), "tasks": ", ".join(results.tasks)}


def measures_table(studies: Sequence[Results]) -> Table:
    """Each measure of each encoder and task in both studies, and the difference: before and after, or pretrained."""
    rows = _rows(studies, [[*summary_measures(study), *COMPARED] for study in studies])
    title, when = ("Before and after, in both studies", " after fine-tuning") if _is_tuned(studies) else (MEASURES, "")
    note = f"At the last layer; ± standard deviation or [95% interval]. Difference: B minus A{when}."
    nulls = null_note(max(studies, key=subsample_size))
    return Table("measures", title, f"{note} {nulls}".rstrip(), _columns(studies), rows)


def shape_table(studies: Sequence[Results]) -> Table:
    """The measures of shape of each encoder and task in both studies: before and after, or pretrained."""
    rows = _rows(studies, [[shape.name for shape in shape_measures()]] * len(studies))
    columns = tuple(column if column.left else replace(column, digits=3) for column in _columns(studies))
    return Table("shapes", "Shape of the spaces, in both studies", "At the last layer, on train.", columns, rows)


MEASURES = "Main measures, in both studies"
"""The title of the table of measures if nothing was fine-tuned."""

COMPARED = ("similarity_original", "similarity_seed", "similarity_random", "separable_pairs")
"""Measures that are compared in addition to those of the summary."""


def _columns(studies: Sequence[Results]) -> tuple[Column, ...]:
    """The columns of a table of values; those of one state have no heading for it if nothing was fine-tuned."""
    names = text_columns("encoder", "task", "measure")
    if not _is_tuned(studies):
        return (*names, *map(Column, SIDES), Column("B − A", signed=True))
    return (
        *names,
        *(Column(state, side) for side in SIDES for state in STATES),
        Column("B − A", "after", signed=True),
    )


def _rows(studies: Sequence[Results], measures: Sequence[Sequence[str]]) -> tuple[tuple[Value, ...], ...]:
    """A row for each encoder, task and measure; measures: their names in each study, in the same order."""
    pairs = [set(study.pairs()) for study in studies]
    n_states = len(STATES) if _is_tuned(studies) else 1
    rows: list[tuple[Value, ...]] = []
    for encoder, task in dict.fromkeys(pair for study in studies for pair in study.pairs()):
        for names in zip(*measures, strict=True):
            sides: list[BeforeAfter] = [
                _before_after(study, name, encoder, task) if (encoder, task) in known else (None, None)
                for study, name, known in zip(studies, names, pairs, strict=True)
            ]
            if any(value for side in sides for value in side):
                last = [after or before for before, after in sides]
                values = [as_integer(value) for side in sides for value in side[:n_states]]
                rows.append((encoder, task, title_of(names[0]), *values, difference(last[0], last[1])))
    return tuple(rows)


def _before_after(results: Results, name: str, encoder: str, task: str) -> BeforeAfter:
    """A measure before and after, with its value on shuffled labels; similarities to several spaces are averaged."""
    if split_name(name)[1] in COMPARED_WITH:
        before, after = (over_seeds(results.compared_with(name, encoder, task, tuned=tuned)) for tuned in (False, True))
        return before, after
    return with_nulls(results, name, encoder, task, measure(name).scale)
