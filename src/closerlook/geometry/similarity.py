"""Spatial similarity of two spaces: the correlation of their label distances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import plain
from closerlook.geometry.weighted import Ranked, weighted_correlations
from closerlook.notebook import html

if TYPE_CHECKING:
    import pandas as pd

Label = str | int
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST_LABELS = 3
"""Minimum number of common labels for a correlation of label distances: two labels have a single distance."""

CHUNK = 1 << 16
"""How many numbers a temporary array has: as float64 they take half a megabyte, which fits into the cache of a core."""

TOLERANCE = 1e-6
"""Accepted asymmetry, relative to the largest distance: a table stored as float32 has this much."""


class LabelDistanceTable(Protocol):
    """Label distances: values[i, j] between labels[i] and labels[j].

    values: (m, m), symmetric, 0 on the diagonal; NaN in the whole row and column of a label without clusters.
    """

    @property
    def labels(self) -> Sequence[Label]:
        """The m distinct labels."""

    @property
    def values(self) -> Floats:
        """(m, m) the distances."""

    @property
    def separable(self) -> bool:
        """Whether the space is linearly separable, as the paper's definition requires."""


Table = LabelDistanceTable | tuple[Sequence[Label], ArrayLike]


@dataclass(frozen=True)
class Similarity:
    """The spatial similarity of two spaces a and b, with its uncertainty and the labels it excludes.

    p_value: of the Mantel test: the share of relabellings of b, the true one included, with a Pearson correlation at
    least as high. exact: whether all relabellings were tried; permutations: how many were, without the true one.
    null_mean, null_deviation: of the Pearson correlation over these relabellings. labels: the labels compared, in a's
    order. excluded_a: labels that only a has; excluded_b: labels that only b has. undefined: common labels without
    distances on at least one side. separable: whether both spaces are linearly separable (if not, the paper does not
    define the value); None if a side does not say. Values that cannot be computed are NaN.

    >>> labels, distances = ["ADJ", "NOUN", "VERB"], np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    >>> spatial_similarity((labels, distances), (labels, 2 * distances))
    Similarity(3 labels, Pearson 1.000, Spearman 1.000, p 0.17)
    """

    pearson: float
    spearman: float
    pearson_interval: tuple[float, float]
    spearman_interval: tuple[float, float]
    p_value: float
    null_mean: float
    null_deviation: float
    exact: bool
    labels: tuple[Label, ...]
    excluded_a: tuple[Label, ...]
    excluded_b: tuple[Label, ...]
    undefined: tuple[Label, ...]
    separable: bool | None
    permutations: int
    resamples: int
    confidence: float

    @property
    def n_labels(self) -> int:
        """The number of labels compared."""
        return len(self.labels)

    def __repr__(self) -> str:
        return (
            f"Similarity({self.n_labels} labels, Pearson {self.pearson:.3f}, Spearman {self.spearman:.3f}, "
            f"p {self.p_value:.2g})"
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each correlation: its value and its confidence interval."""
        import pandas as pd

        correlations = {
            "pearson": (self.pearson, self.pearson_interval),
            "spearman": (self.spearman, self.spearman_interval),
        }
        rows = [(name, value, *interval) for name, (value, interval) in correlations.items()]
        return pd.DataFrame(rows, columns=["correlation", "value", "low", "high"])

    def _repr_html_(self) -> str:
        excluded = len(self.excluded_a) + len(self.excluded_b) + len(self.undefined)
        mantel = f"Mantel test: p {self.p_value:.2g}, correlation {self.null_mean:.3f} with random relabellings (mean)."
        return html(repr(self), self.to_frame(), [mantel, f"Labels that are not compared: {excluded}."])

    def to_dict(self) -> dict[str, object]:
        """The fields and `n_labels` for JSON: NaN becomes None, tuples become lists."""
        return {key: plain(value) for key, value in asdict(self).items()} | {"n_labels": self.n_labels}


def spatial_similarity(
    a: Table,
    b: Table,
    *,
    permutations: int = 9999,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Similarity:
    """The correlation of the m(m-1)/2 label distances of two spaces over their common labels.

    a and b: label distances, or pairs (labels, matrix). The confidence intervals are percentiles over `resamples`
    bootstrap draws of labels; pairs of a label with itself are dropped. Labels are drawn rather than pairs, as pairs
    that share a label are not independent. Intervals are NaN if fewer than half of the draws have a correlation. The
    p-value is that of the one-sided Mantel test over `permutations` random relabellings of b, or over all m! of them if
    m! is not larger than `permutations`. resamples=0 skips the intervals, permutations=0 the test.

    >>> before = (["ADJ", "NOUN", "VERB", "X"], [[0, 1, 2, 4], [1, 0, 3, 5], [2, 3, 0, 6], [4, 5, 6, 0]])
    >>> after = (["VERB", "NOUN", "ADJ"], [[0, 7, 4], [7, 0, 2], [4, 2, 0]])
    >>> result = spatial_similarity(before, after)
    >>> round(result.pearson, 3), round(result.spearman, 3), result.labels, result.excluded_a
    (0.993, 1.0, ('ADJ', 'NOUN', 'VERB'), ('X',))
    >>> result.p_value == 1 / 6, result.exact
    (True, True)
    """
    _check_options(permutations, resamples, confidence)
    generator = np.random.default_rng(seed)
    left, right = read_table(a, "a"), read_table(b, "b")
    labels, undefined = common_labels(left, right)
    x, y = _ranked_pairs(left, labels), _ranked_pairs(right, labels)
    (pearson,), (spearman,) = weighted_correlations(np.ones((1, len(x.values))), x, y)
    intervals = _intervals(x, y, _bootstrap_weights(len(labels), resamples, generator), resamples, confidence)
    mantel = _mantel(x, y, len(labels), permutations, generator)
    return Similarity(
        pearson=float(pearson),
        spearman=float(spearman),
        pearson_interval=intervals[0],
        spearman_interval=intervals[1],
        p_value=mantel.p_value,
        null_mean=mantel.mean,
        null_deviation=mantel.deviation,
        exact=mantel.exact,
        labels=labels,
        excluded_a=tuple(label for label in left.labels if label not in right.labels),
        excluded_b=tuple(label for label in right.labels if label not in left.labels),
        undefined=undefined,
        separable=_both(left.separable, right.separable),
        permutations=mantel.tried,
        resamples=resamples,
        confidence=confidence,
    )


# --- Statistics -----------------------------------------------------------------------------------------------------


def _ranked_pairs(table: CheckedTable, labels: Sequence[Label]) -> Ranked:
    """The distances of the pairs i < j of some labels, relative to the largest distance.

    Dividing by the largest distance does not change correlations. Rounding makes distances equal that differ only by
    rounding errors, so that ties, and spaces in which all distances are equal, are recognised.
    """
    rows = [table.labels.index(label) for label in labels]
    distances = table.values[np.ix_(rows, rows)][np.triu_indices(len(rows), 1)]
    return Ranked.of(np.round(distances / (distances.max() or 1.0), 12).astype(np.float64))


def _intervals(
    x: Ranked, y: Ranked, weights: Iterator[Floats], resamples: int, confidence: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Percentile intervals of Pearson and of Spearman over draws with these weights."""
    chunks = [np.empty((2, 0))]
    for w in weights:
        chunks.append(np.stack(weighted_correlations(w, x, y)))
    draws = np.concatenate(chunks, axis=1)
    draws = draws[:, ~np.isnan(draws[0])]
    if draws.shape[1] == 0 or 2 * draws.shape[1] < resamples:
        return (math.nan, math.nan), (math.nan, math.nan)
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1).tolist()
    return (low[0], high[0]), (low[1], high[1])


def _bootstrap_weights(m: int, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """(k, p) chunks: how often each pair i < j occurs if m labels are drawn with replacement.

    Labels drawn n_i and n_j times make n_i n_j pairs, so a draw is a row of weights.
    """
    i, j = np.triu_indices(m, 1)
    for k in chunk_sizes(resamples, len(i)):
        draws = rng.integers(m, size=(k, m))
        flat = (draws + m * np.arange(k)[:, None]).ravel()
        counts = np.bincount(flat, minlength=k * m).reshape(k, m).astype(np.float64)
        yield counts[:, i] * counts[:, j]


@dataclass(frozen=True)
class _Mantel:
    """The result of a Mantel test: p-value, and mean and deviation of the correlations without the true labelling.

    tried: their number. exact: whether all relabellings were tried.
    """

    p_value: float
    mean: float
    deviation: float
    tried: int
    exact: bool


def _mantel(x: Ranked, y: Ranked, m: int, permutations: int, rng: np.random.Generator) -> _Mantel:
    """The one-sided Mantel test of two sets of distances between m labels."""
    exact = math.factorial(m) <= permutations
    tried = math.factorial(m) - 1 if exact else permutations
    if tried == 0 or x.constant or y.constant:
        return _Mantel(math.nan, math.nan, math.nan, tried, exact)
    i, j = np.triu_indices(m, 1)
    left, right = x.standardised(), y.standardised()
    matrix = np.zeros((m, m))
    matrix[i, j] = matrix[j, i] = right
    # A relabelling can give the same correlation, but its terms are added in another order, so the result may be
    # smaller by a rounding error. Subtracting 1e-12 makes it still count as a tie.
    least = left @ right - 1e-12
    chunks = _every_order(m) if exact else random_orders(m, permutations, rng)
    correlations = np.concatenate([matrix.take(orders[:, i] * m + orders[:, j]) @ left for orders in chunks])
    if exact:
        correlations = correlations[1:]  # the first order is the true labelling, which the formula below counts
    deviation = float(correlations.std(ddof=1)) if tried > 1 else math.nan
    p_value = (1 + int(np.count_nonzero(correlations >= least))) / (1 + tried)
    return _Mantel(p_value, float(correlations.mean()), deviation, tried, exact)


def random_orders(m: int, permutations: int, rng: np.random.Generator) -> Iterator[Integers]:
    """(k, m) chunks of random orders of m labels."""
    for k in chunk_sizes(permutations, m * (m - 1) // 2):
        yield rng.permuted(np.tile(np.arange(m), (k, 1)), axis=1)


def _every_order(m: int) -> Iterator[Integers]:
    """(k, m) chunks of all m! orders of m labels."""
    orders = itertools.permutations(range(m))
    for k in chunk_sizes(math.factorial(m), m * (m - 1) // 2):
        yield np.array(list(itertools.islice(orders, k)))


def chunk_sizes(n: int, width: int) -> Iterator[int]:
    """The sizes of chunks of n rows of this width."""
    rows = max(1, CHUNK // width)
    for start in range(0, n, rows):
        yield min(rows, n - start)


# --- Input checks ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A checked table. undefined: the labels without distances."""

    labels: tuple[Label, ...]
    values: Floats
    separable: bool | None
    undefined: frozenset[Label]


def common_labels(left: CheckedTable, right: CheckedTable) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """The labels to compare, and common labels without distances, in the left table's order."""
    common = [label for label in left.labels if label in right.labels]
    undefined = tuple(label for label in common if label in left.undefined | right.undefined)
    labels = tuple(label for label in common if label not in undefined)
    if len(labels) < FEWEST_LABELS:
        without = f", {len(undefined)} more without distances" if undefined else ""
        raise InputError(
            f"a ({len(left.labels)} labels) and b ({len(right.labels)}) have {len(labels)} labels in common{without}; "
            f"expected at least {FEWEST_LABELS}: compare spaces with the same label set"
        )
    return labels, undefined


def read_table(table: Table, side: str) -> CheckedTable:
    """A checked table from label distances or a pair (labels, matrix)."""
    names, matrix, separable = _unpack(table, side)
    labels = _labels(names, side)
    values = _matrix(matrix, side)
    if len(labels) != len(values):
        raise InputError(f"{side} has {len(labels)} labels and {len(values)} rows; expected one label for each row")
    _check_entries(values, labels, side)
    undefined = _without_distances(values, labels, side)
    return CheckedTable(labels, values / 2 + values.T / 2, separable, frozenset(itertools.compress(labels, undefined)))


def _unpack(table: Any, side: str) -> tuple[Sequence[Label], ArrayLike, bool | None]:
    if all(hasattr(table, name) for name in ("labels", "values", "separable")):
        return table.labels, table.values, bool(table.separable)
    if not isinstance(table, tuple) or len(table) != 2:
        raise InputError(f"{side} is a {type(table).__name__}; expected label distances or a pair (labels, matrix)")
    return *table, None


def _labels(names: Sequence[Label], side: str) -> tuple[Label, ...]:
    labels = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    for label in labels:
        if not isinstance(label, Label):
            raise InputError(f"{side} has the label {label!r}; expected strings or whole numbers")
    if len(set(labels)) < len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InputError(f"{side} has the label {twice!r} more than once; expected each label once")
    return labels


def _matrix(matrix: ArrayLike, side: str) -> Floats:
    try:
        values = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{side} has distances that are not a matrix of real numbers; expected (m, m)") from None
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InputError(f"{side} has distances of shape {values.shape}; expected (m, m), a row for each label")
    return values


def _check_entries(values: Floats, labels: Sequence[Label], side: str) -> None:
    """Raise InputError for the first entry that is not a distance; NaN is accepted."""
    for i, j in np.argwhere(np.isinf(values) | (values < 0)):
        raise InputError(
            f"{side} has the distance {values[i, j]:g} between {labels[i]!r} and {labels[j]!r}; "
            "expected finite numbers of at least 0"
        )
    slack = TOLERANCE * np.nanmax(values, initial=0.0)
    for i in np.flatnonzero(np.diag(values) > slack).tolist():
        raise InputError(f"{side} has the distance {values[i, i]:g} between {labels[i]!r} and itself; expected 0")
    differ = (np.abs(values - values.T) > slack) | (np.isnan(values) != np.isnan(values.T))
    for i, j in np.argwhere(differ):
        raise InputError(
            f"{side} has the distance {values[i, j]:g} from {labels[i]!r} to {labels[j]!r} and {values[j, i]:g} back; "
            "expected a symmetric matrix"
        )


def _without_distances(values: Floats, labels: Sequence[Label], side: str) -> NDArray[np.bool_]:
    """(m,) whether all distances of a label are NaN; InputError for any other NaN."""
    missing = np.isnan(values)
    undefined = np.asarray((missing | np.eye(len(values), dtype=bool)).all(axis=1), dtype=np.bool_)
    for i, j in np.argwhere(missing & ~undefined[:, None] & ~undefined):
        raise InputError(
            f"{side} has no distance (NaN) between {labels[i]!r} and {labels[j]!r}, which have other distances; "
            "expected a number, or NaN for all distances of a label"
        )
    return undefined


def _check_options(permutations: int, resamples: int, confidence: float) -> None:
    for name, value in (("permutations", permutations), ("resamples", resamples)):
        if value < 0:
            raise InputError(f"{name} is {value}; expected at least 0 (0 skips this step)")
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; expected a share between 0 and 1, as 0.95")


def _both(left: bool | None, right: bool | None) -> bool | None:
    """Whether both are true; None if that is unknown."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True
