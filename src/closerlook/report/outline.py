"""The outline of a study's report page: its sections in order, with the texts, figures and tables of each.

The page, its contents list, `closerlook show`, exports, figure files and the comparison of two studies all read this
list. To add a figure or table, write a function that makes it and add one line to OUTLINE. "The paper" is Zhou and
Srikumar (2022), see `report/published.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from closerlook.report import (
    divergence,
    finding_tables,
    labels,
    nulls,
    published,
    sensitivity,
    shape,
    study_facts,
    uncertainty,
    verdict_tables,
)
from closerlook.report.figures import Figure, centroids, changes, distances, point_similarity, similarity
from closerlook.report.figures import divergence as divergence_figures
from closerlook.report.figures import nulls as null_figures
from closerlook.report.tables import Table
from closerlook.study.readings import Results

Layout = Literal["plain", "verdicts", "run", "blocked merges", "glossary"]
"""How the template shows a section. plain: only its texts, figures and tables. The other layouts put special content,
which is written in the template, before them."""

BEYOND = "Not in the paper"
"""The line above the heading of sections about measures that the paper does not have."""


@dataclass(frozen=True)
class FigureEntry:
    """A kind of figure. kind: its name in file names and links. draw: draws all figures of this kind."""

    kind: str
    title: str
    draw: Callable[[Results], list[Figure]]


@dataclass(frozen=True)
class TableEntry:
    """A table. make: makes it; without rows it is not shown.

    folded: collapsed on the page, and printed by `closerlook show` only on request. on_page: False for the table of
    verdicts, which the page shows as cards.
    """

    make: Callable[[Results], Table]
    folded: bool = False
    on_page: bool = True


@dataclass(frozen=True)
class Section:
    """A section of the page.

    name: the anchor in links. title: the heading; empty in a section about a finding, whose heading is the finding.
    short: the title in the contents list. kicker: a line above the heading. finding: the number of the finding that the
    section is about. texts: functions that return a paragraph, or an empty string. absent: the sentence shown if the
    section has no content; if this is an empty string, a section without content is omitted.
    """

    name: str
    title: str
    short: str
    kicker: str = ""
    finding: int | None = None
    layout: Layout = "plain"
    texts: tuple[Callable[[Results], str], ...] = ()
    figures: tuple[FigureEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()
    absent: str = ""


OUTLINE = (
    Section(
        "top",
        "The paper's five findings, in this study",
        "Verdicts",
        layout="verdicts",
        tables=(TableEntry(verdict_tables.findings_table, on_page=False),),
    ),
    Section(
        "run",
        "What was run",
        "What was run",
        layout="run",
        tables=(
            TableEntry(study_facts.encoders_table),
            TableEntry(study_facts.tasks_table),
            TableEntry(study_facts.tuning_table, folded=True),
            TableEntry(study_facts.settings_table, folded=True),
            TableEntry(study_facts.machine_table, folded=True),
            TableEntry(study_facts.time_table, folded=True),
        ),
    ),
    Section(
        "summary",
        "Before and after fine-tuning",
        "Before and after",
        tables=(TableEntry(finding_tables.summary_table),),
        absent="Nothing was measured.",
    ),
    Section(
        "finding-1",
        "",
        "1 · Train and test",
        kicker="Finding 1",
        finding=1,
        figures=(FigureEntry("accuracy", "Accuracy and train–test similarity", changes.accuracy_change),),
        tables=(
            TableEntry(finding_tables.accuracy_table),
            TableEntry(verdict_tables.harm_table),
            TableEntry(published.published_accuracy),
        ),
        absent="Neither accuracy nor train–test similarity was measured.",
    ),
    Section(
        "finding-2",
        "",
        "2 · Clusters",
        kicker="Finding 2",
        finding=2,
        figures=(FigureEntry("clusters", "Clusters per label", changes.clusters_change),),
        tables=(TableEntry(finding_tables.clusters_table), TableEntry(published.published_clusters)),
        absent="No clusters were counted.",
    ),
    Section(
        "finding-3",
        "",
        "3 · Distances",
        kicker="Finding 3",
        finding=3,
        figures=(
            FigureEntry(
                "distances",
                "Distance of each label to the nearest other label during fine-tuning",
                distances.minimum_distances,
            ),
            FigureEntry("paths", "Paths of the label centroids", centroids.centroid_paths),
        ),
        tables=(TableEntry(finding_tables.distance_table), TableEntry(sensitivity.monotone_table)),
        absent="No label distances were measured.",
    ),
    Section(
        "finding-4",
        "",
        "4 · Other tasks",
        kicker="Finding 4",
        finding=4,
        figures=(
            FigureEntry(
                "cross-distances",
                "Distance of each label to the nearest other label during fine-tuning on a different task",
                distances.cross_task_distances,
            ),
        ),
        tables=(TableEntry(finding_tables.cross_table), TableEntry(published.published_cross)),
        absent="No fine-tuned encoder was measured on a task other than its own; to do so, set cross in the plan.",
    ),
    Section(
        "finding-5",
        "",
        "5 · Layers",
        kicker="Finding 5",
        finding=5,
        figures=(
            FigureEntry(
                "similarity",
                "Similarity to the pretrained encoder during fine-tuning, by layer",
                similarity.similarity_to_pretrained,
            ),
            FigureEntry("shifts", "Shifts of the label centroids, by layer", centroids.centroid_shifts),
        ),
        tables=(TableEntry(finding_tables.layers_table),),
        absent="No fine-tuned encoder was compared with its pretrained state.",
    ),
    Section(
        "earlier-rules",
        "The rules, and what earlier rules say",
        "Rules",
        kicker=BEYOND,
        texts=(verdict_tables.earlier_text,),
        tables=(TableEntry(verdict_tables.earlier_table),),
    ),
    Section(
        "nulls",
        "Comparison with shuffled labels",
        "Shuffled labels",
        kicker=BEYOND,
        texts=(nulls.similarity_text, nulls.weights_text, nulls.separability_text),
        figures=(FigureEntry("nulls", "Similarity with true and shuffled labels", null_figures.similarity_and_null),),
        tables=(TableEntry(nulls.similarity_table), TableEntry(nulls.separability_table)),
    ),
    Section(
        "uncertainty",
        "Uncertainty",
        "Uncertainty",
        kicker=BEYOND,
        texts=(uncertainty.single_seed_text,),
        tables=(TableEntry(uncertainty.seeds_table), TableEntry(uncertainty.examples_table)),
    ),
    Section(
        "sensitivity",
        "Sensitivity",
        "Sensitivity",
        kicker=BEYOND,
        tables=(TableEntry(sensitivity.compared_labels_table),),
    ),
    Section(
        "divergence",
        "Predicting train–test similarity",
        "Prediction",
        kicker=BEYOND,
        texts=(divergence.prediction_text,),
        figures=(
            FigureEntry(
                "split-halves",
                "Train–test similarity against the similarity of two halves of train",
                divergence_figures.halves_and_test,
            ),
        ),
        tables=(TableEntry(divergence.split_halves_table),),
    ),
    Section(
        "shape",
        "Shape of the spaces",
        "Shape",
        kicker=BEYOND,
        texts=(shape.shape_text,),
        figures=(
            FigureEntry(
                "point-similarity",
                "Point similarity to the pretrained encoder",
                point_similarity.similarity_by_layer,
            ),
        ),
        tables=(TableEntry(shape.shape_table), TableEntry(shape.point_similarity_table)),
    ),
    Section(
        "labels",
        "Label by label",
        "Label by label",
        kicker=BEYOND,
        figures=(FigureEntry("label-distances", "Distances between all labels", distances.label_distances),),
        tables=(TableEntry(labels.labels_table, folded=True),),
        absent="No label distances were measured.",
    ),
    Section(
        "blocked-merges",
        "Blocked merges: why clusters of one label could not be merged",
        "Blocked merges",
        kicker=BEYOND,
        layout="blocked merges",
    ),
    Section("glossary", "Terms", "Terms", layout="glossary"),
)


def figure_entries() -> list[FigureEntry]:
    """All kinds of figures, in the order of the page."""
    return [entry for section in OUTLINE for entry in section.figures]


def draw_figures(results: Results) -> list[Figure]:
    """All figures for which the results have data, in the order of the page."""
    return [replace(figure, kind=entry.kind) for entry in figure_entries() for figure in entry.draw(results)]


def tables_of(section: Section, results: Results) -> Iterator[tuple[TableEntry, Table]]:
    """The non-empty tables of a section, each with its entry in the outline."""
    for entry in section.tables:
        table = entry.make(results)
        if table:
            yield entry, table
