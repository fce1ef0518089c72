"""What was run: encoders, tasks, settings, versions and times, from the manifest; and what the study does not have."""

from __future__ import annotations

from collections.abc import Iterator

from closerlook.report.tables import Column, Table, Value, count_of, text_columns
from closerlook.study import renamed
from closerlook.study.cells import PRETRAINED
from closerlook.study.kinds import KINDS
from closerlook.study.readings import Manifest, Results, split_order

NAMED = 12
"""Maximum number of names that a sentence lists."""

WEIGHTS_SHOWN = 8
"""Number of characters of the hash of an encoder's weights that the page shows."""


def duration(seconds: float) -> str:
    """A duration for people: '12 s', '3 min 20 s', '2 h 5 min'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 >= 60 else "")


def headline(results: Results) -> str:
    """One line that says what the study is about."""
    encoders, tasks = _name_or_count(base_encoders(results), "encoder"), _name_or_count(results.tasks, "task")
    if not results.all_runs:
        return f"{encoders} on {tasks}, without fine-tuning"
    existing = [results.manifest_entry("runs", encoder) for encoder in results.encoders]
    if len(existing) == 1 and existing[0]:
        return f"How the training {results.encoders[0]} changed {existing[0]['base']} on {tasks}"
    methods = set(results.methods.values())
    how = f"{len(methods)} methods of fine-tuning" if len(methods) > 1 else "fine-tuning"
    return f"How {how} changed {encoders} on {tasks}"


def base_encoders(results: Results) -> tuple[str, ...]:
    """The encoders of a study, where those that differ only in the method of fine-tuning are one."""
    names = (name.removesuffix(f" ({results.methods.get(name, '')})") for name in results.encoders)
    return tuple(dict.fromkeys(names))


def _name_or_count(names: tuple[str, ...], noun: str) -> str:
    return names[0] if len(names) == 1 and len(names[0]) <= 60 else count_of(len(names), noun)


PLURALS = {"method of fine-tuning": "methods of fine-tuning"}


def key_facts(results: Results) -> list[tuple[str, str]]:
    """A few numbers for the top of the page."""
    runs = {(run.encoder, run.tuned_on, run.seed) for run in results.all_runs}
    methods = set(results.methods.values())
    counts = {"encoder": len(base_encoders(results)), "task": len(results.tasks)}
    counts |= {"method of fine-tuning": len(methods)} if len(methods) > 1 else {}
    counts |= {"fine-tuning run": len(runs)} if runs else {}
    counts["measurement"] = results.n_rows
    facts = [(PLURALS.get(noun, f"{noun}s") if n != 1 else noun, f"{n:,}") for noun, n in counts.items()]
    work = sum(kind["seconds"] for kind in results.manifest.get("kinds", {}).values())
    if work:  # of all cells: `seconds` in the manifest is that of the last start, which may have had little left to do
        facts.append(("computing time (sum over workers)", duration(work)))
    return facts


def encoders_table(results: Results) -> Table:
    """The encoders, with the weights that were used."""
    rows: list[tuple[Value, ...]] = []
    methods = results.methods
    several = len(set(methods.values())) > 1 or bool(results.manifest.get("runs"))
    for encoder in results.encoders:
        base = encoder.removesuffix(f" ({methods.get(encoder, '')})")
        entry = results.manifest_entry("encoders", encoder) or results.manifest_entry("encoders", base)
        existing = results.manifest_entry("runs", encoder)
        parameters = entry.get("parameters")
        rows.append(
            (
                encoder,
                methods.get(encoder) if several else None,
                existing.get("base"),
                existing.get("tuned_on"),
                entry.get("layers", results.last_layer(encoder)),
                entry.get("width"),
                None if parameters is None else f"{parameters / 1e6:,.1f} M",
                weights_of(results, encoder)[:WEIGHTS_SHOWN],
                entry.get("revision"),
                _pooling(entry),
            )
        )
    numbers = (Column("layers"), Column("hidden size"), Column("parameters"))
    columns = (
        *text_columns("encoder", "method", "base", "trained on"),
        *numbers,
        *text_columns("weights", "revision", "pooling"),
    )
    note = f"Weights: the first {WEIGHTS_SHOWN} characters of the hash of the weight files."
    if any(row[-1] for row in rows):
        note += " Pooling: how the subwords of an example became one vector."
    return Table("encoders", "Encoders", note, columns, tuple(rows)).without_empty()


def _pooling(entry: Manifest) -> str | None:
    """How an encoder's subwords were pooled, for each kind of example: 'sentence: cls, token: mean'."""
    pooling = entry.get("pooling", {})
    return ", ".join(f"{unit}: {pool}" for unit, pool in pooling.items()) or None


def weights_of(results: Results, encoder: str) -> str:
    """The fingerprint of an encoder's pretrained weights; empty if it is unknown."""
    known = results.manifest_entry("encoders", encoder).get("weights")
    rows = results.of("n_clusters") if results.has("n_clusters") else results.of("accuracy")
    pretrained = rows[(rows.encoder == encoder) & (rows.tuned_on == PRETRAINED)]
    return str(known or (pretrained.weights.iloc[0] if len(pretrained) else ""))


def tasks_table(results: Results) -> Table:
    """The tasks, with their labels and examples, and what was found while they were read."""
    entries: dict[str, Manifest] = results.manifest.get("tasks", {})
    listed = {split for entry in entries.values() for split in entry.get("examples", {})}
    splits = sorted(listed or {str(split) for split in results.of("n_points").split}, key=split_order)
    rows: list[tuple[Value, ...]] = []
    for task in results.tasks:
        entry = results.manifest_entry("tasks", task)
        examples = entry.get("examples") or {split: _count(results, "n_points", task, split) for split in splits}
        labels = len(entry["labels"]) if "labels" in entry else _count(results, "n_labels", task, "train")
        rows.append((task, _unit(entry), labels, *(examples.get(split) for split in splits)))
    counts = (Column(split, "examples") for split in splits)
    columns = (*text_columns("task", "an example is a"), Column("labels"), *counts)
    notes = [note for entry in entries.values() for note in entry.get("notes", [])]
    note = "One row for each task, with its number of labels and the number of its examples in each split."
    found = f" Found while the tasks were read: {'; '.join(notes)}." if notes else ""
    return Table("tasks", "Tasks", note + found, columns, tuple(rows)).without_empty()


def _unit(entry: Manifest) -> str | None:
    """What an example of a task is: 'token', 'word pair', 'sentence' …"""
    unit = entry.get("unit")
    return "word pair" if unit == "pair" else unit


def _count(results: Results, measure: str, task: str, split: str) -> int | None:
    rows = results.of(measure)
    values = rows[(rows.task == task) & (rows.split == split)].value
    return int(values.iloc[0]) if len(values) else None


def tuning_table(results: Results) -> Table:
    """The settings of each fine-tuning."""
    rows: list[tuple[Value, ...]] = []
    for name, settings in results.manifest.get("settings", {}).items():
        encoder, _, task = name.rpartition(" on ")
        rows.append(
            (
                *(encoder, task, f"{settings.get('epochs', 0):g}", f"{settings.get('learning_rate', 0):g}"),
                *(settings.get("batch_size"), f"{settings.get('warmup', 0):g}"),
                *(f"{settings.get('weight_decay', 0):g}", str(settings.get("snapshots", ""))),
            )
        )
    names = ("epochs", "learning rate", "batch size", "warm-up", "weight decay", "snapshots")
    columns = (*text_columns("encoder", "task"), *(Column(name) for name in names))
    seeds = results.manifest.get("plan", {}).get("seeds", [])
    note = "One row for each fine-tuned encoder and task, with the settings of its training."
    note += f" Seeds: {', '.join(map(str, seeds))}." if seeds else ""
    return Table("tuning", "Fine-tuning", note, columns, tuple(rows))


def settings_table(results: Results) -> Table:
    """All other entries of the plan, one in each row."""
    plan = results.manifest.get("plan", {})
    elsewhere = {"name", "encoders", "encoder_names", "tasks"}
    rows = [(name, value) for name, value in _entries(plan) if name.partition(".")[0] not in elsewhere]
    note = "The entries of the plan."
    if any(value == NOT_SET for _, value in rows):
        used = " (the batch size that was used is in the table Fine-tuning)" if results.manifest.get("settings") else ""
        note += f" Not set: the plan gives no value; the feature is off, or closerlook chooses the value{used}."
    return Table("settings", "Settings", note if rows else "", text_columns("entry", "value"), tuple(rows))


NOT_SET = "not set"


def _entries(values: Manifest, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The entries of nested dictionaries, named by their path: 'classifier.seeds'."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _entries(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", SHOWN_AS.get((f"{prefix}{name}", str(value)), _show_entry(value))


SHOWN_AS = {
    ("classifier.at", "ends"): "before and after fine-tuning",
    ("classifier.at", "all"): "every snapshot",
}
"""(entry, value) of a plan -> the text on the page, for values that are not clear by themselves."""


def _show_entry(value: object) -> str:
    if value is None:
        return NOT_SET
    if isinstance(value, list):
        separator = "; " if any(isinstance(item, dict) for item in value) else ", "
        return separator.join(map(_show_item, value)) or "none"
    return str(value)


def _show_item(item: object) -> str:
    if isinstance(item, dict) and "tuned" in item:
        return f"fine-tuned on {item['tuned']}, probed on {item['probed']}"
    return "×".join(map(str, item)) if isinstance(item, list) else str(item)


def machine_table(results: Results) -> Table:
    """The machine and the versions of packages."""
    hardware: Manifest = results.manifest.get("hardware", {})
    rows: list[tuple[Value, ...]] = []
    for name in ("processor", "cores", "memory_bytes", "system", "python"):
        value = hardware.get(name)
        if value is not None:
            rows.append(
                (name.removesuffix("_bytes"), f"{value / 1e9:.0f} GB" if name == "memory_bytes" else str(value))
            )
    versions = {"closerlook": results.manifest.get("version"), **results.manifest.get("packages", {})}
    rows += [(name, value) for name, value in versions.items() if value]
    note = "Where the study ran, and the versions of what it ran with."
    return Table("machine", "Machine and versions", note, text_columns("item", "value"), tuple(rows))


def time_table(results: Results) -> Table:
    """The computing time and memory of each kind of cell."""
    kinds: dict[str, Manifest] = results.manifest.get("kinds", {})
    rows = [
        (
            _kind_title(name),
            int(kind["cells"]),
            duration(kind["seconds"]),
            duration(kind["cpu_seconds"]),
            _memory(kind),
        )
        for name, kind in sorted(kinds.items(), key=lambda item: -float(item[1]["seconds"]))
    ]
    columns = (
        *(*text_columns("kind of cell"), Column("cells"), Column("time"), Column("CPU time")),
        Column("peak memory"),
    )
    note = (
        "Times: the sum over all cells of that kind. Peak memory: the most memory that a worker process had used "
        "when it finished a cell of this kind; earlier cells of the same process count too."
    )
    return Table("time", "Time and memory", note, columns, tuple(rows)).without_empty()


def _kind_title(name: str) -> str:
    """What the page calls a kind of cell; its name if it is unknown."""
    present = renamed.KINDS.get(name, name)
    return next((kind.title for kind in KINDS if kind.name == present), present)


def _memory(kind: Manifest) -> str | None:
    peak = kind.get("peak_bytes")
    return f"{peak / 1e9:.1f} GB" if peak else None


# ---- what is missing ----


def missing(results: Results) -> list[str]:
    """What the study does not have, one sentence each."""
    manifest = results.manifest
    notes = [] if manifest else [NO_MANIFEST]
    failed, blocked = manifest.get("failed", []), manifest.get("blocked", 0)
    waiting = blocked if isinstance(blocked, int) else len(blocked)
    if waiting and not failed:
        have = "has" if waiting == 1 else "have"
        notes.append(f"{count_of(waiting, 'cell')} {have} not run yet, so their measurements are missing.")
    if failed:
        more = f" {count_of(waiting, 'other cell')} could not start because of that." if waiting else ""
        notes.append(f"{count_of(len(failed), 'cell')} failed, and their measurements are missing.{more}")
    if not results.pairs():
        return [*notes, "The table has no measurement of a space, so there is nothing to show."]
    tuned = {(run.encoder, run.task) for run in results.all_runs if run.own}
    untuned = [f"{encoder} on {task}" for encoder, task in results.pairs() if (encoder, task) not in tuned]
    if not results.all_runs:
        notes.append("Nothing was fine-tuned, so no finding can be judged.")
    elif untuned:
        notes.append(f"These were not fine-tuned, or not to the end: {_list_names(untuned)}.")
    notes += [text for measure, text in UNMEASURED.items() if not results.has(measure)]
    if not results.has(f"similarity_{results.train_test}"):
        notes.append(f"The similarity of train and {results.test_split} was not measured.")
    return notes + (_limits(results) if results.all_runs else [])


NO_MANIFEST = "There is no manifest.json next to results.parquet, so settings, versions and times are unknown."

UNMEASURED = {
    "accuracy": "No classifier probes were trained, so there are no accuracies.",
    "minimum_distance": "Label distances were not measured.",
}


def _limits(results: Results) -> list[str]:
    """What a study with fine-tuning does not have."""
    notes = []
    rows = results.of("minimum_distance")
    steps = rows[rows.tuned_on != PRETRAINED].groupby(["encoder", "tuned_on", "seed"]).step.nunique()
    if len(steps) and int(steps.max()) <= 2:
        notes.append("Only the start and the end of fine-tuning were measured, so lines have two points.")
    if len({run.seed for run in results.all_runs}) == 1:
        notes.append("Only one seed was run, so the variation between seeds is unknown.")
    if not results.runs(own=False):
        notes.append(
            "No fine-tuned encoder was measured on a task other than its own; to do so, set cross in the plan."
        )
    return notes


def _list_names(names: list[str]) -> str:
    text = ", ".join(names[:NAMED])
    return text if len(names) <= NAMED else f"{text} and {len(names) - NAMED} more"
