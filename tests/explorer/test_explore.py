"""What `explore` reads and measures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closerlook
from closerlook import Space, Task, explore
from closerlook.errors import InputError
from closerlook.explorer.sources import UNRELATED
from closerlook.geometry import cluster, nearest_hulls, separate
from closerlook.scatter.series import task_context
from closerlook.texts import RunningText
from tests.cli.console import run
from tests.explorer.made import LABELS, training
from tests.threads import one_torch_thread
from tests.tuning.tasks import small


def test_the_table_has_every_point_at_every_snapshot() -> None:
    train, test = training(), training(30, split="test")
    table = explore(*train, test=test, threads=1).to_frame()
    assert len(table) == 3 * 90
    last = table[table.snapshot == "made (tuned on made, step 2)"]
    clustering = cluster(train[2].X, train[2].label_names)
    nearest, _ = nearest_hulls(train[2].X, clustering.members(), test[2].X)
    labels = np.array([str(label) for label in clustering.cluster_labels])
    assert last[last.split == "train"].cluster_label.tolist() == train[2].label_names.tolist()
    assert last[last.split == "test"].cluster_label.tolist() == labels[nearest].tolist()
    assert (last.right == (last.label == last.cluster_label)).all()


def test_movement_is_measured_from_the_first_snapshot_in_its_radii() -> None:
    train = training()
    explorer = explore(*train, threads=1)
    X = [space.X.astype(np.float64) for space in train]
    radius = np.sqrt(((X[0] - X[0].mean(axis=0)) ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(explorer.layers[0].moved[0], 0.0)
    np.testing.assert_allclose(explorer.layers[0].moved[2], np.linalg.norm(X[2] - X[0], axis=1) / radius, rtol=1e-9)


def test_margins_are_measured_on_all_train_points_and_their_points_are_shown() -> None:
    train = training(300)
    explorer = explore(*train, points=40, pairs=[("VERB", "ADJ")], threads=1)
    (margin,) = explorer.layers[0].margins
    X, names = train[2].X.astype(np.float64), train[2].label_names
    expected = separate(X[names == "VERB"], X[names == "ADJ"])
    gap = margin.gaps[2]
    assert gap.distance == pytest.approx(expected.distance, rel=1e-6)
    assert set(gap.rows.tolist()) <= set(explorer.rows.tolist())
    x, is_first = margin.plane.xy[2, :, 0], explorer.labels[margin.rows] == "VERB"
    assert x[is_first].min() - x[~is_first].max() == pytest.approx(gap.distance, rel=1e-5)


def test_points_that_are_wrong_in_conflict_or_block_merges_are_shown_first() -> None:
    random = np.random.default_rng(0)
    X, y = np.array([[0.0], [1.0], [5.0], [9.0], [10.0]]), ["a", "a", "b", "a", "a"]
    far = 1000 + random.normal(size=(200, 1))
    train = Space.from_arrays(np.concatenate([X, [[2000.0], [2000.0]], far]), [*y, "c", "d", *["e"] * 200])
    test = Space.from_arrays([[5.0], [0.5], *(1000 + 0.01 * random.normal(size=(50, 1)))], ["a", "a", *["e"] * 50])
    explorer = explore(train, test=test, points=12, pairs=[], threads=1)
    measured = explorer.layers[0].measured[0]
    assert np.flatnonzero(measured.blocks).tolist() == [2]
    assert np.flatnonzero(measured.conflicts).tolist() == [5, 6]
    assert np.flatnonzero(measured.wrong).tolist() == [207]
    assert {2, 5, 6, 207} <= set(explorer.rows.tolist())
    assert len(explorer.rows) == 12


def test_large_spaces_are_sampled_and_the_page_says_so() -> None:
    explorer = explore(*training(200), max_examples=50, threads=1)
    assert explorer.settings["train points"] == 50
    assert explorer.notes == ("The space has 200 points; 50 of them, sampled by label, are measured.",)
    assert len(set(explorer.words or ())) == 50


def different(train: list[Space]) -> list[Space]:
    return [train[0], Space.from_arrays(train[1].X, train[1].label_names[::-1], encoder="made", layer=2)]


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (lambda: [], {}, "nothing to explore was given"),
        (lambda: ["nowhere.npz"], {}, "nowhere.npz does not exist; expected a file of vectors"),
        (lambda: different(training()), {}, "have different train examples"),
        (lambda: [training()[0], training(d=4)[0]], {}, "has 5 dimensions and .* has 4; expected the same number"),
        (training, {"test": training(split="test")[0]}, "3 spaces and 1 test spaces were given"),
        (training, {"pairs": [("ADJ", "X")]}, "pair ADJ, X requested; expected two different labels"),
        (training, {"points": 0}, "points is 0; expected a number of at least 1"),
        (lambda: [*training(), "file.npz"], {}, "spaces and names were given together"),
    ],
)
def test_wrong_inputs_are_refused_in_one_line(inputs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        explore(*inputs(), **options)
    assert "\n" not in str(caught.value)


def test_one_label_and_one_point_can_be_explored() -> None:
    explorer = explore(Space.from_arrays([[1.0, 2.0]], ["only"]), threads=1)
    assert explorer.layers[0].margins == ()
    assert np.isfinite(explorer.layers[0].pca.xy).all()
    assert "Explorer(" in repr(explorer)


def test_marks_are_the_characters_of_the_words() -> None:
    running = RunningText("Don't go", ((0, 2), (2, 5), (6, 8)))
    examples = [(running, [((1,), "NEG")]), (("light", "rain"), [((1,), "NOUN")])]
    task = Task.build("tokens", "token", {"train": examples})
    context = task_context(task, task.splits)
    marked = [context.texts[at][a:b] for at, ((a, b),) in zip(context.text, context.marks, strict=True)]
    assert marked == ["n't", "rain"]
    spans = Task.build("spans", "span", {"train": [(("light", "rain", "fell"), [((0, 2), "S")])]})
    assert task_context(spans, spans.splits).marks == (((0, 10),),)
    whole = Task.build("whole", "sentence", {"train": [("It rains.", [((), "yes")])]})
    assert task_context(whole, whole.splits).marks == ((),)


# ---- encoders, runs, files and the command line ----


def test_encoders_are_explored_on_the_same_examples_with_their_texts(tmp_path: Path) -> None:
    explorer = explore(
        "bert-tiny", "random:bert-tiny", task="toy-pos", layers=[0, 2], max_examples=40, device="cpu", threads=1
    )
    assert explorer.snapshots == ("bert-tiny", "random:bert-tiny")
    assert [layer.number for layer in explorer.layers] == [0, 2]
    assert UNRELATED in explorer.notes
    context = explorer.context
    assert context is not None
    assert explorer.words is not None
    for word, text, marks in zip(explorer.words, context.text, context.marks, strict=True):
        assert context.texts[text][slice(*marks[0])] == word
    assert explorer.is_test.sum() == 40


def test_a_finished_fine_tuning_is_explored_snapshot_by_snapshot(tmp_path: Path) -> None:
    task = small(texts=16, tests=6)
    options: dict[str, Any] = {"snapshots": 2, "epochs": 1, "batch_size": 8, "layers": "last", "device": "cpu"}
    with one_torch_thread():
        closerlook.tune("bert-tiny", task, out=tmp_path / "run", **options)
    explorer = explore(tmp_path / "run", task=task, max_examples=60, threads=1)
    assert explorer.snapshots == ("pretrained", "step 2")
    assert explorer.title == f"bert-tiny, fine-tuned on {task.name}"
    assert explorer.context is not None
    with pytest.raises(InputError, match="layers 1 requested; all snapshots of this fine-tuning have 2"):
        explore(tmp_path / "run", task=task, layers=1)
    with pytest.raises(InputError, match="a fine-tuning and other inputs were given"):
        explore(tmp_path / "run", "bert-tiny", task=task)


def test_the_command_writes_the_page_and_prints_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for name in ("before", "after"):
        np.savez(f"{name}.npz", X=random.normal(size=(30, 3)), y=np.array(LABELS)[np.arange(30) % 3])
    out, err = run(capsys, "explore", "before.npz", "after.npz", "--pair", "ADJ,NOUN", "--threads", 1)
    assert out == f"page: {tmp_path / 'explorer.html'}\n"
    assert "before.npz, after.npz" in err
    assert "seed 0" in err
    assert (tmp_path / "explorer.html").read_text().startswith("<!doctype html>")
    _, err = run(capsys, "explore", "before.npz", "--pair", "ADJ", code=2)
    assert err == "closerlook: pair 'ADJ' requested; expected two labels with a comma, such as NOUN,VERB\n"
