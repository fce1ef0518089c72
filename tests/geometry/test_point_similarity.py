"""Point similarity: copies have similarity 1, independent spaces 0, and plain formulas agree."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import rankdata, spearmanr
from sklearn.neighbors import NearestNeighbors

from closerlook.errors import InputError
from closerlook.geometry import pairs, ranks
from closerlook.geometry.pairs import Candidates
from closerlook.geometry.point_similarity import compare_points, linear_cka, procrustes, rsa, shared_neighbours


def space(n: int = 120, d: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def turned(X: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(9)
    return 4 * X @ np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0] - 3


def test_a_rotated_shifted_and_scaled_copy_has_similarity_one() -> None:
    X = space()
    result = compare_points(X, turned(X))
    assert result.cka == pytest.approx(1)
    assert result.procrustes == pytest.approx(1)
    assert result.rsa == pytest.approx(1, abs=1e-6)
    assert result.neighbours == 1


def test_the_order_of_the_two_does_not_matter() -> None:
    A, B = space(), space(d=9, seed=1) + np.pad(space(), ((0, 0), (0, 3)))
    one, other = compare_points(A, B), compare_points(B, A)
    for name, value in one.to_dict().items():
        assert other.to_dict()[name] == pytest.approx(value), name


def test_debiased_cka_of_independent_spaces_is_zero_within_its_error() -> None:
    result = [linear_cka(space(60, 200, seed), space(60, 150, 1000 + seed)) for seed in range(60)]
    error = np.std(result, ddof=1) / math.sqrt(len(result))
    assert abs(np.mean(result)) < 4 * error
    assert np.mean(np.abs(result)) < 0.1  # the biased estimate would be about 0.7 here


def test_cka_is_that_of_the_kernels() -> None:
    """The unbiased estimate of Song et al. written out with n × n kernels."""

    def hsic(K: np.ndarray, L: np.ndarray) -> float:
        n, ones = len(K), np.ones(len(K))
        K, L = K - np.diag(K.diagonal()), L - np.diag(L.diagonal())
        return float(
            (
                np.trace(K @ L)
                + ones @ K @ ones * (ones @ L @ ones) / ((n - 1) * (n - 2))
                - 2 / (n - 2) * ones @ K @ L @ ones
            )
            / (n * (n - 3))
        )

    A, B = space(), space(seed=2) + space()
    K, L = A @ A.T, B @ B.T
    assert linear_cka(A, B) == pytest.approx(hsic(K, L) / math.sqrt(hsic(K, K) * hsic(L, L)))


def test_procrustes_matches_the_distance_after_the_best_rotation() -> None:
    A, B = space(), space(seed=3) + space()
    a, b = ((X - X.mean(0)) / np.linalg.norm(X - X.mean(0)) for X in (A, B))
    left, _, right = np.linalg.svd(a.T @ b)
    assert procrustes(A, B) == pytest.approx(1 - np.linalg.norm(a @ left @ right - b) ** 2 / 2)


def test_procrustes_with_more_dimensions_than_rows() -> None:
    A = space(20, 50)
    assert procrustes(A, turned(A)) == pytest.approx(1)


def test_rsa_is_the_rank_correlation_of_all_distances() -> None:
    A, B = space(), space(seed=4) + space()
    assert rsa(A, B) == pytest.approx(spearmanr(pdist(A), pdist(B)).statistic, abs=1e-5)


def test_rsa_with_ties() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 3, (60, 2)).astype(float)
    assert rsa(A, B) == pytest.approx(spearmanr(pdist(A), pdist(B)).statistic, abs=1e-4)


def test_neighbours_are_those_of_scikit_learn() -> None:
    A, B, k = space(), space(seed=5) + space(), 7
    near = [NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False) for X in (A, B)]
    shared = [len(set(x) & set(z)) for x, z in zip(*near, strict=True)]
    assert shared_neighbours(A, B, k=k) == pytest.approx(np.mean([s / (2 * k - s) for s in shared]))


def test_rsa_of_distances_at_round_shares_of_the_largest() -> None:
    """Unit vectors and their opposites: all distances are 2 or the root of 2, and rounding must not split a tie."""
    A = turned(np.vstack([np.eye(12), -np.eye(12)]))
    B = A + 0.01 * np.arange(24)[:, None]
    assert rsa(A, A) == pytest.approx(1, abs=1e-12)
    assert rsa(A, B) == pytest.approx(spearmanr(pdist(A).round(9), pdist(B).round(9)).statistic, abs=1e-5)


def test_identical_rows_are_neighbours_in_their_order() -> None:
    """Triples of identical rows: neighbours for k = 2; for k = 3 the smallest row of the nearest triple is added."""
    A, B = np.repeat(space(20), 3, axis=0), np.repeat(space(20, seed=1), 3, axis=0)
    assert shared_neighbours(A, B, k=2) == 1
    near = [plain_neighbours(X, 3) for X in (A, B)]
    shared = np.array([len(set(x) & set(z)) for x, z in zip(*near, strict=True)])
    assert shared_neighbours(A, B, k=3) == pytest.approx(np.mean(shared / (6 - shared)))


def plain_neighbours(X: np.ndarray, k: int) -> list[list[int]]:
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return np.argsort(squared, axis=1, kind="stable")[:, :k].tolist()


def test_strips_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    A, B = space(), space(seed=6) + space()
    whole = compare_points(A, B)
    monkeypatch.setattr(pairs, "TILE", 7)
    for width, strips in ((11, 2), (200, 50)):
        monkeypatch.setattr(pairs, "WIDTH", width)
        monkeypatch.setattr(pairs, "STRIPS", strips)
        for name, value in compare_points(A, B).to_dict().items():
            assert value == pytest.approx(whole.to_dict()[name], rel=1e-9), name


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "TILE", 7)
    A, B = space(), space(seed=6) + space()
    assert compare_points(A, B, threads=1) == compare_points(A, B, threads=3)


def test_the_parts_alone_are_those_of_the_shared_passes() -> None:
    A, B = np.repeat(space(60), 2, axis=0), space(seed=6)
    together = compare_points(A, B, k=7)
    assert together.rsa == rsa(A, B)
    assert together.neighbours == shared_neighbours(A, B, k=7)


def test_a_different_number_of_rows_is_refused() -> None:
    with pytest.raises(InputError, match="A has 120 rows and B 119; expected the same rows in both"):
        linear_cka(space(), space(119))
    with pytest.raises(InputError, match="k is 120; expected 1 to 119"):
        shared_neighbours(space(), space(), k=120)


def test_a_space_of_identical_rows_has_no_similarity() -> None:
    point = np.full((10, 3), 0.1)
    assert math.isnan(linear_cka(point, space(10)))
    assert math.isnan(procrustes(point, space(10)))
    assert math.isnan(rsa(point, space(10)))
    assert math.isnan(shared_neighbours(point, space(10), k=3))
    assert math.isnan(shared_neighbours(point, point + 1, k=3))


@pytest.mark.parametrize("n", [4, 9, 24])
def test_cka_of_equidistant_rows_is_nan(n: int) -> None:
    assert math.isnan(linear_cka(0.3 * np.eye(n), 7.7 * np.eye(n)))
    assert math.isnan(linear_cka(np.eye(n), space(n)))


@pytest.mark.parametrize(("m", "noise"), [(4, 1e-4), (4, 1e-5), (4, 1e-6), (2, 1e-5)])
def test_rsa_of_collapsed_spaces_keeps_ranks_within_and_between_labels(m: int, noise: float) -> None:
    rng = np.random.default_rng(m)
    y = np.arange(200) % m
    A, B = (rng.normal(size=(m, 8))[y] + noise * rng.normal(size=(200, 8)) for _ in "AB")
    assert rsa(A, B) == pytest.approx(spearmanr(pdist(A), pdist(B)).statistic, abs=1e-5)


def test_levels_that_are_divided_later_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks between two collapsed labels: their levels have codes of two bytes, but are crowded."""
    monkeypatch.setattr(pairs, "TILE", 20)
    monkeypatch.setattr(pairs, "WIDTH", 20)
    rng = np.random.default_rng(0)
    A, B = (rng.normal(size=(2, 8)).repeat(60, axis=0) + 1e-4 * rng.normal(size=(120, 8)) for _ in "AB")
    monkeypatch.setattr(ranks, "KEPT", 0)
    value = rsa(A, B)
    monkeypatch.setattr(ranks, "KEPT", 1000)
    assert rsa(A, B) == pytest.approx(value, abs=1e-12)


def test_rsa_of_a_collapsed_space_does_not_depend_on_strips_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a label inner products cancel: other last digits put distances at other levels, and move rsa by 1e-7."""
    rng = np.random.default_rng(0)
    n = 3 * 16 + 7
    monkeypatch.setattr(pairs, "TILE", 16)
    monkeypatch.setattr(pairs, "WIDTH", 24)
    A, B = (rng.normal(size=(3, 8))[np.arange(n) % 3] + 1e-6 * rng.normal(size=(n, 8)) for _ in "AB")
    whole = rsa(A, B)
    monkeypatch.setattr(pairs, "STRIPS", 1)
    assert rsa(A, B, threads=1) == rsa(A, B, threads=3) == pytest.approx(whole, abs=1e-12)


def test_a_distance_has_the_same_digits_in_every_strip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "TILE", 16)
    monkeypatch.setattr(pairs, "WIDTH", 24)
    centred = pairs.Centred.of(np.random.default_rng(0).normal(size=(39, 33)))
    whole = {(block.first, block.column): block.squared.copy() for block in centred.blocks(0, 39)}
    for start in (0, 16, 32):
        for block in centred.blocks(start, min(start + 16, 39)):
            assert (block.squared == whole.pop((block.first, block.column))).all()
    assert not whole


def plainly_ranked(X: np.ndarray) -> np.ndarray:
    """The ranks of all distances; those that agree in 14 bits after the first, relative to `top`, share one."""
    centred = X - X.mean(axis=0)
    top = 2.0007 * np.sqrt((centred**2).sum(axis=1).max())
    shares = pdist(X) / top
    fraction, exponent = np.frexp(shares)
    return rankdata(np.where(shares > 2.0**-24, exponent + np.floor(fraction * 2**15) / 2**15, -99))


@pytest.mark.parametrize("kept", [0, 0.01, 2, 1000])
@pytest.mark.parametrize("far", [0.0, 40.0])
def test_rsa_is_that_of_ranks_by_level_however_many_levels_are_kept(
    kept: float, far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One far row makes the other distances so small in comparison that some levels have no code of two bytes."""
    monkeypatch.setattr(ranks, "KEPT", kept)
    monkeypatch.setattr(pairs, "TILE", 16)
    monkeypatch.setattr(pairs, "WIDTH", 40)
    A, B = space(), space(seed=6) + space()
    A[3] = A[4]
    A[0] += far
    assert rsa(A, B) == pytest.approx(np.corrcoef(plainly_ranked(A), plainly_ranked(B))[0, 1], abs=1e-12)


def test_most_levels_are_kept_in_two_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "TILE", 16)
    monkeypatch.setattr(pairs, "WIDTH", 40)
    monkeypatch.setattr(ranks, "KEPT", 1000)
    centred = pairs.Centred.of(space())
    ranked = ranks.RankedDistances.of(centred, 1, None)
    assert ranked is not None
    assert len(ranked.codes) > 0.9 * sum(1 for _ in centred.blocks(0, 120))
    monkeypatch.setattr(ranks, "KEPT", 2)
    fewer = ranks.RankedDistances.of(centred, 1, None)
    assert fewer is not None
    assert 0 < sum(codes.nbytes for codes in fewer.codes.values()) <= 2 * centred.lifted.nbytes
    assert len(fewer.codes) < len(ranked.codes)


def test_a_pass_over_divided_levels_offers_no_pair_twice() -> None:
    """A collapsed space is passed twice: its nearest rows are still those of one pass."""
    rng = np.random.default_rng(0)
    A, B = (rng.normal(size=(2, 8))[np.arange(90) % 2] + 1e-5 * rng.normal(size=(90, 8)) for _ in "AB")
    near = [Candidates.none(90, 4) for _ in "AB"]
    ranks.rank_correlation(A, B, 1, *near)
    for found, X in zip(near, (A, B), strict=True):
        assert all(len(set(row)) == len(row) for row in found.row.tolist())
        assert (found.nearest(X, np.arange(90))[0] == pairs.nearest_rows(X, 4)[0]).all()


@pytest.mark.parametrize("far", [1e4, 1e6])
def test_one_far_row_does_not_change_the_ranks_of_the_others(far: float) -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 4))
    B = A + rng.normal(size=A.shape)
    A[0] += far
    assert rsa(A, B) == pytest.approx(spearmanr(pdist(A), pdist(B)).statistic, abs=1e-5)


@pytest.mark.parametrize("unit", [1e-170, 1e-90, 1e100, 1e300])
def test_the_unit_of_the_coordinates_does_not_matter(unit: float) -> None:
    A, B = space(), space(seed=6) + space()
    assert compare_points(A * unit, B).to_dict() == pytest.approx(compare_points(A, B).to_dict(), rel=1e-9)
