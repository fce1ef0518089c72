"""The grid of networks: known results, unusual inputs, and no leak from test into training."""

import json

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score

from closerlook.errors import InputError
from closerlook.probes import GRID, ProbeResult, ProbeTraining, grid, probe_grid, probe_grids
from closerlook.probes.grid import check_seeds, check_sizes, choose_sizes
from closerlook.representations.space import Space

QUICK = ProbeTraining(learning_rate=0.01, batch_size=64, max_rounds=6, patience=2)
Points = tuple[np.ndarray, np.ndarray]


def blobs(n: int = 150, d: int = 4, seed: int = 0, spread: float = 1.0) -> Points:
    """Points of three labels that overlap a little."""
    rng = np.random.default_rng([seed, n, d])
    y = np.r_[0, 1, 2, rng.integers(0, 3, n - 3)]
    X = rng.normal(size=(n, d)) * spread
    X[:, 0] += 2.5 * y
    return X, np.array(["x", "y", "z"])[y]


def assert_same(one: ProbeResult, other: ProbeResult) -> None:
    for name in ("accuracy", "held_out", "rounds", "predictions", "confusion", "macro_f1"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.chosen_sizes, one.majority, one.labels) == (other.chosen_sizes, other.majority, other.labels)


# ---- known answers ----


def test_xor_is_solved_by_an_mlp_and_not_by_a_linear_probe() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(600, 2))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    result = probe_grid(
        (X[:400], y[:400]),
        (X[400:], y[400:]),
        sizes=[(), (32,), (32, 32)],
        seeds=2,
        training=ProbeTraining(learning_rate=0.01),
    )
    linear, one, two = result.accuracy.mean(axis=1)
    assert linear < 0.65
    assert min(one, two) > 0.94
    assert result.chosen_sizes != ()


def test_random_labels_give_chance_on_test() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(900, 8)), rng.integers(0, 4, 900)
    result = probe_grid((X[:400], y[:400]), (X[400:], y[400:]), sizes=[(32, 32), ()], seeds=2)
    assert result.accuracy == pytest.approx(0.25, abs=0.08)  # four standard deviations of a count of 500


def test_everything_reported_follows_from_the_predictions() -> None:
    train, test = blobs(spread=2.0), blobs(80, seed=1, spread=2.0)
    result = probe_grid(train, test, sizes=[(8,), (4, 4)], seeds=3, training=QUICK)
    names = np.array(result.test_labels)[result.predictions]
    assert names.shape == (3, 80)
    np.testing.assert_allclose((names == test[1]).mean(axis=1), result.accuracy[result.chosen])
    np.testing.assert_array_equal(sum(confusion_matrix(test[1], one) for one in names), result.confusion)
    np.testing.assert_allclose([f1_score(test[1], one, average="macro") for one in names], result.macro_f1)
    by_label = [np.mean([(one == test[1])[test[1] == label].mean() for one in names]) for label in "xyz"]
    np.testing.assert_allclose(result.by_label, by_label)
    commonest = max("xyz", key=lambda label: (train[1] == label).sum())
    assert result.majority == np.mean(test[1] == commonest)
    assert result.mean == result.accuracy[result.chosen].mean()
    assert result.deviation == np.std(result.accuracy[result.chosen], ddof=1)
    assert (result.n_train, result.n_test, result.d) == (150, 80, 4)


def test_the_grid_is_the_papers_by_default() -> None:
    assert len(GRID) == 16
    assert set(GRID) == {(a, b) for a in (32, 64, 128, 256) for b in (32, 64, 128, 256)}
    train = blobs(40)
    result = probe_grid(train, train, training=ProbeTraining(max_rounds=0))
    assert (result.sizes, result.seeds) == (GRID, (0, 1, 2, 3, 4))
    assert result.accuracy.shape == result.held_out.shape == result.rounds.shape == (16, 5)


# ---- nothing leaks ----


def test_sizes_are_chosen_on_held_out_rows_and_never_on_test() -> None:
    train, test = blobs(spread=2.0), blobs(60, seed=1, spread=2.0)
    result = probe_grid(train, test, sizes=[(2,), (8,), (16, 16)], seeds=2, training=QUICK)
    means = result.held_out.mean(axis=1)
    assert means[result.chosen] == means.max()
    other = probe_grid(train, (test[0], np.roll(test[1], 1)), sizes=result.sizes, seeds=2, training=QUICK)
    np.testing.assert_array_equal(other.held_out, result.held_out)
    np.testing.assert_array_equal(other.predictions, result.predictions)


def test_the_fewest_weights_win_a_tie_of_sizes() -> None:
    held_out = np.array([[0.9, 0.7], [0.8, 0.8], [0.7, 0.9], [0.1, 0.2]])
    assert choose_sizes(held_out, [30, 10, 20, 1]) == 1
    assert choose_sizes(held_out, [10, 10, 20, 1]) == 0


def test_inputs_are_standardised_on_train() -> None:
    train, test = blobs(), blobs(60, seed=1)
    expected = probe_grid(train, test, sizes=[(8,)], seeds=2, training=QUICK)
    scales = 2.0 ** np.array([40, -40, 3, 0])  # powers of two: not a digit is lost
    scaled = probe_grid(
        (train[0] * scales, train[1]), (test[0] * scales, test[1]), sizes=[(8,)], seeds=2, training=QUICK
    )
    assert_same(scaled, expected)
    moved = probe_grid(train, (test[0] + 50, test[1]), sizes=[(8,)], seeds=2, training=QUICK)
    assert moved.mean < expected.mean  # test is not standardised on itself


# ---- company changes nothing ----


def test_a_size_does_not_depend_on_the_rest_of_the_grid() -> None:
    train, test = blobs(d=7, spread=2.0), blobs(50, d=7, seed=1)
    alone = probe_grid(train, test, sizes=[(5, 3)], seeds=[2], training=QUICK)
    among = probe_grid(train, test, sizes=[(), (5, 3), (9,)], seeds=[0, 2, 7], training=QUICK, threads=2)
    assert among.accuracy[1, 1] == alone.accuracy[0, 0]
    assert among.held_out[1, 1] == alone.held_out[0, 0]
    assert among.rounds[1, 1] == alone.rounds[0, 0]


@pytest.mark.parametrize("bytes_at_once", [1, 1 << 28])
def test_several_spaces_give_the_same_as_each_alone(monkeypatch: pytest.MonkeyPatch, bytes_at_once: int) -> None:
    monkeypatch.setattr(grid, "STACK_BYTES", bytes_at_once)
    pairs = [(blobs(90, d, seed), blobs(30, d, seed + 9)) for d, seed in ((4, 0), (7, 1), (4, 2))]
    pairs.append((blobs(91, 4, 3), blobs(30, 4, 12)))
    seen: list[tuple[int, int]] = []
    together = probe_grids(
        pairs, sizes=[(5, 3), ()], seeds=2, training=QUICK, progress=lambda done, total: seen.append((done, total))
    )
    for pair, result in zip(pairs, together, strict=True):
        assert_same(probe_grid(*pair, sizes=[(5, 3), ()], seeds=2, training=QUICK), result)
    assert seen[-1] == (16, 16)
    assert seen == sorted(seen)


def test_spaces_and_arrays_give_the_same() -> None:
    train, test = blobs(), blobs(40, seed=1)
    spaces = [Space.from_arrays(*one) for one in (train, test)]
    arrays = [(space.X, space.label_names) for space in spaces]
    result = [probe_grid(*pair, sizes=[(8,)], seeds=1, training=QUICK) for pair in (spaces, arrays)]
    assert_same(*result)


def test_labels_without_rows_are_not_classes() -> None:
    X, y = blobs()
    codes = np.unique(y, return_inverse=True)[1].astype(np.int32)
    space = Space(X.astype(np.float32), codes, ("x", "y", "z", "never"))
    result = probe_grid(space, space, sizes=[()], seeds=1, training=QUICK)
    assert result.labels == result.test_labels == ("x", "y", "z")


# ---- odd inputs ----


def test_a_label_that_only_test_has_counts_as_wrong() -> None:
    train, (X, y) = blobs(), blobs(40, seed=1)
    y = np.where(np.arange(40) < 10, "new", y)
    result = probe_grid(train, (X, y), sizes=[(8,)], seeds=2, training=QUICK)
    assert (result.labels, result.test_labels) == (("x", "y", "z"), ("new", "x", "y", "z"))
    assert result.unseen == ("new",)
    assert result.by_label[0] == 0
    assert result.confusion.shape == (4, 4)
    assert result.confusion[0].sum() == 20
    assert result.confusion[:, 0].sum() == 0
    assert result.accuracy.max() <= 0.75


def test_a_label_that_test_lacks_has_no_accuracy() -> None:
    train, (X, y) = blobs(), blobs(40, seed=1)
    result = probe_grid(train, (X[y != "y"], y[y != "y"]), sizes=[(8,)], seeds=1, training=QUICK)
    assert np.isnan(result.by_label).tolist() == [False, True, False]
    assert json.loads(json.dumps(result.to_dict()["accuracy_by_label"]))[0] >= 0


def test_a_single_class_is_always_right() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    result = probe_grid((X, ["a"] * 20), (X[:5], ["a"] * 5), sizes=[(4,), ()], seeds=2, training=QUICK)
    assert (result.accuracy == 1).all()
    assert (result.majority, result.confusion.tolist(), result.chosen_sizes) == (1.0, [[10]], ())


def test_one_example_of_each_class_is_learnt() -> None:
    X = np.eye(5) * 3
    result = probe_grid((X, list("abcde")), (X, list("abcde")), sizes=[(16,)], seeds=2, training=QUICK)
    assert (result.accuracy == 1).all()


def test_a_single_point_is_enough_to_train_on() -> None:
    result = probe_grid(([[1.0]], ["a"]), ([[2.0]], ["b"]), sizes=[(4,)], seeds=1, training=QUICK)
    assert (result.mean, result.majority, result.unseen) == (0.0, 0.0, ("b",))


def test_one_dimension_is_enough() -> None:
    X = np.linspace(-1, 1, 120)[:, None]
    y = np.where(np.abs(X[:, 0]) < 0.5, "inner", "outer")
    result = probe_grid((X[::2], y[::2]), (X[1::2], y[1::2]), sizes=[(16, 16), ()], seeds=2, training=QUICK)
    assert result.accuracy[0].min() > 0.9
    assert result.accuracy[1].max() < 0.8


def test_constant_columns_are_accepted() -> None:
    X, y = blobs()
    constant = np.c_[X, np.full(len(X), 7.0)]
    assert probe_grid((constant, y), (constant, y), sizes=[(8,)], seeds=1, training=QUICK).mean > 0.8


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(["b", "a", "c"], str), ([7, -1, 3], int), (np.array([b"b", b"a", b"c"]), str), ([1.0, 2.0, 5.0], int)],
)
def test_labels_may_be_strings_or_whole_numbers(labels: object, kind: type) -> None:
    X, y = blobs()
    named = np.asarray(labels)[np.unique(y, return_inverse=True)[1]]
    result = probe_grid((X, named), (X, named), sizes=[(8,)], seeds=1, training=QUICK)
    assert result.mean > 0.8
    assert all(isinstance(label, kind) for label in result.labels)
    assert list(result.labels) == sorted(result.labels)


def test_one_seed_has_no_deviation() -> None:
    result = probe_grid(blobs(), blobs(20, seed=1), sizes=[()], seeds=1, training=QUICK)
    assert np.isnan(result.deviation)


def test_repeated_seeds_and_sizes_count_once() -> None:
    assert check_seeds([3, 1, 3]) == (3, 1)
    assert check_seeds(np.int64(2)) == (0, 1)
    assert check_sizes([[4, 2], (4, 2), ()]) == ((4, 2), ())
    assert check_sizes(np.array([[4, 2]])) == ((4, 2),)


def test_a_result_is_plain_values_for_json() -> None:
    result = probe_grid(blobs(), blobs(20, seed=1), sizes=[(8,), ()], seeds=2, training=QUICK)
    written = json.loads(json.dumps(result.to_dict()))
    assert written["accuracy"] == result.mean
    assert written["training"]["max_rounds"] == 6
    assert [row["chosen"] for row in written["grid"]] == [at == result.chosen for at in range(2)]
    assert written["device"] == "cpu"


# ---- bad input ----


@pytest.mark.parametrize(
    ("sizes", "seeds", "message"),
    [
        ([], 1, "invalid sizes \\[\\]; expected a list of tuples of layer widths"),
        ([(0,)], 1, "invalid sizes \\[\\(0,\\)\\]"),
        ([(3.5,)], 1, "invalid sizes \\[\\(3.5,\\)\\]"),
        (
            (32, 64),
            1,
            "invalid sizes \\(32, 64\\); expected a list of tuples of layer widths, such as \\[\\(64, 128\\)",
        ),
        ("32", 1, "invalid sizes '32'"),
        (None, 1, "invalid sizes None"),
        ([()], 0, "invalid seeds 0; expected a number of seeds, at least 1, or a list of integers, at least 0"),
        ([()], [], "invalid seeds \\[\\]"),
        ([()], [-1], "invalid seeds \\[-1\\]"),
        ([()], 1.5, "invalid seeds 1.5"),
        ([()], "12", "invalid seeds '12'"),
        ([()], True, "invalid seeds True"),
    ],
)
def test_unfit_sizes_and_seeds_are_refused(sizes: object, seeds: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe_grid(blobs(), blobs(), sizes=sizes, seeds=seeds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (([[np.nan]], ["a"]), ([[1.0]], ["a"]), "train: X holds nan at row 0"),
        (([[1.0]], ["a"]), ([[np.inf]], ["a"]), "test: X holds inf at row 0"),
        (
            ([[1.0]], ["a", "b"]),
            ([[1.0]], ["a"]),
            "train: y has shape \\(2,\\); expected one label for each of the 1 rows",
        ),
        (([[1.0]], ["a"]), ([[1.0, 2.0]], ["a"]), "test has 2 columns; expected 1, as train has"),
        (([[1.0]], ["a"]), ([[1.0]], [1]), "train has labels such as 'a', test 1; expected labels of the same type"),
        ((np.zeros((0, 2)), []), ([[1.0, 2.0]], ["a"]), "train: X has shape \\(0, 2\\); expected at least one point"),
        (([[1.0]], ["a"]), (np.zeros((0, 1)), []), "test: X has shape \\(0, 1\\); expected at least one point"),
        (([[1.0]], [0.5]), ([[1.0]], [1]), "train: y holds 0.5 at row 0"),
    ],
)
def test_unfit_points_are_refused_with_the_side_they_are_on(train: Points, test: Points, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe_grid(train, test)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda"}, "device cuda requested; torch .* sees cpu here"),
        ({"device": "abacus"}, "device 'abacus' is unknown; expected auto, cuda, cuda:N, mps or cpu"),
        ({"threads": 0}, "threads is 0; expected at least 1"),
    ],
)
def test_a_missing_device_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        probe_grid(blobs(), blobs(), **options)  # type: ignore[arg-type]
