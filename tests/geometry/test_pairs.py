"""All pairs of rows: the blocks are complete, and the nearest rows are those by all differences."""

import numpy as np
import pytest

from closerlook.geometry import describe_space, pairs
from closerlook.geometry.fit import silhouette
from closerlook.geometry.pairs import Candidates, Centred, each_strip, nearest_rows
from closerlook.geometry.shape import two_nn


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that every space of these tests has many."""
    monkeypatch.setattr(pairs, "TILE", 7)
    monkeypatch.setattr(pairs, "WIDTH", 24)


def test_strips_come_in_order_whichever_is_done_first() -> None:
    n = 1 << 13
    result = list(each_strip(lambda start, end: (start, end), n, threads=4))
    assert [start for start, _ in result] == [0, *(end for _, end in result[:-1])]
    assert result[-1][1] == n
    assert len(result) > 4


@pytest.mark.parametrize("n", [1, 6, 7, 8, 50])
def test_blocks_hold_each_pair_once(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 3))
    centred, squared = Centred.of(X), np.zeros((n, n))
    entries = 0
    for block in centred.blocks(0, n):
        rows, columns = np.arange(block.first, block.last)[:, None], np.arange(block.column, block.end)
        squared[block.first : block.last, block.column : block.end] += np.where(columns > rows, block.squared, 0)
        entries += block.squared.size
        assert centred.entries_up_to(block) == entries
    assert squared == pytest.approx(np.triu(((X[:, None] - X) ** 2).sum(axis=2)), abs=1e-12)


def test_centring_keeps_the_order_asked_for() -> None:
    X, order = np.random.default_rng(0).normal(size=(20, 3)), np.random.default_rng(1).permutation(20)
    assert Centred.of(X, order).rows == pytest.approx(Centred.of(X).rows[order])
    assert not Centred.of(np.full((5, 2), 0.1)).rows.any()


# ---- nearest rows ----


def plainly_nearest(X: np.ndarray, k: int) -> np.ndarray:
    """(n, k) by all differences; of equally near rows the smaller."""
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return np.argsort(squared, axis=1, kind="stable")[:, :k]


def spaces_with_ties() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    grid = rng.integers(0, 4, (150, 3)).astype(float)
    return {
        "normal": rng.normal(size=(150, 20)),
        "grid, with rows that are there several times": grid,
        "grid far away": grid / 8 + 1e6,
        "one place": np.ones((40, 3)),
        "one row far away": np.vstack([rng.normal(size=(99, 3)), np.full((1, 3), 1e6)]),
        "large": grid * 2.0**600,
        "small": grid * 2.0**-600,
        "near copies": np.repeat(rng.normal(size=(50, 4)), 3, axis=0) + np.tile([[0.0], [1e-12], [3e-12]], (50, 1)),
    }


@pytest.mark.parametrize("name", spaces_with_ties())
@pytest.mark.parametrize("k", [1, 2, 10])
def test_the_nearest_rows_are_those_by_all_differences(name: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = spaces_with_ties()[name]
    monkeypatch.setattr(pairs, "BLOCK_BYTES", 4 * len(X) * 7)
    rows, squared = nearest_rows(X, k)
    scaled = np.ldexp(X, -int(np.frexp(np.abs(X).max())[1]))
    assert (rows == plainly_nearest(scaled, k)).all()
    exact = ((scaled[:, None] - scaled[rows]) ** 2).sum(axis=2)
    unit = (squared.max() / exact.max()) if exact.max() > 0 else 1.0
    assert squared == pytest.approx(exact * unit, rel=1e-9)
    some = np.array([3, 30, 31])
    assert (nearest_rows(X, k, which=some)[0] == rows[some]).all()


def candidates_of(X: np.ndarray, k: int) -> Candidates:
    """Candidates from one pass over all pairs."""
    centred, found = Centred.of(X), Candidates.none(len(X), k)
    for block in centred.blocks(0, len(X)):
        found.offer(block)
    found.squares[:] = centred.squares
    return found


IN_RANGE = [name for name in spaces_with_ties() if name not in ("large", "small")]


@pytest.mark.parametrize("name", IN_RANGE)
@pytest.mark.parametrize("k", [1, 2, 10])
def test_the_nearest_of_the_candidates_are_those_of_all_rows(name: str, k: int) -> None:
    X = spaces_with_ties()[name]
    every, part = np.arange(len(X)), np.arange(0, len(X), 2)
    rows, squared = candidates_of(X, k).nearest(X, every)
    assert (rows == plainly_nearest(X, k)).all()
    plain, last = ((X[:, None] - X[rows]) ** 2).sum(axis=2), squared[:, -1:]
    assert squared * plain[:, -1:] == pytest.approx(plain * last, rel=1e-9)
    assert (candidates_of(X, k).nearest(X, part)[0] == part[plainly_nearest(X[part], k)]).all()


def test_rows_without_identical_ones_are_settled_by_their_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second search: otherwise the shared pass would save nothing."""
    X = spaces_with_ties()["normal"]
    found = candidates_of(X, 10)
    monkeypatch.setattr(pairs, "nearest_rows", lambda *_: pytest.fail("rows were searched again"))
    assert (found.nearest(X, np.arange(len(X)))[0] == plainly_nearest(X, 10)).all()


def test_a_candidate_within_the_error_of_a_dropped_row_is_not_trusted() -> None:
    """Ten rows at equal distance from the first: the smallest is nearest, whichever candidates were kept."""
    X = np.vstack([np.zeros((1, 20)), np.eye(20)]) + 0.1
    found = candidates_of(X, 1)
    found.row[0] = found.row[0][::-1] = np.arange(20, 20 - found.row.shape[1], -1)
    assert found.nearest(X, np.arange(len(X)))[0][0, 0] == 1


@pytest.mark.parametrize("name", IN_RANGE)
def test_two_nn_with_the_candidates_of_the_silhouette_is_that_of_its_own_search(name: str) -> None:
    X = spaces_with_ties()[name]
    y = np.random.default_rng(1).integers(0, 3, len(X))
    found = Candidates.none(len(X), 2)
    silhouette(X, y, threads=2, candidates=found)
    expected = pytest.approx(two_nn(X), rel=1e-12, nan_ok=True)
    assert two_nn(X, candidates=found) == expected
    assert describe_space(X, y, clusters=False).two_nn == expected
