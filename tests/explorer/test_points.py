"""Which points the explorer shows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from closerlook.scatter.points import choose_points


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=60),
    st.integers(1, 70),
    st.integers(0, 5),
)
def test_lower_ranks_come_first_and_rows_are_in_order(points: list[tuple[int, int]], most: int, seed: int) -> None:
    labels, rank = np.array(points).T
    rows = choose_points(labels, rank, most, np.random.default_rng(seed))
    assert len(rows) == min(most, len(points))
    assert (np.diff(rows) > 0).all()
    left_out = np.setdiff1d(np.arange(len(points)), rows)
    if len(left_out):
        assert rank[rows].max() <= rank[left_out].min()


def test_every_label_keeps_its_share_and_rare_labels_are_kept() -> None:
    labels = np.repeat([0, 1, 2], [800, 199, 1])
    rows = choose_points(labels, np.zeros(1000, np.int64), 100, np.random.default_rng(0))
    counts = np.bincount(labels[rows])
    assert counts[2] == 1
    assert abs(counts[0] - 80) <= 2
    assert abs(counts[1] - 20) <= 2


def test_the_sample_depends_on_the_seed_only() -> None:
    labels = np.arange(300) % 4
    first, again, other = (choose_points(labels, labels * 0, 40, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
