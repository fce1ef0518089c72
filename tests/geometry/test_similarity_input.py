"""Spatial similarity refuses tables and options that it cannot use, each with one line that says what to do."""

import math
from typing import Any

import numpy as np
import pytest

from closerlook.errors import InputError
from closerlook.geometry.similarity import spatial_similarity
from tests.geometry.test_similarity import Pair, between_points, names, with_nan

GOOD = between_points(4, 0)


def changed(*changes: tuple[int, int, float]) -> Pair:
    matrix = np.round(GOOD[1], 0) + 1 - np.eye(4)
    for i, j, value in changes:
        matrix[i, j] = value
    return GOOD[0], matrix


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ((["L0", "L1"], [[0, 1], [1, 0]]), "a (2 labels) and b (4) have 2 labels in common; expected at least 3"),
        (
            with_nan(with_nan(GOOD, 0), 1),
            "a (4 labels) and b (4) have 2 labels in common, 2 more without distances; expected at least 3",
        ),
        (([], np.empty((0, 0))), "a (0 labels) and b (4) have 0 labels in common; expected at least 3"),
        ((names(4), np.full((4, 4), np.nan)), "have 0 labels in common, 4 more without distances"),
        ((names(4), np.zeros((4, 3))), "a has distances of shape (4, 3); expected (m, m), a row for each label"),
        ((names(4), np.zeros(6)), "a has distances of shape (6,); expected (m, m)"),
        ((names(2), [[0, 1], [1]]), "a has distances that are not a matrix of real numbers; expected (m, m)"),
        ((names(2), [["0", "near"], ["near", "0"]]), "a has distances that are not a matrix of real numbers"),
        ((names(5), GOOD[1]), "a has 5 labels and 4 rows; expected one label for each row"),
        ((["x", "y", "x", "z"], GOOD[1]), "a has the label 'x' more than once; expected each label once"),
        (([1.5, 2, 3, 4], GOOD[1]), "a has the label 1.5; expected strings or whole numbers"),
        (changed((1, 2, -1), (2, 1, -1)), "a has the distance -1 between 'L1' and 'L2'; expected finite numbers"),
        (
            changed((3, 0, np.inf)),
            "a has the distance inf between 'L3' and 'L0'; expected finite numbers of at least 0",
        ),
        (changed((1, 2, 5), (2, 1, 6)), "a has the distance 5 from 'L1' to 'L2' and 6 back; expected a symmetric"),
        (changed((1, 2, np.nan), (2, 1, 6)), "a has the distance nan from 'L1' to 'L2' and 6 back"),
        (changed((2, 2, 1)), "a has the distance 1 between 'L2' and itself; expected 0"),
        (
            changed((1, 2, np.nan), (2, 1, np.nan)),
            "a has no distance (NaN) between 'L1' and 'L2', which have other distances; expected a number",
        ),
        (GOOD[1], "a is a ndarray; expected label distances or a pair (labels, matrix)"),
        ((*GOOD, True), "a is a tuple; expected label distances or a pair (labels, matrix)"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_line(table: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        spatial_similarity(table, GOOD)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_refusal_names_the_side() -> None:
    with pytest.raises(InputError, match="^b has the distance -1 between 'L1' and 'L2'"):
        spatial_similarity(GOOD, changed((1, 2, -1), (2, 1, -1)))


def test_too_few_labels_in_common_says_what_to_do() -> None:
    with pytest.raises(InputError, match="compare spaces with the same label set$"):
        spatial_similarity(GOOD, (["p", "q", "r", "s"], GOOD[1]))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"permutations": -1}, "permutations is -1; expected at least 0 (0 skips this step)"),
        ({"resamples": -5}, "resamples is -5; expected at least 0 (0 skips this step)"),
        ({"confidence": 95}, "confidence is 95; expected a share between 0 and 1, as 0.95"),
        ({"confidence": math.nan}, "confidence is nan; expected a share between 0 and 1"),
    ],
)
def test_an_option_out_of_range_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        spatial_similarity(GOOD, GOOD, **options)
    assert text in str(caught.value)
