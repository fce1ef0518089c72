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
    controls,
    divergence,
    finding_tables,
    labels,
    layer_values,
    nulls,
    opening,
    published,
    sensitivity,
    shape,
    study_facts,
    uncertainty,
    verdict_tables,
)
from closerlook.report.before_after import without_state, without_states
from closerlook.report.extent import extent_of
from closerlook.report.figures import (
    Figure,
    centroids,
    changes,
    distances,
    encoders,
    glance,
    point_similarity,
    similarity,
)
from closerlook.report.figures import divergence as divergence_figures
from closerlook.report.figures import nulls as null_figures
from closerlook.report.tables import Table
from closerlook.study.readings import Results

Layout = Literal["plain", "opening", "explorer", "run", "blocked merges", "glossary"]
"""How the template shows a section. plain: only its texts, figures and tables. The other layouts put special content,
which is written in the template, before them."""

Place = Literal["Read first", "The five findings", "More measures", "Reference"]
"""The headings of the contents list, in the order of the page."""

FINDINGS: Place = "The five findings"

BEYOND = "Not in the paper"
"""The line above the heading of sections about measures that the paper does not have."""


@dataclass(frozen=True)
class FigureEntry:
    """A kind of figure.

    kind: its name in file names and links. draw: draws all figures of this kind. reading: one sentence that says how to
    read them. untuned: this sentence without fine-tuning, if it differs.
    """

    kind: str
    title: str
    draw: Callable[[Results], list[Figure]]
    reading: str = ""
    untuned: str = ""


@dataclass(frozen=True)
class TableEntry:
    """A table. make: makes it; without rows it is not shown.

    folded: collapsed on the page, and printed by `closerlook show` only on request. on_page: False for tables that the
    page opens with in another form: verdicts as cards, changes as sentences.
    """

    make: Callable[[Results], Table]
    folded: bool = False
    on_page: bool = True


@dataclass(frozen=True)
class Section:
    """A section of the page.

    name: the anchor in links. title: the heading; a study with verdicts has the finding instead, where there is one.
    short: the title in the contents list. place: the heading in the contents list. kicker: a line above the heading.
    finding: the number of the finding that the section is about. tuned_only: whether it is omitted without fine-tuning.
    untuned: the heading without fine-tuning, if it differs. texts: functions that return a paragraph, or an empty
    string. absent: the sentence shown if the section has no content; if this is an empty string, a section without
    content is omitted.
    """

    name: str
    title: str
    short: str
    place: Place = "More measures"
    kicker: str = ""
    finding: int | None = None
    tuned_only: bool = False
    untuned: str = ""
    layout: Layout = "plain"
    texts: tuple[Callable[[Results], str], ...] = ()
    figures: tuple[FigureEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()
    absent: str = ""


OUTLINE = (
    Section(
        "top",
        "",
        "Overview",
        "Read first",
        layout="opening",
        figures=(
            FigureEntry(
                "glance",
                "Each encoder on each task",
                glance.at_a_glance,
                "A dot is one encoder on one task: right of the grey line, the value rose; if its line crosses the "
                "grey line, the change is within noise.",
                "A dot is one encoder on one task; farther right is more accurate, or farther apart.",
            ),
        ),
        tables=(
            TableEntry(opening.changes_table, on_page=False),
            TableEntry(verdict_tables.findings_table, on_page=False),
        ),
    ),
    Section(
        "summary",
        "Before and after fine-tuning",
        "Main measures",
        "Read first",
        untuned="Main measures",
        figures=(
            FigureEntry(
                "side-by-side",
                "All encoders and methods of one task",
                encoders.side_by_side,
                "Each row is one encoder or method: follow it from the ring (before fine-tuning) to the dot (after).",
            ),
        ),
        tables=(TableEntry(finding_tables.summary_table),),
        absent="Nothing was measured.",
    ),
    Section("points", "The points themselves", "Points", "Read first", layout="explorer"),
    Section(
        "encoders-and-layers",
        "Encoders and layers",
        "Encoders and layers",
        "Read first",
        texts=(layer_values.best_text,),
        figures=(
            FigureEntry(
                "by-layer",
                "All encoders by layer",
                encoders.by_layer,
                "Each line is one encoder, from its first layer (left) to its last (right); ★ marks the best value.",
            ),
        ),
        tables=(TableEntry(layer_values.layer_values_table, folded=True),),
    ),
    Section(
        "finding-1",
        "Accuracy, and similarity of train and test",
        "Train and test",
        FINDINGS,
        finding=1,
        figures=(
            FigureEntry(
                "accuracy",
                "Accuracy and train–test similarity",
                changes.accuracy_change,
                "Each row is one task: a dot left of its ring means that the value fell during fine-tuning.",
            ),
        ),
        tables=(
            TableEntry(finding_tables.accuracy_table),
            TableEntry(verdict_tables.harm_table),
            TableEntry(published.published_accuracy),
        ),
        absent="Neither accuracy nor train–test similarity was measured.",
    ),
    Section(
        "finding-2",
        "Clusters of each label",
        "Clusters",
        FINDINGS,
        finding=2,
        figures=(
            FigureEntry(
                "clusters",
                "Clusters per label",
                changes.clusters_change,
                "Each row is one task: the closer a mark is to 1, the fewer clusters a label consists of.",
            ),
        ),
        tables=(TableEntry(finding_tables.clusters_table), TableEntry(published.published_clusters)),
        absent="No clusters were counted.",
    ),
    Section(
        "finding-3",
        "Distances between labels",
        "Distances",
        FINDINGS,
        finding=3,
        figures=(
            FigureEntry(
                "distances",
                "Distance of each label to the nearest other label during fine-tuning",
                distances.minimum_distances,
                "Each line is one label: where it rises, the label moves away from the label that is nearest to it.",
            ),
            FigureEntry(
                "paths",
                "Paths of the label centroids",
                centroids.centroid_paths,
                "Each path is one label, from its ring before fine-tuning to its large dot after it.",
            ),
        ),
        tables=(TableEntry(finding_tables.distance_table), TableEntry(sensitivity.monotone_table)),
        absent="No label distances were measured.",
    ),
    Section(
        "finding-4",
        "Measured on other tasks",
        "Other tasks",
        FINDINGS,
        finding=4,
        tuned_only=True,
        figures=(
            FigureEntry(
                "cross-distances",
                "Distance of each label to the nearest other label during fine-tuning on a different task",
                distances.cross_task_distances,
                "Each line is one label of the probed task: where it falls, the label comes closer to another one.",
            ),
        ),
        tables=(TableEntry(finding_tables.cross_table), TableEntry(published.published_cross)),
        absent="No fine-tuned encoder was measured on a task other than its own; to do so, set cross in the plan.",
    ),
    Section(
        "finding-5",
        "Change of each layer",
        "Layers",
        FINDINGS,
        finding=5,
        tuned_only=True,
        figures=(
            FigureEntry(
                "similarity",
                "Similarity to the pretrained encoder during fine-tuning, by layer",
                similarity.similarity_to_pretrained,
                "Each line is one layer: the lower it ends, the more the arrangement of the labels has changed.",
            ),
            FigureEntry(
                "shifts",
                "Shifts of the label centroids, by layer",
                centroids.centroid_shifts,
                "Each line is the shift of one label: the longer the line, the farther the label moved; labels with "
                "parallel lines moved in the same direction.",
            ),
        ),
        tables=(TableEntry(finding_tables.layers_table),),
        absent="No fine-tuned encoder was compared with its pretrained state.",
    ),
    Section(
        "nulls",
        "Comparison with shuffled labels",
        "Shuffled labels",
        kicker=BEYOND,
        texts=(nulls.similarity_text, nulls.weights_text, nulls.separability_text),
        figures=(
            FigureEntry(
                "nulls",
                "Similarity with true and shuffled labels",
                null_figures.similarity_and_null,
                "A mark to the right of the grey bar: the two spaces are more similar than with shuffled labels.",
            ),
        ),
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
        texts=(sensitivity.sensitivity_text,),
        tables=(TableEntry(sensitivity.sensitivity_table),),
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
                "Each mark is one space: below the dashed line, test differs from train more than two halves of train "
                "differ from each other.",
            ),
        ),
        tables=(TableEntry(divergence.split_halves_table),),
    ),
    Section(
        "control",
        "Controls of the classifier probes",
        "Controls of probes",
        kicker=BEYOND,
        texts=(controls.control_text,),
        tables=(TableEntry(controls.control_table),),
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
                "Each line is one task: the lower it is at a layer, the more the vectors of this layer have changed.",
            ),
        ),
        tables=(TableEntry(shape.shape_table), TableEntry(shape.point_similarity_table)),
    ),
    Section(
        "labels",
        "Label by label",
        "Label by label",
        kicker=BEYOND,
        figures=(
            FigureEntry(
                "label-distances",
                "Distances between all labels",
                distances.label_distances,
                "Each square is a pair of labels; compare its colour before and after to see whether they moved apart.",
                "Each square is a pair of labels; its colour is their distance.",
            ),
        ),
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
    Section(
        "run",
        "What was run",
        "What was run",
        "Reference",
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
        "earlier-rules",
        "The rules, and what earlier rules say",
        "Rules",
        "Reference",
        kicker=BEYOND,
        tuned_only=True,
        texts=(verdict_tables.earlier_text,),
        tables=(TableEntry(verdict_tables.earlier_table),),
    ),
    Section("glossary", "Terms", "Terms", "Reference", layout="glossary"),
)


UNTUNED_FIRST = ("top", "encoders-and-layers")
"""The names of the sections that come first without fine-tuning."""


def sections_of(results: Results) -> list[Section]:
    """The sections that a study may have, with their headings: without fine-tuning, some are omitted or renamed."""
    if extent_of(results) != "none":
        return list(OUTLINE)
    kept = [replace(section, title=section.untuned or section.title) for section in OUTLINE if not section.tuned_only]
    return sorted(kept, key=lambda section: section.name not in UNTUNED_FIRST)


def figure_entries() -> list[FigureEntry]:
    """All kinds of figures, in the order of the page."""
    return [entry for section in OUTLINE for entry in section.figures]


def draw_figures(results: Results) -> list[Figure]:
    """All figures for which the results have data, in the order of the page."""
    return [figure for entry in figure_entries() for figure in draw_kind(entry, results)]


def draw_kind(entry: FigureEntry, results: Results) -> list[Figure]:
    """The figures of one kind for which the results have data."""
    reading = (not results.all_runs and entry.untuned) or entry.reading
    figures = [replace(figure, kind=entry.kind, reading=reading) for figure in entry.draw(results)]
    if results.all_runs:
        return figures
    return [replace(figure, caption=without_state(figure.caption)) for figure in figures]


def tables_of(section: Section, results: Results) -> Iterator[tuple[TableEntry, Table]]:
    """The non-empty tables of a section, each with its entry in the outline.

    Without fine-tuning, columns of values before fine-tuning are called by the measure alone.
    """
    for entry in section.tables:
        table = entry.make(results)
        if table:
            yield entry, table if results.all_runs else without_states(table)
