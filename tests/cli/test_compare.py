"""`closerlook compare` on points, and on distances written by `closerlook probe --json`."""

from pathlib import Path

import numpy as np
import pytest

from closerlook.geometry import cluster, cluster_distances, label_distances, spatial_similarity
from closerlook.representations.space import Space
from tests.cli.console import answer, assert_refused, run, saved

Capsys = pytest.CaptureFixture[str]
NAMES = np.array(["p", "q", "r", "s", "t"])


def separable(seed: int, labels: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Six points around each of some far centres."""
    rng = np.random.default_rng(seed)
    y = np.arange(6 * labels) % labels
    return 20 * rng.normal(size=(labels, 3))[y] + rng.normal(size=(len(y), 3)), NAMES[y]


def test_the_similarity_is_that_of_the_library(tmp_path: Path, capsys: Capsys) -> None:
    a, b = separable(0), separable(1)
    tables = [label_distances(cluster_distances(X, cluster(X, y))) for X, y in (a, b)]
    expected = spatial_similarity(*tables, permutations=50, resamples=40, seed=7)
    options = ("--permutations", 50, "--resamples", 40, "--seed", 7)
    found = answer(capsys, "compare", saved(tmp_path / "a.npz", *a), saved(tmp_path / "b.npz", *b), *options)
    assert found | expected.to_dict() == found
    assert (found["separable"], found["n_labels"], found["a"]["title"], found["seed"]) == (True, 5, "a.npz", 7)


def test_a_space_compared_with_itself_has_similarity_one(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "a.npz", *separable(0))
    out, err = run(capsys, "compare", file, file)
    assert "1.0000 (95% interval 1.0000 to 1.0000)" in out
    assert "all 119 permutations" in out
    assert "both" in out
    assert [line.split()[0] for line in err.splitlines()] == ["clustering", "distances"] * 2


def test_labels_are_matched_by_name_and_the_rest_is_listed(tmp_path: Path, capsys: Capsys) -> None:
    X, y = separable(0)
    codes = {name: 4 - i for i, name in enumerate(NAMES)}
    Space(X.astype(np.float32), np.array([codes[name] for name in y], np.int32), tuple(NAMES[::-1].tolist())).save(
        tmp_path / "b.npz"
    )
    kept = y != "t"
    found = answer(capsys, "compare", saved(tmp_path / "a.npz", X[kept], y[kept]), tmp_path / "b.npz")
    assert found["pearson"] == pytest.approx(1, abs=1e-5)
    assert (found["labels"], found["excluded_a"], found["excluded_b"]) == (["p", "q", "r", "s"], [], ["t"])
    assert "only in B" in run(capsys, "compare", tmp_path / "a.npz", tmp_path / "b.npz")[0]


def test_distances_written_by_probe_can_be_compared(tmp_path: Path, capsys: Capsys) -> None:
    files = [saved(tmp_path / f"{seed}.npz", *separable(seed)) for seed in (0, 1)]
    for file in files:
        file.with_suffix(".json").write_text(run(capsys, "probe", file, "--json")[0])
    expected = answer(capsys, "compare", *files)
    for pair in ((files[0].with_suffix(".json"), files[1]), [file.with_suffix(".json") for file in files]):
        found = answer(capsys, "compare", *pair)
        assert found["pearson"] == expected["pearson"]
        assert found["p_value"] == expected["p_value"]
        assert found["a"]["title"] == "0.npz"


def test_labels_without_distances_are_listed(tmp_path: Path, capsys: Capsys) -> None:
    X, y = separable(0)
    fewer = np.delete(np.arange(len(y)), np.flatnonzero(y == "s")[1:])
    file = saved(tmp_path / "a.npz", X[fewer], y[fewer])
    found = answer(capsys, "compare", file, saved(tmp_path / "b.npz", X, y), "--min-points", 2)
    assert (found["undefined"], found["a"]["excluded"]) == (["s"], {"s": 1})
    assert "without distances" in run(capsys, "compare", file, tmp_path / "b.npz", "--min-points", 2)[0]


def test_a_space_that_is_not_separable_is_marked(tmp_path: Path, capsys: Capsys) -> None:
    X, y = separable(0)
    mixed = np.random.default_rng(0).permutation(y)
    file = saved(tmp_path / "mixed.npz", X, mixed)
    assert answer(capsys, "compare", file, saved(tmp_path / "b.npz", X, y))["separable"] is False
    assert "not both: the paper defines" in run(capsys, "compare", file, tmp_path / "b.npz")[0]


def test_distances_with_different_settings_are_pointed_out(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "a.npz", *separable(0))
    (tmp_path / "a.json").write_text(run(capsys, "probe", file, "--json", "--statistic", "min")[0])
    _, err = run(capsys, "compare", tmp_path / "a.json", file)
    assert "warning: statistic is min in a.npz, but mean in a.npz" in err


def test_permutations_and_resamples_may_be_skipped(tmp_path: Path, capsys: Capsys) -> None:
    files = [saved(tmp_path / f"{seed}.npz", *separable(seed)) for seed in (0, 1)]
    found = answer(capsys, "compare", *files, "--permutations", 0, "--resamples", 0)
    assert (found["p_value"], found["pearson_interval"]) == (None, [None, None])
    out, _ = run(capsys, "compare", *files, "--permutations", 0, "--resamples", 0)
    assert "nan" not in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "cannot be read as JSON"),
        (b"\xff\xfe{", "cannot be read as JSON"),
        (b"[1]", "holds no label_distances; expected what `closerlook probe --json` prints"),
        (b'{"label_distances": null}', "holds no label_distances"),
        (b'{"label_distances": {"labels": ["a"]}}', "its label_distances cannot be read (KeyError: 'values')"),
        (None, "b.json cannot be read as JSON"),
    ],
)
def test_unfit_json_is_one_line_and_exit_code_two(
    tmp_path: Path, capsys: Capsys, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "b.json").write_bytes(content)
    assert_refused(capsys, message, "compare", saved(tmp_path / "a.npz", *separable(0)), tmp_path / "b.json")


def test_spaces_with_fewer_than_three_labels_in_common_are_refused_before_any_work(
    tmp_path: Path, capsys: Capsys
) -> None:
    X, y = separable(0)
    a, b = saved(tmp_path / "a.npz", X, y), saved(tmp_path / "b.npz", X, np.where(y == "p", "p", "other"))
    assert_refused(capsys, "a.npz (5 labels) and b.npz (2) have 1 labels in common (p)", "compare", a, b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--permutations", -1), "Invalid value for '--permutations'"),
        (("--confidence", 1), "confidence is 1.0; expected a number between 0 and 1"),
        (("--statistic", "sum"), "statistic 'sum' is unknown"),
        (("--seed", -1), "Invalid value for '--seed'"),
    ],
)
def test_unfit_options_are_one_line_and_exit_code_two(
    tmp_path: Path, capsys: Capsys, options: tuple[object, ...], message: str
) -> None:
    file = saved(tmp_path / "a.npz", *separable(0))
    assert_refused(capsys, message, "compare", file, file, *options)


def many_labels(seed: int, sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Pure noise with these label sizes."""
    y = np.repeat([f"L{at}" for at in range(len(sizes))], sizes)
    return np.random.default_rng(seed).normal(size=(len(y), 40)), y


def test_noise_is_similar_until_label_sizes_are_removed(tmp_path: Path, capsys: Capsys) -> None:
    sizes = [1, 1, 2, 2, 3, 4, 6, 8, 11, 15, 18, 20]
    files = [saved(tmp_path / f"{seed}.npz", *many_labels(seed, sizes)) for seed in (0, 1)]
    found = answer(capsys, "compare", *files)
    assert found["pearson"] > 0.8
    assert found["p_value"] <= 0.01
    assert found["noise"]["mean"] > 0.8
    assert found["label_sizes_removed"]["p_value"] > 0.05
    out, _ = run(capsys, "compare", *files)
    assert "label sizes removed" in out
    assert "noise of the same sizes" in out


def test_label_sizes_are_known_from_the_output_of_probe(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "a.npz", *many_labels(0, [2, 3, 4, 5, 6, 7, 8, 9]))
    expected = answer(capsys, "compare", file, file)
    file.with_suffix(".json").write_text(run(capsys, "probe", file, "--json")[0])
    found = answer(capsys, "compare", file.with_suffix(".json"), file)
    assert found["label_sizes_removed"] == pytest.approx(expected["label_sizes_removed"])
    assert found["noise"] == expected["noise"]
