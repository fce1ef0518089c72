"""What happened in each fine-tuning, in sentences with numbers: the opening of a page about few fine-tunings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from closerlook.report.before_after import difference, mean_of, over_seeds
from closerlook.report.extent import extent_of
from closerlook.report.finding_tables import mean_significantly_moved
from closerlook.report.tables import Table, Value, count_of, show_signed, text_columns
from closerlook.study.earlier_rules import raw_moved_labels
from closerlook.study.findings import accuracy_test, moved_labels
from closerlook.study.readings import Measurement, Results
from closerlook.study.runs import UNKNOWN, Pair, Run, by_pair

MOST_OTHER_TASKS = 6
"""With more measurements on other tasks than this, the opening leaves them to the section about other tasks."""


@dataclass(frozen=True)
class Account:
    """What happened to an encoder on a task: the pair, its number of seeds, and the sentences."""

    pair: Pair
    seeds: int
    sentences: tuple[str, ...]

    @property
    def remark(self) -> str:
        """What to know about the training, after the names of encoder and task."""
        if self.pair.tuned_on == UNKNOWN:
            training = "the task of the training is not known"
        else:
            training = "" if self.pair.own else f"fine-tuned on {self.pair.tuned_on}"
        parts = [training, f"mean of {self.seeds} seeds" if self.seeds > 1 else ""]
        return ", ".join(part for part in parts if part)


def what_changed(results: Results) -> list[Account]:
    """The accounts of all fine-tunings on their own tasks, then on other tasks, if these are few."""
    pairs = by_pair(results.all_runs)
    own, other = ([pair for pair in pairs if pair.own == is_own] for is_own in (True, False))
    shown = own + (other if len(other) <= MOST_OTHER_TASKS else [])
    return [Account(pair, len(pairs[pair]), tuple(_sentences(results, pair, pairs[pair]))) for pair in shown]


def changes_table(results: Results) -> Table:
    """What happened in each fine-tuning, one sentence in each row; empty if there are none, or many."""
    accounts = what_changed(results) if extent_of(results) == "few" else []
    rows: list[tuple[Value, ...]] = [
        (account.pair.encoder, account.pair.task, account.remark, sentence)
        for account in accounts
        for sentence in account.sentences
    ]
    columns = text_columns("encoder", "task", "remark", "before fine-tuning → after it")
    return Table("changes", "What happened", NOTE if rows else "", columns, tuple(rows)).without_empty()


NOTE = (
    "At the last layer: before fine-tuning → after it. Accuracy: of a classifier probe on the test split; clusters, "
    "distances and the similarity to the pretrained encoder: on train. Beyond noise: larger than the half-width of its "
    "95% interval."
)


def _sentences(results: Results, pair: Pair, runs: Sequence[Run]) -> list[str]:
    parts = [
        _accuracy(results, pair, runs),
        _clusters(results, pair, runs),
        _distances(results, pair, runs),
        _similarity(results, pair, runs),
    ]
    return [part for part in parts if part] or ["Nothing was measured both before and after."]


def _both(results: Results, name: str, runs: Sequence[Run]) -> tuple[Measurement, Measurement] | None:
    before = results.before(name, runs[0].encoder, runs[0].task)
    after = over_seeds([results.after(name, run) for run in runs])
    return None if before is None or after is None else (before, after)


def _accuracy(results: Results, pair: Pair, runs: Sequence[Run]) -> str:
    """Accuracy of the probe before and after, with its noise; and that of the training's own head."""
    both = _both(results, "accuracy", runs)
    head = mean_of([results.after("head_accuracy", run, split=results.test_split) for run in runs])
    own = f"accuracy of the fine-tuned head {100 * head:.1f} %" if head is not None else ""
    if both is None:
        return f"{own[:1].upper()}{own[1:]}." if own else ""
    test = accuracy_test(results, pair, runs)
    noise = ""
    if test is not None:
        margin = 1.96 * test.error
        beyond = "beyond noise" if abs(test.change) > margin else "within noise"
        noise = f" ({show_signed(100 * test.change, 1)} points, {beyond}: ± {100 * margin:.1f})"
    text = f"Probe accuracy {100 * both[0].value:.1f} → {100 * both[1].value:.1f} %{noise}"
    return f"{text}; {own}." if own else f"{text}."


def _clusters(results: Results, pair: Pair, runs: Sequence[Run]) -> str:
    """The number of clusters before and after, for how many labels, and linear separability."""
    both = _both(results, "n_clusters", runs)
    if both is None:
        return ""
    labels = results.before("n_labels", pair.encoder, pair.task)
    for_labels = f" for {count_of(int(labels.value), 'label')}" if labels else ""
    separable = _both(results, "is_separable", runs)
    return f"Clusters {both[0].value:.0f} → {both[1].value:.4g}{for_labels}{_separable(separable)}."


def _separable(both: tuple[Measurement, Measurement] | None) -> str:
    if both is None:
        return ""
    before, after = ("linearly separable" if one.value == 1 else "not linearly separable" for one in both)
    return f"; {before} before and after" if before == after else f"; {before} before, {after} after"


def _distances(results: Results, pair: Pair, runs: Sequence[Run]) -> str:
    """How many labels moved farther from their nearest neighbours, and the mean distance before and after."""
    moved = [counts for run in runs if (counts := raw_moved_labels(results, run)) is not None]
    both = _both(results, "mean_minimum_distance", runs)
    relative = _both(results, "mean_relative_minimum_distance", runs)
    parts = []
    if moved:
        farther, closer, still = (sum(column) / len(moved) for column in zip(*moved, strict=True))
        parts.append(
            f"{farther:.4g} of {farther + closer + still:.4g} labels farther from their nearest neighbour, "
            f"{closer:.4g} closer{_beyond_noise(results, pair, runs)}"
        )
    if both is not None:
        shown = f" ({relative[0].value:.3f} → {relative[1].value:.3f} RMS radii)" if relative else ""
        parts.append(f"mean distance to the nearest other label {both[0].value:.3g} → {both[1].value:.3g}{shown}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _beyond_noise(results: Results, pair: Pair, runs: Sequence[Run]) -> str:
    """How many labels moved beyond noise or, if that is unknown, significantly, in brackets."""
    counts = moved_labels(results, pair, runs)
    if counts is not None:
        return f" ({counts[0]} and {counts[1]} beyond noise)"
    farther, closer = mean_significantly_moved(results, runs)
    return "" if farther is None or closer is None else f" ({farther} and {closer} significantly)"


def _similarity(results: Results, pair: Pair, runs: Sequence[Run]) -> str:
    """The similarity to the pretrained encoder at the last layer, and that of train and test before and after."""
    kept = mean_of([results.after("similarity_original", run) for run in runs])
    both = _both(results, f"similarity_{results.train_test}", runs)
    parts = [] if kept is None else [f"similarity of the last layer to the pretrained encoder {kept:.2f}"]
    if both is not None:
        change = difference(*both)
        parts.append(
            f"train–{results.test_split} similarity {both[0].value:.2f} → {both[1].value:.2f} "
            f"({show_signed(change or 0.0, 2)})"
        )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""
