"""The classifier probe passes scikit-learn's estimator checks and agrees with `probe_grid`."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from closerlook.errors import InputError
from closerlook.probes import ClassifierProbe, ProbeTraining, probe_grid

QUICK = {"max_rounds": 6, "patience": 2, "n_jobs": 1}


def mixed(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Points of three labels that overlap."""
    return make_blobs(n, 3, centers=3, cluster_std=3.0, random_state=0)


@parametrize_with_checks([ClassifierProbe(sizes=[(16,)], seeds=1, max_rounds=10, n_jobs=1)])
def test_scikit_learns_own_checks_pass(estimator: ClassifierProbe, check: Callable[[ClassifierProbe], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([ClassifierProbe()])
def test_scikit_learns_own_checks_pass_by_default(
    estimator: ClassifierProbe, check: Callable[[ClassifierProbe], None]
) -> None:
    check(estimator)


def test_the_estimator_chooses_the_same_sizes_as_the_grid() -> None:
    X, y = mixed()
    sizes = [(2,), (16, 4), ()]
    probe = ClassifierProbe(sizes=sizes, seeds=3, **QUICK).fit(X, y)
    result = probe_grid((X, y), (X, y), sizes=sizes, seeds=3, training=ProbeTraining(max_rounds=6, patience=2))
    assert probe.sizes_ == result.chosen_sizes
    np.testing.assert_array_equal([probe.held_out_[one] for one in sizes], result.held_out)
    seed = probe.network_.job.seed
    assert probe.score(X, y) == result.accuracy[result.chosen, seed]
    assert probe.network_.accuracy == result.held_out[result.chosen].max()


def test_probabilities_add_up_and_the_likeliest_is_predicted() -> None:
    X, y = mixed()
    probe = ClassifierProbe(sizes=[(8,)], seeds=1, **QUICK).fit(X, y)
    shares = probe.predict_proba(X)
    assert shares.shape == (len(X), 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(probe.classes_[shares.argmax(axis=1)], probe.predict(X))


def test_the_probabilities_of_a_row_do_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 300)), np.repeat([0, 1, 2], 30)
    probe = ClassifierProbe(sizes=[(256, 256)], seeds=1, **QUICK).fit(X, y)
    alone = np.concatenate([probe.predict_proba(row[None]) for row in X])
    np.testing.assert_allclose(alone, probe.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize(
    "labels",
    [["x", "y"], [3, -1], [True, False], [1.0, 2.0], np.array(["x", "y"], dtype=object)],
    ids=["strings", "integers", "booleans", "whole floats", "objects"],
)
def test_predicted_labels_keep_their_type(labels: list[object]) -> None:
    X = np.r_[np.zeros((20, 2)), np.ones((20, 2))]
    named = np.asarray(labels)[np.repeat([0, 1], 20)]
    predicted = ClassifierProbe(sizes=[(8,)], seeds=1).fit(X, named).predict(X)
    assert predicted.tolist() == named.tolist()
    assert predicted.dtype == named.dtype


def test_one_class_is_always_predicted() -> None:
    probe = ClassifierProbe(sizes=[(4,)], seeds=1, **QUICK).fit([[0.0], [1.0], [2.0]], ["a"] * 3)
    assert probe.predict([[9.0]]).tolist() == ["a"]
    assert probe.predict_proba([[9.0]]).tolist() == [[1.0]]


def test_the_result_is_the_same_for_any_number_of_threads_and_those_of_torch_stay() -> None:
    X, y = mixed()
    torch.set_num_threads(3)  # the fixture of all these tests brings back what was before
    settings = {"sizes": [(8,), (5, 3)], "seeds": 2, "max_rounds": 4}
    one, two, all_cores = (ClassifierProbe(n_jobs=jobs, **settings).fit(X, y) for jobs in (1, 2, -1))
    assert torch.get_num_threads() == 3
    for other in (two, all_cores):
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_a_pickled_probe_predicts_the_same() -> None:
    X, y = mixed()
    probe = ClassifierProbe(sizes=[(8,)], seeds=1, **QUICK).fit(X, y)
    again = pickle.loads(pickle.dumps(probe))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.predict_proba(X), probe.predict_proba(X))
    assert again.sizes_ == (8,)


def test_a_clone_has_the_parameters_and_nothing_else() -> None:
    probe = ClassifierProbe(sizes=[(8,)], seeds=[4], learning_rate=1e-3, **QUICK).fit(*mixed())
    again = clone(probe)
    assert again.get_params() == probe.get_params()
    with pytest.raises(NotFittedError):
        again.predict([[0.0, 0.0, 0.0]])


def test_a_probe_works_in_a_pipeline_and_a_grid_search() -> None:
    X, y = mixed()
    end = make_pipeline(StandardScaler(), ClassifierProbe(sizes=[(8,)], seeds=1, **QUICK)).fit(X, y)
    assert end.score(X, y) > 0.6
    search = GridSearchCV(ClassifierProbe(sizes=[(8,)], seeds=1, **QUICK), {"learning_rate": [1e-9, 1e-2]}, cv=2)
    assert search.fit(X, y).best_params_ == {"learning_rate": 1e-2}


def test_settings_reach_the_training() -> None:
    X, y = mixed()
    common = {"sizes": [(8,)], "seeds": 1, "n_jobs": 1, "max_rounds": 3}
    plain = ClassifierProbe(**common).fit(X, y).predict_proba(X)
    for changed in (
        {"learning_rate": 1e-3},
        {"batch_size": 7},
        {"weight_decay": 0.9},
        {"held_out": 0.4},
        {"seeds": [1]},
    ):
        other = ClassifierProbe(**common | changed).fit(X, y).predict_proba(X)
        assert np.abs(other - plain).max() > 1e-6, changed


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sizes": [(0,)]}, "invalid sizes .*; expected a list of tuples of layer widths"),
        ({"sizes": (32, 64)}, "invalid sizes \\(32, 64\\)"),
        ({"seeds": 0}, "invalid seeds 0; expected a number of seeds"),
        ({"learning_rate": 0}, "learning_rate is 0; expected a number above 0"),
        ({"held_out": 2}, "held_out is 2; expected a share between 0 and 1"),
        ({"device": "abacus"}, "device 'abacus' is unknown"),
        ({"device": "cuda"}, "device cuda requested"),
        ({"n_jobs": 0}, "n_jobs is 0; expected a number of threads"),
        ({"n_jobs": 1.5}, "n_jobs is 1.5; expected a number of threads"),
    ],
)
def test_unfit_parameters_are_refused_when_fitting(parameters: dict[str, object], message: str) -> None:
    for kind in (ValueError, InputError):
        with pytest.raises(kind, match=message):
            ClassifierProbe(**parameters).fit(*mixed())  # type: ignore[arg-type]


def test_labels_of_mixed_types_are_refused() -> None:
    with pytest.raises(ValueError, match="y mixes labels of different types: 'a' at row 0, 1 at row 1"):
        ClassifierProbe().fit([[0.0], [1.0], [2.0]], np.array(["a", 1, "a"], dtype=object))
