"""The points that a study stores for the explorers of its page."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from closerlook.geometry import cluster
from closerlook.representations.store import Store
from closerlook.scatter.packing import unpack
from closerlook.study.cells import Cell
from closerlook.study.explored import FILE, read_explorers
from closerlook.study.kinds.explorer import merge_rows
from closerlook.study.results import load_results
from closerlook.study.study import CompletedStudy, run_study
from closerlook.tasks import load_task
from tests.study.small import small_plan


def decode(text: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(text), kind)


def explorer_cell(study: CompletedStudy) -> Cell:
    (cell,) = [cell for cell in study.state.graph.cells.values() if cell.kind == "explorer"]
    return cell


def test_a_study_stores_the_points_of_each_encoder_and_task(done: CompletedStudy) -> None:
    found = read_explorers(done.out)
    places = [(one.encoder, one.task, one.tuned_on, one.seed, one.layers) for one in found]
    assert places == [
        ("bert-tiny", "words", "words", 0, [2]),
        ("bert-tiny", "prepositions", "prepositions", 0, [2]),
    ]
    assert all(one.shown == one.measured == one.examples for one in found)


def test_the_points_are_the_examples_of_train_and_test_at_every_snapshot(single: CompletedStudy, tasks: Path) -> None:
    (stored,) = read_explorers(single.out)
    data, task = unpack(stored.packed), load_task(str(tasks / "words"))
    is_test, row = decode(data["test"], "u1"), decode(data["row"], "<u4")
    for name, flag in (("train", 0), ("test", 1)):
        split = task.split(name)
        assert row[is_test == flag].tolist() == list(range(len(split)))
        labels = [data["labels"][code] for code in decode(data["label"], "<u2")[is_test == flag]]
        assert labels == [task.labels[code] for code in split.y]
        words = [data["word"]["texts"][at] for at in decode(data["word"]["at"], "<u4")[is_test == flag]]
        assert words == list(task.words(split) or ())
    steps = explorer_cell(single).content["steps"]
    assert data["snapshots"] == ["pretrained", *(f"step {step:,}" for step in steps[1:])]


def test_its_clusters_are_those_of_the_table(single: CompletedStudy) -> None:
    (stored,) = read_explorers(single.out)
    layer, table = unpack(stored.packed)["layers"][0], load_results(single.out)
    rows = table[(table.measure == "n_clusters") & (table.split == "train") & (table.layer == 2)]
    expected = rows[rows.tuned_on == "words"].sort_values("step").value.tolist()
    assert [len(decode(one["label"], "<u2")) for one in layer["clusters"]] == expected
    cell = explorer_cell(single)
    space = Store(cell.resources["store"]).get(cell.content["spaces"]["train"][0][-1])
    assert space is not None
    assert layer["clusters"][-1]["radius"] == cluster(space.X, space.label_names).radius


def test_large_splits_are_sampled_and_fewer_points_are_stored(copied: Callable[[], Path], tasks: Path) -> None:
    few = {"points": 30, "max_examples": 40}
    study = run_study(small_plan(tasks, explorer=few), copied(), engine="here")
    (stored,) = read_explorers(study.out)
    data = unpack(stored.packed)
    assert len(decode(data["row"], "<u4")) == stored.shown == 30
    assert stored.measured == data["measured"] == 80
    assert stored.examples == data["examples"] > 80
    assert decode(data["row"], "<u4").max() > 40


def test_the_points_of_the_blocked_merges_before_and_after_are_shown(single: CompletedStudy) -> None:
    cells, cell = single.state.graph.cells, explorer_cell(single)
    spaces = [cells[key].content["space"] for key in cell.content["merges"]]
    shown = cell.content["spaces"]["train"][0]
    assert spaces == [shown[0], shown[-1]]
    assert set(cell.content["merges"]) <= set(cell.inputs)


def test_a_study_that_requests_no_explorer_has_no_file_of_points(copied: Callable[[], Path], tasks: Path) -> None:
    out = copied()
    assert (out / FILE).exists()
    run_study(small_plan(tasks, measures=["clusters"]), out, engine="here")
    assert not (out / FILE).exists()
    assert read_explorers(out) == []


def test_the_rows_of_blocked_merges_are_those_of_both_sides() -> None:
    text = json.dumps({"points": [{"row": 3}, {"row": 5}], "blocker_points": [{"row": 9}]})
    rows = [{"measure": "blocked_merge", "text": text}, {"measure": "n_points", "text": None}]
    assert merge_rows(rows) == {3, 5, 9}
