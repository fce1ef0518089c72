"""`Difference`: the tables of a comparison of two encoders, and what they say in sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from closerlook.notebook import html

if TYPE_CHECKING:
    import pandas as pd


class Change(NamedTuple):
    """A measure before and after, their difference with its 95% interval, and its p-value; NaN for what is unknown."""

    before: float
    after: float
    change: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Difference:
    """What changed from one encoder to another, on the same examples.

    related: whether they are versions of one model; if not, movements of examples are not measured. layers: one row for
    each task, layer and measure. `layer` is that of the first encoder, `layer_after` that of the second; low, high: the
    95% interval of the change. Measures: accuracy (of a probe on the test split), labels, clusters, separable (1 or 0),
    minimum_distance (mean over labels, in RMS radii), similarity (spatial, to before), cka (to before), and at the last
    layer separable_pairs (share), also with shuffled labels, and head_accuracy (of the encoders' own classification
    heads on test, if they have any with the task's labels). labels: one row for each task and label, at the last
    layer; distances to the nearest other label in RMS radii; moved: 'farther' or 'closer' if the change is significant
    (p ≤ 0.05 after Holm). examples: one row for each test example, at the last layer; moved: in RMS radii; became:
    'right' or 'wrong' if the label of its nearest cluster changed to or from the true one.

    >>> from closerlook import diff
    >>> result = diff("random:bert-tiny", "bert-tiny", "toy-question", max_examples=100, shuffles=0, resamples=4)
    >>> result
    Difference(random:bert-tiny → bert-tiny: toy-question)
    >>> result.changes("toy-question")["clusters"].after, result.labels.shape[0], result.examples.shape[0]
    (19.0, 19, 86)
    >>> result.write("diff.html").name
    'diff.html'
    """

    before: str
    after: str
    related: bool
    settings: dict[str, Any]
    layers: pd.DataFrame
    labels: pd.DataFrame
    examples: pd.DataFrame

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks, in the order given."""
        return list(dict.fromkeys(self.layers.task))

    def last_layer(self, task: str) -> pd.DataFrame:
        """The measures of the last layer of a task, by name."""
        rows = self.layers[self.layers["task"] == task]
        last: pd.DataFrame = rows[rows["layer"] == rows["layer"].max()].set_index("measure")
        return last

    def changes(self, task: str) -> dict[str, Change]:
        """The measures of the last layer of a task as numbers, by name."""
        last = self.last_layer(task)
        columns = [last[name].to_numpy(float).tolist() for name in Change._fields]
        return {str(name): Change(*values) for name, *values in zip(last.index, *columns, strict=True)}

    def summary(self) -> dict[str, list[str]]:
        """What changed at the last layer, in sentences, for each task."""
        return {task: self._sentences(task) for task in self.tasks}

    def _sentences(self, task: str) -> list[str]:
        last, labels = self.changes(task), self.labels[self.labels["task"] == task]
        accuracy, clusters = last["accuracy"], last["clusters"]
        verdict = "a significant change" if accuracy.p_value <= 0.05 else "within noise"
        sentences = [
            f"Probe accuracy {100 * accuracy.before:.1f} → {100 * accuracy.after:.1f} % ({verdict}: "
            f"{_signed(100 * accuracy.change)}, 95% interval {_signed(100 * accuracy.low)} to "
            f"{_signed(100 * accuracy.high)}).",
            *_head_sentence(last.get("head_accuracy")),
            f"Clusters {clusters.before:.0f} → {clusters.after:.0f} for {last['labels'].after:.0f} labels"
            f"{self._separable(last)}.",
        ]
        moved = Counter(labels["moved"])
        distance = last["minimum_distance"]
        sentences.append(
            f"Distance to the nearest other label {distance.before:.3f} → {distance.after:.3f} RMS radii (mean); "
            f"{moved['farther']} of {len(labels)} labels moved significantly farther from their nearest "
            f"neighbour, {moved['closer']} closer."
        )
        similarity, cka = last["similarity"].after, last["cka"].after
        shown = "" if isnan(similarity) else f"spatial similarity {similarity:.2f}, "
        sentences.append(f"Similarity of the two spaces: {shown}CKA {cka:.2f}.")
        examples = self.examples[self.examples["task"] == task]
        became = Counter(examples["became"])
        sentences.append(
            f"By nearest cluster, {became['right']} of {len(examples)} test examples became right and "
            f"{became['wrong']} wrong."
        )
        return sentences

    def _separable(self, last: dict[str, Change]) -> str:
        """Whether the space is linearly separable before and after, and whether that says anything."""
        before, after = (
            "linearly separable" if value else "not linearly separable"
            for value in (last["separable"].before, last["separable"].after)
        )
        text = f"; {before} before and after" if before == after else f"; {before} before, {after} after"
        if "separable_pairs_shuffled" not in last:
            return text
        pairs, shuffled = last["separable_pairs"], last["separable_pairs_shuffled"]
        by_chance = f"with shuffled labels, {100 * shuffled.before:.1f} → {100 * shuffled.after:.1f} %"
        if last["separable"].before and last["separable"].after:
            return f"{text} ({by_chance} of pairs of labels are)"
        return f"{text} ({100 * pairs.before:.1f} → {100 * pairs.after:.1f} % of pairs of labels are; {by_chance})"

    def __str__(self) -> str:
        lines = [f"{self.before} → {self.after}"]
        for task, sentences in self.summary().items():
            lines += [f"{task}, last layer:", *(f"  {sentence}" for sentence in sentences)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Difference({self.before} → {self.after}: {', '.join(self.tasks)})"

    def _repr_html_(self) -> str:
        parts = (part for task, sentences in self.summary().items() for part in (f"{task}, last layer:", sentences))
        return html(f"{self.before} → {self.after}", *parts)

    def to_frame(self) -> pd.DataFrame:
        """The table `layers`: one row for each task, layer and measure."""
        return self.layers

    def write(self, path: str | Path = "diff.html") -> Path:
        """Write the page of this comparison, one HTML file that works offline, and return its absolute path."""
        from closerlook.differences.page import write_page

        return write_page(self, path)

    def to_dict(self) -> dict[str, Any]:
        """The settings, sentences and tables as plain values for JSON, with None for NaN."""
        return {
            "before": self.before,
            "after": self.after,
            "settings": self.settings,
            "summary": self.summary(),
            "layers": records(self.layers),
            "labels": records(self.labels),
            "examples": records(self.examples),
        }


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as plain values, with None for NaN."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def _head_sentence(head: Change | None) -> list[str]:
    """What the classification heads of the two encoders score; empty if neither has a head for the task."""
    if head is None:
        return []
    if not isnan(head.before) and not isnan(head.after):
        return [f"Accuracy of their own classification heads {100 * head.before:.1f} → {100 * head.after:.1f} %."]
    state, value = ("before", head.before) if isnan(head.after) else ("after", head.after)
    return [f"Accuracy of its own classification head {state}: {100 * value:.1f} %."]


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
