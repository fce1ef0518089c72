"""Bad points, labels and options are refused with a message that says what arrived and what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from closerlook.errors import InputError
from closerlook.geometry import cluster, hull_distances, nearest_hulls, point_to_hull, separate

# Hulls


GOOD = [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("A", "B", "options", "text"),
    [
        (GOOD, [[1.0]], {}, "A has 2 coordinates and B has 1; expected the same number in both"),
        ([[0.0, 1.0], [2.0, np.nan]], GOOD, {}, "A holds nan at row 1, column 1, and in 1 of 2 rows in all"),
        (GOOD, [[-np.inf, np.nan]] * 3, {}, "B holds -inf at row 0, column 0, and in 3 of 3 rows in all"),
        ([[1j, 0.0]], GOOD, {}, "A holds complex numbers; expected real numbers, one row per point"),
        (GOOD, np.array([[1, None]], dtype=object), {}, "B holds values of type object; expected real numbers"),
        ([["a", "b"]], GOOD, {}, "A holds values of type <U1; expected real numbers"),
        (GOOD, [0.0, 1.0], {}, r"B has shape \(2,\); expected two dimensions: points, and their coordinates"),
        (np.zeros((2, 2, 2)), GOOD, {}, r"A has shape \(2, 2, 2\); expected two dimensions"),
        (np.zeros((0, 2)), GOOD, {}, r"A has shape \(0, 2\); expected at least one point with at least one coordinate"),
        (GOOD, np.zeros((3, 0)), {}, r"B has shape \(3, 0\); expected at least one point"),
        (GOOD, GOOD, {"tau": 0.0}, "tau is 0.0; expected a part of the RMS radius, above 0 and below 1"),
        (GOOD, GOOD, {"tau": 1.0}, "tau is 1.0; expected a part of the RMS radius"),
        (GOOD, GOOD, {"tau": -1e-6}, "tau is -1e-06; expected a part of the RMS radius"),
        (GOOD, GOOD, {"tau": np.nan}, "tau is nan; expected a part of the RMS radius"),
        (GOOD, GOOD, {"gap": 0.0}, "gap is 0.0; expected a relative gap between 0 and 1, or None to decide only"),
        (GOOD, GOOD, {"gap": 1.0}, "gap is 1.0; expected a relative gap"),
        (GOOD, GOOD, {"scale": -1.0}, "scale is -1.0; expected the RMS radius of the space, at least 0"),
        (GOOD, GOOD, {"scale": np.inf}, "scale is inf; expected the RMS radius of the space"),
    ],
)
def test_separate_refuses_bad_input(A: Any, B: Any, options: dict[str, float], text: str) -> None:
    with pytest.raises(InputError, match=text):
        separate(A, B, **options)


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ([[1.0, 2.0]], r"point has shape \(1, 2\); expected one point: a list of its coordinates"),
        (3.0, r"point has shape \(\); expected one point"),
    ],
)
def test_point_to_hull_refuses_anything_but_one_point(point: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        point_to_hull(point, GOOD)


def test_the_error_for_a_point_that_is_not_a_number_names_the_point() -> None:
    with pytest.raises(InputError, match="point holds nan at row 0, column 0"):
        point_to_hull([np.nan, 0.0], GOOD)


def test_the_error_for_a_point_of_another_dimension_names_the_point() -> None:
    with pytest.raises(InputError, match="point has 3 coordinates"):
        point_to_hull([1.0, 2.0, 3.0], GOOD)


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="A has rows of different lengths; expected an array"):
        separate([[0.0, 1.0], [2.0]], GOOD)


def test_a_point_that_is_lists_of_different_lengths_is_refused() -> None:
    with pytest.raises(InputError, match="point has rows of different lengths"):
        point_to_hull([[0.0, 1.0], [2.0]], GOOD)


# Labels and points of a space


MIXED = np.array(["a", 1, "b"], dtype=object)


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["a", "b"], r"y has shape \(2,\); expected one label for each of the 3 rows of X"),
        ([["a"], ["b"], ["c"]], r"y has shape \(3, 1\); expected one label for each of the 3 rows"),
        ("abc", r"y has shape \(\); expected one label for each of the 3 rows"),
        (MIXED, "y mixes labels of different types: 'a' at row 0, 1 at row 1; expected all strings or all numbers"),
        (np.array([1, 2, 2.5], dtype=object), "y mixes labels of different types: 1 at row 0, 2.5 at row 2"),
        (["a", None, "b"], "y mixes labels of different types: 'a' at row 0, None at row 1"),
        ([None, None, None], "y holds values of type NoneType; expected strings or whole numbers as labels"),
        (np.array([np.nan, np.nan, np.nan], dtype=object), "y holds nan at row 0; expected a label for every row"),
        ([0.0, np.nan, 1.0], "y holds nan at row 1; expected a label for every row"),
        ([0.0, 1.0, np.inf], "y holds inf at row 2; expected a label for every row"),
        ([0.0, 1.5, 1.0], "y holds 1.5 at row 1; expected labels: strings or whole numbers"),
        ([1j, 0, 1], "y holds values of type complex128; expected strings, integers or booleans as labels"),
    ],
)
def test_values_that_are_not_labels_are_refused(labels: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        cluster([[0.0], [1.0], [2.0]], labels)


@pytest.mark.parametrize("labels", [[1, "1", "a"], ["a", float("nan"), "b"], [True, "True", "a"], ["a", b"a", "b"]])
def test_a_list_of_labels_of_mixed_types_is_refused(labels: list[Any]) -> None:
    with pytest.raises(InputError, match="y mixes labels of different types"):
        cluster([[0.0], [1.0], [2.0]], labels)


def test_labels_that_are_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="y has rows of different lengths; expected an array"):
        cluster([[0.0], [1.0], [2.0]], [[1], [1, 2], [3]])


def test_an_array_of_tuples_of_different_lengths_is_refused() -> None:
    ragged = np.empty(3, dtype=object)
    ragged[:] = [(1,), (1, 2), (3,)]
    with pytest.raises(InputError, match="y has rows of different lengths"):
        cluster([[0.0], [1.0], [2.0]], ragged)


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(InputError, match="y"):
        cluster([[0.0], [1.0], [2.0]], [b"a", b"\xff", b"a"])


def test_whole_numbers_too_large_for_labels_are_refused() -> None:
    with pytest.raises(InputError, match="y"):
        cluster([[0.0], [1.0], [2.0]], [1e300, 2e300, 3.0])


@pytest.mark.parametrize(
    ("X", "options", "text"),
    [
        ([[0.0, 1.0], [np.inf, 0.0]], {}, "X holds inf at row 1, column 0, and in 1 of 2 rows in all"),
        ([0.0, 1.0], {}, r"X has shape \(2,\); expected two dimensions"),
        (np.zeros((0, 3)), {}, r"X has shape \(0, 3\); expected at least one point"),
        ([[1j], [0j]], {}, "X holds complex numbers; expected real numbers"),
        (np.array([["a"], ["b"]], dtype=object), {}, "X holds values of type object; expected real numbers"),
        ([[0.0], [1.0]], {"tau": 2.0}, "tau is 2.0; expected a part of the RMS radius"),
        ([[0.0], [1.0]], {"threads": 0}, "threads is 0; expected at least 1"),
    ],
)
def test_cluster_refuses_bad_input(X: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        cluster(X, ["a", "b"], **options)


# Hulls and queries


CORNERS = [[0.0, 0.0], [2.0, 0.0], [1.0, 5.0]]
each_call = pytest.mark.parametrize("call", [nearest_hulls, hull_distances])


@each_call
@pytest.mark.parametrize(
    ("queries", "text"),
    [
        ([[1.0, 2.0, 3.0]], "queries have 3 coordinates; expected 2, as in X"),
        ([1.0, 2.0], r"queries has shape \(2,\); expected two dimensions"),
        ([[1.0, np.nan]], "queries holds nan at row 0, column 1"),
        (
            [[0.0, 0.0], [0.0, -1e101]],
            r"query 1 lies more than 1e\+30 RMS radii away .*; expected vectors of the same",
        ),
        ([[1e200, 0.0]], r"query 0 lies more than 1e\+30 RMS radii away from the points of the hulls"),
    ],
)
def test_queries_that_do_not_fit_are_refused(call: Any, queries: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        call(CORNERS, [np.array([0, 1]), np.array([2])], queries)


@each_call
def test_queries_too_far_away_are_refused(call: Any) -> None:
    with pytest.raises(InputError, match=r"query 0 lies more than 1e\+30 RMS radii away"):
        call([[0.0], [1e-300]], [np.array([0, 1])], [[1e300]])


@each_call
@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([], "members is empty; expected at least one list of rows"),
        ([[0], []], "hull 1 has no rows; expected at least one"),
        ([[0], [1, 3]], "hull 1 has rows from 1 to 3; X has rows 0 to 2"),
        ([[2, -1]], "hull 0 has rows from -1 to 2; X has rows 0 to 2"),
    ],
)
def test_hulls_with_rows_outside_the_points_are_refused(call: Any, members: list[list[int]], text: str) -> None:
    with pytest.raises(InputError, match=text):
        call(CORNERS, [np.array(rows, dtype=np.int64) for rows in members], [[0.0, 0.0]])
