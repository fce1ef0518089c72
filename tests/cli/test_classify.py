"""`closerlook classify` on arrays and saved spaces."""

import json
import os
import re
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from closerlook.cli.classify import classify, parse_sizes
from closerlook.errors import InputError
from closerlook.probes import GRID, ProbeTraining, online_code, probe_grid
from closerlook.probes.grid import SEEDS
from closerlook.representations.space import Space
from tests.cli.console import answer, assert_refused, run, saved, shown_on_a_terminal

Capsys = pytest.CaptureFixture[str]
FAST = ("--sizes", "8;linear", "--seeds", 2, "--max-rounds", 1)


def blobs(n: int = 90, seed: int = 0) -> dict[str, np.ndarray]:
    """Points of three labels that overlap, in the plane, each with a word."""
    rng = np.random.default_rng([seed, n])
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y]
    return {"X": X, "y": np.array(["x", "y", "z"])[y], "words": np.array([f"w{i % 10}" for i in range(n)])}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return saved(tmp_path / "train.npz", **blobs()), saved(tmp_path / "test.npz", **blobs(30, seed=1))


def test_the_numbers_are_those_of_the_library(files: tuple[Path, Path], capsys: Capsys) -> None:
    found = answer(capsys, "classify", files[0], "--test", files[1], *FAST, "--description-length")
    train, test = blobs(), blobs(30, seed=1)
    pairs = (train["X"], train["y"]), (test["X"], test["y"])
    result = probe_grid(*pairs, sizes=[(8,), ()], seeds=2, training=ProbeTraining(max_rounds=1))
    assert found["accuracy"] == result.mean
    assert found["accuracy_by_seed"] == result.accuracy.tolist()
    assert found["confusion"] == result.confusion.tolist()
    assert tuple(found["chosen_sizes"]) == result.chosen_sizes
    code = online_code(pairs[0], seeds=2, training=ProbeTraining(max_rounds=1, criterion="loss"))
    assert found["description_length"]["bits"] == code.bits.mean()
    assert (found["control"], found["n_test"], found["unseen"]) == (None, 30, {})


def test_all_settings_are_stored_defaults_included(files: tuple[Path, Path], capsys: Capsys) -> None:
    found = answer(capsys, "classify", files[0], "--test", files[1], "--max-rounds", 0)
    assert found["settings"] == {
        "sizes": [list(sizes) for sizes in GRID],
        "seeds": 5,
        "training": {
            "learning_rate": 0.004,
            "batch_size": 128,
            "max_rounds": 0,
            "patience": 3,
            "weight_decay": 0.1,
            "held_out": 0.1,
            "criterion": "accuracy",
        },
        "device": "auto",
        "threads": None,
    }
    assert (found["device"], found["seeds"]) == ("cpu", [0, 1, 2, 3, 4])
    assert found["seconds"] > 0


def test_the_options_default_to_the_librarys() -> None:
    options = signature(classify).parameters
    assert {name: options[name].default for name in vars(ProbeTraining()) if name != "criterion"} == {
        name: value for name, value in vars(ProbeTraining()).items() if name != "criterion"
    }
    assert (parse_sizes(options["sizes"].default), options["seeds"].default) == (GRID, SEEDS)


def test_every_option_of_training_is_used(files: tuple[Path, Path], capsys: Capsys) -> None:
    options = {
        "learning_rate": 0.5,
        "batch_size": 7,
        "max_rounds": 2,
        "patience": 1,
        "weight_decay": 0,
        "held_out": 0.3,
    }
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    stored = answer(capsys, "classify", files[0], "--test", files[1], "--sizes", "4", "--seeds", 1, *given)["settings"][
        "training"
    ]
    assert stored == options | {"criterion": "accuracy"}


def test_the_tables_say_the_same(files: tuple[Path, Path], capsys: Capsys) -> None:
    found = answer(capsys, "classify", files[0], "--test", files[1], *FAST, "--control", "--description-length")
    out, err = run(capsys, "classify", files[0], "--test", files[1], *FAST, "--control", "--description-length")
    rows = {cells[0]: cells[1:] for line in out.splitlines() if (cells := [c.strip() for c in line.split("│")[1:-1]])}
    assert rows["train"] == ["90 × 2, 3 labels"]
    assert rows["test accuracy"] == [f"{found['accuracy']:.4f} ± {found['sd']:.4f} over 2 seeds"]
    assert rows["macro-F1"] == [f"{found['macro_f1']:.4f} ± {found['macro_f1_sd']:.4f}"]
    assert rows["majority"][0].startswith("0.3333, for always predicting")
    control = found["control"]
    assert rows["selectivity"][0].startswith(f"{control['selectivity']:.4f} ± {control['sd']:.4f}: task ")
    assert rows["description length"][0].startswith(f"{found['description_length']['bits']:,.0f} ±")
    assert "learning rate 0.004, batch size 128, max rounds 1, patience 3, weight decay 0.1" in rows["settings"][0]
    chosen = [name for name in ("8", "linear") if rows[name][-1] == "chosen"]
    assert chosen == ["linear" if not found["chosen_sizes"] else "8"]
    labels = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│ x")]
    assert [cell.strip() for cell in labels[0]] == ["x", "30", "10", f"{found['by_label'][0]['accuracy']:.4f}"]
    said = [line.split()[0] for line in err.splitlines()]
    assert [word for word in said if not word.endswith(":")] == ["training", "control", "description", "done"]


def test_the_largest_confusions_come_first(tmp_path: Path, capsys: Capsys) -> None:
    X, y = np.array([[0.0]] * 20 + [[9.0]] * 20), np.repeat(["a", "b"], 20)
    test_y = ["a"] * 3 + ["b"] * 2 + ["a"] * 4 + ["b"] * 6  # 5 points at 0, 10 at 9
    file = saved(tmp_path / "points.npz", X=X, y=y, X_test=[[0.0]] * 5 + [[9.0]] * 10, y_test=test_y)
    linear = ("--sizes", "linear", "--learning-rate", 0.1, "--max-rounds", 2)
    found = answer(capsys, "classify", file, *linear, "--seeds", 2)
    assert found["confusions"] == [
        {"label": "a", "predicted": "b", "points": 4.0, "share": pytest.approx(4 / 7)},
        {"label": "b", "predicted": "a", "points": 2.0, "share": 0.25},
    ]
    out, _ = run(capsys, "classify", file, *linear, "--seeds", 1)
    assert "│ a     │ b         │         4.0 │             0.5714 │" in out
    assert "±" not in out  # one seed has no deviation


def test_labels_that_train_lacks_are_named(tmp_path: Path, capsys: Capsys) -> None:
    train = blobs()
    file = saved(tmp_path / "p.npz", X=train["X"], y=train["y"], X_test=train["X"][:4], y_test=["x", "y", "new", "new"])
    out, err = run(capsys, "classify", file, *FAST, "--json")
    assert json.loads(out)["unseen"] == {"new": 2}
    assert "2 test points have labels that no training point has, and count as wrong: new (2)" in err


def test_saved_spaces_bring_words_and_a_description(tmp_path: Path, capsys: Capsys) -> None:
    paths = []
    for split, points, layer in (("train", blobs(), 2), ("test", blobs(30, seed=1), 1)):
        made = {"encoder": "bert-tiny", "task": "toy", "split": split, "layer": layer, "pool": "mean"}
        space = Space.from_arrays(points["X"], points["y"], words=points["words"], **made)
        paths.append(space.save(tmp_path / f"{split}.safetensors"))
    out, err = run(capsys, "classify", paths[0], "--test", paths[1], *FAST, "--control", "--json")
    found = json.loads(out)
    assert found["title"] == "bert-tiny · toy/train · layer 2 · mean"
    assert found["provenance"]["layer"] == 2
    assert found["control"]["known_types"] == 1.0
    assert "warning: layer is 2 in" in err
    assert "random labels of 10 words, 2 times" in err


def test_a_file_without_test_points_is_refused(files: tuple[Path, Path], capsys: Capsys) -> None:
    assert_refused(
        capsys, "train.npz has no test points; pass --test FILE, or add X_test and y_test to it", "classify", files[0]
    )


def test_a_control_task_needs_the_words_of_both_sides(tmp_path: Path, capsys: Capsys) -> None:
    with_words = blobs()
    plain = {name: with_words[name] for name in ("X", "y")}
    one, other = saved(tmp_path / "with.npz", **with_words), saved(tmp_path / "plain.npz", **plain)
    message = "plain.npz has no words for its rows; --control needs an array of strings `words`"
    assert_refused(capsys, message, "classify", other, "--test", one, "--control")
    assert_refused(capsys, message, "classify", one, "--test", other, "--control")
    inside = saved(tmp_path / "both.npz", **with_words, X_test=plain["X"], y_test=plain["y"])
    assert_refused(capsys, "X_test of", "classify", inside, "--control")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sizes", "big"), "invalid sizes 'big'; expected grid, or widths such as '32,64;128;linear'"),
        (("--sizes", ""), "invalid sizes ''; expected grid"),
        (("--sizes", "0"), "invalid sizes [(0,)]; expected a list of tuples"),
        (("--seeds", 0), "Invalid value for '--seeds'"),
        (("--learning-rate", 0), "learning_rate is 0.0; expected a number above 0"),
        (("--learning-rate", "nan"), "learning_rate is nan; expected a number above 0"),
        (("--held-out", 1), "held_out is 1.0; expected a share between 0 and 1"),
        (("--weight-decay", -1), "weight_decay is -1.0; expected a number of at least 0"),
        (("--batch-size", 0), "Invalid value for '--batch-size'"),
        (("--device", "abacus"), "device 'abacus' is unknown; expected auto, cuda, cuda:N, mps or cpu"),
        (("--device", "cuda"), "device cuda requested; torch"),
        (("--threads", 0), "Invalid value for '--threads'"),
    ],
)
def test_unfit_options_are_one_line_and_exit_code_two(
    files: tuple[Path, Path], capsys: Capsys, options: tuple[object, ...], message: str
) -> None:
    assert_refused(capsys, message, "classify", files[0], "--test", files[1], *options)


def test_unfit_files_are_one_line_and_exit_code_two(files: tuple[Path, Path], tmp_path: Path, capsys: Capsys) -> None:
    assert_refused(capsys, "missing.npz does not exist", "classify", tmp_path / "missing.npz", "--test", files[1])
    wide = saved(tmp_path / "wide.npz", X=[[0.0, 1.0, 2.0]], y=["x"])
    assert_refused(capsys, "wide.npz has 3 columns; expected 2", "classify", files[0], "--test", wide)


def test_sizes_are_written_with_semicolons() -> None:
    assert parse_sizes("grid") == GRID
    assert parse_sizes(" 32,64 ; 128;linear;32,64") == ((32, 64), (128,), ())
    assert parse_sizes("linear;grid") == ((), *GRID)
    with pytest.raises(InputError, match="invalid sizes '32;'"):
        parse_sizes("32;")


def test_progress_is_a_bar_with_the_time_left(files: tuple[Path, Path]) -> None:
    code = (
        "import sys\nfrom closerlook.cli import main, measure\nmeasure.QUICK_SECONDS = 0.01\n"
        f"main(['classify', {str(files[0])!r}, '--test', {str(files[1])!r}, '--sizes', '8;4', '--max-rounds', '1'])"
    )
    shown = shown_on_a_terminal([sys.executable, "-c", code], dict(os.environ))
    assert re.search(r"\d+/10 left \d:\d\d:\d\d", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown))
