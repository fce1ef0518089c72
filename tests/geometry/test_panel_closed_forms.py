"""Every measure of the panel on inputs with a known value: by hand, by a formula, or in expectation."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import hypergeom, multivariate_normal
from threadpoolctl import threadpool_limits

from closerlook.geometry.fit import gdv, logme, nearest_mean_accuracy, silhouette
from closerlook.geometry.nulls import Null, cover_probability, separability
from closerlook.geometry.point_similarity import compare_points, linear_cka, procrustes, rsa, shared_neighbours
from closerlook.geometry.shape import collapse, isotropy, participation_ratio, two_nn


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small products are slower on several threads."""
    with threadpool_limits(1):
        yield


def gaussian(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, n, d]).normal(size=(n, d))


def turn(d: int, seed: int = 0) -> np.ndarray:
    """(d, d) a random rotation, reflections included."""
    return np.linalg.qr(gaussian(d, d, seed + 77))[0]


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean of independent draws and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


# ---- an isotropic Gaussian ----


@pytest.mark.parametrize(("n", "d"), [(200, 20), (1000, 5), (40, 200)])
def test_the_participation_ratio_of_a_gaussian_is_its_expectation(n: int, d: int) -> None:
    """Of a Wishart matrix with f = n - 1: E (tr S)² = d² + 2d / f and E tr S² = d (f + d + 1) / f."""
    result = [participation_ratio(gaussian(n, d, seed)) for seed in range(20)]
    assert np.mean(result) == pytest.approx((d * (n - 1) + 2) / (n + d), rel=0.005)


@pytest.mark.parametrize(("n", "d"), [(200, 20), (30, 80)])
def test_iso_score_is_the_participation_ratio_from_one_to_all(n: int, d: int) -> None:
    """The definition's defect is ((d - √(d PR)) / (d - √d))^½, which leaves (PR - 1) / (d - 1)."""
    X = gaussian(n, d) * np.linspace(0.1, 3, d)
    assert isotropy(X).iso_score == pytest.approx((participation_ratio(X) - 1) / (d - 1), rel=1e-9)


def test_a_gaussian_is_isotropic() -> None:
    n, d = 20_000, 10
    result = isotropy(gaussian(n, d))
    assert result.iso_score == pytest.approx(1, abs=0.01)
    assert abs(result.mean_cosine) < 4 * math.sqrt(2 / (n * (n - 1) * d))
    assert result.outlier_dimensions == 0


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_two_nn_of_a_gaussian_is_its_dimension(d: int) -> None:
    result = [two_nn(gaussian(2000, d, seed)) for seed in range(3)]
    assert np.mean(result) == pytest.approx(d, rel=0.1)


@pytest.mark.parametrize(("d", "outlying"), [(9, 0.0), (11, 1 / 11), (100, 1 / 100)])
def test_one_dimension_stands_out_from_eleven_on(d: int, outlying: float) -> None:
    """One mean unlike d - 1 equal ones lies √(d - 1) deviations from the mean of all."""
    X = np.vstack([np.eye(d), -np.eye(d)])
    X[:, 4] += 5
    assert isotropy(X).outlier_dimensions == pytest.approx(outlying)


@pytest.mark.parametrize("m", [2, 3, 8])
def test_the_mean_cosine_of_a_simplex(m: int) -> None:
    assert isotropy(corners(m, 9)).mean_cosine == pytest.approx(-1 / (m - 1))


# ---- a simplex, and means that are none ----


def corners(m: int, d: int, size: float = 1.0) -> np.ndarray:
    """(m, d) the corners of a randomly rotated simplex ETF, at distance size √2."""
    placed = np.zeros((m, d))
    placed[:, :m] = size * (np.eye(m) - 1 / m)
    return placed @ turn(d)


def crossed(means: np.ndarray, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Around each mean a step to either side along each axis: the covariance within labels is exactly arms² / d."""
    d = means.shape[1]
    steps = np.vstack([np.diag(arms), -np.diag(arms)])
    return np.concatenate([mean + steps for mean in means]), np.arange(len(means)).repeat(2 * d)


@pytest.mark.parametrize(("m", "d", "n"), [(2, 2, 5), (4, 7, 9), (6, 40, 3)])
def test_a_simplex_is_collapsed(m: int, d: int, n: int) -> None:
    result = collapse(corners(m, d, 3.0).repeat(n, axis=0) - 2.0, np.arange(m).repeat(n))
    assert (result.nc1, result.cdnv) == (pytest.approx(0, abs=1e-12), pytest.approx(0, abs=1e-12))
    assert (result.nc2_norm, result.nc2_angle) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))
    assert result.nc3 == pytest.approx(0, abs=1e-6)
    assert result.nc4 == 1.0


@pytest.mark.parametrize("noise", [0.3, 2.0])
def test_a_simplex_with_isotropic_noise_has_closed_forms(noise: float) -> None:
    """W = noise² / d, B = size² / m on the m - 1 dimensions of the means, whose squared distances are 2 size²."""
    m, d, size = 5, 8, 3.0
    X, y = crossed(corners(m, d, size), np.full(d, noise))
    result = collapse(X, y)
    assert result.nc1 == pytest.approx(noise**2 / d * (m - 1) / size**2)
    assert result.cdnv == pytest.approx(noise**2 / (2 * size**2))
    assert (result.nc2_norm, result.nc2_angle) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))
    assert result.nc3 == pytest.approx(0, abs=1e-6)
    assert result.nc4 == 1.0


def test_means_on_a_pentagon_are_equally_long_at_two_angles() -> None:
    """Half of the cosines are cos 72°, half cos 144°: √5 / 4 to either side of their mean."""
    angles = 2 * math.pi * np.arange(5) / 5
    X, y = crossed(np.column_stack([np.cos(angles), np.sin(angles)]), np.full(2, 0.1))
    result = collapse(X, y)
    assert result.nc2_norm == pytest.approx(0, abs=1e-12)
    assert result.nc2_angle == pytest.approx(math.sqrt(5) / 4)


def test_three_means_by_hand() -> None:
    """Without their mean, (2/3, 0): lengths 10/3, √34/3 and √34/3; cosines -5/√34, -5/√34 and 16/34."""
    result = collapse(np.array([[4.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]]).repeat(3, axis=0), np.arange(3).repeat(3))
    lengths = np.array([10, math.sqrt(34), math.sqrt(34)]) / 3
    assert result.nc2_norm == pytest.approx(lengths.std() / lengths.mean())
    assert result.nc2_angle == pytest.approx(np.std([-5 / math.sqrt(34)] * 2 + [16 / 34]))


def test_the_classifier_turns_away_from_the_means_where_the_noise_is_not_isotropic() -> None:
    """Of two labels at ±(1, 1), least squares looks along W⁻¹ (1, 1) = (1, 1/4) for W = diag(1, 4) up to scale."""
    X, y = crossed(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([0.5, 1.0]))
    cosine = (1 + 1 / 4) / (math.sqrt(2) * math.sqrt(1 + 1 / 16))
    assert collapse(X, y).nc3 == pytest.approx(math.sqrt(2 - 2 * cosine), rel=1e-6)


# ---- manifolds ----


def circle(rng: np.random.Generator, n: int) -> np.ndarray:
    angle = rng.uniform(0, 2 * math.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def swiss_roll(rng: np.random.Generator, n: int) -> np.ndarray:
    t = 1.5 * math.pi * (1 + 2 * rng.uniform(size=n))
    return np.column_stack([t * np.cos(t), 21 * rng.uniform(size=n), t * np.sin(t)])


def hypercube(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(size=(n, 4))


def sphere(rng: np.random.Generator, n: int) -> np.ndarray:
    X = rng.normal(size=(n, 4))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize(("manifold", "d"), [(circle, 1), (swiss_roll, 2), (hypercube, 4), (sphere, 3)])
def test_two_nn_is_the_dimension_of_a_manifold_wherever_it_lies(
    manifold: Callable[[np.random.Generator, int], np.ndarray], d: int
) -> None:
    X = manifold(np.random.default_rng(0), 3000)
    result = two_nn(X)
    assert result == pytest.approx(d, rel=0.1)
    assert two_nn(100 - 7 * X @ turn(30)[: X.shape[1]]) == pytest.approx(result, rel=1e-6)


@pytest.mark.parametrize("discard", [0.0, 0.1, 0.4])
def test_rows_repeated_give_exactly_the_same_two_nn(discard: float) -> None:
    X = gaussian(400, 5)
    assert two_nn(X.repeat(2, axis=0), discard=discard) == two_nn(X, discard=discard)


def test_two_nn_by_hand() -> None:
    """At 1, 2, 4, ..., 1024 the ratio is 3 for the first place, 2 for the second, 1.5 for the rest; 9 of 11 stay."""
    share = -np.log(1 - np.arange(1, 10) / 11)
    expected = share.sum() / (9 * math.log(1.5))
    assert two_nn(2.0 ** np.arange(11)[:, None]) == pytest.approx(expected)


# ---- two spaces ----


def same(X: np.ndarray) -> np.ndarray:
    return X.copy()


def turned(X: np.ndarray) -> np.ndarray:
    return X @ turn(X.shape[1])


def scaled(X: np.ndarray) -> np.ndarray:
    return 1e-4 * X


def moved(X: np.ndarray) -> np.ndarray:
    return X + 50.0


def placed_in_more_dimensions(X: np.ndarray) -> np.ndarray:
    return 3 - 2 * X @ turn(X.shape[1] + 9)[: X.shape[1]]


@pytest.mark.parametrize("copy", [same, turned, scaled, moved, placed_in_more_dimensions])
@pytest.mark.parametrize(("n", "d"), [(100, 6), (30, 90)])
def test_a_copy_has_similarity_one(copy: Callable[[np.ndarray], np.ndarray], n: int, d: int) -> None:
    X = gaussian(n, d) * np.linspace(0.2, 2, d)
    result = compare_points(X, copy(X))
    assert result.cka == pytest.approx(1, abs=1e-9)
    assert result.procrustes == pytest.approx(1, abs=1e-9)
    assert result.rsa == pytest.approx(1, abs=1e-6)
    assert result.neighbours == 1


def test_debiased_cka_of_independent_spaces_is_zero_and_the_biased_is_not() -> None:
    debiased, biased = [], []
    for seed in range(50):
        A, B = gaussian(60, 100, seed), gaussian(60, 80, seed)
        debiased.append(linear_cka(A, B))
        A, B = A - A.mean(axis=0), B - B.mean(axis=0)
        biased.append(float(np.linalg.norm(A.T @ B) ** 2 / (np.linalg.norm(A @ A.T) * np.linalg.norm(B @ B.T))))
    mean, error = mean_and_error(debiased)
    assert abs(mean) < 3 * error
    mean, error = mean_and_error(biased)
    assert mean > 0.5 > 100 * error


def test_rsa_of_independent_spaces_is_zero() -> None:
    mean, error = mean_and_error([rsa(gaussian(30, 5, seed), gaussian(30, 4, seed)) for seed in range(25)])
    assert abs(mean) < 3 * error


def test_shared_neighbours_of_independent_spaces_match_random_sets() -> None:
    """The k nearest in one space are k of the n - 1 other rows drawn at random as far as the other space goes."""
    n, k = 60, 10
    s = np.arange(k + 1)
    chance = hypergeom.pmf(s, n - 1, k, k) @ (s / (2 * k - s))
    result = [shared_neighbours(gaussian(n, 5, seed), gaussian(n, 4, seed), k=k) for seed in range(50)]
    mean, error = mean_and_error(result)
    assert mean == pytest.approx(chance, abs=3 * error)
    assert error < 0.005


def test_procrustes_of_independent_spaces_falls_with_the_rows() -> None:
    result = [procrustes(gaussian(n, 10, 1), gaussian(n, 10, 2)) for n in (20, 80, 320, 1280)]
    assert result == sorted(result, reverse=True)


def test_procrustes_of_large_independent_spaces_is_its_limit() -> None:
    """The singular values of a Gaussian (d, d) matrix follow the quarter circle, of mean 8 / 3π times √d."""
    n, d = 8000, 40
    expected = 8 / (3 * math.pi) * math.sqrt(d / n)
    assert procrustes(gaussian(n, d, 1), gaussian(n, d, 2)) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("n", "d", "k"), [(300, 16, 4), (50, 30, 3)])
def test_similarity_to_a_subset_of_dimensions_is_the_root_of_its_share(n: int, d: int, k: int) -> None:
    """k of d uncorrelated dimensions of one variance: k / (√d √k), for CKA too where rows are many."""
    X = gaussian(n, d)
    X = np.linalg.qr(X - X.mean(axis=0))[0]
    assert procrustes(X, X[:, :k]) == pytest.approx(math.sqrt(k / d))
    large = [gaussian(1500, d, seed) for seed in range(20)]
    assert np.mean([linear_cka(A, A[:, :k]) for A in large]) == pytest.approx(math.sqrt(k / d), abs=0.005)


def test_rsa_by_hand() -> None:
    """Distances 1, 3, 2 and 2, 3, 1: the ranks differ by 1, 0, 1, so 1 - 6 · 2 / 24."""
    assert rsa([[0.0], [1.0], [3.0]], [[0.0], [2.0], [3.0]]) == pytest.approx(0.5)


def test_rsa_with_ties_by_hand() -> None:
    """Distances 1, 2, 1 and 1, 3, 2: ranks 1.5, 3, 1.5 and 1, 3, 2 correlate by 1.5 / √(1.5 · 2)."""
    assert rsa([[0.0], [1.0], [2.0]], [[0.0], [1.0], [3.0]]) == pytest.approx(1.5 / math.sqrt(3))


def test_shared_neighbours_by_hand() -> None:
    """The nearest rows are 1, 0, 1, 2 in one space and 1, 0, 3, 1 in the other."""
    A, B = [[0.0], [1.0], [3.0], [7.0]], [[0.0], [1.0], [3.5], [2.1]]
    assert shared_neighbours(A, B, k=1) == pytest.approx(2 / 4)
    assert shared_neighbours(A, B, k=3) == 1


# ---- labels ----


def test_silhouette_by_hand() -> None:
    """0, 1 and 4, 6: a = 1, 1, 2, 2 and b = 5, 4, 3.5, 5.5."""
    result = silhouette([[0.0], [1.0], [4.0], [6.0]], ["a", "a", "b", "b"])
    assert result == pytest.approx(np.mean([4 / 5, 3 / 4, 3 / 7, 7 / 11]))


def test_silhouette_of_labels_in_each_others_places_is_negative() -> None:
    """0, 10 and 1, 9: a = 10, 10, 8, 8 and b = 5, 5, 5, 5."""
    result = silhouette([[0.0], [10.0], [1.0], [9.0]], ["a", "a", "b", "b"])
    assert result == pytest.approx(np.mean([-1 / 2, -1 / 2, -3 / 8, -3 / 8]))


def test_silhouette_takes_the_nearest_other_label_and_gives_one_row_zero() -> None:
    """0, 1, then 3 alone, then 8, 8: a = 1, 1, -, 0, 0 and b = 3, 2, -, 5, 5."""
    result = silhouette([[0.0], [1.0], [3.0], [8.0], [8.0]], ["a", "a", "b", "c", "c"])
    assert result == pytest.approx(np.mean([2 / 3, 1 / 2, 0, 1, 1]))


def test_gdv_by_hand() -> None:
    """0, 1 and 4, 6: 1.5 within, 4.5 between, variance 5.6875."""
    result = gdv([[0.0], [1.0], [4.0], [6.0]], ["a", "a", "b", "b"])
    assert result == pytest.approx((1.5 - 4.5) / (2 * math.sqrt(5.6875)))


def test_gdv_does_not_depend_on_the_scale_or_number_of_dimensions() -> None:
    X, y = gaussian(60, 4), np.arange(60) % 3
    X[:, 0] += y
    result = gdv(X, y)
    assert gdv(X * [1, 10, 0.1, 3] - 5, y) == pytest.approx(result)
    assert gdv(np.tile(X, 3), y) == pytest.approx(result)
    assert gdv(np.column_stack([X, np.full(60, 0.1)]), y) == pytest.approx(result * math.sqrt(4 / 5))


def test_gdv_of_random_labels_is_zero() -> None:
    """Within and between then have the same expectation."""
    mean, error = mean_and_error([gdv(gaussian(60, 4, seed), np.arange(60) % 3) for seed in range(50)])
    assert abs(mean) < 3 * error


@pytest.mark.parametrize("distance", [0.0, 1.0, 3.0])
def test_the_nearest_of_two_means_is_right_as_often_as_the_normal_distribution_says(distance: float) -> None:
    n, d = 20_000, 3
    y = np.arange(n) % 2
    X = gaussian(n, d) + distance * np.eye(2, d)[y]
    expected = (
        1 + math.erf(distance / 2)
    ) / 2  # half the distance between the means is distance / √2 standard deviations
    assert nearest_mean_accuracy(X, y) == pytest.approx(expected, abs=0.02)


def evidence(X: np.ndarray, target: np.ndarray) -> float:
    """The largest density, per row, of a target that is N(0, 1/beta + X Xᵀ / alpha), over alpha and beta."""
    n = len(X)

    def cost(logs: np.ndarray) -> float:
        covariance = np.eye(n) * math.exp(-logs[1]) + X @ X.T * math.exp(-logs[0])
        return -float(multivariate_normal(np.zeros(n), covariance).logpdf(target)) / n

    return -float(minimize(cost, np.array([1.0, 1.0]), method="Nelder-Mead", options={"xatol": 1e-5}).fun)


@pytest.mark.parametrize(("n", "d"), [(60, 5), (40, 25)])
def test_logme_is_the_largest_evidence(n: int, d: int) -> None:
    y = np.arange(n) % 3
    X = gaussian(n, d) + np.eye(3, d)[y]
    expected = np.mean([evidence(X, (y == code).astype(float)) for code in range(3)])
    assert logme(X, y) == pytest.approx(expected, abs=1e-3)


def test_logme_with_more_dimensions_than_rows_is_the_largest_evidence_too() -> None:
    """The authors' eleven rounds stop short of it there."""
    X, y = gaussian(30, 45) + np.eye(3, 45)[np.arange(30) % 3], np.arange(30) % 3
    expected = np.mean([evidence(X, (y == code).astype(float)) for code in range(3)])
    assert logme(X, y) == pytest.approx(expected, abs=1e-3)


# ---- chance ----


@pytest.mark.parametrize("d", [1, 2, 10, 300])
def test_cover_is_one_at_d_plus_one_points_and_a_half_at_twice_as_many(d: int) -> None:
    assert cover_probability(d + 1, d) == 1.0
    assert cover_probability(d + 2, d) == pytest.approx(1 - 2.0 ** -(d + 1))
    assert cover_probability(2 * (d + 1), d) == pytest.approx(0.5)


@pytest.mark.parametrize(("n", "d"), [(5, 2), (40, 17), (200, 90)])
def test_cover_follows_its_recursion(n: int, d: int) -> None:
    """Cover's C(n + 1, d) = C(n, d) + C(n, d - 1), over 2^n labellings."""
    assert cover_probability(n + 1, d) == pytest.approx((cover_probability(n, d) + cover_probability(n, d - 1)) / 2)


def test_random_labellings_are_separable_as_often_as_cover_predicts() -> None:
    """Random labels of both kinds: the 2 constant ones of the 2^n labellings are excluded."""
    n, d, draws = 8, 3, 400
    rng = np.random.default_rng(0)
    n_separable = 0
    for seed in range(draws):
        y = np.zeros(n, int)
        while len(set(y.tolist())) < 2:
            y = rng.integers(0, 2, n)
        result = separability(gaussian(n, d, seed), y, shuffles=0, threads=1)
        n_separable += result.is_separable
    assert result.cover == cover_probability(n, d)
    assert result.ratio == n / (2 * d)
    expected = (result.cover * 2**n - 2) / (2**n - 2)
    assert n_separable / draws == pytest.approx(expected, abs=3 * math.sqrt(expected * (1 - expected) / draws))


def test_p_values_of_random_labels_are_uniform() -> None:
    rng = np.random.default_rng(0)
    upper, lower = [], []
    for seed in range(160):
        X, y = gaussian(24, 2, seed), np.arange(24) % 2
        value, *shuffled = (silhouette(X, rng.permutation(y)) for _ in range(20))
        upper.append(Null.of(value, np.array(shuffled)).p_value)
        lower.append(Null.of(value, np.array(shuffled), lower=True).p_value)
    for result in (upper, lower):
        counts, _ = np.histogram(result, bins=[0, 0.251, 0.501, 0.751, 1])  # 5 of the 20 values of p in each
        assert abs(counts - 40).max() < 3 * math.sqrt(160 * 0.25 * 0.75)
        assert min(result) >= 1 / 20


def test_separability_of_random_labels_is_rarely_significant() -> None:
    """Most shares are tied, which makes p too large, never too small."""
    rng = np.random.default_rng(0)
    result = [
        separability(gaussian(12, 3, seed), rng.permutation(12) % 2, shuffles=9, seed=seed, threads=1)
        for seed in range(100)
    ]
    few = np.mean([one.separable.p_value <= 0.1 for one in result])
    assert few < 0.1 + 3 * math.sqrt(0.1 * 0.9 / 100)


def test_z_has_the_sign_of_the_difference_for_either_side() -> None:
    shuffled = np.array([1.0, 2.0, 3.0, 2.0])
    assert Null.of(9.0, shuffled).z > 0 > Null.of(-9.0, shuffled).z
    for lower in (False, True):
        assert Null.of(9.0, shuffled, lower=lower).z == pytest.approx(7 / shuffled.std(ddof=1))
    assert Null.of(2.0, shuffled).z == 0


def test_the_two_sides_of_a_null_mirror_each_other() -> None:
    shuffled = gaussian(19, 1)[:, 0]
    above, below = Null.of(0.7, shuffled), Null.of(-0.7, -shuffled, lower=True)
    assert (above.p_value, above.z) == (below.p_value, pytest.approx(-below.z))
