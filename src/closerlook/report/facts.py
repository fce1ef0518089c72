"""What was run: encoders, tasks, settings, versions and time, from the manifest; and what a study does not have."""

from __future__ import annotations

from typing import Any

from closerlook.report.tables import Column, Table, Value
from closerlook.study.readings import Results

LONG = 12
"""Failed cells told one by one."""


def span(seconds: float) -> str:
    """A time for people: '12 s', '3 min 20 s', '2 h 5 min'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 >= 60 else "")


def counted(n: int, what: str) -> str:
    """'1 task', '2 tasks'."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def headline(results: Results) -> str:
    """One line that says what the study is."""
    encoders, tasks = _some(results.encoders, "encoder"), _some(results.tasks, "task")
    if not results.all_runs:
        return f"{encoders} on {tasks}, without fine-tuning"
    return f"How fine-tuning changed {encoders} on {tasks}"


def _some(names: tuple[str, ...], what: str) -> str:
    return names[0] if len(names) == 1 and len(names[0]) <= 60 else counted(len(names), what)


def key_facts(results: Results) -> list[tuple[str, str]]:
    """A few numbers for the top of the page."""
    told = results.manifest
    runs = {(run.encoder, run.tuned_on, run.seed) for run in results.all_runs}
    facts = [
        ("encoders", f"{len(results.encoders):,}"),
        ("tasks", f"{len(results.tasks):,}"),
        ("fine-tunings", f"{len(runs):,}"),
        ("measurements", f"{results.measurements:,}"),
    ]
    work = sum(kind["seconds"] for kind in told.get("kinds", {}).values())
    if work:  # of all runs: `seconds` is that of the last one, which may have had little left to do
        facts.append(("work of all cells", span(work)))
    return facts


def encoders_table(results: Results) -> Table:
    """The encoders, with the weights that were used."""
    rows: list[tuple[Value, ...]] = []
    for encoder in results.encoders:
        one = results.told("encoders", encoder)
        parameters = one.get("parameters")
        rows.append(
            (
                encoder,
                one.get("layers", results.last_layer(encoder)),
                one.get("width"),
                None if parameters is None else f"{parameters / 1e6:,.1f} M",
                weights_of(results, encoder)[:12],
                one.get("revision"),
            )
        )
    columns = (
        *(Column("encoder", left=True), Column("layers"), Column("width"), Column("parameters")),
        *(Column("weights", left=True), Column("revision", left=True)),
    )
    return Table(
        "encoders", "Encoders", "Weights: the beginning of their fingerprint.", columns, tuple(rows)
    ).without_empty()


def weights_of(results: Results, encoder: str) -> str:
    """The fingerprint of the weights that an encoder came with; empty where nobody told it."""
    told = results.told("encoders", encoder).get("weights")
    rows = results.of("n_clusters") if len(results.of("n_clusters")) else results.of("accuracy")
    mine = rows[(rows.encoder == encoder) & (rows.tuned_on == "")]
    return str(told or (mine.weights.iloc[0] if len(mine) else ""))


def tasks_table(results: Results) -> Table:
    """The tasks, with labels and examples."""
    told = results.manifest.get("tasks", {})
    named = {split for task in told.values() for split in task.get("examples", {})}
    splits = sorted(named or {str(split) for split in results.of("n_points").split}, key=split_order)
    rows: list[tuple[Value, ...]] = []
    for task in results.tasks:
        one = results.told("tasks", task)
        examples = one.get("examples") or {split: _points(results, task, split) for split in splits}
        labels = len(one["labels"]) if "labels" in one else _points(results, task, "train", "n_labels")
        rows.append((task, one.get("unit"), labels, *(examples.get(split) for split in splits)))
    counts = (Column(split, "examples") for split in splits)
    columns = (Column("task", left=True), Column("unit", left=True), Column("labels"), *counts)
    return Table("tasks", "Tasks", "", columns, tuple(rows)).without_empty()


SPLITS = ("train", "dev", "test")


def split_order(split: str) -> tuple[int, str]:
    """The key that sorts splits: train, dev, test, then others by name."""
    return SPLITS.index(split) if split in SPLITS else len(SPLITS), split


def _points(results: Results, task: str, split: str, measure: str = "n_points") -> int | None:
    rows = results.of(measure)
    found = rows[(rows.task == task) & (rows.split == split)].value
    return int(found.iloc[0]) if len(found) else None


def tuning_table(results: Results) -> Table:
    """How each encoder was fine-tuned."""
    rows: list[tuple[Value, ...]] = []
    for title, one in results.manifest.get("settings", {}).items():
        encoder, _, task = title.rpartition(" on ")
        rows.append(
            (
                *(encoder, task, f"{one.get('epochs', 0):g}", f"{one.get('learning_rate', 0):g}"),
                *(one.get("batch_size"), f"{one.get('warmup', 0):g}", f"{one.get('weight_decay', 0):g}"),
                str(one.get("snapshots", "")),
            )
        )
    names = ("epochs", "learning rate", "batch", "warm-up", "weight decay", "snapshots")
    columns = (Column("encoder", left=True), Column("task", left=True), *(Column(name) for name in names))
    seeds = results.manifest.get("plan", {}).get("seeds", [])
    note = f"Seeds: {', '.join(map(str, seeds))}." if seeds else ""
    return Table("tuning", "Fine-tuning", note, columns, tuple(rows))


def settings_table(results: Results) -> Table:
    """All other entries of the plan, flat."""
    plan = results.manifest.get("plan", {})
    hidden = {"name", "encoders", "tasks"}
    rows = [(name, value) for name, value in _flat(plan) if name.partition(".")[0] not in hidden]
    return Table("settings", "Settings", "", (Column("entry", left=True), Column("value", left=True)), tuple(rows))


def _flat(values: dict[str, Any], head: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found += _flat(value, f"{head}{name}.")
        else:
            found.append((f"{head}{name}", _told(value)))
    return found


def _told(value: Any) -> str:
    if value is None:
        return "usual"
    if isinstance(value, list):
        return ", ".join("×".join(map(str, one)) if isinstance(one, list) else _pair(one) for one in value) or "none"
    return str(value)


def _pair(one: Any) -> str:
    return f"{one['tuned']} → {one['probed']}" if isinstance(one, dict) and "tuned" in one else str(one)


def machine_table(results: Results) -> Table:
    """The machine and the versions."""
    told = results.manifest
    machine: dict[str, Any] = told.get("hardware", {})
    rows: list[tuple[Value, ...]] = []
    for name in ("processor", "cores", "memory_bytes", "system", "python"):
        value = machine.get(name)
        if value is not None:
            shown = f"{value / 1e9:.0f} GB" if name == "memory_bytes" else str(value)
            rows.append((name.removesuffix("_bytes"), shown))
    versions = {"closerlook": told.get("version"), **told.get("packages", {})}
    rows += [(name, value) for name, value in versions.items() if value]
    return Table(
        "machine", "Machine and versions", "", (Column("what", left=True), Column("value", left=True)), tuple(rows)
    )


def time_table(results: Results) -> Table:
    """Where the time went."""
    kinds = results.manifest.get("kinds", {})
    rows = [
        (kind, int(one["cells"]), span(one["seconds"]), span(one["cpu_seconds"]), _gigabytes(one.get("peak_bytes")))
        for kind, one in sorted(kinds.items(), key=lambda item: -item[1]["seconds"])
    ]
    columns = (
        *(Column("kind of work", left=True), Column("cells"), Column("time in all"), Column("of a core")),
        Column("memory at most"),
    )
    note = "Time: over all workers. Memory: the most that a process had held by the end of such a cell."
    return Table("time", "Time and memory", note, columns, tuple(rows)).without_empty()


def _gigabytes(held: float | None) -> str | None:
    return f"{held / 1e9:.1f} GB" if held else None


def missing(results: Results) -> list[str]:
    """What the study does not have, and what that means for the page."""
    told = results.manifest
    notes = [] if told else ["manifest.json is missing beside the table: settings, versions and times are unknown."]
    failed, blocked = told.get("failed", []), told.get("blocked", 0)
    if failed:
        waiting = blocked if isinstance(blocked, int) else len(blocked)
        more = f" They keep {counted(waiting, 'other cell')} waiting." if waiting else ""
        notes.append(f"{counted(len(failed), 'cell')} failed; what they would have measured is missing.{more}")
    if not results.pairs():
        return [*notes, "The table holds no measurement of a space, so there is nothing to show."]
    runs = results.all_runs
    own = {(run.encoder, run.task) for run in runs if run.own}
    bare = [f"{encoder} on {task}" for encoder, task in results.pairs() if (encoder, task) not in own]
    if not runs:
        notes.append("Nothing was fine-tuned: there is no 'after', and no finding can be judged.")
    elif bare:
        notes.append(f"Not fine-tuned, or not to the end: {_listed(bare)}.")
    notes += [text for measure, text in ABSENT.items() if not len(results.of(measure))]
    alike = f"similarity_train_{results.compared}"
    if not len(results.of(alike)):
        notes.append("The similarity of train and test was not measured.")
    return notes + (_thin(results) if runs else [])


ABSENT = {
    "accuracy": "No classifier was probed: there are no accuracies.",
    "minimum_distance": "Label distances were not measured.",
}


def _thin(results: Results) -> list[str]:
    notes = []
    along = results.of("minimum_distance")
    steps = along[along.tuned_on != ""].groupby(["encoder", "tuned_on", "seed"]).step.nunique()
    if len(steps) and steps.max() <= 2:
        notes.append("Fine-tunings were looked at only at the start and the end: lines have two points.")
    if len({run.seed for run in results.all_runs}) == 1:
        notes.append("One seed: how much another fine-tuning would differ is not known.")
    if not results.runs(own=False):
        notes.append("No encoder was looked at on a task it was not tuned on (cross).")
    return notes


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:LONG])
    return shown if len(names) <= LONG else f"{shown} and {len(names) - LONG} more"
