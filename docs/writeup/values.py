"""A kept study as values for the templates of the write-up: numbers, lists of runs and pairs, and phrases.

`docs/write_up.py` renders the templates. Sums and deviations are computed by Python's `statistics`, which gives the
same digits on every processor.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from closerlook.report.before_after import mean_of, runs_of
from closerlook.report.export import to_markdown
from closerlook.report.outline import draw_kind, figure_entries, sections_of, tables_of
from closerlook.report.published import CROSS_ENCODER, paper_name, published_row
from closerlook.report.tables import Table
from closerlook.report.writing import file_names, load_study
from closerlook.study.earlier_rules import earlier_verdicts, raw_moved_labels
from closerlook.study.findings import accuracy_test, judge_results, relation, similarity_by_layer
from closerlook.study.readings import Measurement, Results
from closerlook.study.runs import Pair, by_pair
from writeup.phrases import LATER, SHORT, StaleTextError
from writeup.records import Change, Compared, Harm, Moved

if TYPE_CHECKING:
    from closerlook.report.figures import Figure
    from closerlook.study.earlier_rules import EarlierVerdict
    from closerlook.study.runs import Run
    from closerlook.study.verdicts import Answer, Finding


class Study:
    """The kept results of a study, with the functions that templates call."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._changes: dict[tuple[str, tuple[Run, ...]], Change | None] = {}

    @classmethod
    def load(cls, folder: Path) -> Study:
        """The study in a folder."""
        return cls(load_study(folder))

    # ---- what there is ----

    @cached_property
    def encoders(self) -> tuple[str, ...]:
        """The encoders that were fine-tuned, in the order of the plan."""
        tuned = {run.encoder for run in self.results.all_runs}
        return tuple(name for name in self.results.encoders if name in tuned)

    @cached_property
    def berts(self) -> tuple[str, ...]:
        """The encoders with a name of the paper."""
        return tuple(name for name in self.encoders if published_row(name, "pos", "original") is not None)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks in the order of the plan."""
        return self.results.tasks

    @property
    def focus(self) -> str:
        """The encoder of the figures: that of the paper's Table 5 if it was run, otherwise the last BERT."""
        return CROSS_ENCODER if CROSS_ENCODER in self.berts else self.berts[-1]

    @property
    def later(self) -> tuple[str, ...]:
        """The encoders that saw fewer tokens for their size than the others."""
        return tuple(name for name in self.berts if paper_name(name) in LATER)

    def seeds(self, encoder: str, task: str) -> int:
        """The number of seeds with which an encoder was fine-tuned on a task."""
        return len({run.seed for run in self.results.all_runs if (run.encoder, run.tuned_on) == (encoder, task)})

    def seeds_in_all(self, encoder: str) -> tuple[int, ...]:
        """The numbers of seeds with which an encoder was fine-tuned on its tasks: (3,), or (1, 3) if they differ."""
        return tuple(sorted({self.seeds(encoder, task) for task in self.tasks} - {0}))

    def with_one_seed(self) -> list[Pair]:
        """The encoders and tasks that were fine-tuned with one seed only."""
        return [Pair(one, task, task) for one in self.encoders for task in self.tasks if self.seeds(one, task) == 1]

    def followed(self) -> list[Pair]:
        """The encoders and tasks for which all layers were measured at all snapshots of the fine-tuning."""
        rows = self.results.of("similarity_original")
        own = rows[(rows["tuned_on"] == rows["task"]) & rows["value"].notna()]
        steps = (
            own.groupby(["encoder", "task", "layer"])["step"].nunique().groupby(["encoder", "task"]).agg(["min", "max"])
        )
        full = {pair for pair, (least, most) in zip(steps.index, steps.to_numpy(), strict=True) if least == most > 2}
        return [Pair(one, task, task) for one in self.encoders for task in self.tasks if (one, task) in full]

    def undecided(self) -> tuple[int, int]:
        """The number of spaces with undecided pairs of clusters, and of all spaces."""
        spaces = self.results.of("n_undecided").drop_duplicates("cell")
        return int((spaces["value"] > 0).sum()), len(spaces)

    @property
    def hours(self) -> float:
        """The hours of work of all cells."""
        return float(sum(kind["seconds"] for kind in self.results.manifest["kinds"].values())) / 3600

    def has(self, measure: str) -> bool:
        """Whether a measure is in the table."""
        return self.results.has(measure)

    def plan(self, *entries: str) -> Any:
        """An entry of the plan: `plan("nulls", "shuffles")`."""
        found: Any = self.results.manifest["plan"]
        for entry in entries:
            found = found[entry]
        return found

    def facts(self, section: str, name: str) -> dict[str, Any]:
        """What the manifest says about an encoder or a task."""
        return self.results.manifest_entry(section, name)

    @property
    def is_unfinished(self) -> bool:
        """Whether some cells of the study have not run."""
        cells = self.results.manifest["cells"]
        return bool(cells["done"] < cells["total"])

    def layer_changes(self) -> list[Change]:
        """For each run, the similarity to the pretrained encoder in the lower and in the upper half of the layers."""
        found = []
        for run in self.results.runs(own=True):
            values = [one.value for _, one in sorted(similarity_by_layer(self.results, run).items())]
            half = len(values) // 2
            if half:
                lower, upper = statistics.fmean(values[:half]), statistics.fmean(values[-half:])
                found.append(Change(run.encoder, run.task, run.tuned_on, lower, upper, seed=run.seed))
        return found

    # ---- values ----

    def before(self, measure: str, encoder: str, task: str, layer: int | None = None, split: str = "") -> float:
        """A measure of the pretrained encoder."""
        return _known(self.results.before(measure, encoder, task, layer=layer, split=split), measure, encoder, task)

    def after(self, measure: str, encoder: str, task: str, layer: int | None = None, split: str = "") -> float:
        """A measure after fine-tuning on the task, mean over seeds."""
        runs = runs_of(self.results, encoder, task)
        ends = [self.results.after(measure, run, layer=layer, split=split) for run in runs]
        found = mean_of(ends)
        if found is None:
            raise StaleTextError(f"the kept table has no {measure} of {encoder} on {task} after fine-tuning")
        return found

    def runs(self, measure: str, encoders: Iterable[str] = (), tasks: Iterable[str] = ()) -> list[Change]:
        """A measure before and after each fine-tuning run, on its own task, where both were measured."""
        chosen = self._own(encoders, tasks)
        return [change for run in chosen if (change := self._change(measure, [run])) is not None]

    def pairs(self, measure: str, encoders: Iterable[str] = (), tasks: Iterable[str] = ()) -> list[Change]:
        """A measure before and after fine-tuning for each encoder and task, mean over seeds."""
        by_pair: dict[tuple[str, str], list[Run]] = {}
        for run in self._own(encoders, tasks):
            by_pair.setdefault((run.encoder, run.task), []).append(run)
        return [change for runs in by_pair.values() if (change := self._change(measure, runs)) is not None]

    def crossed(self, measure: str, tuned_on: str, task: str, encoders: Iterable[str] = ()) -> list[Change]:
        """A measure on one task before and after fine-tuning on another one, for each encoder, mean over seeds."""
        changes = [
            self._change(measure, runs_of(self.results, encoder, task, tuned_on))
            for encoder in encoders or self.encoders
        ]
        return [change for change in changes if change is not None]

    def ends(self, measure: str, encoders: Iterable[str] = (), tasks: Iterable[str] = ()) -> list[float]:
        """A measure at the end of each fine-tuning run, on its own task, where it was measured."""
        found = [self.results.after(measure, run) for run in self._own(encoders, tasks)]
        return [end.value for end in found if end is not None]

    def starts(self, measure: str, encoders: Iterable[str] = (), tasks: Iterable[str] = ()) -> list[float]:
        """A measure of the pretrained encoders on each task, where it was measured."""
        names, known = tuple(encoders) or self.encoders, tuple(tasks) or self.tasks
        found = [self.results.before(measure, encoder, task) for encoder in names for task in known]
        return [start.value for start in found if start is not None]

    def deviations(self, measure: str, scale: float = 1.0) -> list[float]:
        """The standard deviation of a measure over seeds, for each encoder and task with several seeds."""
        return [scale * one.sd for one in self.pairs(measure) if one.sd is not None]

    def distance_ratios(self, state: str) -> list[float]:
        """The mean minimum distance of true labels divided by that of shuffled labels, where both were measured."""
        true = "subsampled_mean_minimum_distance"
        values = self.starts if state == "before" else self.ends
        found = []
        for encoder in self.encoders:
            for task in self.tasks:
                known = [values(name, [encoder], [task]) for name in (true, f"{true}_null_mean")]
                if all(known):
                    found.append(statistics.fmean(known[0]) / statistics.fmean(known[1]))
        return found

    def by_separability(self, measure: str) -> tuple[list[Change], list[Change]]:
        """The runs of a measure of train and test: those whose spaces are all linearly separable, and the others."""
        flags = self.runs(f"similarity_both_separable_{self.results.train_test}")
        separable = {(one.encoder, one.task, one.seed) for one in flags if one.before == one.after == 1}
        parts: tuple[list[Change], list[Change]] = ([], [])
        for run in self.runs(measure):
            parts[(run.encoder, run.task, run.seed) not in separable].append(run)
        return parts

    def moved(self, tuned_on: str, task: str, encoders: Iterable[str] = ()) -> list[Moved]:
        """For each run, how many labels of a task move farther away and closer when fine-tuning on tuned_on."""
        names = tuple(encoders) or self.encoders
        found = []
        for run in self.results.all_runs:
            counts = raw_moved_labels(self.results, run) if (run.tuned_on, run.task) == (tuned_on, task) else None
            if run.encoder in names and counts is not None:
                found.append(Moved(run.encoder, task, tuned_on, counts[0], counts[1]))
        return found

    def _own(self, encoders: Iterable[str], tasks: Iterable[str]) -> list[Run]:
        names, known = tuple(encoders) or self.encoders, tuple(tasks) or self.tasks
        return [run for run in self.results.runs(own=True) if run.encoder in names and run.task in known]

    def _change(self, measure: str, runs: Sequence[Run]) -> Change | None:
        """The change of a measure over runs that differ in the seed only; None if it was not measured."""
        key = (measure, tuple(runs))
        if key not in self._changes:
            self._changes[key] = self._measured_change(measure, runs)
        return self._changes[key]

    def _measured_change(self, measure: str, runs: Sequence[Run]) -> Change | None:
        if not runs:
            return None
        first = runs[0]
        start = self.results.before(measure, first.encoder, first.task)
        ends = [end.value for run in runs if (end := self.results.after(measure, run)) is not None]
        if start is None or not ends:
            return None
        sd = statistics.stdev(ends) if len(ends) > 1 else None
        seed = first.seed if len(runs) == 1 else None
        return Change(first.encoder, first.task, first.tuned_on, start.value, statistics.fmean(ends), sd, seed)

    # ---- verdicts ----

    @cached_property
    def findings(self) -> list[Finding]:
        """The five findings, judged by the present rules."""
        return judge_results(self.results)

    @cached_property
    def earlier(self) -> list[EarlierVerdict]:
        """The verdicts by earlier versions of the rules."""
        return earlier_verdicts(self.results)

    def answers(self, finding: int, support: str = "", encoders: Iterable[str] = ()) -> list[Answer]:
        """The answers of pairs of encoder and task to a finding; support: for, against, within noise or no answer."""
        names = tuple(encoders) or self.encoders
        return [
            answer
            for answer in self.findings[finding - 1].answers
            if answer.pair.encoder in names and support in ("", answer.support)
        ]

    def effects(self, finding: int) -> list[float]:
        """The change that decides the answer of each pair to a finding."""
        return [answer.effect.value for answer in self.answers(finding) if answer.effect is not None]

    def margins(self, finding: int) -> list[float]:
        """The margin that a change must exceed, for each pair with an answer to a finding."""
        return [answer.effect.margin for answer in self.answers(finding) if answer.effect is not None]

    def answered(self, finding: int) -> list[Answer]:
        """The answers to a finding of the pairs that have one."""
        return [answer for answer in self.answers(finding) if answer.support != "no answer"]

    def having(self, measure: str, encoders: Iterable[str]) -> list[str]:
        """The encoders of which the table has a measure before fine-tuning."""
        return [encoder for encoder in encoders if self.starts(measure, [encoder])]

    def with_sign(self, finding: int, sign: str) -> list[Answer]:
        """The answers of pairs for which a single fact of a finding is true."""
        return [answer for answer in self.answers(finding) if sign in answer.signs]

    def transfers(self, kind: str, support: str = "") -> list[Answer]:
        """The answers to finding 4 of related or of opposed tasks."""
        return [
            answer
            for answer in self.answers(4, support)
            if self._relations[answer.pair.tuned_on, answer.pair.task] == kind
        ]

    def transfer(self, tuned_on: str, task: str, support: str = "") -> list[Answer]:
        """The answers to finding 4 of encoders that were fine-tuned on one task and measured on another."""
        return [
            answer
            for answer in self.answers(4, support)
            if (answer.pair.tuned_on, answer.pair.task) == (tuned_on, task)
        ]

    @cached_property
    def _relations(self) -> dict[tuple[str, str], str]:
        """How the two tasks of each fine-tuning measured on another task are related."""
        pairs = {(run.tuned_on, run.task) for run in self.results.runs(own=False)}
        return {pair: relation(self.results, *pair) for pair in pairs}

    def harm_tests(self) -> list[Harm]:
        """The equivalence test of the accuracy of each encoder and task."""
        pairs = by_pair(self.results.runs(own=True))
        tests = {pair: accuracy_test(self.results, pair, runs) for pair, runs in pairs.items()}
        return [Harm(pair, test.is_harm, test.is_shown, test.power) for pair, test in tests.items() if test is not None]

    # ---- published numbers ----

    def compared(self, column: str, measure: str, state: str, scale: float = 1.0) -> list[Compared]:
        """A number of Table 7 and ours, for every encoder and task that has both. state: before or after."""
        found = []
        for encoder in self.encoders:
            for task in self.tasks:
                row = published_row(encoder, task, {"before": "original", "after": "fine-tuned"}[state])
                changes = self.pairs(measure, [encoder], [task])
                if row is not None and row[column] and changes:
                    ours = changes[0].before if state == "before" else changes[0].after
                    found.append(Compared(encoder, task, state, scale * ours, _published(row[column])))
        return found

    def published_changes(self, column: str) -> list[Change]:
        """A number of Table 7 before and after fine-tuning, where the paper has both, for the pairs of this study."""
        found = []
        for encoder, task in self.results.pairs():
            rows = [published_row(encoder, task, state) for state in ("original", "fine-tuned")]
            before, after = (float(row[column]) if row is not None and row[column] else None for row in rows)
            if before is not None and after is not None:
                found.append(Change(encoder, task, task, before, after))
        return found

    def fewest_clusters(self, task: str) -> float:
        """The smallest number of clusters that a task can have: one for each label, and one for each conflict."""
        return sum(self.before(name, self.encoders[0], task) for name in ("n_labels", "n_conflicts"))

    # ---- tables and figures of the page ----

    def tables(self, leave_out: Iterable[str] = ()) -> Iterator[Table]:
        """The tables of the report page, in its order."""
        left_out = set(leave_out)
        for section in sections_of(self.results):
            for _, table in tables_of(section, self.results):
                if table.name not in left_out:
                    yield table

    def table(self, name: str, **chosen: str) -> str:
        """A table of the report page in Markdown, without its title and note; chosen: values of columns to keep."""
        table = next(table for table in self.tables() if table.name == name)
        titles = [column.title for column in table.columns]
        rows = [row for row in table.rows if all(row[titles.index(title)] == one for title, one in chosen.items())]
        return markdown(replace(table, rows=tuple(rows), note=""))

    def text(self, name: str) -> str:
        """The paragraphs that open a section of the report page."""
        section = next(section for section in sections_of(self.results) if section.name == name)
        return " ".join(filter(None, (make(self.results) for make in section.texts)))

    def figure(self, kind: str, encoder: str, task: str) -> Figure:
        """A figure of the report page."""
        entry = next(entry for entry in figure_entries() if entry.kind == kind)
        own = tuple(run for run in self.results.all_runs if (run.encoder, run.task) == (encoder, task) and run.own)
        figures = draw_kind(entry, replace(self.results, all_runs=own))
        found = [figure for figure in figures if (figure.encoder, figure.task) == (encoder, task)]
        if not found:
            raise StaleTextError(f"the kept table has no figure {kind} of {encoder} on {task}")
        return found[0]


def same_pairs(changes: Iterable[Change], others: Iterable[Change]) -> list[Change]:
    """The changes of the encoders and tasks that are also among the others."""
    known = {(other.encoder, other.task) for other in others}
    return [change for change in changes if (change.encoder, change.task) in known]


def _published(text: str) -> float:
    """A number or a truth value of a published table."""
    return float(text == "true") if text in ("true", "false") else float(text)


def figure_name(figure: Figure) -> str:
    """The name of the file of a figure."""
    return f"{file_names([figure])[0]}.svg"


def markdown(table: Table) -> str:
    """A table in Markdown, without its title, with its note below it, and with the short names of encoders."""
    text = to_markdown(table).split("\n", 2)[2].strip()
    for name, short in SHORT.items():
        text = text.replace(name, short)
    return text


def _known(found: Measurement | None, measure: str, encoder: str, task: str) -> float:
    if found is None:
        raise StaleTextError(f"the kept table has no {measure} of {encoder} on {task} before fine-tuning")
    return found.value
