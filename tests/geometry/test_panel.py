"""The panel of one space: closed forms, agreement with its parts, bounded memory."""

import math
import tracemalloc

import numpy as np
import pytest

from closerlook import geometry
from closerlook.errors import InputError
from closerlook.geometry import (
    cluster,
    collapse,
    compare_points,
    cover_probability,
    describe_space,
    label_fit,
    overlaps,
    two_nn,
)
from closerlook.geometry.panel import PARTS

NAMES = """nc1 cdnv nc2_norm nc2_angle nc3 nc4 participation_ratio two_nn iso_score mean_cosine outlier_dimensions logme
    gdv silhouette largest_cluster_share n_overlapping_pairs largest_overlap_share cover_probability n_over_2d"""


def corners(m: int = 4, rows: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Labels that are one point each, at the corners of a simplex."""
    return np.eye(m).repeat(rows, axis=0), np.array([f"label {code}" for code in range(m)]).repeat(rows)


def noisy(n: int = 120, d: int = 3, m: int = 3, distance: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % m
    return rng.normal(size=(n, d)) + distance * rng.normal(size=(m, d))[y], y


def test_a_collapsed_simplex_by_hand() -> None:
    result = describe_space(*corners())
    flat = result.flat()
    assert (result.n, result.d, result.m) == (20, 4, 4)
    for name in ("nc1", "cdnv", "nc2_norm", "nc2_angle", "largest_overlap_share", "n_overlapping_pairs"):
        assert flat[name] == pytest.approx(0, abs=1e-9), name
    for name in ("nc4", "silhouette", "largest_cluster_share", "cover_probability"):
        assert flat[name] == 1.0 or flat[name] == pytest.approx(cover_probability(10, 4)), name
    assert flat["participation_ratio"] == pytest.approx(3)
    assert flat["n_over_2d"] == 10 / 8
    assert flat["mean_cosine"] == pytest.approx((4 * 5 * 4) / (20 * 19))
    # Two scores of 1 over √3 and 3 over √3, halved, differ in two of four coordinates by 2 / √3: over √d, -√(2/3).
    assert flat["gdv"] == pytest.approx(-math.sqrt(2 / 3))


def test_the_numbers_are_those_of_the_parts() -> None:
    X, y = noisy()
    result, clusters = describe_space(X, y), cluster(X, y)
    meeting = overlaps(X, y)
    shares = [max(clusters.sizes[clusters.cluster_codes == code]) / 40 for code in range(3)]
    assert result.two_nn == two_nn(X)
    assert result.label_fit == label_fit(X, y)
    assert result.largest_cluster_share == pytest.approx(np.mean(shares))
    assert (result.n_overlapping_pairs, result.largest_overlap_share) == (3, meeting[0].share)
    assert result.cover == pytest.approx(cover_probability(80, 3))
    assert result.ratio == 80 / 6


def test_every_value_has_one_plain_name() -> None:
    flat = describe_space(*noisy()).flat()
    assert list(flat) == NAMES.split()
    assert all(type(value) is float for value in flat.values())


def test_the_dictionary_keeps_the_parts() -> None:
    result = describe_space(*noisy())
    fields = result.to_dict()
    assert fields["collapse"] == result.collapse.to_dict()
    assert fields["label_fit"]["logme"] == result.label_fit.logme
    assert fields["n"] == 120


def test_known_clusters_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy()
    clusters, expected = cluster(X, y), describe_space(X, y)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("clustered again")

    monkeypatch.setattr("closerlook.geometry.panel.cluster", refuse)
    assert describe_space(X, y, clustering=clusters) == expected


def test_rotation_shift_and_scale_change_only_the_measures_that_depend_on_them() -> None:
    X, y = noisy(d=4)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    one, other = describe_space(X, y).flat(), describe_space(8 * X @ turn + 3, y).flat()
    changed = {
        "mean_cosine",
        "outlier_dimensions",
        "logme",
        "gdv",
        "largest_overlap_share",
    }  # they see the axes or the origin
    for name in set(one) - changed:
        assert other[name] == pytest.approx(one[name], rel=1e-5), name


def test_the_names_of_labels_and_threads_change_nothing() -> None:
    X, y = noisy()
    one = describe_space(X, y, threads=1)
    assert describe_space(X, y, threads=3) == one
    assert describe_space(X, [f"name {code}" for code in y]).flat() == pytest.approx(one.flat())


def test_progress_ends_with_the_last_part() -> None:
    seen: list[tuple[int, int]] = []
    describe_space(*corners(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, PARTS) for done in range(1, PARTS + 1)]


def test_one_label_is_refused() -> None:
    with pytest.raises(InputError, match="y has one label, 'a'; expected at least two"):
        describe_space([[0.0], [1.0]], ["a", "a"])


def test_the_public_names_are_sorted_and_exist() -> None:
    assert geometry.__all__ == sorted(geometry.__all__)
    for name in ("Panel", "describe_space", "PointSimilarity", "compare_points", "separability", "cluster_nulls"):
        assert name in geometry.__all__
    assert all(hasattr(geometry, name) for name in geometry.__all__)


@pytest.mark.slow
def test_all_pairs_of_twenty_thousand_rows_take_less_than_a_gigabyte() -> None:
    """All distances at once would take 3.2 GB."""
    rng = np.random.default_rng(0)
    A, B, y = rng.normal(size=(20_000, 64)), rng.normal(size=(20_000, 64)), rng.integers(0, 40, 20_000)
    tracemalloc.start()
    for part in (lambda: compare_points(A, B), lambda: label_fit(A, y), lambda: two_nn(A), lambda: collapse(A, y)):
        part()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 10 << 20 < peak < 1000 << 20
