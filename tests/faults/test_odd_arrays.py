"""`classify`, `compare` and `describe` on odd arrays and labels: a result without NaN, or one line that says why."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.geometry import cluster, describe_space
from closerlook.probes import probe_grid
from tests.cli.console import answer, assert_refused, run, saved

Capsys = pytest.CaptureFixture[str]
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array(list("aabbccaabbcc"))


def labels(a: object, b: object, c: object, dtype: Any = None) -> NDArray[Any]:
    """The same labels under other names."""
    return np.array([{"a": a, "b": b, "c": c}[name] for name in Y], dtype=dtype)


def with_value(value: float) -> NDArray[np.float64]:
    changed = X.copy()
    changed[1, 2] = value
    return changed


REFUSED: dict[str, tuple[object, object, str]] = {
    "no rows": (X[:0], Y[:0], "X has shape (0, 3); expected at least one point with at least one coordinate"),
    "no columns": (X[:, :0], Y, "X has shape (12, 0); expected at least one point with at least one coordinate"),
    "one dimension": (X[:, 0], Y, "X has shape (12,); expected two dimensions"),
    "three dimensions": (X[None], Y, "X has shape (1, 12, 3); expected two dimensions"),
    "no dimension": (np.array(3.0), Y, "X has shape (); expected two dimensions"),
    "NaN": (with_value(np.nan), Y, "X holds nan at row 1, column 2, and in 1 of 12 rows in all"),
    "infinity": (with_value(-np.inf), Y, "X holds -inf at row 1, column 2"),
    "objects": (X.astype(object), Y, "X holds Python objects, which can run code when read"),
    "complex": (X.astype(complex), Y, "X holds complex numbers; expected real numbers"),
    "strings": (X.astype(str), Y, "expected real numbers"),
    "dates": ((X * 1e5).astype("datetime64[s]"), Y, "expected real numbers"),
    "records": (np.zeros(12, dtype=[("a", float)]), Y, "X "),
    "fewer labels": (X, Y[:-1], "X has 12 rows and y has 11 labels; expected one for each row"),
    "more labels": (X, np.append(Y, "a"), "X has 12 rows and y has 13 labels; expected one for each row"),
    "labels in two dimensions": (X, Y[:, None], "y has shape (12, 1); expected (n,), one label for each row of X"),
    "no label": (X, labels(None, "b", "c", object), "y holds Python objects"),
    "labels of several types": (X, labels(1, "b", 2.5, object), "y holds Python objects"),
    "NaN as label": (X, labels(1.0, 2.0, np.nan), "y holds nan at row 4; expected a label for every row"),
    "fractions as labels": (X, labels(1.5, 2.0, 3.0), "y holds 1.5 at row 0; expected labels: strings or whole"),
    "complex labels": (X, labels(1j, 2, 3), "y holds values of type complex128; expected strings"),
    "dates as labels": (X, labels("2020", "2021", "2022", "datetime64[Y]"), "expected strings, integers or booleans"),
}

ACCEPTED: dict[str, tuple[object, object]] = {
    "booleans": (X > 0, Y),
    "half precision": (X.astype(np.float16), Y),
    "extended precision": (X.astype(np.longdouble), Y),
    "small integers": ((10 * X).astype(np.int8), Y),
    "large unsigned integers": ((1e18 * np.abs(X)).astype(np.uint64), Y),
    "tiny numbers": (1e-310 * X, Y),
    "the same vector in all rows": (np.ones((12, 3)), Y),
    "one column": (X[:, :1], Y),
    "columns first": (np.asfortranarray(X), Y),
    "the other byte order": (X.astype(">f8"), Y),
    "every row its own label": (X, np.arange(12)),
    "large integers as labels": (X, labels(2**63, 2**63 + 1, 5, np.uint64)),
    "bytes as labels": (X, Y.astype("S")),
    "letters of all kinds": (X, labels("é̄ 中文", "🙂", "\u202eabc")),
    "line breaks in labels": (X, labels("a\nb", "a\tb", "[red]")),
    "an empty label": (X, labels("", "b", " ")),
    "long labels": (X, labels("a" * 10_000, "b" * 10_000, "c")),
}

CLASSIFY = ("--sizes", "linear", "--seeds", 1, "--max-rounds", 1, "--threads", 1)
COMPARE = ("--permutations", 9, "--threads", 1)


def calls(file: Path) -> list[tuple[object, ...]]:
    """Each command on the points, compared with themselves where it takes two files."""
    return [
        ("classify", file, "--test", file, *CLASSIFY),
        ("compare", file, file, *COMPARE),
        ("describe", file, *COMPARE),
        ("describe", file, "--against", file, *COMPARE),
    ]


@pytest.mark.parametrize("case", REFUSED)
def test_unusable_points_are_one_line_and_exit_code_two(case: str, tmp_path: Path, capsys: Capsys) -> None:
    *points, message = REFUSED[case]
    file = tmp_path / "points.npz"
    np.savez(file, X=np.asarray(points[0]), y=np.asarray(points[1]))
    for call in calls(file):
        assert_refused(capsys, message, *call)


@pytest.mark.parametrize("case", ACCEPTED)
def test_unusual_points_are_measured(case: str, tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "points.npz", *ACCEPTED[case])
    for call in calls(file):
        assert "Infinity" not in str(answer(capsys, *call))


@pytest.mark.parametrize(
    ("n", "names"), [(1, ["a"]), (2, ["a", "b"]), (12, ["a"] * 12)], ids=["1 row", "2 rows", "1 label"]
)
def test_too_few_rows_or_labels_are_said_so(n: int, names: list[str], tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "points.npz", X[:n], names[:n])
    classify, compare, describe, against = calls(file)
    assert answer(capsys, *classify)["accuracy"] is not None
    assert_refused(capsys, "labels in common", *compare)
    if n == 2:
        answer(capsys, *describe)
        answer(capsys, *against)
    else:
        assert_refused(capsys, "points.npz has one label, 'a'; expected at least two", *describe)
        assert_refused(capsys, "points.npz has one label, 'a'; expected at least two", *against)


def refused_during_work(capsys: Capsys, *call: object) -> str:
    """The error message of a command that has printed notes before."""
    out, err = run(capsys, *call, code=2)
    assert out == ""
    *_, line = err.splitlines()
    assert line.startswith("closerlook: ")
    return line


def test_numbers_too_large_for_classifiers_are_refused_in_train_and_in_test(tmp_path: Path, capsys: Capsys) -> None:
    usual, large = saved(tmp_path / "usual.npz", X, Y), saved(tmp_path / "large.npz", 1e300 * X, Y)
    line = refused_during_work(capsys, "classify", large, "--test", usual, *CLASSIFY)
    assert "X holds 2.33e+300; expected numbers up to 1e+150 for classifier probes: divide train and test by" in line
    assert "X_test holds 2.33e+300" in refused_during_work(capsys, "classify", usual, "--test", large, *CLASSIFY)
    apart = saved(tmp_path / "apart.npz", 1e100 * X, Y)
    line = refused_during_work(capsys, "classify", usual, "--test", apart, *CLASSIFY)
    assert "X_test, divided by the standard deviation on train, holds" in line
    for call in calls(large)[1:]:
        answer(capsys, *call)


def test_differences_that_overflow_are_refused(tmp_path: Path, capsys: Capsys) -> None:
    file = saved(tmp_path / "points.npz", np.where(X > 0, 1.7e308, -1.7e308), Y)
    assert "X holds 1.7e+308" in refused_during_work(capsys, *calls(file)[0])
    for call in calls(file)[1:]:
        assert "whose difference overflows float64" in refused_during_work(capsys, *call)


# ---- arrays that only Python can pass ----

SEVERAL = {
    "read-only": lambda: _read_only(X),
    "every second row": lambda: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda: X[::-1][::-1],
    "a column of a wider array": lambda: np.hstack([X, X])[:, :3],
    "lists": X.tolist,
}


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("case", SEVERAL)
def test_the_layout_of_an_array_changes_nothing_and_it_is_not_written_to(case: str) -> None:
    given: Any = SEVERAL[case]()
    assert cluster(given, Y).n_clusters == cluster(X, Y).n_clusters
    assert describe_space(given, Y).to_dict() == describe_space(X, Y).to_dict()
    options: dict[str, Any] = {"sizes": [()], "seeds": 1, "threads": 1}
    assert probe_grid((given, Y), (given, Y), **options).accuracy == probe_grid((X, Y), (X, Y), **options).accuracy
    np.testing.assert_array_equal(np.asarray(given), X)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (labels(None, "b", "c", object), "y mixes labels of different types: None at row 0"),
        (labels(float("nan"), "b", "c", object), "y mixes labels of different types: nan at row 0"),
        (None, "y "),
        (Y[:-1], "11"),
    ],
    ids=["None", "NaN", "nothing", "fewer"],
)
def test_labels_that_are_missing_are_refused(names: object, message: str) -> None:
    for measure in (cluster, describe_space):
        with pytest.raises(InputError, match=message):
            measure(X, names)  # type: ignore[operator]
    with pytest.raises(InputError):
        probe_grid((X, names), (X, Y), sizes=[()], seeds=1)  # type: ignore[arg-type]
