"""DirectProbe as a scikit-learn estimator: it fits clusters, and predicts from the distances to their hulls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from closerlook import geometry
from closerlook.errors import InputError
from closerlook.geometry import BlockedMerge, LabelDistances
from closerlook.geometry.attempts import Limit
from closerlook.geometry.distances import Statistic
from closerlook.geometry.frame import Floats, as_labels, detached, with_nuls
from closerlook.plots.points import MOST_POINTS, plot_points
from closerlook.progress import progress_bar

if TYPE_CHECKING:
    import altair as alt


class UnfitInputError(InputError, ValueError):
    """An InputError that is also a ValueError, as scikit-learn expects."""


class DirectProbe(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier without training: a point gets the label of the nearest convex hull of DirectProbe's clusters.

    tau: hulls whose distance is below tau RMS radii count as overlapping. min_points: clusters with fewer rows are
    excluded from `distances_` (6 in the code of the paper). statistic: "mean" or "min" over the pairs of clusters of
    two labels. attempts: None, or "released" for the limit on attempts that the code of the paper had when the paper
    was published (see `closerlook.geometry.cluster`). n_jobs: threads, all cores for None and -1; the results do not
    depend on it.

    After fitting: `classes_`; `clusters_` (n,), the cluster of each training row; `n_clusters_`; `cluster_labels_`
    (k,); `is_separable_`, whether the space is linearly separable; `conflicts_`, rows identical to a row of another
    label; `n_undecided_`, the number of merges refused because the solver could not decide whether hulls overlap;
    `clustering_`, the full `Clustering`; `distances_`, the label distances, computed on first access.

    >>> probe = DirectProbe().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "a"])
    >>> probe.n_clusters_, probe.is_separable_, probe.clusters_.tolist()
    (3, False, [0, 0, 1, 2])
    >>> probe.predict([[0.5], [1.9], [9.0]]).tolist()
    ['a', 'b', 'a']
    >>> probe.transform([[0.5]]).tolist()
    [[0.0, 1.5, 2.5]]
    """

    def __init__(
        self,
        *,
        tau: float = 1e-6,
        min_points: int = 1,
        statistic: Statistic = "mean",
        attempts: Limit | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.tau = tau
        self.min_points = min_points
        self.statistic = statistic
        self.attempts = attempts
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Cluster X: (n, d) with labels y: (n,)."""
        points, labels = validate_data(
            self,
            detached(X),
            with_nuls(detached(y)),
            dtype=np.float64,
            order="C",
            copy=True,  # X may change later
        )
        self._check_parameters()
        with value_errors():
            if labels.dtype.kind == "O":
                as_labels(labels, len(points))  # its message names the labels of mixed types
            check_classification_targets(labels)
            with progress_bar("rows clustered", None) as show:
                clustering = geometry.cluster(
                    points, labels, tau=self.tau, attempts=self.attempts, threads=self._threads(), progress=show
                )
        self.classes_ = np.unique(labels)
        self.clustering_ = clustering
        self.clusters_ = clustering.assignments
        self.n_clusters_ = clustering.n_clusters
        self.cluster_labels_ = self.classes_[clustering.cluster_codes]
        self.is_separable_ = clustering.is_separable
        self.conflicts_ = clustering.conflicts
        self.n_undecided_ = clustering.n_undecided
        self._points = points
        self._distances: LabelDistances | None = None
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """(m,) the label of the nearest hull of each row of X: (m, d)."""
        queries = self._queries(X)
        with value_errors():
            nearest, _ = geometry.nearest_hulls(
                self._points, self.clustering_.members(), queries, threads=self._threads()
            )
        labels: NDArray[np.generic] = self.cluster_labels_[nearest]
        return labels

    def transform(self, X: ArrayLike) -> Floats:
        """(m, k) the distance from each row of X: (m, d) to each cluster's hull; 0 inside."""
        queries = self._queries(X)
        with value_errors():
            return geometry.hull_distances(self._points, self.clustering_.members(), queries, threads=self._threads())

    def decision_function(self, X: ArrayLike) -> Floats:
        """(m, number of classes) minus the distance from each row of X: (m, d) to the nearest hull of each class.

        With two classes, (m,): the distance to the first class minus the distance to the second, as scikit-learn
        expects; positive numbers favour the second. `predict` agrees, except for rows at equal distances.
        """
        distances, codes = self.transform(X), self.clustering_.cluster_codes
        by_class = np.stack([distances[:, codes == code].min(axis=1) for code in range(len(self.classes_))], axis=1)
        return by_class[:, 0] - by_class[:, 1] if len(self.classes_) == 2 else -by_class

    @property
    def distances_(self) -> LabelDistances:
        """The label distances, computed on first access, which can take longer than fitting."""
        check_is_fitted(self)
        if self._distances is None:
            with value_errors(), progress_bar("distances between clusters", None) as show:
                hull_distances = geometry.cluster_distances(
                    self._points, self.clustering_, min_points=self.min_points, threads=self._threads(), progress=show
                )
                self._distances = geometry.label_distances(hull_distances, statistic=self.statistic)
        return self._distances

    def plot(
        self, *, distances: bool = True, points: int = MOST_POINTS, seed: int = 0
    ) -> alt.LayerChart | alt.HConcatChart:
        """An altair chart of the clusters, and a heat map of the label distances next to it.

        The training rows are drawn along their first two principal components, with an outline of each cluster. That is
        a projection: clusters of different labels may seem to overlap, although their hulls are disjoint. distances:
        False leaves out the heat map, since `distances_` can take longer than fitting. points, seed: see `Space.plot`.
        """
        import altair as alt

        check_is_fitted(self)
        rows = range(len(self._points))
        clusters = plot_points(
            self._points,
            self.cluster_labels_[self.clusters_].tolist(),
            title=f"{self.n_clusters_:,} clusters of {len(self.classes_):,} labels",
            columns={"row": rows, "cluster": self.clusters_.tolist()},
            clusters=self.clusters_,
            points=points,
            seed=seed,
        )
        if not distances:
            return clusters
        pair: alt.HConcatChart = alt.hconcat(clusters, self.distances_.plot()).resolve_scale(color="independent")
        return pair

    def blocked_merges(self) -> Iterator[BlockedMerge]:
        """For each blocked merge of two clusters of one label, the blocking cluster and the rows that prove it."""
        check_is_fitted(self)
        return self.clustering_.blocked_merges()

    def _queries(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        checked: Floats = validate_data(self, detached(X), dtype=np.float64, order="C", reset=False)
        return checked

    def _check_parameters(self) -> None:
        """Raise for parameters that would otherwise fail only when distances are computed, or never."""
        if not _is(self.tau, Real):
            raise UnfitInputError(f"tau is {self.tau!r}; expected a number")
        if not _is(self.min_points, Integral) or self.min_points < 1:
            raise UnfitInputError(f"min_points is {self.min_points!r}; expected a whole number of at least 1")
        if self.statistic not in ("mean", "min"):
            raise UnfitInputError(f"statistic is {self.statistic!r}; expected 'mean' or 'min'")
        check_jobs(self.n_jobs)

    def _threads(self) -> int | None:
        return check_jobs(self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)

    def __dir__(self) -> Iterable[str]:
        """Attribute names, without `distances_` until it is computed: scikit-learn reads every listed attribute."""
        unmeasured = {"distances_"} if vars(self).get("_distances") is None else set()
        names = set(object.__dir__(self)) - unmeasured
        return [name for name in names if hasattr(self, name)]  # as in scikit-learn's own __dir__


def check_jobs(n_jobs: int | None) -> int | None:
    """The number of threads for n_jobs; None is all cores."""
    if n_jobs is not None and (not _is(n_jobs, Integral) or (n_jobs < 1 and n_jobs != -1)):
        raise UnfitInputError(f"n_jobs is {n_jobs!r}; expected a number of threads, or None or -1 for all cores")
    return None if n_jobs == -1 else n_jobs


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


@contextmanager
def value_errors() -> Iterator[None]:
    """Turn InputError into the ValueError that scikit-learn expects."""
    try:
        yield
    except InputError as error:
        raise UnfitInputError(str(error)) from None
