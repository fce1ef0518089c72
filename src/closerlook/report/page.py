"""Renders the report page of a study, or of two studies, as one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypedDict

from closerlook.geometry.blocked import MOST_BLOCKED_MERGES
from closerlook.report import study_facts
from closerlook.report.before_after import without_state
from closerlook.report.blocked_merges import blocked_spaces
from closerlook.report.brief import brief
from closerlook.report.explorers import ASSETS as EXPLORER_ASSETS
from closerlook.report.explorers import fit_explorers
from closerlook.report.extent import extent_of
from closerlook.report.figures import Figure
from closerlook.report.figures.figure import Specification
from closerlook.report.finding_tables import shows_undecided
from closerlook.report.glossary import find_terms, glossary, link_terms
from closerlook.report.inlining import CHART_LIBRARY, pack, pack_data, runtime, safe_script, script_hash
from closerlook.report.layer_values import CHANCE_NOTE, best_sentences
from closerlook.report.opening import NOTE as CHANGES_NOTE
from closerlook.report.opening import what_changed
from closerlook.report.outline import FINDINGS, Section, figure_entries, sections_of, tables_of
from closerlook.report.tables import Column, Remark, Table, Term, Value, show_null, show_plain, show_spread
from closerlook.report.verdict_tables import RULES_USED
from closerlook.study.explored import StoredExplorer
from closerlook.study.findings import Finding
from closerlook.study.readings import Measurement, Results
from closerlook.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_SQUARES = 30  # pairs of a finding; with more, the cards show only numbers
ASSETS = ("page.css", "page.js")
"""The styles and scripts of every page."""
PARTS = {"page.js": ("packed.js", "filter.js", "page.js", "tables.js")}
"""Scripts that consist of several files: the data, the choice of encoder and task, charts, tables."""

VERDICTS = {"holds": "✓", "fails": "✕", "mixed": "◐", "within noise": "≈", "cannot tell": "?"}


class Panel(TypedDict):
    """A figure as the page's script reads it.

    spec: the name of its chart in the page's data. caption: its parts, each with the anchor of a term, or empty.
    """

    spec: str
    title: str
    caption: list[tuple[str, str]]
    alt: str
    toggles: list[dict[str, Any]]
    layout: dict[str, Any]


class Entry(TypedDict):
    """The figures of one encoder and task, one for each study; None for a study that has none.

    tasks: the names of the tasks they are about.
    """

    encoder: str
    task: str
    tasks: list[str]
    panels: list[Panel | None]


def make_entry(encoder: str, task: str, panels: list[Panel | None], tasks: Sequence[str] = ()) -> Entry:
    """The entry of an encoder and a task. tasks: the tasks it is about, if `task` is not the name of one."""
    return Entry(encoder=encoder, task=task, tasks=list(tasks) or [name for name in (task,) if name], panels=panels)


@dataclass(frozen=True, eq=False)
class Group:
    """All figures of one kind, of which the page shows one at a time (two in a comparison).

    reading: one sentence that says how to read them.
    """

    kind: str
    title: str
    encoders: list[str]
    tasks: list[str]
    entries: list[Entry]
    reading: str = ""


@dataclass(frozen=True, eq=False)
class Part:
    """A section of the page with its content."""

    section: Section
    title: str
    short: str
    finding: Finding | None
    texts: list[str]
    groups: list[Group]
    tables: list[Table]
    folded: list[Table]

    @property
    def is_empty(self) -> bool:
        """Whether it has no texts, figures or tables."""
        return not (self.texts or self.groups or self.tables or self.folded)


def make_page(
    results: Results, findings: list[Finding], figures: Sequence[Figure], explorers: Sequence[StoredExplorer] = ()
) -> str:
    """The whole page of a study as HTML. explorers: its points, if they are stored."""
    groups, specs = group_figures([figures])
    spaces, excluded = blocked_spaces(results)
    parts = [part for part in page_parts(results, findings, groups) if explorers or part.section.layout != "explorer"]
    fitting = fit_explorers(explorers)
    return render(
        "study.html.j2",
        assets=(*ASSETS, *EXPLORER_ASSETS) if explorers else ASSETS,
        explorers=fitting,
        title=results.name,
        results=results,
        findings=findings,
        extent=extent_of(results),
        brief=brief(results),
        accounts=what_changed(results),
        changes_note=CHANGES_NOTE,
        best=best_sentences(results),
        chance_note=CHANCE_NOTE,
        squares=all(finding.n_pairs <= MOST_SQUARES for finding in findings),
        rules_used=RULES_USED,
        parts=parts,
        contents=contents_of(parts),
        subjects={"encoder": results.encoders, "task": results.tasks},
        data={**chart_data(specs, groups.values()), "blocked-spaces": spaces, "explorers": fitting.entries},
        facts=study_facts,
        spaces=spaces,
        excluded=excluded,
        most_blocked_merges=MOST_BLOCKED_MERGES,
        terms=glossary(undecided=shows_undecided(results)),
    )


def page_parts(results: Results, findings: list[Finding], groups: dict[str, Group]) -> list[Part]:
    """The sections of the outline that a study has content for."""
    by_number = {finding.number: finding for finding in findings}
    parts = []
    extent = extent_of(results)
    show = without_state if extent == "none" else str
    for section in sections_of(results):
        finding = None if section.finding is None or extent == "none" else by_number[section.finding]
        is_judged = finding is not None and extent == "many"
        tables = [(entry, table) for entry, table in tables_of(section, results) if entry.on_page]
        part = Part(
            section,
            finding.title if finding is not None and is_judged else section.title,
            f"{section.finding} · {section.short}" if is_judged else section.short,
            finding,
            [show(text) for write in section.texts if (text := write(results))],
            [groups[entry.kind] for entry in section.figures if entry.kind in groups],
            [table for entry, table in tables if not entry.folded],
            [table for entry, table in tables if entry.folded],
        )
        if not part.is_empty or section.absent or section.layout != "plain":
            parts.append(part)
    return parts


def contents_of(parts: Sequence[Part]) -> list[tuple[str, list[Part]]]:
    """The contents list: its headings, each with the parts under it."""
    groups = [(place, list(group)) for place, group in groupby(parts, key=lambda part: part.section.place)]
    return [
        ("Measures" if place == FINDINGS and all(part.title == part.section.title for part in group) else place, group)
        for place, group in groups
    ]


def group_figures(studies: Sequence[Sequence[Figure]]) -> tuple[dict[str, Group], dict[str, Specification]]:
    """The figures of one or more studies by kind, and every chart by its name in the page's data."""
    groups: dict[str, Group] = {}
    specs: dict[str, Specification] = {}
    for kind in figure_entries():
        by_study = [
            {(figure.encoder, figure.task): figure for figure in figures if figure.kind == kind.kind}
            for figures in studies
        ]
        places = list(dict.fromkeys(place for figures in by_study for place in figures))
        entries: list[Entry] = []
        reading = ""
        for encoder, task in places:
            panels: list[Panel | None] = []
            tasks: tuple[str, ...] = ()
            for figures in by_study:
                figure = figures.get((encoder, task))
                if figure is None:
                    panels.append(None)
                    continue
                name = f"spec-{len(specs)}"
                panel, specs[name] = figure_panel(figure, name)
                panels.append(panel)
                tasks, reading = figure.tasks, figure.reading
            entries.append(make_entry(encoder, task, panels, tasks))
        if entries:
            encoders, chosen = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
            shown = [task for task in chosen if task]
            groups[kind.kind] = Group(kind.kind, kind.title, encoders, shown, entries, reading)
    return groups, specs


def figure_panel(figure: Figure, spec: str) -> tuple[Panel, Specification]:
    """A figure as the page's script reads it, and its chart. spec: the name of the chart in the page's data."""
    panel = Panel(
        spec=spec,
        title=figure.title,
        caption=find_terms(figure.caption),
        alt=figure.alt,
        toggles=[asdict(toggle) for toggle in figure.toggles],
        layout=asdict(figure.layout),
    )
    return panel, pack(figure.specification())


def chart_data(specs: Mapping[str, Specification], groups: Iterable[Group]) -> dict[str, object]:
    """What the page's script reads to draw: every chart by its name, and the entries of every group."""
    return {**specs, **{f"entries-{group.kind}": group.entries for group in groups}}


# ---- HTML ----


def render(
    template: str,
    *,
    assets: Sequence[str] = ASSETS,
    data: Mapping[str, object],
    charts: bool = True,
    subjects: dict[str, Sequence[str]] | None = None,
    **values: object,
) -> str:
    """A template with its values, styles and scripts, and a policy that allows these scripts and nothing else.

    assets: the names of its styles and scripts. data: what its scripts read, by name. charts: whether it needs the
    chart library, which packed.js runs. subjects: the encoders and the tasks that the reader can choose; figures,
    tables and elements with data-encoder or data-task follow the choice.
    """
    from markupsafe import Markup

    styles = "".join(_asset(name) for name in assets if name.endswith(".css"))
    scripts = [safe_script(_asset(name)) for name in assets if name.endswith(".js")]
    library = {CHART_LIBRARY: runtime()} if charts else {}
    allowed = " ".join(map(script_hash, [*library.values(), *scripts]))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    fixed: dict[str, object] = {
        "style": Markup(styles),  # noqa: S704 - our own files
        "scripts": [Markup(script) for script in scripts],  # noqa: S704 - the same
    }
    chosen = {name: list(names) for name, names in (subjects or {}).items() if len(names) > 1}
    page = _environment(has_glossary="terms" in values).get_template(template)
    return page.render(
        subjects=chosen,
        policy=policy,
        packed=pack_data({**library, **data}),
        version=__version__,
        marks=VERDICTS,
        spans=row_spans,
        heads=column_groups,
        **fixed,
        **values,
    )


@cache
def _environment(*, has_glossary: bool) -> Environment:
    """The templates, compiled once; has_glossary: whether terms in texts are links to the glossary of the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import escape

    environment = Environment(
        loader=PackageLoader("closerlook.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell": show_plain, "small_print": small_print}
    environment.filters["linked"] = link_terms if has_glossary else escape
    environment.tests["exception"] = lambda value: isinstance(value, Remark) and value.is_exception
    return environment


def _asset(name: str) -> str:
    folder = resources.files("closerlook.report").joinpath("templates")
    return "".join(folder.joinpath(part).read_text(encoding="utf-8") for part in PARTS.get(name, (name,)))


def small_print(value: Value, column: Column) -> list[str]:
    """The lines under a cell's value: the meaning of a term; the spread and the null of a measurement."""
    if isinstance(value, Term):
        return [value.meaning]
    if not isinstance(value, Measurement):
        return []
    lines = [show_spread(value, column).strip(), *show_null(value, column).split(", ")]
    return [line.replace("± ", "±\u00a0") for line in lines if line]


def row_spans(table: Table, columns: int) -> list[int]:
    """For each row, how many rows its cell in column `columns` spans; 0 if a cell above spans it."""
    spans = [0] * len(table.rows)
    start = 0
    for at, row in enumerate(table.rows):
        if row[:columns] != table.rows[start][:columns]:
            start = at
        spans[start] += 1
    return spans


def column_groups(table: Table) -> list[tuple[str, int]]:
    """The headings of groups of columns, each with its number of columns; empty if no column has a group."""
    groups: list[tuple[str, int]] = []
    for column in table.columns:
        if column.group and groups and groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    return groups if any(group for group, _ in groups) else []
