"""The page of a study, and that of two side by side: everything in one file, which asks nothing of any network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from closerlook.report import beyond, facts, probing, published
from closerlook.report.blockers import blocked_spaces
from closerlook.report.embedding import pack, runtime, safe_script, script_hash, script_json
from closerlook.report.figures import Figure
from closerlook.report.labels import labels_table
from closerlook.report.tables import (
    Column,
    Measured,
    Remark,
    Table,
    Term,
    Value,
    show_chance,
    show_number,
    show_spread,
    show_value,
)
from closerlook.study.findings import Finding
from closerlook.study.readings import Results
from closerlook.version import __version__

KINDS = {
    "accuracy": "Accuracy and similarity, before and after",
    "clusters": "Clusters per label, before and after",
    "distances": "Distance to the nearest other label, along the updates",
    "paths": "Where the closest labels go",
    "cross-distances": "Distance to the nearest other label, while another task is learned",
    "similarity": "Similarity to the original, layer by layer",
    "shifts": "In which direction centroids move, layer by layer",
    "chance": "Similarity beside chance",
    "foresight": "Halves of train, and train with test",
    "alike": "How alike each layer is to the original, point by point",
    "heat": "Distances of all labels, before and after",
}
"""The figures of a page, in its order."""

VERDICTS = {"holds": "✓", "fails": "✕", "mixed": "◐", "cannot tell": "?"}


@dataclass(frozen=True, eq=False)
class Group:
    """Figures of one kind, of which the page shows one at a time; in a comparison, one of each study."""

    kind: str
    title: str
    encoders: list[str]
    tasks: list[str]
    entries: list[dict[str, Any]]


@dataclass(frozen=True)
class Section:
    """One finding in the page: the finding, its tables, and the kinds of its figures."""

    finding: Finding
    tables: tuple[Table, ...]
    kinds: tuple[str, ...]
    nothing: str


def make_page(results: Results, findings: list[Finding], figures: Sequence[Figure]) -> str:
    """The whole page of a study as HTML."""
    groups, specs = group_figures([figures])
    spaces, excluded = blocked_spaces(results)
    return render(
        "study.html.j2",
        title=results.name,
        results=results,
        findings=findings,
        sections=_sections(results, findings),
        summary=probing.summary_table(results),
        beyond=beyond.parts(results, groups),
        labels=labels_table(results),
        groups=groups,
        specs=specs,
        facts=facts,
        spaces=spaces,
        excluded=excluded,
        published=any((published.published_accuracy(results), published.published_cross(results))),
    )


def _sections(results: Results, findings: list[Finding]) -> list[Section]:
    """Each finding with what it stands on."""
    tables: list[tuple[Table, ...]] = [
        (probing.accuracy_table(results), published.published_accuracy(results)),
        (probing.clusters_table(results), published.published_clusters(results)),
        (probing.distance_table(results),),
        (probing.cross_table(results), published.published_cross(results)),
        (probing.layers_table(results),),
    ]
    kinds = (("accuracy",), ("clusters",), ("distances", "paths"), ("cross-distances",), ("similarity", "shifts"))
    nothing = (
        "Neither accuracy nor train–test similarity was measured.",
        "No clusters were counted.",
        "No label distances were measured.",
        "No encoder was looked at on a task that it was not fine-tuned on; a plan asks for it with cross.",
        "Nothing was compared to the original encoder.",
    )
    return [Section(*parts) for parts in zip(findings, tables, kinds, nothing, strict=True)]


def group_figures(studies: Sequence[Sequence[Figure]]) -> tuple[dict[str, Group], dict[str, Any]]:
    """Figures by kind, those of several studies side by side; and every specification by its name in the page."""
    groups: dict[str, Group] = {}
    specs: dict[str, Any] = {}
    for kind, title in KINDS.items():
        mine = [[figure for figure in figures if figure.kind == kind] for figures in studies]
        places = list(dict.fromkeys((figure.encoder, figure.task) for side in mine for figure in side))
        entries = []
        for encoder, task in places:
            panels: list[dict[str, Any] | None] = []
            for side in mine:
                found = next((one for one in side if (one.encoder, one.task) == (encoder, task)), None)
                name = f"spec-{len(specs)}"
                if found is not None:
                    specs[name] = pack(found.specification())
                panels.append(None if found is None else _panel(found, name))
            entries.append({"encoder": encoder, "task": task, "panels": panels})
        if entries:
            names = [list(dict.fromkeys(place[at] for place in places)) for at in (0, 1)]
            groups[kind] = Group(kind, title, names[0], [task for task in names[1] if task], entries)
    return groups, specs


def _panel(figure: Figure, spec: str) -> dict[str, Any]:
    return {
        "spec": spec,
        "title": figure.title,
        "caption": figure.caption,
        "alt": figure.alt,
        "toggles": [asdict(toggle) for toggle in figure.toggles],
        "layout": asdict(figure.layout),
    }


# ---- writing it ----


def render(template: str, **values: Any) -> str:
    """A template filled in, with styles, scripts and the policy that lets in these scripts and nothing else."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("closerlook.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell": show_cell, "spread": spread, "chance": chance, "script_json": script_json}
    environment.tests["exception"] = lambda value: isinstance(value, Remark) and value.is_exception
    style, script, charts = _asset("page.css"), safe_script(_asset("page.js")), runtime()
    policy = (
        f"default-src 'none'; script-src {script_hash(charts)} {script_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    from markupsafe import Markup

    trusted = {"style": style, "page_script": script, "chart_script": charts}
    fixed = {name: Markup(text) for name, text in trusted.items()}  # noqa: S704 - our own files and the chart library
    page = environment.get_template(template)
    return page.render(
        policy=policy, version=__version__, marks=VERDICTS, spans=row_spans, heads=heads, **fixed, **values
    )


def _asset(name: str) -> str:
    return resources.files("closerlook.report").joinpath("templates", name).read_text(encoding="utf-8")


def show_cell(value: Value, column: Column) -> str:
    """A table's cell without its spread, which stands beside it in small type."""
    if isinstance(value, Measured):
        return show_number(value.value, column)
    return value.name if isinstance(value, Term) else show_value(value, column)


def spread(value: Value, column: Column) -> str:
    """That spread, or a term's meaning; nothing for values without."""
    if isinstance(value, Term):
        return value.meaning
    return show_spread(value, column).strip() if isinstance(value, Measured) else ""


def chance(value: Value, column: Column) -> list[str]:
    """What chance gives beside it, and against what, a line each; nothing for values without."""
    told = show_chance(value, column) if isinstance(value, Measured) else ""
    return told.replace(" against", "\nagainst").splitlines()


def row_spans(table: Table, columns: int) -> list[int]:
    """For each row, over how many the last of its first cells reaches; 0 where one above reaches down to it."""
    spans = [0] * len(table.rows)
    start = 0
    for at, row in enumerate(table.rows):
        if row[:columns] != table.rows[start][:columns]:
            start = at
        spans[start] += 1
    return spans


def heads(table: Table) -> list[tuple[str, int]]:
    """The titles over columns, each with the number of columns it stands over; empty where there is none."""
    found: list[tuple[str, int]] = []
    for column in table.columns:
        if column.group and found and found[-1][0] == column.group:
            found[-1] = (column.group, found[-1][1] + 1)
        else:
            found.append((column.group, 1))
    return found if any(group for group, _ in found) else []
