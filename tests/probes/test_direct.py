"""DirectProbe passes scikit-learn's estimator checks and is right on worked examples."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from closerlook.errors import InputError
from closerlook.geometry import cluster
from closerlook.probes import DirectProbe

ON_A_LINE = [[0.0], [1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "a", "a"]
SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [5.0, 1.0], [6.0, 1.0]])
SQUARE_LABELS = np.array(["square"] * 4 + ["far"] * 2)


def mixed(n: int = 80, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Points of three labels that overlap."""
    return make_blobs(n, d, centers=3, cluster_std=4.0, random_state=0)


@parametrize_with_checks([DirectProbe(), DirectProbe(n_jobs=1, statistic="min", min_points=2)])
def test_scikit_learns_own_checks_pass(estimator: DirectProbe, check: Callable[[DirectProbe], None]) -> None:
    check(estimator)


def test_points_on_a_line() -> None:
    probe = DirectProbe().fit(*ON_A_LINE)
    assert (probe.n_clusters_, probe.is_separable_, probe.n_undecided_) == (3, False, 0)
    assert probe.clusters_.tolist() == [0, 0, 1, 2, 2]
    assert probe.cluster_labels_.tolist() == ["a", "b", "a"]
    assert probe.classes_.tolist() == ["a", "b"]
    assert probe.conflicts_.tolist() == []
    np.testing.assert_allclose(probe.distances_.values, [[0, 1], [1, 0]], rtol=1e-5)
    (blocker,) = probe.blocked_merges()
    assert (blocker.first, blocker.second, blocker.blocking, blocker.blocking_rows.tolist()) == (0, 2, 1, [2])


def test_a_point_inside_a_hull_takes_its_label_though_another_labels_point_is_nearer() -> None:
    X = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [6.0, 6.0]]
    probe = DirectProbe().fit(X, ["a", "a", "a", "b"])
    assert probe.predict([[4.0, 4.0], [5.9, 5.9]]).tolist() == ["a", "b"]
    assert probe.transform([[4.0, 4.0]])[0, 0] == pytest.approx(0, abs=1e-6)


def test_distances_to_hulls_worked_by_hand() -> None:
    probe = DirectProbe().fit(SQUARE, SQUARE_LABELS)
    assert probe.cluster_labels_.tolist() == ["square", "far"]
    result = probe.transform([[1.0, 1.0], [3.0, 1.0], [1.0, 4.0], [5.5, 2.0]])
    expected = [[0, 4], [1, 2], [2, 5], [3.5, 1]]
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_transform_agrees_with_a_plain_minimisation() -> None:
    X, y = mixed(24, 2)
    probe = DirectProbe().fit(X, y)
    queries = np.random.default_rng(1).normal(size=(4, 2)) * 8
    result = probe.transform(queries)
    for i, query in enumerate(queries):
        for j, rows in enumerate(probe.clustering_.members()):
            assert result[i, j] == pytest.approx(plain_distance(query, X[rows]), abs=2e-4)


def plain_distance(point: np.ndarray, hull: np.ndarray) -> float:
    """The distance of a point to a hull, by a general solver over convex weights."""
    n = len(hull)
    solved = minimize(
        lambda w: ((w @ hull - point) ** 2).sum(),
        np.full(n, 1 / n),
        jac=lambda w: 2 * hull @ (w @ hull - point),
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n)},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return float(np.linalg.norm(solved.x @ hull - point))


def test_prediction_is_the_label_of_the_smallest_column() -> None:
    X, y = mixed()
    probe = DirectProbe().fit(X[:60], y[:60])
    distances = probe.transform(X[60:])
    assert probe.predict(X[60:]).tolist() == probe.cluster_labels_[distances.argmin(axis=1)].tolist()


def test_training_points_without_conflicts_are_predicted_perfectly() -> None:
    X, y = mixed()
    probe = DirectProbe().fit(X, y)
    assert not probe.is_separable_
    assert probe.score(X, y) == 1.0


def test_identical_points_of_two_labels_are_conflicts() -> None:
    probe = DirectProbe().fit([[0.0], [0.0], [1.0]], ["a", "b", "a"])
    assert probe.conflicts_.tolist() == [0, 1]
    assert probe.n_clusters_ == 3


@pytest.mark.parametrize(
    "labels",
    [
        ["x", "x", "x", "x", "y", "y"],
        [3, 3, 3, 3, -1, -1],
        [True, True, True, True, False, False],
        [1.0, 1.0, 1.0, 1.0, 2.0, 2.0],
        np.array(["x", "x", "x", "x", "y", "y"], dtype=object),
    ],
    ids=["strings", "integers", "booleans", "whole floats", "objects"],
)
def test_predicted_labels_keep_their_type(labels: list[object]) -> None:
    probe = DirectProbe().fit(SQUARE, labels)
    predicted = probe.predict(SQUARE)
    assert predicted.tolist() == list(labels)
    assert predicted.dtype == np.asarray(labels).dtype
    assert list(probe.distances_.labels) == probe.classes_.tolist()


def test_one_label_makes_one_cluster() -> None:
    probe = DirectProbe().fit(SQUARE, ["a"] * 6)
    assert (probe.n_clusters_, probe.is_separable_) == (1, True)
    assert probe.predict([[100.0, 100.0]]).tolist() == ["a"]
    assert probe.distances_.values.tolist() == [[0.0]]


def test_the_result_is_the_same_for_any_number_of_threads() -> None:
    X, y = mixed(200, 5)
    one, two, all_cores = (DirectProbe(n_jobs=jobs).fit(X[:150], y[:150]) for jobs in (1, 2, -1))
    for other in (two, all_cores):
        assert one.clusters_.tolist() == other.clusters_.tolist()
        assert one.predict(X[150:]).tolist() == other.predict(X[150:]).tolist()
        np.testing.assert_array_equal(one.transform(X[150:]), other.transform(X[150:]))
        np.testing.assert_array_equal(one.distances_.values, other.distances_.values)


def test_min_points_and_statistic_reach_the_distances() -> None:
    X, y = [[0.0], [1.0], [2.0], [4.0], [5.0], [9.0]], ["a", "a", "b", "a", "a", "c"]
    assert DirectProbe().fit(X, y).distances_.values[0, 2] == pytest.approx((8 + 4) / 2, rel=1e-5)
    assert DirectProbe(statistic="min").fit(X, y).distances_.values[0, 2] == pytest.approx(4, rel=1e-5)
    without = DirectProbe(min_points=2).fit(X, y).distances_
    assert without.excluded == {"b": 1, "c": 1}
    assert np.isnan(without.values[0, 2])


def test_distances_are_computed_on_first_access_and_kept() -> None:
    probe = DirectProbe().fit(*ON_A_LINE)
    assert "distances_" not in dir(probe)
    assert {"clusters_", "classes_", "predict"} <= set(dir(probe))
    probe._repr_html_()
    assert probe._distances is None
    assert probe.distances_ is probe.distances_
    assert "distances_" in dir(probe)
    assert probe.fit(*ON_A_LINE)._distances is None


@pytest.mark.parametrize("measured", [False, True])
def test_a_pickled_probe_predicts_the_same(measured: bool) -> None:
    X, y = mixed()
    probe = DirectProbe().fit(X, y)
    expected = probe.distances_.values if measured else DirectProbe().fit(X, y).distances_.values
    again = pickle.loads(pickle.dumps(probe))  # noqa: S301 - our own bytes
    assert (again._distances is not None) is measured
    np.testing.assert_array_equal(again.distances_.values, expected)
    np.testing.assert_array_equal(again.predict(X), probe.predict(X))
    assert len(list(again.blocked_merges())) == len(list(probe.blocked_merges()))


def test_the_limit_on_attempts_is_handed_on() -> None:
    X, y = mixed()
    probe = DirectProbe(attempts="released").fit(X, y)
    assert probe.clusters_.tolist() == cluster(X, y, attempts="released").assignments.tolist()
    assert probe.clustering_.attempts is not None
    assert probe.n_clusters_ > DirectProbe().fit(X, y).n_clusters_
    assert probe.predict(X).tolist() == y.tolist()


def test_a_clone_has_the_parameters_and_nothing_else() -> None:
    probe = DirectProbe(tau=1e-3, min_points=3, statistic="min", attempts="released", n_jobs=1).fit(*ON_A_LINE)
    again = clone(probe)
    assert again.get_params() == probe.get_params()
    for ask in (lambda: again.distances_, again.blocked_merges, lambda: again.predict([[0.0]])):
        with pytest.raises(NotFittedError):
            ask()


def test_a_probe_works_in_a_pipeline_as_transformer_and_as_classifier() -> None:
    X, y = mixed()
    at_the_end = make_pipeline(StandardScaler(), DirectProbe()).fit(X, y)
    assert at_the_end.score(X, y) == 1.0
    before_another = make_pipeline(DirectProbe(), StandardScaler(), LogisticRegression()).fit(X, y)
    assert before_another.score(X, y) > 0.8


def test_a_grid_search_tries_every_tau() -> None:
    X, y = mixed()
    search = GridSearchCV(DirectProbe(), {"tau": [1e-6, 1e-1]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["tau"] in (1e-6, 1e-1)


def test_columns_are_named_and_may_come_as_a_table() -> None:
    import pandas

    table = pandas.DataFrame(SQUARE, columns=["width", "height"])
    probe = DirectProbe().fit(table, SQUARE_LABELS)
    assert probe.feature_names_in_.tolist() == ["width", "height"]
    assert probe.get_feature_names_out().tolist() == ["directprobe0", "directprobe1"]
    out = probe.set_output(transform="pandas").transform(table)
    assert out.columns.tolist() == ["directprobe0", "directprobe1"]
    with pytest.raises(ValueError, match="feature names should match"):
        probe.predict(table.rename(columns={"width": "depth"}))


def test_changing_the_array_after_fit_changes_nothing() -> None:
    X = SQUARE.copy()
    probe = DirectProbe().fit(X, SQUARE_LABELS)
    X[:] = 0
    assert probe.score(SQUARE, SQUARE_LABELS) == 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tau": 0}, "tau is 0; expected a part of the RMS radius"),
        ({"attempts": "all"}, "attempts is 'all'; expected None .no limit. or 'released'"),
        ({"tau": "small"}, "tau is 'small'; expected a number"),
        ({"min_points": 0}, "min_points is 0; expected a whole number of at least 1"),
        ({"min_points": 1.5}, "min_points is 1.5; expected a whole number"),
        ({"statistic": "median"}, "statistic is 'median'; expected 'mean' or 'min'"),
        ({"n_jobs": 0}, "n_jobs is 0; expected a number of threads"),
    ],
)
def test_unfit_parameters_are_refused_when_fitting(parameters: dict[str, object], message: str) -> None:
    for kind in (ValueError, InputError):
        with pytest.raises(kind, match=message):
            DirectProbe(**parameters).fit(*ON_A_LINE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [np.nan]], ["a", "b"], "Input X contains NaN"),
        ([[0.0], [np.inf]], ["a", "b"], "Input X contains infinity"),
        (np.array([[0.0], [1j]]), ["a", "b"], "Complex data not supported"),
        ([0.0, 1.0], ["a", "b"], "Expected 2D array, got 1D array"),
        ([[0.0], [1.0]], ["a"], "inconsistent numbers of samples"),
        ([[0.0], [1.0]], [0.1, 0.2], "Unknown label type: continuous"),
    ],
)
def test_unfit_input_is_refused_as_scikit_learn_does(X: object, y: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DirectProbe().fit(X, y)  # type: ignore[arg-type]


def test_labels_of_mixed_types_are_refused() -> None:
    with pytest.raises(ValueError, match="y mixes labels of different types: 'a' at row 0, 1 at row 1"):
        DirectProbe().fit([[0.0], [1.0], [2.0]], np.array(["a", 1, "a"], dtype=object))


# Scores and other kinds of arrays


def three_groups() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    return rng.normal(size=(90, 4)) + 2.5 * np.eye(3, 4).repeat(30, axis=0), y


def test_the_decision_function_is_minus_the_distance_to_the_nearest_hull_of_each_class() -> None:
    X, y = three_groups()
    probe = DirectProbe().fit(X[::2], y[::2])
    scores, distances = probe.decision_function(X[1::2]), probe.transform(X[1::2])
    for column, label in enumerate(probe.classes_):
        expected = [-min(row[i] for i, own in enumerate(probe.cluster_labels_) if own == label) for row in distances]
        assert scores[:, column].tolist() == expected
    assert probe.classes_[scores.argmax(axis=1)].tolist() == probe.predict(X[1::2]).tolist()


def test_with_two_classes_a_positive_decision_favours_the_second() -> None:
    X, y = three_groups()
    X, y = X[y != "c"], y[y != "c"]
    probe = DirectProbe().fit(X[::2], y[::2])
    scores = probe.decision_function(X[1::2])
    assert scores.shape == (30,)
    assert np.where(scores > 0, "b", "a").tolist() == probe.predict(X[1::2]).tolist()


def test_the_probe_can_be_calibrated() -> None:
    X, y = three_groups()
    for chosen in (y != "", y != "c"):
        calibrated = CalibratedClassifierCV(DirectProbe(), cv=3).fit(X[chosen], y[chosen])
        probabilities = calibrated.predict_proba(X[chosen])
        assert probabilities.sum(axis=1) == pytest.approx(1)
        assert (calibrated.predict(X[chosen]) == y[chosen]).mean() > 0.8


def test_tensors_of_any_precision_and_with_gradients_are_arrays() -> None:
    X, y = three_groups()
    codes = np.unique(y, return_inverse=True)[1]
    tensor = torch.tensor(X).bfloat16()
    plain = DirectProbe().fit(tensor.double().numpy(), codes)
    for kind in (tensor, tensor.clone().requires_grad_(), tensor.T.contiguous().T, tensor.float().requires_grad_()):
        probe = DirectProbe().fit(kind, torch.tensor(codes))
        assert probe.clusters_.tolist() == plain.clusters_.tolist()
        assert probe.predict(kind).tolist() == plain.predict(tensor.double().numpy()).tolist()
        assert cluster(kind, codes).assignments.tolist() == plain.clusters_.tolist()


def test_read_only_and_non_contiguous_arrays_are_taken_and_left_alone() -> None:
    X, y = three_groups()
    expected = DirectProbe().fit(X, y).clusters_.tolist()
    wide = np.zeros((90, 8))
    wide[:, ::2] = X
    for array in (np.asfortranarray(X), wide[:, ::2], X[::-1][::-1], X.astype(">f8")):
        before = array.copy()
        array.flags.writeable = False
        assert DirectProbe().fit(array, y).clusters_.tolist() == expected
        assert cluster(array, y).assignments.tolist() == expected
        assert (array == before).all()


def test_numbers_whose_difference_overflows_are_refused() -> None:
    X, y = three_groups()
    X[3, 1], X[50, 1] = 1.2e308, -1e308
    message = r"X holds numbers from -1e\+308 to 1.2e\+308 in column 1, whose difference overflows float64; expected"
    with pytest.raises(InputError, match=message):
        cluster(X, y)
    with pytest.raises(ValueError, match=message):
        DirectProbe().fit(X, y)
    assert cluster(X / 2, y).n_labels == 3
