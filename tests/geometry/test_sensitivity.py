"""Clusters and similarities for several values of tau and min_points, compared with computing each value by itself."""

import math

import numpy as np
import pytest

from closerlook.errors import InputError
from closerlook.geometry import cluster, cluster_distances, label_distances, spatial_similarity
from closerlook.geometry.sensitivity import clusters_by_tau, distances_by_min_points, similarity_by_min_points

RNG = np.random.default_rng(3)
SIZES = [12, 9, 7, 4, 1]
Y = np.repeat(np.arange(len(SIZES)), SIZES)
X = RNG.normal(size=(len(Y), 3)) + 2.5 * RNG.normal(size=(len(SIZES), 3))[Y]
OTHER = X + 0.5 * RNG.normal(size=X.shape)


@pytest.mark.parametrize("statistic", ["mean", "min"])
def test_distances_for_one_min_points_are_those_of_a_computation_with_it(statistic: str) -> None:
    clustering = cluster(X, Y)
    assert len(set(clustering.sizes)) > 3  # some clusters are excluded by each value, and not all
    found = distances_by_min_points(X, clustering, min_points=(1, 2, 6), statistic=statistic)  # type: ignore[arg-type]
    for least, distances in found.items():
        alone = label_distances(cluster_distances(X, clustering, min_points=least), statistic=statistic)  # type: ignore[arg-type]
        np.testing.assert_allclose(distances.values, alone.values, rtol=1e-6)
        assert (distances.excluded, distances.min_points) == (alone.excluded, least)


def test_similarities_are_those_of_a_computation_with_each_min_points() -> None:
    found = similarity_by_min_points(X, Y, OTHER, Y, min_points=(1, 2, 4))
    for at in found:
        tables = [
            label_distances(cluster_distances(points, cluster(points, Y), min_points=at.min_points))
            for points in (X, OTHER)
        ]
        alone = spatial_similarity(*tables, permutations=0, resamples=0)
        assert at.similarity == pytest.approx(alone.pearson, abs=1e-5)
        assert at.n_labels == alone.n_labels
    assert [at.n_labels for at in found] == sorted([at.n_labels for at in found], reverse=True)
    assert found[0].n_labels > found[-1].n_labels


def test_too_few_labels_have_no_similarity() -> None:
    (at,) = similarity_by_min_points(X, Y, OTHER, Y, min_points=[40])
    assert math.isnan(at.similarity)
    assert at.n_labels == 0


def test_a_larger_tolerance_never_makes_separable_labels_of_overlapping_ones() -> None:
    found = clusters_by_tau(X, Y, taus=(1e-8, 1e-6, 0.1, 0.5))
    assert [found[tau].tau for tau in found] == list(found)
    separable = [clustering.is_separable for clustering in found.values()]
    assert separable == sorted(separable, reverse=True)
    assert found[0.5].n_clusters > found[1e-8].n_clusters


def test_no_values_are_refused() -> None:
    with pytest.raises(InputError, match="min_points is empty; expected one or more numbers"):
        distances_by_min_points(X, cluster(X, Y), min_points=())
