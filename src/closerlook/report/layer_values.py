"""The main measures of every encoder at every layer, and the best of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from closerlook.report.before_after import PRETRAINED_STATE, STATES, over_seeds, runs_of
from closerlook.report.measures import title_of
from closerlook.report.tables import Column, Table, Value, text_columns
from closerlook.study.readings import Measurement, Results
from closerlook.study.registry import measure

MEASURES = {"accuracy": 1, "n_clusters": -1, "mean_relative_minimum_distance": 1}
"""The measures that are shown by layer, and whether larger (1) or smaller (-1) is taken as better."""

BEST = "★"
"""Marks the best value of a measure."""


@dataclass(frozen=True)
class LayerValue:
    """A measure of an encoder on a task at a layer. state: before or after fine-tuning, or pretrained."""

    encoder: str
    state: str
    layer: int
    measure: str
    measurement: Measurement

    @property
    def where(self) -> str:
        """The encoder, its state if it was fine-tuned, and the layer, for sentences."""
        state = "" if self.state == PRETRAINED_STATE else f" {self.state} fine-tuning"
        return f"{self.encoder}{state}, layer {self.layer}"


def layer_values(results: Results, task: str, names: Iterable[str] = tuple(MEASURES)) -> list[LayerValue]:
    """The values of a task, by measure, encoder, state and layer, where they were measured; means over seeds.

    names: the measures.
    """
    values: list[LayerValue] = []
    for name in names:
        scale = measure(name).scale
        for encoder in results.encoders:
            runs = runs_of(results, encoder, task)
            for state in STATES if runs else STATES[:1]:
                for layer in results.layers[encoder]:
                    found = over_seeds(
                        *(
                            [results.after(one, run, layer=layer) for run in runs]
                            if state == "after"
                            else [results.before(one, encoder, task, layer=layer)]
                            for one in (name, f"{name}_sd")
                        )
                    )
                    if found is not None:
                        shown = state if results.all_runs else PRETRAINED_STATE
                        values.append(LayerValue(encoder, shown, layer, name, found.scaled(scale)))
    return values


def by_encoder_and_layer(
    results: Results, values: Iterable[LayerValue]
) -> dict[tuple[str, str, int], dict[str, LayerValue]]:
    """The values of a task by encoder (in the order of the plan), state and layer, and then by measure."""
    states = (*STATES, PRETRAINED_STATE)
    by_place: dict[tuple[str, str, int], dict[str, LayerValue]] = {}
    for one in sorted(
        values, key=lambda one: (results.encoders.index(one.encoder), states.index(one.state), one.layer)
    ):
        by_place.setdefault((one.encoder, one.state, one.layer), {})[one.measure] = one
    return by_place


def best_values(values: list[LayerValue]) -> dict[str, LayerValue]:
    """The best value of each measure; of equal values the first, which is that of the lowest layer."""
    return {
        name: max(of_measure, key=lambda one: sign * one.measurement.value)
        for name, sign in MEASURES.items()
        if (of_measure := [one for one in values if one.measure == name])
    }


def best_sentences(results: Results) -> list[str]:
    """For each task, the encoder and layer with the highest accuracy, if there are several.

    With fine-tuning, only if accuracy was measured at several layers: other tables compare encoders at the last layer.
    """
    sentences = []
    for task in results.tasks:
        values = [one for one in layer_values(results, task) if one.measure == "accuracy"]
        if len({one.layer for one in values} if results.all_runs else values) < 2:
            continue
        best, *_, worst = sorted(values, key=lambda one: -one.measurement.value)
        tested = results.before("accuracy", best.encoder, task, layer=best.layer)
        majority = results.before("majority_accuracy", best.encoder, task, layer=best.layer)
        sentences.append(
            f"{task}: the highest probe accuracy of {len(values)} spaces is {best.measurement.value:.1f} % "
            f"({best.where}), the lowest {worst.measurement.value:.1f} % ({worst.where})"
            + (f"; always predicting the most frequent label gives {100 * majority.value:.1f} %" if majority else "")
            + (f"; {tested.n:,} test examples." if tested and tested.n else ".")
        )
    return sentences


def best_text(results: Results) -> str:
    """Which encoder and layer has the highest accuracy on each task; empty without accuracies to compare.

    Empty also without fine-tuning: such a page opens with these sentences.
    """
    sentences = best_sentences(results) if results.all_runs else []
    return " ".join([*sentences, CHANCE_NOTE]) if sentences else ""


CHANCE_NOTE = "Small differences can be due to the choice of test examples and of probe seeds."


def layer_values_table(results: Results) -> Table:
    """The main measures at every layer of every encoder; the best value of each task is marked."""
    rows: list[tuple[Value, ...]] = []
    for task in results.tasks:
        values = layer_values(results, task)
        best = set(best_values(values).values())
        by_place = by_encoder_and_layer(results, values)
        if len(by_place) < 2:
            continue
        for place, cells in by_place.items():
            marks = [title_of(name).removesuffix(", %") for name, one in cells.items() if one in best]
            shown = [cells[name].measurement if name in cells else None for name in MEASURES]
            rows.append((task, *place, *shown, f"{BEST} best {', '.join(marks)}" if marks else ""))
    columns = (
        *(*text_columns("task", "encoder", "state"), Column("layer")),
        *(Column(title_of(name), digits=measure(name).digits) for name in MEASURES),
        *text_columns("remark"),
    )
    note = (
        "Accuracy: of a classifier probe on the test split; clusters and distances: on train. Distances are in RMS "
        f"radii, so that layers can be compared. {BEST}: the highest accuracy, the fewest clusters, or the largest "
        f"distance of the task. {CHANCE_NOTE}"
    )
    return Table("by-layer", "Every encoder at every layer", note, columns, tuple(rows)).without_empty()
