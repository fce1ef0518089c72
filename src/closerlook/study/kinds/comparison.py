"""The study cell that compares two spaces by label distances: spatial similarity, and changes of minimum distances."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from closerlook.geometry import Similarity, spatial_similarity
from closerlook.geometry.label_sizes import size_adjusted_similarity
from closerlook.geometry.p_values import FEWEST_SHUFFLES, SIGNIFICANCE
from closerlook.geometry.resampling import ResampledDistances, adjust, change_p_values, resample_similarity
from closerlook.geometry.similarity import FEWEST_LABELS
from closerlook.study.cells import Cell, ResolvedPlan
from closerlook.study.entries import PlanPart
from closerlook.study.files import read_payload
from closerlook.study.kinds.geometry import confidence_bounds
from closerlook.study.kinds.geometry_payload import LabelTable, decode_replicates, decode_sizes
from closerlook.study.kinds.kind import CellResult, Kind
from closerlook.study.measure import Measure
from closerlook.study.rows import Payload, Row, row
from closerlook.study.sizes import BASE_BYTES, Estimate

if TYPE_CHECKING:
    from closerlook.study.plan import Plan

MOST_PERMUTATIONS = 999
"""Maximum number of permutations in the test of the similarity with label sizes removed, which is slower."""

MEASURES = (
    Measure(
        "similarity",
        "spatial similarity",
        "Pearson correlation of the label distances of two spaces; interval: bootstrap over labels; n: number of "
        "common labels",
        compares=True,
    ),
    Measure(
        "similarity_spearman",
        "spatial similarity of ranks",
        "Spearman rank correlation of the label distances of two spaces",
        compares=True,
    ),
    Measure(
        "similarity_p_value",
        "p-value of the similarity",
        "share of permutations of the labels, the unpermuted labels included, with a similarity at least as high "
        "(Mantel test); n: number of permutations",
        digits=4,
        compares=True,
    ),
    Measure(
        "similarity_null_mean",
        "similarity with shuffled labels",
        "mean similarity when the labels of one space are permuted; n: permutations",
        compares=True,
    ),
    Measure(
        "similarity_null_sd",
        "standard deviation of the similarity with shuffled labels",
        "standard deviation of the similarity when the labels of one space are permuted",
        compares=True,
    ),
    Measure(
        "similarity_size_adjusted",
        "similarity with label sizes removed",
        "correlation of the label distances of two spaces after the effects of single labels and of label sizes are "
        "removed from both; needs 8 labels; n: number of common labels",
        compares=True,
    ),
    Measure(
        "similarity_size_adjusted_p_value",
        "p-value of the similarity with label sizes removed",
        "share of permutations of the labels, the unpermuted labels included, with a similarity at least as high after "
        "label sizes are removed (Freedman–Lane test); n: number of permutations",
        digits=4,
        compares=True,
    ),
    Measure(
        "similarity_both_separable",
        "both spaces linearly separable",
        "1 if both spaces are linearly separable, which the paper's definition of similarity assumes; else 0",
        digits=0,
        compares=True,
    ),
    Measure(
        "similarity_excluded_labels",
        "labels excluded from the similarity",
        "number of labels that occur in only one of the two spaces; text (JSON): their names, and the names of labels "
        "that are excluded because they have no distances, which are not counted",
        digits=0,
        compares=True,
    ),
    Measure(
        "similarity_over_examples",
        "similarity with an interval over examples",
        "spatial similarity of two spaces; interval: from halves of the examples instead of over labels; n: number of "
        "halves",
        compares=True,
    ),
    Measure(
        "random_label_distance",
        "label distance with random weights",
        "label distance in the train space of the same encoder with random weights, which similarity_random compares",
        rows="label pair",
    ),
    Measure(
        "minimum_distance_change",
        "change of the minimum distance",
        "change of a label's minimum distance by fine-tuning",
        rows="label",
        compares=True,
        training_only=True,
        archive="none",
    ),
    Measure(
        "minimum_distance_change_p_value",
        "p-value of the change (Holm)",
        "p-value of the test that a label's minimum distance does not change, from halves of the same examples, "
        "Holm-corrected for the number of labels",
        digits=4,
        rows="label",
        compares=True,
        training_only=True,
        archive="last layer",
    ),
    Measure(
        "n_labels_increased",
        "labels that move farther away",
        "number of labels whose minimum distance is larger than before fine-tuning",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "n_labels_decreased",
        "labels that move closer",
        "number of labels whose minimum distance is smaller than before fine-tuning",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "n_labels_significantly_increased",
        "labels that move significantly farther away",
        "number of labels whose minimum distance increased with a Holm-corrected p ≤ 0.05; n: number of labels tested",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "n_labels_significantly_decreased",
        "labels that move significantly closer",
        "number of labels whose minimum distance decreased with a Holm-corrected p ≤ 0.05; n: number of labels tested",
        digits=0,
        compares=True,
        training_only=True,
    ),
    Measure(
        "mean_minimum_distance_change",
        "mean change of the minimum distance",
        "change of the minimum distance by fine-tuning, mean over labels; n: number of labels",
        compares=True,
        training_only=True,
    ),
)


class Compare(PlanPart):
    """Which spaces are compared.

    train_test: train with each test split. original: each snapshot with the encoder before fine-tuning. seeds: encoders
    that were fine-tuned with different seeds. encoders: different pretrained encoders.
    """

    train_test: bool = True
    original: bool = True
    seeds: bool = True
    encoders: bool = True


def content(plan: Plan, a: str, b: str) -> dict[str, Any]:
    """What goes into the key of the cell that compares two spaces. a, b: the keys of the cells that cluster them."""
    return {"a": a, "b": b, "permutations": plan.geometry.permutations, "resamples": plan.geometry.resamples}


def run(cell: Cell, out: Path, threads: int) -> CellResult:
    """Compare the label distances that two earlier cells measured."""
    a, b = (read_payload(out, cell.content[side]) for side in "ab")
    if "distances" not in a or "distances" not in b:
        return [row("similarity", None, n=0)], {}
    rows = compare_spaces(a, b, permutations=cell.content["permutations"], resamples=cell.content["resamples"])
    return rows, {}


def estimate(study: ResolvedPlan, cell: Cell) -> Estimate:
    """Expected cost: a tenth of a second for any spaces."""
    return Estimate(0.1, BASE_BYTES, 10_000)


KIND = Kind(
    "comparison",
    5,
    "compare",
    run,
    estimate,
    title="spatial similarity",
    requests=("similarity",),
    measures=MEASURES,
    from_results=True,
)


def compare_spaces(a: Payload, b: Payload, *, permutations: int, resamples: int) -> list[Row]:
    """The rows that compare two spaces: similarity, and the change of each label's minimum distance from a to b."""
    before, after = _minimum_distances(a), _minimum_distances(b)
    shared = [label for label in before if label in after]
    if len(shared) < FEWEST_LABELS:
        rows = [row("similarity", None, n=len(shared))]
    else:
        similarity = spatial_similarity(LabelTable(a), LabelTable(b), permutations=permutations, resamples=resamples)
        rows = _similarity_rows(similarity) + _size_adjusted_rows(a, b, min(permutations, MOST_PERMUTATIONS))
        rows += _similarity_over_examples(similarity.pearson, decode_replicates(a), decode_replicates(b))
    changes = {label: after[label] - before[label] for label in shared}
    rows += [row("minimum_distance_change", change, label=label) for label, change in changes.items()]
    rows += _change_tests(a, b, changes)
    if changes:
        values = list(changes.values())
        rows.append(row("n_labels_increased", sum(change > 0 for change in values)))
        rows.append(row("n_labels_decreased", sum(change < 0 for change in values)))
        rows.append(row("mean_minimum_distance_change", float(np.mean(values)), n=len(values)))
    return rows


def _similarity_rows(similarity: Similarity) -> list[Row]:
    """The similarity by Pearson and Spearman, its p-value and null, and the labels that it excludes."""
    rows = [
        row(measure, value, ci_low=interval[0], ci_high=interval[1], n=similarity.n_labels)
        for measure, value, interval in (
            ("similarity", similarity.pearson, similarity.pearson_interval),
            ("similarity_spearman", similarity.spearman, similarity.spearman_interval),
        )
    ]
    if similarity.permutations >= FEWEST_SHUFFLES:  # otherwise it cannot be small
        rows.append(row("similarity_p_value", similarity.p_value, n=similarity.permutations))
    if math.isfinite(similarity.null_deviation):
        rows.append(row("similarity_null_mean", similarity.null_mean, n=similarity.permutations))
        rows.append(row("similarity_null_sd", similarity.null_deviation, n=similarity.permutations))
    separable = similarity.separable
    rows.append(row("similarity_both_separable", None if separable is None else float(separable)))
    excluded = {"excluded": [*similarity.excluded_a, *similarity.excluded_b], "undefined": list(similarity.undefined)}
    if any(excluded.values()):
        rows.append(row("similarity_excluded_labels", len(excluded["excluded"]), text=json.dumps(excluded)))
    return rows


def _size_adjusted_rows(a: Payload, b: Payload, permutations: int) -> list[Row]:
    """The similarity with label sizes removed, and its p-value, if they can be computed."""
    sizes = decode_sizes(a), decode_sizes(b)
    if not all(sizes):
        return []
    adjusted = size_adjusted_similarity(LabelTable(a), LabelTable(b), *sizes, permutations=permutations)
    rows = [
        row("similarity_size_adjusted", adjusted.pearson, n=adjusted.n_labels),
        row("similarity_size_adjusted_p_value", adjusted.p_value, n=permutations),
    ]
    return [one for one in rows if one["value"] is not None]


def _similarity_over_examples(value: float, a: ResampledDistances, b: ResampledDistances) -> list[Row]:
    """The similarity with a confidence interval from halves of the examples, if both spaces have the same resamples."""
    if not a.resamples or a.resamples != b.resamples:
        return []
    bounds = confidence_bounds(value, resample_similarity(a, b), within=(-1.0, 1.0))
    return [row("similarity_over_examples", value, n=a.resamples, **bounds)] if bounds else []


def _change_tests(a: Payload, b: Payload, changes: dict[str | int, float]) -> list[Row]:
    """The p-value of each label's change, Holm-corrected, if both spaces have the same labels and resamples."""
    before, after = decode_replicates(a), decode_replicates(b)
    if not before.resamples or before.labels != after.labels or before.resamples != after.resamples:
        return []
    observed = np.array([changes.get(label, math.nan) for label in before.labels])
    adjusted = adjust(change_p_values(before, after, observed))
    rows = [
        row("minimum_distance_change_p_value", p, label=label, n=before.resamples, text="Holm")
        for label, p in zip(before.labels, adjusted, strict=True)
        if math.isfinite(p)
    ]
    signs = [np.sign(observed[at]) for at, p in enumerate(adjusted) if p <= SIGNIFICANCE]
    return [
        *rows,
        row("n_labels_significantly_increased", sum(sign > 0 for sign in signs), n=len(rows)),
        row("n_labels_significantly_decreased", sum(sign < 0 for sign in signs), n=len(rows)),
    ]


def _minimum_distances(payload: Payload) -> dict[str | int, float]:
    """The distance of each label to the nearest other label, for labels that have one."""
    table = LabelTable(payload)
    distances = table.values.copy()
    np.fill_diagonal(distances, np.nan)
    defined = np.isfinite(distances).any(axis=1)
    return {
        label: float(np.nanmin(line))
        for label, line, is_defined in zip(table.labels, distances, defined, strict=True)
        if is_defined
    }
