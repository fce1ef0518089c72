"""`closerlook probe` on arrays, saved spaces and DirectProbe folders."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from closerlook.cli import probe
from closerlook.geometry import Audit, cluster
from closerlook.representations.space import Provenance, Space
from tests.cli.console import answer, assert_refused, run, saved, shown_on_a_terminal

LINE = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
LINE_LABELS = np.array(["a", "a", "b", "a", "a"])
Capsys = pytest.CaptureFixture[str]


def blobs(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of three labels that overlap, in the plane."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y], np.array(["x", "y", "z"])[y]


def test_points_on_a_line_worked_by_hand(tmp_path: Path, capsys: Capsys) -> None:
    found = answer(capsys, "probe", saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS), "--audit")
    assert (found["n_clusters"], found["n_labels"], found["is_separable"]) == (3, 2, False)
    assert (found["n_conflicts"], found["n_undecided"]) == (0, 0)
    assert found["assignments"] == [0, 0, 1, 2, 2]
    assert found["cluster_labels"] == ["a", "b", "a"]
    assert found["audit"] == {"clean": True, "separable": 2, "conflicting": 0, "blocked": 1, "problems": []}
    assert found["radius"] == pytest.approx(2**0.5)
    assert (found["tau"], found["seconds"] > 0, found["test_accuracy"]) == (1e-6, True, None)
    table = found["label_distances"]
    assert table["labels"] == ["a", "b"]
    np.testing.assert_allclose(table["values"], [[0, 1], [1, 0]], rtol=1e-5)
    assert table["lower"][0][1] <= 1 <= table["upper"][0][1]
    assert found["minimum_distances"] == pytest.approx({"a": 1, "b": 1}, rel=1e-5)
    assert found["within_clusters"] == {"mean": [1, 0, 1], "maximum": [1, 0, 1]}
    (merge,) = found["blocked_merges"]
    assert (merge["clusters"], merge["blocking_label"], merge["blocking_rows"]) == ([0, 2], "b", [2])
    assert found["settings"] == {"tau": 1e-6, "min_points": 1, "statistic": "mean", "threads": None}


def test_the_tables_say_the_same(tmp_path: Path, capsys: Capsys) -> None:
    out, err = run(capsys, "probe", saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS), "--audit")
    rows = {cells[0]: cells[1:] for line in out.splitlines() if (cells := [c.strip() for c in line.split("│")[1:-1]])}
    assert rows["clusters"] == ["3"]
    assert rows["linearly separable"] == ["no"]
    assert rows["audit"] == [
        "no problems; checked 2 separable pairs of clusters, 0 conflicting pairs of points, 1 blocked merges"
    ]
    assert rows["settings"] == ["tau 1e-06, min points 1, statistic mean"]
    assert "0 (2) and 2 (2)" in out
    assert "b: cluster 1 (1)" in out
    assert "2 (1.00)" in out
    labels = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│ b")]
    assert [cell.strip() for cell in labels[0]] == ["b", "1", "1", "a", "1", "0.7071", "0", "0"]
    assert [line.split()[0] for line in err.splitlines()] == ["clustering", "distances", "distances", "audit", "done"]


def test_the_limit_on_attempts_of_the_released_code(tmp_path: Path, capsys: Capsys) -> None:
    X, y = blobs()
    file, limited = saved(tmp_path / "points.npz", X=X, y=y), cluster(X, y, attempts="released")
    found = answer(capsys, "probe", file, "--attempts", "released", "--audit")
    assert found["assignments"] == limited.assignments.tolist()
    assert limited.attempts is not None
    blocked = limited.attempts.blocked
    assert found["attempts"] == {
        "rule": "released", "limit": 90, "merged": 90 - blocked, "blocked": blocked, "used": 90, "ran_out": True,
    }  # fmt: skip
    assert found["released"] is None
    assert found["audit"]["clean"]
    assert all(limited.is_blocked(*merge["clusters"]) for merge in found["blocked_merges"])
    out, _ = run(capsys, "probe", file, "--attempts", "released")
    assert f"90 of 90 used: {90 - blocked} merged, {blocked} blocked; then merging ended" in out


def test_both_numbers_of_clusters_side_by_side(tmp_path: Path, capsys: Capsys) -> None:
    X, y = blobs()
    file = saved(tmp_path / "points.npz", X=X, y=y)
    whole, limited = cluster(X, y), cluster(X, y, attempts="released")
    assert limited.n_clusters > whole.n_clusters
    found = answer(capsys, "probe", file, "--attempts", "both")
    assert (found["n_clusters"], found["attempts"]) == (whole.n_clusters, None)
    assert found["assignments"] == whole.assignments.tolist()
    assert found["released"]["n_clusters"] == limited.n_clusters
    assert found["released"]["assignments"] == limited.assignments.tolist()
    assert found["released"]["attempts"]["limit"] == 90
    for row in found["by_label"]:
        counts = [result.cluster_labels.count(row["label"]) for result in (whole, limited)]
        assert [row["clusters"], row["clusters_released"]] == counts
    out, _ = run(capsys, "probe", file, "--attempts", "both")
    out = out[: out.index("Blocked merges")]
    rows = {cells[0]: cells[1:] for line in out.splitlines() if (cells := [c.strip() for c in line.split("│")[1:-1]])}
    assert rows["clusters"] == [str(whole.n_clusters)]
    assert rows["clusters (attempts: released)"] == [str(limited.n_clusters)]
    assert rows["x"][1:3] == [str(found["by_label"][0][name]) for name in ("clusters", "clusters_released")]


def test_the_clusters_are_those_of_the_library(tmp_path: Path, capsys: Capsys) -> None:
    X, y = blobs()
    found = answer(capsys, "probe", saved(tmp_path / "points.npz", X=X, y=y), "--threads", 1)
    assert found["assignments"] == cluster(X, y).assignments.tolist()
    assert 1 < len(found["blocked_merges"]) <= 10


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([3, 3, 7, 3, 3], ["3", "7"]),
        ([3.0, 3.0, 7.0, 3.0, 3.0], ["3", "7"]),
        ([b"a", b"a", b"b", b"a", b"a"], ["a", "b"]),
        ([True, True, False, True, True], ["False", "True"]),
    ],
)
def test_labels_may_be_numbers(tmp_path: Path, capsys: Capsys, labels: list[object], names: list[str]) -> None:
    found = answer(capsys, "probe", saved(tmp_path / "points.npz", X=LINE, y=labels))
    assert found["labels"] == names
    assert found["n_clusters"] == 3


def test_plain_arrays_keep_their_precision(tmp_path: Path, capsys: Capsys) -> None:
    X = np.array([[1.0], [1.0 + 1e-12], [2.0]])  # one number in float32
    found = answer(capsys, "probe", saved(tmp_path / "points.npz", X=X, y=["a", "b", "b"]), "--tau", 1e-13)
    assert (found["n_conflicts"], found["is_separable"]) == (0, True)


def test_held_out_points_in_the_same_file_are_predicted(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(
        tmp_path / "points.npz",
        X=LINE,
        y=LINE_LABELS,
        X_test=[[0.5], [2.1], [9.0], [2.0]],
        y_test=["a", "b", "b", "new"],
    )
    out, err = run(capsys, "probe", file, "--json")
    found = json.loads(out)
    assert (found["test_accuracy"], found["n_test"]) == (0.5, 4)
    assert found["majority_accuracy"] == 0.25
    assert found["test"]["unseen"] == {"new": 1}
    assert "1 test points have labels that no training point has, and count as wrong: new (1)" in err
    assert "0.5000 (2 of 4); majority label a: 0.2500" in run(capsys, "probe", file)[0]


def test_train_and_test_agree_on_labels_by_name(tmp_path: Path, capsys: Capsys) -> None:
    X = LINE.astype(np.float32)
    Space(X, np.array([0, 0, 1, 0, 0], dtype=np.int32), ("a", "b")).save(tmp_path / "train.npz")
    Space(X, np.array([2, 2, 0, 2, 2], dtype=np.int32), ("b", "c", "a")).save(tmp_path / "test.safetensors")
    found = answer(capsys, "probe", tmp_path / "train.npz", "--test", tmp_path / "test.safetensors")
    assert found["test_accuracy"] == 1.0


def test_a_saved_space_shows_its_description(tmp_path: Path, capsys: Capsys) -> None:
    made = Provenance(encoder="bert-tiny", task="toy", split="train", layer=2, pool="mean")
    codes = np.array([0, 0, 1, 0, 0], dtype=np.int32)
    for layer, name in ((2, "train.npz"), (1, "other.npz")):
        described = Provenance(**made.to_dict() | {"layer": layer})
        Space(LINE.astype(np.float32), codes, ("a", "b"), described).save(tmp_path / name)
    found = answer(capsys, "probe", tmp_path / "train.npz")
    assert found["title"] == "bert-tiny · toy/train · layer 2 · mean"
    assert found["provenance"]["layer"] == 2
    _, err = run(capsys, "probe", tmp_path / "train.npz", "--test", tmp_path / "other.npz")
    assert "warning: layer is 2 in bert-tiny · toy/train · layer 2 · mean, but 1 in" in err


def directprobe_folder(folder: Path, layers: tuple[int, ...]) -> Path:
    codes = np.array([0, 0, 1, 0, 0], dtype=np.int32)
    for split in ("train", "test"):
        for layer in layers:
            made = Provenance(split=split, layer=layer)
            Space(LINE.astype(np.float32) * (layer + 1), codes, ("a", "b"), made).save(folder)
    return folder


def test_a_directprobe_folder_brings_its_test_split_along(tmp_path: Path, capsys: Capsys) -> None:
    found = answer(capsys, "probe", directprobe_folder(tmp_path / "folder", (0,)))
    assert (found["n_clusters"], found["n_test"], found["test_accuracy"]) == (3, 5, 1.0)


def test_one_layer_of_a_directprobe_folder_is_named_by_its_file(tmp_path: Path, capsys: Capsys) -> None:
    folder = directprobe_folder(tmp_path / "folder", (0, 3))
    assert_refused(capsys, "embeddings/layers/train/0.txt, embeddings/layers/train/3.txt); choose a", "probe", folder)
    found = answer(capsys, "probe", folder / "embeddings" / "layers" / "train" / "3.txt")
    assert (found["n_clusters"], found["n_test"], found["provenance"]["layer"]) == (3, 5, 3)
    assert found["radius"] == pytest.approx(4 * 2**0.5)
    other = answer(
        capsys, "probe", folder / "embeddings/layers/test/0.txt", "--test", folder / "embeddings/layers/train/0.txt"
    )
    assert (other["provenance"]["split"], other["test"]["title"]) == ("test", "0.txt")


def test_a_directprobe_folder_as_test_gives_its_test_split(tmp_path: Path, capsys: Capsys) -> None:
    folder = directprobe_folder(tmp_path / "folder", (0,))
    (folder / "entities" / "train.txt").unlink()
    found = answer(capsys, "probe", saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS), "--test", folder)
    assert (found["n_test"], found["test_accuracy"]) == (5, 1.0)


def test_a_directprobe_file_without_vectors_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    folder = directprobe_folder(tmp_path / "folder", (0,))
    (folder / "embeddings" / "layers" / "train" / "0.txt").write_text("")
    assert_refused(capsys, "0.txt: X has shape (0, 1)", "probe", folder)


def test_min_points_and_statistic_are_used_and_what_is_left_out_is_listed(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "points.npz", X=[*LINE.tolist(), [9.0]], y=[*LINE_LABELS, "c"])
    assert answer(capsys, "probe", file)["label_distances"]["values"][0][2] == pytest.approx(6.5, rel=1e-5)
    least = answer(capsys, "probe", file, "--statistic", "min")["label_distances"]
    assert (least["statistic"], round(least["values"][0][2], 4)) == ("min", 5)
    without = answer(capsys, "probe", file, "--min-points", 2)
    assert without["label_distances"]["excluded"] == {"b": 1, "c": 1}
    assert without["minimum_distances"] == {"a": None, "b": None, "c": None}
    out, _ = run(capsys, "probe", file, "--min-points", 2)
    assert "clusters with fewer than 2 points (b: 1, c: 1)" in out


def test_distances_may_be_left_out(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS)
    found = answer(capsys, "probe", file, "--no-distances")
    assert (found["label_distances"], found["within_clusters"], found["n_clusters"]) == (None, None, 3)
    assert "nearest label" not in run(capsys, "probe", file, "--no-distances")[0]


def test_conflicts_are_counted_and_named(tmp_path: Path, capsys: Capsys) -> None:
    found = answer(
        capsys, "probe", saved(tmp_path / "points.npz", X=[[0.0], [0.0], [1.0]], y=["a", "b", "a"]), "--audit"
    )
    assert (found["n_conflicts"], found["conflicts"], found["n_clusters"]) == (2, [0, 1], 3)
    assert found["audit"]["clean"]


@pytest.mark.parametrize(("X", "y"), [(LINE, ["a"] * 5), ([[1.0, 2.0]], ["a"]), ([[1.0], [1.0]], ["a", "a"])])
def test_a_single_label_is_one_cluster(tmp_path: Path, capsys: Capsys, X: object, y: object) -> None:
    found = answer(capsys, "probe", saved(tmp_path / "points.npz", X=X, y=y), "--audit")
    assert (found["n_clusters"], found["is_separable"], found["minimum_distances"]) == (1, True, {"a": None})
    run(capsys, "probe", tmp_path / "points.npz")


def test_an_audit_that_fails_is_exit_code_one_and_names_the_first_problem(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("closerlook.geometry.audit", lambda *_, **__: Audit(1, 0, 0, ("clusters 0 and 1 meet", "more")))
    out, err = run(capsys, "probe", saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS), "--audit", "--json", code=1)
    assert json.loads(out)["audit"]["clean"] is False
    assert "closerlook: the audit found 2 problems, the first: clusters 0 and 1 meet" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": [[0.0, 1.0], [np.nan, 1.0]], "y": ["a", "b"]}, "X holds nan at row 1, column 0"),
        ({"X": [[0.0, np.inf], [0.0, 1.0]], "y": ["a", "b"]}, "X holds inf at row 0, column 1"),
        ({"X": [0.0, 1.0], "y": ["a", "b"]}, "X has shape (2,); expected two dimensions"),
        ({"X": np.zeros((0, 3)), "y": np.zeros(0, str)}, "X has shape (0, 3); expected at least one point"),
        ({"X": np.zeros((2, 0)), "y": ["a", "b"]}, "X has shape (2, 0); expected at least one point"),
        ({"X": LINE, "y": [["a"]] * 5}, "y has shape (5, 1); expected (n,)"),
        ({"X": LINE, "y": ["a", "b"]}, "X has 5 rows and y has 2 labels"),
        ({"X": LINE}, "lacks y; it holds X"),
        ({"vectors": LINE}, "lacks X and y; it holds vectors"),
        ({"X": LINE, "y": np.array(["a", 1, "b", 2, None], dtype=object)}, "y holds Python objects"),
        ({"X": LINE.astype(object), "y": LINE_LABELS}, "X holds Python objects"),
        ({"X": LINE, "y": [0.5, 1, 2, 3, 4]}, "y holds 0.5 at row 0; expected labels: strings or whole"),
        ({"X": LINE, "y": [np.nan, 1, 2, 3, 4]}, "y holds nan at row 0; expected a label for every row"),
        ({"X": LINE * 1j, "y": LINE_LABELS}, "X holds complex numbers; expected real numbers"),
        ({"X": LINE_LABELS[:, None], "y": LINE_LABELS}, "X holds values of type <U1; expected real numbers"),
        ({"X": LINE, "y": LINE_LABELS, "X_test": LINE}, "has X_test but lacks y_test; expected both, or neither"),
        ({"X": LINE, "y": LINE_LABELS, "X_test": [[0, 1]], "y_test": ["a"]}, "X_test of points.npz has 2 columns"),
        ({"X": LINE, "y": LINE_LABELS, "X_test": [[np.nan]], "y_test": ["a"]}, "X_test holds nan at row 0"),
        ({"X": LINE, "y": LINE_LABELS, "X_test": LINE, "y_test": [0.5] * 5}, "y_test holds 0.5 at row 0"),
    ],
)
def test_unfit_arrays_are_one_line_and_exit_code_two(
    tmp_path: Path, capsys: Capsys, arrays: dict[str, object], message: str
) -> None:
    assert_refused(capsys, message, "probe", saved(tmp_path / "points.npz", **arrays), "--json")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.npz", None, "missing.npz does not exist; expected a .npz"),
        ("text.npz", b"hello", "it is no .npz archive"),
        ("cut.npz", b"PK\x03\x04 cut short", "it is no .npz archive"),
        ("table.csv", b"label,x\n", "table.csv: the table has no rows"),
        ("notes.txt", b"1 2", "ends in .txt; expected"),
        ("torn.safetensors", b"12", "truncated or not a safetensors file"),
        ("embeddings/train.txt", b"1 2", "belongs to no split of"),
    ],
)
def test_unfit_files_are_one_line_and_exit_code_two(
    tmp_path: Path, capsys: Capsys, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert_refused(capsys, message, "probe", tmp_path / name)


def test_an_empty_folder_and_a_split_that_is_not_there_are_refused(tmp_path: Path, capsys: Capsys) -> None:
    assert_refused(capsys, "expected a DirectProbe folder with entities/, labels/, embeddings/", "probe", tmp_path)
    Space(LINE.astype(np.float32), np.zeros(5, np.int32), ("a",), Provenance(split="dev")).save(tmp_path / "folder")
    assert_refused(capsys, "has no split train; it has dev", "probe", tmp_path / "folder")


def test_test_points_of_other_columns_are_refused(tmp_path: Path, capsys: Capsys) -> None:
    file, other = (
        saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS),
        saved(tmp_path / "two.npz", X=[[0.0, 1.0]], y=["a"]),
    )
    assert_refused(capsys, "two.npz has 2 columns; expected 1, as points.npz has", "probe", file, "--test", other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tau", 0), "tau is 0.0; expected a part of the RMS radius"),
        (("--tau", "nan"), "tau is nan"),
        (("--min-points", 0), "Invalid value for '--min-points'"),
        (("--threads", 0), "Invalid value for '--threads'"),
        (("--attempts", "some"), "Invalid value for '--attempts'"),
        (("--statistic", "median"), "statistic 'median' is unknown; expected mean or min"),
    ],
)
def test_unfit_options_are_one_line_and_exit_code_two(
    tmp_path: Path, capsys: Capsys, options: tuple[object, ...], message: str
) -> None:
    assert_refused(capsys, message, "probe", saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS), *options)


def test_neither_torch_nor_scikit_learn_is_loaded(tmp_path: Path) -> None:
    file = saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS)
    code = (
        "import sys\nfrom closerlook.cli import main\n"
        f"try: main(['probe', {str(file)!r}])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_progress_is_shown_only_where_a_stage_takes_long() -> None:
    code = (
        "import time\nfrom closerlook.cli.console import progress\n"
        "for after in (60, 0.05):\n"
        "    with progress(f'stage after {after}', after=after) as show:\n"
        "        for done in range(5): show(done, 5); time.sleep(0.05)\n"
    )
    shown = shown_on_a_terminal([sys.executable, "-c", code], dict(os.environ))
    assert "stage after 0.05" in shown
    assert "stage after 60" not in shown


def test_blocked_merges_show_the_words_of_their_rows(tmp_path: Path, capsys: Capsys) -> None:
    words = ["bank", "river", "shore", "loan", "loan"]
    file = saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS, words=words)
    (merge,) = answer(capsys, "probe", file)["blocked_merges"]
    assert merge["words"] == [words[row] for row in merge["rows"]]
    assert (merge["blocking_rows"], merge["blocking_words"]) == ([2], ["shore"])
    out, _ = run(capsys, "probe", file)
    assert "2: shore (1.00)" in out
    assert "Blocked merges: clusters with the same label whose union overlaps a cluster of another label" in out
    assert "; undecided:" not in out
    assert "blocking cluster" in out
    (plain,) = answer(capsys, "probe", saved(tmp_path / "plain.npz", X=LINE, y=LINE_LABELS))["blocked_merges"]
    assert (plain["words"], plain["blocking_words"]) == (None, None)


def test_the_title_of_the_blocked_merges_says_what_undecided_means(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = probe._largest_blocked_merges
    monkeypatch.setattr(
        probe, "_largest_blocked_merges", lambda result: [replace(merge, decided=False) for merge in decided(result)]
    )
    out, _ = run(capsys, "probe", saved(tmp_path / "points.npz", X=LINE, y=LINE_LABELS))
    assert "; undecided: no overlap was proved" in " ".join(out.split())
