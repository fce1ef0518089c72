"""`closerlook describe` on one space, and on two spaces."""

from pathlib import Path

import numpy as np
import pytest

from closerlook.cli.describe import meaning
from closerlook.geometry import (
    cluster,
    cluster_distances,
    compare_points,
    describe_space,
    label_distances,
    separability,
    spatial_similarity,
)
from closerlook.study.registry import measure
from tests.cli.console import answer, assert_refused, run, saved

Capsys = pytest.CaptureFixture[str]
POINT_SIMILARITIES = ("cka", "procrustes", "rsa", "neighbours")
NAMES = np.array(["p", "q", "r", "s"])


def points(seed: int = 0, apart: float = 20.0, labels: int = 4, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Eight points around each of some centres."""
    rng = np.random.default_rng(seed)
    y = np.arange(8 * labels) % labels
    return apart * rng.normal(size=(labels, d))[y] + rng.normal(size=(len(y), d)), NAMES[y]


def test_the_panel_is_that_of_the_library(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points(apart=1)
    found = answer(capsys, "describe", saved(tmp_path / "a.npz", X, y))
    assert found["panel"] == pytest.approx(describe_space(X, y).flat())
    assert (found["title"], found["n"], found["d"], found["m"]) == ("a.npz", 32, 3, 4)
    assert found["n_clusters"] == cluster(X, y).n_clusters
    assert found["separability"] is None
    assert "against" not in found


def test_every_value_is_shown_with_its_meaning_from_the_registry(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points()
    out, err = run(capsys, "describe", saved(tmp_path / "a.npz", X, y))
    flat = describe_space(X, y).flat()
    rows: list[list[str]] = []
    for line in (line for line in out.splitlines() if line.startswith("│")):
        cells = [cell.strip() for cell in line.split("│")[1:-1]]
        if cells[0]:
            rows.append(cells)
        else:  # the meaning goes on in the next line
            rows[-1][2] += f" {cells[2]}"
    shown = {name: (value, text) for name, value, text in rows}
    assert {name: shown[name] for name in flat} == {name: (f"{flat[name]:.4g}", meaning(name)) for name in flat}
    assert meaning("neighbours") == measure("shared_neighbours").meaning
    assert [line.split()[0] for line in err.splitlines()] == ["clustering", "panel", "done"]


def test_shuffled_labels_are_shown_as_the_null(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points()
    file = saved(tmp_path / "a.npz", X, y)
    expected = separability(X, y, shuffles=20, seed=3)
    assert answer(capsys, "describe", file, "--shuffles", 20, "--seed", 3)["separability"] == expected.to_dict()
    out, _ = run(capsys, "describe", file, "--shuffles", 20, "--seed", 3)
    assert f"{expected.separable.mean:.4g} ± {expected.separable.deviation:.3g}; p 0.0476" in out


def test_a_p_value_from_few_shuffles_is_left_out_with_the_reason(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "a.npz", *points())
    reason = "3 shuffles cannot give p below 0.25; run with 20 or more"
    null = answer(capsys, "describe", file, "--shuffles", 3)["separability"]["separable"]
    assert (null["p_value"], null["no_p_value"]) == (None, reason)
    out, _ = run(capsys, "describe", file, "--shuffles", 3)
    words = [word for word in out.split() if word != "│"]
    assert f"no p: {reason}" in " ".join(words)


@pytest.mark.parametrize(
    ("labels", "permutations", "reason"),
    [
        (4, 9, "9 permutations cannot give p below 0.1; run with 20 or more"),
        (3, 9999, "5 permutations cannot give p below 0.17; 3 labels have no more; compare spaces with 4 or more"),
    ],
)
def test_a_p_value_from_few_permutations_is_left_out_with_the_reason(
    tmp_path: Path, capsys: Capsys, labels: int, permutations: int, reason: str
) -> None:
    files = [saved(tmp_path / f"{seed}.npz", *points(seed=seed, labels=labels)) for seed in (0, 1)]
    for command in (["describe", files[0], "--against", files[1]], ["compare", *files]):
        found = answer(capsys, *command, "--permutations", permutations)
        found = found.get("similarity", found)
        assert found["p_value"] is None
        assert found["no_p_value"].startswith(reason)
        out, _ = run(capsys, *command, "--permutations", permutations)
        assert f"{permutations if labels == 4 else 5} permutations cannot give p below" in " ".join(out.split())


def test_two_spaces_of_the_same_rows(tmp_path: Path, capsys: Capsys) -> None:
    (A, y), (B, _) = points(), points(seed=1, d=5)
    files = saved(tmp_path / "a.npz", A, y), saved(tmp_path / "b.npz", B, y)
    tables = [label_distances(cluster_distances(X, cluster(X, y))) for X in (A, B)]
    expected = spatial_similarity(*tables, permutations=9999, seed=0)
    found = answer(capsys, "describe", files[0], "--against", files[1])
    assert found["against"]["panel"] == pytest.approx(describe_space(B, y).flat())
    assert found["point_similarity"] == pytest.approx(compare_points(A, B).to_dict())
    assert found["similarity"] == expected.to_dict()
    out, err = run(capsys, "describe", files[0], "--against", files[1])
    assert "A: a.npz; B: b.npz" in out
    assert all(name in out for name in (*describe_space(A, y).flat(), *POINT_SIMILARITIES, "spatial similarity"))
    null = f"{expected.null_mean:.3g} ± {expected.null_deviation:.3g}"
    assert f"similarity with permuted labels (all 23 permutations): {null}" in out
    assert [line.split()[0] for line in err.splitlines()] == [
        *("clustering", "panel") * 2,
        *("comparing", "distances", "distances", "done"),
    ]


def test_a_space_and_its_rotated_copy_have_similarity_one(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points()
    files = saved(tmp_path / "a.npz", X, y), saved(tmp_path / "b.npz", 3 * X[:, ::-1] + 1, y)
    found = answer(capsys, "describe", files[0], "--against", files[1])
    assert [found["point_similarity"][name] for name in POINT_SIMILARITIES] == pytest.approx([1, 1, 1, 1], abs=1e-6)
    assert found["similarity"]["pearson"] == pytest.approx(1)


def test_different_rows_have_no_point_similarity(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points()
    a = saved(tmp_path / "a.npz", X, y)
    for b in (saved(tmp_path / "b.npz", X[1:], y[1:]), saved(tmp_path / "c.npz", X[::-1], y[::-1])):
        found = answer(capsys, "describe", a, "--against", b)
        assert found["point_similarity"] is None
        assert found["similarity"]["n_labels"] == 4
        assert (
            "no point similarity: the two spaces have different rows" in run(capsys, "describe", a, "--against", b)[1]
        )


def test_two_labels_have_no_spatial_similarity(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points(labels=2)
    file = saved(tmp_path / "a.npz", X, y)
    found = answer(capsys, "describe", file, "--against", file)
    assert (found["similarity"], found["point_similarity"]["n"]) == (None, 16)
    _, err = run(capsys, "describe", file, "--against", file)
    assert "no spatial similarity: 2 labels in common, expected at least 3" in err


def test_what_cannot_be_computed_is_said_so(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "a.npz", np.full((6, 2), 0.1), ["p", "q"] * 3)
    assert answer(capsys, "describe", file)["panel"]["two_nn"] is None
    out, _ = run(capsys, "describe", file)
    assert "undefined" in out
    assert "nan" not in out


def test_one_label_is_one_line_and_exit_code_two(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points()
    file = saved(tmp_path / "a.npz", X, np.full(len(y), "p"))
    assert_refused(capsys, "a.npz has one label, 'p'; expected at least two", "describe", file)
    other = saved(tmp_path / "b.npz", X, y)
    assert_refused(capsys, "a.npz has one label, 'p'", "describe", other, "--against", file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shuffles", -1), "Invalid value for '--shuffles'"),
        (("--statistic", "sum"), "statistic 'sum' is unknown"),
        (("--tau", 0), "tau is 0.0"),
        (("--threads", 0), "Invalid value for '--threads'"),
        (("--against", "nothing.npz"), "nothing.npz"),
    ],
)
def test_unfit_options_are_one_line_and_exit_code_two(
    tmp_path: Path, capsys: Capsys, options: tuple[object, ...], message: str
) -> None:
    assert_refused(capsys, message, "describe", saved(tmp_path / "a.npz", *points()), *options)


def test_a_file_without_labels_is_refused_as_by_probe(tmp_path: Path, capsys: Capsys) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)))
    _, by_probe = run(capsys, "probe", tmp_path / "a.npz", code=2)
    _, by_describe = run(capsys, "describe", tmp_path / "a.npz", code=2)
    assert by_probe == by_describe


def test_excluded_small_clusters_prevent_only_the_spatial_similarity(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points()
    files = saved(tmp_path / "a.npz", X, y), saved(tmp_path / "b.npz", X + 1, y)
    found = answer(capsys, "describe", files[0], "--against", files[1], "--min-points", 9)
    assert (found["similarity"], found["point_similarity"]["n"]) == (None, 32)
    _, err = run(capsys, "describe", files[0], "--against", files[1], "--min-points", 9)
    assert (
        "no spatial similarity: 0 labels have distances in both, expected at least 3; clusters of fewer than 9" in err
    )


def test_rows_with_different_words_are_not_compared(tmp_path: Path, capsys: Capsys) -> None:
    X, y = points()
    files = []
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", X=X, y=y, words=np.array([f"{name}{at}" for at in range(len(y))]))
        files.append(tmp_path / f"{name}.npz")
    _, err = run(capsys, "describe", files[0], "--against", files[1])
    assert "no point similarity: the rows of the two spaces have different words" in err
    assert answer(capsys, "describe", files[0], "--against", files[0])["point_similarity"][
        "procrustes"
    ] == pytest.approx(1)


def test_a_name_in_brackets_is_shown_as_it_is(tmp_path: Path, capsys: Capsys) -> None:
    out, _ = run(capsys, "describe", saved(tmp_path / "x[seed0].npz", *points()))
    assert "x[seed0].npz" in out


@pytest.mark.parametrize("unit", [0.0, 1e-170, 1e160])
def test_numbers_of_any_size_are_described(tmp_path: Path, capsys: Capsys, unit: float) -> None:
    X, y = points()
    found = answer(capsys, "describe", saved(tmp_path / "a.npz", X * unit, y))["panel"]
    if unit:
        assert found == pytest.approx(describe_space(X, y).flat(), rel=1e-6)
    else:
        assert (found["logme"], found["nc1"], found["n_overlapping_pairs"]) == (None, None, 6)
