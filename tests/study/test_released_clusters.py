"""The count of clusters with the limit on attempts of the released code, as a cell of a study."""

import numpy as np

from closerlook.representations.space import Provenance, Space
from closerlook.study.kinds.released_clusters import released_rows
from closerlook.study.results import load_results
from closerlook.study.study import CompletedStudy

WHERE = ["encoder", "tuned_on", "seed", "step", "layer", "task", "split"]


def test_blocked_attempts_leave_clusters_that_could_be_merged() -> None:
    """The nine pairs among the first seven points are closest, and blocked: no attempt is left for the last two."""
    X = np.array([[0.0], [1], [2], [3], [4], [5], [6], [50], [57]], dtype=np.float32)
    space = Space(X, np.array([0, 1, 0, 1, 0, 1, 0, 1, 1], dtype=np.int32), ("a", "b"), Provenance())
    assert released_rows(space, tau=1e-6) == [
        {"measure": "clusters_released", "value": 9, "n": 9},
        {"measure": "undecided_released", "value": 0, "n": 9},
    ]


def test_a_separable_space_needs_no_attempt() -> None:
    X = np.array([[0.0], [1], [5], [6]], dtype=np.float32)
    space = Space(X, np.array([0, 0, 1, 1], dtype=np.int32), ("a", "b"), Provenance())
    assert released_rows(space, tau=1e-6)[0] == {"measure": "clusters_released", "value": 2, "n": 0}


def test_a_study_stores_both_counts_of_every_train_space(done: CompletedStudy) -> None:
    table = load_results(done.out)
    exact, limited = (table[table.measure == name].set_index(WHERE) for name in ("n_clusters", "clusters_released"))
    exact = exact[exact.index.get_level_values("split") == "train"]
    assert len(limited) > 10
    assert limited.index.sort_values().equals(exact.index.sort_values())
    separable = table[(table.measure == "is_separable") & (table.value == 1)].set_index(WHERE).index
    in_both = exact.index.intersection(separable)
    assert len(in_both) > 0
    assert (limited.value[in_both] == exact.value[in_both]).all()
    assert (limited.value >= table[table.measure == "n_labels"].set_index(WHERE).value[limited.index]).all()
