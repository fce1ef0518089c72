"""Every measure of the panel agrees with a peer: scikit-dimension, rsatoolbox, scikit-learn, SciPy, or plain code.

Each comparison runs on random and on real spaces, on more rows than dimensions and on fewer, and with constant columns.
"""

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pytest
import rsatoolbox
import skdim.id
from rsatoolbox.rdm import calc_rdm, compare
from scipy.optimize import linprog
from scipy.spatial import procrustes as scipy_procrustes
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression
from sklearn.metrics import silhouette_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestCentroid, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from closerlook.geometry.fit import gdv, nearest_mean_accuracy, silhouette
from closerlook.geometry.overlap import overlaps
from closerlook.geometry.point_similarity import linear_cka, procrustes, rsa, shared_neighbours
from closerlook.geometry.shape import collapse, isotropy, participation_ratio, two_nn
from closerlook.geometry.similarity import spatial_similarity
from closerlook.representations.extract import extract
from tests.threads import one_torch_thread

Pair = tuple[np.ndarray, np.ndarray]
Labelled = tuple[np.ndarray, np.ndarray]

RANDOM = ["tall", "wide", "with constant columns"]
REAL = ["words, layer 0", "words, layer 1", "words, layer 2", "questions, layer 1", "questions, layer 2"]
"""The built-in encoder's: 330 prepositions (at layer 0, 130 of them twice) and 86 questions, fewer than dimensions."""


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small products are slower on several threads."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Labelled]:
    with one_torch_thread():
        spaces = extract(
            "bert-tiny", ["toy-role", "toy-question"], splits="test", store=tmp_path_factory.mktemp("store")
        )
    names = [f"{what}, layer {layer}" for what in ("words", "questions") for layer in range(3)]
    return {name: (np.asarray(space.X, np.float64), space.y) for name, space in zip(names, spaces, strict=True)}


def made(name: str, seed: int = 0) -> Labelled:
    rng = np.random.default_rng([seed, RANDOM.index(name)])
    n, d = (40, 90) if name == "wide" else (150, 7)
    y = np.arange(n) % 4
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 2, d) + rng.normal(size=(4, d))[y]
    if name == "with constant columns":
        X[:, [1, 4]] = [0.1, -70.0]
    return X, y


@pytest.fixture(params=RANDOM + REAL)
def labelled(request: pytest.FixtureRequest, real: dict[str, Labelled]) -> Labelled:
    return real[request.param] if request.param in REAL else made(request.param)


@pytest.fixture(params=[*RANDOM, "words", "questions", "words, layer 0"])
def pair(request: pytest.FixtureRequest, real: dict[str, Labelled]) -> Pair:
    """Two spaces of the same rows, related but not the same: for random ones, one and a half of it with noise."""
    name = request.param
    if name in RANDOM:
        A = made(name)[0]
        return A, A[:, ::2] + made(name, 1)[0][:, ::2]
    first = name if name in REAL else f"{name}, layer 1"
    return real[first][0], real[f"{name.split(',')[0]}, layer 2"][0]


# ---- dimension and isotropy ----


@pytest.mark.parametrize("discard", [0.1, 0.35])
def test_two_nn_is_that_of_scikit_dimension(labelled: Labelled, discard: float) -> None:
    places = np.unique(labelled[0], axis=0)  # the peer drops rows that are there twice, with their neighbours
    peer = skdim.id.TwoNN(discard_fraction=discard).fit(places).dimension_
    assert two_nn(labelled[0], discard=discard) == pytest.approx(peer, rel=1e-6)


@pytest.mark.parametrize("near", [1e-3, 1e-6, 1e-9])
def test_two_nn_of_nearly_identical_rows_is_that_of_their_differences(near: float) -> None:
    """Computed from inner products, the smallest distances would be rounding errors, as in the peer."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    X = np.concatenate([X, X + near * rng.normal(size=X.shape)])
    nearest = np.sort(cdist(X, X), axis=1)[:, 1:3]
    peer = skdim.id.TwoNN(dist=True).fit(nearest).dimension_
    assert two_nn(X) == pytest.approx(peer, rel=1e-6)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # the peer's gaps, of variances of zero
def test_participation_ratio_is_that_of_scikit_dimension(labelled: Labelled) -> None:
    peer = skdim.id.lPCA(ver="participation_ratio").fit(labelled[0]).dimension_
    assert participation_ratio(labelled[0]) == pytest.approx(peer, rel=1e-9)


def test_iso_score_is_the_algorithm_of_its_paper(labelled: Labelled) -> None:
    """Rudman et al. (2022), section 4: turn to the principal axes, take the variances, scale, measure the defect."""
    X = labelled[0]
    d = X.shape[1]
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=True)[2]
    variances = np.var((X - X.mean(axis=0)) @ axes.T, axis=0, ddof=1)
    scaled = math.sqrt(d) * variances / np.linalg.norm(variances)
    defect = np.linalg.norm(scaled - np.ones(d)) / math.sqrt(2 * (d - math.sqrt(d)))
    used = (d - defect**2 * (d - math.sqrt(d))) ** 2 / d**2
    assert isotropy(X).iso_score == pytest.approx((d * used - 1) / (d - 1), rel=1e-9)


def test_mean_cosine_is_that_of_scikit_learn(labelled: Labelled) -> None:
    X = labelled[0]
    cosines = cosine_similarity(X)[np.triu_indices(len(X), 1)]
    assert isotropy(X).mean_cosine == pytest.approx(cosines.mean(), rel=1e-9, abs=1e-12)


# ---- collapse ----


def test_nc1_is_the_trace_with_a_pseudoinverse(labelled: Labelled) -> None:
    X, y = labelled
    codes, counts = np.unique(y, return_counts=True)
    means = np.stack([X[y == code].mean(axis=0) for code in codes])
    within = sum((X[y == c] - m).T @ (X[y == c] - m) for c, m in zip(codes, means, strict=True)) / len(X)
    between = (means - means.mean(axis=0)).T @ (means - means.mean(axis=0)) / len(codes)
    expected = np.trace(within @ np.linalg.pinv(between, rcond=1e-12, hermitian=True)) / len(codes)
    assert counts.sum() == len(X)
    assert collapse(X, y).nc1 == pytest.approx(expected, rel=1e-6)


def test_cdnv_is_its_formula_pair_by_pair(labelled: Labelled) -> None:
    X, y = labelled
    groups = [X[y == code] for code in np.unique(y)]
    means, variances = [g.mean(axis=0) for g in groups], [g.var(axis=0).sum() for g in groups]
    ratios = [
        (variances[i] + variances[j]) / (2 * d2) if (d2 := ((means[i] - means[j]) ** 2).sum()) > 0 else math.inf
        for i, j in combinations(range(len(groups)), 2)
    ]
    assert collapse(X, y).cdnv == pytest.approx(np.mean(ratios), rel=1e-9)


def test_nc3_and_nc4_are_those_of_scikit_learns_classifiers(labelled: Labelled) -> None:
    """The ridge of ours lets through some of the rounding in the direction that a layer norm leaves empty: 0.01."""
    X, y = labelled
    codes = np.unique(y)
    linear = LinearRegression().fit(X, (y[:, None] == codes).astype(float))
    means = np.stack([X[y == code].mean(axis=0) for code in codes])
    weights, arms = linear.coef_, means - means.mean(axis=0)
    expected = np.linalg.norm(weights / np.linalg.norm(weights) - arms / np.linalg.norm(arms))
    result = collapse(X, y)
    assert result.nc3 == pytest.approx(expected, abs=0.01)
    predicted, near = linear.predict(X).argmax(axis=1), cdist(X, means).argmin(axis=1)
    assert result.nc4 == pytest.approx(
        np.mean(predicted == near), abs=1.5 / len(X)
    )  # one row may be as near to two means


# ---- labels ----


def test_silhouette_is_that_of_scikit_learn(labelled: Labelled) -> None:
    assert silhouette(*labelled) == pytest.approx(silhouette_score(*labelled), abs=1e-7)


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_ has at least 1 zero:UserWarning")  # constant columns
def test_nearest_mean_is_that_of_scikit_learn(labelled: Labelled) -> None:
    X, y = labelled
    peer = NearestCentroid().fit(X, y).score(X, y)
    assert nearest_mean_accuracy(X, y) == pytest.approx(peer, abs=1e-12)


def test_gdv_is_its_formula_from_full_matrices(labelled: Labelled) -> None:
    """Schilling et al. (2021), equations 2 to 5; a label of one row has no distance within."""
    X, y = labelled
    z = 0.5 * StandardScaler().fit_transform(X)
    groups = [z[y == code] for code in np.unique(y)]
    inside = np.mean([pdist(g).mean() for g in groups if len(g) > 1])
    between = np.mean([cdist(one, other).mean() for one, other in combinations(groups, 2)])
    assert gdv(X, y) == pytest.approx((inside - between) / math.sqrt(X.shape[1]), abs=1e-7)


# ---- two spaces ----


def rdms(X: np.ndarray) -> rsatoolbox.rdm.RDMs:
    """The squared Euclidean distances of all rows, over the number of columns."""
    return calc_rdm(rsatoolbox.data.Dataset(X), method="euclidean")


def test_rsa_is_that_of_scipy(pair: Pair) -> None:
    A, B = pair
    assert rsa(A, B) == pytest.approx(spearmanr(pdist(A), pdist(B)).statistic, abs=1e-5)


def test_rsa_is_that_of_rsatoolbox(pair: Pair) -> None:
    """It ranks squared distances, which have the same order; ties are equal up to rounding."""
    first, second = (rdms(X - X.mean(axis=0)) for X in pair)
    for one in (first, second):
        one.dissimilarities = np.round(one.dissimilarities, 10)
    assert rsa(*pair) == pytest.approx(float(compare(first, second, method="spearman")[0, 0]), abs=1e-5)


def test_rsa_shares_the_ranks_of_ties_as_rsatoolbox_and_scipy_do() -> None:
    """Places on a grid: few distinct distances, each of many pairs."""
    rng = np.random.default_rng(0)
    A, B = rng.integers(0, 4, (80, 2)).astype(float), rng.integers(0, 3, (80, 3)).astype(float)
    assert len(np.unique(pdist(A))) < 12
    assert rsa(A, B) == pytest.approx(float(compare(rdms(A), rdms(B), method="spearman")[0, 0]), abs=1e-5)
    assert rsa(A, B) == pytest.approx(spearmanr(pdist(A), pdist(B)).statistic, abs=1e-5)


def hsic(K: np.ndarray, L: np.ndarray) -> float:
    """Gretton et al. (2005): biased, from full kernels."""
    n = len(K)
    H = np.eye(n) - 1 / n
    return float(np.trace(K @ H @ L @ H)) / (n - 1) ** 2


def unbiased_hsic(K: np.ndarray, L: np.ndarray) -> float:
    """Song et al. (2012), equation 5: unbiased, from full kernels."""
    n, ones = len(K), np.ones(len(K))
    K, L = K - np.diag(K.diagonal()), L - np.diag(L.diagonal())
    sums = (ones @ K @ ones) * (ones @ L @ ones) / ((n - 1) * (n - 2))
    return float(np.trace(K @ L) + sums - 2 / (n - 2) * (ones @ K @ L @ ones)) / (n * (n - 3))


def cka(estimate: Callable[[np.ndarray, np.ndarray], float], A: np.ndarray, B: np.ndarray) -> float:
    K, L = A @ A.T, B @ B.T
    return estimate(K, L) / math.sqrt(estimate(K, K) * estimate(L, L))


def u_centred(X: np.ndarray) -> np.ndarray:
    """Székely & Rizzo (2014): squared distances whose rows sum to 0 without the diagonal."""
    n, D = len(X), squareform(pdist(X, "sqeuclidean"))
    rows = D.sum(axis=1) / (n - 2)
    U = D - rows[:, None] - rows + D.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(U, 0)
    return U


def test_cka_is_that_of_full_kernels(pair: Pair) -> None:
    A, B = (X - X.mean(axis=0) for X in pair)  # the estimate knows no shift; rounding does
    assert linear_cka(*pair) == pytest.approx(cka(unbiased_hsic, A, B), rel=1e-8)


def test_cka_is_the_bias_corrected_correlation_of_squared_distances(pair: Pair) -> None:
    """The same value without kernels."""
    U, V = (u_centred(X) for X in pair)
    assert linear_cka(*pair) == pytest.approx(np.sum(U * V) / math.sqrt(np.sum(U * U) * np.sum(V * V)), rel=1e-8)


def test_biased_cka_of_full_kernels_is_that_of_rsatoolbox(pair: Pair) -> None:
    """The whitened cosine of distances is linear CKA (Diedrichsen et al. 2021): a check of the plain twin above."""
    A, B = (X - X.mean(axis=0) for X in pair)
    peer = float(compare(rdms(A), rdms(B), method="cosine_cov")[0, 0])
    assert cka(hsic, A, B) == pytest.approx(peer, rel=1e-8)


def test_debiasing_vanishes_with_many_rows_so_that_rsatoolbox_agrees() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(1500, 4))
    B = A[:, :3] + rng.normal(size=(1500, 3))
    peer = float(compare(rdms(A), rdms(B), method="cosine_cov")[0, 0])
    assert linear_cka(A, B) == pytest.approx(peer, abs=0.005)


def test_procrustes_is_that_of_scipy(pair: Pair) -> None:
    """SciPy's disparity is what is left when the second may shrink as well: 1 - s²."""
    A, B = pair
    wide = max(A.shape[1], B.shape[1])
    first, second = (np.pad(X, ((0, 0), (0, wide - X.shape[1]))) for X in pair)
    disparity = scipy_procrustes(first, second)[2]
    assert procrustes(A, B) ** 2 == pytest.approx(1 - disparity, rel=1e-9)


def test_procrustes_is_the_bures_similarity_of_rsatoolbox(pair: Pair) -> None:
    """Fidelity of the centred kernels (Harvey et al. 2024); from roots of eigenvalues, so of less precision."""
    peer = float(compare(*(rdms(X - X.mean(axis=0)) for X in pair), method="bures")[0, 0])
    assert procrustes(*pair) == pytest.approx(peer, abs=1e-5)


@pytest.mark.parametrize("k", [1, 10])
def test_neighbours_are_those_of_scikit_learn(pair: Pair, k: int) -> None:
    once = np.unique(pair[0], axis=0, return_index=True)[1]  # of rows that are there twice the peer takes any
    A, B = (X[once] for X in pair)
    near = [NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X).kneighbors(return_distance=False) for X in (A, B)]
    shared = np.array([len(set(x) & set(z)) for x, z in zip(*near, strict=True)])
    assert shared_neighbours(A, B, k=k) == pytest.approx(np.mean(shared / (2 * k - shared)), abs=1e-12)


@pytest.mark.parametrize("method", ["corr", "spearman"])
def test_spatial_similarity_is_that_of_rsatoolbox(real: dict[str, Labelled], method: str) -> None:
    """The distances of labels' means at two layers."""
    tables = []
    for layer in (1, 2):
        X, y = real[f"words, layer {layer}"]
        tables.append(pdist(np.stack([X[y == code].mean(axis=0) for code in np.unique(y)])))
    m = len(squareform(tables[0]))
    peer = compare(*(rsatoolbox.rdm.RDMs(table[None]) for table in tables), method=method)[0, 0]
    result = spatial_similarity(*((range(m), squareform(t)) for t in tables), permutations=0, resamples=0)
    assert (result.pearson if method == "corr" else result.spearman) == pytest.approx(float(peer), rel=1e-9)


# ---- separability by degrees ----


def separable(X: np.ndarray, first: np.ndarray) -> bool:
    """Whether a hyperplane separates two labels, by a linear program."""
    signs = np.where(first, 1.0, -1.0)
    A = -signs[:, None] * np.column_stack([X, np.ones(len(X))])
    return bool(linprog(np.zeros(X.shape[1] + 1), A_ub=A, b_ub=-np.ones(len(X)), bounds=(None, None)).success)


def fewest_to_remove(X: np.ndarray, first: np.ndarray) -> int:
    """By trying every choice of points, the smallest first."""
    n = len(X)
    for count in range(n):
        for gone in combinations(range(n), count):
            kept = np.setdiff1d(np.arange(n), gone)
            if separable(X[kept], first[kept]):
                return count
    return n


def wrong_side(X: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The rows that the soft-margin hyperplane of `overlaps` gets wrong."""
    scaled = StandardScaler().fit_transform(X)
    model = LinearSVC(C=10.0, dual=False, tol=1e-6, max_iter=5000, random_state=0).fit(scaled, first)
    return np.where(first, 1.0, -1.0) * model.decision_function(scaled) <= 0


@pytest.mark.parametrize("seed", range(12))
def test_no_fewer_points_are_removed_than_must_be_and_the_rest_is_separable(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, first = rng.normal(size=(9, 2)), np.arange(9) % 2 == 0
    X[first] += rng.uniform(0, 1.5)
    result = overlaps(X, first)
    fewest = fewest_to_remove(X, first)
    assert bool(result) == (fewest > 0)
    for one in result:
        gone = wrong_side(X, first)
        assert fewest <= one.removed == gone.sum() <= one.slack
        assert one.share == one.removed / 9
        assert separable(X[~gone], first[~gone])


def test_a_point_among_others_is_the_only_one_to_remove() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0], [8.0, 9.0], [8.5, 8.7]])
    first = np.array([True, True, True, False, False, False, True])
    (result,) = overlaps(X, first)
    assert result.removed == fewest_to_remove(X, first) == 1


def test_what_remains_of_real_labels_is_separable(real: dict[str, Labelled]) -> None:
    X, y = real["words, layer 0"]
    result = overlaps(X, y)
    assert len(result) > 3
    for one in result:
        rows = np.flatnonzero((y == one.first) | (y == one.second))
        gone = wrong_side(X[rows], y[rows] == one.first)
        assert one.removed == gone.sum()
        assert one.share == one.removed / len(rows)
        kept = rows[~gone]
        assert len(set(y[kept])) < 2 or overlaps(X[kept], y[kept]) == []


def test_the_pairs_of_real_labels_that_meet_are_those_of_a_linear_program(real: dict[str, Labelled]) -> None:
    X, y = real["words, layer 0"]
    meeting = {frozenset((one.first, one.second)) for one in overlaps(X, y)}
    pairs = list(combinations(np.unique(y).tolist(), 2))
    for one, other in [pair for at, pair in enumerate(pairs) if at % 5 == 0 or frozenset(pair) in meeting]:
        rows = (y == one) | (y == other)
        assert separable(X[rows], y[rows] == one) == (frozenset((one, other)) not in meeting)


# ---- many rows ----

LARGE = """
import sys
from pathlib import Path

import numpy as np

from closerlook.geometry.point_similarity import linear_cka, rsa, shared_neighbours
from closerlook.geometry.fit import gdv, silhouette
from closerlook.geometry.shape import two_nn


def memory(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


rng = np.random.default_rng(0)
A = rng.normal(size=(20_000, 32))
B, y = A + rng.normal(size=A.shape), np.arange(20_000) % 20
start = memory("VmRSS")
value = {measure}
print(memory("VmHWM") - start, value)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize(
    "measure",
    ["two_nn(A)", "silhouette(A, y)", "gdv(A, y)", "rsa(A, B)", "shared_neighbours(A, B)", "linear_cka(A, B)"],
)
def test_twenty_thousand_rows_take_bounded_memory(measure: str) -> None:
    """All distances of as many would be 3.2 GB."""
    program = LARGE.replace("{measure}", measure)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    taken, value = done.stdout.split()
    assert int(taken) < 1.2e9
    assert math.isfinite(float(value))
