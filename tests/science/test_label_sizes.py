"""Similarity with label sizes removed: pure noise with the label sizes of real tasks passes its test in 5% of cases."""

import json
from pathlib import Path

import numpy as np
import pytest

from closerlook.errors import InputError
from closerlook.geometry import cluster, cluster_distances, label_distances, spatial_similarity
from closerlook.geometry.label_sizes import noise_similarity, size_adjusted_similarity

SIZES: dict[str, dict[str, list[int]]] = json.loads((Path(__file__).parent / "label_sizes.json").read_text())
"""The number of examples of each label in the tasks of the paper, by split."""

DIMENSION = 64


def reduced(task: str, split: str, largest: int) -> list[int]:
    """The label sizes of a task, in proportion, with the largest reduced; labels that a split lacks are left out."""
    kept = [at for at, n in enumerate(SIZES[task]["test"]) if n and SIZES[task]["train"][at]]
    sizes = np.array([SIZES[task][split][at] for at in kept])
    return [max(1, int(n)) for n in np.ceil(sizes * largest / sizes.max())]


def noise(sizes: list[int], rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """The label distances of pure noise."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(y), DIMENSION))
    table = label_distances(cluster_distances(X, cluster(X, y, threads=1), threads=1))
    return [str(label) for label in table.labels], table.values


def passed(task: str, splits: tuple[str, str], simulations: int) -> tuple[float, float]:
    """The share of simulations with p ≤ 0.05, by the plain permutation test and with label sizes removed."""
    sizes = [reduced(task, split, {"train": 30, "test": 15}[split]) for split in splits]
    named = [{str(at): n for at, n in enumerate(side)} for side in sizes]
    rng = np.random.default_rng(0)
    plain, adjusted = [], []
    for _ in range(simulations):
        a, b = (noise(side, rng) for side in sizes)
        plain.append(spatial_similarity(a, b, permutations=99, resamples=0).p_value)
        adjusted.append(size_adjusted_similarity(a, b, *named, permutations=199).p_value)
    return float(np.mean(np.array(plain) <= 0.05)), float(np.mean(np.array(adjusted) <= 0.05))


@pytest.mark.parametrize("task", SIZES)
def test_noise_with_the_label_sizes_of_a_task_passes_only_the_plain_test(task: str) -> None:
    plain, adjusted = passed(task, ("train", "train"), 40)
    assert plain > 0.9
    assert adjusted <= 7 / 40  # 8 or more of 40 have a probability of 0.1% at a level of 5%


@pytest.mark.slow
@pytest.mark.parametrize("splits", [("train", "train"), ("train", "test")], ids=["same sizes", "train and test"])
@pytest.mark.parametrize("task", SIZES)
def test_noise_passes_the_test_without_sizes_in_5_percent(task: str, splits: tuple[str, str]) -> None:
    plain, adjusted = passed(task, splits, 500)
    assert plain > 0.2
    assert 0.03 <= adjusted <= 0.07


def labelled_points(m: int, seed: int, move: float = 0.0) -> tuple[list[str], np.ndarray]:
    """The distances of m random points in the plane, moved a little."""
    points = np.random.default_rng(seed).normal(size=(m, 2))
    points = points + move * np.random.default_rng(seed + 1).normal(size=points.shape)
    return [f"L{at}" for at in range(m)], np.linalg.norm(points[:, None] - points, axis=2)


def equal_sizes(m: int) -> dict[str, int]:
    return {f"L{at}": 20 for at in range(m)}


def test_a_real_arrangement_passes_the_test() -> None:
    result = size_adjusted_similarity(
        labelled_points(20, 0), labelled_points(20, 0, 0.2), equal_sizes(20), equal_sizes(20)
    )
    assert result.pearson > 0.7
    assert result.p_value == 0.001


def test_a_space_and_its_copy_have_a_similarity_of_1_in_any_scale() -> None:
    names, D = labelled_points(9, 1)
    order = np.random.default_rng(2).permutation(9)
    other = [names[at] for at in order], 7 * D[np.ix_(order, order)]
    assert size_adjusted_similarity((names, D), other, equal_sizes(9), equal_sizes(9)).pearson == pytest.approx(1.0)


def test_an_effect_of_each_label_alone_is_removed() -> None:
    """Distances that are the sum of two effects of single labels have nothing left."""
    effects = np.arange(1.0, 9.0)
    D = effects[:, None] + effects
    np.fill_diagonal(D, 0)
    names = [f"L{at}" for at in range(8)]
    assert np.isnan(size_adjusted_similarity((names, D), labelled_points(8, 3), equal_sizes(8), equal_sizes(8)).pearson)


def test_few_labels_or_permutations_give_no_value() -> None:
    seven = size_adjusted_similarity(labelled_points(7, 0), labelled_points(7, 0), equal_sizes(7), equal_sizes(7))
    assert np.isnan([seven.pearson, seven.p_value]).all()
    few = size_adjusted_similarity(
        labelled_points(8, 0), labelled_points(8, 0), equal_sizes(8), equal_sizes(8), permutations=18
    )
    assert few.pearson == pytest.approx(1.0)
    assert np.isnan(few.p_value)


def test_missing_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="sizes_b has no points for label 'L7'"):
        size_adjusted_similarity(labelled_points(8, 0), labelled_points(8, 0), equal_sizes(8), equal_sizes(7))


def test_noise_with_unequal_sizes_is_similar_and_with_equal_sizes_is_not() -> None:
    sizes = reduced("ps-role", "train", 30)
    assert noise_similarity(sizes, sizes, DIMENSION).mean > 0.85
    assert abs(noise_similarity([6] * 20, [6] * 20, DIMENSION).mean) < 0.3


def test_noise_of_a_large_space_has_fewer_points() -> None:
    result = noise_similarity([500, 300, 200, 2], [500, 300, 200, 2], 32, draws=1, points=50)
    assert result.points == 24 + 14 + 9 + 1


def test_sizes_of_different_labels_are_refused() -> None:
    with pytest.raises(InputError, match="2 and 3 label sizes were given"):
        noise_similarity([1, 2], [1, 2, 3], 8)
